"""Checks of releases in which each row holds one member of a person's set and nothing ties the rows together.

People who agree in all other published columns share a class of n times l rows. For every one of them the class must
hold l values far apart, so: each value of the class lies in a set of l mutually compatible values of the class; no
value comes more often than there are people; and the rows divide into people.

Where several secrets are published member by member, a person has a row for every combination. The members of the
others are then among the columns in which rows agree: whoever knows another secret, or guesses it, must find l values
as well, and rows that do not make whole combinations are seen.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.models.base import Check, Evidence
from noren.models.separation import Separating
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement


class MemberCheck(Check):
    """Collects the rows' class keys and values, and judges class by class."""

    def __init__(
        self,
        model: Separating,
        statement: Statement,
        evidence: Evidence,
        compatible: NDArray[np.bool_],
        size: int,
        means: str,
    ) -> None:
        super().__init__(statement.name)
        self.model = model
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

        values = self.statement.checked(batch[self.column])
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
            key: partnered([int(code) for code in key.split(",")], self.compatible, self.size)
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
        verdict = Verdict(
            model=self.model.model,
            column=self.column,
            required=self.size,
            achieved=achieved,
            holds=records > 0 and bool(fine.all()),
            basis="the release alone",
            records=records,
            breaches=breaches,
            statement=self.means.format(achieved=achieved),
        )
        return self.model.believed(verdict, 0.0, None if design is None else design.worst_belief())


def _alike(other: Statement, batch: CellBatch) -> Any:
    """Equal for rows that agree in another column: its value, or which member of a set it shows."""
    cells = batch[other.name]
    return other.checked(cells) if other.rows_per_record > 1 else other.key(cells)


def partnered(values: list[int], compatible: NDArray[np.bool_], enough: int) -> int:
    """The largest size, up to `enough`, of a mutually compatible set that every value of the class belongs to."""
    inside = compatible[np.ix_(values, values)]
    neighbours = [set(np.flatnonzero(row).tolist()) for row in inside]

    def reach(candidates: set[int], size: int) -> int:
        """Size of the largest clique among the candidates, looked for up to `size`."""
        if size == 0 or not candidates:
            return 0
        best = 0
        for one in sorted(candidates):
            best = max(best, 1 + reach({c for c in candidates & neighbours[one] if c > one}, size - 1))
            if best == size:
                break
        return best

    return min((1 + reach(neighbours[i] - {i}, enough - 1) for i in range(len(values))), default=0)
