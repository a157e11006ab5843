"""Where tables come from, what is written, and what the recipient and the auditor do with it on a cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.release.package import demand_closed
from noren.workflow.measure import measure
from tests.contracts.test_engines import CASES, table
from tests.unit.test_files import calls, demand_lasting_directory  # noqa: F401

pytestmark = pytest.mark.slow  # at every change tests/contracts/test_engines.py compares parts in memory

WORDS = [f"w{number}" for number in range(6)]


def people(n: int = 12_000) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({"town": rng.choice(["Ulm", "Bonn", "Kiel"], n), "job": rng.choice(WORDS, n), "note": np.arange(n)})


RULES = nr.Policy(
    attributes={"town": nr.quasi_identifier(), "job": nr.sensitive(), "note": "plain"},
    require=[nr.models.FrequencyLDiversity(on="job", l=2)],
    people={"rows": "independent"},
)


@pytest.fixture(scope="module")
def release(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of 12,000 records in several files, whose sets are kept once."""
    from noren.engines.spark import SparkEngine

    engine = SparkEngine(session)
    engine._files = lambda rows: 3  # type: ignore[method-assign]
    folder = tmp_path_factory.mktemp("made") / "release"
    nr.anonymize(session.createDataFrame(people()), RULES, to=folder, engine=engine)
    return folder


@pytest.fixture
def copied(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "copy"))


def test_a_release_in_several_files_lasts(session: Any, tmp_path: Path, calls: list) -> None:  # noqa: F811
    """Each task syncs what it wrote, and this process all that is renamed."""
    nr.anonymize(session.createDataFrame(people(2_000)), RULES, to=tmp_path / "release")
    demand_lasting_directory(calls, tmp_path / "release")


def test_all_files_are_listed_and_read_in_their_order(release: Path) -> None:
    package = json.loads((release / "datapackage.json").read_text())
    data = package["resources"][0]
    assert data["path"] == [f"data-0000{number}.parquet" for number in range(3)]
    assert [part["path"] for part in data["parts"]] == data["path"]
    assert data["bytes"] == sum((release / name).stat().st_size for name in data["path"])
    opened = nr.open_release(release)
    demand_closed(release)
    assert opened.column("job").side == "sets", "each of the 15 sets is kept once"
    read = [pq.read_table(release / name)["note"].to_pylist() for name in data["path"]]
    assert opened.frame()["note"].to_list() == [note for part in read for note in part]
    assert sorted(opened.frame()["note"].to_list()) == list(range(12_000))
    page = (release / "README.md").read_text()
    assert 'pl.read_parquet("data-*.parquet")' in page
    assert 'open_dataset(Sys.glob("data-*.parquet"))' in page


def test_without_a_descriptor_nothing_opens(copied: Path) -> None:
    (copied / "datapackage.json").unlink()
    with pytest.raises(nr.errors.ReleaseError, match="this is not a release"):
        nr.open_release(copied)


def test_a_file_that_is_missing_changed_or_strange_is_refused(copied: Path) -> None:
    part = copied / "data-00001.parquet"
    content = part.read_bytes()
    part.unlink()
    with pytest.raises(nr.errors.ReleaseError, match=r"data-00001\.parquet is missing"):
        nr.open_release(copied)
    part.write_bytes(content[:-1] + b"x")
    with pytest.raises(nr.errors.ReleaseError, match="its checksum differs"):
        nr.open_release(copied)
    part.write_bytes(content)
    (copied / "data-00003.parquet").write_bytes(content)
    with pytest.raises(nr.errors.ReleaseError, match=r"data-00003\.parquet.*does not describe"):
        nr.verify(copied)


