"""Models about quasi-sensitive terms, and the one check that serves them.

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

from noren.cells import CellBatch, Cells, TermCells
from noren.errors import ModelDoesNotApply
from noren.models.base import FORM_WORDS, Basis, Check, Evidence, Form, Model, PublishedColumn, Verdict
from noren.models.classes import key_columns, size_of
from noren.schema.knowledge import Knowledge

ROUNDING = 1e-9

Judged = tuple[NDArray, NDArray[np.bool_]]
"""One figure per group, and whether each group satisfies the model."""


@dataclass(frozen=True)
class Beliefs:
    """What the groups of a release reveal: one entry per group."""

    records: NDArray[np.int64]
    table: NDArray[np.float64]
    rounding: float = ROUNDING

    def _column(self, name: str) -> NDArray[np.float64]:
        from noren.kernels import beliefs

        return np.asarray(self.table[:, getattr(beliefs, name)])

    @property
    def peak(self) -> NDArray[np.float64]:
        """The largest belief in one label."""
        return self._column("PEAK")

    @property
    def tail(self) -> NDArray[np.float64]:
        """The beliefs from rank l on, together."""
        return self._column("TAIL")

    @property
    def ratio(self) -> NDArray[np.float64]:
        """The least c that a group satisfies; 0 where nothing is believed."""
        lone = np.where(self.peak > 0, np.inf, 0.0)
        return np.divide(self.peak, self.tail, out=lone, where=self.tail > 0)

    @property
    def euclidean(self) -> NDArray[np.float64]:
        return np.sqrt(self._column("SQUARE"))

    @property
    def moved(self) -> NDArray[np.float64]:
        """Earth mover's distance to the prior, all labels equally far apart."""
        return self._column("MOVED")

    @property
    def euclidean_linked(self) -> NDArray[np.float64]:
        """The same with the beliefs of linked records alone; 0 where there are none."""
        return np.sqrt(self._column("SQUARE_LINKED"))

    @property
    def moved_linked(self) -> NDArray[np.float64]:
        return self._column("MOVED_LINKED")

    @property
    def unlinked(self) -> int:
        """Records that are linked to no label."""
        return int(self.records.sum() - self._column("LINKED").sum())

    @property
    def highest(self) -> float:
        """The largest belief in any label of any group."""
        return float(self.peak.max(initial=0.0))

    @property
    def rise(self) -> float:
        """The largest difference between a belief and its prior (equation 1)."""
        return float(self._column("RISE").max(initial=0.0))

    @property
    def mean_rise(self) -> float:
        """The mean over records of the largest rise in their group."""
        return float((self._column("RISE") * self.records).sum() / max(1, int(self.records.sum())))


class TermModel(Model):
    """A requirement on the labels that groups of records are linked to."""

    forms: ClassVar[tuple[Form, ...]] = ("terms",)
    about: ClassVar[Literal["columns", "classes", "terms"]] = "terms"
    coarsening_preserves: ClassVar[bool] = True
    relative: ClassVar[bool] = False
    """Whether beliefs are compared with the prior."""
    unlinked: Literal["ignore", "prior"] = Field(
        default="ignore", description="What a record that is linked to no label tells: nothing, or the prior."
    )

    @property
    def tail_from(self) -> int:
        """Rank from which beliefs are summed."""
        return 1

    @property
    def needs_prior(self) -> bool:
        return self.relative or self.unlinked == "prior"

    @abstractmethod
    def judged(self, found: Beliefs) -> Judged:
        """One figure per group (smaller is safer), and whether it satisfies the model."""

    @abstractmethod
    def says(self, achieved: float, found: Beliefs) -> str:
        """The statement about the whole release."""

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form != "terms":
            raise self.refuse_form(column)
        if column.knowledge is None:
            raise ModelDoesNotApply(
                f"{self.model} of {column.name!r} needs the knowledge table that links its terms to labels."
            )
        keys = [evidence.columns[name] for name in evidence.quasi_identifiers()]
        if not keys:
            raise self.refuse_form(column, " beside no quasi-identifier")
        for key in keys:
            if key.form in ("set", "member", "terms"):
                raise ModelDoesNotApply(
                    f"column {key.name!r} is {FORM_WORDS[key.form]}, so nobody can say which records look alike.",
                    hint="Groups need every quasi-identifier published exactly or generalised.",
                )
            if key.form != "open":
                size_of(key)
        return TermCheck(self, column, keys, evidence)


