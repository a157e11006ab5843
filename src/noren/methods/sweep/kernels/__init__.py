"""SWEEP in compiled code.

- `select`: which records of a group close now, so that no sensitive value weighs too much.
- `passes`: one pass over the level vectors, which groups what is still open and closes what can be.
- `values`: sensitive values climb until a class holds.
"""

from noren.methods.sweep.kernels.passes import Closings, Combinations, Vectors, sweep
from noren.methods.sweep.kernels.select import OpenEntries, Queue, Room, Sensitive
from noren.methods.sweep.kernels.values import raise_values

__all__ = [
    "Closings",
    "Combinations",
    "OpenEntries",
    "Queue",
    "Room",
    "Sensitive",
    "Vectors",
    "raise_values",
    "sweep",
]
