"""The same data, policy and secret on a cluster and on one machine: the same cells, verdicts and levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.engines.spark.cluster import sent, settings
from noren.engines.spark.source import payload
from noren.release.manifest import write_column
from noren.workflow.anonymize import run
from tests.contracts.test_engines import CASES, N, policy, said, table

pytestmark = pytest.mark.slow  # at every change tests/contracts/test_engines.py compares parts in memory

METHODS = [name for name in CASES if name not in ("terms and closeness", "closeness")]


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """The table in three files of different sizes, the second of one row."""
    folder = tmp_path / "table"
    folder.mkdir()
    for number, (start, stop) in enumerate(((0, 240), (240, 241), (241, N))):
        pq.write_table(table().slice(start, stop - start), folder / f"part-{number}.parquet")
    return folder


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One order of records, whichever engine runs."""
    monkeypatch.setattr("noren.methods.base.secret_order", lambda n: np.random.default_rng(n).permutation(n))


@pytest.mark.parametrize("case", METHODS)
@pytest.mark.usefixtures("fixed")
def test_every_method_comes_to_the_same(case: str, session: Any, tmp_path: Path) -> None:
    """In the same order of records, which files would come in another one."""
    here = run(table(), CASES[case])
    there = run(session.createDataFrame(table()), CASES[case], to=tmp_path / "release")
    assert said(there.facts.verdicts) == said(here.facts.verdicts)
    assert there.facts.dropped == here.facts.dropped > 0
    assert (there.facts.records, there.facts.suppressed) == (here.facts.records, here.facts.suppressed)
    assert there.facts.losses == pytest.approx(here.facts.losses)
    for name, counts in here.facts.table.counts.items():
        assert there.facts.table.counts[name].tolist() == counts.tolist()
    opened = nr.open_release(tmp_path / "release")
    assert not any(verdict.holds is False for verdict in nr.verify(opened, CASES[case]))
    assert opened.rows == here.release.rows
    if not there.facts.designs:
        mine, other = ([write_column(c) for c in made.release.statements] for made in (here, there))
        assert mine == other, "the same general values, groups and levels"
        assert opened.frame().sort("row").equals(here.release.frame().sort("row"))


def keyed(case: str) -> nr.Policy:
    rules = CASES[case]
    return nr.Policy(
        attributes=rules.attributes,
        require=rules.require,
        method=rules.methods,
        mechanism=rules.mechanism,
        people=rules.people,
        randomness={"record_key": "row"},
    )


@pytest.mark.parametrize(
    ("case", "where"),
    [("decoys", "memory"), ("decoys", "disk"), ("pram", "disk"), ("semantic", "disk"), ("mixed", "disk")],
)
@pytest.mark.usefixtures("fixed")
def test_memoised_cells_are_the_same_cell_for_cell(
    case: str, where: str, engine: Any, parquet: Path, tmp_path: Path
) -> None:
    nr.Secret.create(tmp_path / "key")
    here = nr.anonymize(table(), keyed(case), secret=tmp_path / "key")
    more = {} if where == "memory" else {"to": tmp_path / "there"}
    there = nr.anonymize(parquet, keyed(case), secret=tmp_path / "key", engine=engine, **more)
    assert there.frame().sort("row").equals(here.frame().sort("row"))
    assert there.manifest.randomness == "memoised"


