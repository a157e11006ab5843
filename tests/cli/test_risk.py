"""noren risk: what the raw table gives away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import strict

TABLE = "pid;sex;town;pay\n" + "".join(
    f"{i};{'fm'[i % 2]};{'Ulm' if i < 30 else 'Bonn'};{100 + i}\n" for i in range(40)
)
POLICY = """\
[attributes]
pid = "identifier"
sex = "quasi-identifier"
town = "quasi-identifier"
pay = "plain"

[[require]]
model = "k-anonymity"
k = 12

[method]
name = "mondrian"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pay.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path


def test_risk_says_what_the_table_gives_away(folder, run):
    shown = run("risk", folder / "pay.csv", folder / "policy.toml", "--plot", folder / "risk.svg").output
    assert "40 people; found by sex, town" in shown
    assert "0 people (0.0%) are unique in all quasi-identifiers; smallest k 5" in shown
    assert "k-anonymity" in shown
    assert "Special uniques (SUDA2, up to 2 columns): 0 rows" in shown
    assert "do not publish them" in shown
    assert (folder / "risk.svg").read_text(encoding="utf-8").startswith("<svg")


def test_risk_as_data_counts_who_breaks_the_policy(folder, run):
    told = strict(run("risk", folder / "pay.csv", folder / "policy.toml", "--json").output)
    assert told["smallest_k"] == 5
    broken = told["requirements"][0]
    assert (broken["model"], broken["breaches"], broken["records"], broken["holds"]) == ("k-anonymity", 10, 40, False)


def test_risk_of_named_columns(folder, run):
    shown = run("risk", folder / "pay.csv", "--quasi", "sex,town", "--quasi", "pay", "--fraction", "0.5").output
    assert "40 people (100.0%) are unique" in shown
    assert "Nobody else within 0.05 standard" in shown


def test_wrong_questions_are_refused(folder, run):
    assert "no column 'age'" in run("risk", folder / "pay.csv", "--quasi", "age", code=2).output
    assert "cannot be written" in run("risk", folder / "pay.csv", "--plot", "risk.txt", code=2).output
