"""A table that is cut into parts on the cluster, each of them decided by one task.

Codes travel to their part in one shuffle; the method runs there as it runs on one machine; what it decided stays in the
cluster until all parts are known, and then goes to the files of the release in a second shuffle. Every step is a
function of keys, codes and the number of a record, so a task that runs again comes to the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.apart import Cuts, PartDecision, PartFound, of_parts
from noren.engines.engine import CodeBatch, Reading
from noren.engines.spark.cluster import by_part, demand_sealed, gathered, guarded, room, sent, setting, settings, told
from noren.engines.spark.source import base_of, payload
from noren.engines.spark.tasks import Encode, part_number
from noren.engines.spark.wire import Wire
from noren.errors import QueryError
from noren.secret import Secret
from noren.secret.streams import ORDER, CarriedKeys, order_keys
from noren.sources.source import Source
from noren.statements import CellBatch, Cells, CodeCells, OpenCells
from noren.statements.batch import batch_length, concat

if TYPE_CHECKING:
    from noren.engines.spark.engine import SparkEngine

PART, NUMBER = "\0part", "\0number"
"""Columns of the second shuffle's rows that are never published."""
NOBODY = np.zeros(0, np.int64)
ROWS = "spark.noren.part.rows"
ROWS_APART = 1 << 20
"""Records of a part, at most, where that setting says nothing else."""


@dataclass(frozen=True)
class CountParts:
    """How often the records of every part have each value of some columns."""

    encode: Encode
    cuts: Cuts
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        sizes = np.zeros(self.cuts.parts, np.int64)
        held = {n: np.zeros((self.cuts.parts, len(self.encode.reading.domains[n])), np.int64) for n in self.names}
        for batch in self.encode(part_number(), batches):
            part = self.cuts.parts_of(batch.codes, batch.records)
            sizes += np.bincount(part, minlength=len(sizes))
            for name in self.names:
                shape = held[name].shape
                held[name] += np.bincount(part * shape[1] + batch.codes[name], minlength=held[name].size).reshape(shape)
        yield payload(sent((sizes, held)))


def summed(one: tuple[Any, dict[str, Any]], other: tuple[Any, dict[str, Any]]) -> Any:
    """What `CountParts` says of two lots of partitions."""
    return one[0] + other[0], {name: counts + other[1][name] for name, counts in one[1].items()}


@dataclass(frozen=True)
class Spread:
    """The records of a partition on their way to their parts: codes, and texts of open columns."""

    encode: Encode
    cuts: Cuts
    slots: NDArray[np.int64]
    """A number for every part that Spark sends to a partition of its own."""
    wire: Wire

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in self.encode(part_number(), batches):
            part = self.cuts.parts_of(batch.codes, batch.records)
            number = np.arange(batch.start, batch.start + batch.records)
            yield self.wire.packed(carried_cells(batch), np.stack([self.slots[part], number], axis=1))


def carried_cells(batch: CodeBatch) -> dict[str, Cells]:
    """Codes of listed columns and texts of open ones."""
    codes = {name: CodeCells(0, data) for name, data in batch.codes.items()}
    return {**codes, **batch.open}


class KeyedOrder:
    """Random orders that follow from a key and a part: the first that is asked for, the second, and so on."""

    def __init__(self, keys: CarriedKeys, part: int) -> None:
        self.keys, self.part, self.asked = keys, part, 0

    def __call__(self, n: int) -> NDArray[np.int64]:
        self.asked += 1
        bits = order_keys(self.keys, np.arange(n), np.full(n, (self.part << 20) + self.asked))
        return np.lexsort((bits[:, 1], bits[:, 0]))


