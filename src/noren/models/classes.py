"""Classes of records that look alike, and what each holds of a sensitive column.

A class is all records that agree in every quasi-identifier, as published; where the sensitive column names groups, the
groups are the classes. Batches are grouped one by one and put together, so memory grows with the number of different
rows, not of rows.

A generalised sensitive value says only "one of these": a record with node g counts w(a) / sum of w under g for each
base value a under g (paper 004, definition of induced frequencies), with all weights 1 unless a model says otherwise.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.cells import CellBatch, Statement
from noren.cells.batch import PERSON
from noren.errors import ModelDoesNotApply
from noren.models.base import Accumulator, Evidence
from noren.models.verdict import Basis, Shortfall

CHUNK = 1 << 20
"""Entries of histograms that are worked on at once."""
PENDING = 1 << 21
"""Grouped rows that may wait before they are put together."""


@dataclass(frozen=True)
class Histograms:
    """A run of classes over base values: entries starts[i] <= e < starts[i+1] belong to class i, each positive."""

    n: NDArray[np.int64]
    """Records of every class."""
    starts: NDArray[np.int64]
    value: NDArray[np.int64]
    mass: NDArray[np.float64]
    """How many records of the class have this value; a record that is generalised is divided among its values."""
    lone: NDArray[np.int64] | None = None
    """Where people have several rows: the most values of a class that one person alone has."""

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """How many values every class holds."""
        return np.diff(self.starts)

    @property
    def distinct_beside(self) -> NDArray[np.int64]:
        """How many values stay possible for a person who knows what the others of the class have."""
        return self.distinct if self.lone is None else np.minimum(self.distinct, 1 + self.distinct - self.lone)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The class of every entry."""
        return np.repeat(np.arange(len(self)), self.distinct)

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """Every entry as a share of its class."""
        return np.asarray(self.mass / self.n[self.owner])

    @cached_property
    def ranked(self) -> NDArray[np.float64]:
        """The masses of every class, largest first."""
        return np.asarray(self.mass[np.lexsort((-self.mass, self.owner))])

    def total(self, of: NDArray) -> NDArray:
        """Sum of an array over the entries of each class."""
        return np.asarray(np.add.reduceat(of, self.starts[:-1]))

    def largest(self, of: NDArray) -> NDArray:
        """Maximum of an array over the entries of each class."""
        return np.asarray(np.maximum.reduceat(of, self.starts[:-1]))

    def merged(self, groups: NDArray[np.int64]) -> Histograms:
        """The same classes over groups of values: groups[v] is the group of value v."""
        return summed(self.n, self.owner, groups[self.value], self.mass, int(groups.max()) + 1)


