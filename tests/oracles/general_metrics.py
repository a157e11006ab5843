"""Slow, obvious twins of the metrics of generalised releases: one record at a time, from the formulas."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from noren.engines import Group, Plan, Recode, Records
from noren.metrics.general import GeneralTable, view_of
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import GroupTable


@dataclass(frozen=True)
class PlainColumn:
    """A column as lists: the true value of every record, and the multiset of values its cell leaves open."""

    quasi: bool
    d: int
    truth: list[int]
    cells: list[tuple[int, ...]]
    """Values under the node, or all values of the group, as often as the group holds them."""
    group: list[int] | None = None
    """The group that every record names, for an anatomised column."""
    numbers: list[float] | None = None
    """For a numeric column that publishes intervals."""


def information(columns: list[PlainColumn], keep: list[bool]) -> float:
    return sum(1 / len(set(cell)) for column in columns for cell, kept in zip(column.cells, keep, strict=True) if kept)


def ncp(columns: list[PlainColumn], keep: list[bool]) -> float:
    lost = []
    for column in columns:
        for cell, kept in zip(column.cells, keep, strict=True):
            if not kept:
                lost.append(1.0)
            elif column.numbers is not None:
                inside = [column.numbers[v] for v in cell]
                lost.append((max(inside) - min(inside)) / (max(column.numbers) - min(column.numbers)))
            else:
                lost.append((len(set(cell)) - 1) / (column.d - 1) if column.d > 1 else 0.0)
    return sum(lost) / len(lost)


def granularity(columns: list[PlainColumn], keep: list[bool]) -> float:
    scores = [
        (1 - (len(set(cell)) - 1) / (column.d - 1) if column.d > 1 else 1.0) if kept else 0.0
        for column in columns
        for cell, kept in zip(column.cells, keep, strict=True)
    ]
    return sum(scores) / len(scores)


def non_uniform_entropy(columns: list[PlainColumn], keep: list[bool]) -> float:
    lost = whole = 0.0
    for column in columns:
        counts = Counter(column.truth)
        n = len(column.truth)
        for value, cell, kept in zip(column.truth, column.cells, keep, strict=True):
            most = log2(n / counts[value])
            whole += most
            if not kept:
                lost += most
            elif column.group is not None:
                lost += log2(len(cell) / cell.count(value))
            else:
                lost += log2(sum(counts[v] for v in cell) / counts[value])
    return lost / whole if whole > 1e-12 else 0.0


def class_sizes(columns: list[PlainColumn], keep: list[bool]) -> list[int]:
    """Sizes of the classes of equal published quasi-identifiers, ascending."""
    rows = zip(*(column.group or column.cells for column in columns if column.quasi), strict=True)
    return sorted(Counter(row for row, kept in zip(rows, keep, strict=True) if kept).values())


def psi(k: int, tau: float, l: int) -> float:
    return tau + (1 - tau) * (k - 1) / (l - 1) if k <= l else 1.0


def excess(cells: list[tuple[int, ...]], values: list[int], tau: float, l: int) -> float | None:
    """Definition 35 for one class, or None if it breaks (tau, l). `values` are the base values that occur."""
    share = dict.fromkeys(values, 0.0)
    for cell in cells:
        inside = [v for v in cell if v in share]
        for v in inside:
            share[v] += 1 / len(inside) / len(cells)
    ranked = sorted(share.values(), reverse=True)
    total = 0.0
    for k in range(1, len(ranked) + 1):
        reached = sum(ranked[:k])
        if reached > psi(k, tau, l) + 1e-9:
            return None
        total += abs(psi(k, tau, l) - reached)
    return total


def estimated_count(columns: list[PlainColumn], keep: list[bool], asked: list[set[int] | None]) -> float:
    """fcount: product over the conditions of the share of a cell that lies in what is asked for."""
    total = 0.0
    for i in (i for i, kept in enumerate(keep) if kept):
        weight = 1.0
        for column, wanted in zip(columns, asked, strict=True):
            if wanted is not None:
                cell = column.cells[i]
                weight *= sum(v in wanted for v in cell) / len(cell)
        total += weight
    return total


def true_count(columns: list[PlainColumn], asked: list[set[int] | None]) -> int:
    return sum(
        all(wanted is None or column.truth[i] in wanted for column, wanted in zip(columns, asked, strict=True))
        for i in range(len(columns[0].truth))
    )


def general_table(
    roles: Mapping[str, Role],
    domains: Mapping[str, Domain],
    codes: Mapping[str, NDArray],
    recoded: Mapping[str, tuple[Nodes | GroupTable, NDArray]],
    keep: NDArray[np.bool_] | None = None,
) -> GeneralTable:
    """The view of a table made by hand: true codes, and (nodes or groups, cell per record) where recoded."""
    n = len(next(iter(codes.values())))
    columns = {name: Column(role=roles[name]).over(name, domains[name]) for name in codes}
    changes = {
        name: Recode(what, data) if isinstance(what, Nodes) else Group(what, data)
        for name, (what, data) in recoded.items()
    }
    return view_of(Records(n, columns, codes), Plan(changes, keep))
