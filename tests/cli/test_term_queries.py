"""The recipient's commands on a release with terms."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import polars as pl
import pytest

import noren as nr
from tests.cli.conftest import strict

LABELS = {
    "flu": ("cough", "fever", "aches, pains"),
    "cold": ("cough", "sneezing"),
    "measles": ("fever", "rash", "cough"),
    "hives": ("rash", "itching"),
    "malaria": ("fever", "aches, pains", "chills"),
}
POLICY = """
[attributes]
age = "quasi-identifier"
sex = "plain"
signs = { role = "quasi-sensitive", separator = ";", knowledge = "labels.csv" }

[[require]]
model = "qs-diversity"
on = "signs"
c = 1.0
l = 2

[method]
name = "suppress"
k = 3
nodes = 200
"""


@pytest.fixture(scope="module")
def patients(tmp_path_factory) -> Path:
    """The holder's directory: 90 patients with up to three signs of one label."""
    folder = tmp_path_factory.mktemp("signs")
    rng = random.Random(4)
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("label", "term"), *((x, term) for x, held in LABELS.items() for term in held)])
    with open(folder / "patients.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("age", "sex", "signs"))
        for _ in range(90):
            held = LABELS[rng.choice(sorted(LABELS))]
            signs = rng.sample(held, rng.randint(1, len(held)))
            writer.writerow((rng.randint(20, 60), rng.choice("FM"), ";".join(signs)))
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def shared(patients, tmp_path_factory, run) -> Path:
    target = tmp_path_factory.mktemp("public") / "release"
    run("anonymize", patients / "patients.csv", patients / "policy.toml", "--to", target)
    return target


@pytest.fixture(scope="module")
def published(shared) -> list[set[str]]:
    return [set(held) for held in nr.open_release(shared).frame()["signs"].to_list()]


def test_terms_were_left_out_and_nothing_was_added(patients, published):
    true = pl.read_csv(patients / "patients.csv")["signs"].to_list()
    assert 0 < sum(map(len, published)) < sum(len(cell.split(";")) for cell in true)


@pytest.mark.parametrize(
    ("condition", "meets"),
    [
        ("signs=cough,rash", lambda held: bool(held & {"cough", "rash"})),
        ("signs@any=cough,rash", lambda held: bool(held & {"cough", "rash"})),
        ("signs@all=cough,fever", lambda held: held >= {"cough", "fever"}),
        ("signs=aches,, pains", lambda held: "aches, pains" in held),
    ],
)
def test_count_with_a_condition_on_terms(condition, meets, shared, published, run):
    expected = sum(map(meets, published))
    answer = strict(run("count", shared, "--where", condition, "--json").output)
    assert (answer["count"], answer["low"], answer["high"]) == (expected, expected, 90)
    assert "suppressed terms count as absent" in answer["assumes"]
    assert answer["std_error"] is None
    assert f"{expected}.0 (hard bounds {expected}.0 to 90.0)" in run("count", shared, "--where", condition).output


def test_conditions_on_terms_and_on_other_columns(shared, patients, run):
    words = ("--where", "signs@all=fever", "--where", "sex=F", "--where", "age=" + ",".join(map(str, range(20, 41))))
    answer = strict(run("count", shared, *words, "--json").output)
    rows = pl.read_csv(patients / "patients.csv").filter(pl.col("sex") == "F", pl.col("age") <= 40)
    truth = sum("fever" in cell.split(";") for cell in rows["signs"])
    assert answer["low"] <= truth <= answer["high"] < 90
    assert answer["low"] <= answer["count"] <= answer["high"]


def test_estimate_by_terms_and_its_chart(shared, published, tmp_path, run):
    result = run("estimate", shared, "--by", "signs", "--plot", tmp_path / "signs.png", "--csv", tmp_path / "signs.csv")
    assert "hard bounds, 90 records" in result.output
    assert "rows overlap" in result.output
    assert (tmp_path / "signs.png").read_bytes().startswith(b"\x89PNG")
    frame = pl.read_csv(tmp_path / "signs.csv")
    assert frame["count"].to_list() == [sum(term in held for held in published) for term in frame["signs"]]
    assert set(frame["signs"]) == {term for held in LABELS.values() for term in held}
    answer = strict(run("estimate", shared, "--by", "signs", "--where", "signs@all=cough", "--json").output)
    assert answer["where"] == {"signs": {"all": ["cough"]}}
    assert answer["diagnostics"]["overlap"] is True
    both = {cell["signs"]: cell["count"] for cell in answer["cells"]}
    assert both["fever"] == sum(held >= {"cough", "fever"} for held in published)


def test_estimate_of_other_columns_under_a_condition_on_terms(shared, run):
    answer = strict(run("estimate", shared, "--by", "sex", "--where", "signs=cough,fever", "--json").output)
    assert [cell["sex"] for cell in answer["cells"]] == ["F", "M"]
    assert all(cell["low"] == cell["count"] < cell["high"] for cell in answer["cells"])
    assert sum(cell["high"] for cell in answer["cells"]) == 90


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--by", "sex", "--where", "signs=coughs"), "Did you mean 'cough'"),
        (("--by", "signs,sex"), "'signs' cannot be tabulated with other columns"),
        (("--by", "signs@1"), "neither levels nor intervals"),
        (("--by", "sex", "--where", "age@all=20"), "has one value per record"),
        (("--by", "sex", "--where", "sings@all=cough"), "no column 'sings@all'"),
        (("--by", "signs", "--population"), "no interval for the population"),
    ],
)
def test_questions_without_an_answer_are_exit_code_2(words, told, shared, run):
    assert told in run("estimate", shared, *words, code=2).output


def test_help_says_how_terms_are_asked_for(run):
    assert "signs@all=cough,fever" in run("count", "--help").output
    assert "one row per term" in " ".join(run("estimate", "--help").output.split())
