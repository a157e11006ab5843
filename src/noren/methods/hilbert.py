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
from noren.methods.curve_kernels import (
    INTERVAL,
    TREE,
    VALUES,
    Buckets,
    best_cuts,
    fill_groups,
    hilbert_bits,
    hilbert_index,
    join_groups,
    stretched,
)
from noren.methods.kernels import K_ANONYMITY, Rules
from noren.methods.requirements import demand_reachable
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.ragged import in_order, offsets_of, owners, ranges, row_numbers
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
    """Group records that are neighbours on a Hilbert curve.

    The curve is cut where the loss is least, into runs of k to 2k - 1 records. With a requirement on a secret the runs
    grow until all hold, and the records of a run are then dealt to groups at random.

    With `blind = false`, the method of the paper, every group holds the next l records of different secrets; l is the
    smallest whose classes meet everything required. If none does, neighbouring groups are joined until they do. Records
    are dropped only where the commonest secret would otherwise put the requirement out of reach, and then only of
    secrets that are too common. Whoever is skipped on the curve discloses a secret by it, so this needs `mechanism =
    "ignored"`.
    """

    name: Literal["hilbert"] = "hilbert"
    sentence: ClassVar[str] = (
        "Records are ordered along a curve through all columns, and neighbours form groups that are published together."
    )
    first_phase: ClassVar[bool] = True
    l: int | None = Field(
        default=None,
        ge=2,
        description=(
            "Secrets per group, with blind = false; by default the smallest number that meets the requirements."
        ),
    )
    blind: bool = Field(
        default=True,
        description=(
            "Form classes from quasi-identifiers only, with the smallest class size at which every class meets the "
            "requirements, and assign their records to groups at random; secrets influence only that published size. "
            "False is the method of the paper, which discloses secrets to somebody who replays it."
        ),
    )

    def mechanism(self) -> Rule:
        if self.blind:
            from noren.methods.mechanism.rule import Silent

            return Silent(WHY)
        from noren.methods.mechanism.skips import Skips

        return Skips("a group takes the next records along the curve with secrets that it does not yet contain")

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, requirements, self.suppression)
        if self.blind:
            if self.l is not None:
                message = "l has no effect with blind = true, because blind groups ignore secrets."
                found.append(Problem("method.l", message, "Remove l, or set blind = false."))
            return found
        return found + one_column_problems(self.name, requirements, least=0)

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        size = least_size(table, requirements)
        if self.blind and protected(requirements):
            return _plan_blind(table, requirements, order)
        ranks = order(table.n)
        curve = along_curve(table, ranks)
        if not protected(requirements):
            return _cut_curve(table, curve, size)
        task = Task.of(table, requirements, self.suppression, ranks)

        def classes(l: int, needed: Compiled) -> Classes:
            return task.along(curve[task.kept(l)[curve]], l, needed)

        return task.recode(self.l, classes)


def protected(requirements: Sequence[Model]) -> tuple[str, ...]:
    """Return the columns whose values are protected; k-anonymity has none."""
    named = [name for model in requirements if model.model != "k-anonymity" for name in model.on]
    return tuple(dict.fromkeys(named))


def one_column_problems(method: str, requirements: Sequence[Model], least: int) -> list[Problem]:
    """Return a problem if more than one column needs diversity."""
    names = protected(requirements)
    if len(names) > 1:
        message = f"the method {method!r} protects one sensitive column, but {len(names)} have requirements."
        return [
            Problem(
                "require",
                message,
                'Use [method] name = "mondrian", or "rating", which protects each column separately.',
            )
        ]
    if not requirements or len(names) < least:
        message = f"the method {method!r} needs a requirement on a sensitive column."
        return [Problem("require", message, 'Add [[require]] with model = "frequency-l-diversity".')]
    return []


def least_size(table: Records, requirements: Sequence[Model]) -> int:
    """Return the largest k of any requirement; raise RequirementNotMet if the table is smaller."""
    size = max([1, *(int(model.parameters().get("k", 1)) for model in requirements)])
    if size > table.n:
        message = f"k = {size} needs at least {size} records, and the table has {table.n}."
        raise RequirementNotMet(message, hint=f"The largest k is {table.n}.")
    return size


# ---------------------------------------------------------------- the curve


def walk_ranks(hierarchy: Hierarchy) -> NDArray[np.int64]:
    """Return the rank of every leaf in a depth-first walk of its tree."""
    levels = [hierarchy.groups(height)[1] for height in range(hierarchy.height + 1)]
    ranks = np.empty(len(hierarchy.leaves), np.int64)
    ranks[np.lexsort(levels)] = np.arange(len(ranks))
    return ranks


