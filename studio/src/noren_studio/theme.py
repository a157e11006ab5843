"""The look of the studio: colours, font sizes, and the style sheet.

The colours are those of the reports and of Altair's charts, for light and for dark. A text has a contrast of 4.5 to 1
or more with its ground, a border or a bar 3 to 1 (WCAG 2 AA); a test computes both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from noren.estimates import PALETTE
from noren.results import visible

LIGHT: Mapping[str, str] = {
    "page": "#f5f6f8",
    "surface": "#ffffff",
    "sunken": "#eef1f4",
    "ink": "#1b1f24",
    "soft": "#57606a",
    "rule": "#d5dbe1",
    "edge": "#7d8791",
    "accent": "#0b4f8a",
    "on-accent": "#ffffff",
    "tint": "#e4eef7",
    "good": "#1a5c2e",
    "good-tint": "#e4f3e8",
    "bad": "#8b2635",
    "bad-tint": "#fbeaec",
    "warn": "#704600",
    "warn-tint": "#fcf1da",
    "cloth": "#16324f",
    "on-cloth": "#ffffff",
    "on-cloth-soft": "#c4d3e2",
    "bar": "#0072b2",
    "bar-2": "#d55e00",
}
DARK: Mapping[str, str] = {
    "page": "#10151a",
    "surface": "#1a2128",
    "sunken": "#12181d",
    "ink": "#e6e9ed",
    "soft": "#a9b3bd",
    "rule": "#333e48",
    "edge": "#7b8792",
    "accent": "#84bdee",
    "on-accent": "#0a1825",
    "tint": "#1d344a",
    "good": "#8ad6a0",
    "good-tint": "#173222",
    "bad": "#f3a6b0",
    "bad-tint": "#3d1f25",
    "warn": "#efc878",
    "warn-tint": "#382b12",
    "cloth": "#0b1f33",
    "on-cloth": "#e9f0f7",
    "on-cloth-soft": "#a9bdd1",
    "bar": "#56b4e9",
    "bar-2": "#e69f00",
}
SIZES: Mapping[str, str] = {"small": "12.5px", "text": "14px", "lead": "16px", "title": "21px", "figure": "26px"}
FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif'
MONO = 'ui-monospace, "DejaVu Sans Mono", Consolas, monospace'

FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="5" y="3" rx="1" '
    'fill="#704600"/><path d="M3 8h8v20H3zM12 8h8v20h-8zM21 8h8v20h-8z" fill="#16324f"/></svg>'
)
"""A noren: the cloth that hangs in a Japanese doorway."""

SHEET = Path(__file__).with_name("studio.css")


def style() -> str:
    """Return the style sheet: the tokens for light and dark, and the rules that use them."""
    sizes = {f"size-{name}": value for name, value in SIZES.items()}
    light = {**LIGHT, **sizes, "font": FONT, "mono": MONO}
    root, dark = (_declared(tokens) for tokens in (light, DARK))
    rules = "".join(one.read_text(encoding="utf-8") for one in sorted(SHEET.parent.glob("studio*.css")))
    return f":root{{{root}}}\nbody.body--dark{{{dark}}}\n{rules}"


def _declared(tokens: Mapping[str, str]) -> str:
    return "".join(f"--n-{name}:{value};" for name, value in tokens.items())


def tokens(dark: bool | None) -> Mapping[str, str]:
    """Return the colours of the light or dark theme, for charts, which do not use the style sheet."""
    return DARK if dark else LIGHT


def chart_look(dark: bool | None) -> dict[str, Any]:
    """Return the common options of all charts."""
    found = tokens(dark)
    return {
        "color": list(PALETTE),
        "backgroundColor": "transparent",
        "textStyle": {"fontFamily": FONT, "color": found["ink"]},
        "animation": False,
        "aria": {"enabled": True},
    }


def tip_look(dark: bool | None) -> dict[str, Any]:
    """Return the style of tooltips."""
    found = tokens(dark)
    return {
        "renderMode": "richText",
        "trigger": "item",
        "confine": True,
        "backgroundColor": found["surface"],
        "borderColor": found["edge"],
        "textStyle": {"color": found["ink"], "fontSize": 13, "fontFamily": FONT},
    }


def tip(content: str) -> str:
    """Escape braces in a text for a chart: a value may be called {b}, which the chart would replace."""
    return visible(content).replace("{", "{\N{WORD JOINER}")


def between(scale: Sequence[str], share: float) -> str:
    """Return the colour at a share of a scale."""
    at = min(max(share, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(at), len(scale) - 2)
    ends = [[int(one[i : i + 2], 16) for i in (1, 3, 5)] for one in scale[low : low + 2]]
    return "#" + "".join(f"{round(a + (b - a) * (at - low)):02x}" for a, b in zip(*ends, strict=True))


def readable_on(ground: str) -> str:
    """Return black or white, whichever is more readable on this colour (WCAG 2 AA)."""
    return max(("#000000", "#ffffff"), key=lambda one: contrast(one, ground))


def contrast(one: str, other: str) -> float:
    """Return WCAG's contrast of two colours, from 1 to 21."""
    first, second = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
