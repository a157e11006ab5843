"""Knowledge that weighs pairs, by the commands: the worked example of docs/quasi_sensitive.md."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import noren as nr
from tests.cli.conftest import Run
from tests.golden.test_pair_weights import FILE

POLICY = """
[attributes]
age = "quasi-identifier"
signs = { role = "quasi-sensitive", separator = ";", knowledge = "diseases.csv" }

[[require]]
model = "qs-diversity"
on = "signs"
c = 1.0
l = 2

[method]
name = "suppress"
nodes = 100
"""
PAGE = Path(__file__).parents[2] / "docs" / "quasi_sensitive.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "diseases.csv").write_text(FILE)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "patients.csv").write_text("age,signs\n1,cough;fever\n2,fever\n3,cough\n")
    return tmp_path


def test_the_page_shows_this_file() -> None:
    assert FILE in PAGE.read_text(encoding="utf-8")


def test_from_the_file_to_the_verdict(folder: Path, run: Run) -> None:
    release = folder / "release"
    said = run("anonymize", folder / "patients.csv", folder / "policy.toml", "--to", release).output
    assert "2 of these suppressions are proven to be the cheapest" in " ".join(said.split())
    assert nr.open_release(release).frame().sort("age")["signs"].to_list() == [["cough"], [], ["cough"]]
    assert pq.read_table(release / "knowledge-1.parquet")["pair_weight"].to_pylist() == [0.9, 0.8, 0.6, 0.1, 0.3, 1.0]
    run("verify", release)
    run("verify", release, "--policy", folder / "policy.toml")
    (folder / "diseases.csv").write_text(FILE.replace("Cold,cough,0.6", "Cold,cough,0.1"))
    run("verify", release, "--policy", folder / "policy.toml", code=1)


def test_a_bad_weight_is_told_by_its_line_and_not_by_its_cell(folder: Path, run: Run) -> None:
    (folder / "diseases.csv").write_text(FILE.replace("Cold,cough,0.6", "Cold,cough,sixty"))
    said = run("anonymize", folder / "patients.csv", folder / "policy.toml", "--to", folder / "release", code=2).output
    assert "line 4: the pair_weight is not a positive number" in " ".join(said.split())
    assert "sixty" not in said
    assert not (folder / "release").exists()
