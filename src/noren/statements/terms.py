"""The cell is a set of terms, all of them true; terms may have been left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError, ReleaseError
from noren.schema.column import Column
from noren.schema.knowledge import Knowledge, knowledge_of_rows, knowledge_rows
from noren.statements.batch import Cells
from noren.statements.statement import Judge, ReadDesign, Statement
from noren.statements.term_cells import TermCells
from noren.statements.texts import AGAIN, codes_in, json_lists, lists_of, parsed_lists

TERMS = 32
"""Terms of a record that a batch has room for."""


@dataclass(frozen=True, eq=False)
class TermsStatement(Statement):
    """All of these, and perhaps more. What links them to labels is read from a file of its own."""

    number: int = field(default=1)

    form: ClassVar[str] = "terms"
    words: ClassVar[str] = "published as sets of terms"

    @property
    def description(self) -> str:
        return "as a set of terms; some may have been left out"

    @property
    def kinds(self) -> None:
        return None

    @property
    def values_per_record(self) -> int:
        return TERMS

    @property
    def terms(self) -> tuple[str, ...]:
        return self.domain.values

    @property
    def knowledge(self) -> Knowledge | None:
        """What links the terms to labels. Columns with one and the same knowledge are read together."""
        return self.column.knowledge if isinstance(self.column.knowledge, Knowledge) else None

    def likelihood(self, cells: Cells) -> None:
        return None

    def position(self, cells: Cells) -> NDArray[np.float64]:
        return self.checked(cells).sizes.astype(np.float64)

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        """Whether each record publishes terms that it has, and no others."""
        shown = self.checked(cells)
        width = np.int64(max(1, self.d))
        had, has = truth.owner * width + truth.data, shown.owner * width + shown.data
        place = np.minimum(np.searchsorted(had, has), max(0, len(had) - 1))
        true = had[place] == has if len(had) else np.zeros(len(has), bool)
        return np.bincount(shown.owner, ~true, minlength=len(shown)) == 0

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        """In how many records every term is published."""
        return self.checked(cells).counts()

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_terms(self, evidence)

    def checked(self, cells: Any) -> TermCells:
        if not isinstance(cells, TermCells) or cells.d != self.d:
            raise self.disagrees(f"does not hold sets over its {self.d} terms.")
        ends = cells.offsets[[0, -1]].tolist() if len(cells.offsets) else []
        if (np.diff(cells.offsets) < 0).any() or ends != [0, len(cells.data)]:
            raise self.disagrees("does not hold whole sets of terms.")
        if len(cells.data) and not (cells.data.min() >= 0 and cells.data.max() < cells.d):
            raise self.disagrees(f"holds a term outside its {self.d} terms.")
        return cells

    def to_arrow(self, cells: Any) -> Any:
        return lists_of(self.domain, cells.data, cells.offsets)

    def to_csv(self, cells: Any) -> Any:
        return json_lists(self.domain, cells.data, cells.offsets)

    def from_csv(self, column: Any) -> Cells:
        return self.from_arrow(parsed_lists(self.name, self.domain.kind, column))

    def from_arrow(self, column: Any) -> Cells:
        import pyarrow as pa

        message = f"column {self.name!r} has a cell that is not a set of terms in domain order."
        damaged = ReleaseError(message, hint=AGAIN)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)) or column.null_count:
            raise damaged
        offsets = column.offsets.to_numpy().astype(np.int64)
        flat = column.flatten()
        if flat.null_count:
            raise damaged
        codes = codes_in(self.name, self.domain, flat).astype(np.int32) if len(flat) else np.zeros(0, np.int32)
        cells = TermCells(self.d, offsets - offsets[0], codes)
        first = np.zeros(len(codes) + 1, bool)
        first[cells.offsets] = True
        if not (first[1:-1] | (np.diff(codes) > 0)).all():
            raise damaged
        return cells

    @property
    def texts_path(self) -> str | None:
        return f"{self.name}.list.element"

    def field(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": "array",
            "description": "A set of terms; terms may have been left out to protect people.",
            "arrayItem": {"type": "string"},
        }

    def published(self) -> dict[str, Any]:
        return {"knowledge": self.number}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        cls.demand(fields, "knowledge")
        number = fields["knowledge"]
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 1000:
            raise ValueError("knowledge tables have numbers from 1 on")
        if column.is_open or column.domain.kind != "string":
            raise ValueError("terms are texts")
        return cls(column, number)

    # ------------------------------------------------------------------ the knowledge table

    @property
    def side(self) -> str:
        return f"knowledge-{self.number}"

    def side_title(self, names: Sequence[str]) -> str:
        return f"What links the terms of {', '.join(names)} to labels"

    def side_fields(self) -> list[dict[str, Any]]:
        texts = ("label", "term")
        return [{"name": n, "type": "string" if n in texts else "number"} for n in self.side_columns()]

    def side_columns(self) -> dict[str, Any]:
        import pyarrow as pa

        assert self.knowledge is not None
        return {name: pa.array(cells) for name, cells in knowledge_rows(self.knowledge).items()}

    def read_side(self, columns: Mapping[str, Any]) -> Knowledge:
        import pyarrow as pa

        texts = {name: columns[name].cast(pa.string()).to_pylist() for name in ("label", "term") if name in columns}
        numbers = {name: columns[name].cast(pa.float64()).to_pylist() for name in columns if name not in texts}
        try:
            return knowledge_of_rows(texts | numbers)
        except NorenError:
            raise ValueError("not a knowledge table") from None

    def with_side(self, found: Any) -> TermsStatement:
        return self.over(self.column.met(self.name, self.domain, knowledge=found))
