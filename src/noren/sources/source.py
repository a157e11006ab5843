"""Sources of tables. A source names its columns and streams them in batches, as often as necessary.

The registry of sources is explicit: one line per suffix or scheme, and a file that opens it.

Nothing of the original is modified: files are opened for reading only, frames are read through the Arrow C stream
interface.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from noren.errors import DataError, is_utf8, mask
from noren.sources.place import Spot

BATCH_ROWS = 1 << 16


class Source(Protocol):
    """A table that can be read more than once."""

    @property
    def name(self) -> str:
        """Return the name for messages."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def rows(self) -> int | None:
        """Return the number of rows if it is known without reading."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return remarks about what was detected in the input."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Return pyarrow RecordBatches with these columns, in the order of the table."""


@dataclass(frozen=True)
class RowRange:
    """A part of a table: its number, and its range of records."""

    number: int = 0
    start: int = 0
    stop: int = sys.maxsize


class Derived(Source, Protocol):
    """A source derived from another one, batch by batch, or from a part of it."""

    @property
    def inner(self) -> Source:
        """Return the underlying source."""

    def over(self, part: Source, place: RowRange) -> Source:
        """Return the same source derived from a part of the underlying one."""


@dataclass(frozen=True)
class Writing:
    """How an input is written. Missing options are detected."""

    separator: str | None = None
    encoding: str | None = None
    missing_values: tuple[str, ...] = ()
    """Texts that mean 'missing', besides empty cells."""


Opener = Callable[[str, Writing], Source]
"""Makes a source of a path or a URI."""

SOURCES = {
    ".csv": "noren.sources.csv:open_csv",
    ".parquet": "noren.sources.arrow:open_parquet",
    ".pq": "noren.sources.arrow:open_parquet",
    ".arrow": "noren.sources.arrow:open_ipc",
    ".arrows": "noren.sources.arrow:open_ipc",
    ".feather": "noren.sources.arrow:open_ipc",
    ".ipc": "noren.sources.arrow:open_ipc",
    ".xlsx": "noren.sources.arrow:open_excel",
    "postgresql:": "noren.sources.postgres:open_postgres",
    "postgres:": "noren.sources.postgres:open_postgres",
}
"""Who opens what: a suffix of a file or a scheme with its colon ("postgresql:"), and module:function of the opener."""
OTHERWISE = ".csv"
"""A file of another suffix is read as text; what is none says so."""
ADDRESSES = "An address is written postgresql://user:password@host/base?table=name, with %2F for a / in a password."
SCHEME = re.compile(r"([a-z][a-z0-9+.-]+:)//", re.IGNORECASE)


def open_source(
    data: Any,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    missing_values: Sequence[str] = (),
) -> Source:
    """Open a path, a URI or any object with the Arrow C stream interface as a source."""
    writing = Writing(separator, encoding, tuple(missing_values))
    if isinstance(data, str | Path):
        return _open_place(data, writing)
    if hasattr(data, "batches") and hasattr(data, "notes"):
        source: Source = data
        return source
    if hasattr(data, "__arrow_c_stream__"):
        from noren.sources.arrow import FrameSource

        return FrameSource(data, writing.missing_values)
    raise DataError(
        f"cannot read a table from {type(data).__name__}.",
        hint="Give a path, a pyarrow Table, a Polars or pandas DataFrame, or any object with __arrow_c_stream__.",
    )


def _open_place(place: str | Path, writing: Writing) -> Source:
    """Open a file, a folder of files, or a URI. Messages name only the scheme of a URI, because the rest may hold a
    password."""
    uri = SCHEME.match(place) if isinstance(place, str) else None
    if uri is not None:
        scheme = uri[1].lower()
        if scheme not in SOURCES:
            known = ", ".join(f"{one}//" for one in SOURCES if one.endswith(":"))
            raise DataError(
                f"cannot read from {scheme}//.",
                hint=f"Known: {known}, and files." if known else "Give the path of a file.",
            )
        return _opener(scheme)(str(place), writing)

    files = list_files(Path(place))
    parts = [_opener(demand_file(Path(str(file))).suffix.lower())(str(file), writing) for file in files]
    return parts[0] if files == [Path(place)] else FolderSource(str(place), parts)


def _opener(kind: str) -> Opener:
    """Return the function in `SOURCES` that opens a kind of place."""
    module, _, name = SOURCES[kind if kind in SOURCES else OTHERWISE].partition(":")
    found: Opener = getattr(import_module(module), name)
    return found


