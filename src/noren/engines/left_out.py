"""The check of suppressed people: somebody with a list of the members sees who is missing.

The people whom a method leaves out are a class like any other, only that nothing is published of it. So they are
judged like one, by the models' own checks and on the original: there are none, or together they meet everything that is
required. A random sample is exempt: chance alone says who is missing from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.engines.records import Records, priors
from noren.engines.table import Table
from noren.models.base import Evidence, Judgement, Model, Overall
from noren.models.verdict import Verdict
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CellBatch, Cells, CodeCells, ExactStatement, Statement, TermsStatement
from noren.statements.batch import PERSON

LEFT_OUT = "left-out"
"""What the verdict about them is called."""
_ABSENT = "\0absent"
"""The name of a column that is the same for all of them."""


@dataclass(frozen=True)
class Members:
    """All people of a table, and the requirements on those who are suppressed."""

    records: Records
    requirements: Sequence[Model]
    people: NDArray[np.int64] | None = None
    """Whose every record is; None where each is a person's own."""

    @classmethod
    def of(cls, table: Table) -> Members:
        """Return all columns of classes and all requirements, also those of another method."""
        whole = table.whole or table
        return cls(whole.records, whole.requirements, table.people)

    def taken(self, rows: NDArray[np.int64]) -> Members:
        """Return the same people with their records in another order."""
        return replace(
            self, records=self.records.taken(rows), people=None if self.people is None else self.people[rows]
        )

    def holds(self, out: NDArray[np.bool_]) -> bool:
        """Return whether these records are none, or together meet every requirement."""
        return not out.any() or all(verdict.holds is True for verdict in self.judged(out))

    def verdict(self, out: NDArray[np.bool_]) -> Verdict:
        """Return one verdict about everybody who is suppressed, without a figure."""
        found = self.judged(out)
        short = [verdict for verdict in found if verdict.holds is not True]
        count = self.count(out)
        text = f"the {count:,} suppressed people meet every requirement as one class"
        if short:
            named = "; ".join(f"{one.model} on {one.column!r}: {one.statement}" for one in short)
            text = f"the {count:,} suppressed people fail as one class: {named}"
        return Verdict(
            model=LEFT_OUT,
            column="all columns",
            required=1.0,
            achieved=1.0 - len(short) / max(1, len(found)),
            holds=not short,
            basis="the original",
            records=count,
            breaches=count if short else 0,
            statement=text,
        )

    def count(self, out: NDArray[np.bool_]) -> int:
        """Return how many people these records are."""
        return int(out.sum()) if self.people is None else len(np.unique(self.people[out]))

    def judged(self, out: NDArray[np.bool_]) -> list[Verdict]:
        """Check every requirement on these records as one class."""
        rows = np.flatnonzero(out)
        return [verdict for model in self.requirements for verdict in self._judged(model, rows)]

    def _judged(self, model: Model, rows: NDArray[np.int64]) -> list[Verdict]:
        if not model.judges_left_out:
            return []
        columns, cells = self._class(model, rows)
        evidence = Evidence(columns, self._overall, self.people is not None)
        judgement = Judgement(model.left_out_checks(evidence))
        judgement.observe(cells)
        return judgement.verdicts()

    def _class(self, model: Model, rows: NDArray[np.int64]) -> tuple[Mapping[str, Statement], CellBatch]:
        """Return the published table of a class that is equal in everything except the required columns."""
        columns: dict[str, Statement] = {_ABSENT: _alike(_ABSENT)}
        cells: dict[str, Cells] = {_ABSENT: CodeCells(1, np.zeros(len(rows), np.uint8))}
        if model.about == "terms":
            for name, found in self.records.terms.items():
                columns[name] = TermsStatement(found.column)
                cells[name] = found.cells.take(rows)
        for name in model.on if model.about != "terms" else ():
            if model.about == "classes":
                columns[name], cells[name] = _alike(name), cells[_ABSENT]
                continue
            column = self.records.columns[name]
            columns[name] = ExactStatement(column.over(name, column.domain, role=Role.SENSITIVE))
            cells[name] = CodeCells(column.d, self.records.codes[name][rows])
        if self.people is not None:
            cells[PERSON] = CodeCells(int(self.people.max(initial=0)) + 1, self.people[rows])
        return columns, cells

    @cached_property
    def _overall(self) -> dict[str, Overall]:
        """Return the overall distribution, for models that compare with it."""
        each = None
        if self.people is not None:
            each = 1.0 / np.bincount(self.people)[self.people]
        asked = {name for model in self.requirements for name in model.on if model.relative}
        out = priors(self.records)
        for name in asked & self.records.columns.keys():
            mass = np.bincount(self.records.codes[name], each, minlength=self.records.columns[name].d)
            out[name] = Overall(mass / max(1.0, float(mass.sum())), "the original")
        return out


def _alike(name: str) -> Statement:
    """Return a quasi-identifier in which all records are equal."""
    return ExactStatement(Column(role=Role.QUASI_IDENTIFIER).over(name, Domain(("*",))))
