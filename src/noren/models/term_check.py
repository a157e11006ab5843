"""Models about quasi-sensitive terms, and their common check.

A group is all records that agree in every quasi-identifier, as published. Its records' terms are linked to labels by
the knowledge table; set-valued columns with one and the same knowledge are read together, as an adversary would.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.models import kernels
from noren.models.base import Check, Evidence, Model, Need
from noren.models.classes import class_keys, key_columns
from noren.models.verdict import Basis, Verdict
from noren.schema.knowledge import Knowledge
from noren.statements import CellBatch, Cells, Statement, TermCells

ROUNDING = 1e-9

Judged = tuple[NDArray, NDArray[np.bool_]]
"""One figure per group, and whether each group satisfies the model."""


@dataclass(frozen=True)
class Beliefs:
    """The beliefs in the groups of a release: one entry per group."""

    records: NDArray[np.int64]
    table: NDArray[np.float64]
    rounding: float = ROUNDING

    def _column(self, name: str) -> NDArray[np.float64]:
        return self.table[:, getattr(kernels, name)]

    @property
    def peak(self) -> NDArray[np.float64]:
        """Return the largest belief in one label."""
        return self._column("PEAK")

    @property
    def tail(self) -> NDArray[np.float64]:
        """Return the sum of beliefs from rank l on."""
        return self._column("TAIL")

    @property
    def ratio(self) -> NDArray[np.float64]:
        """Return the smallest c that a group satisfies; 0 if no label is believed."""
        lone = np.where(self.peak > 0, np.inf, 0.0)
        return np.divide(self.peak, self.tail, out=lone, where=self.tail > 0)

    @property
    def euclidean(self) -> NDArray[np.float64]:
        return np.sqrt(self._column("SQUARE"))

    @property
    def moved(self) -> NDArray[np.float64]:
        """Return the earth mover's distance to the prior, with equal distances between labels."""
        return self._column("MOVED")

    @property
    def euclidean_linked(self) -> NDArray[np.float64]:
        """Return the distance among linked records only; 0 if there are none."""
        return np.sqrt(self._column("SQUARE_LINKED"))

    @property
    def moved_linked(self) -> NDArray[np.float64]:
        return self._column("MOVED_LINKED")

    @property
    def unlinked(self) -> int:
        """Return the number of records without a possible label."""
        return int(self.records.sum() - self._column("LINKED").sum())

    @property
    def highest(self) -> float:
        """Return the largest belief in any label of any group."""
        return float(self.peak.max(initial=0.0))

    @property
    def rise(self) -> float:
        """Return the largest difference between a belief and its prior (equation 1)."""
        return float(self._column("RISE").max(initial=0.0))


class TermModel(Model):
    """A requirement on the beliefs in labels of groups of records."""

    about: ClassVar[Literal["columns", "classes", "terms", "release"]] = "terms"
    coarsening_preserves: ClassVar[bool] = True
    higher_is_safer: ClassVar[bool] = False
    together: ClassVar[bool] = True
    unlinked: Literal["ignore", "prior"] = Field(
        default="ignore", description="Belief about a record that is linked to no label: none, or the prior."
    )

    @property
    def tail_from(self) -> int:
        """Return the rank from which beliefs are summed."""
        return 1

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"knowledge", "prior"} if self.relative or self.unlinked == "prior" else {"knowledge"})

    @abstractmethod
    def judge_beliefs(self, found: Beliefs) -> Judged:
        """Return one figure per group (smaller is safer), and whether it satisfies the model."""

    @abstractmethod
    def says(self, achieved: float, found: Beliefs) -> str:
        """Return the statement about the whole release."""

    def judge_terms(self, statement: Statement, evidence: Evidence) -> Check:
        if not isinstance(statement.column.knowledge, Knowledge):
            raise ModelDoesNotApply(
                f"{self.model} of {statement.name!r} needs the knowledge table that links its terms to labels."
            )
        names = evidence.quasi_identifiers()
        if not names:
            raise self.refuses(statement, " beside no quasi-identifier")
        return TermCheck(self, statement, class_keys(evidence, names), evidence)