@dataclass(frozen=True)
class Decide:
    """What a method decides of the part that came here, with 128 random bits for every record."""

    wire: Wire
    decided: Wire
    decide: PartDecision
    parts: Mapping[int, int]
    """The part of every number that stands for one."""
    keys: CarriedKeys
    order: CarriedKeys
    told: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        whole = [batch for batch in batches if batch.num_rows]
        if not whole:
            return
        slots = np.concatenate([batch.column(0).to_numpy() for batch in whole])
        number = np.concatenate([batch.column(1).to_numpy() for batch in whole])
        assert (slots == slots[0]).all(), "a partition is one part"
        part = self.parts[int(slots[0])]
        cells = concat([self.wire.unpacked(batch) for batch in whole])
        del whole
        codes = {name: cells[name].data for name in self.decide.columns}  # type: ignore[attr-defined]
        found, places = self.decide(codes, KeyedOrder(self.keys, part))
        self.told.add({part: found})
        bits = order_keys(self.order, number, np.full(len(number), part))
        out: dict[str, Cells] = {name: cells[name] for name in cells if name not in places}
        out |= {name: CodeCells(0, data) for name, data in places.items()}
        out[PART] = CodeCells(0, np.full(len(number), part, np.uint32))
        out[NUMBER] = CodeCells(0, number)
        for start in range(0, len(number), 1 << 16):
            rows = slice(start, start + (1 << 16))
            some = {name: one.take(rows) for name, one in out.items()}
            yield self.decided.packed({name: some[name] for name in self.decided.like}, bits[rows])


@dataclass(frozen=True)
class Publish:
    """Decided records as they will be published, on their way to the files."""

    decided: Wire
    wire: Wire
    tables: Any
    """A broadcast: for every part and decided column, the published code of each pair."""
    kinds: Mapping[str, int]
    making: Any
    """What makes the cells of the other columns,"""
    stream: Any
    """and the keys by which it draws."""
    told: Any
    tally: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        tables, making = self.tables.value, self.making.under(self.stream)
        for batch in batches:
            if not batch.num_rows:
                continue
            cells = self.decided.unpacked(batch)
            part = cells[PART].data  # type: ignore[attr-defined]
            others = [name for name in making.columns if name not in self.kinds]
            made = making.of_records(_coded(cells, others), others, np.arange(len(part)), cells[NUMBER].data)  # type: ignore[attr-defined]
            for name, kinds in self.kinds.items():
                made[name] = CodeCells(kinds, of_parts([table[name] for table in tables], part, cells[name].data))  # type: ignore[attr-defined]
            keys = np.stack([batch.column(0).to_numpy(), batch.column(1).to_numpy()], axis=1)
            yield self.wire.packed(self.tally.written({name: made[name] for name in self.wire.like}), keys)
        self.told.add({part_number(): making.drawn})


def _coded(cells: CellBatch, names: Sequence[str]) -> CodeBatch:
    """Cells of columns that pass or are drawn, as codes."""
    codes = {name: cells[name].data for name in names if isinstance(cells[name], CodeCells)}  # type: ignore[attr-defined]
    loose = {name: cells[name] for name in names if isinstance(cells[name], OpenCells)}
    return CodeBatch(codes, loose, {}, None, batch_length(cells), 0)  # type: ignore[arg-type]


def publishing(decided: DecidedParts, draft: Any, tally: Any, columns: Sequence[Any], drawn: Any) -> Publish:
    """What publishes decided parts, for columns as a draft states them."""
    tables = draft.tables()
    kinds = {name: int(draft.by_name[name].kinds or 0) for name in tables[0]}
    making = draft.others
    names = [name for name in making.columns if name not in kinds]
    empty = dict(making.under(draft.stream).of_records(_coded(decided.wire.like, names), names, NOBODY, NOBODY))
    empty |= {name: CodeCells(kinds[name], tables[0][name][:0]) for name in kinds}
    wire = Wire(tally.written({column.name: empty[column.name] for column in columns}))
    shared = decided.session.sparkContext.broadcast(tables)
    return Publish(decided.wire, wire, shared, kinds, making, draft.stream, drawn, tally)


@dataclass
class DecidedParts:
    """Parts that were decided and stay in the cluster until they are published."""

    found: Sequence[PartFound]
    frame: Any
    wire: Wire
    session: Any

    def __post_init__(self) -> None:
        self.forget = weakref.finalize(self, self.frame.unpersist)
        """Lets go of them; so does nobody holding this."""

    def sampled(self, most: int) -> tuple[Mapping[str, NDArray], NDArray[np.int64], NDArray[np.int64]]:
        rows = sum(part.records for part in self.found)
        share = min(1.0, most / max(1, rows))
        bound = int((2 * share - 1) * float(1 << 63)) if share < 1 else (1 << 63) - 1
        with settings(self.session), told():
            some = (
                self.frame.where(self.frame.hi <= max(-(1 << 63), min((1 << 63) - 1, bound))).toArrow().combine_chunks()
            )
        batches = some.to_batches()
        cells = concat([self.wire.unpacked(batch) for batch in batches]) if batches else dict(self.wire.like)
        part, number = cells.pop(PART).data, cells.pop(NUMBER).data  # type: ignore[attr-defined]
        codes = {name: one.data for name, one in cells.items() if isinstance(one, CodeCells)}
        return codes, part.astype(np.int64), number