class TermCheck(Check):
    """Gathers groups and terms, then judges every group."""

    def __init__(
        self, model: TermModel, column: PublishedColumn, keys: list[PublishedColumn], evidence: Evidence
    ) -> None:
        super().__init__(column.name)
        self.model = model
        self.keys = keys
        assert column.knowledge is not None
        self.knowledge: Knowledge = column.knowledge
        self.joint = [other for other in evidence.columns.values() if other.knowledge is column.knowledge]
        self.overall = evidence.overall.get(column.name)
        self.needs = tuple(dict.fromkeys(one.name for one in (*keys, *self.joint)))
        self._keys: list[Any] = []
        self._terms: list[TermCells] = []

    def observe(self, cells: Cells) -> None:
        raise ModelDoesNotApply(f"column {self.column!r} is judged together with the quasi-identifiers beside it.")

    def observe_batch(self, batch: CellBatch) -> None:
        import polars as pl

        found = key_columns(self.keys, batch)
        self._keys.append(pl.DataFrame({f"k{i}": part for i, part in enumerate(found)}))
        self._terms.append(linked_terms([(one, batch[one.name]) for one in self.joint], self.knowledge))

    def beliefs(self) -> tuple[Beliefs, Basis]:
        """What all groups reveal, and what the prior rests on."""
        from noren.kernels import beliefs as kernel

        cells = TermCells.concat(self._terms)
        order, bounds = _groups(self._keys)
        knowledge = self.knowledge
        weights = knowledge.label_weights
        basis: Basis = "the release alone"
        if knowledge.priors is not None:
            alpha = knowledge.priors
        elif self.overall is not None:
            alpha, basis = self.overall.shares, self.overall.basis
        else:
            alpha = kernel.mean_beliefs(cells.offsets, cells.data, knowledge.bits, weights)
            basis = "an estimate from the release"
        model = self.model
        table = kernel.group_beliefs(
            order, bounds, cells.offsets, cells.data, knowledge.bits, weights, np.asarray(alpha, np.float64),
            model.unlinked == "prior", model.tail_from,
        )  # fmt: skip
        return Beliefs(np.diff(bounds), table), basis

    def verdict(self) -> Verdict:
        model = self.model
        if not self._terms or not sum(map(len, self._terms)):
            words = "there are no records"
            return Verdict(model.model, self.column, model.required, 0.0, False, "the release alone", 0, 0, words)
        found, basis = self.beliefs()
        figures, good = model.judged(found)
        achieved = float(figures.max(initial=0.0))
        statement = model.says(achieved, found)
        breaches = int(found.records[~good].sum())
        holds: bool | None = breaches == 0
        if not model.needs_prior:
            basis = "the release alone"
        if basis == "an estimate from the release":
            holds = None
            statement += "; the prior was estimated from what is published, which says less than the original: give "
            statement += "the original, or priors in the knowledge table"
        if found.unlinked:
            statement += f"; {found.unlinked} records are linked to no label"
        return Verdict(
            model=model.model,
            column=self.column,
            required=model.required,
            achieved=achieved,
            holds=holds,
            basis=basis,
            records=int(found.records.sum()),
            breaches=breaches,
            statement=statement,
            short=int((~good).sum()),
        )


def linked_terms(parts: list[tuple[PublishedColumn, Cells]], knowledge: Knowledge) -> TermCells:
    """The terms of all columns that are read together, as codes of the knowledge; -1 for terms that it lacks."""
    records, codes = [], []
    n = 0
    for column, cells in parts:
        checked = checked_terms(column, cells)
        place = knowledge.encode(column.terms)
        records.append(checked.owner)
        codes.append(place[checked.data])
        n = len(checked)
    d = len(knowledge.terms) + 1
    joined = TermCells.from_entries(d, n, np.concatenate(records), np.concatenate(codes) + 1)
    return TermCells(d, joined.offsets, joined.data - np.int32(1))


def checked_terms(column: PublishedColumn, cells: Cells) -> TermCells:
    """The cells as sets of terms of the column. A check does not take that on trust."""
    sound = isinstance(cells, TermCells) and cells.d == column.d == len(column.terms)
    if not sound or not isinstance(cells, TermCells):
        raise ModelDoesNotApply(f"column {column.name!r} does not hold sets over its {column.d} terms.")
    ends = cells.offsets[[0, -1]].tolist() if len(cells.offsets) else []
    if (np.diff(cells.offsets) < 0).any() or ends != [0, len(cells.data)]:
        raise ModelDoesNotApply(f"column {column.name!r} does not hold whole sets of terms.")
    if len(cells.data) and not (cells.data.min() >= 0 and cells.data.max() < cells.d):
        raise ModelDoesNotApply(f"column {column.name!r} holds a term outside its {column.d} terms.")
    return cells


def _groups(keys: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The records of every group, one group after the other, and where each begins."""
    import polars as pl

    table = pl.concat(keys).with_row_index("row")
    found = table.group_by([name for name in table.columns if name != "row"]).agg(pl.col("row"))["row"]
    order = found.explode().to_numpy().astype(np.int64)
    return order, np.concatenate(([0], np.cumsum(found.list.len().to_numpy()))).astype(np.int64)