class TermCheck(Check):
    """Gathers groups and terms, then checks every group."""

    def __init__(self, model: TermModel, column: Statement, keys: list[Statement], evidence: Evidence) -> None:
        super().__init__(model, column.name)
        self.keys = keys
        self.knowledge: Knowledge = column.column.known
        self.joint = [other for other in evidence.columns.values() if other.column.knowledge is self.knowledge]
        self.overall = evidence.overall.get(column.name)
        self.needs = tuple(dict.fromkeys(one.name for one in (*keys, *self.joint)))
        self._keys: list[Any] = []
        self._terms: list[TermCells] = []

    def observe(self, batch: CellBatch) -> None:
        import polars as pl

        found = key_columns(self.keys, batch)
        self._keys.append(pl.DataFrame({f"k{i}": part for i, part in enumerate(found)}))
        self._terms.append(linked_terms([(one, batch[one.name]) for one in self.joint], self.knowledge))

    def merge(self, other: TermCheck) -> None:
        self._keys += other._keys
        self._terms += other._terms

    def beliefs(self) -> tuple[Beliefs, Basis]:
        """Return the beliefs of all groups, and the basis of the prior."""
        cells = TermCells.concat(self._terms)
        order, bounds = _groups(self._keys)
        knowledge = self.knowledge
        basis: Basis = "the release alone"
        if knowledge.priors is not None:
            alpha = knowledge.priors
        elif self.overall is not None:
            alpha, basis = self.overall.shares, self.overall.basis
        else:
            alpha = kernels.mean_beliefs(cells.offsets, cells.data, *knowledge.links)
            basis = "an estimate from the release"
        model = self.model
        table = kernels.group_beliefs(
            order, bounds, cells.offsets, cells.data, *knowledge.links,
            np.asarray(alpha, np.float64), model.unlinked == "prior", model.tail_from,
        )  # fmt: skip
        return Beliefs(np.diff(bounds), table), basis

    def verdict(self) -> Verdict:
        model = self.model
        if not self._terms or not sum(map(len, self._terms)):
            return self.conclude(0.0, False, "the release alone", 0, 0, "there are no records")
        found, basis = self.beliefs()
        figures, good = model.judge_beliefs(found)
        achieved = float(figures.max(initial=0.0))
        statement = model.says(achieved, found)
        breaches = int(found.records[~good].sum())
        holds: bool | None = breaches == 0
        if "prior" not in model.needs:
            basis = "the release alone"
        if basis == "an estimate from the release":
            holds = None
            statement += (
                "; the prior was estimated from the published cells, which are less precise than the original: give "
            )
            statement += "the original, or priors in the knowledge table"
        if found.unlinked:
            statement += f"; {found.unlinked} records are linked to no label"
        records, short = int(found.records.sum()), int((~good).sum())
        return self.conclude(achieved, holds, basis, records, breaches, statement, short=short)


def linked_terms(parts: list[tuple[Statement, Cells]], knowledge: Knowledge) -> TermCells:
    """Return the terms of all columns with a common knowledge table, as codes of the table; -1 for unknown terms."""
    records, codes = [], []
    n = 0
    for column, cells in parts:
        checked: TermCells = column.check_cells(cells)
        place = knowledge.encode(column.domain.values)
        records.append(checked.owner)
        codes.append(place[checked.data])
        n = len(checked)
    d = len(knowledge.terms) + 1
    joined = TermCells.from_entries(d, n, np.concatenate(records), np.concatenate(codes) + 1)
    return TermCells(d, joined.offsets, joined.data - np.int32(1))


def _groups(keys: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the records of every group one after the other, and the offsets."""
    import polars as pl

    table = pl.concat(keys).with_row_index("row")
    found = table.group_by([name for name in table.columns if name != "row"]).agg(pl.col("row"))["row"]
    order = found.explode().to_numpy().astype(np.int64)
    return order, np.concatenate(([0], np.cumsum(found.list.len().to_numpy()))).astype(np.int64)
