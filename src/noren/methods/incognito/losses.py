"""What a level vector costs. Every loss is a sum over cells or a function of the classes, and a dropped record pays.

granularity     (leaves under the node - 1) / (leaves of the hierarchy - 1); a dropped cell counts 1
ncp             the same, but (high - low) / range for numbers
entropy         log(records under the node / records of the value), over the column's entropy; dropped as the root
height          levels climbed over all levels; dropped as the root; granularity (a millionth of it) breaks ties
discernibility  sum over classes of size squared; a dropped record counts n
class-size      records per published class

The first four are weighted means over quasi-identifiers and need only how often each value occurs: without dropped
records they are known before any class is formed, and with them they are a lower bound. No loss falls when a column
becomes more general and nobody is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from noren.schema.column import Column
from noren.schema.nodes import Tree

Loss = Literal["granularity", "ncp", "entropy", "height", "discernibility", "class-size"]
LOSSES: tuple[str, ...] = get_args(Loss)
TIES = 1e-6
"""The part of granularity in the loss by height."""
OF_CLASSES: tuple[str, ...] = ("discernibility", "class-size")
"""Losses that depend on the sizes of classes, and on no column more than another."""


@dataclass(frozen=True)
class CellLosses:
    """cost[h, leaf]: what a cell costs at height h. penalty[h, leaf]: what dropping its record adds."""

    cost: NDArray[np.float64]
    penalty: NDArray[np.float64]


def cell_losses(
    loss: str,
    facts: Sequence[Column],
    trees: Sequence[Tree],
    counts: Sequence[NDArray],
    weights: Mapping[str, float],
) -> list[CellLosses]:
    """The share of every column in the loss of a record. Losses of classes are ordered by granularity."""
    given = np.array([weights.get(column.name, 1.0) for column in facts])
    if loss == "height":
        climbs = given * [tree.height for tree in trees]
        levels = _weighted(climbs / climbs.sum(), "height", facts, trees, counts)
        ties = _weighted(TIES * given / given.sum(), "granularity", facts, trees, counts)
        return [CellLosses(a.cost + b.cost, a.penalty + b.penalty) for a, b in zip(levels, ties, strict=True)]
    return _weighted(given / given.sum(), loss, facts, trees, counts)


def _weighted(
    shares: NDArray[np.float64],
    loss: str,
    facts: Sequence[Column],
    trees: Sequence[Tree],
    counts: Sequence[NDArray],
) -> list[CellLosses]:
    tables = [_column(loss, *column) for column in zip(facts, trees, counts, strict=True)]
    return [CellLosses(w * cost, w * penalty) for w, (cost, penalty) in zip(shares.tolist(), tables, strict=True)]


def _column(loss: str, facts: Column, tree: Tree, counts: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    at, d = tree.at, tree.at.shape[1]
    if loss == "entropy":
        return _entropy(at, counts)
    if loss == "height":
        cost = np.repeat(np.arange(len(at))[:, None] / tree.height, d, axis=1)
    elif loss == "ncp" and (spread := _spread(facts, tree)) is not None:
        cost = spread[at]
    else:
        cost = (tree.nodes.sizes[at] - 1) / max(1, d - 1)
    return cost, 1 - cost


def _spread(facts: Column, tree: Tree) -> NDArray[np.float64] | None:
    """Width of every node of a numeric column as a share of the column's."""
    if not facts.domain.is_ranked or (facts.domain.numbers is None and facts.domain.kind == "string"):
        return None
    numbers = facts.domain.line()
    flat, bounds = tree.nodes.flat_members()
    low = np.fmin.reduceat(numbers[flat], bounds[:-1])
    high = np.fmax.reduceat(numbers[flat], bounds[:-1])
    return np.nan_to_num(high - low)


def _entropy(at: NDArray[np.int64], counts: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n = counts.sum()
    under = np.stack([np.bincount(level, counts)[level] for level in at])
    logs = np.log(np.maximum(under, 1))
    whole = float((counts * (np.log(n) - logs[0])).sum() / n)
    scale = 1 / whole if whole > 0 else 0.0
    return (logs - logs[0]) * scale, (np.log(n) - logs) * scale
