"""The recipient's page: every command and every line of Python that it shows runs on the demonstration's release."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import altair
import pyarrow.csv as pv
import pytest
from click.testing import CliRunner

import noren
from noren.cli.hospital import POLICY_TOML, disease_hierarchy_csv, hospital_table
from noren.cli.main import main

PAGE = (Path(noren.__file__).parents[2] / "docs" / "recipient.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^\$ (noren .*)\n((?:(?!\$ |```).*\n)*)", PAGE, re.MULTILINE)
PYTHON = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "OCCP" not in block]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `noren demo` leaves it, with fewer patients: what is compared has no number in it. Of fewer than 10,000 the
    sets would stand in the cells, and not in a file of their own as the page tells."""
    folder = tmp_path_factory.mktemp("recipient")
    demo = folder / "noren-demo"
    demo.mkdir()
    pv.write_csv(hospital_table(12_000), demo / "patients.csv")
    (demo / "disease.csv").write_text(disease_hierarchy_csv(), encoding="utf-8")
    (demo / "policy.toml").write_text(POLICY_TOML, encoding="utf-8")
    noren.anonymize(demo / "patients.csv", noren.Policy.load(demo / "policy.toml"), to=demo / "release")
    return folder


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_commands_run_and_show_such_a_table(
    command: str, output: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    found = CliRunner().invoke(main, shlex.split(command)[1:])
    assert found.exit_code == 0, found.output
    heads = [cells(line) for line in output.splitlines() if len(cells(line)) > 3]
    if heads:
        assert heads[0] in [cells(line) for line in found.output.splitlines()]


def test_the_page_shows_every_question() -> None:
    asked = {command.split()[1] for command, _ in SHOWN}
    assert asked == {"estimate", "count", "mean", "quantile", "difference", "correlation", "regress", "test", "export"}


def test_python_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    for block in PYTHON:
        exec(compile(block, "recipient.md", "exec"), names)  # our own page
    assert isinstance(names["fit"].plot(), altair.TopLevelMixin)  # type: ignore[attr-defined]
