"""From a table to general values: which values a domain keeps, what the manifest lists, and whose row is whose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.engines import Plan, Recode
from noren.engines.table import subdomain
from noren.methods.mondrian import Mondrian
from noren.release.manifest import write_column
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, tree_of
from noren.workflow.anonymize import run
from noren.workflow.draft import Draft
from noren.workflow.prepare import prepare
from noren.workflow.settling import decide_plan, draft_plan
from noren.workflow.shown import listed_nodes, same_nodes

N = 300
METHODS = ("mondrian", "sweep", "incognito", "anatomy")
ILLS = {"tree": {"chest": ["flu", "cold", "plague"], "other": ["burn", "gout", "scurvy"]}}
TOWNS = {"tree": {"Rhine": ["Bonn", "Mainz", "Worms"], "Danube": ["Ulm", "Passau"], "Elbe": ["Meissen"]}}


def table(n: int = N, missing: bool = False) -> pa.Table:
    """Numbered people; with `missing`, every seventh has no town and every eleventh no illness."""
    rng = np.random.default_rng(2)
    town = rng.choice(["Bonn", "Mainz", "Ulm"], n).tolist()
    ill = rng.choice(["flu", "cold", "burn", "gout"], n, p=[0.26, 0.26, 0.24, 0.24]).tolist()
    if missing:
        town = [None if i % 7 == 3 else cell for i, cell in enumerate(town)]
        ill = [None if i % 11 == 5 else cell for i, cell in enumerate(ill)]
    return pa.table(
        {
            "row": pa.array(np.arange(n)),
            "age": pa.array(rng.integers(20, 70, n)),
            "shade": [f"s{i % 13}" for i in range(n)],
            "town": town,
            "letter": [f"letter {i}" for i in range(n)],
            "ill": ill,
        }
    )


def policy(method: str | dict[str, Any] = "mondrian", l: int = 2, **columns: Any) -> nr.Policy:  # noqa: E741
    attributes: dict[str, Any] = {
        "row": "plain",
        "age": "quasi-identifier",
        "shade": "plain",
        "town": {"role": "quasi-identifier", "hierarchy": TOWNS},
        "letter": "plain",
        "ill": "sensitive",
    }
    require = [nr.models.FrequencyLDiversity(on="ill", l=l)]
    return nr.Policy(mechanism="ignored", attributes=attributes | columns, require=require, method=method)


def draft_of(data: pa.Table, rules: nr.Policy) -> Draft:
    ready = prepare(data, rules)
    return draft_plan(ready, decide_plan(ready, rules), rules)


# ---------------------------------------------------------------- domains


@pytest.mark.parametrize("method", METHODS)
def test_a_secret_that_nobody_has_is_never_possible(method):
    """A general value must not seem to leave it open; a declared domain is otherwise published as declared."""
    declared = {"role": "sensitive", "values": ["plague", "flu", "cold", "scurvy", "burn", "gout"]}
    for more in ({}, {"hierarchy": ILLS}):
        release = nr.anonymize(table(), policy(method, ill={**declared, **more}))
        entry = release.manifest.column("ill")
        if entry.nodes is not None:
            assert entry.domain.values == ("flu", "cold", "burn", "gout")
            assert not more or entry.column.tree.levels[1] == ("chest", "chest", "other", "other")
        else:
            assert entry.domain.values == tuple(declared["values"])
            found = dict(release.estimate("ill").frame.select("ill", "high").iter_rows())
            assert found["plague"] == found["scurvy"] == 0
        assert all(verdict.holds is True for verdict in nr.verify(release, original=table()))


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_bin_of_a_secret_stays_empty_or_is_refused(method):
    pay = pa.array([(5, 25, 45)[i % 3] for i in range(N)])
    binned = {"role": "sensitive", "bins": [0, 10, 20, 30, 40, 50, 60]}
    data = table().append_column("pay", pay).drop_columns("ill")
    attributes = dict(policy().attributes) | {"pay": binned}
    del attributes["ill"]
    rules = nr.Policy(
        mechanism="ignored",
        attributes=attributes,
        require=[nr.models.FrequencyLDiversity(on="pay", l=2)],
        method=method,
    )
    if method == "sweep":
        with pytest.raises(nr.errors.PolicyError, match="3 bins contain no record"):
            nr.anonymize(data, rules)
        return
    release = nr.anonymize(data, rules)
    entry = release.manifest.column("pay")
    assert len(entry.domain.values) == 6
    assert entry.domain.edges == (0, 10, 20, 30, 40, 50, 60)
    found = dict(release.estimate("pay").frame.select("pay", "high").iter_rows())
    assert found["[10, 20)"] == found["[30, 40)"] == found["[50, 60]"] == 0
    assert found["[0, 10)"] >= N / 3
    assert all(verdict.holds is True for verdict in nr.verify(release, original=data))


def test_narrowing_takes_everything_along():
    rules = policy(ill={"role": "sensitive", "hierarchy": ILLS, "values": ["plague", "flu", "cold", "burn", "gout"]})
    ready = prepare(table(), rules)
    column, counts = ready.columns["ill"], ready.counts["ill"]
    less, place = subdomain(column, counts > 0)
    assert less.domain.values == ("flu", "cold", "burn", "gout")
    assert counts[0] == 0
    assert less.tree.leaves == less.domain.values
    assert [less.domain.values[place[code]] for code in range(1, 5)] == list(column.domain.values[1:])
    same, identity = subdomain(less, np.ones(4, bool))
    assert same is less
    assert identity.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", METHODS)
def test_a_given_hierarchy_is_published_whole(method):
    """Which of its leaves occur would tell who is in the table."""
    release = nr.anonymize(table(), policy(method))
    entry = release.manifest.column("town")
    assert entry.domain.values == ("Bonn", "Mainz", "Worms", "Ulm", "Passau", "Meissen")
    assert entry.column.tree.levels[0] == entry.domain.values
    without = table().filter(pa.array([town != "Ulm" for town in table()["town"].to_pylist()]))
    fewer = nr.anonymize(without, policy(method)).manifest.column("town")
    assert write_column(fewer) == write_column(entry)
    found = dict(release.estimate("town").frame.select("town", "high").iter_rows())
    assert found.keys() == {*entry.domain.values}


def test_numbers_under_a_given_hierarchy_stand_in_their_order():
    ages = Hierarchy.from_widths([str(age) for age in (9, 100, *range(20, 70))], [10, 50])
    entry = nr.anonymize(table(), policy(age={"role": "quasi-identifier", "hierarchy": ages})).manifest.column("age")
    assert entry.domain.kind == "integer"
    assert [int(value) for value in entry.domain.values] == [9, *range(20, 70), 100]


def test_a_missing_town_hangs_under_the_root():
    entry = nr.anonymize(table(missing=True), policy()).manifest.column("town")
    assert entry.domain.values[-1] == "(missing)"
    assert [level[-1] for level in entry.column.tree.levels] == ["(missing)", "(missing)", "*"]


def test_only_nodes_that_are_published_are_listed():
    release = nr.anonymize(table(), policy())
    entry = release.manifest.column("age")
    assert entry.column.tree is None
    listed = list(entry.nodes.labels)
    assert set(listed) == set(release.frame()["age"].to_list())
    assert entry.nodes.runs == sorted(entry.nodes.runs)


def test_listing_sorts_renumbers_and_tells_like_labels_apart():
    nodes = Nodes.from_runs(6, ["x", "never", "x", "x", "dropped"], [[(4, 6)], [(0, 6)], [(0, 2)], [(2, 3)], [(3, 4)]])
    column = Recode(nodes, np.array([0, 2, 3, 4, 0]))
    listed, data = listed_nodes(column, np.array([True, True, True, False, True]))
    assert listed.runs == [[(0, 2)], [(2, 3)], [(4, 6)]]
    assert listed.labels == ("x", "x (2)", "x (3)")
    assert data[[0, 1, 2, 4]].tolist() == [2, 0, 1, 2]


def test_sets_of_values_that_read_alike_stay_apart():
    """The values "a, b" and "c" make the same text as "a" and "b, c"."""
    cells = ["a, b", "c", "a", "b, c"] * 25
    rules = nr.Policy(
        mechanism="ignored", attributes={"q": "quasi-identifier", "s": "sensitive"}, require=[nr.models.KAnonymity(k=2),
        nr.models.DistinctLDiversity(on="s", l=2)], method="mondrian",
    )  # fmt: skip
    pairs = {"a, b": 0, "c": 1, "a": 0, "b, c": 1}
    data = pa.table({"q": cells, "s": [f"s{pairs[cell]}" for cell in cells]})
    release = nr.anonymize(data, rules)
    labels = release.manifest.column("q").nodes.labels
    assert len(set(labels)) == len(labels)
    assert all(verdict.holds is True for verdict in nr.verify(release, original=data))


def test_a_catalogue_is_the_same_only_with_the_same_labels_and_runs():
    tree = tree_of(Hierarchy((("a", "b"), ("x", "x")))).nodes
    assert same_nodes(tree, Nodes.from_runs(2, tree.labels, tree.runs))
    assert not same_nodes(tree, Nodes.from_runs(2, ["a", "b", "y"], tree.runs))
    assert not same_nodes(tree, Nodes.from_runs(2, tree.labels, [*tree.runs[:2], [(0, 1)]]))


@pytest.mark.parametrize("method", ["incognito", "sweep"])
def test_intervals_that_a_method_made_itself_are_explained(method):
    release = nr.anonymize(table(), policy(method, l=3))
    entry = release.manifest.column("age")
    assert set(release.frame()["age"].to_list()) <= set(entry.nodes.labels)
    for label, runs in zip(entry.nodes.labels, entry.nodes.runs, strict=True):
        if label.startswith("["):
            low, high = (int(end) for end in label[1:-1].split(", "))
            assert [runs[0]] == runs
            assert entry.domain.find([str(low), str(high - 1)]) == [runs[0][0], runs[0][1] - 1]


# ---------------------------------------------------------------- whose row is whose


def joined(release: nr.Release, data: pa.Table) -> pl.DataFrame:
    original = pl.from_arrow(data)
    assert isinstance(original, pl.DataFrame)
    named = original.rename({name: f"{name}?" for name in original.columns if name != "row"})
    return release.frame().join(named, on="row", how="left", validate="1:1")


def assert_attached(release: nr.Release, data: pa.Table) -> None:
    """Every row says of its person what is true: exact columns exactly, general values cover, groups hold."""
    rows = joined(release, data)
    assert rows.height == release.records
    for name in ("letter", "shade"):
        assert rows[name].to_list() == rows[f"{name}?"].to_list()
    for entry in release.manifest.columns:
        if entry.name in ("row", "letter", "shade"):
            continue
        truth = ["(missing)" if cell is None else str(cell) for cell in rows[f"{entry.name}?"].to_list()]
        codes = np.array(entry.domain.find(truth))
        assert (codes >= 0).all()
        if entry.nodes is not None:
            place = {label: i for i, label in enumerate(entry.nodes.labels)}
            nodes = np.array([place[label] for label in rows[entry.name].to_list()])
            assert entry.nodes.covers(nodes, codes).all()
        elif entry.is_class:
            told = entry.table
            pairs = set(zip(told.group.tolist(), told.value.tolist(), strict=True))
            assert set(zip(rows[entry.name].to_list(), codes.tolist(), strict=True)) == pairs
        else:
            stated = ["(missing)" if cell is None else str(cell) for cell in rows[entry.name].to_list()]
            assert stated == truth


@pytest.fixture(params=["one batch", "many batches"])
def batches(request, monkeypatch) -> str:
    if request.param == "many batches":
        monkeypatch.setattr("noren.sources.arrow.BATCH_ROWS", 37)
        monkeypatch.setattr("noren.workflow.draft.ROWS_AT_ONCE", 41)
    return request.param


@pytest.fixture(params=["listed", "open"])
def letters(request, monkeypatch) -> str:
    """Whether the letters have a domain, or too many values for one."""
    if request.param == "open":
        monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 299)
    return request.param


def numbered(n: int = N, missing: bool = False) -> pa.Table:
    """With one record more than the limit of an open column."""
    return table(n + 1, missing)


@pytest.mark.parametrize("method", METHODS)
def test_plain_columns_stay_with_their_record(method, batches, letters):
    release = nr.anonymize(numbered(), policy(method))
    assert release.column("letter").is_exact
    assert release.column("letter").column.is_open == (letters == "open")
    assert_attached(release, numbered())


@pytest.mark.parametrize("dropped", [("town",), ("town", "ill")])
@pytest.mark.parametrize("method", METHODS)
def test_plain_columns_stay_with_their_record_when_others_are_dropped(method, dropped, batches, monkeypatch):
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 200)
    data = numbered(missing=True)
    roles = {
        "town": {"role": "quasi-identifier", "hierarchy": TOWNS},
        "ill": {"role": "sensitive"},
    }
    for name in dropped:
        roles[name]["missing"] = "drop"
    outcome = run(data, policy(method, **roles))
    absent = [any(data[name][i].as_py() is None for name in dropped) for i in range(data.num_rows)]
    assert outcome.facts.dropped == sum(absent)
    assert outcome.release.records == data.num_rows - sum(absent)
    assert outcome.release.column("letter").column.is_open
    assert set(outcome.release.frame()["row"].to_list()) == set(np.flatnonzero(~np.array(absent)).tolist())
    assert_attached(outcome.release, data)


def suppressing(method: str) -> tuple[pa.Table, nr.Policy]:
    """Some may go. Anatomy never gains by it: who is too common in all is too common in a part."""
    roles = {"ill": {"role": "sensitive", "missing": "drop"}}
    rules = policy({"name": method, "suppression": 0.2}, l=2 if method == "incognito" else 3, **roles)
    return numbered(missing=True), rules


@pytest.mark.parametrize("method", METHODS)
def test_plain_columns_stay_with_their_record_under_suppression(method, batches):
    data, rules = suppressing(method)
    outcome = run(data, rules)
    assert (method == "incognito") <= outcome.facts.suppressed <= 0.2 * data.num_rows
    assert outcome.release.records + outcome.facts.suppressed + outcome.facts.dropped == data.num_rows
    assert_attached(outcome.release, data)


@pytest.mark.parametrize("method", METHODS)
def test_records_without_plain_columns_are_whole_too(method, batches):
    """Nothing has to be read again; the codes in memory are all."""
    data, rules = suppressing(method)
    kept = {name: rules.attributes[name] for name in ("age", "town", "ill")}
    rules = nr.Policy(mechanism="ignored", attributes=kept, require=rules.require, method=rules.methods)
    outcome = run(data.select(["age", "town", "ill"]), rules)
    assert outcome.release.frame().height == outcome.facts.records
    verdicts = nr.verify(outcome.release, rules, original=data.select(["age", "town", "ill"]))
    assert not verdicts.failed
    told = not outcome.facts.suppressed or outcome.release.column("ill").is_exact or method == "anatomy"
    assert [v.model for v in verdicts.undecided] == ([] if told else ["left-out"]), "only general secrets stay open"


# ---------------------------------------------------------------- what a draft refuses


def recoded(**changes: Any) -> Any:
    """A method that decides as told instead of deciding."""

    def decide(self: Any, coded: Any, requirements: Any, order: Any, meter: Any) -> Plan:
        whole = {name: Recode(tree, np.full(coded.n, root)) for name, (tree, root) in roots(coded).items()}
        return Plan(whole, **{name: change(coded) for name, change in changes.items()})

    return decide


def roots(coded: Any) -> dict[str, tuple[Nodes, int]]:
    trees = {name: tree_of(Hierarchy((coded.columns[name].domain.values,))) for name in coded.quasi}
    return {name: (tree.nodes, tree.root) for name, tree in trees.items()}


def test_plain_columns_stay_with_their_record_whoever_is_dropped(batches, letters, monkeypatch):
    monkeypatch.setattr("noren.methods.base.secret_order", np.arange)
    monkeypatch.setattr(Mondrian, "recode", recoded(keep=lambda coded: np.arange(coded.n) % 5 != 2))
    release = nr.anonymize(numbered(), policy({"name": "mondrian", "suppression": 0.2}))
    assert sorted(release.frame()["row"].to_list()) == [i for i in range(N + 1) if i % 5 != 2]
    assert_attached(release, numbered())


def test_a_draft_without_records_is_refused(monkeypatch):
    monkeypatch.setattr(Mondrian, "recode", recoded(keep=lambda coded: np.zeros(coded.n, bool)))
    with pytest.raises(nr.errors.RequirementNotMet, match="every record would have to be suppressed"):
        draft_of(table(), policy({"name": "mondrian", "suppression": 0.9}))


def test_a_draft_that_drops_more_than_it_may_is_refused(monkeypatch):
    monkeypatch.setattr(Mondrian, "recode", recoded(keep=lambda coded: np.arange(coded.n) >= 31))
    with pytest.raises(nr.errors.RequirementNotMet, match="more records were suppressed than the policy permits"):
        draft_of(table(), policy({"name": "mondrian", "suppression": 0.1}))
    monkeypatch.setattr(Mondrian, "recode", recoded(keep=lambda coded: np.arange(coded.n) >= 30))
    assert draft_of(table(), policy({"name": "mondrian", "suppression": 0.1})).suppressed == 30


def test_a_declared_secret_is_listed_as_it_was_declared(tmp_path: Path) -> None:
    """Also what nobody has, and after it was saved: where a domain comes from is part of the release."""
    frame = pl.DataFrame({"age": [*range(20, 60)], "size": [1.5, 2.5] * 20, "ill": ["flu", "cold", "gout", "flu"] * 10})
    rules = nr.Policy(
        mechanism="ignored",
        attributes={
            "age": "quasi-identifier",
            "size": {"role": "plain", "bins": [0, 2, 4]},
            "ill": {"role": "sensitive", "values": ["none", "flu", "cold", "gout", "hiv"]},
        },
        require=[nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="ill", l=2)],
        method="mondrian",
        dependence={"most": 1.0},
    )
    nr.anonymize(frame, rules, to=tmp_path / "release")
    release = nr.open_release(tmp_path / "release")
    assert release.column("ill").domain.values == ("none", "flu", "cold", "gout", "hiv")
    sources = {name: release.column(name).domain.source for name in ("age", "size", "ill")}
    assert sources == {"age": "data", "size": "bins", "ill": "policy"}
