"""Numba: typed arrays and named tuples in, arrays out. Nothing is compiled before it is called."""

from __future__ import annotations

from collections.abc import Callable

compiling: list[Callable[[str, int], None]] = []
"""Told the name of every kernel that is about to be compiled, and how many there are in what was loaded."""
