"""The five papers, reproduced: every figure recomputed with this library, every claim answered by measurement."""
