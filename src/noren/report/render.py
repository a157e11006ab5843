"""Renders plain data with templates; everything that is not markup is escaped.

Python decides what a page says and in which figures; a template decides where it stands. A column called like a tag
stays a name.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
VISIBLE = {code: "\N{REPLACEMENT CHARACTER}" for code in range(32) if chr(code) not in "\n\t"}
"""Control characters, which HTML forbids, are shown."""


@dataclass(frozen=True)
class Line:
    """A sentence, and whether it is computed from the original."""

    text: str
    holder: bool = False


@dataclass(frozen=True)
class Table:
    """A table of texts. The columns in `numbers` are aligned to the right."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[int] = ()
    holder: bool = False


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption; a table beside it has the same figures."""

    drawing: Markup
    caption: str
    holder: bool = False


@dataclass(frozen=True)
class Part:
    """A part of the page: words, a drawing, a table with its figures, and notes."""

    figure: Figure | None
    table: Table
    title: str = ""
    words: Sequence[str] = ()
    notes: Sequence[str] = ()


def render(template: str, /, folder: Path = TEMPLATES, **data: Any) -> Markup:
    """Render a template of a folder, which may include those of the report."""
    from markupsafe import Markup

    return Markup(_environment(folder).get_template(template).render(data))


def render_page(template: str, /, folder: Path = TEMPLATES, *, holder: bool = False, **data: Any) -> str:
    """Render the whole page: one file that loads, runs and sends nothing.

    On paper a holder-only page says so at the top of every sheet.
    """
    from markupsafe import Markup

    look = style(holder)
    digest = base64.b64encode(hashlib.sha256(look.encode()).digest()).decode()
    return str(render(template, folder, style=Markup(look), style_digest=digest, **data))


def style(holder: bool = False) -> str:
    """Return the style sheet of a page."""
    names = ("style.css", "holder.css") if holder else ("style.css",)
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


@cache
def _environment(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value.translate(VISIBLE) if isinstance(value, str) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "number": number, "whole": "{:,}".format}
    return made


def percent(share: float | None) -> str:
    """Format a share for people; small shares are not shown as 0%, nor large ones as 100%."""
    if share is None:
        return "-"
    if 0 < abs(share) < 0.0005:
        return "under 0.1%"
    if 0.9995 <= share < 1 - 1e-12:
        return "over 99.9%"
    return f"{share:.1%}"


def number(value: float | None) -> str:
    """Format a number for people: whole numbers in full, others with four digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.4g}"


MOST = 10
"""Lines of one kind."""
MANY_COLUMNS = 20
"""Published columns from which those of one kind share a line."""


def worst(found: Sequence[Any], badness: Callable[[Any], float], most: int = MOST) -> list[Any]:
    """Return the worst items, in their original order."""
    if len(found) <= most:
        return list(found)
    ranked = sorted(range(len(found)), key=lambda at: -badness(found[at]))[:most]
    return [found[at] for at in sorted(ranked)]


def counted(found: Sequence[Any], most: int = MOST) -> str:
    """Return a sentence about items that are not shown; empty if all are shown."""
    more = len(found) - most
    return "" if more <= 0 else f"{more} smaller ones are in the JSON of this report."