def along_curve(table: Records, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the records in the order of the Hilbert curve; equal records in a random order."""
    facts = [table.columns[name] for name in table.quasi]
    bits = hilbert_bits([len(column.domain) for column in facts])
    axes = np.empty((table.n, len(facts)), np.uint64)
    for j, column in enumerate(facts):
        place = np.arange(len(column.domain)) if column.tree is None else walk_ranks(column.tree)
        axes[:, j] = stretched(place, len(column.domain), bits)[table.codes[column.name]]
    return np.asarray(np.lexsort([ranks, hilbert_index(axes, bits)]))


def _cut_curve(table: Records, curve: NDArray[np.int64], size: int) -> Plan:
    """Cut the curve into runs of smallest loss, for k-anonymity only."""
    classes, count = _runs(table, curve, size)
    return Plan(_cover_classes(table, classes, count), notes=(f"{count} classes along the curve",))


def _plan_blind(table: Records, requirements: Sequence[Model], order: RandomOrder) -> Plan:
    """Cut the curve without reading secrets, at a size for which all requirements hold, and assign each run to groups
    at random."""
    demand_reachable(table, requirements)

    def runs(size: int, same: RandomOrder) -> Classes:
        return _runs(table, along_curve(table, same(table.n)), size)

    classes, count, facts = blind_classes(table, requirements, order, runs)
    return Plan(_cover_classes(table, classes, count), notes=(f"{count} groups along the curve",), facts=facts)


def _runs(table: Records, curve: NDArray[np.int64], size: int) -> Classes:
    """Cut the curve into runs of size to 2 size - 1 records, of smallest loss."""
    facts = [table.columns[name] for name in table.quasi]
    codes = np.stack([table.codes[column.name] for column in facts], axis=1).astype(np.int64)
    runs, count = best_cuts(codes[curve], *_losses(facts), size)
    classes = np.empty(table.n, np.int64)
    classes[curve] = runs
    return classes, count


def _losses(facts: Sequence[Column]) -> tuple[NDArray, NDArray, NDArray]:
    """Return how `best_cuts` measures every column: kind, nodes and losses."""
    deepest = max([0, *(column.tree.height for column in facts if column.tree is not None)])
    width = max(len(column.domain) for column in facts)
    kinds = np.empty(len(facts), np.int64)
    at = np.zeros((len(facts), deepest + 1, width), np.int64)
    share = np.zeros((len(facts), deepest + 1, width))
    for j, column in enumerate(facts):
        d = len(column.domain)
        if column.tree is not None:
            kinds[j] = TREE
            tree = tree_of(column.tree)
            at[j, : tree.height + 1, :d] = tree.at
            share[j, : tree.height + 1, :d] = (tree.nodes.sizes[tree.at] - 1) / max(1, d - 1)
        elif column.domain.is_ranked:
            kinds[j] = INTERVAL
            share[j, 0, :d] = np.nan_to_num(column.domain.line(), nan=1.0)
        else:
            kinds[j] = VALUES
            share[j, 0, 0] = 1 / max(1, d - 1)
    return kinds, at, share


def _cover_classes(table: Records, classes: NDArray[np.int64], count: int) -> dict[str, Recode]:
    return {name: cover(table.columns[name], table.codes[name], classes, count) for name in table.quasi}


# ---------------------------------------------------------------- the search


@dataclass(frozen=True)
class Task:
    """One sensitive column and the requirements on its classes."""

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
        """Return the requirement on class sizes only."""
        size = np.array([self.size], np.float64)
        kind = np.array([K_ANONYMITY])
        rules = self.required.rules._replace(kinds=kind, columns=np.array([-1]), first=size, second=np.zeros(1))
        return replace(self.required, rules=rules)

    def kept(self, l: int) -> NDArray[np.bool_]:
        """Return all records, or the largest l-eligible part; the dropped ones of a value are random."""
        cap = eligible_cap(np.bincount(self.values, minlength=self.m), l)
        by_rank = np.argsort(self.ranks)
        out = np.empty(self.table.n, bool)
        out[by_rank] = first_of_value(self.values[by_rank], self.m, cap)
        return out

    def largest(self) -> int:
        """Return the largest l for which the table is eligible after the permitted suppression."""
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
        """Form 1-D groups of some records along the curve, joined until they meet the requirements."""
        values = self.values[rows]
        groups, count = diverse_groups(values, self.m, l)
        part, count = joined_groups(groups, count, values, self.place, needed.rules)
        classes = np.full(self.table.n, -1, np.int64)
        classes[rows] = part[groups]
        return classes, count

    @property
    def place(self) -> int:
        """Return the sensitive column's position in the compiled requirements."""
        return self.required.sensitive.index(self.column)

    def failing(self, classes: NDArray[np.int64], count: int, needed: Compiled) -> NDArray[np.bool_]:
        """Return which classes break the requirements."""
        return needed.failing(self.table.codes, classes, count)

    def fails(self, rows: NDArray[np.bool_], needed: Compiled) -> bool:
        """Return whether some records, as one class, break the requirements."""
        return bool(self.failing(np.where(rows, 0, -1), 1, needed)[0])

    def recode(self, fixed: int | None, classes_of: Callable[[int, Compiled], Classes]) -> Plan:
        """Try every l in turn, then join the groups of the largest l until their classes meet all requirements."""
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
        tried = f"{tried} was tried" if first <= last else "no l of 2 or more can be reached"
        message = f"{self.column!r}: {tried}, but some class always falls short of a requirement."
        hint = "Lower the requirements: not even all records together meet them."
        raise RequirementNotMet(message, hint=hint)

    def _refuse_l(self, asked: int, reachable: int) -> None:
        dropped = " even if records are suppressed" if self.limit else ""
        message = f"l = {asked} cannot be reached for {self.column!r}{dropped}: its commonest value is too common."
        most = f"The largest l is {reachable}." if reachable > 1 else "No l of 2 or more can be reached."
        raise RequirementNotMet(message, hint=most)

    def _published(self, classes: NDArray[np.int64], count: int) -> tuple[dict[str, Recode], NDArray] | None:
        """Return the published classes, if merged equal ones meet every requirement."""
        if not count:
            return None
        alone = not self.failing(classes, count, self.required).any()
        columns = _cover_classes(self.table, classes, count)
        if not alone:
            sizes = [len(column.nodes) for column in columns.values()]
            merged = row_numbers([column.data for column in columns.values()], sizes, len(classes))
            many = int(merged.max(initial=-1)) + 1
            if self.failing(np.where(classes < 0, -1, merged), many, self.required).any():
                return None
        return columns, classes >= 0

    def _recoding(self, columns: dict[str, Recode], keep: NDArray, note: str) -> Plan:
        return Plan(columns, None if keep.all() else keep, (note,))


# ---------------------------------------------------------------- groups along a curve
#
# A set of records is l-eligible if no value makes up more than 1/l of it.


def eligible_caps(bounds: NDArray[np.int64], counts: NDArray[np.int64], l: int) -> NDArray[np.int64]:
    """Return for every group the largest c for which its counts, capped at c, are l-eligible.

    That is l * c <= sum of min(count, c). Group g has the counts bounds[g]:bounds[g + 1].
    """
    owner, groups = owners(bounds), len(bounds) - 1
    low, high = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.maximum.at(high, owner, counts)
    while (low < high).any():
        middle = (low + high + 1) // 2
        kept = np.bincount(owner, np.minimum(counts, middle[owner]), minlength=groups)
        fits = l * middle <= kept
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    return low


def eligible_cap(counts: NDArray[np.int64], l: int) -> int:
    """Return the largest c for which the counts, capped at c, are l-eligible: l * c <= sum of min(count, c)."""
    return int(eligible_caps(np.array([0, len(counts)]), counts, l)[0])


def first_of_value(values: NDArray[np.int64], m: int, cap: int) -> NDArray[np.bool_]:
    """Mark the first `cap` records of every value."""
    counts = np.bincount(values, minlength=m)
    if cap >= counts.max(initial=0):
        return np.ones(len(values), np.bool_)
    out = np.empty(len(values), np.bool_)
    out[in_order(values)] = ranges(np.zeros_like(counts), counts) < cap
    return out


def diverse_groups(values: NDArray[np.int64], m: int, l: int) -> tuple[NDArray[np.int64], int]:
    """Run 1-D l-diversity (Ghinita et al. 2007): return the group of every record, and their number.

    Every value has a bucket of its records in curve order. With N records left a bucket of n gives its head if
    n * l > N - l; the heads that come first on the curve fill the group up to l. Fewer than 2l records are the last
    group. The records must be l-eligible, and every group is.
    """
    left = np.bincount(values, minlength=m)
    ranked = in_order(-left)
    place = np.empty(m, np.int64)
    place[ranked] = np.arange(m)
    at_least = np.cumsum(np.bincount(left, minlength=left.max(initial=0) + 2)[::-1])[::-1].copy()
    buckets = Buckets(in_order(values), offsets_of(left)[:-1].copy(), left, ranked, place, at_least)
    groups = np.empty(len(values), np.int64)
    return groups, fill_groups(values, buckets, np.empty(max(m, l), np.int64), groups, l)


def joined_groups(
    groups: NDArray[np.int64], count: int, values: NDArray[np.int64], column: int, rules: Rules
) -> tuple[NDArray[np.int64], int]:
    """Join consecutive groups until they meet the requirements: return the class of every group, and their number.

    What is left over at the end joins as many of the last classes as it takes. No class at all: not even all records
    together are enough.
    """
    of, found = join_groups(in_order(groups), offsets_of(np.bincount(groups, minlength=count)), values, column, rules)
    return of, found
