"""The auditor's commands on tables that Noren did not make: verify and measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import strict

TABLE = """\
age;zip;illness;pay
20-39;130**;flu;3
20-39;130**;cold;4
20-39;130**;ulcer;5
40-59;1485*;flu;3
40-59;1485*;flu;11
60-79;1485*;cold;8
*;*;ulcer;9
"""
POLICY = """\
[attributes]
age = "quasi-identifier"
zip = "quasi-identifier"
illness = {{ role = "sensitive", hierarchy = "illness.csv" }}
pay = "plain"

[[require]]
model = "k-anonymity"
k = {k}

[[require]]
model = "distinct-l-diversity"
on = "illness"
l = 2

[method]
name = "mondrian"
"""


KEYS = (("60-79", "1485*"), ("*", "*"))
"""What people show who are alone with it: one of them was suppressed."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "arx.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "illness.csv").write_text("flu;lungs;*\ncold;lungs;*\nulcer;gut;*\n", encoding="utf-8")
    (tmp_path / "policy.toml").write_text(POLICY.format(k=2), encoding="utf-8")
    return tmp_path


def test_verify_says_how_far_and_where_a_table_falls_short(folder, run):
    shown = run("verify", folder / "arx.csv", "--policy", folder / "policy.toml", "--show", code=1).output
    assert "7 records, 1 suppressed row judged as a class" in shown
    assert "quasi-identifiers: k-anonymity 1, asked 2: 2 classes (2 records) fall short" in shown
    assert "illness: distinct-l-diversity 1, asked 2: 3 classes (4 records) fall short" in shown
    assert "2 of 2 do not hold" in shown
    assert "60-79" in shown
    hidden = run("verify", folder / "arx.csv", "--policy", folder / "policy.toml", code=1).output
    assert "60-79" not in hidden


def test_verify_as_data_is_a_plain_yes_or_no(folder, run):
    words = ("verify", folder / "arx.csv", "--policy", folder / "policy.toml", "--json")
    answer = strict(run(*words, "--show", "1", code=1).output)
    assert (answer["holds"], answer["records"], answer["suppressed"]) == (False, 7, 1)
    size, mixed = answer["verdicts"]
    assert (size["short"], size["breaches"]) == (2, 2)
    alone = [{"keys": {"age": age, "zip": zips}, "records": 1, "achieved": 1.0} for age, zips in KEYS]
    assert size["shortfalls"] in ([one] for one in alone)
    assert (mixed["short"], mixed["breaches"], len(mixed["shortfalls"])) == (3, 4, 1)
    fine = folder / "fine.csv"
    fine.write_text("\n".join(TABLE.splitlines()[:4]) + "\n", encoding="utf-8")
    answer = strict(run("verify", fine, "--policy", folder / "policy.toml", "--json").output)
    assert answer["holds"] is True
    assert "Every requirement holds." in run("verify", fine, "--policy", folder / "policy.toml").output


def test_verify_names_every_value_that_the_hierarchy_misses(folder, run):
    text = TABLE.replace(";cold;", ";gout;").replace(";ulcer;", ";measles;")
    (folder / "arx.csv").write_text(text, encoding="utf-8")
    for command in ("verify", "measure"):
        told = run(command, folder / "arx.csv", "--policy", folder / "policy.toml", code=2).output
        assert "'gout', 'measles'" in told


def test_verify_needs_a_policy_for_a_table(folder, run):
    assert "--policy" in run("verify", folder / "arx.csv", code=2).output
    words = ("--policy", folder / "policy.toml", "--signer", folder / "holder.key.pub")
    assert "--signer applies to releases only" in run("verify", folder / "arx.csv", *words, code=2).output


def test_measure_prints_every_figure(folder, run):
    shown = run(
        "measure", folder / "arx.csv", "--quasi", "age,zip", "--sensitive", "illness", "--sensitive", "pay"
    ).output
    assert "6 records, 1 suppressed; found by age, zip" in shown
    for name in ("k-anonymity", "alpha-k-anonymity", "entropy-l-diversity", "tau-l-diversity", "delta-disclosure"):
        assert name in shown
    assert "t-closeness (ordered) on illness: the values have no declared order." in shown


def test_measure_as_data(folder, run):
    words = ("measure", folder / "arx.csv", "--quasi", "age,zip", "--sensitive", "illness,pay", "--json")
    answer = strict(run(*words).output)
    assert (answer["records"], answer["suppressed"]) == (6, 1)
    assert (answer["quasi_identifiers"], answer["sensitive"]) == (["age", "zip"], ["illness", "pay"])
    found = {(m["column"], m["model"], *m["given"].values()): m["achieved"] for m in answer["measures"]}
    assert found["quasi-identifiers", "k-anonymity"] == 1
    assert found["illness", "alpha-k-anonymity"] == 1
    assert found["illness", "delta-disclosure"] is None  # infinite, which JSON cannot write
    assert ("pay", "t-closeness", "ordered") in found
    assert ("illness", "t-closeness", "tree") not in found
    words = ("measure", folder / "arx.csv", "--policy", folder / "policy.toml", "--json")
    told = strict(run(*words).output)
    assert "tree" in {m["given"].get("distance") for m in told["measures"]}


def test_measure_with_another_mark(folder, run):
    words = ("measure", folder / "arx.csv", "--quasi", "age,zip", "--sensitive", "illness", "--json", "--suppressed")
    assert strict(run(*words, "").output)["records"] == 7
    assert strict(run(*words, "20-39").output)["suppressed"] == 0


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (TABLE, (), "Give a policy, or list"),
        (TABLE, ("--quasi", "age,hue", "--sensitive", "size"), "'size', 'hue'"),
        ("age;zip;illness\n", ("--quasi", "age,zip", "--sensitive", "illness"), "a header but no rows"),
        ("age;zip;illness\n*;*;flu\n", ("--quasi", "age,zip", "--sensitive", "illness"), "all records are suppressed"),
        ("", ("--quasi", "age"), "empty file"),
    ],
)
def test_measure_without_an_answer(folder, run, text, words, told):
    (folder / "arx.csv").write_text(text, encoding="utf-8")
    assert told in run("measure", folder / "arx.csv", *words, code=2).output


def test_measure_of_a_table_that_is_not_there(folder, run):
    assert "no such file" in run("measure", folder / "nothing.csv", "--quasi", "age", code=2).output


def test_measure_of_a_release(release, run):
    answer = strict(run("measure", release, "--json").output)
    assert answer["records"] == 800
    assert {"frequency-l-diversity", "t-closeness"} <= {one["model"] for one in answer["measures"]}
