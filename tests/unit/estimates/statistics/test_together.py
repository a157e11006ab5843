"""Columns hidden together: each member is asked for like any column."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.schema.hierarchy import Hierarchy

FAR = 6.5
TREE = Hierarchy((tuple("012345"), ("low", "low", "mid", "mid", "high", "high"), ("*",) * 6))


def test_members_of_a_composite_have_means_models_and_relations() -> None:
    rng = np.random.default_rng(11)
    n = 3_000
    town, code = rng.integers(0, 2, n), rng.integers(0, 6, n)
    pay = code // 2 + rng.integers(0, 2, n)
    frame = pl.DataFrame({"town": np.array(["Bonn", "Ulm"])[town], "code": code, "pay": pay})
    policy = nr.Policy(
        attributes={"town": "plain", "code": {"role": "sensitive", "hierarchy": TREE}, "pay": "sensitive"},
        together=[["code", "pay"]],
        require=[nr.models.FrequencyLDiversity(on=["code", "pay"], l=2)],
        dependence={"most": 1.0},
    )
    release = nr.anonymize(frame, policy)
    truth = dict(frame.group_by("town").agg(pl.col("pay").mean()).iter_rows())
    for row in release.mean("pay", by="town"):
        assert abs(row["mean"] - truth[row["town"]]) < FAR * row["std_error"]
    low = release.mean("pay", where={"code": "low", "town": "Ulm"})[0]
    own = pay[(code < 2) & (town == 1)].mean()
    assert abs(low["mean"] - own) < FAR * low["std_error"] < 2.5, "codes above have means of 1.5 and 2.5"
    found = release.correlation("code", "pay")[0]
    assert abs(found["correlation"] - np.corrcoef(code, pay)[0, 1]) < FAR * found["std_error"]
    fit = release.regress("pay ~ code")
    slope = np.polyfit(code, pay, 1)[0]
    assert abs(fit.params["code"] - slope) < FAR * fit.frame["std_error"][1]
    with pytest.raises(QueryError, match="published together as tuples"):
        release.test("code", "pay")
