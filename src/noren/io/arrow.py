"""Parquet files, Arrow files and frames in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from noren.errors import DataError
from noren.io.source import BATCH_ROWS, check_columns


class ParquetSource:
    """A Parquet file, read row group by row group."""

    notes: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        self.name = str(path)
        try:
            with pq.ParquetFile(path) as file:
                self.columns = check_columns(file.schema_arrow.names, self.name)
                self.rows: int | None = file.metadata.num_rows
                self._text = [f.name for f in file.schema_arrow if pa.types.is_string(f.type)]
        except pa.ArrowException:
            raise DataError(f"{path}: not a readable Parquet file.", hint="Is it complete? Write it again.") from None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow.parquet as pq

        dictionaries = [name for name in self._text if name in columns]
        with pq.ParquetFile(self.path, read_dictionary=dictionaries) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns))


class IpcSource:
    """An Arrow IPC file or stream."""

    notes: tuple[str, ...] = ()
    rows: int | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        with self._open() as reader:
            self.columns = check_columns(reader.schema.names, self.name)

    def _open(self) -> Any:
        import pyarrow as pa

        try:
            try:
                return pa.ipc.open_file(pa.memory_map(str(self.path)))
            except pa.ArrowInvalid:
                return pa.ipc.open_stream(pa.memory_map(str(self.path)))
        except (pa.ArrowException, OSError):
            hint = "Is it complete? Write it again."
            raise DataError(f"{self.path}: not a readable Arrow file.", hint=hint) from None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        with self._open() as reader:
            if hasattr(reader, "num_record_batches"):
                parts = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                parts = iter(reader)
            for part in parts:
                for start in range(0, part.num_rows, BATCH_ROWS):
                    yield part.slice(start, BATCH_ROWS).select(list(columns))


class FrameSource:
    """Any object with the Arrow C stream interface: pyarrow, Polars, pandas, DuckDB relations.

    A one-shot stream (a RecordBatchReader) is read into memory, because two passes are needed; give a file instead
    where it is too large for that.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, data: Any) -> None:
        import pyarrow as pa

        self.name = f"the {type(data).__module__.split('.')[0]} {type(data).__name__}"
        self._data = pa.table(data) if isinstance(data, pa.RecordBatchReader) else data
        with self._reader() as reader:
            self.columns = check_columns([str(name) for name in reader.schema.names], self.name)
        self.rows: int | None = len(self._data) if hasattr(self._data, "__len__") else None

    def _reader(self) -> Any:
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(self._data)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        with self._reader() as reader:
            for part in reader:
                for start in range(0, part.num_rows, BATCH_ROWS):
                    yield part.slice(start, BATCH_ROWS).select(list(columns))
