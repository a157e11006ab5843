"""Microaggregation: groups of at least k records that are near each other; numbers are published as the group's mean.

Multivariate (MDAV): all quasi-identifiers make the groups, so whoever knows a person's quasi-identifiers finds at least
k records. Univariate (`each`): every column of numbers is grouped on its own, with the least sum of squares. That
changes the numbers least and protects each column alone: two columns together may still single a person out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.engines import Average, Plan, RandomOrder, Records, Treatment
from noren.errors import Problem, RequirementNotMet
from noren.methods.base import ClassMethod
from noren.methods.cover import cover
from noren.methods.hilbert import along_curve
from noren.methods.mondrian import unreachable
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.column import Column
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule
    from noren.methods.microaggregation_kernels import Space
    from noren.methods.requirements import Compiled


class Microaggregation(ClassMethod):
    """Put k to 2k - 1 near records together (MDAV); publish numbers as means, other columns as what the group covers.

    Numbers and dates are compared by size, in standard deviations; categories by how far up their hierarchy they meet,
    without one by equality, and two that have nothing in common are as far apart as two random numbers. Groups that
    miss a requirement beyond k join the nearest until all hold.
    """

    name: Literal["microaggregation"] = "microaggregation"
    sentence: ClassVar[str] = "Records that are near each other are grouped; numbers are published as the group's mean."
    each: bool = Field(
        default=False,
        description="Group every column of numbers on its own. Protects single columns, not their combination.",
    )
    block: int = Field(
        default=20_000,
        ge=100,
        description="Records that are grouped at once; larger tables are first cut along a curve.",
    )

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.means import by_means, joined_groups
        from noren.methods.mechanism.refusals import Refusals
        from noren.methods.mechanism.rule import Silent

        if self.each:
            return Silent("every column is grouped by its own numbers, and no secret takes part")
        return Refusals("groups of near records are joined where one falls short", joined_groups, by_means)

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, requirements, 0.0)
        if self.suppression:
            message = f"the method {self.name!r} drops no record."
            found.append(Problem("method.suppression", message, "Set suppression = 0."))
        if all(model.least_class_size < 2 for model in requirements):
            message = f"the method {self.name!r} needs k, the least size of a group."
            found.append(Problem("require", message, 'Add [[require]] with model = "k-anonymity".'))
        return found

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        if (reason := unreachable(table, requirements)) is not None:
            message, hint = reason
            raise RequirementNotMet(message, hint=hint)
        ranks = order(table.n)
        if self.each:
            return _each_alone(table, requirements, ranks)
        k = max(model.least_class_size for model in requirements)
        space = space_of(table)
        classes, count = _grouped(table, space, k, self.block, ranks)
        classes, joined = _joined(table, requirements, space, classes, count)
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
    """The values as numbers that can be averaged. Numbers with a hierarchy are codes, as of places: they cannot."""
    return None if column.tree is not None else column.domain.amounts


def space_of(table: Records) -> Space:
    """Where the values of every quasi-identifier lie, in units in which two random numbers are 2 apart (squared)."""
    from noren.methods.microaggregation_kernels import Space

    names = table.quasi
    sizes = np.array([table.columns[name].d for name in names], np.int64)
    width = int(sizes.max())
    place = np.zeros((len(names), width))
    levels: list[tuple[int, float, NDArray[np.int64]]] = []
    for j, name in enumerate(names):
        column, codes = table.columns[name], table.codes[name]
        if column.domain.is_ranked and column.tree is None:
            line = column.domain.line()
            there = np.isfinite(line)[codes]
            spread = float(line[codes[there]].std()) if there.any() else 0.0
            middle = float(line[codes[there]].mean()) if there.any() else 0.0
            place[j, : sizes[j]] = (np.nan_to_num(line, nan=middle) - middle) / (spread or 1.0)
            if not np.isfinite(line).all():
                levels.append((j, 1.0, (~np.isfinite(line)).astype(np.int64)))
            continue
        levels += [(j, weight, groups) for weight, groups in _levels(column)]
    group = np.zeros((max(1, len(levels)), width), np.int64)
    for at, (j, _, groups) in enumerate(levels):
        group[at, : sizes[j]] = groups
    of = np.array([j for j, _, _ in levels], np.int64)
    return Space(sizes, place, of, np.array([weight for _, weight, _ in levels]), group)


def _levels(column: Column) -> list[tuple[float, NDArray[np.int64]]]:
    """What tells categories apart: the levels of a hierarchy below its root, or the values themselves."""
    if column.tree is None or column.tree.height < 1:
        return [(1.0, np.arange(column.d))]
    height = column.tree.height
    return [(1.0 / height, np.asarray(column.tree.groups(h)[1], np.int64)) for h in range(height)]


def _grouped(
    table: Records, space: Space, k: int, block: int, ranks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """MDAV, block by block. Inside a block the records stand in a random order, which breaks all ties."""
    from noren.methods.microaggregation_kernels import mdav

    n = table.n
    blocks = max(1, min(-(-n // block), n // (2 * k)))
    curve = along_curve(table, ranks) if blocks > 1 else np.arange(n)
    codes = np.stack([table.codes[name] for name in table.quasi], axis=1).astype(np.int64)
    classes, count = np.empty(n, np.int64), 0
    for part in np.array_split(curve, blocks):
        rows = part[np.argsort(ranks[part])]
        found, many = mdav(np.ascontiguousarray(codes[rows]), space, k)
        classes[rows] = found + count
        count += many
    return classes, count


def groups_by_size(table: Records, k: int, block: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The groups of near records that size alone leads to; no secret takes part."""
    return _grouped(table, space_of(table), k, block, ranks)[0]


