"""SWEEP in compiled code.

- `select`: which records of a group close now, so that no sensitive value weighs too much.
"""

from noren.methods.sweep.kernels.passes import Closings, Vectors, raise_values, sweep
from noren.methods.sweep.kernels.select import OpenEntries, Queue, Room, Sensitive

__all__ = [
    "Closings",
    "OpenEntries",
    "Queue",
    "Room",
    "Sensitive",
    "Vectors",
    "raise_values",
    "sweep",
]
