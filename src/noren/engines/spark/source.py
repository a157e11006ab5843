"""A table in a Spark cluster, whose partitions have the same rows in the same order each time.

Files are read by this package's own readers, in tasks, so that a cluster reads the records that one machine reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode

from noren.engines.spark.cluster import guarded, settings, told
from noren.errors import DataError
from noren.sources.arrow import blank, open_parquet, parquet_batches
from noren.sources.csv import CsvSource
from noren.sources.place import STORES, Place, Spot, place_of
from noren.sources.source import (
    BATCH_ROWS,
    HIDDEN,
    ONE_TABLE,
    OTHERWISE,
    SCHEME,
    SOURCES,
    Derived,
    FolderSource,
    RowRange,
    Source,
    Writing,
    check_columns,
    demand_file,
    list_files,
    open_source,
    suffix_of,
)

# ---------------------------------------------------------------------- files that every machine sees
#
# Tasks read them as one machine does, and no row passes through Java. Texts stay the dictionaries that they are in
# Parquet files, which makes reading cheap. Which rows a task has is decided here, by files in the order of their
# names, and in them by row groups or by pieces that end with a record.


ROWS_PER_PART = 1 << 20
BYTES_PER_PART = 64 << 20
"""Of text, which takes about as long as that many rows."""
LEAST_BYTES = 1 << 20
"""For fewer a piece of text is not worth a task of its own."""


class Unit(Protocol):
    """Some rows of a file; can be sent to tasks."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]: ...


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a Parquet file."""

    path: str
    groups: tuple[int, ...]
    texts: tuple[str, ...]
    """The columns that are read as dictionaries."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return parquet_batches(self.path, columns, self.texts, self.groups)


