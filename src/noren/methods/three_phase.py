"""The three-phase algorithm (Xiao, Yi, Tao 2010): most quasi-identifiers exact, those of a residue generalised."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.engines import Plan, RandomOrder, Records
from noren.errors import Problem
from noren.methods.base import ClassMethod, Method
from noren.methods.curve_kernels import Listed, Stock, later_phases
from noren.methods.hilbert import Classes, Task, along_curve, eligible_caps, one_column_problems
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.ragged import offsets_of, owners, ranges, row_numbers
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule
    from noren.methods.requirements import Compiled


class ThreePhase(ClassMethod):
    """Publish groups of records with equal quasi-identifiers exactly if their secrets are diverse enough.

    Records with too frequent secrets move to a residue, which grows until it is diverse too. The records that move are
    drawn at random. Groups that fall short of another requirement join the residue as a whole. A residue that fits the
    suppression limit is dropped; then it need not grow.
    """

    name: Literal["three-phase"] = "three-phase"
    sentence: ClassVar[str] = (
        "Groups of records with equal quasi-identifiers are published exactly where their secrets differ enough; "
        "the others are combined into a residue."
    )
    first_phase: ClassVar[bool] = True
    refine: bool = Field(
        default=True,
        description=(
            "Split the residue along a Hilbert curve (TP+) instead of suppressing its quasi-identifiers as one class "
            "(TP)."
        ),
    )
    l: int | None = Field(
        default=None, ge=2, description="Secrets per group; by default the smallest number that meets the requirements."
    )

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.moves import Moves

        says = "records with a secret that is too frequent among people with equal quasi-identifiers move to a residue"
        return Moves(says, along_curve=self.refine)

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, requirements, self.suppression)
        return found + one_column_problems(self.name, requirements, least=1)

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression), cls(refine=False, suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        ranks = order(table.n)
        task = Task.of(table, requirements, self.suppression, ranks)
        entries = SecretCounts.of(task, order)
        curve = along_curve(table, ranks)

        def classes(l: int, needed: Compiled) -> Classes:
            return self._classes(task, entries, curve, l, needed)

        return task.recode(self.l, classes)

    def _classes(
        self, task: Task, entries: SecretCounts, curve: NDArray[np.int64], l: int, needed: Compiled
    ) -> Classes:
        if task.limit:
            classes = _without(task, entries.staying(first_phase(entries.bounds, entries.counts, l)[0]), needed)
            if 0 < np.count_nonzero(classes < 0) <= min(task.limit, task.table.n - 1):
                return classes, entries.groups
        kept = task.kept(l)
        counts = entries.counts if kept.all() else entries.counted(kept)
        left, _, _ = three_phase(entries.bounds, entries.values, counts, task.m, l, entries.walk, entries.group_walk)
        classes = _without(task, entries.staying(left), needed)
        residue = self._enough(task, classes, kept, needed)
        if not residue.any():
            return classes, entries.groups
        if task.fails(residue, needed):
            return classes, 0
        parts, count = task.along(curve[residue[curve]], l, needed) if self.refine else (np.zeros(len(kept), int), 1)
        return np.where(residue, parts + entries.groups, classes), count + entries.groups

    def _enough(
        self, task: Task, classes: NDArray[np.int64], kept: NDArray[np.bool_], needed: Compiled
    ) -> NDArray[np.bool_]:
        """Return the residue; if it is too small for one class, with the smallest group that suffices, otherwise all
        records."""
        residue = kept & (classes < 0)
        if not residue.any() or not task.fails(residue, needed):
            return residue
        sizes = np.bincount(classes[classes >= 0])
        helpful = np.flatnonzero(sizes >= max(1, task.size - residue.sum()))
        if len(helpful):
            more = residue | (classes == helpful[sizes[helpful].argmin()])
            if not task.fails(more, needed):
                return np.asarray(more)
        return kept


def first_phase(
    bounds: NDArray[np.int64], counts: NDArray[np.int64], l: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Move a record of a most frequent secret out of each group until it is eligible: return the remaining entries,
    sizes and heights."""
    owner, high = owners(bounds), eligible_caps(bounds, counts, l)
    left = np.minimum(counts, high[owner])
    return left, np.bincount(owner, left, minlength=len(high)).astype(np.int64), high


def three_phase(
    bounds: NDArray[np.int64],
    values: NDArray[np.int64],
    counts: NDArray[np.int64],
    m: int,
    l: int,
    walk: NDArray[np.int64],
    group_walk: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return how many records of every entry stay, and the size of the residue after each phase.

    Entries bounds[g] <= e < bounds[g + 1] of group g say that counts[e] of its records have value values[e].
    walk: the entries, value by value, in the order in which they are tried; group_walk: the same for groups.
    The table must be l-eligible. Returns (left, residue sizes after the three phases, rounds of phase 3).
    """
    left, size, high = first_phase(bounds, counts, l)
    residue = np.bincount(values, counts - left, minlength=m).astype(np.int64)
    listed = Listed(walk, offsets_of(np.bincount(values, minlength=m)), owners(bounds))
    sizes = np.zeros(3, np.int64)
    sizes[0] = residue.sum()
    return left, sizes, later_phases(Stock(bounds, values, left, size, high), listed, residue, sizes, l, group_walk)


def _without(task: Task, classes: NDArray[np.int64], needed: Compiled) -> NDArray[np.int64]:
    """Return the groups that meet the requirements; the others are dissolved."""
    failing = task.failing(classes, int(classes.max(initial=-1)) + 1, needed)
    return np.where((classes >= 0) & np.append(failing, False)[classes], -1, classes)


@dataclass(frozen=True)
class SecretCounts:
    """The counts of each secret in each group of equal quasi-identifiers, and the order in which both are tried."""

    group: NDArray[np.int64]
    """The group of every record."""
    entry: NDArray[np.int64]
    """The entry of every record."""
    within: NDArray[np.int64]
    """The place of every record in its entry, by chance: the last ones move first."""
    bounds: NDArray[np.int64]
    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    walk: NDArray[np.int64]
    group_walk: NDArray[np.int64]

    @classmethod
    def of(cls, task: Task, order: RandomOrder) -> SecretCounts:
        table = task.table
        quasi = table.quasi
        sizes = [len(table.columns[name].domain) for name in quasi]
        group = row_numbers([table.codes[name] for name in quasi], sizes, table.n)
        groups = int(group.max(initial=-1)) + 1
        keys, entry, counts = np.unique(group * task.m + task.values, return_inverse=True, return_counts=True)
        rows = np.argsort(task.ranks)
        rows = rows[np.argsort(entry[rows], kind="stable")]
        within = np.empty(table.n, np.int64)
        within[rows] = ranges(np.zeros_like(counts), counts)
        walk = order(len(keys))
        walk = walk[np.argsort(keys[walk] % task.m, kind="stable")]
        bounds = np.searchsorted(keys, np.arange(groups + 1) * task.m)
        return cls(group, entry, within, bounds, keys % task.m, counts, walk, order(groups))

    @property
    def groups(self) -> int:
        return len(self.bounds) - 1

    def staying(self, left: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the group of every record that stays in it, -1 for the others."""
        return np.where(self.within < left[self.entry], self.group, -1)

    def counted(self, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the entries of some records only: of every entry the first ones."""
        return np.bincount(self.entry[kept], minlength=len(self.counts))
