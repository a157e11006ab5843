"""Stores of the cells of a published table, in memory or in files read column by column, and of side tables."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noren.ahead import ahead
from noren.errors import DataError, ReleaseError
from noren.sources.place import Spot, readable
from noren.statements import CellBatch, Cells, CodeCells, Statement, batch_length, concat, take
from noren.statements.batch import PERSON
from noren.statements.texts import guard_formulas, guard_text, unguard_formulas

MOST_ROWS = 1 << 16
VALUES_AT_ONCE = 1 << 23
LEVEL = 1
"""Of compression; measured: drawn cells are random, and a higher level takes twice as long to find nothing."""


def rows_at_once(columns: Sequence[Statement]) -> int:
    """Return the number of rows of a batch, fewer for wide tables, so that memory is bounded."""
    values = sum(column.values_per_record for column in columns)
    return max(1024, min(MOST_ROWS, VALUES_AT_ONCE // values))


class Store(Protocol):
    """A protocol: cells by column, in batches."""

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


class KeptStore:
    """The cells of another store; a column that was read is kept for later work."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, Cells] = {}
        self._found: dict[str, Any] = {}

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        missing = [column for column in columns if column.name not in self._kept]
        if missing and (found := list(self._store.batches(missing))):
            self._kept |= concat(found)
        if all(column.name in self._kept for column in columns):
            yield {column.name: self._kept[column.name] for column in columns}

    def remember(self, what: str, made: Callable[[], Any]) -> Any:
        """Return a cached result computed from all cells, or compute it."""
        if what not in self._found:
            self._found[what] = made()
        return self._found[what]


class PeopleStore:
    """The cells of another store with the person of each row, for the holder's own checks."""

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
    """Return whether the store knows the person of each row."""
    return isinstance(store, PeopleStore)