def _joined(
    table: Records, requirements: Sequence[Model], space: Space, classes: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], int]:
    """Groups that miss a requirement join the nearest one until all hold; also how many did."""
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
        self.centres = _embedded(table, space, classes, count) / np.maximum(self.sizes, 1)[:, None]
        self.into = np.arange(count)
        self.alive = np.ones(count, bool)
        self.moved = 0

    def run(self) -> NDArray[np.int64]:
        from noren.methods.microaggregation_kernels import nearest_centre

        waiting = [g for g in range(len(self.sizes)) if not self._holds(g)]
        while waiting:
            group = waiting.pop()
            if not self.alive[group] or self._holds(group):
                continue
            self.alive[group] = False
            if not self.alive.any():
                message = "even all records together fall short of a requirement."
                raise RequirementNotMet(message, hint="Loosen the requirements.")
            near = int(nearest_centre(self.centres, self.alive, self.centres[group]))
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


def _embedded(table: Records, space: Space, classes: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Sums of the groups' records in the space in which squared distances are those of the search."""
    parts = []
    for j, name in enumerate(table.quasi):
        codes = table.codes[name]
        if space.place[j].any():
            parts.append(np.bincount(classes, space.place[j][codes], minlength=count)[:, None])
        for level in np.flatnonzero(space.column == j).tolist():
            groups = space.group[level]
            many = int(groups[: space.sizes[j]].max()) + 1
            flat = np.bincount(classes * many + groups[codes], minlength=count * many).reshape(count, many)
            parts.append(flat * np.sqrt(space.weight[level]))
    return np.concatenate(parts, axis=1).astype(np.float64) if parts else np.zeros((count, 1))


# ---------------------------------------------------------------- one column at a time


def _each_alone(table: Records, requirements: Sequence[Model], ranks: NDArray[np.int64]) -> Plan:
    """Every column of numbers in groups of its own; k is that of the requirements that speak of the column."""
    columns: dict[str, Treatment] = {}
    for name in table.quasi:
        amounts = amounts_of(table.columns[name])
        k = max([1, *(m.least_class_size for m in requirements if name in (m.on or table.quasi))])
        if amounts is not None and k > 1:
            groups = _line_groups(amounts[table.codes[name]], k, ranks)
            covered = cover(table.columns[name], table.codes[name], groups, int(groups.max(initial=-1)) + 1)
            columns[name] = Average(groups, covered)
    if not columns:
        message = "no column of numbers has a k, so each = true changes nothing."
        raise RequirementNotMet(message, hint='Use each = false, or ask for "k-anonymity" on a column of numbers.')
    notes = ["every column was grouped on its own: columns together may single a person out"]
    return Plan(columns, notes=[*notes, *_variances(table, columns)])


def _line_groups(numbers: NDArray[np.float64], k: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best groups of one column. Missing numbers are a group, or if they are too few, part of a middle one."""
    from noren.methods.microaggregation_kernels import best_line_groups

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
    """How much of the variance of every averaged column lies inside its groups, and is lost."""
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
            out.append(f"{name}: {float((inside**2).sum()) / whole:.1%} of its variance lies inside the groups")
    return out
