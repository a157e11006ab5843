"""Level vectors of SWEEP: the order in which quasi-identifiers are generalised, and the groups of each vector.

Also the items that are grouped: an item is one combination of quasi-identifier values, an entry one sensitive
combination of an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np
from numpy.typing import NDArray

from noren.methods.sweep.kernels.passes import Closings, Vectors
from noren.methods.sweep.kernels.select import OpenEntries, Queue, Room, Sensitive
from noren.ragged import first_of, in_order, offsets_of, ranges, row_numbers, runs
from noren.schema.hierarchy import Hierarchy

MOST_VECTORS = 1_000_000
FIRST_WORD, NEXT_WORD = 1 << 62, 1 << 31


def level_vectors(hierarchies: Sequence[Hierarchy]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the average information and the heights of every vector, in the order of the sweep.

    A level's information is the mean of 1 / leaves over its nodes, weighted by leaves: nodes / leaves of the tree.
    Vectors of more information come first; of equal ones those that keep the first attributes more precise.
    """
    counts = [[len(set(level)) for level in tree.levels] for tree in hierarchies]
    leaves = [len(tree.leaves) for tree in hierarchies]
    heights = np.indices([len(c) for c in counts]).reshape(len(counts), -1)
    common = lcm(*leaves)
    if common * len(leaves) < 2**62:
        parts = [np.array(c, np.int64) * (common // size) for c, size in zip(counts, leaves, strict=True)]
        summed = sum(part[h] for part, h in zip(parts, heights, strict=True))
        average = np.asarray(summed, np.float64) / (common * len(leaves))
    else:
        shares = [np.array(c) / size for c, size in zip(counts, leaves, strict=True)]
        average = np.asarray(sum(share[h] for share, h in zip(shares, heights, strict=True))) / len(leaves)
        summed = np.round(average, 12)
    order = np.lexsort([*heights[::-1], -np.asarray(summed)])
    return average[order], heights.T[order]


def level_groups(hierarchies: Sequence[Hierarchy], vectors: NDArray[np.int64]) -> Vectors:
    """Return the groups of the vectors in the form of the kernel."""
    tables: list[NDArray[np.int64]] = []
    offset, radix = np.empty_like(vectors), np.empty_like(vectors)
    filled = 0
    for p, tree in enumerate(hierarchies):
        levels = [tree.groups(h)[1] for h in range(tree.height + 1)]
        offset[:, p] = filled + vectors[:, p] * len(tree.leaves)
        radix[:, p] = np.array([level.max() + 1 for level in levels])[vectors[:, p]]
        tables += levels
        filled += len(levels) * len(tree.leaves)
    word = _words([len(tree.leaves) for tree in hierarchies])
    stride, space = _strides(radix, word)
    stride[radix == 1] = 0
    return Vectors(np.concatenate(tables), offset, stride, word, space)


def _words(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return the 64-bit key of each column, so that no key overflows."""
    word, number, product = [], 0, 1
    for size in sizes:
        if product * size > (FIRST_WORD if number == 0 else NEXT_WORD) and product > 1:
            number, product = number + 1, 1
        product *= size
        word.append(number)
    return np.array(word, np.int64)


def _strides(radix: NDArray[np.int64], word: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for every row of radix (number of groups per column) the strides of the columns, and the combinations per
    word."""
    stride = np.empty_like(radix)
    space = np.ones((len(radix), int(word.max()) + 1), np.int64)
    for p in range(radix.shape[1]):
        stride[:, p] = space[:, word[p]]
        space[:, word[p]] *= radix[:, p]
    return stride, space


# ---------------------------------------------------------------- items and entries


def number_items(codes: NDArray[np.int32], sizes: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Number every record's combination codes[:, i] in order of appearance, and return how many there are.

    sizes: the codes of a column are below this.
    """
    number = row_numbers(list(codes), sizes, codes.shape[1])
    first = first_of(number)
    place = np.empty(len(first), np.int64)
    place[in_order(first)] = np.arange(len(first))
    return place[number], len(first)


def list_entries(
    rows: NDArray[np.int64], item: NDArray, code: NDArray[np.int64], items: int, codes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], OpenEntries]:
    """Return the rows sorted by item and code, stable; the offsets of the entries; and the entries."""
    key = item[rows].astype(np.int64) * codes + code[rows]
    order = in_order(key)
    rows, begin = rows[order], runs(key[order])
    one = rows[begin[:-1]]
    start = offsets_of(np.bincount(item[one], minlength=items))
    return rows, begin, OpenEntries(start, code[one].astype(np.int32), np.diff(begin))


def room_for(
    entries: OpenEntries, combined: NDArray[np.int64], sensitive: Sensitive, limit: int
) -> tuple[Room | None, Queue | None]:
    """Allocate working memory for generalised secrets, a limit, or several sensitive columns."""
    values, joint = int(sensitive.first[-1]), combined.shape[1] > 1
    if not joint and limit < 0 and entries.code.max(initial=-1) < values:
        return None, None
    most = max(len(combined), values)
    nodes = np.zeros(len(sensitive.member_start) - 1, np.int64)
    room = Room(np.zeros(values), np.empty(most, np.int64), np.empty(values), nodes)
    heads, follower = np.empty((3, len(combined)), np.int64), np.empty(len(entries.code), np.int64)
    return room, Queue(heads, follower) if joint else None


def classes_of_rows(rows: NDArray[np.int64], begin: NDArray[np.int64], closed: Closings, n: int) -> NDArray[np.int32]:
    """Return the class of every record, -1 for open ones: the first rows of every entry."""
    order = in_order(closed.entry)
    entry, count = closed.entry[order], closed.count[order].astype(np.int64)
    ahead = offsets_of(count)[:-1]
    same = runs(entry)
    ahead -= np.repeat(ahead[same[:-1]], np.diff(same))
    stops = begin[entry + 1] - ahead
    out = np.full(n, -1, np.int32)
    out[rows[ranges(stops - count, stops)]] = np.repeat(closed.number[order], count)
    return out
