"""Where a table comes from. A source names its columns and streams them in batches, as often as asked.

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


@dataclass(frozen=True)
class RowRange:
    """Where a part of a table stands: which part it is, and which records of the table it holds."""

    number: int = 0
    start: int = 0
    stop: int = sys.maxsize


class Derived(Source, Protocol):
    """A source made of another one, batch by batch, which can be made of a part of that as well."""

    @property
    def inner(self) -> Source:
        """What it is made of."""

    def over(self, part: Source, place: RowRange) -> Source:
        """The same made of a part of that."""


@dataclass(frozen=True)
class Writing:
    """How an input is written, as far as it does not say so itself. What is not given is sniffed."""

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
    """A source for a path or URI that `SOURCES` knows, or any object with the Arrow C stream interface."""
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
    """The source of a file, of a folder of files, or of a URI, which is named by its scheme alone: the rest of it may
    hold a password."""
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
    """Who opens a kind of place, as `SOURCES` names it."""
    module, _, name = SOURCES[kind if kind in SOURCES else OTHERWISE].partition(":")
    found: Opener = getattr(import_module(module), name)
    return found


def demand_file(path: Path) -> Path:
    """The path of a file that can be read more than once, as every table is; anything else is refused."""
    if not is_utf8(str(path)):
        raise DataError(f"{path}: its name is not UTF-8.", hint="Rename the file.")
    if not path.exists():
        if mask(str(path)) != str(path):  # an address that is none: what of it is a password nobody knows
            raise DataError("neither the path of a file nor an address that can be read.", hint=ADDRESSES)
        raise DataError(f"{path}: no such file.", hint="Check the path; it is relative to the current directory.")
    if not path.is_file():
        raise DataError(f"{path}: is not a file.", hint="A table is read more than once: write it to a file first.")
    return path


def check_columns(columns: Sequence[str], name: str) -> tuple[str, ...]:
    """Column names must be there, and be different from each other."""
    seen: dict[str, int] = {}
    for position, column in enumerate(columns, 1):
        if not column.strip():
            raise DataError(f"{name}: column {position} has no name.", hint="Give every column a name in the header.")
        if column in seen:
            message = f"{name}: columns {seen[column]} and {position} have the same name."
            raise DataError(message, hint="Rename one of them.")
        seen[column] = position
    return tuple(columns)


# ---------------------------------------------------------------------- several files that are one table


HIDDEN = ("_", ".")
"""How the names of files begin that others leave beside a table: marks of success, checksums."""
ONE_TABLE = "Keep the files of one table in a folder: of one kind, with the same columns and nothing else beside them."


def list_files(spot: Spot) -> list[Spot]:
    """The files of a folder or a pattern in the order of their names; a file is the only one of itself."""
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
        raise DataError(f"{spot}: holds files of several kinds.", hint=ONE_TABLE)
    return found


def suffix_of(spot: Spot) -> str:
    """The end of a name that says what is in the file, whether or not that is compressed."""
    ends = [end.lower() for end in Path(spot.name).suffixes if end.lower() != ".gz"]
    return ends[-1] if ends else ""


def demand_same_columns(names: Sequence[str], columns: Sequence[Any], what: str = "columns") -> None:
    """Refuse a file whose columns (or types by column) are not those of the first. No column is named: what stands in
    the place of names may be somebody's record."""
    for name, found in zip(names, columns, strict=True):
        if found != columns[0]:
            raise DataError(
                f"{name}: its {what} are not those of {names[0]}, though both are one table.", hint=ONE_TABLE
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
        """The sum, where every file says how many it has."""
        counts = [part.rows for part in self.parts]
        return None if None in counts else sum(filter(None, counts))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for part in self.parts:
            for batch in part.batches(columns):
                yield batch.select(list(columns)) if columns else batch
