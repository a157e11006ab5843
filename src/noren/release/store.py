"""Where the cells of a published table are: in memory, or in a file that is read column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noren.ahead import ahead
from noren.errors import DataError, ReleaseError
from noren.sources.place import Spot, readable
from noren.statements import CellBatch, Cells, CodeCells, Statement, batch_length, concat, take
from noren.statements.batch import PERSON
from noren.statements.texts import guarded, guarded_text, unguarded

MOST_ROWS = 1 << 16
VALUES_AT_ONCE = 1 << 23
LEVEL = 1
"""Of compression; measured: drawn cells are random, and a higher level takes twice as long to find nothing."""


def rows_at_once(columns: Sequence[Statement]) -> int:
    """Rows of a batch, fewer for wide tables, so that memory depends neither on length nor on width."""
    values = sum(column.values_per_record for column in columns)
    return max(1024, min(MOST_ROWS, VALUES_AT_ONCE // values))


class Store(Protocol):
    """Cells by column, in batches."""

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]: ...


class MemoryStore:
    """Cells held in memory."""

    def __init__(self, cells: CellBatch) -> None:
        self._cells = dict(cells)

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        wanted: dict[str, Cells] = {column.name: self._cells[column.name] for column in columns}
        rows = len(next(iter(wanted.values())))
        for start in range(0, rows, MOST_ROWS * 4):
            yield take(wanted, slice(start, start + MOST_ROWS * 4))


class PeopleStore:
    """Cells of another store and, for the holder's own checks, whose row each is."""

    def __init__(self, store: Store, people: NDArray[np.int64]) -> None:
        self._store = store
        self._people = people

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        start = 0
        for batch in self._store.batches(columns):
            stop = start + batch_length(batch)
            yield {**batch, PERSON: CodeCells(len(self._people), self._people[start:stop])}
            start = stop


def names_people(store: Store) -> bool:
    """Whether the store says whose row each is."""
    return isinstance(store, PeopleStore)