@pytest.mark.parametrize("change", ["other order", "twice", "strange name", "two lists", "none"])
def test_a_descriptor_with_another_list_of_files_is_refused(change: str, copied: Path) -> None:
    path = copied / "datapackage.json"
    package = json.loads(path.read_text())
    data = package["resources"][0]
    if change == "other order":  # the cells are the same, and stand otherwise: the files say nothing against it
        data["path"].reverse()
    elif change == "twice":
        data["parts"].append(data["parts"][0])
        data["path"].append(data["path"][0])
    elif change == "strange name":
        (copied / "data-x.parquet").write_bytes((copied / "data-00000.parquet").read_bytes())
        data["path"][0] = data["parts"][0]["path"] = "data-x.parquet"
    elif change == "two lists":
        data["path"].pop()
    else:
        data["path"], data["parts"] = [], []
    path.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n")
    with pytest.raises(nr.errors.ReleaseError, match="changed or damaged"):
        nr.open_release(copied)


def test_sets_that_nobody_has_are_not_listed(session: Any, tmp_path: Path) -> None:
    """Six values of which the policy names six and people have two: most sets never occur and are not told."""
    n = 12_000
    data = pa.table({"job": np.array(WORDS)[np.arange(n) % 2]})
    rules = nr.Policy(
        attributes={"job": nr.sensitive(values=WORDS)},
        require=[nr.models.FrequencyLDiversity(on="job", l=2)],
        people={"rows": "independent"},
    )
    made = nr.anonymize(session.createDataFrame(data), rules, to=tmp_path / "release")
    assert all(verdict.holds for verdict in nr.verify(tmp_path / "release", rules, original=data))
    listed = pq.read_table(tmp_path / "release" / "sets.parquet")["job"].to_pylist()
    shown = {tuple(cell) for cell in made.frame()["job"].to_list()}
    assert {tuple(cell) for cell in listed if cell is not None} == shown
    assert len(shown) == 9, "one or both of the two values that people have"


def test_verification_and_measures_are_the_same_on_the_cluster(release: Path, engine: Any) -> None:
    here, there = (
        nr.verify(release, RULES, original=people()),
        nr.verify(release, RULES, original=people(), engine=engine),
    )
    assert [verdict.to_dict() for verdict in there] == [verdict.to_dict() for verdict in here]
    assert measure(nr.open_release(release), engine=engine).frame.equals(measure(nr.open_release(release)).frame)
    stricter = nr.Policy(attributes=RULES.attributes, require=[nr.models.FrequencyLDiversity(on="job", l=3)])
    assert [verdict.holds for verdict in nr.verify(release, stricter, engine=engine)] == [False]


@pytest.mark.parametrize("estimator", ["linear", "bayes", "likelihood"])
def test_estimates_from_tuples_counted_on_the_cluster_are_the_same(release: Path, engine: Any, estimator: str) -> None:
    here, there = nr.open_release(release), engine.open_release(release)
    mine, other = (one.estimate(["town", "job"], estimator=estimator).frame for one in (here, there))
    for name in ("count", "std_error", "low", "high"):
        assert other[name].to_list() == pytest.approx(mine[name].to_list(), rel=1e-6, abs=1e-6)
    where = {"job": ["w1", "w2"], "town": "Ulm"}
    assert there.count(where, estimator).count == pytest.approx(here.count(where, estimator).count, rel=1e-6)


def test_tables_come_from_wherever_spark_reads(session: Any, engine: Any, tmp_path: Path) -> None:
    """Parquet, CSV by a glob, a table of the catalogue, a base: the same counts."""
    frame = session.createDataFrame(people(600))
    frame.write.parquet(str(tmp_path / "folder"))
    (tmp_path / "texts").mkdir()
    pv.write_csv(people(600).slice(0, 100), tmp_path / "texts" / "a.csv")
    pv.write_csv(people(600).slice(100), tmp_path / "texts" / "b.csv")
    frame.createOrReplaceTempView("people_view")
    base = f"jdbc:derby:memory:{tmp_path.name};create=true"
    frame.write.format("jdbc").option("url", base).option("dbtable", "PEOPLE").save()
    places = [tmp_path / "folder", f"{tmp_path}/texts/*.csv", "table:people_view", f"{base}?dbtable=PEOPLE"]
    places += [tmp_path / "texts"]
    rules = nr.Policy(attributes={**RULES.attributes, "note": "identifier"}, require=RULES.require, people=RULES.people)
    for place in places:
        made = nr.anonymize(place, rules, engine=engine)
        towns = made.frame()["town"].value_counts().sort("town")
        assert made.records == 600
        assert towns["count"].to_list() == [len(people(600).filter(pa.compute.equal(people(600)["town"], town)))
                                            for town in ("Bonn", "Kiel", "Ulm")]  # fmt: skip


