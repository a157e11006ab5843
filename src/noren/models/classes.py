"""Classes of records with equal quasi-identifiers, and their values of a sensitive column.

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
from noren.statements.group import GroupTable


def class_keys(evidence: Evidence, names: Sequence[str]) -> list[Statement]:
    """Return the columns that define classes; raise ModelDoesNotApply if one does not define which records are
    equal."""
    columns = [evidence.columns[name] for name in names]
    for key in columns:
        if not key.is_key and not key.is_class:
            raise key.unlike()
    return columns


def key_layout(keys: Sequence[Statement]) -> list[list[Statement]]:
    """Return which keys are in each column of `key_columns`: one open key, or as many coded keys as fit into one
    number."""
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
    """Return the key columns for grouping, with as many codes as possible packed into one number."""
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
    """Gathers the classes of a release, batch by batch, for all checks that need the same ones."""

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
        """Return all classes of the batches so far."""
        if self._table is None:
            self._table = self._build_table()
        return self._table

    def names(self, classes: NDArray[np.int64]) -> list[dict[str, str]]:
        """Return the published values of these classes, by column. Call it after `table`."""
        return [{} for _ in classes]

    @abstractmethod
    def _add(self, batch: CellBatch) -> None: ...

    @abstractmethod
    def _join(self, other: Any) -> None: ...

    @abstractmethod
    def _build_table(self) -> ClassTable: ...


class AlikeClasses(Classes):
    """Records that are equal in all key columns; if people may have several, a class counts people."""

    def __init__(self, keys: Sequence[Statement], column: Statement | None, people: bool = False) -> None:
        names = [key.name for key in keys] + ([] if column is None else [column.name])
        super().__init__((*dict.fromkeys(names), *([PERSON] if people else [])))
        self.keys = tuple(keys)
        self.column = column
        self.people = people
        self.basis = "the original" if people else "the release alone"
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
        codes = None if self.column is None else pl.Series(self.column.check_cells(batch[self.column.name]))
        frame = frame.with_columns(v=pl.lit(0, pl.Int64) if codes is None else codes)
        if self.people:
            frame = frame.with_columns(p=batch[PERSON].data.astype(np.int64))  # type: ignore[attr-defined]
        self._keep(frame.group_by(frame.columns).agg(count=pl.len().cast(pl.Int64)))

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

    def _together(self) -> Any:
        import polars as pl

        rows = pl.concat(self._parts)
        return rows.group_by(rows.columns[:-1]).agg(pl.col("count").sum())

    def _build_table(self) -> ClassTable:
        import polars as pl

        if not self._parts:
            none = np.zeros(0, np.int64)
            return ClassTable(self.column, none, none, np.zeros(1, np.int64), none, none)
        rows = self._together()
        self._parts = [rows]
        keys = [name for name in rows.columns if name not in ("v", "p", "count")]
        rows = rows.sort([*keys, *(["p"] if self.people else []), "v"])
        changed = pl.any_horizontal([pl.col(key).ne_missing(pl.col(key).shift()) for key in keys])
        new = rows.select(new=changed)["new"].to_numpy().copy()
        new[0] = True
        first = np.flatnonzero(new)
        self._rows, self._first = rows, first
        code, count = rows["v"].cast(pl.Int64).to_numpy(), rows["count"].to_numpy()
        starts = np.append(first, len(count))
        if not self.people:
            n = np.add.reduceat(count, first)
            return ClassTable(self.column, n, n, starts, code, count)
        person, fresh = rows["p"].to_numpy(), new.copy()
        fresh[1:] |= person[1:] != person[:-1]
        people = np.bincount((np.cumsum(new) - 1)[fresh], minlength=len(first))
        return PeopleTable(self.column, people, people, starts, code, count, 0, np.cumsum(fresh) - 1, person)


class GroupClasses(Classes):
    """The groups of a column: the group table lists their values, and the cells give their sizes."""

    def __init__(self, column: Statement) -> None:
        super().__init__((column.name,))
        self.column = column
        assert column.table is not None
        self.held = column.table
        self._sizes = np.zeros(self.held.groups, np.int64)

    def _add(self, batch: CellBatch) -> None:
        self._sizes += np.bincount(self.column.check_cells(batch[self.column.name]), minlength=len(self._sizes))

    def _join(self, other: GroupClasses) -> None:
        self._sizes += other._sizes

    def _build_table(self) -> ClassTable:
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
class PeopleValues:
    """The values of a column of all published people: distinct (person, value, rows), in ascending order."""

    person: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def of(cls, people: NDArray[np.int64], values: NDArray) -> PeopleValues:
        d = int(values.max(initial=0)) + 1
        key, count = np.unique(people.astype(np.int64) * d + values, return_counts=True)
        return cls(key // d, key % d, count)


class PeopleGroups(Classes):
    """The groups of a column, counted in people.

    The cells say which group a row is in and the group's table what it holds, but not whose value is whose. So this
    rests on the original, and demands that all rows of a person are in one group: rows in several groups would tell
    together what each of them leaves open.
    """

    basis: Basis = "the original"

    def __init__(self, column: Statement, held: PeopleValues) -> None:
        super().__init__((column.name, PERSON))
        self.column = column
        self.held = held
        self._pairs: list[NDArray[np.int64]] = []
        self._known = np.zeros(0, np.int64)

    def _add(self, batch: CellBatch) -> None:
        person = batch[PERSON].data.astype(np.int64)  # type: ignore[attr-defined]
        pairs = np.stack([self.column.check_cells(batch[self.column.name]), person], axis=1)
        self._pairs.append(np.unique(pairs, axis=0))

    def _join(self, other: PeopleGroups) -> None:
        self._pairs += other._pairs

    def _build_table(self) -> ClassTable:
        none = np.zeros((0, 2), np.int64)
        pairs = np.unique(np.concatenate([none, *self._pairs]), axis=0)
        self._pairs = [pairs]
        assert self.column.table is not None
        held, said = self.held, self.column.table
        group_of = np.full(int(max(held.person.max(initial=-1), pairs[:, 1].max(initial=-1))) + 1, -1, np.int64)
        group_of[pairs[:, 1]] = pairs[:, 0]
        group = group_of[held.person]
        alone = len(pairs) == len(np.unique(pairs[:, 1]))  # nobody is in two groups
        agrees = alone and len(np.unique(held.person)) == len(pairs) and bool((group >= 0).all())
        if not len(pairs) or not agrees or not _same(said, group, held):
            return ClassTable(
                self.column, none[:, 0], none[:, 0], np.zeros(1, np.int64), none[:, 0], none[:, 0], len(pairs)
            )
        order = np.lexsort((held.value, held.person, group))
        group, person = group[order], held.person[order]
        new = np.append(True, group[1:] != group[:-1])
        fresh = np.append(True, person[1:] != person[:-1])
        people = np.bincount(np.cumsum(new)[fresh] - 1)
        starts = np.append(np.flatnonzero(new), len(group))
        self._known = group[new]
        return PeopleTable(
            self.column, people, people, starts, held.value[order], held.count[order], 0, np.cumsum(fresh) - 1, person
        )

    def names(self, classes: NDArray[np.int64]) -> list[dict[str, str]]:
        return [{self.column.name: f"group {number}"} for number in self._known[classes].tolist()]


def _same(said: GroupTable, group: NDArray[np.int64], held: PeopleValues) -> bool:
    """Return whether the group table counts the rows of its people."""
    key, place = np.unique(group * np.int64(said.d) + held.value, return_inverse=True)
    rows = np.bincount(place.ravel(), held.count).astype(np.int64)
    return np.array_equal(key, said.group * np.int64(said.d) + said.value) and np.array_equal(rows, said.count)


@dataclass(frozen=True)
class ClassFindings:
    """The results of a check for all classes."""

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


def worst(classes: Classes, figures: NDArray, records: NDArray, fails: NDArray, show: int) -> list[Shortfall]:
    """Return the classes that break the requirement, largest first."""
    if not show:
        return []
    short = np.flatnonzero(fails)
    short = short[np.argsort(-records[short], kind="stable")][:show]
    names = classes.names(short)
    return [Shortfall(keys, int(records[i]), float(figures[i])) for keys, i in zip(names, short.tolist(), strict=True)]


def make_classes(evidence: Evidence, column: str | None, keys: tuple[str, ...]) -> Classes:
    """Make classes by these columns, or the groups of a column of groups."""
    sensitive = None if column is None else evidence.columns[column]
    if sensitive is not None and sensitive.is_class:
        return _people_groups(evidence, sensitive) if evidence.people else GroupClasses(sensitive)
    return AlikeClasses(class_keys(evidence, keys), sensitive, evidence.people)


def _people_groups(evidence: Evidence, column: Statement) -> Classes:
    """Make groups in which people are counted, which needs the original."""
    known = evidence.overall.get(column.name)
    if known is None or known.people is None:
        raise ModelDoesNotApply(
            f"column {column.name!r} is {column.words}, which do not show which person has which value.",
            hint="Check it with the original, for example with `anonymize`, which counts people with several rows.",
        )
    return PeopleGroups(column, known.people)
