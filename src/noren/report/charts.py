"""Drawings as text: bars that carry their own names and figures, so that none needs a legend or a colour to be read.

Before is hollow, what might have been published instead is striped, the release itself is solid. A drawing names the
table that holds its figures, for readers who cannot see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from unicodedata import east_asian_width

from noren.report.html import Markup, safe

WIDTH, LEFT, RIGHT = 800, 290, 90
ROW, GAP, BAR = 19, 12, 12
INK, SOFT, RULE, BLUE = "#1b1f24", "#424a53", "#d0d7de", "#0b4f8a"
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
    if sum(len(group.bars) + 1 for group in groups) <= MOST_ROWS or len(groups) < 2:
        return _drawing(name, title, words, groups, axis)
    parts: list[list[Group]] = [[]]
    for group in groups:
        if parts[-1] and sum(len(one.bars) + 1 for one in [*parts[-1], group]) > MOST_ROWS:
            parts.append([])
        parts[-1].append(group)
    drawn = [
        _drawing(f"{name}-{place}", f"{title}, part {place} of {len(parts)}", words, part, axis)
        for place, part in enumerate(parts, 1)
    ]
    return Markup("".join(drawn))


def _drawing(name: str, title: str, words: str, groups: Sequence[Group], axis: str) -> Markup:
    y = 8.0
    parts: list[str] = []
    for group in groups:
        parts.append(_text(0, y + 12, group.name, weight="600", room=WIDTH))
        y += ROW + 1
        for bar in group.bars:
            parts.append(_bar(name, y, bar))
            y += ROW
        y += GAP
    foot = y + 2
    grid = [_tick(place / 4, foot) for place in range(5)]
    label = _text(LEFT, foot + 34, axis, colour=SOFT, size=12, room=WIDTH - LEFT)
    height = foot + 44
    stripes = (
        f'<pattern id="{name}-stripes" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="6" height="6" fill="#ffffff"/>'
        f'<rect width="2.5" height="6" fill="{SOFT}"/></pattern>'
    )
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img" '
        f'aria-labelledby="{name}-title {name}-words" font-family="DejaVu Sans, Noto Sans, Arial, sans-serif">'
        f'<title id="{name}-title">{safe(title)}</title><desc id="{name}-words">{safe(words)}</desc>'
        f"<defs>{stripes}</defs>{''.join(grid)}{''.join(parts)}{label}</svg>"
    )


def _bar(name: str, y: float, bar: Bar) -> str:
    span = WIDTH - LEFT - RIGHT
    share = min(1.0, max(0.0, bar.share))
    length, top = share * span, y + (ROW - BAR) / 2
    fill = {"hollow": "#ffffff", "striped": f"url(#{name}-stripes)", "solid": BLUE}[bar.kind]
    edge = BLUE if bar.kind == "solid" else SOFT
    drawn = f'<rect x="{LEFT}" y="{top:.1f}" width="{length:.1f}" height="{BAR}" fill="{fill}" stroke="{edge}"/>'
    end = LEFT + length
    if bar.low is not None and bar.high is not None:
        low, high = (LEFT + min(1.0, max(0.0, x)) * span for x in (bar.low, bar.high))
        middle = top + BAR / 2
        drawn += (
            f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 4:.1f}v8M{high:.1f} {middle - 4:.1f}v8" '
            f'stroke="{INK}" stroke-width="1.5" fill="none"/>'
        )
        end = max(end, high)
    return (
        _text(LEFT - 8, y + 13.5, bar.name, anchor="end", size=12, room=LEFT - 14)
        + drawn
        + _text(end + 6, y + 13.5, bar.text, size=12, room=RIGHT)
    )


def _tick(place: float, foot: float) -> str:
    x = LEFT + place * (WIDTH - LEFT - RIGHT)
    return (
        f'<path d="M{x:.1f} 26V{foot:.1f}" stroke="{RULE}" fill="none"/>'
        f'<text x="{x:.1f}" y="{foot + 15:.1f}" font-size="11" fill="{SOFT}" text-anchor="middle">{place:.0%}</text>'
    )


def _text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: int = 13,
    weight: str = "400",
    colour: str = INK,
    room: float,
) -> str:
    told = shortened(words, int(room / (size * (0.62 if weight == "600" else 0.58))))
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{safe(told)}</text>'
    )


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


def rendered(chart: object) -> Markup:
    """An Altair chart as a drawing inside the page: without name spaces, which HTML does not need."""
    import re

    import vl_convert

    text = vl_convert.vegalite_to_svg(chart.to_dict())  # type: ignore[attr-defined]
    return Markup(re.sub(r'\s(?:xmlns(?::\w+)?|version)="[^"]*"', "", text[text.index("<svg") :]))
