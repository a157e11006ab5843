"""Microaggregation: groups of at least k similar records; numbers are published as the group's mean.

Multivariate (MDAV): all quasi-identifiers make the groups, so whoever knows a person's quasi-identifiers finds at least
k records. Univariate (`each`): every column of numbers is grouped on its own, with the least sum of squares. That
changes the numbers least and protects each column alone: two columns together may still single a person out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.engines import Average, Plan, RandomOrder, Records, Treatment
from noren.errors import Problem, RequirementNotMet
from noren.methods.base import ClassMethod
from noren.methods.cover import cover
from noren.methods.curve_kernels import best_line_groups
from noren.methods.hilbert import along_curve
from noren.methods.requirements import demand_reachable
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.column import Column
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule
    from noren.methods.requirements import Compiled

PACKED = 0.9
"""Share of records without a group at which the others are no longer looked at."""


class Microaggregation(ClassMethod):
    """Group k to 2k - 1 similar records (MDAV); publish numbers as means, other columns as values that cover the group.

    Numbers and dates are compared by size, in standard deviations; categories by how far up their hierarchy they meet,
    without one by equality, and two that have nothing in common are as far apart as two random numbers. Groups that
    miss a requirement beyond k join the nearest until all hold.
    """

    name: Literal["microaggregation"] = "microaggregation"
    sentence: ClassVar[str] = "Similar records are grouped, and numbers are published as the mean of the group."
    each: bool = Field(
        default=False,
        description="Group every column of numbers separately. This protects single columns, not their combination.",
    )
    block: int = Field(
        default=20_000,
        ge=100,
        description="Largest number of records grouped at once; larger tables are first divided along a curve.",
    )

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.refusals import Refusals, by_means, joined_groups
        from noren.methods.mechanism.rule import Silent

        if self.each:
            return Silent("every column is grouped by its own numbers; secrets have no influence")
        return Refusals("groups of similar records are merged if one fails", joined_groups, by_means)

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, requirements, 0.0)
        if self.suppression:
            message = f"the method {self.name!r} suppresses no records."
            found.append(Problem("method.suppression", message, "Set suppression = 0."))
        if all(model.least_class_size < 2 for model in requirements):
            message = f"the method {self.name!r} needs k, the smallest group size."
            found.append(Problem("require", message, 'Add [[require]] with model = "k-anonymity".'))
        return found

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        demand_reachable(table, requirements)
        ranks = order(table.n)
        if self.each:
            return _each_alone(table, requirements, ranks)
        k = max(model.least_class_size for model in requirements)
        space = space_of(table)
        classes, count = _group_records(table, space, k, self.block, ranks)
        classes, joined = _join_groups(table, requirements, space, classes, count)
        count = int(classes.max()) + 1
        columns: dict[str, Treatment] = {}
        for name in table.quasi:
            column = table.columns[name]
            if amounts_of(column) is not None:
                columns[name] = Average(classes, cover(table.columns[name], table.codes[name], classes, count))
            else:
                columns[name] = cover(column, table.codes[name], classes, count)
        notes = [f"{count:,} groups of {k} or more records" + (f"; {joined:,} joined another" if joined else "")]
        return Plan(columns, notes=[*notes, *_variances(table, columns)])


# ---------------------------------------------------------------- all columns together


def amounts_of(column: Column) -> NDArray[np.float64] | None:
    """Return the values as numbers that can be averaged. Numbers with a hierarchy are codes and cannot."""
    return None if column.tree is not None else column.domain.amounts


class Line(NamedTuple):
    """The positions of a column's values, in units in which two random numbers are 2 apart (squared).

    Two values are as far apart as their places (squared) plus, for each level at which their groups differ, twice that
    level's weight. The distance to a centroid is the squared one of the same embedding.
    """

    place: NDArray[np.float64]
    levels: list[tuple[float, NDArray[np.int64]]]
    """The weight of each level, and the group of every value."""

    def from_value(self, one: int) -> NDArray[np.float64]:
        """Return the squared distance of every value to one of them."""
        out = (self.place - self.place[one]) ** 2
        for weight, group in self.levels:
            out += 2 * weight * (group != group[one])
        return np.asarray(out)

    def from_centroid(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the squared distance of every value to the centroid of records with so many of each."""
        n = counts.sum()
        out = (self.place - counts @ self.place / n) ** 2
        for weight, group in self.levels:
            share = np.bincount(group, counts) / n
            out += weight * (1 + share @ share - 2 * share[group])
        return np.asarray(out)


Space = dict[str, Line]


