"""Every text can be read and every mark be seen, in light and in dark (WCAG 2 AA)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from noren.estimates import BLUES
from noren_studio import theme
from noren_studio.work.answering import NIGHT

GROUNDS = ("page", "surface", "sunken")
READ = (
    *((ink, ground) for ink in ("ink", "soft", "accent", "good", "bad", "warn") for ground in GROUNDS),
    *(("ink", ground) for ground in ("tint", "good-tint", "bad-tint", "warn-tint")),
    ("accent", "tint"),
    ("soft", "tint"),
    ("good", "good-tint"),
    ("bad", "bad-tint"),
    ("warn", "warn-tint"),
    ("on-accent", "accent"),
    ("on-cloth", "cloth"),
    ("on-cloth-soft", "cloth"),
)
SEEN = tuple((mark, ground) for mark in ("edge", "bar", "bar-2") for ground in GROUNDS)
"""Texts and marks, each with the grounds on which it stands."""


@pytest.mark.parametrize("look", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(READ, 4.5), (SEEN, 3.0)], ids=["text", "marks"])
def test_contrast(look: Mapping[str, str], pairs: tuple[tuple[str, str], ...], least: float) -> None:
    low = {pair: round(theme.contrast(look[pair[0]], look[pair[1]]), 2) for pair in pairs}
    assert {pair: found for pair, found in low.items() if found < least} == {}


def test_contrast_is_that_of_wcag() -> None:
    """Black on white has 21; #777777 on white is the known near miss of 4.48."""
    assert theme.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert theme.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_figure_on_a_heat_map_is_read_at_every_strength(dark: bool) -> None:
    scale = [NIGHT[one] for one in BLUES] if dark else list(BLUES)
    assert (theme.between(scale, 0), theme.between(scale, 0.5), theme.between(scale, 1)) == (
        scale[0].lower(), scale[2].lower(), scale[4].lower()
    )  # fmt: skip
    grounds = [theme.between(scale, at / 200) for at in range(201)]
    assert min(theme.contrast(theme.readable_on(one), one) for one in grounds) >= 4.5


def test_both_looks_have_the_same_tokens_and_the_sheet_uses_no_other_colour() -> None:
    assert theme.LIGHT.keys() == theme.DARK.keys()
    sheet = theme.SHEET.read_text()
    used = set(re.findall(r"var\(--n-([\w-]+)\)", sheet))
    known = {*theme.LIGHT, *(f"size-{name}" for name in theme.SIZES), "font", "mono"}
    assert used <= known
    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", sheet)) <= {"#b98a3e", "#2d4a66", "#ffffff"}


@pytest.mark.parametrize("name", ["{b}", "a {c} of {@2}", "{bold|all}", "{{a0}}", "plain"])
def test_a_chart_fills_nothing_into_a_name(name: str) -> None:
    """ECharts replaces {a} and the like and reads {style|text}; what is seen stays the same."""
    shown = theme.tip(name)
    assert re.search(r"\{[\w@]", shown) is None
    assert shown.replace("\N{WORD JOINER}", "") == name


def test_a_chart_writes_out_what_would_turn_a_line() -> None:
    assert theme.tip("\u202eevil") == "<U+202E>evil"
