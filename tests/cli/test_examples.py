"""Every example runs as its README says, from a copy of its folder."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from noren.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "symptoms"
    shutil.copytree(EXAMPLES / "symptoms", copy)
    monkeypatch.chdir(copy)
    monkeypatch.setattr(sys, "argv", ["make_patients.py", "--records", "400"])
    runpy.run_path(str(copy / "make_patients.py"), run_name="__main__")
    return copy


def noren(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    return result.output


def test_symptoms(folder: Path) -> None:
    noren("anonymize", "patients.csv", "policy.toml", "--to", "release")
    assert "Every requirement holds." in noren("verify", "release")
    found = json.loads(
        noren("audit", "release", "--attack", "linking", "--original", "patients.csv", "--policy", "policy.toml",
              "--truth", "diagnosis", "--json")
    )  # fmt: skip
    figures = {s["name"]: s["summary"] for s in found["results"][0]["scenarios"]}
    assert figures["raw"]["certain"] > 0.2
    assert figures["release"]["certain"] == 0
    assert figures["release"]["max_belief"] < figures["k-anonymous"]["max_belief"] < figures["raw"]["max_belief"]
    assert "suppress k=20" in noren("compare", "patients.csv", "policy.toml", "--only", "suppress")
    one = json.loads(noren("count", "release", "--where", "signs=fever,cough", "--json"))
    both = json.loads(noren("count", "release", "--where", "signs@all=fever,cough", "--json"))
    truth = (folder / "patients.csv").read_text(encoding="utf-8").splitlines()[1:]
    signs = [set(line.split(",")[5].split("; ")) for line in truth]
    assert one["low"] <= sum(bool({"fever", "cough"} & has) for has in signs) <= one["high"]
    assert both["low"] <= sum({"fever", "cough"} <= has for has in signs) <= both["high"]


def test_the_table_of_the_example_is_invented_and_repeatable(folder: Path) -> None:
    first = (folder / "patients.csv").read_bytes()
    runpy.run_path(str(folder / "make_patients.py"), run_name="__main__")
    assert (folder / "patients.csv").read_bytes() == first
    assert first.count(b"\n") == 401
