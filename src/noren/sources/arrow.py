"""Parquet files, Arrow files, Excel workbooks and frames in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from noren.errors import DataError
from noren.sources.header import LOOKED_AT, MISSING, demand_names
from noren.sources.source import BATCH_ROWS, Writing, check_columns

UNPACKED = 1 << 30
"""Bytes that a row group of a Parquet file may unpack to in any case: 1 GB."""
RATIO = 1000
"""Beyond that, how many times the size of the file."""
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def blank(batch: Any, markers: Sequence[str]) -> Any:
    """Return the batch with cells that equal one of these texts made missing, in columns of any type.

    String views become strings: Arrow can neither filter nor reorder them.
    """
    import pyarrow as pa

    if not markers and not any(pa.types.is_string_view(kind) for kind in batch.schema.types):
        return batch
    return pa.RecordBatch.from_arrays([_blank(column, markers) for column in batch.columns], batch.schema.names)


def _blank(column: Any, markers: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, _blank(column.dictionary, markers))
    if pa.types.is_string_view(kind):
        return _blank(column.cast(pa.string()), markers)
    if pa.types.is_boolean(kind):  # Arrow would read 0 and 1 as well
        markers = [marker for marker in markers if marker in ("true", "false")]
    meant = []
    for marker in markers:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            meant.append(pa.scalar(marker).cast(kind).as_py())
    if not meant:
        return column
    return pc.if_else(pc.is_in(column, value_set=pa.array(meant, kind)), pa.scalar(None, kind), column)


def types_of(schema: Any) -> dict[str, str]:
    """Return the types of columns by name."""
    return {field.name: str(field.type) for field in schema}


class ParquetSource:
    """A Parquet file, read row group by row group."""

    notes: tuple[str, ...] = ()

    def __init__(self, path: Path, missing_values: Sequence[str] = ()) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        self.name = str(path)
        self.missing_values = missing_values
        with readable_as(path, "Parquet"), pq.ParquetFile(path) as file:
            self.columns = check_columns(file.schema_arrow.names, self.name)
            self.rows: int | None = file.metadata.num_rows
            self.types = types_of(file.schema_arrow)
            self._text = [f.name for f in file.schema_arrow if pa.types.is_string(f.type)]
            self._refuse_bombs(file.metadata)

    def _refuse_bombs(self, metadata: Any) -> None:
        """Refuse a file that claims to unpack to far more than its size, before reading it."""
        largest = max((metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)), default=0)
        if largest > UNPACKED + RATIO * self.path.stat().st_size:
            raise DataError(
                f"{self.path}: a row group claims to unpack to more than {RATIO} times the size of the file.",
                hint="If it is your own file, write it again with smaller row groups.",
            )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for part in parquet_batches(self.path, columns, self._text):
            yield blank(part, self.missing_values)


def parquet_batches(
    path: Path | str, columns: Sequence[str], texts: Sequence[str], groups: Sequence[int] | None = None
) -> Iterator[Any]:
    """Yield some columns of a Parquet file, or of some of its row groups; those in `texts` as dictionaries."""
    import pyarrow.parquet as pq

    asked = [name for name in texts if name in columns]
    with readable_as(path, "Parquet"), pq.ParquetFile(path, read_dictionary=asked, pre_buffer=False) as file:
        some = None if groups is None else list(groups)
        for part in file.iter_batches(batch_size=BATCH_ROWS, row_groups=some, columns=list(columns)):
            part.validate(full=True)  # texts that are not UTF-8, places outside a dictionary
            yield part.select(list(columns))


@contextmanager
def readable_as(path: Path | str, kind: str) -> Iterator[None]:
    """Turn Arrow's errors while reading a file into errors that quote nothing of it."""
    import pyarrow as pa

    try:
        yield
    except MemoryError:  # of Arrow too
        raise
    except (pa.ArrowException, OSError, UnicodeError, KeyError) as error:
        if kind == "Parquet" and "crypt" in str(error).lower():
            raise DataError(f"{path}: is encrypted.", hint="Decrypt the file first.") from None
        raise DataError(
            f"{path}: not a readable {kind} file.", hint="Check that the file is complete, or write it again."
        ) from None


