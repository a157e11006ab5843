"""Estimates between hard bounds as their formulas say them: every record against every base cell, every table tried.

Slow on purpose. A column is published as values, as sets of values under nodes, as group numbers with histograms, or
drawn: then the dense likelihood of every record is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from math import log, prod

import numpy as np


@dataclass(frozen=True)
class Column:
    """cells[i] is the set of values record i may have, or with `groups` its group's number.

    With `drawn`, drawn[i][v] = P(cell of record i | v), and cells[i] are the values with a positive one.
    """

    d: int
    cells: list
    reported: list[int]
    groups: dict[int, dict[int, int]] | None = None
    weights: list[float] | None = None
    drawn: list[list[float]] | None = None

    def share(self, i: int) -> dict[int, float]:
        """How spreading divides record i."""
        if self.groups is not None:
            held = self.groups[self.cells[i]]
            return {v: count / sum(held.values()) for v, count in held.items()}
        weights = self.weights or [1.0] * self.d
        if self.drawn is not None:
            weights = [weight * chance for weight, chance in zip(weights, self.drawn[i], strict=True)]
        total = sum(weights[v] for v in self.cells[i])
        return {v: weights[v] / total if total else 1 / len(self.cells[i]) for v in self.cells[i]}

    def chance(self, i: int) -> dict[int, float]:
        """P(cell of record i | value), up to a factor."""
        if self.drawn is not None:
            return {v: self.drawn[i][v] for v in self.cells[i]}
        if self.groups is None:
            return dict.fromkeys(self.cells[i], 1.0)
        held = self.groups[self.cells[i]]
        return {v: count / sum(g.get(v, 0) for g in self.groups.values()) for v, count in held.items()}

    def tables(self) -> Iterator[tuple[int, ...]]:
        """Every column of true values that could have been published as this one."""
        n = len(self.cells)
        if self.groups is None:
            yield from product(*self.cells)
            return
        rows = {g: [i for i in range(n) if self.cells[i] == g] for g in self.groups}
        fills = [
            sorted(set(permutations([v for v, count in held.items() for _ in range(count)], len(rows[g]))))
            for g, held in self.groups.items()
        ]
        for choice in product(*fills):
            values = [0] * n
            for g, fill in zip(self.groups, choice, strict=True):
                for i, v in zip(rows[g], fill, strict=True):
                    values[i] = v
            yield tuple(values)


def shape_of(columns: list[Column]) -> list[int]:
    return [column.d for column in columns]


def report(columns: list[Column], table: np.ndarray) -> np.ndarray:
    """Sum base cells into reported ones."""
    out = np.zeros([max([*column.reported, 0]) + 1 for column in columns])
    for cell in product(*map(range, shape_of(columns))):
        place = tuple(column.reported[v] for column, v in zip(columns, cell, strict=True))
        if min(place) >= 0:
            out[place] += table[cell]
    return out


def spread(columns: list[Column]) -> np.ndarray:
    out = np.zeros(shape_of(columns))
    for i in range(len(columns[0].cells)):
        for combination in product(*(column.share(i).items() for column in columns)):
            out[tuple(v for v, _ in combination)] += prod(share for _, share in combination)
    return out


def region(columns: list[Column], i: int) -> dict[tuple[int, ...], float]:
    """L_i(c) wherever it is positive."""
    return {
        tuple(v for v, _ in combination): prod(chance for _, chance in combination)
        for combination in product(*(column.chance(i).items() for column in columns))
    }


def em_step(columns: list[Column], x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    for i in range(len(columns[0].cells)):
        mass = {cell: x[cell] * likelihood for cell, likelihood in region(columns, i).items()}
        for cell, share in mass.items():
            out[cell] += share / sum(mass.values())
    return out


def together(columns: list[Column], margins: list[np.ndarray], steps: int) -> np.ndarray:
    """EM steps on the table of reported groups, from independence.

    Inside a group, values stand in the proportions of their column's margin; what is not counted is one more group,
    which is cut off at the end.
    """
    chances, starts = [], []
    for column, margin in zip(columns, margins, strict=True):
        size = max([*column.reported, 0]) + 1
        group = [size if g < 0 else g for g in column.reported]
        whole = np.bincount(group, margin, minlength=size + 1)
        rows = np.zeros((len(column.cells), size + 1))
        for i in range(len(column.cells)):
            for v, chance in column.chance(i).items():
                if margin[v] > 0:
                    rows[i, group[v]] += chance * margin[v] / whole[group[v]]
        chances.append(rows)
        starts.append(whole)
    x = np.ones(())
    for start in starts:
        x = np.multiply.outer(x, start)
    for _ in range(steps):
        out = np.zeros_like(x)
        for i in range(len(columns[0].cells)):
            mass = x.copy()
            for j, rows in enumerate(chances):
                mass = mass * rows[i].reshape([-1 if k == j else 1 for k in range(x.ndim)])
            out += mass / mass.sum()
        x = out
    return x[tuple(slice(-1) for _ in columns)]


def log_likelihood(columns: list[Column], x: np.ndarray) -> float:
    return sum(
        log(sum(x[cell] * likelihood for cell, likelihood in region(columns, i).items()))
        for i in range(len(columns[0].cells))
    )


def bounds(columns: list[Column]) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest count of every reported cell over all tables that fit what is published."""
    shape = [max([*column.reported, 0]) + 1 for column in columns]
    least, most = np.full(shape, np.inf), np.zeros(shape)
    for table in product(*(list(column.tables()) for column in columns)):
        counts = np.zeros(shape)
        for record in zip(*table, strict=True):
            place = tuple(column.reported[v] for column, v in zip(columns, record, strict=True))
            if min(place) >= 0:
                counts[place] += 1
        least, most = np.minimum(least, counts), np.maximum(most, counts)
    return least, most
