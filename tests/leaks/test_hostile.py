"""A hostile release must not act on its reader: in a page, in a picture, in a terminal.

Labels, column names, titles and file names are texts that somebody else chose. Each holds ways out of a script, an
attribute, an element, a template and an expression, and characters that steer a terminal or break a drawing.
"""

from __future__ import annotations

import json
import re
import xml.dom.minidom
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.cli.render import echo_json, say, table
from noren.results import visible
from tests.browser import Browser, browser

__all__ = ["browser"]  # a fixture is found by its name

CLOSES = "</script><script>window.acted=1</script>"
HOSTILE = {
    "script": CLOSES,
    "element": "<img src=x onerror=window.acted=2>\"' onload=window.acted=3 x='",
    "comment": "<!--<script>window.acted=4//",
    "template": "{{7*7}}${window.acted=5}`]}});window.acted=6//",
    "backslash": "\\u003cscript\\u003ewindow.acted=7\\u0000",
    "lines": "a\u2028b\u2029c",
    "steers": "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\u202eevil\ufffe",
}
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What must never reach a terminal; line breaks and tabs may."""


def labels(text: str) -> list[str]:
    return [f"{text}{place}" for place in "xyz"]


@pytest.fixture(scope="module", params=HOSTILE, ids=str)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """A hostile text, a folder and a release in which everything is called by it."""
    text = HOSTILE[request.param]
    folder = tmp_path_factory.mktemp("hostile")
    pairs = [(one, other) for one in labels(text) for other in labels(text)] * 15
    frame = pl.DataFrame(pairs, schema=[f"{text}q", f"{text}s"], orient="row")
    roles = {f"{text}q": "quasi-identifier", f"{text}s": "sensitive"}
    diverse = nr.models.FrequencyLDiversity(on=f"{text}s", l=2)
    policy = nr.Policy(title=text, attributes=roles, require=[diverse])
    name = re.sub(r"[/\x00]", "", text.replace("\ufffe", ""))[:60]
    release = nr.anonymize(frame, policy)
    place = folder / f"r{name}"
    release.save(place)
    frame.write_parquet(folder / f"o{name}.parquet")
    (folder / "policy.toml").write_text(policy.to_toml(), encoding="utf-8")
    return text, folder, place


def run(*words: object) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert not CONTROL.search(done.output), CONTROL.findall(done.output)
    return done.output


def test_the_browser_would_notice(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<script>let spec = '{CLOSES}';</script>")
    assert browser.look(page).acted == 1


def test_pages_show_hostile_texts_and_do_not_run_them(browser: Browser, world: tuple[str, Path, Path]) -> None:
    text, folder, release = world
    original = next(folder.glob("*.parquet"))
    both = ["--original", original, "--policy", folder / "policy.toml"]
    opened = nr.open_release(release)
    opened.estimate([f"{text}s"]).save_plot(folder / "bars.html")
    opened.estimate([f"{text}q", f"{text}s"]).save_plot(folder / "map.html", "heatmap")
    run("audit", release, *both, "--attack", "bayes", "--plot", folder / "audit.html")
    run("report", release, *both, "--to", folder / "report.html")
    run("risk", original, folder / "policy.toml", "--plot", folder / "risk.html")
    run("compare", original, folder / "policy.toml", "--only", "decoys", "--plot", folder / "compare.html")
    shown = f"<!doctype html><meta charset=utf-8>{opened.estimate([f'{text}s'])._repr_html_()}"
    (folder / "cell.html").write_text(shown, encoding="utf-8", errors="replace")
    pages = sorted(folder.glob("*.html"))
    assert len(pages) >= 7
    for page in pages:
        seen = browser.look(page, draws=page.name not in ("cell.html", "report.html"))
        assert seen.harmless, page.name
        assert not seen.faults, (page.name, seen.faults)
        assert seen.marks or page.name in ("cell.html", "report.html"), page.name


def test_pictures_of_hostile_texts_are_drawn(world: tuple[str, Path, Path], tmp_path: Path) -> None:
    text, _, release = world
    estimate = nr.open_release(release).estimate([f"{text}q", f"{text}s"])
    for kind in ("grouped", "heatmap"):
        estimate.save_plot(tmp_path / f"{kind}.svg", kind)
        xml.dom.minidom.parse(str(tmp_path / f"{kind}.svg"))
        estimate.save_plot(tmp_path / f"{kind}.png", kind)
        assert (tmp_path / f"{kind}.png").stat().st_size > 1000


def test_nothing_steers_a_terminal(world: tuple[str, Path, Path]) -> None:
    """Every command that prints what a release holds; JSON keeps the labels, written as escapes."""
    text, folder, release = world
    run("verify", release)
    run("measure", release)
    run("audit", release)
    run("estimate", release, "--by", f"{text}s")
    run("anonymize", next(folder.glob("*.parquet")), folder / "policy.toml", "--to", folder / "again")
    told = json.loads(run("estimate", release, "--by", f"{text}s", "--json"))
    assert {row[f"{text}s"] for row in told["cells"]} == set(labels(text))


def test_errors_do_not_steer_a_terminal(world: tuple[str, Path, Path]) -> None:
    text, _, release = world
    done = CliRunner().invoke(main, ["estimate", str(release), "--by", f"{text}unknown"])
    assert done.exit_code == 2
    assert not CONTROL.search(done.output)


def test_what_is_written_for_a_person_is_visible(capsys: pytest.CaptureFixture[str]) -> None:
    steers = HOSTILE["steers"]
    say(steers)
    table(steers, [steers], [[steers]])
    echo_json({steers: steers})
    assert not CONTROL.search(capsys.readouterr().out)
    assert visible("\x1b[0m\u2028x") == "<U+001B>[0m<U+2028>x"
    assert visible("naïve 日本 👩\u200d🔬 \u200c\n\t") == "naïve 日本 👩\u200d🔬 \u200c\n\t"
