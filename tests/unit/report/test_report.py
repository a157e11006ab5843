"""The report: a page that anybody can open, print and listen to, and that says who may read it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
from itertools import pairwise
from typing import Any

import pytest

from noren.errors import DataError
from noren.report.render import Bar, Group, bars, number, percent, shortened, style
from tests.unit.report.world import NAMES, TAG, TOWN, Node, Tree, above


@pytest.fixture(params=NAMES)
def tree(request, report_pages) -> Node:
    return Tree(report_pages[request.param].html).root


# ---------------------------------------------------------------------- structure


def test_headings_go_down_one_level_at_a_time(tree: Node) -> None:
    levels = [int(node.tag[1]) for node in tree.walk() if re.fullmatch(r"h[1-6]", node.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(node.text.strip() for node in tree.all("h1", "h2", "h3"))


def test_the_page_has_its_landmarks_and_its_language(tree: Node) -> None:
    assert tree.all("html")[0].attributes["lang"] == "en"
    for tag in ("header", "nav", "main", "footer", "title"):
        assert len([node for node in tree.all(tag) if "svg" not in {p.tag for p in above(node)}]) == 1
    ids = [node.attributes["id"] for node in tree.walk() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    links = [node.attributes["href"] for node in tree.all("a")]
    assert links
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    named = " ".join(node.attributes.get("aria-labelledby", "") for node in tree.walk()).split()
    assert named
    assert set(named) <= set(ids)


def test_every_table_is_named_and_every_heading_says_what_it_heads(tree: Node) -> None:
    tables = tree.all("table")
    assert len(tables) >= 5
    for table in tables:
        assert table.children[0].tag == "caption"
        assert table.children[0].text.strip()
        assert all(th.attributes["scope"] in ("col", "row") for th in table.all("th"))
        width = len(table.all("thead")[0].all("th"))
        for row in table.all("tbody")[0].all("tr"):
            assert row.children[0].tag == "th"
            assert row.children[0].attributes["scope"] == "row"
            assert len(row.children) == width
        holder = table.parent
        assert holder is not None
        assert holder.attributes["tabindex"] == "0"


def test_every_drawing_can_be_heard(tree: Node) -> None:
    drawings = tree.all("svg")
    assert drawings
    for drawing in drawings:
        figure = next(node for node in above(drawing) if node.tag == "figure")
        assert figure.all("figcaption")[0].text.strip()
        wrapped = next((node for node in above(drawing) if node.attributes.get("role") == "img"), None)
        if wrapped is not None:
            assert wrapped.attributes["aria-label"]
            continue
        assert drawing.attributes["role"] == "img"
        assert drawing.all("title")[0].text.strip()
        assert "table" in drawing.all("desc")[0].text


def test_the_figures_of_a_drawing_stand_in_the_table_after_it(report_pages) -> None:
    """What a bar writes at its end is a cell of some table, so nothing is said by drawing alone."""
    root = Tree(report_pages["mondrian holder"].html).root
    cells = {cell.text for cell in root.all("td")}
    for drawing in root.all("svg"):
        figures = [t.text for t in drawing.all("text") if t.attributes["font-size"] == "12" and t.text.endswith("%")]
        assert figures
        assert all(any(cell == figure or cell.startswith(f"{figure} (") for cell in cells) for figure in figures)


# ---------------------------------------------------------------------- nothing from outside


@pytest.mark.parametrize("name", NAMES)
def test_the_page_loads_and_runs_nothing(name: str, report_pages) -> None:
    text = report_pages[name].html
    root = Tree(text).root
    assert not re.search(r"https?://", text)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert not root.all("script", "link", "iframe", "object", "embed", "img", "image", "form", "base", "foreignobject")
    for node in root.walk():
        assert not any(a.startswith("on") or a in ("style", "src", "srcset") for a in node.attributes), node.tag
        assert node.attributes.get("xlink:href", "#").startswith("#")
    guard = next(n for n in root.all("meta") if n.attributes.get("http-equiv") == "Content-Security-Policy")
    rules = guard.attributes["content"]
    assert "default-src 'none'" in rules
    assert "unsafe" not in rules
    digest = base64.b64encode(hashlib.sha256(root.all("style")[0].text.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in rules
    assert "@media print" in root.all("style")[0].text


@pytest.mark.parametrize("name", NAMES)
def test_names_and_values_stay_text(name: str, report_pages) -> None:
    root = Tree(report_pages[name].html).root
    assert not root.all("script", "b", "i", "em")
    assert TAG not in report_pages[name].html
    assert TOWN in root.text
    assert TAG in root.text
    assert root.all("h1")[0].text == f"{TAG} & <b>"


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_text_can_be_read_by_weak_eyes(report_pages) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    look = style(holder=True).replace("#fff;", "#ffffff;")
    for rule in re.findall(r"\{([^{}]*)\}", look):
        ink = re.search(r"(?<![-\w])color: (#[0-9a-f]{6})", rule)
        ground = re.search(r"background: (#[0-9a-f]{6})", rule)
        if ink or ground:
            pair = (ink[1] if ink else "#1b1f24", ground[1] if ground else "#ffffff")
            assert contrast(*pair) >= 4.5, rule
    for drawing in Tree(report_pages["mondrian holder"].html).root.all("svg"):
        assert all(contrast(text.attributes["fill"], "#ffffff") >= 4.5 for text in drawing.all("text"))


# ---------------------------------------------------------------------- who may read it


def marked(value: Any) -> bool:
    """Whether anything in the data is said to be for the holder only."""
    if isinstance(value, dict):
        return value.get("holder_only") is True or any(map(marked, value.values()))
    return isinstance(value, list) and any(map(marked, value))


@pytest.mark.parametrize("method", ["decoys", "mondrian", "anatomy"])
def test_without_the_original_the_page_is_for_anybody(method: str, report_pages, report_worlds) -> None:
    page = report_pages[f"{method} public"]
    assert not page.holder_only
    assert not marked(page.content)
    assert "Holder only" not in page.html
    assert "For anybody" in page.html
    digest = hashlib.sha256(report_worlds[method].data.read_bytes()).hexdigest()
    assert digest not in page.html + page.json
    assert str(report_worlds[method].release.parent) not in page.html + page.json


@pytest.mark.parametrize("method", ["decoys", "mondrian", "anatomy"])
def test_what_rests_on_the_original_is_marked(method: str, report_pages, report_worlds) -> None:
    page = report_pages[f"{method} holder"]
    assert page.holder_only
    root = Tree(page.html).root
    assert "Holder only" in root.all("header")[0].text
    assert "Holder only" in root.all("footer")[0].text
    assert "Holder only" in root.all("style")[0].text
    assert hashlib.sha256(report_worlds[method].data.read_bytes()).hexdigest() in page.html
    captions = {table.all("caption")[0].text: table for table in root.all("table")}
    rows = [row for row in captions["Verdicts"].all("tr") if "the original" in row.text]
    assert rows
    assert all("Holder only" in row.text for row in rows)
    assert any(result["holder_only"] for result in page.content["attacks"]["run"])
    for result in page.content["attacks"]["run"]:
        marks = [s["holder_only"] for s in result["scenarios"] if s["name"] in result["shown"]]
        if any(marks):
            assert f"Holder only The {result['attack']} attack, before and after" in captions
    assert "Holder only Loss by column" in captions


def test_a_run_is_marked_without_any_attack(report_pages) -> None:
    page = report_pages["mondrian run"]
    assert page.holder_only
    assert "Holder only Measures of the whole table" in Tree(page.html).root.text
    assert page.content["attacks"] == {"run": [], "not_run": []}


# ---------------------------------------------------------------------- saving


def test_a_page_is_saved_once_and_private_where_it_must_be(report_pages, tmp_path) -> None:
    mask = os.umask(0o022)
    try:
        private = report_pages["decoys holder"].save(tmp_path / "new" / "holder.html")
        public = report_pages["decoys public"].save(tmp_path / "public.html")
        figures = report_pages["decoys holder"].save(tmp_path / "holder.json")
    finally:
        os.umask(mask)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (private, public, figures)] == [0o600, 0o644, 0o600]
    assert private.read_text(encoding="utf-8") == report_pages["decoys holder"].html
    assert json.loads(figures.read_text(encoding="utf-8")) == report_pages["decoys holder"].content
    with pytest.raises(DataError, match="exists already"):
        report_pages["decoys public"].save(private)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["holder.json", "new", "public.html"]


@pytest.mark.parametrize("kind", ["public", "holder", "run"])
def test_no_page_is_written_into_a_release(kind: str, report_pages, report_worlds, tmp_path) -> None:
    release, other = report_worlds["decoys"].release, report_worlds["mondrian"].release
    (tmp_path / "link").symlink_to(release)
    before = sorted(path.name for path in release.iterdir())
    page = report_pages[f"decoys {kind}"]
    targets = [release / "r.html", release / "sub" / "r.html", tmp_path / "link" / "r.html", other / "r.html"]
    for target in [*targets, release / ".." / "release" / "r.html"]:
        with pytest.raises(DataError, match="lies inside the release"):
            page.save(target)
    assert sorted(path.name for path in release.iterdir()) == before


# ---------------------------------------------------------------------- figures and bars


def test_little_is_not_nothing_and_nearly_all_is_not_all() -> None:
    shares = [0, 0.0001, 0.123, 0.9999, 1.0, None]
    assert [percent(share) for share in shares] == ["0.0%", "under 0.1%", "12.3%", "over 99.9%", "100.0%", "-"]
    assert [number(n) for n in (3.0, 12345.0, 0.12345, None)] == ["3", "12,345", "0.1235", "-"]


def test_labels_are_shortened_by_what_they_need() -> None:
    assert shortened("short", 10) == "short"
    assert shortened("a label that is long", 10) == "a label t…"
    assert shortened("東京都庁舎前駅", 8) == "東京都…"
    assert shortened("two\n lines", 20) == "two lines"


def test_many_bars_become_several_drawings() -> None:
    groups = [Group(f"g{i}", [Bar("a", 0.5, "50%"), Bar("b", 2.0, "200%", "striped", 0.1, 3.0)]) for i in range(40)]
    root = Tree(bars("x", "title", "table", groups, axis="share")).root
    drawings = root.all("svg")
    assert len(drawings) > 1
    assert [g.name for g in groups] == [
        t.text for d in drawings for t in d.all("text") if t.attributes.get("font-weight") == "600"
    ]
    assert len({d.all("title")[0].text for d in drawings}) == len(drawings)
    for drawing in drawings:
        width = float(drawing.attributes["viewbox"].split()[2])
        for rect in (r for r in drawing.all("rect") if "x" in r.attributes):
            assert float(rect.attributes["x"]) + float(rect.attributes["width"]) <= width
