"""The holder's page for a release of general values and groups."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import noren as nr
from noren.report.page import holder_page, holder_report
from noren.workflow.anonymize import Outcome, run

N = 200
TAG = "<script>alert(1)</script>"
EVIL = {"age": "<b>age</b>", "town": 'to"wn&<i>', "note": "<img src=x>", "ill": TAG}
FLU = "<em>flu</em>"


class Page(HTMLParser):
    """Tags, text, and whether every element is closed."""

    VOID = ("meta", "br", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def table(names: dict[str, str]) -> pa.Table:
    ills = [FLU, "burn", "gout", "cold"]
    return pa.table(
        {
            names["age"]: [20 + i * 7 % 41 for i in range(N)],
            names["town"]: [["Ulm", "Bonn", "Köln", None][i * 5 % 4] for i in range(N)],
            names["note"]: [f"n{i % 9}" for i in range(N)],
            names["ill"]: [ills[i // 3 % 4] for i in range(N)],
        }
    )


def outcome(
    method: str | dict[str, Any], to: Path | None = None, names: dict[str, str] | None = None, **town: Any
) -> Outcome:
    names = names or {name: name for name in EVIL}
    rules = nr.Policy(
        mechanism="ignored",
        attributes={
            names["age"]: "quasi-identifier",
            names["town"]: {"role": "quasi-identifier", **town},
            names["note"]: "plain",
            names["ill"]: "sensitive",
        },
        require=[nr.models.FrequencyLDiversity(on=names["ill"], l=2)],
        method=method,
        dependence={"most": 1.0},
        title="Hospital" if names["ill"] == "ill" else f"Hospital {TAG}",
    )
    return run(table(names), rules, to=to)


METHODS = ("mondrian", "sweep", "incognito", "hilbert", "three-phase", "anatomy", "rating", "auto")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_its_page(method):
    text = holder_report(outcome(method))
    page = Page(text)
    assert page.open == []
    assert "Holder only" in page.text
    assert f"{N} records." in page.text
    for heading in ("What was published", "What holds", "What an adversary still learns", "What is not protected"):
        assert heading in page.text
    assert "None" not in page.text
    assert "nan" not in page.text.split()
    assert "script" not in page.tags


@pytest.mark.parametrize("method", ["mondrian", "incognito"])
def test_general_values_are_called_so(method):
    page = Page(holder_report(outcome(method)))
    assert page.text.count("as general values") == 2
    assert "groups; a second table" not in page.text
    assert "frequency-l-diversity" in page.text
    assert "Somebody who replays the method believes no person's 'ill' with more than" in page.text
    assert "Columns published exactly: note, ill." in page.text


@pytest.mark.parametrize("method", ["anatomy", "rating"])
def test_groups_are_called_so(method):
    made = outcome(method)
    page = Page(holder_report(made))
    groups = made.release.manifest.column("ill").groups
    assert f"as the numbers of {groups} groups; a second table lists each group's values" in page.text
    assert "as general values" not in page.text
    assert "Columns published exactly: age, town, note." in page.text


def test_every_measure_stands_on_the_page():
    made = outcome("mondrian")
    page = Page(holder_report(made))
    assert {"ncp_loss", "classes", "smallest_class"} <= made.facts.losses.keys()
    for name, figure in made.facts.losses.items():
        assert name.replace("_", " ") in page.text
        assert f"{figure:,.4g}" in page.text


def test_records_that_were_left_out_are_counted():
    made = outcome({"name": "incognito", "suppression": 0.4}, missing="drop")
    page = Page(holder_report(made))
    assert made.facts.dropped == N // 4
    assert f"{N // 4} records were dropped because of missing values." in page.text
    suppressed = made.facts.suppressed
    told = f"{suppressed} records ({suppressed / (N - N // 4):.2%}) were suppressed to protect the others."
    assert (told in page.text) == (suppressed > 0)
    assert made.facts.records + suppressed + N // 4 == N


def test_suppressed_records_are_a_share_of_those_that_could_be_published(monkeypatch):
    from dataclasses import replace

    made = outcome("mondrian")
    page = Page(holder_report(replace(made, facts=replace(made.facts, suppressed=1800))))
    assert "1,800 records (90.00%) were suppressed to protect the others." in page.text
    assert "suppressed" not in Page(holder_report(made)).text


def test_decoys_are_not_mentioned():
    text = Page(holder_report(outcome("mondrian"))).text
    assert "decoy" not in text.lower()
    assert "epsilon" not in text
    assert "both could be intersected" in text


def test_the_notes_of_a_method_reach_the_page():
    made = outcome("auto")
    assert "auto chose the method with the least queries loss" in Page(holder_report(made)).text


@pytest.mark.parametrize("method", ["mondrian", "anatomy", "rating", "sweep", "incognito", "auto"])
def test_names_and_values_stay_text(method, tmp_path):
    made = outcome(method, tmp_path / "release & <b>", names=EVIL)
    estimate = made.release.estimate(TAG)
    text = holder_report(made, estimate)
    page = Page(text)
    assert not {"script", "img", "b", "i", "em"} & page.tags
    for name in EVIL.values():
        assert name in page.text
        assert name not in text
    assert FLU not in text


def test_hard_bounds_are_drawn():
    made = outcome("anatomy")
    text = holder_report(made, made.release.estimate("ill"))
    assert "What a recipient can learn" in text
    assert "<svg" in text


def test_a_page_of_a_directory_names_its_checksum(tmp_path):
    import hashlib

    text = holder_report(outcome("rating", tmp_path / "release"))
    digest = hashlib.sha256((tmp_path / "release" / "datapackage.json").read_bytes()).hexdigest()
    assert f"sha256:{digest}" in text
    assert "noren verify release" in text


def test_a_release_of_two_methods_says_which_made_which_columns():
    rules = nr.Policy(
        mechanism="ignored",
        attributes={"age": "quasi-identifier", "town": "quasi-identifier", "note": "plain", "ill": "sensitive"},
        require=[nr.models.KAnonymity(k=4), nr.models.FrequencyLDiversity(on="ill", l=2)],
        method=[nr.methods.Mondrian(), nr.methods.Decoys(on="ill")],
        dependence={"most": 1.0},
    )
    made = run(table({name: name for name in EVIL}), rules)
    report = holder_page(made)
    told = report.content["published"]["methods"]
    assert [(one["name"], one["on"]) for one in told] == [("mondrian", ["age", "town", "note"]), ("decoys", ["ill"])]
    page = Page(report.html)
    for one in (nr.methods.Mondrian, nr.methods.Decoys):
        assert one.sentence in page.text
    assert "Method for ill: decoys." in page.text
    assert "Generalised values and groups depend on all these records" in page.text
    assert "Decoys are fresh" in page.text
    losses = {one["name"]: one for one in report.content["losses"]["columns"]}
    assert losses["ill"]["left_open"] == pytest.approx(1 / 3)
    assert 0 < losses["age"]["left_open"] < 1
    assert all("actual_error" in one for one in losses.values())
    assert report.content["losses"]["classes"]["by"] == ["age", "town"]
    assert report.content["losses"]["classes"]["smallest"] >= 4
