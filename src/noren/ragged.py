"""Lists of different lengths in one array: row i has the entries offsets[i]:offsets[i + 1].

Everything here is NumPy on whole arrays and imports nothing of noren, so every room may use it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SMALL_TABLE = 1 << 20
"""Keys below this are numbered by a table, however few rows there are."""
FEW = 1_000
"""Keys that are sorted as they are."""


def offsets_of(lengths: Sequence[int] | NDArray) -> NDArray[np.int64]:
    """Return the offsets of rows of these lengths: 0, lengths[0], lengths[0] + lengths[1], ..."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def owners(offsets: NDArray) -> NDArray[np.int64]:
    """Return the row of every entry."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def ranges(starts: NDArray, stops: NDArray) -> NDArray[np.int64]:
    """Return starts[0], ..., stops[0] - 1, starts[1], ..., stops[1] - 1, and so on."""
    lengths = np.asarray(stops - starts, np.int64)
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)


def chosen(offsets: NDArray, rows: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Select rows in the given order: return their offsets, and the positions of their entries."""
    starts, stops = offsets[:-1][rows], offsets[1:][rows]
    return offsets_of(stops - starts), ranges(starts, stops)


def runs(keys: NDArray) -> NDArray[np.int64]:
    """Return the offsets of the runs of equal neighbours among keys (one line each, if there are several columns)."""
    if not len(keys):
        return np.zeros(1, np.int64)
    differ = keys[1:] != keys[:-1]
    if differ.ndim > 1:
        differ = differ.any(axis=1)
    return np.concatenate(([0], np.flatnonzero(differ) + 1, [len(keys)]))


def in_order(keys: NDArray) -> NDArray[np.int64]:
    """Return the stable ascending order of the keys (whole numbers).

    The place is put behind the key where both fit into one number: sorting numbers is far quicker than sorting places.
    """
    n = len(keys)
    least = int(keys.min(initial=0)) if keys.dtype.kind == "i" else 0
    bits = max(1, n - 1).bit_length()
    if n < FEW or (int(keys.max()) - least) >> (63 - bits):
        return np.argsort(keys, kind="stable").astype(np.int64, copy=False)
    both = ((keys.astype(np.int64) - least) << bits) | np.arange(n)
    both.sort()
    both &= (1 << bits) - 1
    return both


def distinct_of(keys: NDArray) -> tuple[NDArray, NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct keys (whole numbers) in ascending order, the first position of each, and the number of every
    key."""
    order = in_order(keys)
    bounds = runs(keys[order])
    first = order[bounds[:-1]]
    number = np.empty(len(keys), np.int64)
    number[order] = owners(bounds)
    return keys[first], first, number


def different(keys: NDArray) -> NDArray:
    """Return the distinct keys in ascending order, by sorting, which is faster than hashing for many numbers."""
    ordered = np.sort(keys)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def among(keys: NDArray, wanted: NDArray) -> NDArray[np.bool_]:
    """Return which keys are among the wanted ones; fastest if the keys ascend."""
    known = np.sort(wanted)
    if not len(known):
        return np.zeros(len(keys), np.bool_)
    place = np.searchsorted(known, keys)
    return np.asarray(known[np.minimum(place, len(known) - 1)] == keys)


def numbered_sets(offsets: NDArray[np.int64], data: NDArray) -> NDArray[np.int64]:
    """Number the lists data[offsets[i]:offsets[i + 1]] from 0, equal lists equally."""
    sizes = np.diff(offsets)
    out = np.zeros(len(sizes), np.int64)
    width, taken = int(data.max(initial=0)) + 1, 1
    for place in range(int(sizes.max(initial=0))):
        longer = np.flatnonzero(sizes > place)
        key = out[longer] * width + data[offsets[longer] + place]
        distinct, _, number = distinct_of(key)
        out[longer] = taken + number
        taken += len(distinct)
    return distinct_of(out)[2]


def first_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first position of each of the numbers 0, 1, ..., all of which occur."""
    out = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    out[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)  # of several the last one stays
    return out


def row_numbers(columns: Sequence[NDArray], sizes: Sequence[int], n: int) -> NDArray[np.int64]:
    """Number n rows of code columns so that equal ones have equal numbers 0, 1, ..., in lexicographic order.

    sizes: a column's codes are below this. No product of sizes is too large: what was read so far is numbered first.
    """
    return _renumbered(*_row_keys(columns, sizes, n))[0]


def rows_in_order(columns: Sequence[NDArray], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lexicographic order of n rows of whole numbers, stable, and the offsets of the runs of equal rows."""
    least = [int(column.min(initial=0)) for column in columns]
    shifted = [column.astype(np.int64) - low if low else column for column, low in zip(columns, least, strict=True)]
    key = _row_keys(shifted, [int(column.max(initial=0)) + 1 for column in shifted], n)[0]
    order = in_order(key)
    return order, runs(key[order]) if columns else np.array([0, n])


def _row_keys(columns: Sequence[NDArray], sizes: Sequence[int], n: int) -> tuple[NDArray[np.int64], int, int]:
    """Return numbers with the same order as the rows, their upper limit, and the largest size of a lookup table."""
    limit = max(SMALL_TABLE, 2 * n)
    room = 1 << (63 - max(1, n - 1).bit_length())  # keys up to here are sorted together with their places
    key, span = np.zeros(n, np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if span > 1 and span * size > (limit if span <= limit else room):
            key, span = _renumbered(key, span, limit)
        key *= size
        key += column
        span *= max(size, 1)
    return key, span, limit


def _renumbered(key: NDArray[np.int64], span: int, limit: int) -> tuple[NDArray[np.int64], int]:
    """Return numbers 0, 1, ... in place of keys below `span`, and how many: by a table if it is small, otherwise by
    sorting."""
    if span > limit:
        distinct, _, number = distinct_of(key)
        return number, max(1, len(distinct))
    seen = np.zeros(span, bool)
    seen[key] = True
    place = np.cumsum(seen)
    return place[key] - 1, max(1, int(place[-1]))
