"""1-D l-diversity: groups along a Hilbert curve through the quasi-identifiers (Ghinita et al. 2007).

Also what it shares with the three-phase method: the search for the smallest l whose classes meet all requirements.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.engines import Plan, RandomOrder, Recode, Records
from noren.errors import Problem, RequirementNotMet
from noren.methods.base import ClassMethod, Method
from noren.methods.blind import WHY, blind_classes
from noren.methods.cover import cover
from noren.methods.mondrian import unreachable
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.ragged import row_numbers
from noren.schema.column import Column
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule
    from noren.methods.requirements import Compiled

Classes = tuple[NDArray[np.int64], int]
"""The class of every record, below 0 for one that is dropped, and how many classes there are; 0 if it cannot be."""


class Hilbert(ClassMethod):
    """Group records that follow one another on a Hilbert curve.

    The curve is cut where the loss is least, into runs of k to 2k - 1 records. With a requirement on a secret the runs
    grow until all hold, and the records of a run are then dealt to groups at random.

    With `blind = false`, the method of the paper, every group holds the next l records of different secrets; l is the
    smallest whose classes meet everything required. If none does, neighbouring groups are joined until they do. Records
    are dropped only where the commonest secret would otherwise put the requirement out of reach, and then only of
    secrets that are too common. Whoever is passed over on the curve gives away a secret by it, so this needs
    `mechanism = "ignored"`.
    """

    name: Literal["hilbert"] = "hilbert"
    sentence: ClassVar[str] = (
        "Records that are alike, ordered along a curve through all columns, are grouped and published together."
    )
    first_phase: ClassVar[bool] = True
    apart: ClassVar[bool] = True
    l: int | None = Field(
        default=None,
        ge=2,
        description="Secrets per group, with blind = false; by default the fewest that meet the requirements.",
    )
    blind: bool = Field(
        default=True,
        description="Make classes from quasi-identifiers alone, for a class size that grows until every class holds, "
        "and deal their records to groups at random; the size is published, and what secrets decide is that number "
        "alone. False is the method of the paper, which gives secrets away to whoever replays it.",
    )

    def mechanism(self) -> Rule:
        if self.blind:
            from noren.methods.mechanism.rule import Silent

            return Silent(WHY)
        from noren.methods.mechanism.skips import Skips

        return Skips("a group takes the next records on a curve whose secrets it does not hold yet")

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, requirements, self.suppression)
        if self.blind:
            if self.l is not None:
                message = "blind groups do not look at secrets, so there is no l of theirs."
                found.append(Problem("method.l", message, "Leave l out, or set blind = false."))
            return found
        return found + one_column_problems(self.name, requirements, least=0)

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        size = least_size(table, requirements)
        if self.blind and protected(requirements):
            return _blind(table, requirements, order)
        ranks = order(table.n)
        curve = along_curve(table, ranks)
        if not protected(requirements):
            return _cut(table, curve, size)
        task = Task.of(table, requirements, self.suppression, ranks)

        def classes(l: int, needed: Compiled) -> Classes:
            return task.along(curve[task.kept(l)[curve]], l, needed)

        return task.recode(self.l, classes)


def protected(requirements: Sequence[Model]) -> tuple[str, ...]:
    """The columns whose values are protected; k-anonymity names none."""
    named = [name for model in requirements if model.model != "k-anonymity" for name in model.on]
    return tuple(dict.fromkeys(named))


def one_column_problems(method: str, requirements: Sequence[Model], least: int) -> list[Problem]:
    """Groups along one curve can be diverse in one column."""
    names = protected(requirements)
    if len(names) > 1:
        message = f"the method {method!r} protects one sensitive column, and {len(names)} have requirements."
        return [Problem("require", message, 'Use [method] name = "mondrian", or "rating" for a column each.')]
    if not requirements or len(names) < least:
        message = f"the method {method!r} needs a requirement on a sensitive column."
        return [Problem("require", message, 'Add [[require]] with model = "frequency-l-diversity".')]
    return []


def least_size(table: Records, requirements: Sequence[Model]) -> int:
    """The largest k of any requirement. Raises RequirementNotMet if the table is smaller."""
    size = max([1, *(int(model.parameters().get("k", 1)) for model in requirements)])
    if size > table.n:
        message = f"k = {size} needs at least {size} records, and the table has {table.n}."
        raise RequirementNotMet(message, hint=f"The largest k is {table.n}.")
    return size


# ---------------------------------------------------------------- the curve


def walk_ranks(hierarchy: Hierarchy) -> NDArray[np.int64]:
    """The rank of every leaf in a depth-first walk of its tree."""
    levels = [hierarchy.groups(height)[1] for height in range(hierarchy.height + 1)]
    ranks = np.empty(len(hierarchy.leaves), np.int64)
    ranks[np.lexsort(levels)] = np.arange(len(ranks))
    return ranks


def along_curve(table: Records, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The records in the order of the Hilbert curve; records in one place in a random order."""
    from noren.methods.curve_kernels import hilbert_bits, hilbert_index, stretched

    facts = [table.columns[name] for name in table.quasi]
    bits = hilbert_bits([len(column.domain) for column in facts])
    axes = np.empty((table.n, len(facts)), np.uint64)
    for j, column in enumerate(facts):
        place = np.arange(len(column.domain)) if column.tree is None else walk_ranks(column.tree)
        axes[:, j] = stretched(place, len(column.domain), bits)[table.codes[column.name]]
    return np.asarray(np.lexsort([ranks, hilbert_index(axes, bits)]))


