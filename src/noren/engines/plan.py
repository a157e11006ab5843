"""Plans: the treatment of every column, and the suppressed records.

A column without a treatment passes as it is. Several methods may each plan some columns of one release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.records import Records
from noren.schema.column import Column
from noren.schema.nodes import Nodes, Tight
from noren.statements import Design, GroupTable, TermCells


@dataclass(frozen=True)
class Pass:
    """Publish the cells exactly."""


@dataclass(frozen=True)
class Drop:
    """Do not publish the column."""


@dataclass(frozen=True)
class Draw:
    """Publish a set drawn by a design around every true value, or with `members` its shuffled members one by one."""

    design: Design
    members: bool = False


@dataclass(frozen=True)
class Change:
    """Publish one value drawn by a design, which may be another than the true one."""

    design: Design


@dataclass(frozen=True)
class Recode:
    """Publish generalised values: data[i] is the node of record i."""

    nodes: Nodes
    data: NDArray
    tight: Tight | None = None
    """What certainly occurs in every class, where classes publish the least that covers them."""


@dataclass(frozen=True)
class Group:
    """Publish groups: data[i] is the group of record i, and the table lists the values of each group."""

    table: GroupTable
    data: NDArray
    counterfeits: NDArray[np.int64] | None = None
    """How many entries of every group's table are nobody's; None for none."""


@dataclass(frozen=True)
class Average:
    """Publish means: data[i] is the class of record i, whose number is replaced by the mean of the class."""

    data: NDArray
    covered: Recode | None = None
    """What the classes cover, for measures of what was lost."""


@dataclass(frozen=True)
class Omit:
    """Publish some of every record's terms."""

    cells: TermCells


Treatment = Pass | Drop | Draw | Change | Recode | Group | Average | Omit


