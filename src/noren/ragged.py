"""Lists of different lengths, one after the other in one array: row i has the entries offsets[i]:offsets[i + 1].

Everything here is NumPy on whole arrays and imports nothing of noren, so every room may use it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SMALL_TABLE = 1 << 20
"""Keys below this are numbered by a table, however few rows there are."""


def offsets_of(lengths: Sequence[int] | NDArray) -> NDArray[np.int64]:
    """Where rows of these lengths begin, and where the last one ends: 0, lengths[0], lengths[0] + lengths[1], ..."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def owners(offsets: NDArray) -> NDArray[np.int64]:
    """The row of every entry."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def ranges(starts: NDArray, stops: NDArray) -> NDArray[np.int64]:
    """starts[0], ..., stops[0] - 1, starts[1], ..., stops[1] - 1, and so on."""
    lengths = np.asarray(stops - starts, np.int64)
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)


def chosen(offsets: NDArray, rows: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Some rows alone, in the order given: their offsets, and where their entries lie."""
    starts, stops = offsets[:-1][rows], offsets[1:][rows]
    return offsets_of(stops - starts), ranges(starts, stops)


def runs(keys: NDArray) -> NDArray[np.int64]:
    """Offsets of the runs of equal neighbours among keys (one line each, if there are several columns)."""
    if not len(keys):
        return np.zeros(1, np.int64)
    differ = keys[1:] != keys[:-1]
    if differ.ndim > 1:
        differ = differ.any(axis=1)
    return np.concatenate(([0], np.flatnonzero(differ) + 1, [len(keys)]))


def row_numbers(columns: Sequence[NDArray], sizes: Sequence[int], n: int) -> NDArray[np.int64]:
    """Number n rows of code columns so that equal ones have equal numbers 0, 1, ..., in lexicographic order.

    sizes: a column's codes are below this. No product of sizes is too large: what was read so far is numbered first.
    """
    limit = max(SMALL_TABLE, 2 * n)
    key, span = np.zeros(n, np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if span > 1 and span * size > limit:
            key, span = _renumbered(key, span, limit)
        key = key * size + column
        span *= max(size, 1)
    return _renumbered(key, span, limit)[0]


def _renumbered(key: NDArray[np.int64], span: int, limit: int) -> tuple[NDArray[np.int64], int]:
    """Numbers 0, 1, ... in place of keys below `span`, and how many: by a table if it is small, else by sorting."""
    if span > limit:
        distinct, number = np.unique(key, return_inverse=True)
        return number.ravel(), max(1, len(distinct))
    seen = np.zeros(span, bool)
    seen[key] = True
    place = np.cumsum(seen)
    return place[key] - 1, max(1, int(place[-1]))