def test_what_cannot_be_read_is_refused_by_name(engine: Any, tmp_path: Path) -> None:
    with pytest.raises(nr.errors.DataError, match="nowhere: no such file"):
        nr.anonymize(tmp_path / "nowhere", RULES, engine=engine)
    with pytest.raises(nr.errors.DataError, match="no table of the database"):
        nr.anonymize("jdbc:derby:memory:none", RULES, engine=engine)


def test_a_class_that_lies_in_several_files_is_judged_as_a_whole(session: Any, tmp_path: Path) -> None:
    """k that some classes of a release do not reach: the same verdicts, shortfalls and all, as on one machine."""
    from noren.engines.spark import SparkEngine

    engine = SparkEngine(session)
    engine._files = lambda rows: 3  # type: ignore[method-assign]
    roles: Any = {"town": "quasi-identifier", "note": "quasi-identifier", "job": "sensitive"}
    diverse = nr.models.FrequencyLDiversity(on="job", l=3)
    rules = nr.Policy(attributes=roles, require=[nr.models.KAnonymity(k=5), diverse], method="mondrian",
                      mechanism="ignored", people={"rows": "independent"})  # fmt: skip
    made = nr.anonymize(session.createDataFrame(people()), rules, to=tmp_path / "release", engine=engine)
    asked = rules.model_copy(update={"require": (nr.models.KAnonymity(k=7), diverse.model_copy(update={"l": 4}))})
    here, there = (nr.verify(made, asked, show=3, engine=where) for where in ("local", engine))
    assert [(v.short, len(v.shortfalls), v.achieved, v.breaches, v.statement) for v in there] == [
        (v.short, len(v.shortfalls), v.achieved, v.breaches, v.statement) for v in here
    ]
    assert here[0].short > 1


def test_what_must_fit_the_driver_is_checked_before_it_is_read(session: Any, tmp_path: Path) -> None:
    session.conf.set("spark.noren.driver.memory", "10k")
    try:
        said = r"forming classes of 383 records with 3 columns needs 31,406 bytes on the driver, which may use 10,240"
        with pytest.raises(nr.errors.OutOfReach, match=said):
            nr.anonymize(session.createDataFrame(table()), CASES["anatomy"], to=tmp_path / "release")
        nr.anonymize(session.createDataFrame(table()), CASES["decoys"], to=tmp_path / "release")
    finally:
        session.conf.unset("spark.noren.driver.memory")


def test_the_command_line_runs_on_spark(session: Any, tmp_path: Path) -> None:
    pq.write_table(people(600), tmp_path / "people.parquet")
    (tmp_path / "policy.toml").write_text(RULES.to_toml())
    made = CliRunner().invoke(main, ["anonymize", str(tmp_path / "people.parquet"), str(tmp_path / "policy.toml"),
                                    "--engine", "spark", "--to", str(tmp_path / "release"), "--json"])  # fmt: skip
    assert made.exit_code == 0, made.output
    assert json.loads(made.output)["records"] == 600
    checked = CliRunner().invoke(main, ["verify", str(tmp_path / "release"), "--engine", "spark"])
    assert checked.exit_code == 0, checked.output
    asked = [
        CliRunner().invoke(main, ["count", str(tmp_path / "release"), "--where", "job=w1", "--json", *more])
        for more in ([], ["--engine", "spark"])
    ]
    here, there = (json.loads(one.output)["count"] for one in asked)
    assert there == pytest.approx(here, rel=1e-6)
    measured = [CliRunner().invoke(main, ["measure", str(tmp_path / "release"), "--json", *more]).output
                for more in ([], ["--engine", "spark"])]  # fmt: skip
    assert json.loads(measured[0]) == json.loads(measured[1])
    refused = CliRunner().invoke(main, ["verify", str(tmp_path / "release"), "--master", "local"])
    assert refused.exit_code == 2
    assert "--engine spark" in refused.output
