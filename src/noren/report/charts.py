"""Drawings as text: bars that carry their own names and figures, so that none needs a legend or a colour to be read.

Before is hollow, what might have been published instead is striped, the release itself is solid. A drawing names the
table that holds its figures, for readers who cannot see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import east_asian_width

from noren.report.render import render

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, LEFT, RIGHT = 800, 290, 90
ROW, GAP = 19, 12
HEADING, NAME, FIGURE = 99, 39, 12
"""Letters that fit: over a group, before a bar, at its end."""
MOST_ROWS = 44
"""Bars and their headings in one drawing."""
Kind = Literal["hollow", "striped", "solid"]


@dataclass(frozen=True)
class Bar:
    """One bar: what it is called, how long it is (0 to 1), what is written at its end, and its interval."""

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
    """Horizontal bars from 0 to 100%, group below group, in as many drawings as fit on a sheet of paper each.

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
    """What stands where in one drawing, from the top down."""
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
    """Where a share lies on the axis."""
    return round(LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT), 1)


def shortened(words: str, room: int) -> str:
    """Words that fit into so many letters; wide scripts need the room of two."""
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
    """An Altair chart as a drawing inside the page: without name spaces, which HTML does not need."""
    import re

    from markupsafe import Markup

    from noren.estimates.counts import plots

    text = plots.rendered(chart, ".svg").decode()
    drawing = Markup(re.sub(r'\s(?:xmlns(?::\w+)?|version)="[^"]*"', "", text[text.index("<svg") :]))
    return Markup('<div role="img" aria-label="{}">{}</div>').format(words, drawing)
