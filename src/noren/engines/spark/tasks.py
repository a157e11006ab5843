"""The tasks: count, encode, hash keys, count tuples, draw, and write after the shuffle.

Drawing is a function of keys, the record and its codes; the random order of rows is one of keys, the partition and the
place in it; what is written follows from both. So a task that runs twice, at once or again, makes the same bytes, and
whichever attempt is counted the release is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.engine import CodeBatch, Counting, Profile, Reading
from noren.engines.local import LocalEngine, code_batch, hashed, kept_batches
from noren.engines.spark.cluster import (
    TUPLE_COPIES,
    demand_room,
    guarded,
    received,
    room,
    sent,
    settings,
    told,
)
from noren.engines.spark.source import Chain, payload
from noren.engines.spark.wire import Wire
from noren.errors import DataError
from noren.files import publish_file
from noren.models.base import Judgement
from noren.models.verdict import Verdict
from noren.progress import Meter, silent
from noren.release.published import Published
from noren.release.set_tally import SetTally
from noren.release.store import NAME, ParquetStore, Part, write_data
from noren.secret import RecordStream
from noren.secret.streams import CarriedKeys, order_keys
from noren.sources.place import Place, Spot, Upload
from noren.statements import CellBatch, Cells, SetStatement, Statement, batch_length, take
from noren.statements.set_cells import NumberedSets

ROWS_AT_ONCE = 1 << 16


def part_number() -> int:
    """Return the partition of this task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "only in a task"
    return int(context.partitionId())


@dataclass(frozen=True)
class Encode:
    """Encode the records of a partition, with their numbers in the table."""

    chain: Chain
    reading: Reading

    def __call__(self, number: int, batches: Iterator[Any]) -> Iterator[CodeBatch]:
        source, place = self.chain.source(number, batches), self.chain.place(number)
        done = 0
        for batch, _ in kept_batches(source, self.reading.columns, self.reading.drop):
            yield code_batch(batch, self.reading, source.name, place.start + done)
            done += batch.num_rows
        if self.chain.starts and done != place.stop - place.start:
            raise DataError(
                f"{source.name}: it changed while it was read.", hint="Run it again while nobody writes to the table."
            )


@dataclass(frozen=True)
class Held:
    """Records that need no reading, because everything was decided record by record."""

    starts: tuple[int, ...]

    def __call__(self, number: int, batches: Iterator[Any]) -> Iterator[CodeBatch]:
        for _ in batches:
            pass
        for start in range(self.starts[number], self.starts[number + 1], ROWS_AT_ONCE):
            size = min(ROWS_AT_ONCE, self.starts[number + 1] - start)
            yield CodeBatch({}, {}, {}, None, size, start)


@dataclass(frozen=True)
class Make:
    """Make and pack the published cells of a partition for the driver."""

    encode: Encode | Held
    shared: Any
    """What is published instead, where nothing was decided record by record,"""
    own: Sequence[Any]
    """else of every partition's own records: a broadcast each, of which a task opens its own. No key is in them: they
    may lie on disks."""
    stream: RecordStream
    told: Any
    """Where what was drawn is counted, partition by partition."""

    def forget(self) -> None:
        """Release the decisions from the memory of all machines."""
        for one in self.own:
            one.unpersist()

    def cells(self, batches: Iterator[Any]) -> Iterator[CellBatch]:
        number = part_number()
        making = (self.own[number].value if self.shared is None else self.shared).under(self.stream)
        for batch in self.encode(number, batches):
            yield making(batch)
        self.told.add({number: making.drawn})

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for cells in self.cells(batches):
            yield payload(sent(cells))


@dataclass(frozen=True)
class Draw:
    """Make published cells of a partition as rows for the shuffle, each with 128 random bits."""

    make: Make
    wire: Wire
    keys: CarriedKeys
    tally: SetTally

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number, done = part_number(), 0
        for made in self.make.cells(batches):
            cells = self.tally.renumber_sets({name: made[name] for name in self.wire.like})
            size = batch_length(cells)
            keys = order_keys(self.keys, np.arange(done, done + size), np.full(size, number))
            yield self.wire.packed(cells, keys)
            done += size


@dataclass(frozen=True)
class Done:
    """The files that a task has written."""

    number: int
    rows: int
    part: Part
    made: str
    """How the file is called until it is published."""
    seen: Mapping[str, NDArray[np.bool_]]
    """Which sets occur, of columns whose sets are kept once."""


@dataclass(frozen=True)
class Write:
    """Write a file of the shuffled rows in random order, under a temporary name that is renamed last.

    Another attempt may have been faster; it wrote the same bytes.
    """

    wire: Wire
    columns: tuple[Statement, ...]
    folder: Spot
    aside: Spot

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number = part_number()
        seen = _empty_seen(self.columns)
        cells = (self._unpacked(batch, seen) for batch in batches if batch.num_rows)
        done = written_part(number, cells, self.columns, self.folder, self.aside, seen)
        if done is not None:
            yield payload(sent(done))

    def _unpacked(self, batch: Any, seen: dict[str, NDArray[np.bool_]]) -> dict[str, Cells]:
        cells = self.wire.unpacked(batch)
        for name, found in seen.items():
            found[cells[name].ids] = True  # type: ignore[attr-defined]
        return cells


