"""Parquet files that every machine sees: tasks read them as one machine does, and no row passes through Java.

Texts stay the dictionaries that they are in the files, which is what makes reading cheap; and which rows a task has is
decided here, by files in the order of their names and by row groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noren.errors import DataError
from noren.sources.arrow import RATIO, UNPACKED
from noren.sources.source import BATCH_ROWS

ROWS_PER_PART = 1 << 20
Unit = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Files:
    """The row groups of every partition; may travel."""

    parts: tuple[tuple[Unit, ...], ...]
    texts: tuple[str, ...]
    """The columns that are read as dictionaries."""
    schema: Any

    def read(self, number: int, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns of a partition, in batches."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = [name for name in self.texts if name in columns]
        for path, groups in self.parts[number]:
            try:
                with pq.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
                    for batch in file.iter_batches(BATCH_ROWS, row_groups=list(groups), columns=list(columns)):
                        batch.validate(full=True)
                        yield batch.select(list(columns))
            except (pa.ArrowException, OSError, UnicodeError, KeyError):
                raise DataError(
                    f"{path}: not a readable Parquet file.", hint="Is it complete? Write it again."
                ) from None

    def nothing(self, columns: Sequence[str]) -> Any:
        """Some columns of no row."""
        import pyarrow as pa

        kinds = [self.schema.field(name).type for name in columns]
        return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in kinds], list(columns))


def files_at(place: str, parallel: int) -> Files | None:
    """The files of a path that this machine sees, in lots; None for anything that Spark must read itself: folders in
    folders, files that differ in their columns, other places."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(place.removeprefix("file://"))
    if not path.exists():
        return None
    found = sorted(one for one in path.iterdir() if one.name[0] not in "._") if path.is_dir() else [path]
    if not found or not all(one.is_file() and one.suffix in (".parquet", ".pq") for one in found):
        return None
    try:
        metadata = [pq.read_metadata(one) for one in found]
        schemas = [one.schema.to_arrow_schema().remove_metadata() for one in metadata]
    except (pa.ArrowException, OSError, UnicodeError):
        return None
    if any(schema != schemas[0] for schema in schemas):
        return None
    groups: list[tuple[str, int, int]] = []
    for one, told in zip(found, metadata, strict=True):
        for number in range(told.num_row_groups):
            group = told.row_group(number)
            if group.total_byte_size > UNPACKED + RATIO * one.stat().st_size:
                raise DataError(
                    f"{one}: a row group claims to unpack to more than {RATIO} times the size of the file.",
                    hint="If it is your own file, write it again with smaller row groups.",
                )
            groups.append((str(one.resolve()), number, group.num_rows))
    texts = tuple(field.name for field in schemas[0] if pa.types.is_string(field.type))
    return Files(_lots(groups, parallel), texts, schemas[0])


def _lots(groups: Sequence[tuple[str, int, int]], parallel: int) -> tuple[tuple[Unit, ...], ...]:
    """Row groups in their order, in partitions of about as many rows each."""
    rows = sum(size for _, _, size in groups)
    lots = max(1, min(len(groups), max(parallel, -(-rows // ROWS_PER_PART))))
    out: list[dict[str, list[int]]] = [{} for _ in range(lots)]
    before = 0
    for path, number, size in groups:
        lot = min(lots - 1, (before + size // 2) * lots // max(1, rows))
        out[lot].setdefault(path, []).append(number)
        before += size
    return tuple(tuple((path, tuple(numbers)) for path, numbers in lot.items()) for lot in out)
