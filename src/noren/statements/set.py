"""Cells that were drawn: a set of values, a shuffled member of a set, or a value that may be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.errors import ModelDoesNotApply, NorenError, ReleaseError
from noren.schema.column import Column
from noren.statements.batch import Cells
from noren.statements.design import Design
from noren.statements.exact import CodedStatement
from noren.statements.set_cells import NumberedSets, SetCells, code_dtype, look_up_sets, numberable
from noren.statements.statement import Judge, Likelihood, ReadDesign, Statement
from noren.statements.texts import AGAIN, arrow_values, codes_in, json_lists, lists_of, parse_lists

SETS = "sets"
"""The side table of all columns whose sets are kept once."""
SET_KEY = "id"
"""Its column of numbers; a published column of that name, however spelled, keeps its lists."""
NUMBERS = "_set"
"""What the data adds to a column's name where it holds numbers of sets."""


@dataclass(frozen=True, eq=False)
class DrawnStatement(Statement):
    """The base of sets and their members, which a published design drew."""

    drawn: Design

    hides: ClassVar[bool] = True

    @property
    def design(self) -> Design:
        return self.drawn

    def manifest_fields(self) -> dict[str, Any]:
        return {"design": self.drawn.model_dump(mode="json")}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        cls.demand(fields, "design")
        found = design(fields["design"])
        if found.d != column.d:
            raise ValueError("the design does not fit the values")
        return cls(column, found)


