"""Tables that stand beside the data: of groups, of sets, of terms; columns may share one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from noren.errors import DataError, ReleaseError
from noren.release.store import read_side, write_side
from noren.sources.place import Spot
from noren.statements import Statement


def sides(columns: Iterable[Statement]) -> dict[str, list[Statement]]:
    """The side tables that columns need, by name, each with the columns that share it."""
    out: dict[str, list[Statement]] = {}
    for column in columns:
        if column.side is not None:
            out.setdefault(column.side, []).append(column)
    return dict(sorted(out.items(), key=lambda item: _place(item[0])))


def _place(stem: str) -> tuple[str, int]:
    """Side tables stand by kind and number; one that all columns share has no number."""
    kind, _, number = stem.rpartition("-")
    return (kind, int(number)) if kind else (stem, 0)


def side_columns(sharing: Sequence[Statement]) -> dict[str, Any]:
    """A side table with what each of the columns that share it puts in; of what several put in, the longest."""
    out: dict[str, Any] = {}
    for column in sharing:
        for name, cells in column.side_columns().items():
            if name not in out or len(cells) > len(out[name]):
                out[name] = cells
    return out


def side_fields(sharing: Sequence[Statement]) -> list[dict[str, Any]]:
    """The same as fields of a data package."""
    return list({field["name"]: field for column in sharing for field in column.side_fields()}.values())


def write_sides(directory: Path, columns: Iterable[Statement], suffix: str) -> None:
    """Write every side table once."""
    for name, sharing in sides(columns).items():
        write_side(directory / f"{name}{suffix}", side_columns(sharing))


def with_sides(directory: Spot, columns: Sequence[Statement], suffix: str, escaped: bool = True) -> list[Statement]:
    """The columns with what the side tables in the directory say; columns that share a table share what it says."""
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
            message = f"{path}: not the table that {titles} needs."
            raise ReleaseError(message, hint="Ask for the release again.") from None
    return [found.get(column.name, column) for column in columns]
