"""The common view of a generalised or grouped release for the metrics.

A column of the view keeps the true codes beside what was published: a node (somewhere under this generalised value), a
group (one of this group's values, with their counts), or the value itself. The truth is here, so a view never leaves
the holder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noren.engines import Group, Plan, Recode, Records
from noren.engines.records import WithRoles
from noren.errors import QueryError, list_columns
from noren.ragged import row_numbers
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import GroupTable


@dataclass(frozen=True)
class GeneralColumn:
    """One column of all original records: true values, and what a plan publishes instead."""

    column: Column
    truth: NDArray
    """(n,) base codes of all original records, kept and dropped."""
    change: Recode | Group | None = None
    """The node or group of every record; None if the column is published as it is. Dropped records hold anything."""

    @property
    def name(self) -> str:
        return self.column.name

    @cached_property
    def role(self) -> Role:
        return self.column.role

    @cached_property
    def domain(self) -> Domain:
        return self.column.domain

    @property
    def nodes(self) -> Nodes | None:
        """Return the generalised values, if the column has them."""
        return self.change.nodes if isinstance(self.change, Recode) else None

    @property
    def groups(self) -> GroupTable | None:
        """Return the contents of the groups, if the column has groups."""
        return self.change.table if isinstance(self.change, Group) else None

    @property
    def kinds(self) -> int:
        """Return how many different cells the column may publish."""
        if self.nodes is not None:
            return len(self.nodes)
        return len(self.domain) if self.groups is None else self.groups.groups

    @property
    def cells(self) -> NDArray:
        """Return the number of every record's published cell: its node, its group or its value."""
        return self.truth if self.change is None else self.change.data

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Return how often every base value occurs in the original."""
        return np.bincount(self.truth, minlength=len(self.domain))

    @cached_property
    def spread(self) -> NDArray[np.int64]:
        """Return how many base values every kind of cell leaves possible."""
        if self.nodes is not None:
            return self.nodes.sizes
        if self.groups is not None:
            return np.diff(self.groups.bounds)
        return np.ones(len(self.domain), np.int64)

    @cached_property
    def belongs_to_tree(self) -> bool:
        """Return whether the nodes are those of a hierarchy: their first d are the base values, as `tree_of` numbers
        them."""
        if self.nodes is None:
            return False
        base = np.arange(self.nodes.d)
        same = node_totals(self.nodes, base)[: len(base)]
        return len(self.nodes) >= len(base) and bool(((same == base) & (self.nodes.sizes[: len(base)] == 1)).all())

    def overlap(self, chosen: ArrayLike) -> NDArray[np.float64]:
        """Return which share of every kind of cell is in a set of base values: (d,) or (sets, d) weights 0 to 1.

        The values under a node count alike, those of a group by their published counts.
        """
        wanted = np.asarray(chosen, np.float64)
        if self.nodes is not None:
            return node_totals(self.nodes, wanted) / self.nodes.sizes
        if self.groups is not None:
            table = self.groups
            below = _running(wanted[..., table.value] * table.count)
            return np.asarray(
                (below[..., table.bounds[1:]] - below[..., table.bounds[:-1]]) / np.maximum(table.sizes, 1)
            )
        return wanted


@dataclass(frozen=True)
class GeneralTable(WithRoles):
    """All original records and what was published of them."""

    columns: Mapping[str, GeneralColumn]
    keep: NDArray[np.bool_]
    """(n,) which records are published."""

    def __post_init__(self) -> None:
        for column in self.columns.values():
            if len(column.truth) != self.n or len(column.cells) != self.n:
                raise ValueError(f"column {column.name!r} does not have {self.n} records")
        if not self.n:
            raise ValueError("a table without records has no metrics")

    @property
    def n(self) -> int:
        """Return the number of original records."""
        return len(self.keep)

    @cached_property
    def dropped(self) -> int:
        return int(self.n - self.keep.sum())

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """Return quasi-identifiers and sensitive columns, which the metrics measure. Plain columns have no loss."""
        return tuple(name for name in self.columns if name in self.quasi or name in self.sensitive)

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """Return the equivalence class of every published record."""
        rows = [self.columns[name].cells[self.keep] for name in self.quasi]
        return row_numbers(rows, [self.columns[name].kinds for name in self.quasi], int(self.keep.sum()))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of records of every class."""
        return np.bincount(self.classes) if len(self.classes) else np.zeros(0, np.int64)

    def column(self, name: str) -> GeneralColumn:
        if name not in self.columns:
            raise QueryError(f"there is no column {name!r}.", hint=f"It has {list_columns(self.columns)}.")
        return self.columns[name]

    def quasi_columns(self) -> list[GeneralColumn]:
        """Return the quasi-identifiers, at least one."""
        if not self.quasi:
            raise QueryError(
                "the table has no quasi-identifier, so their loss cannot be measured.",
                hint="Give a column that role in the policy.",
            )
        return [self.columns[name] for name in self.quasi]


def view_of(records: Records, plan: Plan) -> GeneralTable:
    """Return the records that a method saw, with its decisions. For the holder only."""
    means = {name: one.covered for name, one in plan.averaged.items() if one.covered is not None}
    recoded = plan.recoded | means
    columns = {n: GeneralColumn(column, records.codes[n], recoded.get(n)) for n, column in records.columns.items()}
    return GeneralTable(columns, np.ones(records.n, bool) if plan.keep is None else plan.keep)


def node_totals(nodes: Nodes, weights: NDArray) -> NDArray:
    """Return the sum of the weights (d,) or (sets, d) of the base values under every node."""
    below = _running(weights)
    return np.add.reduceat(below[..., nodes.stops] - below[..., nodes.starts], nodes.bounds[:-1], axis=-1)


def _running(weights: NDArray) -> NDArray:
    """Return sums of the first 0, 1, ... weights along the last axis."""
    start = np.zeros((*weights.shape[:-1], 1), weights.dtype)
    return np.concatenate([start, np.cumsum(weights, axis=-1)], axis=-1)