def summed(n: NDArray, owner: NDArray, value: NDArray, mass: NDArray, d: int) -> Histograms:
    """Histograms from entries in any order, each (class, value) any number of times."""
    key = owner * np.int64(d) + value
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.zeros(0, np.int64)
    mass = np.add.reduceat(mass[order], first) if len(key) else mass
    starts = np.searchsorted(key[first] // d, np.arange(len(n) + 1))
    return Histograms(n, starts, key[first] % d, mass)


@dataclass(frozen=True)
class ClassTable:
    """All classes of a release, with sparse histograms of published codes (base values, or nodes)."""

    column: Statement | None
    n: NDArray[np.int64]
    """Records of every class; for groups what their table says."""
    found: NDArray[np.int64]
    """Records that were seen of every class. It differs from n only where cells and group table disagree."""
    starts: NDArray[np.int64]
    code: NDArray[np.int64]
    count: NDArray[np.int64]
    stray: int = 0
    """Records whose group the table does not know."""

    def __len__(self) -> int:
        return len(self.n)

    def histograms(self, weights: NDArray[np.float64] | None = None, holders: bool = False) -> Iterator[Histograms]:
        """The classes in their order, some at a time, over base values. One row a person: `holders` changes nothing."""
        column = self.column
        nodes = None if column is None else column.nodes
        widths = np.ones(len(self.code), np.int64) if nodes is None else nodes.sizes[self.code]
        reach = np.concatenate([[0], np.cumsum(widths)])[self.starts]
        begin = 0
        while begin < len(self):
            end = max(begin + 1, int(np.searchsorted(reach, reach[begin] + CHUNK, side="right")) - 1)
            low, high = self.starts[begin], self.starts[end]
            n, starts = self.n[begin:end], self.starts[begin : end + 1] - low
            code, count = self.code[low:high], self.count[low:high].astype(np.float64)
            if nodes is None:
                yield Histograms(n, starts, code, count)
            else:
                assert column is not None
                first, last = nodes.bounds[code], nodes.bounds[code + 1]
                runs = ranges(first, last)
                value = ranges(nodes.starts[runs], nodes.stops[runs])
                bounds = np.concatenate([[0], np.cumsum(widths[low:high])])
                mass = np.ones(len(value)) if weights is None else weights[value]
                each = count / np.add.reduceat(mass, bounds[:-1])
                mass = mass * np.repeat(each, widths[low:high])
                owner = np.repeat(np.arange(len(n)), np.diff(bounds[starts]))
                yield summed(n, owner, value, mass, column.d)
            begin = end

    def shares(self, d: int, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The distribution of base values in the whole release."""
        total = np.zeros(d)
        for part in self.histograms(weights):
            total += np.bincount(part.value, part.mass, minlength=d)
        return total / max(1, int(self.n.sum()))


def ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """starts[0], ..., stops[0] - 1, starts[1], ..., stops[1] - 1, and so on."""
    lengths = stops - starts
    ends = np.cumsum(lengths)
    return np.asarray(np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths))


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


def worst(classes: Classes, figures: NDArray, records: NDArray, fails: NDArray, show: int) -> list[Shortfall]:
    """The classes that fall short, largest number of records first, as many as are asked for."""
    if not show:
        return []
    short = np.flatnonzero(fails)
    short = short[np.argsort(-records[short], kind="stable")][:show]
    names = classes.names(short)
    return [Shortfall(keys, int(records[i]), float(figures[i])) for keys, i in zip(names, short.tolist(), strict=True)]


class PeopleClasses(AlikeClasses):
    """Records that agree in all key columns, where people may have several: a class counts the people in it."""

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


@dataclass(frozen=True)
class PeopleTable(ClassTable):
    """Classes of people: entries are (person, code) pairs, and `whose` numbers the person of every entry."""

    whose: NDArray[np.int64] | None = None
    person: NDArray[np.int64] | None = None
    """The person of every entry, the same in all classes."""

    def shares(self, d: int, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The mean over all people of the shares of their rows, in whatever classes these are."""
        assert self.person is not None
        people = int(self.person.max(initial=-1)) + 1
        rows = np.bincount(self.person, self.count, minlength=people)
        there = int((rows > 0).sum())
        value, mass, entry = self._values(weights)
        part = mass * self.count[entry] / rows[self.person[entry]]
        return np.asarray(np.bincount(value, part, minlength=d) / max(1, there))

    def _values(self, weights: NDArray[np.float64] | None) -> tuple[NDArray, NDArray, NDArray]:
        """Base values of all entries, what part of its entry each is, and the entry."""
        nodes = None if self.column is None else self.column.nodes
        if nodes is None:
            return self.code, np.ones(len(self.code)), np.arange(len(self.code))
        value, bounds = nodes.flat_members(self.code)
        mass = np.ones(len(value)) if weights is None else weights[value]
        entry = np.repeat(np.arange(len(self.code)), np.diff(bounds))
        return value, mass / np.add.reduceat(mass, bounds[:-1])[entry], entry

    def histograms(self, weights: NDArray[np.float64] | None = None, holders: bool = False) -> Iterator[Histograms]:
        """With `holders` a value's mass is the people who have it, else the sum of the shares of people's rows."""
        d = 1 if self.column is None else self.column.d
        assert self.whose is not None
        owner = np.repeat(np.arange(len(self)), np.diff(self.starts))
        value, mass, entry = self._values(weights)
        rows = np.bincount(self.whose, self.count)
        whose, of = self.whose[entry], owner[entry]
        if holders:
            key, place = np.unique(whose * np.int64(d) + value, return_inverse=True)
            most = np.zeros(len(key))
            np.maximum.at(most, place.ravel(), mass)
            class_of = np.zeros(int(self.whose.max()) + 1, np.int64)
            class_of[whose] = of
            found = summed(self.n, class_of[key // d], key % d, most, d)
        else:
            found = summed(self.n, of, value, mass * self.count[entry] / rows[whose], d)
        yield replace(found, lone=self._lone(of, whose, value, d))

    def _lone(self, of: NDArray, whose: NDArray, value: NDArray, d: int) -> NDArray[np.int64]:
        """For every class the most values that one of its people has and nobody else in it."""
        pairs = np.unique(np.stack([of * np.int64(d) + value, whose], axis=1), axis=0)
        _, start, times = np.unique(pairs[:, 0], return_index=True, return_counts=True)
        alone = times == 1
        person, number = np.unique(pairs[start[alone], 1], return_counts=True)
        class_of = np.zeros(int(whose.max(initial=0)) + 1, np.int64)
        class_of[whose] = of
        out = np.zeros(len(self), np.int64)
        np.maximum.at(out, class_of[person], number)
        return out


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
