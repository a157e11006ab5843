"""A cluster writes to a store that has no folders and no renaming: one release comes out, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import noren as nr
from noren.engines.spark import SparkEngine
from noren.release.package import checksum
from noren.sources.place import Place
from tests.contracts.test_engines import CASES, table
from tests.s3 import Store, running
from tests.spark.test_once import failing, truth

pytestmark = pytest.mark.slow  # at every change tests/contracts/test_engines.py compares parts in memory


@pytest.fixture
def store(session: Any) -> Iterator[Store]:
    with running() as found:
        yield found


@pytest.fixture
def several(session: Any) -> SparkEngine:
    """An engine that writes three files."""
    engine = SparkEngine(session)
    engine._files = lambda rows: 3  # type: ignore[method-assign]
    return engine


NAMES = ["README.md", *(f"data-0000{number}.parquet" for number in range(3)), "datapackage.json"]


@pytest.mark.parametrize("where", ["folders", "objects"])
def test_a_release_is_written_opened_verified_and_counted_there(
    where: str, several: SparkEngine, session: Any, store: Store, tmp_path: Path
) -> None:
    """Tasks fail after all their work and run again: one release, and nothing of other attempts."""
    address = (tmp_path / "release").as_uri() if where == "folders" else store.address("made/release")
    target = Place.parse(address)
    with pytest.MonkeyPatch.context() as faults:
        faults.setattr("noren.engines.spark.engine.guarded", failing)
        made = nr.anonymize(session.createDataFrame(table()), CASES["decoys"], to=target, engine=several)
    truth(made)
    listed = sorted(one.name for one in target.iterdir())
    assert [name for name in listed if not name.startswith("sets")] == NAMES
    assert nr.verify(target, CASES["decoys"], original=table(), engine=several).hold
    opened = several.open_release(target)
    truth(opened)
    assert opened.estimate("shade").frame.equals(made.estimate("shade").frame)
    (there,) = nr.attack(target, "homogeneity", engine=several)
    (here,) = nr.attack(made, "homogeneity")
    assert there.scenarios[0].summary == pytest.approx(here.scenarios[0].summary)
    with pytest.raises(nr.errors.ReleaseError, match="exists already"):
        nr.anonymize(session.createDataFrame(table()), CASES["decoys"], to=target, engine=several)


def test_the_bytes_are_those_of_a_directory(
    several: SparkEngine, session: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from noren.workflow.prepare import prepare
    from noren.workflow.settling import decide_plan, draft_plan

    monkeypatch.setattr("noren.engines.spark.engine.Secret.fresh", lambda: nr.Secret(bytes(32)))
    prepared = prepare(session.createDataFrame(table()), CASES["mondrian"], several)
    draft = draft_plan(prepared, decide_plan(prepared, CASES["mondrian"]), CASES["mondrian"])
    (tmp_path / "here").mkdir()
    written = []
    for folder in (tmp_path / "here", Place.parse(store.address("there"))):
        made = several.written(prepared.source, draft.reading, draft, draft.rows, draft.statements, folder)
        assert made is not None
        assert [part.sha256 for part in made.parts] == [checksum(file) for file in made.files]
        written.append((made.parts, made.rows))
    assert written[0] == written[1]


def test_a_requirement_that_is_not_met_leaves_nothing_in_the_store(
    several: SparkEngine, session: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from noren.errors import RequirementNotMet

    def fails(*_: Any) -> None:
        assert any(".part/" in name for name in store.names()), "the data were written before they were judged"
        raise RequirementNotMet("it falls short")

    monkeypatch.setattr("noren.workflow.anonymize.demand", fails)
    with pytest.raises(RequirementNotMet, match="it falls short"):
        nr.anonymize(session.createDataFrame(table()), CASES["decoys"], to=store.address("made"), engine=several)
    assert store.names("made/") == [], "what a late attempt writes lies beside"