def test_a_key_that_repeats_is_refused(engine: Any, session: Any, tmp_path: Path) -> None:
    nr.Secret.create(tmp_path / "key")
    twice = pa.concat_tables([table(), table().slice(4, 2)])
    with pytest.raises(nr.errors.DataError, match="2 records repeat"):
        nr.anonymize(session.createDataFrame(twice), keyed("decoys"), secret=tmp_path / "key", to=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_histograms_are_the_same_and_ascending(engine: Any, parquet: Path) -> None:
    from noren.workflow.prepare import prepare

    here, there = prepare(table(), CASES["mondrian"]), prepare(parquet, CASES["mondrian"], engine)
    for names in (["shade"], ["shade", "age", "town"]):
        mine, other = here.histogram(names), there.histogram(names)
        assert mine[0].tolist() == other[0].tolist() == sorted(mine[0].tolist())
        assert mine[1].tolist() == other[1].tolist()
    starts = [(batch.start, batch.records) for batch in there.engine.encoded(there.source, there.reading(["age"]))]
    assert [start for start, _ in starts] == np.concatenate([[0], np.cumsum([n for _, n in starts])])[:-1].tolist()
    assert sum(n for _, n in starts) == here.n


def test_answers_of_many_tasks_are_put_together_in_their_order(session: Any) -> None:
    """More than the driver takes in at once: 70 tasks, in nine lots, of which one says nothing."""
    from noren.engines.spark.cluster import gathered

    def say(batches: Any) -> Any:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if number != 33:
                    yield payload(sent([number]))

    with settings(session):
        frame = session.range(0, 70, 1, 70).mapInArrow(say, "payload binary")
        assert gathered(frame, 70, lambda one, other: one + other) == [n for n in range(70) if n != 33]
        assert gathered(frame.where("1 = 0"), 3, lambda one, other: one + other) is None


def test_profiles_are_the_same_wherever_they_are_put_together(
    engine: Any, parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from noren.engines.engine import Counting
    from noren.sources.source import Writing

    source = engine.opened(parquet, Writing())
    assert source.partitions == 3
    counting = Counting(["town", "shade", "age"])
    here = engine.profile(source, counting)
    starts = engine._placed(source, ())
    monkeypatch.setattr("noren.engines.spark.cluster.AT_ONCE", 1)
    there = engine.profile(source, counting)
    assert [list(one.counts.items()) for one in there.columns.values()] == [
        list(one.counts.items()) for one in here.columns.values()
    ]
    assert (there.records, there.dropped) == (here.records, here.dropped) == (N, 0)
    assert engine._placed(source, ()) == starts


def test_people_with_several_rows_are_counted_as_people(engine: Any, parquet: Path, tmp_path: Path) -> None:
    data = table().append_column("who", pa.array(np.arange(N) // 2))
    pq.write_table(data, tmp_path / "people.parquet")
    rules = policy("decoys", who="identifier")
    rules = nr.Policy(
        attributes=rules.attributes,
        require=rules.require,
        method=rules.methods,
        mechanism=rules.mechanism,
        people={"key": "who"},
    )
    made = run(tmp_path / "people.parquet", rules, engine=engine, to=tmp_path / "release")
    assert not made.release.manifest.rows_are_people
    assert said(made.facts.verdicts) == said(run(data, rules).facts.verdicts)


def test_samples_and_markers_are_read_on_the_cluster(engine: Any, parquet: Path, tmp_path: Path) -> None:
    """About half of the records, each with probability 1/2: within 8 standard deviations of a binomial."""
    rules = CASES["decoys"]
    half = nr.Policy(attributes=rules.attributes, require=rules.require, method=rules.methods, people=rules.people,
                     sample={"share": 0.5}, data={"missing_values": ["13021"]})  # fmt: skip
    made = run(parquet, half, engine=engine, to=tmp_path / "release")
    kept = sum(cell not in (None, "13021") for cell in table()["town"].to_pylist())
    assert abs(made.facts.records - kept / 2) < 8 * np.sqrt(kept / 4)
    assert made.release.records == made.facts.records == made.release.frame().height
    assert "13021" not in made.release.column("town").domain.values


def test_an_identifier_that_repeats_is_asked_about(session: Any, tmp_path: Path) -> None:
    """Every second number stands twice; nothing but hashes of them was shuffled."""
    data = table().append_column("who", pa.array([f"p{number // 2}" for number in range(N)]))
    rules = nr.Policy(attributes={**CASES["decoys"].attributes, "who": "identifier"}, require=CASES["decoys"].require)
    for given in (data, session.createDataFrame(data)):
        with pytest.raises(
            nr.errors.PolicyError, match="383 records have 202 different values of the identifier 'who'"
        ):
            nr.anonymize(given, rules, to=tmp_path / "release")
