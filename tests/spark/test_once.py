"""Once and only once: tasks that fail and run again draw the same, and one release comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.engines.spark.cluster import guarded
from noren.engines.spark.source import is_steady
from noren.release.package import checksum
from noren.workflow.anonymize import run
from noren.workflow.prepare import prepare
from noren.workflow.settling import draft_plan, settle_draft
from tests.contracts.test_engines import CASES, N, table

pytestmark = pytest.mark.slow  # at every change tests/contracts/test_engines.py compares parts in memory

Task = Callable[[Iterator[Any]], Iterator[Any]]


def failing(task: Task) -> Task:
    """The task, which ends its first attempt with an error after all its work is done."""
    real = guarded(task)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from real(batches)
        if context is not None and context.attemptNumber() == 0 and context.partitionId() == 0:
            raise RuntimeError("the first attempt fails")

    return work


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.engines.spark.engine.guarded", failing)
    monkeypatch.setattr("noren.engines.spark.tasks.guarded", failing)


def truth(release: nr.Release) -> None:
    """Every record that has a town is there once, and its true shade is in its set."""
    known = dict(zip(table()["row"].to_pylist(), table()["shade"].to_pylist(), strict=True))
    there = [row for row, town in zip(table()["row"].to_pylist(), table()["town"].to_pylist(), strict=True) if town]
    frame = release.frame()
    assert sorted(frame["row"].to_list()) == there
    assert all(known[row] in shades for row, shades in frame.select("row", "shade").iter_rows())


@pytest.mark.usefixtures("faults")
def test_tasks_that_fail_once_make_one_release(session: Any, tmp_path: Path) -> None:
    made = run(session.createDataFrame(table()), CASES["decoys"], to=tmp_path / "release")
    truth(made.release)
    assert all(verdict.holds for verdict in nr.verify(tmp_path / "release", CASES["decoys"], original=table()))
    listed = {path.name for path in (tmp_path / "release").iterdir()}
    assert {name for name in listed if not name.startswith("data-")} == {"README.md", "datapackage.json"}


def files(engine: Any, draft: Any, folder: Path) -> dict[str, str]:
    folder.mkdir()
    made = engine.written(draft.table.source, draft.reading, draft, draft.rows, draft.statements, folder)
    assert made.rows == draft.rows
    assert [part.sha256 for part in made.parts] == [checksum(path) for path in made.files]
    return {path.name: checksum(path) for path in folder.iterdir()}


@pytest.mark.parametrize("case", ["decoys", "mondrian"])
def test_the_same_keys_make_the_same_bytes_whatever_fails(
    case: str, engine: Any, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fresh randomness too: what is drawn, and the order of rows, are functions of the run's keys."""
    monkeypatch.setattr("noren.engines.spark.engine.ROWS_PER_FILE", 100)
    monkeypatch.setattr("noren.engines.spark.engine.Secret.fresh", lambda: nr.Secret(bytes(32)))
    prepared = prepare(session.createDataFrame(table()), CASES[case], engine)
    from noren.workflow.settling import decide_plan

    draft = draft_plan(prepared, decide_plan(prepared, CASES[case]), CASES[case])
    calm = files(engine, draft, tmp_path / "calm")
    monkeypatch.setattr("noren.engines.spark.engine.guarded", failing)
    assert files(engine, draft, tmp_path / "failing") == calm
    assert len(calm) == -(-draft.rows // 100)


def test_rows_stand_in_an_order_of_their_own(engine: Any, session: Any, tmp_path: Path) -> None:
    """One permutation of all rows: records of one partition are spread over all files. The order that rows had is seen
    in no file: Spearman's rank correlation of n independent ranks has a standard deviation of 1 / sqrt(n - 1)."""
    n, rules = 4000, nr.Policy(attributes={"row": "plain"}, people={"rows": "independent"})
    data = session.createDataFrame(pa.table({"row": np.arange(n)}))
    engine_files = [engine._files]
    engine._files = lambda rows: 3
    try:
        release = nr.anonymize(data, rules, to=tmp_path / "release", engine=engine)
    finally:
        engine._files = engine_files[0]
    order = np.array(release.frame()["row"].to_list(), int)
    assert sorted(order.tolist()) == list(range(n))
    assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < 6.5 / np.sqrt(n - 1)
    sizes = [len(part) for part in np.split(order, np.cumsum(_file_rows(tmp_path / "release"))[:-1])]
    assert len(sizes) == 3
    thirds = Counter(
        (int(row) * 3 // n, place) for place, size in enumerate(sizes) for row in _rows(order, sizes, place)
    )
    assert all(abs(thirds[source, place] - sizes[place] / 3) < 8 * np.sqrt(sizes[place] * 2 / 9)
               for source in range(3) for place in range(3))  # fmt: skip


def _file_rows(folder: Path) -> list[int]:
    import pyarrow.parquet as pq

    return [pq.read_metadata(path).num_rows for path in sorted(folder.glob("data-*.parquet"))]


def _rows(order: np.ndarray, sizes: list[int], place: int) -> np.ndarray:
    start = sum(sizes[:place])
    return order[start : start + sizes[place]]


def test_two_runs_draw_and_order_anew(session: Any, tmp_path: Path) -> None:
    """383 sets of three of six shades around the truth: the same ten times over has a probability of 10^-383."""
    frames = [
        nr.anonymize(session.createDataFrame(table()), CASES["decoys"], to=tmp_path / name).frame() for name in "ab"
    ]
    assert not frames[0].sort("row").equals(frames[1].sort("row"))
    assert frames[0]["row"].to_list() != frames[1]["row"].to_list()


def test_a_table_whose_rows_may_come_otherwise_is_held(session: Any, tmp_path: Path) -> None:
    steady = session.createDataFrame(table())
    assert is_steady(steady.where("age > 3").select("row", "town"))
    shuffled = steady.repartition(3, "town")
    assert not is_steady(shuffled)
    made = run(shuffled, CASES["decoys"], to=tmp_path / "release")
    assert any("kept as first read" in note for note in made.facts.notes)
    truth(made.release)


def test_a_table_that_changes_between_passes_is_refused(engine: Any, session: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table(), tmp_path / "table.parquet")
    prepared = prepare(tmp_path / "table.parquet", CASES["decoys"], engine)
    known = engine._starts[id(prepared.source), tuple(prepared.drop)]
    moved = (known[0], (*known[1][:-1], known[1][-1] - 1))
    engine._starts[id(prepared.source), tuple(prepared.drop)] = moved
    draft = settle_draft(prepared, CASES["decoys"])
    with pytest.raises(nr.errors.DataError, match="changed while it was read"):
        engine.written(prepared.source, draft.reading, draft, draft.rows, draft.statements, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"], "and nothing is left"
    assert N > 0
