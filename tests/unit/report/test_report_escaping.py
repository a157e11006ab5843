"""Whatever a name, a label, a title or a file name holds, it is shown as text, in every place of a page."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from noren.report.page import laid_out
from noren.report.render import TEMPLATES, Bar, Figure, Group, Table, _environment, bars, render, render_page
from tests.unit.report.world import Node, Tree

LEFT_OUT = {
    "columns": ["signs", "drugs"], "search": "exact", "groups": 9, "searched": 4, "proven": 3, "mean_cost": 0.2,
    "gap": None, "removed": 5, "entries": 40, "holder_only": True,
}  # fmt: skip
STEERS = {"randomness", "shares", "shown", "after"}
"""Texts of the content by which a page is laid out; none comes from data."""
SHOWN = """
title date published.methods.name published.methods.on published.methods.in_words published.not_published
published.columns.name published.columns.role
published.columns.published published.columns.domain_from published.columns.requirements guarantees.model guarantees.on
guarantees.promise guarantees.not_promised verdicts.column verdicts.model verdicts.statement verdicts.basis
attacks.run.attack attacks.run.target attacks.run.adversary attacks.run.success
attacks.run.notes attacks.run.before attacks.run.scenarios.title attacks.run.titles.* attacks.not_run.attack
attacks.not_run.why losses.exact losses.columns.name losses.columns.note losses.classes.by left_out.columns
left_out.search limits.about limits.text reproduce.release_made_with reproduce.versions.* reproduce.commands.what
reproduce.commands.command reproduce.files.name reproduce.files.sha256 reproduce.original.name
reproduce.original.sha256 reproduce.policy.name reproduce.policy.text
"""


def hostile(place: int) -> str:
    """Ends an attribute, opens an element, and holds a character that HTML forbids; no two places share it."""
    return f"\x1b<i{place} a=\"'>&lt;{{{{ 7 * 7 }}}}"


def visible(place: int) -> str:
    return hostile(place).replace("\x1b", "\ufffd")


class Poison:
    """A copy of some content in which every text begins with one of its own."""

    def __init__(self, content: Any, text: Callable[[int], str] = hostile) -> None:
        self.places: list[str] = []
        self.text = text
        self.content = self._poisoned(content, "")

    def _poisoned(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            kept = STEERS | ({"name", "by"} if "summary" in value else set())
            loose = path.endswith((".titles", ".versions"))
            return {
                key: one if key in kept else self._poisoned(one, f"{path}.{'*' if loose else key}")
                for key, one in value.items()
            }
        if isinstance(value, list):
            return [self._poisoned(one, path) for one in value]
        if not isinstance(value, str):
            return value
        self.places.append(path.removeprefix("."))
        return self.text(len(self.places) - 1) + value


@pytest.fixture
def content(report_pages) -> dict[str, Any]:
    """Every part of a page at once."""
    full = copy.deepcopy(report_pages["mondrian holder"].content)
    full["published"]["methods"][0]["on"] = ["age"]
    full["left_out"] = [LEFT_OUT]
    full["losses"]["columns"][0]["note"] = "a note"
    return full


def shape(root: Node) -> list[tuple[str, list[str]]]:
    """All elements with the names of their attributes."""
    return [(node.tag, sorted(node.attributes)) for node in root.walk()]


def test_hostile_texts_change_no_element(content: dict[str, Any]) -> None:
    poison = Poison(content)
    page = laid_out(poison.content, None)
    harmless = laid_out(Poison(content, "text {} ".format).content, None)
    assert shape(Tree(page).root) == shape(Tree(harmless).root)
    assert not re.search(r"<i\d", page)
    assert "\x1b" not in page


@pytest.mark.parametrize("path", SHOWN.split())
def test_every_place_shows_its_text_as_it_is(path: str, content: dict[str, Any]) -> None:
    poison = Poison(content)
    text = Tree(laid_out(poison.content, None)).root.text
    places = [n for n, place in enumerate(poison.places) if place == path]
    assert places
    assert any(visible(n) in text for n in places)


def test_title_reaches_every_place_of_its_own(content: dict[str, Any]) -> None:
    root = Tree(laid_out({**content, "title": hostile(0)}, None)).root
    head = next(node for node in root.all("title") if node.parent and node.parent.tag == "head")
    assert head.text == root.all("h1")[0].text == visible(0)
    assert visible(0) in root.all("footer")[0].text


def test_captions_and_the_labels_that_repeat_them_are_text() -> None:
    part = {"caption": hostile(0), "header": [hostile(1), hostile(2)], "rows": [[hostile(3), hostile(4)]]}
    root = Tree(piece("table", Table(**part, numbers=(1,), holder=True))).root
    assert [node.text for node in root.all("th", "td")] == [visible(n) for n in (1, 2, 3, 4)]
    assert root.all("caption")[0].text == f"Holder only {visible(0)}"
    assert root.all("div")[0].attributes["aria-label"] == visible(0)
    assert [node.attributes.get("class") for node in root.all("th", "td")] == [None, "n", None, "n"]
    root = Tree(piece("figure", Figure(Markup("<svg></svg>"), hostile(0)))).root
    assert root.all("figcaption")[0].text == visible(0)
    assert root.all("svg")
    assert "&lt;svg" in piece("figure", Figure("<svg>", "")), "text is not a drawing"
    assert Tree(piece("listing", [hostile(0)])).root.all("li")[0].text == visible(0)


def piece(macro: str, part: Any) -> str:
    """One macro of the pages' parts, as a template would use it."""
    return str(getattr(_environment(TEMPLATES).get_template("parts.html").module, macro)(part))


def test_drawings_show_names_as_text() -> None:
    drawn = bars("x", hostile(0), hostile(1), [Group(hostile(2), [Bar(hostile(3), 0.5, "<50%")])], axis=hostile(4))
    root = Tree(drawn).root
    assert {node.tag for node in root.walk()} <= {"", "svg", "title", "desc", "defs", "pattern", "rect", "path", "text"}
    texts = [node.text for node in root.all("title", "desc", "text")]
    assert {visible(n) for n in (0, 1, 2, 3, 4)} | {"<50%"} <= set(texts)


def test_an_estimate_shows_names_and_labels_as_text(report_pages) -> None:
    """The chart maker's own drawing too: the release's labels hold tags."""
    root = Tree(report_pages["anatomy estimate"].html).root
    assert not root.all("em", "script", "i", "b")
    (drawing,) = [node for node in root.all("div") if node.attributes.get("role") == "img"]
    assert "<em>flu</em>" in drawing.text
    assert "<script>" in drawing.attributes["aria-label"]
    rows = root.all("section")[-3].all("th")
    assert "<em>flu</em>" in [row.text for row in rows]


# ---------------------------------------------------------------------- the templates themselves


@pytest.mark.parametrize("name", sorted(path.name for path in TEMPLATES.rglob("*.[hs][tv]*")))
def test_no_template_trusts_what_it_is_given(name: str) -> None:
    (path,) = TEMPLATES.rglob(name)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe|autoescape|Markup|<script|\bon\w+=", text)
    assert not re.search(r"=\{\{", text), "a value of an attribute stands in quotes"


def test_what_is_missing_is_an_error_and_not_a_gap() -> None:
    with pytest.raises(UndefinedError):
        render("bars.svg", drawings=[{}])
    with pytest.raises(UndefinedError):
        render_page("report.html", title="x")