def space_of(table: Records) -> Space:
    """Return the positions of the values of every quasi-identifier."""
    space = {}
    for name in table.quasi:
        column, codes = table.columns[name], table.codes[name]
        if not column.domain.is_ranked or column.tree is not None:
            space[name] = Line(np.zeros(column.d), _levels(column))
            continue
        line = column.domain.line()
        known = line[codes[np.isfinite(line)[codes]]]
        spread, middle = (float(known.std()), float(known.mean())) if len(known) else (0.0, 0.0)
        missing = ~np.isfinite(line)
        place = (np.nan_to_num(line, nan=middle) - middle) / (spread or 1.0)
        space[name] = Line(place, [(1.0, missing.astype(np.int64))] if missing.any() else [])
    return space


def _levels(column: Column) -> list[tuple[float, NDArray[np.int64]]]:
    """Return the levels that separate categories: of a hierarchy below its root, or the values themselves."""
    if column.tree is None or column.tree.height < 1:
        return [(1.0, np.arange(column.d))]
    height = column.tree.height
    return [(1.0 / height, np.asarray(column.tree.groups(h)[1], np.int64)) for h in range(height)]


def _group_records(
    table: Records, space: Space, k: int, block: int, ranks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Run MDAV block by block; a random order in each block breaks all ties."""
    n = table.n
    blocks = max(1, min(-(-n // block), n // (2 * k)))
    curve = along_curve(table, ranks) if blocks > 1 else np.arange(n)
    classes, count = np.empty(n, np.int64), 0
    for part in np.array_split(curve, blocks):
        rows = part[np.argsort(ranks[part])]
        found, many = mdav(list(space.values()), [table.codes[name][rows] for name in space], k)
        classes[rows] = found + count
        count += many
    return classes, count


def mdav(lines: Sequence[Line], codes: Sequence[NDArray], k: int) -> tuple[NDArray[np.int64], int]:
    """Return the group of every record by MDAV (Domingo-Ferrer and Mateo-Sanz 2002), and their number: all have k to 2k
    - 1 records.

    Ties are broken by the order of the records, which must be random.
    """
    codes = [np.asarray(column, np.intp) for column in codes]
    waiting = np.arange(len(codes[0]))
    taken = np.zeros(len(waiting), bool)
    groups, count, left = np.empty(len(waiting), np.int64), 0, len(waiting)
    counts = [np.bincount(column, minlength=len(line.place)) for line, column in zip(lines, codes, strict=True)]

    def apart(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.asarray(sum(table[column] for table, column in zip(tables, codes, strict=True)))

    while left >= 2 * k:
        centre = [line.from_centroid(some) for line, some in zip(lines, counts, strict=True)]
        first = int(np.where(taken, -1.0, apart(centre)).argmax())
        for _ in range(2 if left >= 3 * k else 1):
            here = apart([line.from_value(column[first]) for line, column in zip(lines, codes, strict=True)])
            farthest = int(np.where(taken, -1.0, here).argmax())
            here[taken] = np.inf
            bound = np.partition(here, k - 1)[k - 1]
            near = np.flatnonzero(here < bound)
            near = np.concatenate([near, np.flatnonzero(here == bound)[: k - len(near)]])
            groups[waiting[near]] = count
            taken[near] = True
            for some, column in zip(counts, codes, strict=True):
                np.subtract.at(some, column[near], 1)
            count, left = count + 1, left - k
            first = int(taken.argmin()) if taken[farthest] else farthest  # all that are left are in one place
        if left < PACKED * len(waiting):
            waiting, codes = waiting[~taken], [column[~taken] for column in codes]
            taken = np.zeros(left, bool)
    groups[waiting[~taken]] = count
    return groups, count + (left > 0)


def groups_by_size(table: Records, k: int, block: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the groups of similar records that depend on the group size only."""
    return _group_records(table, space_of(table), k, block, ranks)[0]


def _join_groups(
    table: Records, requirements: Sequence[Model], space: Space, classes: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], int]:
    """Join groups that break a requirement with the nearest one until all hold; return also their number."""
    from noren.methods.requirements import compiled

    if all(model.about == "classes" for model in requirements):
        return classes, 0
    join = _Joining(table, compiled(table, requirements), space, classes, count)
    return join.run(), join.moved


