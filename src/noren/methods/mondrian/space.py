"""Quasi-identifiers for the kernels of `mondrian`: codes in a suitable order, and the losses of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.schema.column import Column
from noren.schema.nodes import Tree, tree_of

if TYPE_CHECKING:
    from noren.methods.mondrian.kernels import Losses
    from noren.methods.mondrian.kernels.costs import Costs

BITS = 64


@dataclass(frozen=True)
class Space:
    """rows: one line per record, one column per quasi-identifier, then one per ranked column with missing cells."""

    rows: NDArray[np.int32]
    costs: Costs
    total: float
    """The weights together: what a dropped record costs."""


def space_of(table: Records, weights: Mapping[str, float]) -> Space:
    """Return the space; losses are the normalised certainty penalty times the column's weight."""
    from noren.methods.mondrian.kernels.costs import RANKED, SET, TREE, Costs

    names = table.quasi
    beside = [name for name in names if _is_beside(table.columns[name])]
    q, axes = len(names), len(names) + len(beside)
    trees = {name: tree_of(facts.tree) for name in names if (facts := table.columns[name]).tree is not None}
    widths = np.array([*(max(1, table.columns[name].d) for name in names), *[2] * len(beside)], np.int64)
    tallest = max([0, *(tree.height for tree in trees.values())]) + 1
    rows = np.empty((table.n, axes), np.int32)
    kinds = np.empty(axes, np.int64)
    at = np.zeros((axes, tallest, max(BITS + 1, int(widths.max()))), np.int32)
    prices = np.zeros(at.shape)
    for b, name in enumerate(names):
        facts, d, weight = table.columns[name], int(widths[b]), weights.get(name, 1.0)
        codes = table.codes[name]
        if name in trees:
            kinds[b] = TREE
            tree = trees[name]
            walk = leaf_order(tree)
            rank = np.empty(d, np.int32)
            rank[walk] = np.arange(d, dtype=np.int32)
            rows[:, b] = rank[codes]
            for h in range(tallest):
                at[b, h, :d] = tree.at[min(h, tree.height)][walk]
            prices[b, :, :d] = weight * (tree.nodes.sizes[at[b, :, :d]] - 1) / max(1, d - 1)
            continue
        rows[:, b] = codes
        if facts.domain.is_ranked:
            kinds[b] = RANKED
            places = facts.domain.line(by_rank=facts.domain.edges is not None)
            prices[b, 0, :d] = weight * np.nan_to_num(places, nan=1.0)
        else:
            kinds[b] = SET
            prices[b, 0, : BITS + 1] = weight * _set_costs(d)
    for b, name in enumerate(beside, q):
        facts = table.columns[name]
        lacks = table.codes[name] == facts.domain.missing_code
        present = table.codes[name][~lacks]
        rows[lacks, names.index(name)] = int(np.median(present)) if len(present) else 0
        rows[:, b] = lacks
        kinds[b] = SET
        prices[b, 0, : BITS + 1] = weights.get(name, 1.0) / facts.d * _set_costs(2)
    total = float(sum(weights.get(name, 1.0) for name in names))
    return Space(rows, Costs(kinds, widths, np.argsort(kinds == SET, kind="stable"), at, prices), total)


def _is_beside(column: Column) -> bool:
    """Return whether missing cells are outside of the intervals of a column."""
    return column.tree is None and column.domain.is_ranked and column.domain.missing_code is not None


def leaf_order(tree: Tree) -> NDArray[np.int64]:
    """Order the leaves so that those under one node are adjacent."""
    return np.lexsort(tree.at)


def _set_costs(d: int) -> NDArray[np.float64]:
    """Return the cost of a set by its number of bits: exact up to 64 values, by linear counting beyond."""
    bits = np.arange(BITS + 1, dtype=np.float64)
    if d > BITS:
        bits[:BITS] = BITS * np.log(BITS / (BITS - bits[:BITS]))
        bits[BITS] = d
    return np.clip(bits - 1, 0, max(0, d - 1)) / max(1, d - 1)


def losses_of(rows: NDArray[np.int32], begins: NDArray[np.int64], costs: Costs) -> Losses:
    """Return what every contiguous class covers, and the loss of one of its records as the kernels compute it. Columns
    of sets have only words, others only ends."""
    from noren.methods.mondrian.kernels import Cover, Losses
    from noren.methods.mondrian.kernels.costs import RANKED, SET

    kinds, at, prices = costs.kinds, costs.at, costs.prices
    first, out = begins[:-1], np.zeros(len(begins) - 1)
    shape = (len(first), rows.shape[1])
    cover = Cover(np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.uint64))
    for b in range(rows.shape[1]):
        codes = rows[:, b]
        if kinds[b] == SET:
            bits = np.uint64(1) << (codes.astype(np.uint64) & np.uint64(BITS - 1))
            cover.word[:, b] = word = np.bitwise_or.reduceat(bits, first)
            out += prices[b, 0, np.bitwise_count(word)]
            continue
        cover.low[:, b] = low = np.minimum.reduceat(codes, first)
        cover.high[:, b] = high = np.maximum.reduceat(codes, first)
        if kinds[b] == RANKED:
            out += prices[b, 0, high] - prices[b, 0, low]
        else:
            height = (at[b][:, low] == at[b][:, high]).argmax(axis=0)
            out += prices[b, height, low]
    return Losses(cover, out)
