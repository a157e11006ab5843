"""Pages for the recipient beside the main one: their lines run, and their links to questions are there."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import noren
from tests.cli.conftest import strict

DOCS = Path(noren.__file__).parents[2] / "docs"


def test_the_lines_of_the_margins_page_run() -> None:
    page = (DOCS / "margins.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "margins.md", "exec"), names)  # our own page
    release = names["release"]
    assert isinstance(release, noren.Release)
    assert release.manifest.spent == 0.1
    assert "margins" in release.estimate(["job", "ill"]).diagnostics


@pytest.fixture(scope="module")
def small() -> noren.Release:
    frame = pl.DataFrame(
        {"x": [0, 1, 2, 3, 4, 5, 6, 7] * 200, "z": [0, 1, 2, 3] * 400, "w": [2, 0, 1, 3, 3, 1, 0, 2] * 200}
    )
    frame = frame.with_columns(y=(pl.col("x") > 4).cast(pl.Int64))
    roles = {"y": noren.plain(), "x": noren.sensitive(), "z": noren.sensitive(), "w": noren.sensitive()}
    require = [noren.models.FrequencyLDiversity(on=["x", "z", "w"], l=2)]
    return noren.anonymize(frame, noren.Policy(attributes=roles, require=require, dependence={"most": 1.0}))


def test_what_the_page_about_one_member_advises_runs(small: noren.Release) -> None:
    page = (DOCS / "one_member.md").read_text(encoding="utf-8").split("## What to do instead")[1]
    asked = re.findall(r"`(release\.[^`]+)`", page)
    assert len(asked) >= 7
    for line in asked:
        if "regress" not in line:  # y follows x too firmly for a logistic law; below
            assert eval(line.replace("m=20", "m=1, seed=1"), {"release": small}) is not None  # our own page
    assert small.regress("y ~ x", family="gaussian").params["x"] > 0.1


def test_pages_link_to_headings_that_are_there() -> None:
    def slug(heading: str) -> str:
        return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")

    for name in ("recipient.md", "weights.md", "margins.md", "one_member.md", "alternatives.md"):
        for target, anchor in re.findall(r"\]\(([\w./]*)#([\w-]+)\)", (DOCS / name).read_text(encoding="utf-8")):
            text = (DOCS / (target or name)).read_text(encoding="utf-8")
            assert anchor in {slug(h) for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}, (name, target, anchor)


def test_commands_tell_what_margins_spend(tmp_path: Path, run) -> None:
    pl.DataFrame({"pid": range(300), "ill": ["a", "b", "c", "d", "e", "f"] * 50}).write_csv(tmp_path / "table.csv")
    rules = tmp_path / "policy.toml"
    rules.write_text(
        '[attributes]\npid = { role = "identifier" }\nill = { role = "sensitive" }\n'
        '[[require]]\nmodel = "frequency-l-diversity"\non = "ill"\nl = 2\n'
        '[[margins]]\nof = ["ill"]\nepsilon = 0.5\n'
        '[randomness]\nsecret = "key"\nrecord_key = "pid"\nbudget = 0.8\n'
    )
    run("secret", tmp_path / "key")
    shown = run("anonymize", tmp_path / "table.csv", rules, "--to", tmp_path / "release").output
    assert "Noised margins (total epsilon 0.5)" in " ".join(shown.split())
    assert "spent epsilon = 0.5 in total" in run("secret", tmp_path / "key", "--show").output
    found = strict(
        run("verify", tmp_path / "release", "--policy", rules, "--original", tmp_path / "table.csv", "--json").output
    )
    assert {"margins", "margin-noise"} <= {one["model"] for one in found["verdicts"]}
    refused = run("anonymize", tmp_path / "table.csv", rules, "--to", tmp_path / "again", code=1).output
    assert "above the budget of 0.8" in refused
    assert not (tmp_path / "again").exists()
