"""Files that every machine sees: tasks read them as one machine does, and no row passes through Java.

Texts stay the dictionaries that they are in Parquet files, which is what makes reading cheap; and which rows a task has
is decided here, by files in the order of their names, and in them by row groups or by pieces that end with a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from noren.errors import DataError
from noren.sources.arrow import open_parquet
from noren.sources.csv import CsvSource
from noren.sources.source import BATCH_ROWS, FolderSource, Source, Writing

ROWS_PER_PART = 1 << 20
BYTES_PER_PART = 64 << 20
"""Of text, which takes about as long as that many rows."""
LEAST_BYTES = 1 << 20
"""For fewer a piece of text is not worth a task of its own."""


class Unit(Protocol):
    """Some rows of a file; may travel."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]: ...


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a Parquet file."""

    path: str
    groups: tuple[int, ...]
    texts: tuple[str, ...]
    """The columns that are read as dictionaries."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = [name for name in self.texts if name in columns]
        try:
            with pq.ParquetFile(self.path, read_dictionary=texts, pre_buffer=False) as file:
                for batch in file.iter_batches(BATCH_ROWS, row_groups=list(self.groups), columns=list(columns)):
                    batch.validate(full=True)
                    yield batch.select(list(columns))
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, UnicodeError, KeyError):
            raise DataError(
                f"{self.path}: not a readable Parquet file.", hint="Is it complete? Write it again."
            ) from None


@dataclass(frozen=True)
class Files:
    """What the task of every partition reads; may travel."""

    parts: tuple[tuple[Unit, ...], ...]
    schema: Any

    def rows(self, number: int, feed: Iterable[Any], columns: Sequence[str]) -> Iterator[Any]:
        """Some columns of a partition, in batches; what feeds its task says nothing more."""
        for _ in feed:
            pass
        for unit in self.parts[number]:
            yield from unit.batches(columns)


@dataclass(frozen=True)
class Sent:
    """A table of one machine, whose batches feed the tasks as they are: Spark has not all of Arrow's types."""

    schema: Any

    def rows(self, number: int, feed: Iterable[Any], columns: Sequence[str]) -> Iterator[Any]:
        """Some columns of a partition, in batches."""
        import pyarrow as pa

        for payloads in feed:
            for content in payloads.column(0):
                with pa.ipc.open_stream(content.as_buffer()) as reader:
                    for batch in reader:
                        yield batch.select(list(columns))


def parquet_files(paths: Sequence[Path], parallel: int, name: str, writing: Writing) -> tuple[Files, Source]:
    """Parquet files as tasks read them, and as one machine does."""
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
    """Delimited text as tasks read it, by the reader of one machine, and as that machine does."""
    import pyarrow as pa

    whole = FolderSource(name, sources)
    least = min(BYTES_PER_PART, max(LEAST_BYTES, sum(source.size for source in sources) // max(1, parallel)))
    pieces = [piece for source in sources for piece in source.pieces(least)]
    sizes = [piece.size if piece.piece is None else piece.piece[1] - piece.piece[0] for piece in pieces]
    lots = split_lots(list(zip(pieces, sizes, strict=True)), parallel, BYTES_PER_PART)
    return Files(tuple(map(tuple, lots)), pa.schema([(column, pa.string()) for column in whole.columns])), whole


def split_lots(sized: Sequence[tuple[Any, int]], parallel: int, most: int) -> list[list[Any]]:
    """Things in their order, in lots of about the same size."""
    whole = sum(size for _, size in sized)
    lots = max(1, min(len(sized), max(parallel, -(-whole // most))))
    out: list[list[Any]] = [[] for _ in range(lots)]
    before = 0
    for one, size in sized:
        out[min(lots - 1, (before + size // 2) * lots // max(1, whole))].append(one)
        before += size
    return out