def demand_file(path: Path) -> Path:
    """Return the path of a file that can be read more than once; refuse anything else."""
    if not is_utf8(str(path)):
        raise DataError(f"{path}: the file name is not UTF-8.", hint="Rename the file.")
    if not path.exists():
        if mask(str(path)) != str(path):  # an address that is none: what of it is a password nobody knows
            raise DataError("this is neither the path of a file nor a readable address.", hint=ADDRESSES)
        raise DataError(f"{path}: no such file.", hint="Check the path; it is relative to the current directory.")
    if not path.is_file():
        raise DataError(
            f"{path}: is not a file.", hint="Write the table to a file first, because it is read more than once."
        )
    return path


def check_columns(columns: Sequence[str], name: str) -> tuple[str, ...]:
    """Raise if column names are missing or not unique."""
    seen: dict[str, int] = {}
    for position, column in enumerate(columns, 1):
        if not column.strip():
            raise DataError(f"{name}: column {position} has no name.", hint="Give every column a name in the header.")
        if column in seen:
            message = f"{name}: columns {seen[column]} and {position} have the same name."
            raise DataError(message, hint="Rename one of them.")
        seen[column] = position
    return tuple(columns)


def name_repeated(columns: Sequence[str], name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return column names with a number added to repeated ones, and a note for each."""
    given, taken = set(columns), set[str]()
    named: list[str] = []
    notes: list[str] = []
    numbers: dict[str, int] = {}
    for position, column in enumerate(columns, 1):
        own = column
        while own in taken or (own != column and own in given):
            numbers[column] = numbers.get(column, 1) + 1
            own = f"{column}_{numbers[column]}"
        taken.add(own)
        named.append(own)
        if own != column:
            notes.append(f"{name}: column {position} has the name of an earlier one and is read as {own!r}")
    return check_columns(named, name), tuple(notes)


# ---------------------------------------------------------------------- several files that are one table


HIDDEN = ("_", ".")
"""How the names of files begin that others leave beside a table: marks of success, checksums."""
ONE_TABLE = "Keep the files of one table in a folder of their own; all must have one file type and the same columns."


def list_files(spot: Spot) -> list[Spot]:
    """Return the files of a folder or a pattern in the order of their names, or the file itself."""
    if isinstance(spot, Path) and not spot.exists() and re.search(r"[*?\[]", str(spot)):
        found: list[Spot] = [Path(one) for one in sorted(glob(str(spot)))]
    elif spot.is_dir():
        found = sorted((one for one in spot.iterdir() if not one.name.startswith(HIDDEN)), key=str)
    else:
        return [spot]
    if not found:
        raise DataError(f"{spot}: holds no files.", hint="Check the path.")
    if any(one.is_dir() for one in found):
        raise DataError(f"{spot}: holds folders.", hint=ONE_TABLE)
    if len({suffix_of(one) for one in found}) > 1:
        raise DataError(f"{spot}: it holds files of several types.", hint=ONE_TABLE)
    return found


def suffix_of(spot: Spot) -> str:
    """Return the suffix that names the file type, without that of a compression."""
    ends = [end.lower() for end in Path(spot.name).suffixes if end.lower() != ".gz"]
    return ends[-1] if ends else ""


def demand_same_columns(names: Sequence[str], columns: Sequence[Any], what: str = "columns") -> None:
    """Refuse a file whose columns (or types by column) differ from those of the first. No column is named, because the
    header may be somebody's record."""
    for name, found in zip(names, columns, strict=True):
        if found != columns[0]:
            raise DataError(
                f"{name}: its {what} differ from those of {names[0]}, although both files belong to one table.",
                hint=ONE_TABLE,
            )


class FolderSource:
    """The rows of several files, one file after the other."""

    def __init__(self, name: str, parts: Sequence[Source]) -> None:
        self.name = name
        self.parts = tuple(parts)
        names = [part.name for part in parts]
        demand_same_columns(names, [set(part.columns) for part in parts])
        demand_same_columns(names, [getattr(part, "types", None) for part in parts], "types of columns")
        self.columns = parts[0].columns
        self.notes = tuple(note for part in parts for note in part.notes)

    @property
    def rows(self) -> int | None:
        """Return the sum of rows, if every file knows its number."""
        counts = [part.rows for part in self.parts]
        return None if None in counts else sum(filter(None, counts))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for part in self.parts:
            for batch in part.batches(columns):
                yield batch.select(list(columns)) if columns else batch
