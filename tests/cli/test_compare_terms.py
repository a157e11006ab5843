"""Comparison, terminal and report for policies with quasi-sensitive columns, as they are typed."""

from __future__ import annotations

import numpy as np
import pytest

import noren as nr
from tests.cli.conftest import strict

POLICY = """\
[attributes]
who = "identifier"
age = "quasi-identifier"
town = "quasi-identifier"
signs = { role = "quasi-sensitive", separator = ";", knowledge = "labels.csv" }

[[require]]
model = "qs-closeness"
on = "signs"
t = 0.35

[method]
name = "suppress"
k = 3
nodes = 500
"""
LABELS = {
    "flu": ["cough", "fever", "ache"],
    "cold": ["cough", "sneeze"],
    "measles": ["fever", "rash", "cough"],
    "migraine": ["ache", "nausea"],
    "allergy": ["sneeze", "rash", "itch"],
    "gastritis": ["nausea", "cramp"],
}
TITLES = ["suppress k=3 nodes=500 (the policy's)", "mondrian", *(f"suppress k={k} seconds=0.05" for k in (1, 2, 5, 20))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The holder's directory. Read, never written."""
    path = tmp_path_factory.mktemp("holder")
    rng = np.random.default_rng(4)
    held = list(LABELS.values())
    lines = []
    for i in range(150):
        own = rng.permutation(held[rng.integers(len(held))])[: rng.integers(1, 4)]
        lines.append(f"p{i},{rng.integers(20, 60)},{rng.choice(['north', 'east', 'south'])},{';'.join(own)}")
    (path / "data.csv").write_text("\n".join(["who,age,town,signs", *lines]) + "\n")
    pairs = [f"{label},{term}" for label, terms in LABELS.items() for term in terms]
    (path / "labels.csv").write_text("\n".join(["label,term", *pairs]) + "\n")
    (path / "sure.csv").write_text(
        "\n".join(["label,term,prior", *(f"{p},{int(p[:3] == 'flu')}" for p in pairs)]) + "\n"
    )
    (path / "policy.toml").write_text(POLICY)
    (path / "hard.toml").write_text(POLICY.replace("labels.csv", "sure.csv").replace("0.35", "0.05"))
    return path


@pytest.fixture
def command(folder, run):
    """Run the comparison; demand that the holder's directory stays as it is."""

    def compare(*words, policy="policy.toml", code=0):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        result = run("compare", folder / "data.csv", folder / policy, *words, code=code)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert "Traceback" not in result.output
        return result

    return compare


def test_the_curve_as_a_table(command, folder):
    text = command().output
    assert "Candidates that meet every requirement, sorted by generalisation" in text
    for word in ("mean group", "smallest", "ncp", "term cost", "terms lost", "mean rise", "max rise", "query error"):
        assert word in text
    for title in TITLES:
        assert title in text
    assert "If the table were published unchanged, beliefs would rise by 0." in text
    assert "Candidates search at most 0.05 s per group" in text
    assert "1,000 counts with a condition on one quasi-identifier and one on terms" in text
    assert "do not publish them" in text
    assert f"write into {folder / 'policy.toml'}" in text
    assert "p17" not in text
    assert "worst share" not in text


def test_as_json(command):
    answer = strict(command("--json").output)
    losses = [candidate["losses"] for candidate in answer["candidates"]]
    ncp = [loss["ncp_loss"] for loss in losses]
    assert ncp == sorted(ncp)
    for candidate in answer["candidates"]:
        assert candidate["holds"] is True
        names = {"term_cost_loss", "term_share_loss", "belief_rise_mean_loss", "belief_rise_max_loss"}
        assert names <= candidate["losses"].keys()
        assert candidate["terms"]["queries"]["1"]["mean"] == candidate["query_loss"]
    assert [c["terms"]["k"] for c in answer["candidates"] if c["terms"]["own"]] == [3]


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<svg")])
def test_the_curve_as_a_picture(command, tmp_path, suffix, magic):
    target = tmp_path / f"curve.{suffix}"
    assert f"Written: {target}" in command("--plot", target).output
    assert target.read_bytes().startswith(magic)
    if suffix == "svg":
        drawn = target.read_text()
        for word in ("term removal only", "generalisation only", "k=20", "NCP"):
            assert word in drawn


def test_only_some_methods(command):
    answer = strict(command("--only", "mondrian", "--json").output)
    assert [candidate["method"] for candidate in answer["candidates"]] == ["mondrian"]
    text = command("--only", "mondrian").output
    assert "0.05 s per group" not in text
    assert "To adopt the first" in text
    assert "Known: mondrian, suppress." in command("--only", "anatomy", code=2).output


def test_if_nothing_meets_the_requirements_the_exit_code_is_1(command, tmp_path):
    text = command("--plot", tmp_path / "curve.png", policy="hard.toml", code=1).output
    assert "No method meets the requirements." in text
    assert "suppress k=1 seconds=0.05: " in text
    assert list(tmp_path.iterdir()) == []


def test_what_is_adopted_works(folder, command, run, tmp_path):
    text = command().output
    snippet = text.partition("write into")[2].partition("\n\n")[2]
    assert snippet.startswith("[method]\nname = ")
    (tmp_path / "labels.csv").write_text((folder / "labels.csv").read_text())
    (tmp_path / "policy.toml").write_text(POLICY.partition("[method]")[0] + snippet)
    run("anonymize", folder / "data.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")


# ---------------------------------------------------------------- the holder's terminal and page


def test_the_terminal_tells_what_was_left_out(folder, run, tmp_path):
    words = ("anonymize", folder / "data.csv", folder / "policy.toml")
    text = run(*words, "--to", tmp_path / "release").output
    assert "Left-out terms" in text
    for word in ("search", "searched", "proven optimal", "mean cost", "gap", "terms left out", "of all"):
        assert word in text
    answer = strict(run(*words, "--to", tmp_path / "again", "--json").output)
    (part,) = answer["terms"]
    assert part["columns"] == ["signs"]
    assert part["search"] == "best"
    groups = part["by_group"]
    assert {len(column) for column in groups.values()} == {part["groups"]}
    assert sum(groups["records"]) == answer["records"] == 150
    assert part["mean_cost"] == pytest.approx(sum(groups["cost"]) / part["groups"])
    assert part["mean_cost"] == pytest.approx(answer["losses"]["term_cost_loss"])
    assert all(low <= cost + 1e-9 for low, cost in zip(groups["lower_bound"], groups["cost"], strict=True))
    assert part["searched"] == sum(groups["searched"]) > 0
    assert part["proven"] == sum(a and b for a, b in zip(groups["optimal"], groups["searched"], strict=True))
    assert part["removed"] / part["entries"] == pytest.approx(answer["losses"]["term_share_loss"])
    assert 0 < part["removed"] < part["entries"]


def test_the_page_tells_what_was_left_out(folder, run, tmp_path):
    words = ("anonymize", folder / "data.csv", folder / "policy.toml")
    run(*words, "--to", tmp_path / "release", "--report", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    release = nr.open_release(tmp_path / "release")
    assert ">What was suppressed</h2>" in page
    assert "as a set of terms, some suppressed" in page
    assert "met the requirement with all their terms. The other" in page
    assert "it is proven that no cheaper suppression suffices" in page
    assert "links the published terms to labels. The largest rise of a belief is by 0." in page
    assert "another knowledge table" in page
    assert release.records == 150


def test_without_terms_to_leave_out_nothing_is_said(folder, run, tmp_path):
    (tmp_path / "labels.csv").write_text((folder / "labels.csv").read_text())
    (tmp_path / "policy.toml").write_text(POLICY.partition("[method]")[0] + '[method]\nname = "mondrian"\n')
    words = ("anonymize", folder / "data.csv", tmp_path / "policy.toml")
    text = run(*words, "--to", tmp_path / "release", "--report", tmp_path / "report.html").output
    assert "Left-out terms" not in text
    page = (tmp_path / "report.html").read_text()
    assert "What was suppressed" not in page
    assert "as a set of terms, in full" in page
