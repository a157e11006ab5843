"""Several files that are one table. Columns go by their names in every file, whatever their order there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from noren.errors import DataError
from noren.sources.place import Spot
from noren.sources.source import Source

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