class SparkParts:
    """The cluster as a place where parts are decided."""

    def __init__(self, engine: SparkEngine) -> None:
        self.engine = engine

    @property
    def session(self) -> Any:
        return self.engine.session

    @property
    def room(self) -> int:
        return room(self.session)

    @property
    def rows_apart(self) -> int:
        said = setting(self.session, ROWS)
        if said is None:
            return ROWS_APART
        if not said.isdecimal() or int(said) < 1:
            raise QueryError(f"{ROWS}={said} is no number of records.", hint="For example 1000000.")
        return int(said)

    def fits(self, needed: int) -> bool:
        return needed <= self.room

    def fits_part(self, needed: int) -> bool:
        return needed <= max(self.room, 1 << 30)

    def part_counts(
        self, source: Source, reading: Reading, cuts: Cuts, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
        base: Any = base_of(source)
        chain = self.engine._chain(source, [*reading.columns, *reading.drop])
        task = CountParts(Encode(chain, reading), cuts, tuple(names))
        with settings(self.session), told():
            answers = base.tasks(chain.read).mapInArrow(guarded(task), "payload binary")
            found: tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]] = gathered(answers, base.partitions, summed)
        return found

    def decided(self, source: Source, reading: Reading, cuts: Cuts, decide: PartDecision) -> DecidedParts:
        from pyspark import StorageLevel

        demand_sealed(self.session)
        base: Any = base_of(source)
        starts = self.engine._placed(source, reading.drop)
        chain = self.engine._chain(source, [*reading.columns, *reading.drop], starts)
        encode = Encode(chain, reading)
        like = carried_cells(self.engine._nothing(source, reading))
        first = Wire(like)
        nothing = {name: CodeCells(0, np.zeros(0, np.uint32)) for name in decide.columns}
        own: dict[str, Cells] = {
            PART: CodeCells(0, np.zeros(0, np.uint32)),
            NUMBER: CodeCells(0, np.zeros(0, np.int64)),
        }
        second = Wire({**like, **nothing, **own})
        slots = self._slots(cuts.parts)
        told_parts = self.session.sparkContext.accumulator({}, by_part())
        keys = CarriedKeys.of(Secret.fresh(), [(ORDER, "")])
        order = CarriedKeys.of(Secret.fresh(), [(ORDER, "")])
        parts = {int(slot): part for part, slot in enumerate(slots.tolist())}
        with settings(self.session), told():
            rows = base.tasks(chain.read).mapInArrow(guarded(Spread(encode, cuts, slots, first)), first.schema)
            placed = rows.repartition(cuts.parts, "hi").sortWithinPartitions("lo")
            task = Decide(first, second, decide, parts, keys, order, told_parts)
            made = placed.mapInArrow(guarded(task), second.schema).persist(StorageLevel.DISK_ONLY)
            made.count()  # asks for all of them, and keeps them
        found = [told_parts.value[part] for part in sorted(told_parts.value)]
        return DecidedParts(found, made, second, self.session)

    def _slots(self, parts: int) -> NDArray[np.int64]:
        """For every part a number that Spark's hash sends to another one of as many partitions."""
        from pyspark.sql import functions as f

        found: dict[int, int] = {}
        tried = 0
        while len(found) < parts:
            many = 16 * parts + 64
            numbers = self.session.range(tried, tried + many, 1, 1)
            with settings(self.session), told():
                rows = numbers.select("id", f.pmod(f.hash("id"), f.lit(parts)).alias("at")).collect()
            for row in rows:
                found.setdefault(int(row["at"]), int(row["id"]))
            tried += many
        return np.array([found[part] for part in range(parts)], np.int64)
