"""Results that display themselves: one short line in a terminal, a small table in a notebook, `.frame`, `.to_dict()`.

Whatever comes from a table is text here, never markup and never a second line: labels may be hostile. Nothing heavy is
loaded before a frame is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

WIDTH = 118
"""Characters of a `repr`, at most."""
SHOWN = 20
"""Rows of the table in a notebook, at most."""
JOINERS = "\u200c\u200d"
"""Invisible, but part of how some scripts and emoji are written."""
KEPT = f"\n\t{JOINERS}"
"""Not printable, and harmless."""


class Shown(ABC):
    """A result with a text, a table and plain data."""

    if TYPE_CHECKING:  # a field or a property, as the result likes

        @property
        def frame(self) -> pl.DataFrame: ...

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""

    @abstractmethod
    def _headline(self) -> str:
        """Return the most important information in one line."""

    def _subject(self) -> str:
        """Return the subject of the result, if the name does not state it."""
        return ""

    def _notes(self) -> Sequence[str]:
        """Return sentences below the table."""
        return ()

    def _line(self) -> str:
        about = one_line(self._subject(), WIDTH // 2)
        name = type(self).__name__ + (f" of {about}" if about else "")
        return one_line(f"{name}: {self._headline()}", WIDTH - 2)

    def __repr__(self) -> str:
        return f"<{self._line()}>"

    def _repr_html_(self) -> str:
        return html_table(self._line(), self.frame, self._notes())

    def __eq__(self, other: object) -> bool:
        """Return whether two results of one kind have the same content."""
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Shown)
        return self.frame.equals(other.frame) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, repr=False, eq=False)
class Results(Shown, Sequence[T]):
    """An immutable sequence of results. A slice of it is of the same type."""

    _items: Sequence[T] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "_items", tuple(self._items))

    @property
    @abstractmethod
    def frame(self) -> pl.DataFrame:
        """Return the results as a Polars table of plain columns."""

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> T | Self:
        return replace(self, _items=self._items[place]) if isinstance(place, slice) else self._items[place]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)


def make_frame(columns: Mapping[str, type], rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Make a table with these columns of text, whole numbers, numbers or booleans; missing entries are null."""
    import polars as pl

    kinds = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    lines = list(rows)
    series = []
    for name, kind in columns.items():
        cells = [line.get(name) for line in lines]
        series.append(pl.Series(name, [None if cell is None else kind(cell) for cell in cells], kinds[kind]))
    return pl.DataFrame(series)


def plain(value: Any) -> Any:
    """Return the value for JSON. A number that JSON cannot write, such as an infinite bound, becomes None."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, set | frozenset):
        return [plain(item) for item in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def visible(text: object) -> str:
    """Escape control characters, lone surrogates and invisible marks in a text, as <U+001B>.

    A label of a hostile release must not move the cursor, colour a verdict or turn the direction of a line. Line breaks
    and tabs stay.
    """
    return "".join(c if c.isprintable() or c in KEPT else f"<U+{ord(c):04X}>" for c in str(text))


def one_line(text: object, most: int) -> str:
    """Return text without line breaks and invisible characters, shortened if too long."""
    kept = "".join(
        " " if c.isspace() else c if c.isprintable() or c in JOINERS else "\N{REPLACEMENT CHARACTER}" for c in str(text)
    )
    return kept if len(kept) <= most else kept[: most - 3] + "..."


def html_table(caption: str, frame: pl.DataFrame, notes: Sequence[str] = ()) -> str:
    """Return the first rows of a table as HTML, every cell escaped."""
    numbers = [dtype.is_numeric() for dtype in frame.dtypes]
    head = "".join(_cell("th", name, right) for name, right in zip(frame.columns, numbers, strict=True))
    body = "".join(
        "<tr>" + "".join(_cell("td", _written(cell), right) for cell, right in zip(row, numbers, strict=True)) + "</tr>"
        for row in frame.head(SHOWN).iter_rows()
    )
    hidden = frame.height - min(SHOWN, frame.height)
    below = [*([f"... {hidden:,} more"] if hidden else []), *notes]
    words = "".join(f"<p>{_text(note)}</p>" for note in below)
    title = f'<caption style="text-align: left; white-space: nowrap">{_text(caption)}</caption>'
    table = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x: auto">{table}{words}</div>'


def _cell(tag: str, text: str, right: bool) -> str:
    return f'<{tag} style="text-align: {"right" if right else "left"}; padding: 0.1em 0.6em">{_text(text)}</{tag}>'


def _written(value: Any) -> str:
    """Format a cell for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}" if isfinite(value) and abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _text(value: object) -> str:
    return escape(one_line(value, 300), quote=True)
