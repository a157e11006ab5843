"""Commands about outside knowledge, run as they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import strict

PAIRS = "label,term,n\nFlu,,40\nFlu,cough,30\nFlu,fever,10\nCold,,10\nCold,cough,10\n"
POLICY = """
[attributes]
ill = { role = "sensitive", hierarchy = "tree.csv", distance = { matrix = "far.csv" } }

[[require]]
model = "frequency-l-diversity"
on = "ill"
l = 2
"""
TREE = "flu,lung,all\ncold,lung,all\nrash,skin,all\n"
FAR = ",flu,cold,rash\nflu,0,3,1\ncold,3,0,1\nrash,1,1,0\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {"pairs.csv": PAIRS, "policy.toml": POLICY, "tree.csv": TREE, "far.csv": FAR}
    texts["people.csv"] = "ill\n" + "flu\ncold\nrash\n" * 5
    texts["notes.txt"] = "flu and cough\nflu, cough\n"
    texts["labels.txt"], texts["terms.txt"] = "Flu\n", "Cough\n"
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_built_table_is_one_that_a_policy_reads(home: Path, run) -> None:
    text = run("knowledge", "build", "pairs.csv", "--count", "n", "--to", "knowledge.csv").output
    assert "Written: knowledge.csv, 2 labels, 2 terms, 3 pairs" in text
    assert (home / "knowledge.csv").read_text().splitlines() == [
        "label,term,weight,prior,pair_weight", "Flu,cough,40,0.8,0.75", "Flu,fever,40,0.8,0.25", "Cold,cough,10,0.2,1",
    ]  # fmt: skip
    (home / "signs.csv").write_text("age,signs\n" + "30,cough;fever\n40,cough\n" * 10)
    policy = '[attributes]\nage = "quasi-identifier"\n'
    policy += 'signs = { role = "quasi-sensitive", separator = ";", knowledge = "knowledge.csv" }\n'
    policy += '[[require]]\nmodel = "qs-diversity"\non = "signs"\nc = 10\nl = 2\n[method]\nname = "suppress"\n'
    (home / "signs.toml").write_text(policy)
    run("anonymize", "signs.csv", "signs.toml", "--to", "release")
    assert (home / "release").is_dir()


def test_documents_are_counted(home: Path, run) -> None:
    words = ("knowledge", "build", "notes.txt", "--labels", "labels.txt", "--terms", "terms.txt", "--to", "k.csv")
    answer = strict(run(*words, "--json").output)
    assert (answer["labels"], answer["terms"], answer["pairs"]) == (1, 1, 1)
    assert "--labels and --terms" in run(*words[:5], "--to", "k.csv", code=2).output
    assert "--ontology" in run("knowledge", "build", "pairs.csv", "--ancestors", "--to", "k.csv", code=2).output


def test_a_distance_that_is_no_good(home: Path, run) -> None:
    words = ("knowledge", "distance", "people.csv", "policy.toml", "--column", "ill", "--d", 2)
    text = run(*words).output
    assert "Not a metric: 0 pairs of different values have distance 0, and 1 break the triangle inequality" in text
    assert "for 2 values, a value in a wider class is nearer" in text
    assert "Pairs below d = 2: 2 (66.7%)" in text
    assert "no other value at d = 2: 1" in text
    answer = strict(run(*words, "--json").output)
    assert answer == {
        "column": "ill", "d": 2.0, "values": 3, "pairs": 3, "alike": 0, "detours": 1, "out_of_tree": 2, "below": 2,
        "lonely": 1,
    }  # fmt: skip
    assert "no column" in run(*words[:5], "sick", "--d", 2, code=2).output
