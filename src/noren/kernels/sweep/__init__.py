"""SWEEP in compiled code.

- `select`: which records of a group close now, so that no sensitive value weighs too much.
- `passes`: one pass over the level vectors, which groups what is still open and closes what can be.
- `values`: sensitive values climb until a class holds.
"""

from noren.kernels.sweep.passes import Combinations, Vectors, classes_of_rows, list_entries, number_items, sweep
from noren.kernels.sweep.select import OpenEntries, Sensitive
from noren.kernels.sweep.values import counting_order, raise_values

__all__ = [
    "Combinations",
    "OpenEntries",
    "Sensitive",
    "Vectors",
    "classes_of_rows",
    "counting_order",
    "list_entries",
    "number_items",
    "raise_values",
    "sweep",
]