class ParquetStore:
    """Cells in data.parquet, or in several files."""

    def __init__(self, *paths: Spot) -> None:
        self.paths = paths

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        for path in self.paths:
            yield from self.part(path, None, columns)

    def parts(self) -> list[tuple[Spot, tuple[int, ...]]]:
        """Return all files and their row groups, which can be read separately."""
        import pyarrow.parquet as pq

        return [(path, tuple(range(pq.read_metadata(readable(path)).num_row_groups))) for path in self.paths]

    @staticmethod
    def part(path: Spot, groups: Sequence[int] | None, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        """Return the cells in some row groups of a file, or in all of it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = [found for column in columns if (found := column.texts_path) is not None]
        try:
            with pq.ParquetFile(readable(path), read_dictionary=texts, pre_buffer=False) as file:
                there = set(file.schema_arrow.names)
                titles = {one.name: one.name if one.name in there else one.parquet_title for one in columns}
                names = list(titles.values())
                wanted = range(file.num_row_groups) if groups is None else groups
                for group in wanted:  # a batch of lists of texts must not span two of them
                    for batch in file.iter_batches(rows_at_once(columns), row_groups=[group], columns=names):
                        yield {
                            column.name: column.from_parquet(batch.column(titles[column.name])) for column in columns
                        }
        except (pa.ArrowException, KeyError, OSError, UnicodeError):
            raise ReleaseError(
                f"{path}: cannot be read as the manifest describes it.", hint="Ask for the release again."
            ) from None


class CsvStore:
    """Cells in data.csv; a set is a JSON array, and texts like formulas have an apostrophe before them."""

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
        """Return the file's name of a column, or its title if the cells are numbers of sets or groups."""
        names = [guard_text(one) if self.escaped else one for one in (column.name, column.csv_title)]
        return names[0] if names[0] in there else names[1]

    def _texts(self, column: Any) -> Any:
        return unguard_formulas(column) if self.escaped else column


def store_for(path: Spot, escaped: bool = True, *more: Spot) -> Store:
    """Return the store of the cells in a file, and in further files."""
    return CsvStore(path, escaped) if isinstance(path, Path) and path.suffix == ".csv" else ParquetStore(path, *more)


def titles_of(path: Spot, columns: Sequence[Statement]) -> dict[str, str]:
    """Return the titles of columns in a file: columns of numbers of groups and sets have other names than columns of
    values."""
    names, plain = {column.name for column in columns}, path.suffix == ".csv"
    own = {one.name: one.csv_title if plain else one.parquet_title for one in columns}
    titles = {name: name if title in names else title for name, title in own.items()}
    return {name: guard_text(title) for name, title in titles.items()} if plain else titles


def write_data(path: Spot, columns: Sequence[Statement], batches: Iterable[CellBatch], sink: Any = None) -> int:
    """Write the cells to a Parquet or CSV file, or its bytes to a sink, batch by batch; return the number of rows."""
    import pyarrow as pa

    plain = path.suffix == ".csv"
    titles = titles_of(path, columns)
    writer = None
    rows = 0
    try:
        for batch in ahead(_slices(batches, rows_at_once(columns))):
            if plain:
                named = {titles[c.name]: guard_formulas(c.to_csv(batch[c.name])) for c in columns}
            else:
                named = {titles[c.name]: c.to_parquet(batch[c.name]) for c in columns}
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
    """Yield row groups of a bounded size, whatever the batches were."""
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
    """Write a side table to a file, or its bytes to a sink."""
    import pyarrow as pa

    if path.suffix == ".csv":
        import pyarrow.csv as pv

        guards = pa.table({name: guard_formulas(column) for name, column in columns.items()})
        pv.write_csv(guards, path if sink is None else sink, pv.WriteOptions(quoting_style="needed"))
        return
    import pyarrow.parquet as pq

    longest = max(map(len, columns.values()))
    filled = {name: pa.concat_arrays([c, pa.nulls(longest - len(c), c.type)]) for name, c in columns.items()}
    pq.write_table(pa.table(filled), path if sink is None else sink, compression="zstd", store_schema=False)


def read_side(path: Spot, escaped: bool = True, texts: Sequence[str] = ()) -> dict[str, Any]:
    """Read the columns of a side table. In CSV, `escaped` texts have apostrophes; in Parquet, `texts` are read as
    dictionaries, so that unused entries are seen."""
    import pyarrow as pa

    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        read = pq.read_table(readable(path), read_dictionary=list(texts))
        return {name: _join_chunks(read.column(name)) for name in read.column_names}
    from noren.sources.csv import CsvSource

    assert isinstance(path, Path), "CSV files lie in directories"
    source = CsvSource(path, separator=",", encoding="utf-8")
    batches = list(source.batches(list(source.columns)))
    found = {name: _join_chunks(pa.chunked_array([b.column(name) for b in batches])) for name in source.columns}
    return {name: unguard_formulas(column) for name, column in found.items()} if escaped else found


def _join_chunks(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks()


# ---------------------------------------------------------------------- files of data


WHOLE = ("data.parquet", "data.csv")
"""How the one file of the data is called."""
NAME = "data-{:05}.parquet"
PART = re.compile(r"data-\d{5,}\.parquet")
"""How the files are called where they are several,"""
ALL = "data-*.parquet"
"""and how all of them are named at once."""


def checksum(path: Spot) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Part:
    """One of several files of data."""

    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Spot) -> Part:
        return cls(path.name, path.stat().st_size, checksum(path))

    @property
    def entry(self) -> dict[str, Any]:
        return {"path": self.name, "bytes": self.bytes, "hash": f"sha256:{self.sha256}"}


def list_files(resource: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return name, size and checksum of every file of a resource; raise ValueError if its two lists differ."""
    parts = resource.get("parts")
    if parts is not None and (not parts or [item["path"] for item in parts] != resource["path"]):
        raise ValueError("two lists of files")
    return [(item["path"], item["bytes"], item["hash"]) for item in parts or [resource]]


def are_known(resource: Mapping[str, Any]) -> bool:
    """Return whether the files have the names of data files, each once."""
    names = [name for name, _, _ in list_files(resource)]
    if "parts" not in resource:
        return names[0] in WHOLE
    return all(isinstance(name, str) and PART.fullmatch(name) for name in names) and len(set(names)) == len(names)


def title_of(path: Spot) -> str:
    """Return the README's name of the data of which this is a file."""
    return ALL if PART.fullmatch(path.name) else path.name


# ---------------------------------------------------------------------- side tables of a release


def sides(columns: Iterable[Statement]) -> dict[str, list[Statement]]:
    """Return the side tables that columns need, by name, each with its columns."""
    out: dict[str, list[Statement]] = {}
    for column in columns:
        if column.side is not None:
            out.setdefault(column.side, []).append(column)
    return dict(sorted(out.items(), key=lambda item: _place(item[0])))


def _place(stem: str) -> tuple[str, int]:
    """Return the position of a side table by kind and number; one that all columns share has no number."""
    kind, _, number = stem.rpartition("-")
    return (kind, int(number)) if kind else (stem, 0)


def side_columns(sharing: Sequence[Statement]) -> dict[str, Any]:
    """Return the columns of a side table, combined from the columns that share it."""
    out: dict[str, Any] = {}
    for column in sharing:
        for name, cells in column.side_columns().items():
            if name not in out or len(cells) > len(out[name]):
                out[name] = cells
    return out


def side_fields(sharing: Sequence[Statement]) -> list[dict[str, Any]]:
    """Return the columns of a side table as fields of a data package."""
    return list({field["name"]: field for column in sharing for field in column.side_fields()}.values())


def write_sides(directory: Path, columns: Iterable[Statement], suffix: str) -> None:
    """Write every side table once."""
    for name, sharing in sides(columns).items():
        write_side(directory / f"{name}{suffix}", side_columns(sharing))


def with_sides(directory: Spot, columns: Sequence[Statement], suffix: str, escaped: bool = True) -> list[Statement]:
    """Return the columns with the content of the side tables in the directory."""
    import pyarrow as pa

    found: dict[str, Statement] = {}
    for name, sharing in sides(columns).items():
        path = directory / f"{name}{suffix}"
        try:
            texts = [one for column in sharing if (one := column.side_texts) is not None]
            told = sharing[0].read_side(read_side(path, escaped, texts))
            found |= {column.name: column.with_side(told) for column in sharing}
        except (pa.ArrowException, DataError, KeyError, ValueError, TypeError, OSError):
            titles = ", ".join(repr(column.name) for column in sharing)
            message = f"{path}: it is not the table that {titles} needs."
            raise ReleaseError(message, hint="Ask for the release again.") from None
    return [found.get(column.name, column) for column in columns]
