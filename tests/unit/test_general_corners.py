"""Corners of general values and groups where a release once went wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.errors import ReleaseError
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from tests.unit.test_release_package import claim

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
    rules = require or [nr.FrequencyLDiversity(on="ill", l=2)]
    return nr.Policy(attributes=attributes | columns, require=rules, method=method)


def tree(**nodes: list[str]) -> dict[str, Any]:
    return {"role": "quasi-identifier", "hierarchy": {"tree": nodes}}


def test_labels_of_nodes_are_distinct_whatever_the_values_are_called():
    rows = [["a", "a", "*"], ["a (level 1)", "a", "*"], ["c", "x", "*"], ["d", "x", "*"]]
    labels = tree_of(Hierarchy.from_rows(rows)).nodes.labels
    assert len(set(labels)) == len(labels)


def test_an_empty_label_of_a_hierarchy_is_refused():
    """It would be read back as a missing cell."""
    with pytest.raises(nr.PolicyError, match=r"attributes\.town\.hierarchy: a node has an empty label"):
        policy(town=tree(**{"": ["a", "b"], "y": ["c", "d"]}))


def test_bins_that_nobody_falls_into_do_not_stop_the_auditor():
    bins = {"role": "sensitive", "bins": [0, 10, 20, 30, 40]}
    require = [nr.FrequencyLDiversity(on="pay", l=2)]
    release = nr.anonymize(table(), policy("anatomy", require=require, pay=bins, ill="plain"))
    assert all(verdict.holds is True for verdict in nr.verify(release, original=table()))


def test_bins_that_nobody_falls_into_do_not_stop_the_recipient():
    bins = {"role": "sensitive", "bins": [0, 10, 20, 30, 40]}
    require = [nr.FrequencyLDiversity(on="pay", l=2)]
    release = nr.anonymize(table(), policy(require=require, pay=bins, ill="plain"))
    assert release.estimate("pay/20").frame["count"].sum() == pytest.approx(N)


def test_a_value_that_only_suppressed_records_have_is_not_published():
    ages = [97, *table()["age"].to_pylist()[1:]]
    rules = policy(
        {"name": "incognito", "suppression": 0.3},
        require=[nr.KAnonymity(k=3), nr.DistinctLDiversity(on="ill", l=2)],
        age={"role": "quasi-identifier", "hierarchy": {"widths": [5, 10]}},
    )
    release = nr.anonymize(table(age=ages), rules)
    assert "*" not in release.frame()["age"].to_list()
    assert release.manifest.suppressed > 0
    assert "97" not in release.manifest.column("age").values


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
    monkeypatch.setattr("noren.engines.local.OPEN_LIMIT", 30)
    with pytest.raises(nr.DataError, match="'age' has too many values for classes"):
        nr.compare(table(), policy("decoys"), among=["decoys"])