class ParquetStore:
    """Cells in data.parquet, or in several files one after the other."""

    def __init__(self, *paths: Spot) -> None:
        self.paths = paths

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        for path in self.paths:
            yield from self.part(path, None, columns)

    def parts(self) -> list[tuple[Spot, tuple[int, ...]]]:
        """All files and their row groups: what can be read apart."""
        import pyarrow.parquet as pq

        return [(path, tuple(range(pq.read_metadata(readable(path)).num_row_groups))) for path in self.paths]

    @staticmethod
    def part(path: Spot, groups: Sequence[int] | None, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        """The cells in some row groups of a file, or in all of it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = [found for column in columns if (found := column.texts_path) is not None]
        names = [column.name for column in columns]
        try:
            with pq.ParquetFile(readable(path), read_dictionary=texts, pre_buffer=False) as file:
                wanted = range(file.num_row_groups) if groups is None else groups
                for group in wanted:  # a batch of lists of texts must not span two of them
                    for batch in file.iter_batches(rows_at_once(columns), row_groups=[group], columns=names):
                        yield {column.name: column.from_parquet(batch.column(column.name)) for column in columns}
        except (pa.ArrowException, KeyError, OSError, UnicodeError):
            raise ReleaseError(
                f"{path}: cannot be read as the manifest describes it.", hint="Ask for the release again."
            ) from None


class CsvStore:
    """Cells in data.csv; a set is a JSON array, and texts like formulas stand behind an apostrophe."""

    def __init__(self, path: Path, escaped: bool = True) -> None:
        self.path = path
        self.escaped = escaped
        """Whether the file was written with apostrophes; releases of early versions were not."""

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        from noren.sources.csv import CsvSource

        try:
            source = CsvSource(self.path, separator=",", encoding="utf-8")
            titles = {column.name: self._title(column, source.columns) for column in columns}
            if any(title not in source.columns for title in titles.values()):
                raise DataError(f"{self.path}: a column that the manifest describes is missing.")
            for batch in source.batches(list(titles.values())):
                yield {
                    column.name: column.from_csv(self._texts(batch.column(titles[column.name]))) for column in columns
                }
        except DataError as error:
            raise ReleaseError(error.message, hint="Ask for the release again.") from None

    def _title(self, column: Statement, there: Sequence[str]) -> str:
        """How the file calls a column: by its name, or by a title that says what its cells are."""
        names = [guarded_text(one) if self.escaped else one for one in (column.name, column.csv_title)]
        return names[0] if names[0] in there else names[1]

    def _texts(self, column: Any) -> Any:
        return unguarded(column) if self.escaped else column


def store_for(path: Spot, escaped: bool = True, *more: Spot) -> Store:
    """The cells in a file, and in more files that continue it."""
    return CsvStore(path, escaped) if isinstance(path, Path) and path.suffix == ".csv" else ParquetStore(path, *more)


def titles_of(path: Spot, columns: Sequence[Statement]) -> dict[str, str]:
    """How a file calls its columns. In CSV nothing but the title tells numbers of groups from values."""
    names = {column.name for column in columns}
    if path.suffix != ".csv":
        return {name: name for name in names}
    titles = {one.name: one.name if one.csv_title in names else one.csv_title for one in columns}
    return {name: guarded_text(title) for name, title in titles.items()}


def write_data(path: Spot, columns: Sequence[Statement], batches: Iterable[CellBatch], sink: Any = None) -> int:
    """Write the cells to a Parquet or CSV file, batch by batch, or what that file would be to a sink. Returns the
    number of rows."""
    import pyarrow as pa

    plain = path.suffix == ".csv"
    titles = titles_of(path, columns)
    writer = None
    rows = 0
    try:
        for batch in ahead(_slices(batches, rows_at_once(columns))):
            if plain:
                named = {titles[c.name]: guarded(c.to_csv(batch[c.name])) for c in columns}
            else:
                named = {c.name: c.to_parquet(batch[c.name]) for c in columns}
            table = pa.table(named)
            writer = writer if writer is not None else _writer(path, table.schema, sink)
            writer.write_table(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _writer(path: Spot, schema: Any, sink: Any = None) -> Any:
    place = path if sink is None else sink
    if path.suffix == ".csv":
        import pyarrow.csv as pv

        return pv.CSVWriter(place, schema, write_options=pv.WriteOptions(quoting_style="needed"))
    import pyarrow.parquet as pq

    return pq.ParquetWriter(place, schema, compression="zstd", compression_level=LEVEL, store_schema=False)


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


# ---------------------------------------------------------------------- side tables


def write_side(path: Spot, columns: dict[str, Any], sink: Any = None) -> None:
    """Write a table that stands beside the data, or what its file would be to a sink."""
    import pyarrow as pa

    if path.suffix == ".csv":
        import pyarrow.csv as pv

        guards = pa.table({name: guarded(column) for name, column in columns.items()})
        pv.write_csv(guards, path if sink is None else sink, pv.WriteOptions(quoting_style="needed"))
        return
    import pyarrow.parquet as pq

    longest = max(map(len, columns.values()))
    filled = {name: pa.concat_arrays([c, pa.nulls(longest - len(c), c.type)]) for name, c in columns.items()}
    pq.write_table(pa.table(filled), path if sink is None else sink, compression="zstd", store_schema=False)


def read_side(path: Spot, escaped: bool = True, texts: Sequence[str] = ()) -> dict[str, Any]:
    """The columns of a side table. In CSV, `escaped` texts stand behind apostrophes; in Parquet, `texts` are read as
    dictionaries, so that an entry which no row names is seen."""
    import pyarrow as pa

    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        read = pq.read_table(readable(path), read_dictionary=list(texts))
        return {name: _joined(read.column(name)) for name in read.column_names}
    from noren.sources.csv import CsvSource

    assert isinstance(path, Path), "CSV files lie in directories"
    source = CsvSource(path, separator=",", encoding="utf-8")
    batches = list(source.batches(list(source.columns)))
    found = {name: _joined(pa.chunked_array([b.column(name) for b in batches])) for name in source.columns}
    return {name: unguarded(column) for name, column in found.items()} if escaped else found


def _joined(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks()