def _empty_seen(columns: Sequence[Statement]) -> dict[str, NDArray[np.bool_]]:
    tables = {column.name: column.held for column in columns if isinstance(column, SetStatement)}
    return {name: np.zeros(len(table), bool) for name, table in tables.items() if table is not None}


def written_part(
    number: int,
    cells: Iterator[CellBatch],
    columns: tuple[Statement, ...],
    folder: Spot,
    aside: Spot,
    seen: Mapping[str, NDArray[np.bool_]],
) -> Done | None:
    """Write one file of data; None if there is nothing to write."""
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt = 0 if context is None else context.taskAttemptId()
    name = NAME.format(number)
    own = f"{attempt}-{name}"
    if isinstance(aside, Place):  # nothing is renamed in a store: whose file counts is what the driver hears
        sink = Upload(aside / own)
        rows = write_data(Path(own), columns, cells, sink)
        return Done(number, rows, Part(name, sink.size, sink.hexdigest()), own, seen) if rows else None
    assert isinstance(folder, Path)
    made = aside / own
    rows = write_data(made, columns, cells)
    if not rows:
        return None
    part = Part.of(made)
    publish_file(made, folder / name)  # by the machine that wrote it
    return Done(number, rows, Part(name, part.bytes, part.sha256), name, seen)


def like_of(cells: CellBatch, tally: SetTally, columns: Sequence[Statement]) -> dict[str, Cells]:
    """Return an empty batch of the columns as they are shuffled."""
    found = tally.renumber_sets({column.name: cells[column.name] for column in columns})
    assert all(not isinstance(one, NumberedSets) or len(one) == 0 for one in found.values())
    return found


@dataclass(frozen=True)
class Count:
    """Count the values and records of a partition."""

    chain: Chain
    counting: Counting

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number = part_number()
        found = LocalEngine().profile(self.chain.source(number, batches), self.counting)
        yield payload(sent(({number: found.records}, found)))


def together(one: tuple[dict[int, int], Profile], other: tuple[dict[int, int], Profile]) -> Any:
    """Merge the counts of two lots of partitions."""
    one[0].update(other[0])
    one[1].merge(other[1])
    return one


@dataclass(frozen=True)
class Codes:
    """Encode the records of a partition for the driver."""

    encode: Encode
    chain: Chain

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number = part_number()
        source = self.chain.source(number, batches)
        for batch in LocalEngine().encoded(source, self.encode.reading):
            yield payload(sent(batch))


@dataclass(frozen=True)
class Hash:
    """Hash every cell of a column; equal texts have equal numbers."""

    chain: Chain
    name: str
    drop: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        source = self.chain.source(part_number(), batches)
        for batch, _ in kept_batches(source, [self.name], self.drop):
            yield pa.RecordBatch.from_arrays(
                [pa.array(hashed(batch.column(self.name), self.name).view(np.int64))], ["hash"]
            )


@dataclass(frozen=True)
class Tuples:
    """Count the distinct tuples of a partition."""

    encode: Encode
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import polars as pl
        import pyarrow as pa

        titles = [f"k{i}" for i in range(len(self.names))]
        for batch in self.encode(part_number(), batches):
            codes = {t: batch.codes[name].astype(np.int32) for t, name in zip(titles, self.names, strict=True)}
            found = pl.DataFrame(codes).group_by(titles).agg(pl.len().cast(pl.Int64).alias("n"))
            arrays = [pa.array(found[title].to_numpy()) for title in [*titles, "n"]]
            yield pa.RecordBatch.from_arrays(arrays, [*titles, "n"])


@dataclass(frozen=True)
class Rewrite:
    """Rewrite files with other numbers for their sets."""

    names: tuple[str, ...]
    before: tuple[Statement, ...]
    after: tuple[Statement, ...]
    tally: SetTally
    folder: Spot
    aside: Spot

    def __call__(self, numbers: Iterator[int]) -> Iterator[bytes]:
        for number in numbers:
            cells = map(
                self.tally.renumber_sets, ParquetStore.part(self.folder / self.names[number], None, self.before)
            )
            place = int(self.names[number].removesuffix(".parquet").rpartition("-")[2])
            done = written_part(place, cells, self.after, self.folder, self.aside, {})
            yield sent(done)


# ---------------------------------------------------------------------- judging
#
# What was written, judged where it lies: every task judges some files, and the judgements merge.