class IpcSource:
    """An Arrow IPC file or stream."""

    notes: tuple[str, ...] = ()
    rows: int | None = None

    def __init__(self, path: Path, missing_values: Sequence[str] = ()) -> None:
        self.path = path
        self.name = str(path)
        self.missing_values = missing_values
        with readable_as(path, "Arrow"), self._open() as reader:
            self.columns = check_columns(reader.schema.names, self.name)
            self.types = types_of(reader.schema)

    def _open(self) -> Any:
        import pyarrow as pa

        try:
            return pa.ipc.open_file(pa.memory_map(str(self.path)))
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.memory_map(str(self.path)))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        with readable_as(self.path, "Arrow"), self._open() as reader:
            if hasattr(reader, "num_record_batches"):
                parts = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                parts = iter(reader)
            for part in parts:
                part.validate(full=True)  # offsets that point outside would be followed otherwise
                for start in range(0, part.num_rows, BATCH_ROWS):
                    yield blank(part.slice(start, BATCH_ROWS).select(list(columns)), self.missing_values)


def open_parquet(place: str, writing: Writing) -> ParquetSource:
    """Open a Parquet file."""
    return ParquetSource(Path(place), writing.missing_values)


def open_ipc(place: str, writing: Writing) -> IpcSource:
    """Open an Arrow file or stream."""
    return IpcSource(Path(place), writing.missing_values)


class FrameSource:
    """Any object with the Arrow C stream interface: pyarrow, Polars, pandas, DuckDB relations.

    A one-shot stream (a RecordBatchReader) is read into memory, because two passes are needed; give a file instead
    where it is too large for that. The unnamed index of a pandas frame is not a column.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, data: Any, missing_values: Sequence[str] = ()) -> None:
        import pyarrow as pa

        self.missing_values = missing_values
        self.name = f"the {type(data).__module__.split('.')[0]} {type(data).__name__}"
        self._data = pa.table(data) if isinstance(data, pa.RecordBatchReader) else data
        with self._reader() as reader:
            names = [name for name in reader.schema.names if not UNNAMED_INDEX.fullmatch(name)]
        self.columns = check_columns(names, self.name)
        self.rows: int | None = len(self._data) if hasattr(self._data, "__len__") else None

    def _reader(self) -> Any:
        import pyarrow as pa

        try:
            return pa.RecordBatchReader.from_stream(self._data)
        except (pa.ArrowException, TypeError, ValueError):  # their messages quote cells
            raise DataError(
                f"{self.name}: cannot be read as an Arrow table.",
                hint="Give every column its own name and values of one type; text and numbers mixed must become text.",
            ) from None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        with self._reader() as reader:
            for part in reader:
                for start in range(0, part.num_rows, BATCH_ROWS):
                    yield blank(part.slice(start, BATCH_ROWS).select(list(columns)), self.missing_values)


# ---------------------------------------------------------------------- the first sheet of an Excel workbook


INSTALL = "pip install 'noren[excel]'"


def open_excel(place: str, writing: Writing) -> FrameSource:
    """Open the first sheet of a workbook, with its first row as the names of the columns."""
    import polars as pl

    path = Path(place)
    try:
        frame = pl.read_excel(path, engine="calamine")
    except ModuleNotFoundError:
        message = f"{path}: reading Excel files needs a package that is not installed."
        raise DataError(message, hint=f"{INSTALL}, or save the sheet as CSV.") from None
    except Exception:  # whatever a reader of somebody else's format raises may quote cells
        raise DataError(f"{path}: cannot be read as an Excel workbook.", hint="Save the sheet as CSV.") from None
    rows = frame.head(LOOKED_AT).cast(pl.String, strict=False).fill_null("").rows()
    demand_names(str(path), [frame.columns, *rows], ("", *writing.missing_values, *MISSING))
    source = FrameSource(frame, writing.missing_values)
    source.name = str(path)
    return source