@dataclass(frozen=True)
class Files:
    """The input of the tasks of all partitions; can be sent to tasks."""

    parts: tuple[tuple[Unit, ...], ...]
    schema: Any

    def rows(self, number: int, feed: Iterable[Any], columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of a partition in batches."""
        for _ in feed:
            pass
        for unit in self.parts[number]:
            yield from unit.batches(columns)


@dataclass(frozen=True)
class Sent:
    """A local table whose batches are sent to tasks as Arrow, because Spark lacks some of Arrow's types."""

    schema: Any

    def rows(self, number: int, feed: Iterable[Any], columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of a partition in batches."""
        import pyarrow as pa

        for payloads in feed:
            for content in payloads.column(0):
                with pa.ipc.open_stream(content.as_buffer()) as reader:
                    for batch in reader:
                        yield batch.select(list(columns))


def parquet_files(paths: Sequence[Path], parallel: int, name: str, writing: Writing) -> tuple[Files, Source]:
    """Return Parquet files for tasks and for the driver."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = FolderSource(name, [open_parquet(str(path), writing) for path in paths])
    metadata = [pq.read_metadata(path) for path in paths]
    schema = metadata[0].schema.to_arrow_schema().remove_metadata()
    groups = [
        ((path, number), told.row_group(number).num_rows)
        for path, told in zip(paths, metadata, strict=True)
        for number in range(told.num_row_groups)
    ]
    texts = tuple(field.name for field in schema if pa.types.is_string(field.type))
    parts = []
    for lot in split_lots(groups, parallel, ROWS_PER_PART):
        by_file = groupby(lot, key=lambda one: one[0])
        parts.append(
            tuple(RowGroups(str(p.resolve()), tuple(number for _, number in some), texts) for p, some in by_file)
        )
    return Files(tuple(parts), schema), source


def csv_files(sources: Sequence[CsvSource], parallel: int, name: str) -> tuple[Files, Source]:
    """Return delimited files for tasks and for the driver, read by the same reader."""
    import pyarrow as pa

    whole = FolderSource(name, sources)
    least = min(BYTES_PER_PART, max(LEAST_BYTES, sum(source.size for source in sources) // max(1, parallel)))
    pieces = [piece for source in sources for piece in source.pieces(least)]
    sizes = [piece.size if piece.piece is None else piece.piece[1] - piece.piece[0] for piece in pieces]
    lots = split_lots(list(zip(pieces, sizes, strict=True)), parallel, BYTES_PER_PART)
    return Files(tuple(map(tuple, lots)), pa.schema([(column, pa.string()) for column in whole.columns])), whole


def split_lots(sized: Sequence[tuple[Any, int]], parallel: int, most: int) -> list[list[Any]]:
    """Split items into lots of about equal size, in order."""
    whole = sum(size for _, size in sized)
    lots = max(1, min(len(sized), max(parallel, -(-whole // most))))
    out: list[list[Any]] = [[] for _ in range(lots)]
    before = 0
    for one, size in sized:
        out[min(lots - 1, (before + size // 2) * lots // max(1, whole))].append(one)
        before += size
    return out


STEADY = frozenset({"FileSourceScanExec", "LocalTableScanExec", "RangeExec", "ProjectExec", "FilterExec", "UnionExec",
                    "ColumnarToRowExec", "InputAdapter", "WholeStageCodegenExec", "EmptyRelationExec"})  # fmt: skip
"""Steps of a plan that give the same rows in the same order, in the same partitions, however often they run."""
HELD = (
    "the table is computed or read from a database, so its rows may come in another order when read again: it is "
    "kept as first read, and the run publishes nothing if a machine with part of it is lost"
)
OTHER = "Give a Parquet or CSV path, table:NAME, a jdbc: address with dbtable=..., or a DataFrame."
PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".txt")


class SparkSource:
    """A DataFrame as a source, which is not changed."""

    def __init__(self, frame: Any, name: str = "the Spark DataFrame", missing_values: Sequence[str] = ()) -> None:
        if not hasattr(frame, "_jdf"):
            raise DataError(
                "a DataFrame of Spark Connect does not show how it is computed.",
                hint="Give a DataFrame of a classic session, or the path of the data.",
            )
        self.name = name
        self.columns = check_columns(frame.columns, name)
        self.missing_values = tuple(missing_values)
        self.session = frame.sparkSession
        self.notes: tuple[str, ...] = ()
        self.rows: int | None = None
        self.frame = frame
        self.files: Files | None = None
        if not is_steady(frame):
            with told():
                self.frame = frame.localCheckpoint(eager=True)
            self.notes = (HELD,)

    def tasks(self, columns: Sequence[str]) -> Any:
        """Return the input of tasks with these columns."""
        return self.selected(columns)

    def nothing(self, columns: Sequence[str]) -> Any:
        """Return these columns without rows."""
        import pyarrow as pa

        with settings(self.session), told():
            empty = self.selected(columns).limit(0).toArrow()
        return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in empty.schema], empty.schema.names)

    def selected(self, columns: Sequence[str]) -> Any:
        """Select some columns under numbers, so that their names do not conflict with Spark's rules."""
        from pyspark.sql import functions

        names = [functions.col("`" + name.replace("`", "``") + "`").alias(f"c{i}") for i, name in enumerate(columns)]
        return self.frame.select(*names)

    @property
    def partitions(self) -> int:
        with settings(self.session):
            return int(self.frame.rdd.getNumPartitions())

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield all rows through the driver."""
        import pyarrow as pa

        from noren.sources.arrow import blank

        with settings(self.session), told():
            sent = self.selected(columns).mapInArrow(guarded(_as_bytes), "payload binary")
            for row in sent.toLocalIterator(prefetchPartitions=True):
                with pa.ipc.open_stream(row.payload) as reader:
                    for batch in reader:
                        named = pa.RecordBatch.from_arrays(batch.columns, list(columns))
                        yield blank(named, self.missing_values)


class FilesSource:
    """A table that tasks read with the local readers: files that all machines can access, or a table that is sent."""

    def __init__(
        self, session: Any, files: Files | Sent, whole: Source, missing_values: Sequence[str] = (), frame: Any = None
    ) -> None:
        """`whole`: the same table as one machine reads it. `frame`: what feeds the tasks of a table that is sent."""
        self.session = session
        self.files = files
        self.name = whole.name
        self.notes = whole.notes
        self.missing_values = tuple(missing_values)
        self.columns = whole.columns
        self.rows: int | None = None
        self.frame = frame
        self.batches = whole.batches
        """All rows through this machine: for what nobody else can do."""

    @property
    def partitions(self) -> int:
        if isinstance(self.files, Files):
            return len(self.files.parts)
        with settings(self.session):
            return int(self.frame.rdd.getNumPartitions())

    def tasks(self, columns: Sequence[str]) -> Any:
        """Return the input of tasks; for files a number that identifies each."""
        return self.frame if self.frame is not None else self.session.range(0, self.partitions, 1, self.partitions)

    def nothing(self, columns: Sequence[str]) -> Any:
        """Return these columns without rows."""
        import pyarrow as pa

        kinds = [self.files.schema.field(name).type for name in columns]
        return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in kinds], list(columns))


def send_table(session: Any, source: Source) -> FilesSource:
    """Send a local table to the cluster batch by batch."""
    import pyarrow as pa

    batches = list(source.batches(list(source.columns)))
    if not batches:
        raise DataError(f"{source.name}: no records: it has a header but no rows.", hint="Give a table with rows.")
    whole = pa.Table.from_batches(batches)
    most = max(1, min(BATCH_ROWS, -(-whole.num_rows // session.sparkContext.defaultParallelism)))
    frame = session.createDataFrame(pa.Table.from_batches(_as_bytes(iter(whole.to_batches(most)))))
    return FilesSource(session, Sent(whole.schema), source, frame=frame)


def _as_bytes(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield payload(sink.getvalue().to_pybytes())


def payload(content: bytes) -> Any:
    """Pack bytes into a batch of one row."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([content], pa.binary())], ["payload"])


def is_steady(frame: Any) -> bool:
    """Return whether every step of the plan gives the same rows in the same order each time it runs."""
    waiting = [frame._jdf.queryExecution().sparkPlan()]
    while waiting:
        step = waiting.pop()
        kind = step.getClass().getSimpleName()
        if kind == "RDDScanExec":
            if step.rdd().outputDeterministicLevel().toString() != "DETERMINATE":
                return False
        elif kind not in STEADY:
            return False
        children = step.children()
        waiting += [children.apply(number) for number in range(children.size())]
    return True


def opened(session: Any, place: str | Path, writing: Writing) -> Source:
    """Open a table that the cluster reads: Parquet and CSV (a file, a folder, a glob), a catalogue table, or a
    database; anything else as a local source."""
    text = str(place)
    scheme = SCHEME.match(text)
    with ToldAsData(text):
        if text.startswith("jdbc:"):
            return _base(session, text, writing)
        if text.startswith("table:"):
            return SparkSource(session.table(text.removeprefix("table:")), text, writing.missing_values)
        if scheme is not None and scheme[1].lower() in SOURCES:
            return open_source(text, missing_values=writing.missing_values)
        if scheme is not None and scheme[1].lower() != "file:":
            return _in_store(session, text, writing)
        path = place_of(text)
        assert isinstance(path, Path)
        if path.is_dir() and any(one.is_dir() and not one.name.startswith(HIDDEN) for one in path.iterdir()):
            return _read_by_spark(session, text, writing)
        files = [demand_file(Path(str(one))) for one in list_files(path)]
        return _of_files(session, files, text, writing)


def _of_files(session: Any, files: Sequence[Path], text: str, writing: Writing) -> Source:
    """Open files that the driver and all workers can access."""
    parallel = session.sparkContext.defaultParallelism
    if suffix_of(files[0]) in PARQUET:
        found, whole = parquet_files(files, parallel, text, writing)
    elif SOURCES.get(suffix_of(files[0]), SOURCES[OTHERWISE]) == SOURCES[OTHERWISE]:
        found, whole = csv_files([_text_of(file, writing) for file in files], parallel, text)
    else:
        return open_source(text, missing_values=writing.missing_values)
    return FilesSource(session, found, whole, writing.missing_values)


def _in_store(session: Any, text: str, writing: Writing) -> Source:
    """Open files at an address. Noren's reader reads text; Spark reads Parquet with its own credentials."""
    name = text.rstrip("/").partition("?")[0]
    known = text.partition(":")[0].lower() in STORES
    spots = list_files(place_of(text)) if known and not name.endswith(PARQUET) else [Path(name)]
    if not {suffix_of(spot) for spot in spots} <= set(TEXT):
        return _read_by_spark(session, text, writing)
    if not known:
        raise DataError(
            f"{name}: Spark would read this text differently from Noren.",
            hint="Write it as Parquet, or give the DataFrame that you have read.",
        )
    sources = [_text_of(spot, writing) for spot in spots]
    found, whole = csv_files(sources, session.sparkContext.defaultParallelism, name)
    return FilesSource(session, found, whole, writing.missing_values)


def _text_of(spot: Spot, writing: Writing) -> CsvSource:
    return CsvSource(
        spot if isinstance(spot, Place) else spot.resolve(),
        separator=writing.separator,
        encoding=writing.encoding,
        missing_values=writing.missing_values,
        doubted=True,
    )


def _read_by_spark(session: Any, text: str, writing: Writing) -> SparkSource:
    """Open Parquet in places that only Spark can access, or in folders whose names hold columns.

    Spark takes the columns of one file for those of all and fills the rest with nothing, so each is compared.
    """
    frame = session.read.parquet(text)
    files = sorted(frame.inputFiles())
    kinds = [sorted((field.name, str(field.dataType)) for field in session.read.parquet(one).schema) for one in files]
    for name, kind in zip(files, kinds, strict=True):
        if kind != kinds[0]:
            raise DataError(
                f"{name}: its columns are not those of {files[0]}, though both are one table.", hint=ONE_TABLE
            )
    return SparkSource(frame, text, writing.missing_values)


def _base(session: Any, text: str, writing: Writing) -> SparkSource:
    """Open a table or query of a database. Messages omit the part of the address after the host, which may hold a
    password."""
    address, _, rest = text.partition("?")
    given = dict(parse_qsl(rest, keep_blank_values=True))
    asked = {name: given.pop(name) for name in ("dbtable", "query") if name in given}
    if len(asked) != 1:
        raise DataError(
            "the address names no table of the database.",
            hint="Add ?dbtable=people (or &dbtable=people) to the address.",
        )
    url = address + (f"?{urlencode(given)}" if given else "")
    frame = session.read.format("jdbc").option("url", url).options(**asked).load()
    return SparkSource(frame, "the table of the database", writing.missing_values)


class ToldAsData:
    """Turns Spark's errors about a place into ours, without what Spark quotes."""

    def __init__(self, place: str) -> None:
        self.place = "the base" if place.startswith("jdbc:") else place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None and type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise DataError(f"{self.place}: Spark cannot read it ({type(error).__name__}).", hint=OTHER) from None


# ---------------------------------------------------------------------- the rows of one task
#
# A partition is read as the whole table is: the same markers, terms, tuples and sample, over the rows of one task.


@dataclass
class PartSource:
    """The rows of one task, which can be read once."""

    name: str
    columns: tuple[str, ...]
    read: tuple[str, ...] = ()
    """The columns that the task gets, in their order."""
    missing_values: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    feed: Iterable[Any] = ()
    asked: list[str] = field(default_factory=list)
    """Which columns were asked for."""

    @property
    def rows(self) -> int | None:
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        self.asked = list(columns)
        for batch in self.feed:
            named = pa.RecordBatch.from_arrays(batch.columns, list(self.read))
            yield blank(named.select(list(columns)), self.missing_values)


def base_of(source: Source) -> Source:
    """Return the source that others are derived from."""
    while hasattr(source, "inner"):
        source = source.inner
    return source


def over(source: Any, part: Source, place: RowRange) -> Source:
    """Return the source over another part of its data."""
    if not hasattr(source, "inner"):
        return part
    derived: Derived = source
    return derived.over(over(derived.inner, part, place), place)


def carries_keys(source: Any) -> bool:
    """Return whether a key is part of how the source is read."""
    return hasattr(source, "inner") and (getattr(source, "carries_keys", False) or carries_keys(source.inner))


@dataclass(frozen=True)
class Chain:
    """The steps that read a partition; can be sent to tasks."""

    top: Source
    read: tuple[str, ...]
    """The columns that a task needs."""
    starts: tuple[int, ...] = ()
    """How many records come before every partition, where that is known, and how many there are."""

    files: Files | Sent | None = None
    """Where a task reads its rows itself, from what."""

    @classmethod
    def of(cls, source: Source, columns: Sequence[str], starts: Sequence[int] = ()) -> Chain:
        base: Any = base_of(source)
        empty = PartSource(base.name, base.columns, base.columns, base.missing_values)
        top = over(source, empty, RowRange())
        list(top.batches(list(columns)))
        bare = over(source, PartSource(base.name, base.columns, (), base.missing_values), RowRange())
        return cls(bare, tuple(empty.asked), tuple(starts), base.files)

    def place(self, number: int) -> RowRange:
        return RowRange(number, self.starts[number], self.starts[number + 1]) if self.starts else RowRange(number)

    def source(self, number: int, feed: Iterable[Any]) -> Source:
        """Return the source of one partition with these rows."""
        base: Any = base_of(self.top)
        if self.files is not None:
            feed = self.files.rows(number, feed, self.read)
        part = PartSource(base.name, base.columns, self.read, base.missing_values, feed=feed)
        return over(self.top, part, self.place(number))
