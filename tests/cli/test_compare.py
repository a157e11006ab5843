"""The command that compares methods, run as it is typed."""

from __future__ import annotations

import numpy as np
import pytest

import noren as nr
from tests.cli.conftest import strict

POLICY = """\
mechanism = "ignored"

[attributes]
who = "identifier"
age = "quasi-identifier"
town = { role = "quasi-identifier", hierarchy = "towns.csv" }
shade = "sensitive"

[[require]]
model = "frequency-l-diversity"
on = "shade"
l = 2
"""
METHOD = '\n[method]\nname = "decoys"\n'
TOWNS = "13021;130**;*\n13145;131**;*\n24011;240**;*\n24990;249**;*\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The holder's directory. Read, never written."""
    path = tmp_path_factory.mktemp("holder")
    rng = np.random.default_rng(4)
    lines = [
        f"p{i},{rng.integers(20, 60)},{rng.choice(['13021', '13145', '24011'])},{rng.choice(list('abcd'))}"
        for i in range(200)
    ]
    (path / "data.csv").write_text("\n".join(["who,age,town,shade", *lines]) + "\n")
    (path / "towns.csv").write_text(TOWNS)
    (path / "policy.toml").write_text(POLICY + METHOD)
    (path / "hard.toml").write_text(POLICY.replace("l = 2", "l = 5") + METHOD)
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


def titles(text: str) -> list[str]:
    """First cells of the table."""
    lines = text.splitlines()
    ruled = next(i for i, line in enumerate(lines) if set(line.strip()) == {"─"})
    rows = lines[ruled + 1 :]
    return [line.strip().split("  ")[0] for line in rows[: next(i for i, row in enumerate(rows) if not row.strip())]]


def test_the_table(command, folder):
    text = command().output
    assert "Candidates that meet every requirement, sorted by the share of right guesses" in text
    for word in ("smallest class", "worst share", "query error", "utility qi", "ncp", "dropped"):
        assert word in text
    assert {"mondrian", "incognito", "sweep chunk=16", "anatomy", "decoys"} <= set(titles(text))
    assert "do not publish them" in text
    assert f"(least query error), write into {folder / 'policy.toml'}" in text
    assert "[method]\nname = " in text
    assert "Written" not in text
    assert "p17" not in text


def test_as_json(command):
    answer = strict(command("--json").output)
    assert answer.keys() == {"candidates", "plot"}
    assert answer["plot"] is None
    guessed = [round(candidate["belief"], 3) for candidate in answer["candidates"]]
    assert guessed == sorted(guessed)
    for candidate in answer["candidates"]:
        assert candidate["holds"] is True
        assert candidate["policy"].startswith("[method]\nname = ")
        assert {verdict["holds"] for verdict in candidate["verdicts"]} == {True}
        assert candidate["worst_share"] <= 0.5 + 1e-9


def test_only_some_methods(command):
    answer = strict(command("--only", "mondrian", "--only", "anatomy", "--json").output)
    found = {candidate["method"] for candidate in answer["candidates"]}
    assert found == {"mondrian", "mondrian strict=false", "anatomy"}
    assert titles(command("--only", "incognito").output) == ["incognito"]


def test_an_unknown_method_is_refused_in_words(command):
    text = command("--only", "mondrain", code=2).output
    assert "no method 'mondrain' to compare" in text
    assert "Known: anatomy, decoys, " in text
    assert "mondrian + decoys" in text
    assert strict(command("--only", "mondrain", "--json", code=2).output)["error"] == "QueryError"


def test_suppression(command):
    answer = strict(command("--only", "incognito", "--suppression", 0.3, "--json").output)
    (candidate,) = answer["candidates"]
    assert candidate["method"] == "incognito suppression=0.3"
    assert candidate["suppressed"] <= 60
    assert candidate["records"] + candidate["suppressed"] == 200
    assert "suppression = 0.3" in candidate["policy"]
    for wrong in ("1", "-0.1", "much"):
        command("--suppression", wrong, code=2)


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<svg")])
def test_the_plot_is_the_only_file(command, tmp_path, monkeypatch, suffix, magic):
    monkeypatch.chdir(tmp_path)
    target = tmp_path / f"risk.{suffix}"
    assert f"Written: {target}" in command("--only", "mondrian", "--only", "anatomy", "--plot", target).output
    assert target.read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_plot_of_another_kind_is_refused(command, tmp_path):
    assert "cannot be written" in command("--only", "incognito", "--plot", tmp_path / "risk.xlsx", code=2).output
    assert list(tmp_path.iterdir()) == []


