"""What stands around a release: files for the holder, reports of many senders, a machine that is too small.

Reports that are malformed are tried in tests/unit/pipeline/test_collector.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli import main as command
from noren.cli.main import main

SECRET = "Qz-cell-8841"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"town": rng.choice(["Ede", "Epe", "Oss"], 300), "ill": rng.choice(["a", "b", "c"], 300)})
    frame.write_csv(folder / "people.csv")
    diverse = nr.models.FrequencyLDiversity(on="ill", l=2)
    policy = nr.Policy(attributes={"town": "quasi-identifier", "ill": "sensitive"}, require=[diverse])
    (folder / "policy.toml").write_text(policy.to_toml())
    nr.anonymize(frame, policy, to=folder / "release")
    return folder


WRITERS = {
    "compare": "compare people.csv policy.toml --only decoys --plot",
    "risk": "risk people.csv policy.toml --plot",
    "audit": "audit release --attack bayes --plot",
    "estimate": "estimate release --by ill --plot",
    "cells": "estimate release --by ill --csv",
    "report": "report release --to",
    "knowledge": "knowledge build people.csv --label town --term ill --to",
    "another release": "anonymize people.csv policy.toml --to",
    "draft": "init people.csv --to",
    "hierarchy": "hierarchy people.csv town --by frequency --to",
    "demo": "demo --to",
    "secret": "secret",
    "key": "key new",
}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("place", ["release/figure", "release/deep/figure"])
def test_no_command_writes_into_a_release(words: str, place: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    before = sorted(Path("release").rglob("*"))
    suffix = ".csv" if words.endswith("--csv") else ".html"
    done = CliRunner().invoke(main, [*words.split(), place + suffix])
    assert done.exit_code == 2, done.output
    assert "lies inside the release" in done.output
    assert sorted(Path("release").rglob("*")) == before


def failing(error: BaseException) -> Any:
    def command(*_: object, **__: object) -> None:
        raise error

    return command


FAULTS = {
    "memory": (MemoryError(SECRET), 4),
    "array": (np._core._exceptions._ArrayMemoryError((10**9,), np.dtype("f8")), 4),  # type: ignore[attr-defined]
    "fault": (TypeError(f"cannot add {SECRET}"), 4),
    "value": (ValueError(SECRET), 4),
    "stopped": (KeyboardInterrupt(), 130),
}


@pytest.mark.parametrize(("error", "code"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_fault_is_not_a_verdict_and_quotes_no_cell(
    error: BaseException, code: int, as_json: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1 says that a requirement is not met; running out of memory says nothing about the table."""
    monkeypatch.setattr("noren.workflow.verify.verify", failing(error))
    done = CliRunner().invoke(main, ["verify", str(home / "release"), *(["--json"] if as_json else [])])
    assert done.exit_code == code, done.output
    assert SECRET not in done.output
    assert "Traceback" not in done.output
    assert "memory" in done.output or code != 4 or not isinstance(error, MemoryError)


def test_a_fault_can_be_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOREN_DEBUG", "1")
    monkeypatch.setattr("noren.workflow.verify.verify", failing(TypeError(SECRET)))
    done = CliRunner().invoke(main, ["verify", str(home / "release")])
    assert isinstance(done.exception, TypeError)
    assert command.OutOfReach.exit_code == 4