@dataclass(frozen=True)
class Plan:
    """The plan of a release: what is published instead of the original cells."""

    treatments: Mapping[str, Treatment] = field(default_factory=dict)
    keep: NDArray[np.bool_] | None = None
    """Which records are published; None for all."""
    notes: Sequence[str] = ()
    searches: Sequence[TermSearch] = ()
    """How good the suppression of terms is known to be, per knowledge table."""
    records: Records | None = None
    """What the method saw, if it looked at records: columns over the values that occur, hierarchies it used, codes."""
    facts: Mapping[str, int | str] = field(default_factory=dict)
    """What the release says of how it was made: the class size of a blind method, what was chosen."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """Return the columns that were decided record by record, as the method saw them."""
        return {} if self.records is None else self.records.columns

    def of(self, name: str) -> Treatment:
        return self.treatments.get(name, Pass())

    @property
    def designs(self) -> dict[str, Design]:
        """Return the design of every drawn column."""
        return {name: one.design for name, one in self.treatments.items() if isinstance(one, Draw | Change)}

    @property
    def recoded(self) -> dict[str, Recode | Group]:
        """The columns published as generalised values or groups."""
        return {name: one for name, one in self.treatments.items() if isinstance(one, Recode | Group)}

    @property
    def averaged(self) -> dict[str, Average]:
        """The columns published as means of classes."""
        return {name: one for name, one in self.treatments.items() if isinstance(one, Average)}

    @property
    def omitted(self) -> dict[str, TermCells]:
        """Return what is published of the terms of every column with suppressed terms."""
        return {name: one.cells for name, one in self.treatments.items() if isinstance(one, Omit)}

    @property
    def exploded(self) -> tuple[str, ...]:
        """The columns whose sets are published member by member."""
        return tuple(name for name, one in self.treatments.items() if isinstance(one, Draw) and one.members)

    def placed(self, rows: NDArray[np.int64], n: int) -> Plan:
        """Return the plan of some of n records as one of all: its record i is record rows[i]. Others are not
        published."""
        keep = np.zeros(n, bool)
        keep[rows] = True if self.keep is None else self.keep
        treatments = {name: _placed(one, rows, n) for name, one in self.treatments.items()}
        return replace(self, treatments=treatments, keep=None if keep.all() else keep)

    @classmethod
    def merged(cls, plans: Sequence[Plan]) -> Plan:
        """Merge plans of several methods, each for its own columns."""
        treatments: dict[str, Treatment] = {}
        keep: NDArray[np.bool_] | None = None
        for plan in plans:
            treatments |= plan.treatments
            if plan.keep is not None:
                keep = plan.keep if keep is None else keep & plan.keep
        notes = [note for plan in plans for note in plan.notes]
        searches = [search for plan in plans for search in plan.searches]
        seen = [plan.records for plan in plans if plan.records is not None]
        assert len(seen) <= 1, "a release has one method of classes"
        facts = {name: value for plan in plans for name, value in plan.facts.items()}
        return cls(treatments, keep, notes, searches, seen[0] if seen else None, facts)


def _placed(one: Treatment, rows: NDArray[np.int64], n: int) -> Treatment:
    """Return the treatment of some of n records as one of all; the entries of others are arbitrary."""

    def spread(data: NDArray) -> NDArray:
        out = np.zeros(n, data.dtype)
        out[rows] = data
        return out

    if isinstance(one, Recode | Group):
        return replace(one, data=spread(one.data))
    if isinstance(one, Average):
        covered = None if one.covered is None else replace(one.covered, data=spread(one.covered.data))
        return Average(spread(one.data), covered)
    if isinstance(one, Omit):
        empty = TermCells(one.cells.d, np.zeros(2, np.int64), one.cells.data[:0])
        place = np.full(n, len(one.cells), np.int64)
        place[rows] = np.arange(len(rows))
        return Omit(TermCells.concat([one.cells, empty]).take(place))
    return one


@dataclass(frozen=True)
class TermSearch:
    """The quality of the term suppression, group by group, for the columns of one knowledge table."""

    columns: tuple[str, ...]
    search: str
    records: NDArray[np.int64]
    """Records of every group."""
    cost: NDArray[np.float64]
    """Cost of every group, 0 to 1: the inverse weighted one (equation 2) or that of the terms' weights, as searched."""
    lower_bound: NDArray[np.float64]
    """What that cost is proven to be at least."""
    optimal: NDArray[np.bool_]
    """Whether no cheaper removal exists."""
    searched: NDArray[np.bool_]
    """Whether the group did not hold as it was."""
    entries: int
    """Terms of all published records before."""
    removed: int
    """How many of them are not published."""
    nodes: int
    seconds: float

    def among(self, groups: NDArray[np.int64], entries: int, removed: int) -> TermSearch:
        """Return the search restricted to some groups, with their numbers of terms before and after."""
        parts = {
            name: getattr(self, name)[groups] for name in ("records", "cost", "lower_bound", "optimal", "searched")
        }
        return replace(self, **parts, entries=entries, removed=removed)

    @property
    def totals(self) -> dict[str, Any]:
        """Return the overall results of the search."""
        return {
            "columns": list(self.columns),
            "search": self.search,
            "groups": len(self.cost),
            "searched": int(self.searched.sum()),
            "proven": int((self.searched & self.optimal).sum()),
            "mean_cost": self.mean_cost,
            "gap": self.gap,
            "removed": self.removed,
            "entries": self.entries,
        }

    @property
    def mean_cost(self) -> float:
        return float(self.cost.mean()) if len(self.cost) else 0.0

    @property
    def mean_cost_of_records(self) -> float:
        """Return the mean over records of the cost of their groups."""
        return float((self.cost * self.records).sum() / max(1, int(self.records.sum())))

    @property
    def gap(self) -> float:
        """Return by what share the mean cost may exceed the minimum for these groups."""
        least = float(self.lower_bound.mean()) if len(self.cost) else 0.0
        if self.mean_cost <= least:
            return 0.0
        return self.mean_cost / least - 1 if least > 0 else float("inf")

    @property
    def note(self) -> str:
        """Return one line for the holder."""
        names, many = ", ".join(self.columns), int(self.searched.sum())
        proven = int((self.optimal & self.searched).sum())
        text = (
            f"{names}: {many:,} of {len(self.cost):,} groups have suppressed terms, {self.removed:,} of "
            f"{self.entries:,} in all"
        )
        text += f"; {proven:,} of these suppressions are proven to be the cheapest"
        if proven == many:
            return text
        if self.gap == float("inf"):
            return f"{text}; it is not known how much the others exceed the minimum"
        return f"{text}; their total cost exceeds the minimum by at most {self.gap:.1%}"
