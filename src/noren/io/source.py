"""Where a table comes from. A source names its columns and streams them in batches, as often as asked.

Nothing of the original is modified: files are opened for reading only, frames are read through the Arrow C stream
interface.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from noren.errors import DataError

BATCH_ROWS = 1 << 16


class Source(Protocol):
    """A table that can be streamed more than once."""

    @property
    def name(self) -> str:
        """How messages call it."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def rows(self) -> int | None:
        """Number of rows where it is known without reading."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed about the input, for the person who runs the command."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """pyarrow RecordBatches with these columns, in the table's order."""


def open_source(
    data: Any,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    missing_values: Sequence[str] = (),
) -> Source:
    """A source for a path (CSV, Parquet, Arrow) or any object with the Arrow C stream interface."""
    if isinstance(data, str | Path):
        path = Path(data)
        if not path.exists():
            raise DataError(f"{path}: no such file.", hint="Check the path; it is relative to the current directory.")
        if path.is_dir():
            raise DataError(f"{path}: is a directory.", hint="Name a CSV, Parquet or Arrow file.")
        suffixes = [suffix.lower() for suffix in path.suffixes]
        if suffixes[-1:] in ([".parquet"], [".pq"]):
            from noren.io.arrow import ParquetSource

            return ParquetSource(path, tuple(missing_values))
        if suffixes[-1:] in ([".arrow"], [".feather"], [".ipc"], [".arrows"]):
            from noren.io.arrow import IpcSource

            return IpcSource(path, tuple(missing_values))
        from noren.io.csv import CsvSource

        return CsvSource(path, separator=separator, encoding=encoding, missing_values=tuple(missing_values))
    if hasattr(data, "batches") and hasattr(data, "notes"):
        source: Source = data
        return source
    if hasattr(data, "__arrow_c_stream__"):
        from noren.io.arrow import FrameSource

        return FrameSource(data, tuple(missing_values))
    raise DataError(
        f"cannot read a table from {type(data).__name__}.",
        hint="Give a path, a pyarrow Table, a Polars or pandas DataFrame, or any object with __arrow_c_stream__.",
    )


def check_columns(columns: Sequence[str], name: str) -> tuple[str, ...]:
    """Column names must be there, and be different from each other."""
    seen: set[str] = set()
    for position, column in enumerate(columns, 1):
        if not column.strip():
            raise DataError(f"{name}: column {position} has no name.", hint="Give every column a name in the header.")
        if column in seen:
            raise DataError(f"{name}: two columns are called {column!r}.", hint="Rename one of them.")
        seen.add(column)
    return tuple(columns)