@dataclass(frozen=True, eq=False)
class SetsOfValues(Statement):
    """The base of statements whose every cell is a set over the values of the domain."""

    words: ClassVar[str] = "published as sets"
    hides: ClassVar[bool] = True

    @property
    def kinds(self) -> None:
        return None

    def different(self, cells: Cells) -> NDArray[np.int64]:
        """Return how many different values each set has; for tuples the smallest number over members that must
        differ."""
        sets = self.check_cells(cells)
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

    def inside(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        """Return whether each set contains its record's true value."""
        return self.check_cells(cells).contains(truth)

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        return self.check_cells(cells).inclusions()

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_sets(self, evidence)

    def check_cells(self, cells: Any) -> SetCells:
        d = self.d
        if not isinstance(cells, SetCells) or cells.d != d:
            raise self.disagrees(f"does not hold sets over its {d} values.")
        data = cells.catalogue.data
        if not len(data):
            return cells
        if int(data.max()) >> d if cells.is_mask else int(data.max()) >= d:
            raise self.disagrees("holds a value outside its domain.")
        if not cells.is_mask and (data[:, 1:] <= data[:, :-1]).any():
            raise self.disagrees("holds a set that repeats a value or is out of order.")
        return cells


@dataclass(frozen=True, eq=False)
class SetStatement(SetsOfValues, DrawnStatement):
    """Each cell is a set of eta possible values, drawn by a published design.

    In a Parquet file, the `sets` different ones may stand once in a side table and cells be their numbers; `held` is
    read from that table, and None until then.
    """

    sets: int | None = None
    held: SetCells | None = None

    form: ClassVar[str] = "set"

    @property
    def eta(self) -> int:
        return self.drawn.eta

    @property
    def description(self) -> str:
        return f"a set of {self.eta} of {self.d} {self.domain.value_word}"

    @property
    def values_per_record(self) -> int:
        return self.eta

    def members(self, cells: Cells) -> NDArray:
        return np.asarray(self.check_cells(cells).codes(self.eta))

    def likelihood(self, cells: Any) -> Likelihood:
        if (self.check_cells(cells).sizes() != self.eta).any():
            raise self.disagrees(f"has sets that do not hold the {self.eta} values its design prescribes.")
        sets = cells.codes(self.eta).astype(np.int64)
        bounds = np.arange(len(sets) + 1) * self.eta
        return Likelihood(bounds, sets.ravel(), self.drawn.member_weights(sets).ravel(), self.drawn.floor)

    def count_possible(self, cells: Cells) -> NDArray[np.int64]:
        """Return the values of the set, or all values if a set may miss the true one."""
        sizes = self.check_cells(cells).sizes()
        return np.full(len(sizes), self.d) if self.drawn.floor > 0 else np.asarray(sizes, np.int64)

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        if self.drawn.floor > 0:
            return np.ones(len(cells), bool)
        return self.inside(cells, truth)

    def position(self, cells: Cells) -> NDArray[np.float64]:
        return np.asarray(self.check_cells(cells).codes(self.eta).mean(axis=1))

    def _offsets(self, cells: Any) -> NDArray[np.int32]:
        return np.arange(len(cells) + 1, dtype=np.int32) * self.eta

    def to_arrow(self, cells: Any) -> Any:
        return lists_of(self.domain, cells.codes(self.eta).ravel(), self._offsets(cells))

    def to_csv(self, cells: Any) -> Any:
        return json_lists(self.domain, cells.codes(self.eta).ravel(), self._offsets(cells))

    def from_csv(self, column: Any) -> Cells:
        return self.from_arrow(parse_lists(self.name, self.domain.kind, column))

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
        if not (flat[:, 1:] > flat[:, :-1]).all():
            message = f"column {self.name!r} has a set that repeats a value or is not in domain order."
            raise ReleaseError(message, hint=AGAIN)
        return SetCells.from_codes(self.d, flat)

    @property
    def _texts(self) -> str | None:
        return f"{self.name}.list.element" if self.domain.kind == "string" else None

    @property
    def texts_path(self) -> str | None:
        return self._texts if self.sets is None else None

    def field(self) -> dict[str, Any]:
        constraints: dict[str, Any] = {"minLength": self.eta, "maxLength": self.eta, "required": True}
        if self.sets is not None:
            text = f"The number of a set of {self.eta} possible {self.domain.value_word}, under which {SETS} lists it."
            constraints = {"minimum": 0, "maximum": self.sets - 1, "required": True}
            return {"name": self.name, "type": "integer", "constraints": constraints, "description": text}
        return {
            "name": self.name,
            "type": "array",
            "constraints": constraints,
            "description": f"A set of {self.eta} possible {self.domain.value_word}, in domain order.",
            "arrayItem": {"type": self.domain.kind},
        }

    @property
    def parquet_title(self) -> str:
        return self.name if self.sets is None else self.name + NUMBERS

    def manifest_fields(self) -> dict[str, Any]:
        return super().manifest_fields() | ({} if self.sets is None else {"sets": self.sets})

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        found = super().parse(column, {name: one for name, one in fields.items() if name != "sets"}, design)
        assert isinstance(found, SetStatement)
        if "sets" not in fields:
            return found
        sets, eta = fields["sets"], found.eta
        if not isinstance(sets, int) or isinstance(sets, bool) or column.name.casefold() == SET_KEY:
            raise ValueError("sets that are kept once are counted")
        if not numberable(column.d, eta) or not 1 <= sets <= comb(column.d, eta):
            raise ValueError("there are more sets than the values allow")
        return replace(found, sets=sets)

    # ------------------------------------------------------------------ the table of sets

    def written_out(self) -> SetStatement:
        return self.with_table(None)

    def with_table(self, table: SetCells | None) -> SetStatement:
        """Return the same statement whose file holds numbers of sets in this table; without a table, lists."""
        return replace(self, sets=None if table is None else len(table), held=table)

    def to_parquet(self, cells: Any) -> Any:
        import pyarrow as pa

        if self.held is None:
            return self.to_arrow(cells)
        if not isinstance(cells, NumberedSets) or cells.table is not self.held:
            raise self.disagrees("holds sets that are not numbered by its table.")
        return pa.array(np.asarray(cells.ids, code_dtype(len(self.held))))

    def from_parquet(self, column: Any) -> Cells:
        import pyarrow as pa

        if self.sets is None:
            return self.from_arrow(column)
        if self.held is None:
            raise self.disagrees("has no table of its sets.")
        if column.type != pa.from_numpy_dtype(code_dtype(self.sets)) or column.null_count:
            raise ReleaseError(f"column {self.name!r} should hold numbers of sets and does not.", hint=AGAIN)
        ids = column.to_numpy(zero_copy_only=False)
        if len(ids) and int(ids.max()) >= self.sets:
            raise ReleaseError(f"column {self.name!r} names a set that does not exist.", hint=AGAIN)
        return look_up_sets(self.held, ids)

    @property
    def side(self) -> str | None:
        return None if self.sets is None else SETS

    @property
    def side_texts(self) -> str | None:
        return None if self.sets is None else self._texts

    @property
    def side_key(self) -> str | None:
        return None if self.sets is None else SET_KEY

    def side_title(self, names: Sequence[str]) -> str:
        return "The sets that numbers in the data stand for: a column for each that has some, a row for each number"

    def side_words(self, names: str) -> str:
        return f"the sets that the numbers in {names} stand for"

    def side_fields(self) -> list[dict[str, Any]]:
        item = {"type": "array", "arrayItem": {"type": self.domain.kind}}
        return [{"name": SET_KEY, "type": "integer"}, {"name": self.name, **item}]

    def side_columns(self) -> dict[str, Any]:
        """Return numbers and sets, in ascending order of their lists; shorter columns end early."""
        import pyarrow as pa

        assert self.held is not None
        lists = self.to_arrow(self.held)
        return {SET_KEY: pa.array(np.arange(len(lists))), self.name: lists}

    def read_side(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns unchanged, because each is for one statement."""
        return columns

    def with_side(self, found: Any) -> Statement:
        import pyarrow as pa

        assert self.sets is not None
        ids, lists = found[SET_KEY], found[self.name]
        if ids.type != pa.int64() or ids.null_count or not np.array_equal(ids.to_numpy(), np.arange(len(ids))):
            raise ValueError("sets are not numbered from 0 on")
        if len(lists) < self.sets or lists.slice(self.sets).null_count != len(lists) - self.sets:
            raise ValueError("there are more sets than the manifest says")
        try:
            cells = self.from_arrow(lists.slice(0, self.sets))
        except NorenError:
            raise ValueError("a set is none of the column") from None
        assert isinstance(cells, SetCells)
        codes = cells.codes(self.eta).astype(np.int64)
        apart = codes[1:] != codes[:-1]
        rising = np.take_along_axis(codes[1:] - codes[:-1], apart.argmax(axis=1)[:, None], axis=1) > 0
        if not rising.all():
            raise ValueError("sets are not in order, or one is listed twice")
        return replace(self, held=cells)


@dataclass(frozen=True, eq=False)
class FoundSets(SetsOfValues):
    """Sets in a table of another tool without a declared design: the values are known, but no probabilities."""

    least: int
    most: int

    form: ClassVar[str] = "found-sets"

    @property
    def description(self) -> str:
        sizes = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
        return f"sets of {sizes} of {self.d} {self.domain.value_word}, drawn by an undeclared design"

    @property
    def values_per_record(self) -> int:
        return self.most

    def likelihood(self, cells: Cells) -> Likelihood:
        raise ModelDoesNotApply(
            f"the design of the sets of {self.name!r} is not declared, so probabilities are unknown.",
            hint=(
                'Declare it in the policy: [method] name = "decoys", the requirement that it met, and the values of '
                "the column."
            ),
        )

    def count_possible(self, cells: Cells) -> NDArray[np.int64]:
        return np.asarray(self.check_cells(cells).sizes(), np.int64)

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return self.inside(cells, truth)

    def to_arrow(self, cells: Any) -> Any:
        raise self._refusal()

    def from_arrow(self, column: Any) -> Cells:
        raise self._refusal()

    def field(self) -> dict[str, Any]:
        raise self._refusal()

    def _refusal(self) -> ModelDoesNotApply:
        return self.disagrees("holds sets without a declared design, which a release may not publish.")


@dataclass(frozen=True, eq=False)
class MemberStatement(CodedStatement, DrawnStatement):
    """Each row is one of a person's eta possible values; the release does not show which rows belong to one person."""

    form: ClassVar[str] = "member"
    words: ClassVar[str] = "published as shuffled members"

    @property
    def description(self) -> str:
        return f"shuffled rows, one per value of a set of {self.drawn.eta} out of {self.d} values"

    @property
    def rows_per_record(self) -> int:
        return self.drawn.eta

    def likelihood(self, cells: Cells) -> Likelihood:
        codes, d = self.check_cells(cells), self.d
        chances = self.drawn.inclusion_matrix().T[codes] / self.drawn.eta
        return Likelihood(np.arange(len(codes) + 1) * d, np.tile(np.arange(d), len(codes)), chances.ravel())

    def count_possible(self, cells: Cells) -> NDArray[np.int64]:
        """Return the values of the set of which a row is a member."""
        return np.full(len(cells), self.drawn.eta)

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return np.asarray(self.drawn.inclusion_matrix()[truth, self.check_cells(cells)] > 0)

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_members(self, evidence)

    def to_arrow(self, cells: Any) -> Any:
        import pyarrow as pa

        return arrow_values(self.domain).take(pa.array(np.asarray(cells.data)))


@dataclass(frozen=True, eq=False)
class ChangedStatement(CodedStatement, DrawnStatement):
    """Each cell may have been changed: a published design gives the probability of every published value for every true
    value."""

    form: ClassVar[str] = "changed"
    words: ClassVar[str] = "published with some values changed"

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        made = super().parse(column, fields, design)
        if made.design is None or made.design.eta != 1:
            raise ValueError("the design does not publish single values")
        return made

    def likelihood(self, cells: Cells) -> Likelihood:
        """Return the likelihood: the published value by its weight, every other by the floor; up to a factor for each
        cell."""
        codes = self.check_cells(cells)
        weights = self.drawn.member_weights(codes[:, None]).ravel()
        return Likelihood(np.arange(len(codes) + 1), codes, weights, self.drawn.floor)

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return np.ones(len(self.check_cells(cells)), bool) if self.drawn.floor > 0 else self.check_cells(cells) == truth

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_changed(self, evidence)

    def field(self) -> dict[str, Any]:
        text = "Some values were changed at random; the manifest tells with which probability."
        return super().field() | {"description": text}
