"""The cell is a set of values, and the truth is (usually) one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.cells.batch import Cells
from noren.cells.design import Design
from noren.cells.set_cells import SetCells
from noren.cells.statement import Judge, Likelihood, ReadDesign, Statement
from noren.cells.texts import AGAIN, codes_in, json_lists, lists_of, parsed_lists
from noren.errors import ReleaseError
from noren.schema.column import Column


@dataclass(frozen=True, eq=False)
class DrawnStatement(Statement):
    """What sets and their members have in common: a published design drew them around the truth."""

    drawn: Design

    hides: ClassVar[bool] = True

    @property
    def design(self) -> Design:
        return self.drawn

    def published(self) -> dict[str, Any]:
        return {"design": self.drawn.model_dump(mode="json")}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        cls.demand(fields, "design")
        found = design(fields["design"])
        if found.d != column.d:
            raise ValueError("the design is not over the values")
        return cls(column, found)


@dataclass(frozen=True, eq=False)
class SetStatement(DrawnStatement):
    """One of these: eta values, drawn around the truth by a published design."""

    form: ClassVar[str] = "set"
    words: ClassVar[str] = "published as sets"

    @property
    def eta(self) -> int:
        return self.drawn.eta

    @property
    def description(self) -> str:
        return f"a set of {self.eta} of {self.d} {self.domain.called}"

    @property
    def values_per_record(self) -> int:
        return self.eta

    @property
    def kinds(self) -> None:
        return None

    def likelihood(self, cells: Any) -> Likelihood:
        if (self.checked(cells).sizes() != self.eta).any():
            raise self.disagrees(f"has sets that do not hold the {self.eta} values its design prescribes.")
        sets = cells.codes(self.eta).astype(np.int64)
        bounds = np.arange(len(sets) + 1) * self.eta
        return Likelihood(bounds, sets.ravel(), self.drawn.member_weights(sets).ravel(), self.drawn.floor)

    def spread(self, cells: Cells) -> NDArray[np.int64]:
        """The values of the set, or all where a set may lack the truth and so rules nothing out."""
        sizes = self.checked(cells).sizes()
        return np.full(len(sizes), self.d) if self.drawn.floor > 0 else np.asarray(sizes, np.int64)

    def different(self, cells: Cells) -> NDArray[np.int64]:
        """How many different values each set holds; of tuples the least that holds of a member which must differ."""
        sets = self.checked(cells)
        sizes = np.asarray(sets.sizes(), np.int64)
        if not self.domain.views or not len(sizes):
            return sizes
        distinct, of = sets.distinct()
        wide = np.asarray(distinct.sizes(), np.int64)
        out = wide.copy()
        for size in np.unique(wide).tolist():
            rows = np.flatnonzero(wide == size)
            codes = distinct.take(rows).codes(size)
            for view in self.domain.views:
                parts = np.sort(view[codes], axis=1)
                out[rows] = np.minimum(out[rows], 1 + (parts[:, 1:] != parts[:, :-1]).sum(axis=1))
        return out[of]

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        if self.drawn.floor > 0:
            return np.ones(len(cells), bool)
        return self.inside(cells, truth)

    def inside(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        """Whether each set contains its record's truth."""
        return self.checked(cells).contains(truth)

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        return self.checked(cells).inclusions()

    def position(self, cells: Cells) -> NDArray[np.float64]:
        return np.asarray(self.checked(cells).codes(self.eta).mean(axis=1))

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_sets(self, evidence)

    def checked(self, cells: Any) -> SetCells:
        if not isinstance(cells, SetCells) or cells.d != self.d:
            raise self.disagrees(f"does not hold sets over its {self.d} values.")
        if not len(cells):
            return cells
        if int(cells.data.max()) >> self.d if cells.is_mask else int(cells.data.max()) >= self.d:
            raise self.disagrees("holds a value outside its domain.")
        if not cells.is_mask and (cells.data[:, 1:] <= cells.data[:, :-1]).any():
            raise self.disagrees("holds a set that repeats a value or is out of order.")
        return cells

    def _offsets(self, cells: Any) -> NDArray[np.int32]:
        return np.arange(len(cells) + 1, dtype=np.int32) * self.eta

    def to_arrow(self, cells: Any) -> Any:
        return lists_of(self.domain, cells.codes(self.eta).ravel(), self._offsets(cells))

    def to_csv(self, cells: Any) -> Any:
        return json_lists(self.domain, cells.codes(self.eta).ravel(), self._offsets(cells))

    def from_csv(self, column: Any) -> Cells:
        return self.from_arrow(parsed_lists(self.name, self.domain.kind, column))

    def from_arrow(self, column: Any) -> Cells:
        import pyarrow as pa

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise ReleaseError(f"column {self.name!r} should hold sets and does not.", hint=AGAIN)
        offsets = column.offsets.to_numpy()
        if column.null_count or not np.array_equal(offsets, offsets[0] + np.arange(len(column) + 1) * self.eta):
            raise ReleaseError(f"column {self.name!r} has a cell that does not hold {self.eta} values.", hint=AGAIN)
        flat = codes_in(self.name, self.domain, column.flatten()).reshape(len(column), self.eta)
        if self.eta > 1 and len(flat) and not (flat[:, 1:] > flat[:, :-1]).all():
            message = f"column {self.name!r} has a set that repeats a value or is not in domain order."
            raise ReleaseError(message, hint=AGAIN)
        return SetCells.from_codes(self.d, flat)

    @property
    def texts_path(self) -> str | None:
        return f"{self.name}.list.element" if self.domain.kind == "string" else None

    def field(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": "array",
            "constraints": {"minLength": self.eta, "maxLength": self.eta, "required": True},
            "description": f"A set of {self.eta} possible {self.domain.called}, in domain order.",
            "arrayItem": {"type": self.domain.kind},
        }