def test_without_a_plot_nothing_is_written(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command("--only", "incognito")
    assert list(tmp_path.iterdir()) == []


def test_if_nothing_meets_the_requirements_the_exit_code_is_1(command, tmp_path):
    text = command("--plot", tmp_path / "risk.png", policy="hard.toml", code=1).output
    assert "No method meets the requirements." in text
    assert "To adopt" not in text
    assert "Candidates that meet" not in text
    for title in ("mondrian", "mondrian strict=false", "anatomy", "hilbert", "sweep", "three-phase", "incognito"):
        line = next(line for line in text.splitlines() if line.startswith(f"{title}: "))
        assert "5" in line or "4" in line
    assert list(tmp_path.iterdir()) == []
    answer = strict(command("--json", policy="hard.toml", code=1).output)
    assert {candidate["holds"] for candidate in answer["candidates"]} == {False}
    assert all(candidate["failure"] for candidate in answer["candidates"])


def test_files_that_are_not_there_are_named(folder, run, tmp_path):
    assert "no such file" in run("compare", folder / "data.csv", tmp_path / "none.toml", code=2).output
    assert "none.csv" in run("compare", tmp_path / "none.csv", folder / "policy.toml", code=2).output


@pytest.mark.parametrize("only", ["mondrian", "sweep", "three-phase", "anatomy", "decoys"])
def test_what_is_adopted_works(only, folder, command, run, tmp_path):
    text = command("--only", only, "--suppression", 0.1).output
    snippet = text.partition("write into")[2].partition("\n\n")[2]
    assert snippet.startswith(f'[method]\nname = "{only}"')
    (tmp_path / "towns.csv").write_text(TOWNS)
    (tmp_path / "policy.toml").write_text(POLICY + "\n" + snippet)
    (made,) = nr.Policy.load(tmp_path / "policy.toml").methods
    assert made.name == only
    assert only == "decoys" or made.suppression == 0.1
    run("anonymize", folder / "data.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    original = ("--original", folder / "data.csv", "--policy", tmp_path / "policy.toml")
    assert "FAILS" not in run("verify", tmp_path / "release", *original).output


def test_auto_in_a_policy(folder, run, tmp_path):
    (tmp_path / "towns.csv").write_text(TOWNS)
    (tmp_path / "policy.toml").write_text(POLICY + '\n[method]\nname = "auto"\namong = ["incognito", "mondrian"]\n')
    command = ("anonymize", folder / "data.csv", tmp_path / "policy.toml", "--to", tmp_path / "release", "--json")
    answer = strict(run(*command).output)
    assert answer["notes"][0].startswith("auto chose the method with the least queries loss: ")
    assert answer["designs"] == {}
    assert [used.name for used in nr.open_release(tmp_path / "release").manifest.methods] == ["auto"]


def test_a_column_to_learn(command):
    text = command("--only", "incognito", "--classify", "shade").output
    assert "Predicting shade from the other columns" in text
    assert "no quasi-identifier or sensitive column 'who'" in command("--classify", "who", code=2).output


def test_a_grid_is_swept_and_the_choice_written(command, folder, run, tmp_path):
    words = ("--only", "mondrian", "--only", "anatomy", "--grid", "l=2,3")
    told = command(*words).output
    assert "mondrian, l = 3" in told
    assert "lies at the bend of the curve of risk and loss" in told
    target = tmp_path / "top.toml"
    assert f"is written to {target}" in command(*words, "--top", target, "--choose", 1).output
    chosen = nr.Policy.load(target)
    assert chosen.hierarchies["town"].leaves, "the path of the hierarchy leads from the new folder"
    assert "exists already" in command(*words, "--top", target, code=2).output
    answer = strict(command(*words, "--json").output)
    assert answer["chosen"] in answer["frontier"]
    assert {one["setting"]["l"] for one in answer["candidates"]} == {2, 3}


def test_a_wrong_grid_is_refused(command):
    assert "is not NAME=VALUES" in command("--grid", "l", code=2).output
    assert "no requirement has a parameter 'k'" in command("--grid", "k=2,3", code=2).output
    assert "there is no candidate 99" in command("--only", "mondrian", "--choose", 99, code=2).output


def test_levels_are_listed(command):
    told = command("--levels").output
    assert "Combinations of levels that meet every requirement" in told
    assert "levels = { age = " in told
    assert strict(command("--levels", "--json").output)["levels"]
