"""Corners of general values and groups where a release once went wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.engines import Plan
from noren.errors import ReleaseError
from noren.methods.cover import cover
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from noren.workflow.anonymize import run
from tests.unit.release.test_release_package import claim

N = 200


def table(**columns: Any) -> pa.Table:
    rng = np.random.default_rng(0)
    made = {
        "age": rng.integers(20, 60, N).tolist(),
        "town": ["abcd"[i % 4] for i in range(N)],
        "pay": [(5, 15, 35)[i % 3] for i in range(N)],
        "ill": rng.choice(list("wxyz"), N).tolist(),
    }
    return pa.table(made | columns)


def policy(method: Any = "mondrian", require: Any = None, **columns: Any) -> nr.Policy:
    attributes = {"age": "quasi-identifier", "town": "quasi-identifier", "pay": "plain", "ill": "sensitive"}
    rules = require or [nr.models.FrequencyLDiversity(on="ill", l=2)]
    return nr.Policy(
        mechanism="ignored", attributes=attributes | columns, require=rules, method=method, dependence={"most": 1.0}
    )


def tree(**nodes: list[str]) -> dict[str, Any]:
    return {"role": "quasi-identifier", "hierarchy": {"tree": nodes}}


def test_labels_of_nodes_are_distinct_whatever_the_values_are_called():
    rows = [["a", "a", "*"], ["a (level 1)", "a", "*"], ["c", "x", "*"], ["d", "x", "*"]]
    labels = tree_of(Hierarchy.from_rows(rows)).nodes.labels
    assert len(set(labels)) == len(labels)


def test_an_empty_label_of_a_hierarchy_is_refused():
    """It would be read back as a missing cell."""
    with pytest.raises(nr.errors.PolicyError, match=r"attributes\.town\.hierarchy: a node has an empty label"):
        policy(town=tree(**{"": ["a", "b"], "y": ["c", "d"]}))


def test_bins_that_nobody_falls_into_do_not_stop_the_auditor():
    bins = {"role": "sensitive", "bins": [0, 10, 20, 30, 40]}
    require = [nr.models.FrequencyLDiversity(on="pay", l=2)]
    release = nr.anonymize(table(), policy("anatomy", require=require, pay=bins, ill="plain"))
    assert all(verdict.holds is True for verdict in nr.verify(release, original=table()))


def test_bins_that_nobody_falls_into_do_not_stop_the_recipient():
    bins = {"role": "sensitive", "bins": [0, 10, 20, 30, 40]}
    require = [nr.models.FrequencyLDiversity(on="pay", l=2)]
    release = nr.anonymize(table(), policy(require=require, pay=bins, ill="plain"))
    assert release.estimate("pay/20").frame["count"].sum() == pytest.approx(N)


def test_a_value_that_only_suppressed_records_have_is_not_published():
    ages = [97, *table()["age"].to_pylist()[1:]]
    rules = policy(
        {"name": "incognito", "suppression": 0.3},
        require=[nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="ill", l=2)],
        age={"role": "quasi-identifier", "hierarchy": {"widths": [5, 10]}},
    )
    release = nr.anonymize(table(age=ages), rules)
    assert "*" not in release.frame()["age"].to_list()
    assert release.manifest.suppressed > 0
    assert "97" not in release.manifest.column("age").domain.values


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rules = policy("incognito", town=tree(u=["a", "b"], v=["c", "d"]))
    return nr.anonymize(table(), rules).save(tmp_path_factory.mktemp("made") / "release")


@pytest.mark.parametrize(
    "levels",
    [[], [["a", "b", "c", "d"], ["u", "u", "v", "v"], ["p", "q", "q", "q"]], [["a", "a", "c", "d"], ["*"] * 4]],
    ids=["none", "no tree", "a value twice"],
)
def test_a_forged_hierarchy_is_refused_as_damage(saved, levels, tmp_path):
    release = Path(shutil.copytree(saved, tmp_path / "release"))
    claim(release, lambda block: block["columns"][1].update(hierarchy=levels))
    with pytest.raises(ReleaseError, match="changed or damaged"):
        nr.open_release(release)


def test_manifests_can_be_compared(saved):
    assert nr.open_release(saved).manifest == nr.open_release(saved).manifest


def test_a_comparison_beside_an_open_column_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 30)
    with pytest.raises(nr.errors.DataError, match="'age' has too many values for classes"):
        nr.compare(table(), policy("decoys"), among=["decoys"])


# ---------------------------------------------------------------- what left-out records had


def lonely() -> pa.Table:
    """The first three people stand out in age and in a harmless column, and will be left out."""
    made = table(
        age=[91, 94, 97, *[30 + i % 4 for i in range(N - 3)]], ill=["w", "x", "y", *table()["ill"][3:].to_pylist()]
    )
    pay = ["lord mayor", "lady mayor", "heir", *["clerk" if i % 2 else "nurse" for i in range(N - 3)]]
    return made.set_column(2, "pay", pa.array(pay))


def test_nothing_of_a_left_out_record_is_named_and_the_auditor_still_understands(tmp_path):
    rules = policy(
        {"name": "incognito", "suppression": 0.02},
        require=[nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="ill", l=2)],
        age={"role": "quasi-identifier", "hierarchy": {"widths": [1, 2]}},
        town="plain",
    )
    release = nr.anonymize(lonely(), rules, to=tmp_path / "release")
    assert release.manifest.suppressed == 3
    assert release.manifest.column("pay").domain.values == ("clerk", "nurse")
    published = b"".join(path.read_bytes() for path in (tmp_path / "release").iterdir())
    assert b"lord mayor" not in published
    assert "97" not in release.manifest.column("age").domain.values
    assert sorted(set(release.frame()["pay"].to_list())) == ["clerk", "nurse"]
    verdicts = nr.verify(nr.open_release(tmp_path / "release"), original=lonely())
    assert all(verdict.holds is True for verdict in verdicts)


def test_the_auditor_understands_that_all_missing_cells_were_left_out():
    ages = [None, None, 97, *[30 + i % 4 for i in range(N - 3)]]
    original = table(age=ages, ill=["w", "x", "y", *table()["ill"][3:].to_pylist()])
    rules = policy(
        {"name": "incognito", "suppression": 0.02},
        require=[nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="ill", l=2)],
        age={"role": "quasi-identifier", "hierarchy": {"widths": [1, 2]}},
        town="plain",
    )
    release = nr.anonymize(original, rules)
    assert release.manifest.suppressed == 3
    assert release.manifest.column("age").domain.values == ("30", "31", "32", "33")
    assert all(verdict.holds is True for verdict in nr.verify(release, original=original))


def test_suppression_that_takes_the_last_record_of_a_possible_secret_is_not_done(monkeypatch):
    """A general secret would go on to stand for a value that nobody published has."""
    rare = ["v", *table()["ill"].to_pylist()[1:]]
    tried = []

    def reckless(self: Any, coded: Any, requirements: Any, order: Any, meter: Any) -> Plan:
        whole = np.zeros(coded.n, np.int64)
        columns = {name: cover(coded.columns[name], coded.codes[name], whole, 1) for name in (*coded.quasi, "ill")}
        keep = np.ones(coded.n, bool)
        for value in range(coded.columns["ill"].d):
            keep[np.flatnonzero(coded.codes["ill"] == value)[0]] = False
        tried.append(self.suppression)
        return Plan(columns, keep if self.suppression else None)

    monkeypatch.setattr(nr.methods.Sweep, "recode", reckless)
    outcome = run(table(ill=rare), policy({"name": "sweep", "suppression": 0.1}))
    assert tried == [0.1, 0.0]
    assert outcome.facts.suppressed == 0
    assert any(
        "nobody was suppressed, because suppression would have removed the last" in note for note in outcome.facts.notes
    )


def test_a_range_of_whole_numbers_does_not_tell_which_of_them_occur():
    release = nr.anonymize(table(age=[20 + 3 * (i % 5) for i in range(N)]), policy())
    assert release.manifest.column("age").domain.values == tuple(str(age) for age in range(20, 33))


# ---------------------------------------------------------------- what an auditor is told


def test_a_published_column_that_the_policy_drops_or_does_not_know_fails():
    release = nr.anonymize(table(), policy())
    dropped = nr.verify(release, policy(pay="identifier"))
    assert [(v.model, v.column, v.holds) for v in dropped if v.holds is not True] == [
        ("published-columns", "pay", False)
    ]
    unknown = nr.Policy(
        mechanism="ignored",
        attributes={"age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on="ill", l=2)],
        method="mondrian",
    )
    assert [v.column for v in nr.verify(release, unknown) if v.holds is False] == ["pay"]


def test_subtrees_are_those_of_the_policy_that_is_checked():
    apart = {"role": "sensitive", "hierarchy": {"tree": {v: [v] for v in "wxyz"}}}
    together = {"role": "sensitive", "hierarchy": {"tree": {"p": ["w", "x", "y"], "q": ["z"]}}}
    rules = [nr.models.LEDiversity(on="ill", l=2, e=1)]
    release = nr.anonymize(table(), policy(require=rules, ill=apart))
    assert [v.holds for v in nr.verify(release)] == [True]
    found = {v.model: v.holds for v in nr.verify(release, policy(require=rules, ill=together))}
    assert found == {"le-diversity": False, "published-domain": False}


def test_ordered_closeness_counts_the_declared_values():
    ranks = {"role": "sensitive", "values": [str(i) for i in range(1, 10)], "distance": "ordinal"}
    pay = [("1", "2", "9")[i % 3] for i in range(N)]
    rules = policy(require=[nr.models.TCloseness(on="pay", t=0.2, distance="ordered")], pay=ranks, ill="plain")
    release = nr.anonymize(table(pay=pay), rules)
    assert release.manifest.column("pay").domain.values == tuple(ranks["values"])
    assert all(verdict.holds is True for verdict in nr.verify(release))


@pytest.mark.parametrize(
    "change",
    [
        lambda block: block["columns"][0].update(kind="number", values=[*map(str, range(39)), "x"]),
        lambda block: block.update(suppressed=10**400),
        lambda block: block["columns"][0].update(nodes=[["a", [[0, 10**30]]]]),
        lambda block: block["columns"][0].update(groups=10**30, form="group"),
    ],
    ids=["kind", "suppressed", "runs", "groups"],
)
def test_absurd_claims_are_damage(saved, change, tmp_path):
    release = Path(shutil.copytree(saved, tmp_path / "release"))
    claim(release, change)
    with pytest.raises(ReleaseError, match="changed or damaged"):
        nr.open_release(release)


def test_a_requirement_that_no_model_has_is_refused(saved, tmp_path):
    release = Path(shutil.copytree(saved, tmp_path / "release"))
    claim(release, lambda block: block.update(requirements=[{"model": "k-anonymity", "k": 1}]))
    with pytest.raises(ReleaseError, match="parameters that no model has"):
        nr.verify(nr.open_release(release))
