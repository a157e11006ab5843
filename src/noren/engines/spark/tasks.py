"""What tasks do: count, encode, hash keys, count tuples; draw a release and after the shuffle write it.

Drawing is a function of keys, the record and its codes; the random order of rows is one of keys, the partition and the
place in it; what is written follows from both. So a task that runs twice, at once or again, makes the same bytes, and
whichever attempt is counted the release is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.engine import CodeBatch, Counting, Reading
from noren.engines.local import LocalEngine, code_batch, hashed, kept_batches
from noren.engines.profile import Profile
from noren.engines.spark.cluster import sent
from noren.engines.spark.source import Chain, payload
from noren.engines.spark.wire import Wire
from noren.errors import DataError
from noren.files import publish_file
from noren.release.parts import NAME, Part
from noren.release.set_tally import SetTally
from noren.release.store import ParquetStore, write_data
from noren.secret import RecordStream
from noren.secret.streams import CarriedKeys, order_keys
from noren.sources.place import Place, Spot, Upload
from noren.statements import CellBatch, Cells, SetStatement, Statement, batch_length
from noren.statements.set_cells import NumberedSets

ROWS_AT_ONCE = 1 << 16


def part_number() -> int:
    """Which partition this task works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "only in a task"
    return int(context.partitionId())


@dataclass(frozen=True)
class Encode:
    """The records of a partition as codes, with the numbers they have in the table."""

    chain: Chain
    reading: Reading

    def __call__(self, number: int, batches: Iterator[Any]) -> Iterator[CodeBatch]:
        source, place = self.chain.source(number, batches), self.chain.place(number)
        done = 0
        for batch, _ in kept_batches(source, self.reading.columns, self.reading.drop):
            yield code_batch(batch, self.reading, source.name, place.start + done)
            done += batch.num_rows
        if self.chain.starts and done != place.stop - place.start:
            raise DataError(f"{source.name}: it changed while it was read.", hint="Give a table that stands still.")


@dataclass(frozen=True)
class Held:
    """Records of which nothing must be read: everything about them was decided record by record."""

    starts: tuple[int, ...]

    def __call__(self, number: int, batches: Iterator[Any]) -> Iterator[CodeBatch]:
        for _ in batches:
            pass
        for start in range(self.starts[number], self.starts[number + 1], ROWS_AT_ONCE):
            size = min(ROWS_AT_ONCE, self.starts[number + 1] - start)
            yield CodeBatch({}, {}, {}, None, size, start)


@dataclass(frozen=True)
class Make:
    """Published cells of a partition, packed for this machine."""

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
        """Let the machines let go of what was decided."""
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
    """Published cells of a partition as rows for the shuffle, each with 128 random bits."""

    make: Make
    wire: Wire
    keys: CarriedKeys
    tally: SetTally

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number, done = part_number(), 0
        for made in self.make.cells(batches):
            cells = self.tally.written({name: made[name] for name in self.wire.like})
            size = batch_length(cells)
            keys = order_keys(self.keys, np.arange(done, done + size), np.full(size, number))
            yield self.wire.packed(cells, keys)
            done += size


@dataclass(frozen=True)
class Done:
    """What a task has written."""

    number: int
    rows: int
    part: Part
    made: str
    """How the file is called until it is published."""
    seen: Mapping[str, NDArray[np.bool_]]
    """Which sets occur, of columns whose sets are kept once."""


@dataclass(frozen=True)
class Write:
    """A file of the rows that came here, in their random order. Written aside and renamed: there is all of it or none.

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
    """Write one file of data; None where there is nothing to write."""
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
    """A batch without rows of the columns as they are shuffled."""
    found = tally.written({column.name: cells[column.name] for column in columns})
    assert all(not isinstance(one, NumberedSets) or len(one) == 0 for one in found.values())
    return found


@dataclass(frozen=True)
class Count:
    """The profile of a partition, and how many records it has."""

    chain: Chain
    counting: Counting

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number = part_number()
        found = LocalEngine().profile(self.chain.source(number, batches), self.counting)
        yield payload(sent(({number: found.records}, found)))


def together(one: tuple[dict[int, int], Profile], other: tuple[dict[int, int], Profile]) -> Any:
    """What `Count` says of two lots of partitions."""
    one[0].update(other[0])
    one[1].merge(other[1])
    return one


@dataclass(frozen=True)
class Codes:
    """The records of a partition as codes, for this machine."""

    encode: Encode
    chain: Chain

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number = part_number()
        source = self.chain.source(number, batches)
        for batch in LocalEngine().encoded(source, self.encode.reading):
            yield payload(sent(batch))


@dataclass(frozen=True)
class Digest:
    """The digest of every record's key."""

    encode: Encode
    stream: RecordStream

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in self.encode(part_number(), batches):
            digests = self.stream.people(batch.keys).view(np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(digests)], ["digest"])


@dataclass(frozen=True)
class Hash:
    """A number for every cell of a column, the same for the same text."""

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
    """The different tuples of a partition, and how often each occurs."""

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
    """Files with other numbers for their sets."""

    names: tuple[str, ...]
    before: tuple[Statement, ...]
    after: tuple[Statement, ...]
    tally: SetTally
    folder: Spot
    aside: Spot

    def __call__(self, numbers: Iterator[int]) -> Iterator[bytes]:
        for number in numbers:
            cells = map(self.tally.written, ParquetStore.part(self.folder / self.names[number], None, self.before))
            place = int(self.names[number].removesuffix(".parquet").rpartition("-")[2])
            done = written_part(place, cells, self.after, self.folder, self.aside, {})
            yield sent(done)