GROUPS_AT_ONCE = 16
"""Row groups that a task judges at least, where there are as many: a task costs more than reading a few."""
Parts = Sequence[tuple[Spot, tuple[int, ...]]]


def shares(store: ParquetStore, tasks: int) -> list[list[tuple[Spot, tuple[int, ...]]]]:
    """Distribute files and row groups over lots of about equal size."""
    every = [(path, group) for path, groups in store.parts() for group in groups]
    lots = max(1, min(tasks, -(-len(every) // GROUPS_AT_ONCE)))
    out = []
    for number in range(lots):
        found: dict[Spot, list[int]] = {}
        for path, group in every[number * len(every) // lots : (number + 1) * len(every) // lots]:
            found.setdefault(path, []).append(group)
        out.append([(path, tuple(groups)) for path, groups in found.items()])
    return out


@dataclass(frozen=True)
class Observe:
    """Check the requirements on some files."""

    lots: Sequence[Parts]
    columns: Sequence[Statement]
    make: Callable[[], Judgement]

    def __call__(self, numbers: Iterator[int]) -> Iterator[bytes]:
        for number in numbers:
            judgement, rows = observed(self.lots[number], self.columns, self.make)
            yield sent((rows, judgement.parts))


def observed(lot: Parts, columns: Sequence[Statement], make: Callable[[], Judgement]) -> tuple[Judgement, int]:
    """Check the requirements on a lot of files, and count their rows."""
    judgement, rows = make(), 0
    for path, groups in lot:
        for batch in ParquetStore.part(path, groups, columns):
            judgement.observe(batch)
            rows += batch_length(batch)
    return judgement, rows


@dataclass(frozen=True)
class CountCells:
    """Count the distinct rows of some files."""

    lots: Sequence[Parts]
    columns: Sequence[Statement]
    wire: Wire

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for given in batches:
            for number in given.column(0).to_pylist():
                for path, groups in self.lots[number]:
                    for batch in ParquetStore.part(path, groups, self.columns):
                        rows = self.wire.packed(batch, np.zeros((batch_length(batch), 2), np.int64))
                        found = pa.Table.from_batches([rows.select(rows.schema.names[2:])])
                        counted = found.group_by(found.column_names).aggregate([([], "count_all")])
                        yield from counted.combine_chunks().to_batches()


class CountedStore(ParquetStore):
    """A store whose cells are in files that a cluster reads and counts."""

    def __init__(self, session: Any, *paths: Spot) -> None:
        super().__init__(*paths)
        self._session = session

    def count_combinations(self, columns: Sequence[Statement]) -> tuple[dict[str, Cells], NDArray[np.int64]]:
        """Count the distinct combinations of cells of some columns."""
        import pyarrow as pa
        from pyspark.sql import functions

        empty = take(next(self.batches(columns)), slice(0, 0))
        wire = Wire(empty)
        lots = shares(self, 4 * self._session.sparkContext.defaultParallelism)
        titles = ["row", *(f"v{i}" for i in range(len(wire.loose)))]
        schema = ", ".join([*(f"{title} binary" for title in titles), "n long"])
        wide = 8 * (len(columns) + 1)
        with settings(self._session), told():
            rows = self._session.range(0, len(lots), 1, len(lots))
            parts = rows.mapInArrow(guarded(CountCells(lots, columns, wire)), schema)
            most = room(self._session) // (TUPLE_COPIES * wide)
            counted = parts.groupBy(*titles).agg(functions.sum("n").alias("n"))
            found = counted.limit(most + 1).toArrow().combine_chunks()
        if found.num_rows > most:
            what = f"counting more than {most:,} different rows of {', '.join(column.name for column in columns)}"
            demand_room(self._session, found.num_rows * TUPLE_COPIES * wide, what, "ask for fewer columns")
        nothing = [pa.array(np.zeros(found.num_rows, np.int64))] * 2
        arrays = [*nothing, *(_one(found.column(title)) for title in titles)]
        batch = pa.RecordBatch.from_arrays(arrays, ["hi", "lo", *titles])
        return wire.unpacked(batch), found.column("n").to_numpy().astype(np.int64)


def _one(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) if column.num_chunks else pa.array([])


def judged(
    session: Any, published: Published, store: ParquetStore, make: Callable[[], Judgement], meter: Meter = silent
) -> list[Verdict]:
    """Return the verdicts on a table in files."""
    whole = make()
    wanted = [published.by_name[name] for name in published.columns if name in whole.needs]
    if not wanted:
        return whole.verdicts()
    context = session.sparkContext
    lots = shares(store, 4 * context.defaultParallelism)
    work = guarded(Observe(lots, wanted, make))
    with told():
        found = context.parallelize(range(len(lots)), len(lots)).mapPartitions(work).collect()
    for content in found:
        rows, parts = received(content)
        for own, other in zip(whole.parts, parts, strict=True):
            own.merge(other)
        meter(rows)
    return whole.verdicts()