class _Joining:
    """Groups with their histograms of secrets and their centroids."""

    def __init__(self, table: Records, needed: Compiled, space: Space, classes: NDArray[np.int64], count: int) -> None:
        self.needed = needed
        self.classes = classes
        self.sizes = np.bincount(classes, minlength=count).astype(np.float64)
        width = needed.rules.reference.shape[1]
        self.hists = np.zeros((count, max(1, len(needed.sensitive)), width))
        for j, name in enumerate(needed.sensitive):
            np.add.at(self.hists[:, j], (classes, table.codes[name]), 1.0)
        self.centres = _sum_places(table, space, classes, count) / np.maximum(self.sizes, 1)[:, None]
        self.into = np.arange(count)
        self.alive = np.ones(count, bool)
        self.moved = 0

    def run(self) -> NDArray[np.int64]:
        waiting = [g for g in range(len(self.sizes)) if not self._holds(g)]
        while waiting:
            group = waiting.pop()
            if not self.alive[group] or self._holds(group):
                continue
            self.alive[group] = False
            if not self.alive.any():
                message = "even all records together fail a requirement."
                raise RequirementNotMet(message, hint="Loosen the requirements.")
            apart = ((self.centres - self.centres[group]) ** 2).sum(axis=1)
            near = int(np.where(self.alive, apart, np.inf).argmin())
            self.into[group] = near
            self.moved += 1
            share = self.sizes[group] / (self.sizes[near] + self.sizes[group])
            self.centres[near] += share * (self.centres[group] - self.centres[near])
            self.sizes[near] += self.sizes[group]
            self.hists[near] += self.hists[group]
            if not self._holds(near):
                waiting.append(near)
        while (self.into[self.into] != self.into).any():
            self.into = self.into[self.into]
        return np.asarray(np.unique(self.into[self.classes], return_inverse=True)[1].ravel())

    def _holds(self, group: int) -> bool:
        return self.needed.holds(self.hists[group], int(self.sizes[group]))


def _sum_places(table: Records, space: Space, classes: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Sum the groups' records in the space of the search's squared distances."""
    parts = []
    for name, line in space.items():
        codes = table.codes[name]
        parts.append(np.bincount(classes, line.place[codes], minlength=count)[:, None])
        for weight, groups in line.levels:
            many = int(groups.max()) + 1
            flat = np.bincount(classes * many + groups[codes], minlength=count * many).reshape(count, many)
            parts.append(flat * np.sqrt(weight))
    return np.concatenate(parts, axis=1)


# ---------------------------------------------------------------- one column at a time


def _each_alone(table: Records, requirements: Sequence[Model], ranks: NDArray[np.int64]) -> Plan:
    """Group every column of numbers separately; k is that of the requirements on the column."""
    columns: dict[str, Treatment] = {}
    for name in table.quasi:
        amounts = amounts_of(table.columns[name])
        k = max([1, *(m.least_class_size for m in requirements if name in (m.on or table.quasi))])
        if amounts is not None and k > 1:
            groups = _line_groups(amounts[table.codes[name]], k, ranks)
            covered = cover(table.columns[name], table.codes[name], groups, int(groups.max(initial=-1)) + 1)
            columns[name] = Average(groups, covered)
    if not columns:
        message = "each = true has no effect, because no column of numbers has a k."
        raise RequirementNotMet(message, hint='Use each = false, or ask for "k-anonymity" on a column of numbers.')
    notes = ["every column was grouped separately, so the combination of columns may identify a person"]
    return Plan(columns, notes=[*notes, *_variances(table, columns)])


def _line_groups(numbers: NDArray[np.float64], k: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the best groups of one column. Missing numbers are a group, or if too few, part of a middle one."""
    there = np.flatnonzero(np.isfinite(numbers))
    missing = len(numbers) - len(there)
    out = np.zeros(len(numbers), np.int64)
    if len(there) < k:
        return out
    rising = there[np.lexsort([ranks[there], numbers[there]])]
    found, count = best_line_groups(numbers[rising], k)
    out[rising] = found
    out[~np.isfinite(numbers)] = count if missing >= k else found[len(found) // 2]
    return out


def _variances(table: Records, columns: Mapping[str, Treatment]) -> list[str]:
    """Return how much of the variance of every averaged column is inside its groups, and lost."""
    out = []
    for name, treatment in columns.items():
        amounts = amounts_of(table.columns[name])
        if not isinstance(treatment, Average) or amounts is None:
            continue
        numbers = amounts[table.codes[name]]
        there = np.isfinite(numbers)
        numbers, groups = numbers[there], treatment.data[there]
        size = np.maximum(np.bincount(groups), 1)
        inside = numbers - (np.bincount(groups, numbers) / size)[groups]
        whole = float(((numbers - numbers.mean()) ** 2).sum()) if len(numbers) else 0.0
        if whole > 0:
            out.append(
                f"{name}: {float((inside**2).sum()) / whole:.1%} of its variance is lost (variance within groups)"
            )
    return out
