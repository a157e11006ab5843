"""Semantic diversity by command: the design that is named, and distances that are out of reach."""

from __future__ import annotations

import pytest

from tests.cli.conftest import strict

POLICY = """
[attributes]
who = {{ role = "identifier" }}
pay = {{ role = "sensitive", distance = "ordinal" }}

[[require]]
model = "semantic-diversity"
on = "pay"
l = {l}
d = {d}

[method]
name = "decoys"
design = "{design}"
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("who,pay\n" + "".join(f"p{i},{i % 14}\n" for i in range(280)))
    return path


def test_anonymize_names_the_design_and_the_warning(table, tmp_path, run):
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.format(l=3, d="2\nmost = 0.5", design="duplicate-processing"))
    text = run("anonymize", table, policy, "--to", tmp_path / "release").output
    assert "semantic-duplicate-processing" in text
    assert "Note: pay:" in text
    answer = strict(run("anonymize", table, policy, "--to", tmp_path / "again", "--json").output)
    assert answer["designs"]["pay"] == {
        "name": "semantic-duplicate-processing", "d": 14, "eta": 3, "p": 1.0, "epsilon": None,
    }  # fmt: skip
    assert len(answer["notes"]) == 1
    assert "holds" in run("verify", tmp_path / "release").output


def test_an_impossible_distance_says_what_would_work(table, tmp_path, run):
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.format(l=3, d=7, design="flat"))
    text = run("anonymize", table, policy, "--to", tmp_path / "release", code=2).output
    assert "l = 2 works at d = 7" in text
    assert "d = 4 works at l = 3" in text
    assert not (tmp_path / "release").exists()
