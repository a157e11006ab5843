"""A small hospital for the commands to work on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv as pv
import pytest
from click.testing import CliRunner, Result

from noren.cli.demo import POLICY_TOML, disease_hierarchy_csv, hospital_table
from noren.cli.main import main

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command in this process and demand its exit code."""

    def command(*words: object, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        assert result.exit_code == code, result.output
        return result

    return command


def strict(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="session")
def hospital(tmp_path_factory) -> Path:
    """The holder's directory: 800 patients, the shown policy and its disease tree. Read, never written."""
    folder = tmp_path_factory.mktemp("hospital")
    pv.write_csv(hospital_table(800), folder / "patients.csv")
    (folder / "disease.csv").write_text(disease_hierarchy_csv(), encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY_TOML, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def release(hospital, tmp_path_factory, run) -> Path:
    """A release of the hospital. Read, never written."""
    target = tmp_path_factory.mktemp("public") / "release"
    run("anonymize", hospital / "patients.csv", hospital / "policy.toml", "--to", target)
    return target
