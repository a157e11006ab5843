"""Cells that name a group; a separate table lists the values of each group with their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError, ReleaseError
from noren.ragged import chosen
from noren.schema.column import Column
from noren.statements.batch import Cells, CodeCells
from noren.statements.exact import ExactStatement, NumberedStatement
from noren.statements.statement import Judge, Likelihood, ReadDesign, Statement
from noren.statements.texts import AGAIN, as_integers

MOST_GROUPS = 2**40
COLUMNS = ("group", "value", "count")


@dataclass(frozen=True)
class GroupTable:
    """The contents of every group: rows (group, value, count), ascending by group and value, each pair once."""

    groups: int
    d: int
    group: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]

    def __post_init__(self) -> None:
        wrong = ValueError("a group table lists every value of a group once, in order, with a count")
        if not len(self.group):
            return
        inside = self.group.min() >= 0 and self.group.max() < self.groups
        if not (inside and self.value.min() >= 0 and self.value.max() < self.d and self.count.min() >= 1):
            raise wrong
        key = self.group * np.int64(self.d) + self.value
        if not (key[1:] > key[:-1]).all() or int(self.count.max()) > 2**53 // len(self.count):
            raise wrong

    @classmethod
    def from_codes(cls, groups: int, d: int, group: NDArray, value: NDArray) -> GroupTable:
        """Count the values of every group."""
        key, count = np.unique(group.astype(np.int64) * d + value, return_counts=True)
        return cls(groups, d, key // d, key % d, count)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of records of every group."""
        return np.bincount(self.group, self.count, minlength=self.groups).astype(np.int64)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """Return how often each value occurs in all groups together."""
        return np.bincount(self.value, self.count, minlength=self.d).astype(np.int64)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Return the offsets: rows of group g are bounds[g] <= row < bounds[g+1]."""
        return np.searchsorted(self.group, np.arange(self.groups + 1))

    def rows(self, groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of these groups one after the other, and the offsets."""
        bounds, rows = chosen(self.bounds, groups)
        return rows, bounds


