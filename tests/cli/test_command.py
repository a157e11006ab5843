"""The real command, in a process of its own, and what all commands have in common."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import noren as nr
from noren.cli.main import COMMANDS, ELSEWHERE, GROUPS
from tests.cli.conftest import strict
from tests.cli.test_holder import assert_needs_no_network

NOREN = Path(sys.executable).with_name("noren")


def shell(*words: object, folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "200"}
    done = subprocess.run(
        [NOREN, *map(str, words)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_from_a_table_to_an_answer(hospital, tmp_path):
    """init, anonymize, verify and count as a person would type them."""
    drafted = shell("init", hospital / "patients.csv", folder=tmp_path)
    assert drafted.stderr == ""
    (tmp_path / "policy.toml").write_text(drafted.stdout, encoding="utf-8")
    shell(
        "anonymize",
        hospital / "patients.csv",
        "policy.toml",
        "--to",
        "release",
        "--report",
        "report.html",
        folder=tmp_path,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy.toml", "release", "report.html"]
    assert "Every requirement holds." in shell("verify", "release", folder=tmp_path).stdout
    answer = strict(shell("count", "release", "--where", "job=Nurse", "--json", folder=tmp_path).stdout)
    assert 0 <= answer["low"] <= answer["high"] <= 800


def test_the_smoke_run_of_other_versions_forgets_no_command(run):
    """`.ci/versions` calls every command with old and new dependencies: a new command needs a line there."""
    smoke = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "smoke.py"))
    listing = run("--help").output
    assert smoke["untried"](listing) == set()
    assert smoke["untried"](f"{listing}  invented  Does nothing.\n") == {"invented"}


def test_errors_go_to_the_error_stream_and_json_to_the_output(tmp_path):
    refused = shell("init", "nothing.csv", folder=tmp_path, code=2)
    assert refused.stdout == ""
    assert refused.stderr.startswith("Error: nothing.csv: no such file.")
    assert "Hint: " in refused.stderr
    assert "Traceback" not in refused.stderr
    answer = strict(shell("init", "nothing.csv", "--json", folder=tmp_path, code=2).stdout)
    assert answer.keys() == {"error", "message", "hint"}
    assert answer["error"] == "DataError"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(name, run):
    text = " ".join(run(name, "--help").output.split())
    assert f"Example: noren {name} " in text
    assert "--json" in text
    assert run(name, "-h").output == run(name, "--help").output


def test_the_program_lists_its_commands_and_exit_codes(run):
    text = run("--help").output
    for name in COMMANDS | ELSEWHERE:
        assert f"  {name} " in text
    places = [text.index(f"\n{group}:\n") for group in GROUPS]
    assert places == sorted(places)
    for (group, commands), start, stop in zip(GROUPS.items(), places, [*places[1:], len(text)], strict=True):
        assert all(f"  {name} " in text[start:stop] for name in commands), group
    assert "Exit codes: 0 done, 1 a requirement is not met, 2 the input is wrong, 3 undecided, 4" in " ".join(
        text.split()
    )
    assert run("--version").output == f"noren, version {nr.__version__}\n"


@pytest.mark.parametrize("words", [(), ("--help",), ("semantic", "11", "--quick")])
@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_command_whose_distribution_is_missing_says_how_to_install_it(name, words, run, monkeypatch):
    monkeypatch.setattr(metadata, "entry_points", lambda group: metadata.EntryPoints())
    home, text = ELSEWHERE[name]
    assert text in " ".join(run("--help").output.split())
    refused = run(name, *words, code=2)
    assert refused.stdout == ""
    assert refused.stderr == (
        f"Error: `noren {name}` is part of {home}, which is not installed.\n"
        f"  Hint: In a clone of the repository: pip install ./{home.removeprefix('noren-')}\n"
    )
    assert home in strict(run(name, *words, "--json", code=2).stdout)["message"]


def test_any_distribution_may_add_a_command_but_not_replace_one(run, tmp_path, monkeypatch):
    """Help names who added it and does not import it."""
    (tmp_path / "guests.py").write_text("import click\n@click.command()\ndef greet():\n    click.echo('Good day.')\n")
    about = tmp_path / "noren_guests-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: noren-guests\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[noren.commands]\ngreet = guests:greet\nverify = guests:greet\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "Added by noren-guests." in run("--help").output
    assert "guests" not in sys.modules
    assert run("greet").output == "Good day.\n"
    assert "Example: noren verify" in run("verify", "--help").output
    monkeypatch.delitem(sys.modules, "guests")


@pytest.mark.parametrize("words", [("anonymise",), ("anonymize", "x.csv"), ("count", "release"), ("init", "--what")])
def test_a_wrong_command_is_exit_code_2(words, run):
    assert "Error" in run(*words, code=2).output


def test_the_demonstration_leaves_everything_it_names(tmp_path, run):
    folder = tmp_path / "demo"
    answer = strict(run("demo", "--to", folder, "--records", "1000", "--json").output)
    assert answer.keys() == {"folder", "records", "verdicts", "largest", "l1", "covered", "cells", "files"}
    assert (answer["folder"], answer["records"]) == (str(folder), 1000)
    assert {verdict["holds"] for verdict in answer["verdicts"]} == {True}
    assert len(answer["largest"]) == 10
    assert 0 < answer["covered"] <= 1
    named = {Path(path) for path in answer["files"]}
    assert named == set(folder.iterdir())
    assert (folder / "job-disease.png").read_bytes().startswith(b"\x89PNG")
    for name in ("job-disease.html", "report.html"):
        assert_needs_no_network((folder / name).read_text(encoding="utf-8"))
    assert nr.open_release(folder / "release").records == 1000
    assert "exists already" in run("demo", "--to", folder, code=2).output


def test_the_demonstration_shows_its_policy_and_where_things_are(tmp_path, run):
    text = run("demo", "--to", tmp_path / "demo", "--records", "1000").output
    for part in ("[[require]]", "A published record: ", "Verified on the written release", "Where things are:"):
        assert part in text
    assert "records" in run("demo", "--to", tmp_path / "small", "--records", "5", code=2).output
    assert not (tmp_path / "small").exists()
