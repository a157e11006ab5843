"""SWEEP in compiled code: the passes over the level vectors, and which records of a group close now."""
