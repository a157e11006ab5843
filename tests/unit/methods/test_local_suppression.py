"""Local suppression: what is withheld, what it costs beside the optimum, and what it refuses."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from noren.engines import Records
from noren.errors import PolicyError, RequirementNotMet
from noren.methods import METHODS
from noren.methods.local_suppression import SUPPRESSED, LocalSuppression, _Search
from noren.methods.requirements import compiled
from noren.models import MODELS
from noren.policy.policy import Policy
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.workflow.anonymize import run
from noren.workflow.verify import verify
from tests.oracles.local_suppression import cheapest


def records_of(rows: np.ndarray) -> Records:
    columns, codes = {}, {}
    for j in range(rows.shape[1]):
        d = int(rows[:, j].max()) + 1
        columns[f"q{j}"] = Column(role=Role.QUASI_IDENTIFIER).over(f"q{j}", Domain(tuple(f"v{v}" for v in range(d))))
        codes[f"q{j}"] = rows[:, j]
    return Records(len(rows), columns, codes)


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def shown(records: Records, method: LocalSuppression, k: int) -> tuple[list[tuple[str, ...]], float]:
    plan = method.recode(records, [MODELS["k-anonymity"](k=k)], order)
    rows, cost = [], 0.0
    for i in range(records.n):
        row = []
        for name in records.quasi:
            treatment = plan.recoded.get(name)
            value = records.columns[name].domain.values[records.codes[name][i]]
            label = value if treatment is None else treatment.nodes.labels[treatment.data[i]]
            assert label in (value, SUPPRESSED)
            cost += method.importance.get(name, 1.0) if label == SUPPRESSED else 0.0
            row.append(label)
        rows.append(tuple(row))
    return rows, cost


@pytest.mark.parametrize("seed", range(25))
def test_every_row_occurs_k_times_and_costs_little_more_than_the_least(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, q = (6, 2) if seed % 2 else (5, 3)
    rows = rng.integers(0, 3, (n, q))
    weights = rng.choice([1.0, 2.0, 5.0], q)
    k = int(rng.integers(2, 4))
    method = LocalSuppression(importance={f"q{j}": float(w) for j, w in enumerate(weights)})
    records = records_of(rows)
    published, cost = shown(records, method, k)
    assert min(Counter(published).values()) >= k
    least = cheapest([tuple(row) for row in rows.tolist()], k, weights.tolist())
    model = MODELS["k-anonymity"](k=k)
    bound = _Search.of(records, compiled(records, [model]), [model], method.importance, order(n)).lower_bound()
    assert bound <= least <= cost <= 2.5 * least


def test_a_table_that_holds_is_left_alone() -> None:
    rows = np.repeat([[0, 1], [1, 0]], 4, axis=0)
    published, cost = shown(records_of(rows), LocalSuppression(), 4)
    assert cost == 0
    assert Counter(published) == {("v0", "v1"): 4, ("v1", "v0"): 4}


def test_a_lone_record_borrows_instead_of_withholding_more() -> None:
    """One record differs in q0 from ten: its q0 and that of one lender, not both of its own cells and one more."""
    rows = np.array([[0, 0]] * 10 + [[1, 0]])
    _, cost = shown(records_of(rows), LocalSuppression(), 2)
    assert cost == 2


def test_importance_decides_which_column_gives() -> None:
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    for dear, kept in (("q0", 0), ("q1", 1)):
        published, _ = shown(records_of(rows), LocalSuppression(importance={dear: 10.0}), 2)
        hidden = [sum(row[j] == SUPPRESSED for row in published) for j in range(2)]
        assert (hidden[kept], hidden[1 - kept]) == (0, 4)


def table(n: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 40, n),
            "zip": rng.choice(["1000", "1001", "2000"], n),
            "job": rng.choice(list("ABCDE"), n, p=[0.5, 0.3, 0.1, 0.06, 0.04]),
            "disease": rng.choice(["flu", "cold", "hiv"], n),
        }
    )


ROLES = {"age": "quasi-identifier", "zip": {"role": "quasi-identifier", "hierarchy": {"prefix": [2, 1]}},
         "job": "quasi-identifier", "disease": "sensitive"}  # fmt: skip
ASKED = [{"model": "k-anonymity", "k": 5}, {"model": "frequency-l-diversity", "on": "disease", "l": 2}]


def test_a_release_is_verified_with_every_requirement(tmp_path) -> None:
    policy = Policy(mechanism="ignored", attributes=ROLES, require=ASKED, method={"name": "local-suppression"})
    outcome = run(table(), policy, to=tmp_path / "r")
    assert all(v.holds for v in verify(tmp_path / "r", policy, original=table()))
    assert outcome.facts.losses["smallest_class"] >= 5
    assert float(outcome.release.count({"disease": "flu"})) == (table()["disease"] == "flu").sum()
    assert "cells suppressed" in outcome.facts.notes[-1]


def test_what_cannot_be_met_raises() -> None:
    lonely = table().with_columns(disease=pl.lit("flu"))
    with pytest.raises(RequirementNotMet):
        run(lonely, Policy(mechanism="ignored", attributes=ROLES, require=ASKED, method={"name": "local-suppression"}))
    asked = [{"model": "k-anonymity", "k": 700}, ASKED[1]]
    with pytest.raises(RequirementNotMet, match="k = 700"):
        run(table(), Policy(mechanism="ignored", attributes=ROLES, require=asked, method={"name": "local-suppression"}))


def test_options_are_checked_before_any_data() -> None:
    for option in ({"importance": {"disease": 2.0}}, {"importance": {"age": 0}}, {"suppression": 0.1}):
        with pytest.raises(PolicyError):
            Policy(mechanism="ignored", attributes=ROLES, require=ASKED, method={"name": "local-suppression", **option})
    assert METHODS["local-suppression"].candidates(0.0) == [LocalSuppression()]
