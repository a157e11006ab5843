"""Where the cells of a release are: in memory, or in a file that is read column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from noren.cells import CellBatch, Cells, SetCells, TermCells, concat, take
from noren.errors import ReleaseError
from noren.release.convert import from_arrow, guarded, guarded_text, to_arrow, to_json_text, unguarded
from noren.release.manifest import ColumnEntry

MOST_ROWS = 1 << 16
VALUES_AT_ONCE = 1 << 23
TERMS = 32
"""Terms of a record that a batch has room for."""


def rows_at_once(columns: Sequence[ColumnEntry]) -> int:
    """Rows of a batch, fewer for wide tables, so that memory depends neither on length nor on width."""
    values = sum(TERMS if e.form == "terms" else e.design.eta if e.design is not None else 1 for e in columns)
    return max(1024, min(MOST_ROWS, VALUES_AT_ONCE // values))


class Store(Protocol):
    """Cells by column, in batches."""

    def batches(self, columns: Sequence[ColumnEntry]) -> Iterator[CellBatch]: ...


class MemoryStore:
    """Cells held in memory."""

    def __init__(self, cells: CellBatch) -> None:
        self._cells = dict(cells)

    def batches(self, columns: Sequence[ColumnEntry]) -> Iterator[CellBatch]:
        wanted: dict[str, Cells] = {entry.name: self._cells[entry.name] for entry in columns}
        rows = len(next(iter(wanted.values())))
        for start in range(0, rows, MOST_ROWS * 4):
            yield take(wanted, slice(start, start + MOST_ROWS * 4))


class ParquetStore:
    """Cells in data.parquet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def batches(self, columns: Sequence[ColumnEntry]) -> Iterator[CellBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        lists = [
            f"{entry.name}.list.element"
            for entry in columns
            if entry.form in ("set", "terms") and entry.kind == "string"
        ]
        texts = [e.name for e in columns if e.form == "node" or (e.form in ("value", "member") and e.kind == "string")]
        names = [entry.name for entry in columns]
        try:
            with pq.ParquetFile(self.path, read_dictionary=[*lists, *texts], pre_buffer=False) as file:
                for group in range(file.num_row_groups):  # a batch of lists of texts must not span two of them
                    for batch in file.iter_batches(rows_at_once(columns), row_groups=[group], columns=names):
                        yield {entry.name: from_arrow(entry, batch.column(entry.name)) for entry in columns}
        except (pa.ArrowException, KeyError, OSError, UnicodeError):
            raise ReleaseError(
                f"{self.path}: cannot be read as the manifest describes it.", hint="Ask for the release again."
            ) from None


class CsvStore:
    """Cells in data.csv; a set is a JSON array, and texts like formulas stand behind an apostrophe."""

    def __init__(self, path: Path, escaped: bool = True) -> None:
        self.path = path
        self.escaped = escaped
        """Whether the file was written with apostrophes; releases of early versions were not."""

    def batches(self, columns: Sequence[ColumnEntry]) -> Iterator[CellBatch]:
        from noren.errors import DataError
        from noren.io.csv import CsvSource

        try:
            source = CsvSource(self.path, separator=",", encoding="utf-8")
            titles = {entry.name: guarded_text(entry.name) if self.escaped else entry.name for entry in columns}
            if any(title not in source.columns for title in titles.values()):
                raise DataError(f"{self.path}: a column that the manifest describes is missing.")
            for batch in source.batches(list(titles.values())):
                yield {
                    entry.name: from_arrow(entry, self._column(entry, batch.column(titles[entry.name])))
                    for entry in columns
                }
        except DataError as error:
            raise ReleaseError(error.message, hint="Ask for the release again.") from None

    def _column(self, entry: ColumnEntry, column: Any) -> Any:
        if entry.form not in ("set", "terms"):
            return unguarded(column) if self.escaped else column
        import polars as pl

        kinds: dict[str, Any] = {"string": pl.String, "integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}
        try:
            decoded = pl.from_arrow(column.dictionary_decode()).str.json_decode(dtype=pl.List(kinds[entry.kind]))  # type: ignore[union-attr]
        except pl.exceptions.PolarsError:
            raise ReleaseError(
                f"column {entry.name!r} has a cell that is not a JSON array.", hint="Ask for the release again."
            ) from None
        import pyarrow as pa

        return decoded.to_arrow().cast(pa.list_(decoded.to_arrow().type.value_type))


def write_data(path: Path, columns: Sequence[ColumnEntry], batches: Iterable[CellBatch]) -> int:
    """Write the cells to a Parquet or CSV file, batch by batch. Returns the number of records."""
    if path.suffix == ".parquet":
        return _write_parquet(path, columns, batches)
    return _write_csv(path, columns, batches)


def _slices(batches: Iterable[CellBatch], most: int) -> Iterator[CellBatch]:
    """Row groups of a size that a reader can hold, whatever the batches were."""
    waiting: list[CellBatch] = []
    rows = 0
    for batch in batches:
        size = len(next(iter(batch.values())))
        start = 0
        while rows + size - start >= most:
            stop = start + most - rows
            yield concat([*waiting, take(batch, slice(start, stop))])
            waiting, rows, start = [], 0, stop
        if start < size:
            waiting.append(take(batch, slice(start, size)))
            rows += size - start
    if waiting:
        yield concat(waiting)


def _write_parquet(path: Path, columns: Sequence[ColumnEntry], batches: Iterable[CellBatch]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    rows = 0
    try:
        for batch in _slices(batches, rows_at_once(columns)):
            table = pa.table({entry.name: to_arrow(entry, batch[entry.name]) for entry in columns})
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False)
            writer.write_table(table, row_group_size=MOST_ROWS)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _write_csv(path: Path, columns: Sequence[ColumnEntry], batches: Iterable[CellBatch]) -> int:
    import pyarrow as pa
    import pyarrow.csv as pv

    writer = None
    rows = 0
    try:
        for batch in _slices(batches, rows_at_once(columns)):
            arrays = {}
            for entry in columns:
                cells = batch[entry.name]
                convert = to_json_text if isinstance(cells, SetCells | TermCells) else to_arrow
                arrays[guarded_text(entry.name)] = guarded(convert(entry, cells))  # type: ignore[arg-type]
            table = pa.table(arrays)
            if writer is None:
                writer = pv.CSVWriter(path, table.schema, write_options=pv.WriteOptions(quoting_style="needed"))
            writer.write_table(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows
