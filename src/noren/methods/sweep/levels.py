"""Level vectors of SWEEP: in which order quasi-identifiers are generalised, and what a vector groups together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.schema.hierarchy import Hierarchy

if TYPE_CHECKING:
    from noren.methods.sweep.kernels import Vectors

MOST_VECTORS = 1_000_000
PACKED_VALUES = 2_048
"""Quasi-identifiers are combined into one column as long as it has at most so many values."""
PACKED_TABLE = 1 << 20
FIRST_WORD, NEXT_WORD = 1 << 62, 1 << 31


def level_vectors(hierarchies: Sequence[Hierarchy]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Average information and heights of every vector, in the order of the sweep.

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


@dataclass(frozen=True)
class LevelGroups:
    """Which groups a vector makes, as the kernel reads it: see `noren.methods.sweep.kernels.Vectors`.

    Neighbouring quasi-identifiers of few values are combined to one column, for which one table look-up does.
    """

    packs: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    table: NDArray[np.int64]
    offset: NDArray[np.int64]
    stride: NDArray[np.int64]
    word: NDArray[np.int64]
    space: NDArray[np.int64]

    def packed(self, codes: Sequence[NDArray]) -> NDArray[np.int32]:
        """(columns, n): the combined codes of the quasi-identifiers."""
        out = np.zeros((len(self.packs), len(codes[0])), np.int32)
        for p, pack in enumerate(self.packs):
            for i in pack:
                out[p] = out[p] * self.sizes[i] + codes[i]
        return out

    def vectors(self, which: slice) -> Vectors:
        """Some of the vectors."""
        from noren.methods.sweep.kernels import Vectors

        return Vectors(self.table, self.offset[which], self.stride[which], self.word, self.space[which])

    @property
    def radix(self) -> list[int]:
        """How many values every combined column may have."""
        return [prod(self.sizes[i] for i in pack) for pack in self.packs]


def level_groups(hierarchies: Sequence[Hierarchy], vectors: NDArray[np.int64]) -> LevelGroups:
    """Tables for all vectors."""
    sizes = [len(tree.leaves) for tree in hierarchies]
    levels = [[tree.groups(h)[1] for h in range(tree.height + 1)] for tree in hierarchies]
    packs = _packs(sizes, [len(level) for level in levels])
    tables: list[NDArray[np.int64]] = []
    offset = np.empty((len(vectors), len(packs)), np.int64)
    radix = np.empty((len(vectors), len(packs)), np.int64)
    filled = 0
    for p, pack in enumerate(packs):
        shape = [len(levels[i]) for i in pack]
        size = prod(sizes[i] for i in pack)
        which = np.ravel_multi_index([vectors[:, i] for i in pack], shape)
        offset[:, p] = filled + which * size
        radices = []
        for heights in np.ndindex(*shape):
            group = np.zeros(1, np.int64)
            count = 1
            for i, h in zip(pack, heights, strict=True):
                width = int(levels[i][h].max()) + 1
                group = (group[:, None] * width + levels[i][h]).ravel()
                count *= width
            tables.append(group)
            radices.append(count)
        radix[:, p] = np.array(radices)[which]
        filled += size * len(radices)
    word = _words([prod(sizes[i] for i in pack) for pack in packs])
    stride, space = _strides(radix, word)
    stride[radix == 1] = 0
    return LevelGroups(tuple(packs), tuple(sizes), np.concatenate(tables), offset, stride, word, space)


def _packs(sizes: Sequence[int], levels: Sequence[int]) -> list[tuple[int, ...]]:
    packs: list[list[int]] = []
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        for pack in packs:
            together = [*pack, i]
            values = prod(sizes[j] for j in together)
            if values <= PACKED_VALUES and values * prod(levels[j] for j in together) <= PACKED_TABLE:
                pack.append(i)
                break
        else:
            packs.append([i])
    return [tuple(pack) for pack in packs]


def _words(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Which 64-bit key each column goes into, so that no key overflows."""
    word, number, product = [], 0, 1
    for size in sizes:
        if product * size > (FIRST_WORD if number == 0 else NEXT_WORD) and product > 1:
            number, product = number + 1, 1
        product *= size
        word.append(number)
    return np.array(word, np.int64)


def _strides(radix: NDArray[np.int64], word: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every row of radix (number of groups per column): strides of the columns, and combinations per word."""
    stride = np.empty_like(radix)
    space = np.ones((len(radix), int(word.max()) + 1), np.int64)
    for p in range(radix.shape[1]):
        stride[:, p] = space[:, word[p]]
        space[:, word[p]] *= radix[:, p]
    return stride, space