def _cut(table: Records, curve: NDArray[np.int64], size: int) -> Plan:
    """k-anonymity alone: the curve in runs of least loss."""
    classes, count = _runs(table, curve, size)
    return Plan(_covered(table, classes, count), notes=(f"{count} classes along the curve",))


def _blind(table: Records, requirements: Sequence[Model], order: RandomOrder) -> Plan:
    """The curve in runs that do not look at secrets, of a size for which all hold, each dealt to groups."""
    if (reason := unreachable(table, requirements)) is not None:
        message, hint = reason
        raise RequirementNotMet(message, hint=hint)

    def runs(size: int, same: RandomOrder) -> Classes:
        return _runs(table, along_curve(table, same(table.n)), size)

    classes, count, facts = blind_classes(table, requirements, order, runs)
    return Plan(_covered(table, classes, count), notes=(f"{count} groups along the curve",), facts=facts)


def _runs(table: Records, curve: NDArray[np.int64], size: int) -> Classes:
    """The curve in runs of size to 2 size - 1 records, of least loss."""
    from noren.methods.curve_kernels import best_cuts

    facts = [table.columns[name] for name in table.quasi]
    codes = np.stack([table.codes[column.name] for column in facts], axis=1).astype(np.int64)
    runs, count = best_cuts(codes[curve], *_losses(facts), size)
    classes = np.empty(table.n, np.int64)
    classes[curve] = runs
    return classes, count


def _losses(facts: Sequence[Column]) -> tuple[NDArray, NDArray, NDArray]:
    """For every column how `best_cuts` measures it: the kind, the nodes and the losses."""
    from noren.methods import curve_kernels as kernel

    deepest = max([0, *(column.tree.height for column in facts if column.tree is not None)])
    width = max(len(column.domain) for column in facts)
    kinds = np.empty(len(facts), np.int64)
    at = np.zeros((len(facts), deepest + 1, width), np.int64)
    share = np.zeros((len(facts), deepest + 1, width))
    for j, column in enumerate(facts):
        d = len(column.domain)
        if column.tree is not None:
            kinds[j] = kernel.TREE
            tree = tree_of(column.tree)
            at[j, : tree.height + 1, :d] = tree.at
            share[j, : tree.height + 1, :d] = (tree.nodes.sizes[tree.at] - 1) / max(1, d - 1)
        elif column.domain.is_ranked:
            kinds[j] = kernel.INTERVAL
            share[j, 0, :d] = np.nan_to_num(column.domain.line(), nan=1.0)
        else:
            kinds[j] = kernel.VALUES
            share[j, 0, 0] = 1 / max(1, d - 1)
    return kinds, at, share


def _covered(table: Records, classes: NDArray[np.int64], count: int) -> dict[str, Recode]:
    return {name: cover(table.columns[name], table.codes[name], classes, count) for name in table.quasi}


# ---------------------------------------------------------------- the search