def verdicts(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Render verdicts: failed or undecided ones first, then those nearest to their limit."""

    def badness(one: Mapping[str, Any]) -> float:
        near = 1 - abs((one["achieved"] or 0.0) - one["required"]) / max(abs(one["required"]), 1e-9)
        return float(
            (2.0 if one["holds"] is False else 1.5 if one["holds"] is None else 0.0) + min(max(near, 0.0), 1.0)
        )

    return worst(found, badness)


def columns(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Render published columns; many columns of one role, form and requirement share a line."""
    if len(found) <= MANY_COLUMNS:
        return [dict(one) for one in found]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for one in found:
        groups.setdefault((one["role"], one["form"], tuple(one["requirements"])), []).append(one)
    out = []
    for (role, form, asked), some in groups.items():
        sizes = [one["values"] for one in some if one["values"]]
        said = {one["published"] for one in some}
        out.append(
            {
                "name": f"{len(some)}: {', '.join(one['name'] for one in some)}" if len(some) > 1 else some[0]["name"],
                "role": role,
                "published": said.pop() if len(said) == 1 else f"as {form}s",
                "values": max(sizes) if sizes else None,
                "domain_from": ", ".join(dict.fromkeys(one["domain_from"].split(";")[0] for one in some)),
                "requirements": list(asked),
            }
        )
    return out


# ---------------------------------------------------------------------- drawings


WIDTH, LEFT, RIGHT = 800, 290, 90
ROW, GAP = 19, 12
HEADING, NAME, FIGURE = 99, 39, 12
"""Letters that fit: over a group, before a bar, at its end."""
MOST_ROWS = 44
"""Bars and their headings in one drawing."""
Kind = Literal["hollow", "striped", "solid"]


@dataclass(frozen=True)
class Bar:
    """One bar: its name, length (0 to 1), text at its end, and interval."""

    name: str
    share: float
    text: str
    kind: Kind = "solid"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Group:
    """Bars that are compared with each other."""

    name: str
    bars: Sequence[Bar]


def bars(name: str, title: str, words: str, groups: Sequence[Group], *, axis: str) -> Markup:
    """Draw horizontal bars from 0 to 100%, in groups, split into drawings that fit on a sheet of paper.

    `name` makes the ids of the drawings their own.
    """
    parts: list[list[Group]] = [[]]
    for group in groups:
        if parts[-1] and sum(len(one.bars) + 1 for one in [*parts[-1], group]) > MOST_ROWS:
            parts.append([])
        parts[-1].append(group)
    many = len(parts) > 1
    drawings = [
        _drawing(f"{name}-{n}" if many else name, f"{title}, part {n} of {len(parts)}" if many else title, part)
        for n, part in enumerate(parts, 1)
    ]
    ticks = [(_along(quarter / 4), f"{quarter / 4:.0%}") for quarter in range(5)]
    return render("bars.svg", drawings=drawings, words=words, axis=axis, ticks=ticks, width=WIDTH, left=LEFT)


def _drawing(name: str, title: str, groups: Sequence[Group]) -> dict[str, Any]:
    """Lay out one drawing from the top down."""
    y = 8
    headings: list[tuple[int, str]] = []
    drawn: list[dict[str, Any]] = []
    for group in groups:
        headings.append((y, shortened(group.name, HEADING)))
        y += ROW + 1
        for bar in group.bars:
            drawn.append(_bar(bar) | {"y": y})
            y += ROW
        y += GAP
    return {"name": name, "title": title, "headings": headings, "bars": drawn, "foot": y + 2}


def _bar(bar: Bar) -> dict[str, Any]:
    end = _along(bar.share)
    interval = None if bar.low is None or bar.high is None else (_along(bar.low), _along(bar.high))
    return {
        "name": shortened(bar.name, NAME),
        "kind": bar.kind,
        "length": end - LEFT,
        "interval": interval,
        "end": max(end, interval[1]) if interval else end,
        "text": shortened(bar.text, FIGURE),
    }


def _along(share: float) -> float:
    """Return the position of a share on the axis."""
    return round(LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT), 1)


def shortened(words: str, room: int) -> str:
    """Shorten a text to so many letters; wide scripts need the room of two."""
    words = " ".join(words.split())
    if sum(map(_width, words)) <= room:
        return words
    used, kept = 1, ""
    for letter in words:
        used += _width(letter)
        if used > room:
            break
        kept += letter
    return kept.rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def _width(letter: str) -> int:
    return 2 if east_asian_width(letter) in "WF" else 1


def rendered(chart: object, words: str) -> Markup:
    """Render an Altair chart inside the page, without name spaces, which HTML does not need."""
    import re

    from markupsafe import Markup

    from noren.estimates.counts import plots

    text = plots.rendered(chart, ".svg").decode()
    drawing = Markup(re.sub(r'\s(?:xmlns(?::\w+)?|version)="[^"]*"', "", text[text.index("<svg") :]))
    return Markup('<div role="img" aria-label="{}">{}</div>').format(words, drawing)
