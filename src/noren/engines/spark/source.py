"""A table in a Spark cluster. Which rows a partition has, and in which order, is the same whenever it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from noren.engines.spark.files import Files, files_at
from noren.engines.spark.guard import guarded, told
from noren.engines.spark.session import settings
from noren.errors import DataError
from noren.sources.source import Writing, check_columns

STEADY = frozenset({"FileSourceScanExec", "LocalTableScanExec", "RangeExec", "ProjectExec", "FilterExec", "UnionExec",
                    "ColumnarToRowExec", "InputAdapter", "WholeStageCodegenExec", "EmptyRelationExec"})  # fmt: skip
"""Steps of a plan that give the same rows in the same order, in the same partitions, however often they run."""
HELD = (
    "the table is computed, or read from a base, so that its rows could come in another order the next time: it is "
    "held as it came, and if a machine is lost that holds some of it, the run stops and publishes nothing"
)
OTHER = "Give a Parquet or CSV path, table:NAME, a jdbc: address with dbtable=..., or a DataFrame."


class SparkSource:
    """A DataFrame as a source. Nothing of it is changed."""

    def __init__(self, frame: Any, name: str = "the Spark DataFrame", missing_values: Sequence[str] = ()) -> None:
        if not hasattr(frame, "_jdf"):
            raise DataError(
                "a DataFrame of Spark Connect does not say how it is computed.",
                hint="Give one of a classic session, or the path of the data.",
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
        """What tasks get of these columns."""
        return self.selected(columns)

    def nothing(self, columns: Sequence[str]) -> Any:
        """These columns of no row."""
        import pyarrow as pa

        with settings(self.session), told():
            empty = self.selected(columns).limit(0).toArrow()
        return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in empty.schema], empty.schema.names)

    def selected(self, columns: Sequence[str]) -> Any:
        """Some columns, numbered, so that no name of a column meets Spark's own rules about names."""
        from pyspark.sql import functions

        names = [functions.col("`" + name.replace("`", "``") + "`").alias(f"c{i}") for i, name in enumerate(columns)]
        return self.frame.select(*names)

    @property
    def partitions(self) -> int:
        with settings(self.session):
            return int(self.frame.rdd.getNumPartitions())

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """All rows through this machine: for what nobody else can do."""
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
    """Parquet files that every machine reads by itself."""

    notes: tuple[str, ...] = ()

    def __init__(self, session: Any, files: Files, name: str, missing_values: Sequence[str] = ()) -> None:
        self.session = session
        self.files: Files | None = files
        self.name = name
        self.missing_values = tuple(missing_values)
        self.columns = check_columns(files.schema.names, name)
        self.rows: int | None = None
        self.partitions = len(files.parts)

    def tasks(self, columns: Sequence[str]) -> Any:
        """A number for every task, by which it knows its files."""
        return self.session.range(0, self.partitions, 1, self.partitions)

    def nothing(self, columns: Sequence[str]) -> Any:
        assert self.files is not None
        return self.files.nothing(columns)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """All rows through this machine: for what nobody else can do."""
        from noren.sources.arrow import blank

        assert self.files is not None
        for number in range(self.partitions):
            for batch in self.files.read(number, columns):
                yield blank(batch, self.missing_values)


def _as_bytes(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield payload(sink.getvalue().to_pybytes())


def payload(content: bytes) -> Any:
    """Bytes as the one row of a batch."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([content], pa.binary())], ["payload"])


def is_steady(frame: Any) -> bool:
    """Whether every step of the plan gives the same rows in the same order, however often it runs."""
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


def opened(session: Any, place: str | Path, writing: Writing) -> SparkSource | FilesSource:
    """A table that Spark reads: Parquet (a file, a folder, a glob), CSV, a table of the catalogue, a base."""
    text = str(place)
    with ToldAsData(text):
        if text.startswith("jdbc:"):
            return _base(session, text, writing)
        if text.startswith("table:"):
            return SparkSource(session.table(text.removeprefix("table:")), text, writing.missing_values)
        kinds = _endings(text)
        if ".csv" in kinds or ".tsv" in kinds or ".txt" in kinds:
            options = {"header": "true", "sep": writing.separator or ("\t" if ".tsv" in kinds else ","), "escape": '"'}
            options |= {} if writing.encoding is None else {"encoding": writing.encoding}
            return SparkSource(session.read.options(**options).csv(text), text, writing.missing_values)
        files = files_at(text, session.sparkContext.defaultParallelism)
        if files is not None:
            return FilesSource(session, files, text, writing.missing_values)
        return SparkSource(session.read.parquet(text), text, writing.missing_values)


def _endings(text: str) -> list[str]:
    """How a path ends; of a folder that this machine sees, how all its files end."""
    folder = Path(text.removeprefix("file://"))
    own = [end.lower() for end in Path(text.rstrip("/")).suffixes]
    inside = [one for one in folder.iterdir() if one.name[0] not in "._"] if folder.is_dir() else []
    shared = set.intersection(*({end.lower() for end in one.suffixes} for one in inside)) if inside else set()
    return [*own, *shared]


def _base(session: Any, text: str, writing: Writing) -> SparkSource:
    """A table or query of a base. Its address may hold a password, and is named without what follows the host."""
    address, _, rest = text.partition("?")
    given = dict(parse_qsl(rest, keep_blank_values=True))
    asked = {name: given.pop(name) for name in ("dbtable", "query") if name in given}
    if len(asked) != 1:
        raise DataError("which table of the base?", hint=f'For example "{address.split("@")[-1]}?dbtable=people".')
    url = address + (f"?{urlencode(given)}" if given else "")
    frame = session.read.format("jdbc").option("url", url).options(**asked).load()
    return SparkSource(frame, "the table of the base", writing.missing_values)


class ToldAsData:
    """Errors of Spark about a place as ours, without what Spark quotes."""

    def __init__(self, place: str) -> None:
        self.place = "the base" if place.startswith("jdbc:") else place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None and type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise DataError(f"{self.place}: Spark cannot read it ({type(error).__name__}).", hint=OTHER) from None