@dataclass(frozen=True)
class Task:
    """One sensitive column and what its classes must meet."""

    table: Records
    column: str
    required: Compiled
    asked: int
    """The l of frequency diversity, if that is required; else 0."""
    size: int
    limit: int
    """How many records may be dropped."""
    ranks: NDArray[np.int64]

    @classmethod
    def of(cls, table: Records, requirements: Sequence[Model], suppression: float, ranks: NDArray[np.int64]) -> Task:
        from noren.methods.requirements import compiled

        (column,) = protected(requirements)
        asked = [int(model.parameters()["l"]) for model in requirements if model.model == "frequency-l-diversity"]
        size = least_size(table, requirements)
        limit = int(suppression * table.n + 1e-9)
        return cls(table, column, compiled(table, requirements), max([0, *asked]), size, limit, ranks)

    @cached_property
    def values(self) -> NDArray[np.int64]:
        return self.table.codes[self.column].astype(np.int64)

    @property
    def m(self) -> int:
        return len(self.table.columns[self.column].domain)

    @property
    def sized(self) -> Compiled:
        """The requirement on the size of classes alone."""
        from noren.methods.kernels import K_ANONYMITY

        size = np.array([self.size], np.float64)
        kind = np.array([K_ANONYMITY])
        rules = self.required.rules._replace(kinds=kind, columns=np.array([-1]), first=size, second=np.zeros(1))
        return replace(self.required, rules=rules)

    def kept(self, l: int) -> NDArray[np.bool_]:
        """All records, or the most that are l-eligible; which ones of a value are dropped is left to chance."""
        from noren.methods.along import eligible_cap, first_of_value

        cap = eligible_cap(np.bincount(self.values, minlength=self.m), l)
        by_rank = np.argsort(self.ranks)
        out = np.empty(self.table.n, bool)
        out[by_rank] = first_of_value(self.values[by_rank], self.m, cap)
        return out

    def largest(self) -> int:
        """The largest l for which the table is eligible once as many records are dropped as may be."""
        from noren.methods.along import eligible_cap

        counts = np.bincount(self.values, minlength=self.m)
        best = self.table.n // max(1, int(counts.max(initial=0)))
        most = int((counts > 0).sum())
        while best < most:
            dropped = int(np.maximum(counts - eligible_cap(counts, best + 1), 0).sum())
            if dropped > self.limit:
                break
            best += 1
        return best

    def along(self, rows: NDArray[np.int64], l: int, needed: Compiled) -> Classes:
        """1-D groups of some records in the order of the curve, joined until they meet what is needed."""
        from noren.methods.along import diverse_groups, joined_groups

        values = self.values[rows]
        groups, count = diverse_groups(values, self.m, l)
        part, count = joined_groups(groups, count, values, self.place, needed.rules)
        classes = np.full(self.table.n, -1, np.int64)
        classes[rows] = part[groups]
        return classes, count

    @property
    def place(self) -> int:
        """The sensitive column's place in the compiled requirements."""
        return self.required.sensitive.index(self.column)

    def failing(self, classes: NDArray[np.int64], count: int, needed: Compiled) -> NDArray[np.bool_]:
        """Which classes do not meet what is needed."""
        from noren.methods.along import failing_classes

        return np.asarray(failing_classes(classes, count, self.values, self.place, needed.rules))

    def fails(self, rows: NDArray[np.bool_], needed: Compiled) -> bool:
        """Whether some records, as one class, do not meet what is needed."""
        return bool(self.failing(np.where(rows, 0, -1), 1, needed)[0])

    def recode(self, fixed: int | None, classes_of: Callable[[int, Compiled], Classes]) -> Plan:
        """Try every l in turn, then join the groups of the largest l until their classes meet everything."""
        reachable = self.largest()
        first, last = (max(2, self.asked), reachable) if fixed is None else (fixed, fixed)
        if first > reachable and (self.asked or fixed is not None):
            self._refuse_l(first, reachable)
        for l in range(first, last + 1):
            found = self._published(*classes_of(l, self.sized))
            if found is not None:
                return self._recoding(*found, f"{self.column}: groups of l = {l}")
        found = self._published(*classes_of(last, self.required))
        if found is not None:
            joined = "joined until they met the requirements"
            return self._recoding(*found, f"{self.column}: groups of l = {last}, {joined}")
        tried = f"l = {first}" if first == last else f"every l from {first} to {last}"
        tried = f"{tried} was tried" if first <= last else "no l of 2 or more is in reach"
        message = f"{self.column!r}: {tried}, and classes always fall short of a requirement."
        hint = "Loosen the requirements: not even all records together meet them."
        raise RequirementNotMet(message, hint=hint)

    def _refuse_l(self, asked: int, reachable: int) -> None:
        dropped = " even if records are dropped" if self.limit else ""
        message = f"l = {asked} is out of reach for {self.column!r}{dropped}: its commonest value is too common."
        most = f"The largest l is {reachable}." if reachable > 1 else "No l of 2 or more can be reached."
        raise RequirementNotMet(message, hint=most)

    def _published(self, classes: NDArray[np.int64], count: int) -> tuple[dict[str, Recode], NDArray] | None:
        """What the classes publish, if those that look alike together meet every requirement."""
        if not count:
            return None
        alone = not self.failing(classes, count, self.required).any()
        columns = _covered(self.table, classes, count)
        if not alone:
            sizes = [len(column.nodes) for column in columns.values()]
            merged = row_numbers([column.data for column in columns.values()], sizes, len(classes))
            many = int(merged.max(initial=-1)) + 1
            if self.failing(np.where(classes < 0, -1, merged), many, self.required).any():
                return None
        return columns, classes >= 0

    def _recoding(self, columns: dict[str, Recode], keep: NDArray, note: str) -> Plan:
        return Plan(columns, None if keep.all() else keep, (note,))