@dataclass(frozen=True, eq=False)
class GroupStatement(NumberedStatement):
    """Each cell is a group, and the true value is one of the group's values. `held` is read from a separate file, and
    None until then."""

    groups: int
    number: int = 1
    held: GroupTable | None = None
    counterfeits: Mapping[int, int] = field(default_factory=dict)
    """How many entries of a group's table are nobody's, for groups that have such."""

    form: ClassVar[str] = "group"
    words: ClassVar[str] = "published as groups of values"
    numbers_of: ClassVar[str] = "groups"
    is_class: ClassVar[bool] = True
    hides: ClassVar[bool] = True

    @property
    def description(self) -> str:
        more = f", of which {self.fake_entries:,} are counterfeits that are nobody's" if self.counterfeits else ""
        return f"as the numbers of {self.groups:,} groups; a second table lists each group's values{more}"

    @property
    def table(self) -> GroupTable:
        if self.held is None or self.held.d != self.d:
            raise self.disagrees(f"has no table of its groups over {self.d} values.")
        return self.held

    @property
    def kinds(self) -> int:
        return self.groups

    def likelihood(self, cells: Cells) -> Likelihood:
        """Return P(group | value): the share of the value's records in the group."""
        table = self.table
        rows, bounds = table.rows(self.check_cells(cells))
        return Likelihood(bounds, table.value[rows], table.count[rows] / table.totals[table.value[rows]])

    def count_possible(self, cells: Cells) -> NDArray[np.int64]:
        return np.diff(self.table.bounds)[self.check_cells(cells)]

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        table = self.table
        keys, wanted = table.group * np.int64(self.d) + table.value, self.check_cells(cells) * np.int64(self.d) + truth
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray(keys[place] == wanted)

    def holds_truth(self, cells: Cells, truth: NDArray) -> bool:
        """Return whether the table counts exactly the values of the records.

        Where a group has counterfeits, its table counts as many more.
        """
        table, groups = self.table, self.check_cells(cells)
        found = GroupTable.from_codes(self.groups, self.d, groups, truth)
        keys, wanted = (one.group * np.int64(self.d) + one.value for one in (table, found))
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        listed = bool((keys[place] == wanted).all() and (table.count[place] >= found.count).all())
        return listed and np.array_equal(found.sizes + self.fakes, table.sizes)

    @property
    def fake_entries(self) -> int:
        return sum(self.counterfeits.values())

    @property
    def fakes(self) -> NDArray[np.int64]:
        """Return the counterfeits of every group."""
        out = np.zeros(self.groups, np.int64)
        out[list(self.counterfeits)] = list(self.counterfeits.values())
        return out

    def possible_counts(self, tally: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.table.totals

    def shares(self, tally: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the distribution in the table, because the cells only name groups."""
        return np.asarray(self.table.totals / max(1, int(self.table.totals.sum())))

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_classes(self, evidence)

    def to_arrow(self, cells: Any) -> Any:
        import pyarrow as pa

        return pa.array(np.asarray(cells.data), pa.int64())

    def from_arrow(self, column: Any) -> Cells:
        import pyarrow as pa

        try:
            ids = as_integers(column)
        except (pa.ArrowException, ValueError):
            ids = np.full(1, -1)
        if len(ids) and not (ids.min() >= 0 and ids.max() < self.groups):
            raise ReleaseError(f"column {self.name!r} names a group that does not exist.", hint=AGAIN)
        return CodeCells(self.groups, ids)

    @property
    def parquet_title(self) -> str:
        return f"{self.name}_group"

    @property
    def csv_title(self) -> str:
        return f"{self.name} (group)"

    def field(self) -> dict[str, Any]:
        text = "A group; its own table tells which values it holds."
        return {"name": self.name, "type": "integer", "description": text}

    def manifest_fields(self) -> dict[str, Any]:
        fakes = [list(pair) for pair in sorted(self.counterfeits.items())]
        return {"groups": self.groups, "number": self.number} | ({"counterfeits": fakes} if fakes else {})

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        cls.demand({name: None for name in fields if name != "counterfeits"}, "groups", "number")
        groups, number = fields["groups"], fields["number"]
        whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (groups, number))
        if not whole or not 1 <= groups <= MOST_GROUPS or not 1 <= number <= 1000:
            raise ValueError("groups and their table have numbers from 1 on")
        return cls(column, groups, number, None, _counterfeits(fields.get("counterfeits", []), groups))

    # ------------------------------------------------------------------ the group table

    @property
    def side(self) -> str:
        return f"groups-{self.number}"

    def side_title(self, names: Sequence[str]) -> str:
        return f"Which values of {self.name} each group holds"

    def side_words(self, names: str) -> str:
        return f"which values the groups of {names} hold"

    @property
    def side_key(self) -> str:
        return "group"

    def side_fields(self) -> list[dict[str, Any]]:
        kind = self.domain.kind
        kinds = ("integer", "any" if kind == "string" else kind, "integer")
        return [{"name": name, "type": one} for name, one in zip(COLUMNS, kinds, strict=True)]

    @property
    def _values(self) -> ExactStatement:
        return ExactStatement(self.column)

    def side_columns(self) -> dict[str, Any]:
        """Return the table by group number and in domain order; the numbers are random, so the order discloses
        nothing."""
        import pyarrow as pa

        table = self.table
        values = self._values.to_arrow(CodeCells(table.d, table.value))
        return {"group": pa.array(table.group), "value": values, "count": pa.array(table.count)}

    def read_side(self, columns: Mapping[str, Any]) -> GroupTable:
        if set(columns) != set(COLUMNS):
            raise ValueError("a group table has a group, a value and a count")
        try:
            values = self._values.from_arrow(columns["value"])
            group, count = as_integers(columns["group"]), as_integers(columns["count"])
        except NorenError:
            raise ValueError("a group lists a value that the domain does not have") from None
        if self.groups > len(group):
            raise ValueError("a group is empty")
        table = GroupTable(self.groups, self.d, group, self._values.check_cells(values), count)
        if not (table.sizes > 0).all():
            raise ValueError("a group is empty")
        return table

    def with_side(self, found: Any) -> GroupStatement:
        return replace(self, held=found)


def _counterfeits(given: Any, groups: int) -> dict[int, int]:
    """Return pairs of a group and its counterfeits, ascending."""
    wrong = ValueError("counterfeits are pairs of a group and how many of its entries are nobody's")
    if not isinstance(given, list | tuple) or any(not isinstance(one, list | tuple) or len(one) != 2 for one in given):
        raise wrong
    out: dict[int, int] = {}
    last = -1
    for group, count in given:
        whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (group, count))
        if not whole or not last < group < groups or not 1 <= count <= MOST_GROUPS:
            raise wrong
        out[group], last = count, group
    return out
