"""A report opens with the truth, and stays short however wide the table is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.report.page import Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDE, N = 50, 240
QUICK = ("reidentification", "homogeneity", "disclosure", "known-records")


def people(columns: int, n: int = N) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 5, n)
    out = {"town": [f"t{i}" for i in rng.integers(0, 6, n)], "age": [str(i) for i in rng.integers(18, 90, n)]}
    for at in range(columns - 2):
        own = np.where(rng.random(n) < 0.6, kind, rng.integers(0, 5, n))
        out[f"answer_{at:02d}"] = [f"reply{i}" for i in own]
    return pl.DataFrame(out)


def decoys(table: pl.DataFrame, *more: nr.models.Belief) -> nr.Policy:
    answers = tuple(name for name in table.columns if name.startswith("answer"))
    return nr.Policy(
        attributes={"town": "quasi-identifier", "age": "quasi-identifier"} | dict.fromkeys(answers, "sensitive"),
        require=[nr.models.FrequencyLDiversity(on=answers, l=2), *more],
        dependence={"most": 1.0},
    )


def classes(table: pl.DataFrame) -> nr.Policy:
    roles = dict.fromkeys(table.columns, "plain") | {"town": "quasi-identifier", "age": "quasi-identifier"}
    return nr.Policy(
        attributes=roles | {"answer_00": "sensitive"},
        require=[nr.models.KAnonymity(k=4), nr.models.FrequencyLDiversity(on="answer_00", l=2)],
        method=nr.methods.Mondrian(),
    )


def reported(table: pl.DataFrame, policy: nr.Policy, attacks: tuple[str, ...]) -> Page:
    return nr.make_report(nr.anonymize(table, policy), policy, original=table, attacks=attacks)


def texts(page: Page) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.html).split())


def test_it_opens_with_who_is_meant_what_is_believed_and_who_is_not_meant() -> None:
    table = people(4)
    page = reported(table, classes(table), ("homogeneity", "known-records"))
    truth = page.content["truth"]
    assert truth["stands"][0]["model"] == "frequency-l-diversity"
    (belief,) = truth["beliefs"]
    assert belief["finds"] == "the class"
    assert belief["before"] < belief["mean_belief"] <= 0.5 + 1e-9
    assert belief["sure"] == 0
    (known,) = [one for one in truth["does_not_stand"] if one["attack"] == "known-records"]
    assert known["after"] == pytest.approx(1.0)
    assert "homogeneity" not in {one["attack"] for one in truth["does_not_stand"]}, "l-diversity bounds it"
    text = texts(page)
    assert text.index("Summary on one page") < text.index("What was published")
    assert "all other members of the class" in text, "the figure of 100% says whose it is"
    assert "gains most" not in text


def test_a_belief_that_is_required_is_the_strongest_claim() -> None:
    table = people(5)
    asked = nr.models.Belief(on="answer_00", most=0.95, share=0.9)
    page = reported(table, decoys(table, asked), ("bayes",))
    truth = page.content["truth"]
    assert [one["model"] for one in truth["stands"]] == ["belief"]
    bayes = {name for one in truth["does_not_stand"] if one["attack"] == "bayes" for name in one["on"]}
    assert "answer_00" not in bayes
    firmest = truth["beliefs"][0]
    assert firmest["right"] is not None
    assert firmest["holder_only"]


@pytest.mark.parametrize("kind", ["classes", "decoys"])
def test_a_wide_table_has_a_short_report(kind: str, tmp_path: Path) -> None:
    table = people(WIDE)
    attacks = QUICK if kind == "classes" else QUICK[:3]
    page = reported(table, classes(table) if kind == "classes" else decoys(table), attacks)
    assert len(page.content["published"]["columns"]) == WIDE, "the JSON holds everything"
    assert page.html.count("<tr>") < 130
    assert page.html.count("<svg") <= 2
    if kind == "decoys":
        assert "38 more" in texts(page)
    if CHROMIUM is None:
        return
    source, printed = tmp_path / "report.html", tmp_path / "report.pdf"
    page.save(source)
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={printed}")
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    subprocess.run([CHROMIUM, *options, profile, source.as_uri()], check=True, capture_output=True, timeout=600)
    assert 1 < len(re.findall(rb"/Type\s*/Page[^s]", printed.read_bytes())) <= 12
