"""Attacks on what the cluster counts: the figures are those of one machine, and what needs rows is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.engines.spark.cluster import DRIVER
from tests.contracts.test_engines import CASES, table
from tests.unit.audit.test_audit_counts import figures

pytestmark = pytest.mark.slow  # at every change tests/contracts/test_engines.py compares parts in memory

CLASSES = ["homogeneity", "similarity", "disclosure"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Releases of one machine, which a cluster reads as well."""
    folder = tmp_path_factory.mktemp("audited")
    for case in ("mondrian", "mixed"):
        nr.anonymize(table(), CASES[case], to=folder / case)
    return {case: folder / case for case in ("mondrian", "mixed")}


@pytest.mark.parametrize("case", ["mondrian", "mixed"])
def test_attacks_on_counts_find_the_same(case: str, made: dict[str, Path], engine: Any) -> None:
    here, there = nr.attack(made[case]), nr.attack(made[case], engine=engine)
    names = list(dict.fromkeys(one.attack for one in there))
    assert names == ["reidentification", *CLASSES, *(["known-records"] if case == "mondrian" else [])]
    assert [one.to_dict() for one in here if one.attack in names] == figures(there)


def test_a_release_in_several_files_is_counted_as_a_whole(session: Any, tmp_path: Path) -> None:
    from noren.engines.spark import SparkEngine

    engine = SparkEngine(session)
    engine._files = lambda rows: 3  # type: ignore[method-assign]
    nr.anonymize(session.createDataFrame(table()), CASES["mondrian"], to=tmp_path / "release", engine=engine)
    assert len(list((tmp_path / "release").glob("data-*.parquet"))) == 3
    opened = engine.open_release(tmp_path / "release")
    here, there = nr.attack(tmp_path / "release", "homogeneity"), nr.attack(opened, "homogeneity", engine=engine)
    assert [one.to_dict() for one in here] == figures(there)


def test_the_command_line_says_what_was_not_run(made: dict[str, Path], session: Any) -> None:
    run = CliRunner().invoke(main, ["audit", str(made["mondrian"]), "--engine", "spark", "--json"])
    assert run.exit_code == 0, run.output
    said = json.loads(run.output)
    assert [one["attack"] for one in said["results"]] == ["reidentification", *CLASSES, "known-records"]
    assert all(one["scenarios"][0]["lines"] == 383 for one in said["results"])
    assert "does not run on counts: it needs the order of the rows" in said["skipped"]["predictable"]
    assert "does not run on counts" in said["skipped"]["minimality"]
    named = CliRunner().invoke(main, ["audit", str(made["mondrian"]), "--engine", "spark", "--attack", "minimality"])
    assert named.exit_code == 2
    assert "on one machine, without an engine" in named.output


def test_counts_that_do_not_fit_the_driver_are_refused_with_the_number(
    made: dict[str, Path], session: Any, engine: Any
) -> None:
    session.conf.set(DRIVER, "1k")
    try:
        said = r"counting more than 8 different rows of age, town, shade needs 1,152 bytes .* 1,024"
        with pytest.raises(nr.errors.OutOfReach, match=said):
            nr.attack(made["mondrian"], "homogeneity", engine=engine)
    finally:
        session.conf.unset(DRIVER)
