"""The checks of models on published sets, on sets whose members are shuffled rows, and on suppressed people as one
set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Check, Evidence, Model
from noren.models.verdict import Verdict
from noren.statements import CellBatch, SetCells, Statement

DIGITS = 6
"""To which designs are found whose members are all thought equally likely."""


class SetCheck(Check):
    """Counts something in every published set; keeps the smallest count and the number of records below the
    requirement."""

    def __init__(self, model: Model, statement: Statement, required: float, means: str) -> None:
        super().__init__(model, statement.name)
        self.statement = statement
        self.required = required
        self.means = means
        self.smallest: float | None = None

    def keep_least(self, size: float | None) -> None:
        """Keep the smaller of this size and the smallest so far; None changes nothing."""
        if size is not None:
            self.smallest = size if self.smallest is None else min(self.smallest, size)

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.keep_least(other.smallest)

    def verdict(self) -> Verdict:
        achieved, holds = self.smallest or 0, self.records > 0 and self.breaches == 0
        statement, more = self.means.format(achieved=f"{achieved:.4g}"), {"required": self.required}
        return self.conclude(achieved, holds, "the release alone", self.records, self.breaches, statement, **more)


class SetSizeCheck(SetCheck):
    """Checks that every published set has enough distinct values of the domain.

    In the un-aggregated form (the product of a record's sets) a class for column j takes, from every record that
    falls into it, one row per value of that record's set. A value therefore comes at most once per record, and its
    share is at most records / sum of set sizes <= 1 / (smallest set): Theorem 2 for sets of any sizes. The
    smallest set is thus a lower bound of what each class achieves, and exact for a class of one record.
    """

    def observe(self, batch: CellBatch) -> None:
        sets, times = self._sets(self.statement.check_cells(batch[self.column]))
        if not len(sets):
            return
        sizes = self._sizes(sets)
        self.records += int(times.sum())
        self.breaches += int(times[sizes < self.required - 1e-9].sum())
        self.keep_least(sizes.min().item())

    def _sets(self, cells: SetCells) -> tuple[SetCells, NDArray[np.int64]]:
        """Return sets with their numbers of records."""
        return cells.weigh_sets()

    def _sizes(self, sets: SetCells) -> NDArray:
        return self.statement.different(sets)


class EvenSetCheck(SetSizeCheck):
    """A size check that also reports the largest belief in a member under a uniform prior.

    A set whose members the published design makes unequally likely counts for as many values as the reciprocal of the
    largest belief in one.
    """

    def _is_even(self) -> bool:
        design = self.statement.design
        return design is None or design.is_even

    def _sets(self, cells: SetCells) -> tuple[SetCells, NDArray[np.int64]]:
        return cells.weigh_sets() if self._is_even() else cells.count_sets()

    def _sizes(self, sets: SetCells) -> NDArray:
        sizes = self.statement.different(sets)
        if self._is_even():
            return sizes
        beliefs = largest_beliefs(self.statement, sets, self.statement.values_per_record)
        alone = np.divide(1.0, beliefs, out=np.asarray(sizes, np.float64), where=beliefs > 0)
        return np.minimum(sizes, np.round(alone, DIGITS))


def largest_beliefs(statement: Statement, sets: SetCells, eta: int) -> NDArray[np.float64]:
    """Return for every set the belief in its likeliest member under a uniform prior; 0 if the published design never
    draws such a set."""
    if eta != statement.values_per_record or statement.design is None:
        return np.zeros(len(sets))
    likely = statement.likelihood(sets)
    if likely is None:
        return np.zeros(len(sets))
    weights = likely.weight.reshape(len(sets), eta)
    total = weights.sum(axis=1) + likely.floor * (statement.d - eta)
    return np.asarray(np.divide(weights.max(axis=1), total, out=np.zeros(len(sets)), where=total > 0))


class CodesCheck(Check):
    """Counts how often every value of the domain is published."""

    def __init__(self, model: Any, statement: Statement) -> None:
        super().__init__(model, statement.name)
        self.statement = statement
        self.seen = np.zeros(statement.d, np.int64)

    def observe(self, batch: CellBatch) -> None:
        self.seen += np.bincount(self.statement.check_cells(batch[self.column]), minlength=len(self.seen))

    def merge(self, other: Self) -> None:
        self.seen += other.seen


class ValuesCheck(CodesCheck):
    """Gathers the different values of one class and counts something in them."""

    def __init__(
        self,
        model: Model,
        statement: Statement,
        count: Callable[[NDArray[np.int64]], int],
        required: float,
        means: str,
    ) -> None:
        super().__init__(model, statement)
        self.count = count
        self.required = required
        self.means = means

    def verdict(self) -> Verdict:
        records, achieved = int(self.seen.sum()), self.count(np.flatnonzero(self.seen))
        holds = records > 0 and achieved >= self.required
        statement, breaches = self.means.format(achieved=achieved), 0 if holds else records
        return self.conclude(achieved, holds, "the original", records, breaches, statement, required=self.required)


TOLERANCE = 1e-6
"""To which a design of least belief is found."""
UNDECLARED = "the design of the sets is not declared, so beliefs cannot be computed"


class Separating(Model):
    """A requirement under which the values of a published set are far apart, and no belief in one is too large."""

    separates: ClassVar[bool] = True
    most: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description=(
            "Largest belief in one value of a set, for somebody who thinks all values equally likely; 1/l by default."
        ),
    )

    @property
    def most_belief(self) -> float:
        return 1 / self.required if self.most is None else self.most

    def with_belief(self, verdict: Verdict, seen: float, design: float | None) -> Verdict:
        """Return the verdict with the largest belief in one value, over the observed sets and over all possible
        ones."""
        worst = max(seen, design or 0.0)
        text = (
            f"{verdict.statement}; somebody who thinks all values equally likely believes no value of a set with more "
            f"than {worst:.4g}"
        )
        verdict = replace(verdict, basis="the published design")
        if worst <= self.most_belief * (1 + TOLERANCE):
            return replace(verdict, statement=text)
        text += f", where {self.most_belief:.4g} was asked"
        return replace(verdict, statement=text, holds=False, breaches=verdict.breaches or verdict.records)


class SeparationCheck(SetCheck):
    """Looks in each set for l pairwise compatible members and for the likeliest member, directly from the
    definition."""

    model: Separating

    def __init__(
        self, model: Separating, statement: Statement, compatible: NDArray[np.bool_], required: int, means: str
    ) -> None:
        super().__init__(model, statement, required, means)
        self.compatible = compatible
        self.size = required
        self.belief = 0.0

    def observe(self, batch: CellBatch) -> None:
        cells: SetCells = self.statement.check_cells(batch[self.column])
        if not len(cells):
            return
        self.records += len(cells)
        sets, times = cells.count_sets()
        sizes = sets.sizes()
        for eta in np.unique(sizes).tolist():
            members = sizes == eta
            part = sets.take(np.flatnonzero(members))
            found = largest_separated(part.codes(eta), self.compatible, self.size)
            beliefs = largest_beliefs(self.statement, part, eta)
            above = beliefs > self.model.most_belief * (1 + TOLERANCE)
            self.keep_least(int(found.min()))
            self.belief = max(self.belief, float(beliefs.max(initial=0.0)))
            self.breaches += int(times[members][(found < self.size) | above].sum())

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.belief = max(self.belief, other.belief)

    def verdict(self) -> Verdict:
        design, verdict = self.statement.design, super().verdict()
        if design is None:
            holds = None if verdict.holds else False
            return replace(verdict, holds=holds, statement=f"{verdict.statement}; {UNDECLARED}")
        return self.model.with_belief(verdict, self.belief, design.worst_belief())


def largest_separated(codes: NDArray, compatible: NDArray[np.bool_], enough: int) -> NDArray[np.int64]:
    """Return for each set the size of its largest mutually compatible subset, up to `enough`."""
    eta = codes.shape[1]
    out = np.minimum(np.ones(len(codes), np.int64), eta)
    for size in range(2, min(eta, enough) + 1):
        found = np.zeros(len(codes), bool)
        for chosen in combinations(range(eta), size):
            good = np.ones(len(codes), bool)
            for i, j in combinations(chosen, 2):
                good &= compatible[codes[:, i], codes[:, j]]
            found |= good
        out[found] = size
    return out


class MemberCheck(Check):
    """Checks rows that each hold one member of a person's set, if nothing links the rows of a person.

    People who agree in all other published columns share a class of n times l rows. For every one of them the class
    must hold l values far apart, so: each value of the class lies in a set of l mutually compatible values of the
    class; no value comes more often than there are people; and the rows divide into people.

    Where several secrets are published member by member, a person has a row for every combination. The members of the
    others are then among the columns in which rows agree: whoever knows another secret, or guesses it, must find l
    values as well, and rows that do not make whole combinations are seen.
    """

    model: Separating

    def __init__(
        self,
        model: Separating,
        statement: Statement,
        evidence: Evidence,
        compatible: NDArray[np.bool_],
        size: int,
        means: str,
    ) -> None:
        super().__init__(model, statement.name)
        self.statement = statement
        secrets = [one for one in evidence.columns.values() if one.rows_per_record > 1 and one.name != statement.name]
        self.others = [*(evidence.columns[name] for name in evidence.exact_columns()), *secrets]
        self.secrets = [f"k{number}" for number, other in enumerate(self.others) if other.rows_per_record > 1]
        self.combinations = prod(one.rows_per_record for one in secrets)
        self.needs = (statement.name, *(other.name for other in self.others))
        self.compatible = compatible
        self.size = size
        self.rows_each = statement.rows_per_record
        self.means = means
        self._parts: list[Any] = []

    def observe(self, batch: CellBatch) -> None:
        import polars as pl

        values = self.statement.check_cells(batch[self.column])
        keys = {f"k{number}": _alike(other, batch) for number, other in enumerate(self.others)}
        self._parts.append(pl.DataFrame({**keys, "v": values}))

    def merge(self, other: MemberCheck) -> None:
        self._parts += other._parts

    def verdict(self) -> Verdict:
        import polars as pl

        rows = pl.concat(self._parts) if self._parts else pl.DataFrame({"v": []})
        frame = rows.with_columns(all=pl.lit(0))
        keys = [name for name in frame.columns if name != "v"]
        apart = [key for key in keys if key not in self.secrets]
        counts = frame.group_by([*keys, "v"]).len("times").sort("v")
        classes = counts.group_by(keys).agg(pl.col("v"), pl.col("times").sum().alias("rows"), pl.col("times").max())
        people = classes["rows"].to_numpy() / self.rows_each
        fits = (classes["rows"].to_numpy() % self.rows_each == 0) & (classes["times"].to_numpy() <= people)
        distinct = classes.with_columns(key=pl.col("v").list.eval(pl.element().cast(pl.String)).list.join(","))
        judged = {
            key: count_compatible([int(code) for code in key.split(",")], self.compatible, self.size)
            for key in distinct["key"].unique().to_list()
        }
        worst = min(self.rows_each, *judged.values()) if judged else 0
        enough = np.array([min(judged[key], self.rows_each) for key in distinct["key"].to_list()], int) >= self.size
        fine = fits & enough
        found = classes.select(apart).with_columns(
            people=pl.Series(people), short=pl.Series(np.where(fine, 0.0, people))
        )
        persons = found.group_by(apart).agg(pl.col("people").sum() / self.combinations, pl.col("short").sum())
        # a person stands in one class for every combination of the other secrets' members, and is counted once
        breaches = int(np.ceil(np.minimum(persons["people"].to_numpy(), persons["short"].to_numpy())).sum())
        records = int(np.ceil(persons["people"].to_numpy()).sum())
        achieved = worst if fits.all() else 0
        design = self.statement.design
        holds, statement = records > 0 and bool(fine.all()), self.means.format(achieved=achieved)
        verdict = self.conclude(achieved, holds, "the release alone", records, breaches, statement, required=self.size)
        return self.model.with_belief(verdict, 0.0, None if design is None else design.worst_belief())


def _alike(other: Statement, batch: CellBatch) -> Any:
    """Return keys that are equal for rows that agree in another column: its value, or which member of a set it
    shows."""
    cells = batch[other.name]
    return other.check_cells(cells) if other.rows_per_record > 1 else other.key(cells)


def count_compatible(values: list[int], compatible: NDArray[np.bool_], enough: int) -> int:
    """Return the largest size, up to `enough`, of a mutually compatible set around every value of the class."""
    inside = compatible[np.ix_(values, values)]
    neighbours = [set(np.flatnonzero(row).tolist()) for row in inside]

    def reach(candidates: set[int], size: int) -> int:
        """Return the size of the largest clique among the candidates, up to `size`."""
        if size == 0 or not candidates:
            return 0
        best = 0
        for one in sorted(candidates):
            best = max(best, 1 + reach({c for c in candidates & neighbours[one] if c > one}, size - 1))
            if best == size:
                break
        return best

    return min((1 + reach(neighbours[i] - {i}, enough - 1) for i in range(len(values))), default=0)
