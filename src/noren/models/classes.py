"""Classes of records that look alike, and what each holds of a sensitive column.

A class is all records that agree in every quasi-identifier, as published; where the sensitive column names groups, the
groups are the classes. Batches are grouped one by one and put together, so memory grows with the number of different
rows, not of rows. The columns that define the classes are packed into as few numbers as hold them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import ModelDoesNotApply
from noren.models.base import Accumulator, Evidence
from noren.models.histograms import ClassTable, PeopleTable
from noren.models.verdict import Basis, Shortfall
from noren.statements import CellBatch, Statement
from noren.statements.batch import PERSON


def class_keys(evidence: Evidence, names: Sequence[str]) -> list[Statement]:
    """Columns that define classes. Raises ModelDoesNotApply for one in which nobody can say who looks alike."""
    columns = [evidence.columns[name] for name in names]
    for key in columns:
        if not key.is_key and not key.is_class:
            raise key.unlike()
    return columns


def key_layout(keys: Sequence[Statement]) -> list[list[Statement]]:
    """Which keys stand in each column of `key_columns`: one open one, or as many coded ones as fit one number."""
    out: list[list[Statement]] = []
    packed: list[Statement] = []
    room = 1
    for key in keys:
        if key.kinds is None:
            out.append([key])
            continue
        size = max(1, key.kinds)
        if packed and room * size < 1 << 62:
            packed.append(key)
            room *= size
            continue
        if packed:
            out.append(packed)
        packed, room = [key], size
    return [*out, packed] if packed else out


def key_columns(keys: Sequence[Statement], batch: CellBatch) -> list[Any]:
    """The key columns for grouping, with as many codes as fit put into one number."""
    out: list[Any] = []
    for part in key_layout(keys):
        found = part[0].key(batch[part[0].name])
        for key in part[1:]:
            found = found * max(1, key.kinds or 1) + key.key(batch[key.name])
        out.append(found)
    return out


PENDING = 1 << 21
"""Grouped rows that may wait before they are put together."""


class Classes(Accumulator):
    """Gathers the classes of a release, batch by batch, for all checks that ask for the same ones."""

    basis: Basis = "the release alone"
    """What a verdict about the classes rests on."""

    def __init__(self, needs: tuple[str, ...]) -> None:
        self.needs = needs
        self._table: ClassTable | None = None

    def observe(self, batch: CellBatch) -> None:
        self._table = None
        if len(batch[self.needs[0]]):
            self._add(batch)

    def merge(self, other: Classes) -> None:
        self._table = None
        self._join(other)

    def table(self) -> ClassTable:
        """All classes of the batches so far."""
        if self._table is None:
            self._table = self._made()
        return self._table

    def names(self, classes: NDArray[np.int64]) -> list[dict[str, str]]:
        """What the records of these classes publish, by column. After `table`."""
        return [{} for _ in classes]

    @abstractmethod
    def _add(self, batch: CellBatch) -> None: ...

    @abstractmethod
    def _join(self, other: Any) -> None: ...

    @abstractmethod
    def _made(self) -> ClassTable: ...


class AlikeClasses(Classes):
    """Records that agree in all key columns."""

    def __init__(self, keys: Sequence[Statement], column: Statement | None) -> None:
        names = [key.name for key in keys] + ([] if column is None else [column.name])
        super().__init__(tuple(dict.fromkeys(names)))
        self.keys = tuple(keys)
        self.column = column
        self._parts: list[Any] = []
        self._pending = 0
        self._limit = PENDING
        self._rows: Any = None
        self._first: NDArray[np.int64] = np.zeros(0, np.int64)

    def names(self, classes: NDArray[np.int64]) -> list[dict[str, str]]:
        chosen = self._rows[self._first[classes].tolist()]
        out: list[dict[str, str]] = [{} for _ in classes]
        for i, part in enumerate(key_layout(self.keys)):
            found = chosen[f"k{i}"].to_list()
            for key in reversed(part):
                size = key.kinds
                for line, value in zip(out, found, strict=True):
                    line[key.name] = key.label(value if size is None else value % max(1, size))
                if size is not None:
                    found = [value // max(1, size) for value in found]
        return [{key.name: line[key.name] for key in self.keys} for line in out]

    def _add(self, batch: CellBatch) -> None:
        import polars as pl

        columns = {f"k{i}": key for i, key in enumerate(key_columns(self.keys, batch))}
        frame = pl.DataFrame(columns)
        codes = None if self.column is None else pl.Series(self.column.checked(batch[self.column.name]))
        frame = frame.with_columns(v=pl.lit(0, pl.Int64) if codes is None else codes, **self._extra(batch))
        self._keep(frame.group_by(frame.columns).agg(count=pl.len().cast(pl.Int64)))

    def _extra(self, batch: CellBatch) -> dict[str, Any]:
        """What else tells rows apart."""
        return {}

    def _join(self, other: AlikeClasses) -> None:
        for part in other._parts:
            self._keep(part)

    def _keep(self, part: Any) -> None:
        self._parts.append(part)
        self._pending += len(part)
        if self._pending > self._limit:
            self._parts = [self._together()]
            self._pending = len(self._parts[0])
            self._limit = max(PENDING, 2 * self._pending)

    def lots(self, count: int) -> list[Any]:
        """What was gathered, in lots of whole classes, the same ones whoever gathered: for judges of a lot each."""
        import polars as pl

        if not self._parts:
            return []
        rows = self._together()
        keys = [name for name in rows.columns if name not in ("v", "p", "count")]
        number = rows.select(keys).hash_rows(seed=1) % count
        return [rows.filter(number == lot) for lot in pl.Series(range(count), dtype=pl.UInt64)]

    def gather(self, rows: Any) -> None:
        """Take in a lot that another one gathered."""
        self._table = None
        self._keep(rows)

    def _together(self) -> Any:
        import polars as pl

        rows = pl.concat(self._parts)
        return rows.group_by(rows.columns[:-1]).agg(pl.col("count").sum())

    def _made(self) -> ClassTable:
        import polars as pl

        if not self._parts:
            none = np.zeros(0, np.int64)
            return ClassTable(self.column, none, none, np.zeros(1, np.int64), none, none)
        rows = self._together()
        self._parts = [rows]
        keys = [name for name in rows.columns if name not in ("v", "count")]
        rows = rows.sort([*keys, "v"])
        changed = pl.any_horizontal([pl.col(key).ne_missing(pl.col(key).shift()) for key in keys])
        new = rows.select(new=changed)["new"].to_numpy().copy()
        new[0] = True
        first = np.flatnonzero(new)
        self._rows, self._first = rows, first
        count = rows["count"].to_numpy()
        n = np.add.reduceat(count, first)
        starts = np.append(first, len(count))
        return ClassTable(self.column, n, n, starts, rows["v"].cast(pl.Int64).to_numpy(), count)


class PeopleClasses(AlikeClasses):
    """Records that agree in all key columns, where people may have several: a class counts the people in it."""

    basis: Basis = "the original"

    def __init__(self, keys: Sequence[Statement], column: Statement | None) -> None:
        super().__init__(keys, column)
        self.needs = (*self.needs, PERSON)

    def _extra(self, batch: CellBatch) -> dict[str, Any]:
        return {"p": batch[PERSON].data.astype(np.int64)}  # type: ignore[attr-defined]

    def _made(self) -> ClassTable:
        import polars as pl

        if not self._parts:
            return super()._made()
        rows = self._together()
        self._parts = [rows]
        keys = [name for name in rows.columns if name not in ("v", "p", "count")]
        rows = rows.sort([*keys, "p", "v"])
        changed = pl.any_horizontal([pl.col(key).ne_missing(pl.col(key).shift()) for key in keys])
        new = rows.select(new=changed)["new"].to_numpy().copy()
        new[0] = True
        first = np.flatnonzero(new)
        self._rows, self._first = rows, first
        of, person = np.cumsum(new) - 1, rows["p"].to_numpy()
        fresh = new.copy()
        fresh[1:] |= person[1:] != person[:-1]
        people = np.bincount(of[fresh], minlength=len(first))
        code, count = rows["v"].cast(pl.Int64).to_numpy(), rows["count"].to_numpy()
        starts = np.append(first, len(code))
        whose = np.cumsum(fresh) - 1
        return PeopleTable(self.column, people, people, starts, code, count, 0, whose, person)


class GroupClasses(Classes):
    """The groups that a column names; its group table tells what they hold, and the cells how large they are."""

    def __init__(self, column: Statement) -> None:
        super().__init__((column.name,))
        self.column = column
        assert column.table is not None
        self.held = column.table
        self._sizes = np.zeros(self.held.groups, np.int64)

    def _add(self, batch: CellBatch) -> None:
        self._sizes += np.bincount(self.column.checked(batch[self.column.name]), minlength=len(self._sizes))

    def _join(self, other: GroupClasses) -> None:
        self._sizes += other._sizes

    def _made(self) -> ClassTable:
        table = self.held
        known = table.sizes > 0
        stray = int(self._sizes[~known].sum())
        starts = np.append(table.bounds[:-1][known], len(table.group))
        self._known = np.flatnonzero(known)
        found = np.where(self._sizes > 0, self._sizes + self.column.fakes, 0)[known]
        return ClassTable(self.column, table.sizes[known], found, starts, table.value, table.count, stray)

    def names(self, classes: NDArray[np.int64]) -> list[dict[str, str]]:
        return [{self.column.name: f"group {number}"} for number in self._known[classes].tolist()]


@dataclass(frozen=True)
class ClassFindings:
    """What a check found in some classes; findings about other classes merge with it."""

    classes: int
    smallest: int
    """Records of the smallest class."""
    achieved: float
    records: int
    breaches: int
    short: int
    unlike: bool = False
    """Whether groups have other records than their table says."""
    shortfalls: tuple[Shortfall, ...] = ()

    def joined(self, other: ClassFindings, higher_is_safer: bool, show: int) -> ClassFindings:
        """The same about the classes of both."""
        if not self.classes or not other.classes:
            return other if other.classes else self
        worse = min if higher_is_safer else max
        every = sorted((*self.shortfalls, *other.shortfalls), key=lambda one: -one.records)
        return ClassFindings(
            self.classes + other.classes,
            min(self.smallest, other.smallest),
            worse(self.achieved, other.achieved),
            self.records + other.records,
            self.breaches + other.breaches,
            self.short + other.short,
            self.unlike or other.unlike,
            tuple(every[:show]),
        )


def worst(classes: Classes, figures: NDArray, records: NDArray, fails: NDArray, show: int) -> list[Shortfall]:
    """The classes that fall short, largest number of records first, as many as are asked for."""
    if not show:
        return []
    short = np.flatnonzero(fails)
    short = short[np.argsort(-records[short], kind="stable")][:show]
    names = classes.names(short)
    return [Shortfall(keys, int(records[i]), float(figures[i])) for keys, i in zip(names, short.tolist(), strict=True)]


def make_classes(evidence: Evidence, column: str | None, keys: tuple[str, ...]) -> Classes:
    """Classes by these columns, or the groups of a column that names groups."""
    sensitive = None if column is None else evidence.columns[column]
    if sensitive is not None and sensitive.is_class:
        return _people_groups(evidence, sensitive) if evidence.people else GroupClasses(sensitive)
    made = PeopleClasses if evidence.people else AlikeClasses
    return made(class_keys(evidence, keys), sensitive)


def _people_groups(evidence: Evidence, column: Statement) -> Classes:
    """Groups in which people are counted, which only the original can tell."""
    from noren.models.people_groups import PeopleGroups

    known = evidence.overall.get(column.name)
    if known is None or known.people is None:
        raise ModelDoesNotApply(
            f"column {column.name!r} is {column.words}, which do not tell whose value is whose.",
            hint="People with several rows are counted there by whoever has the original: `anonymize` does.",
        )
    return PeopleGroups(column, known.people)
