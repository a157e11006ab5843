"""Whether columns tell each other is a function of table and policy: no draw, no secret and no order decides it."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.workflow import dependence
from noren.workflow.dependence import told
from noren.workflow.prepare import prepare
from noren.workflow.settling import decide_plan, draft_plan
from tests.unit.workflow.test_dependence import near

REQUIRED: dict[str, dict[str, Any]] = {
    "decoys": {"require": [{"model": "frequency-l-diversity", "on": ["a", "b"], "l": 3}]},
    "decoys that may lack the truth": {"require": [{"model": "t-closeness", "on": ["a", "b"], "t": 0.9}]},
    "pram": {
        "require": [{"model": "t-closeness", "on": ["a", "b"], "t": 0.9}],
        "method": {"name": "pram"},
    },
    "semantic": {
        "require": [{"model": "semantic-diversity", "on": ["a", "b"], "l": 2, "d": 2}],
        "attributes": {name: {"role": "sensitive", "distance": "ordinal"} for name in "ab"},
    },
    "classes": {
        "require": [{"model": "k-anonymity", "k": 200}, {"model": "frequency-l-diversity", "on": "b", "l": 3}],
        "attributes": {"a": {"role": "quasi-identifier", "hierarchy": {"prefix": [2, 1]}}},
        "method": [{"name": "incognito", "on": ["a"]}, {"name": "decoys", "on": ["b"]}],
    },
}
COPIED = 0.1
"""The share of people for whom `b` repeats `a`, near the limit of 5%."""


def people(n: int = 1500, copied: float = COPIED, d: int = 12, seed: int = 4) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, d, n)
    b = np.where(rng.random(n) < copied, a + d, rng.integers(0, d, n))
    return pl.DataFrame({"id": np.arange(n), "a": a + 100, "b": b + 100}).with_columns(pl.col("a", "b").cast(str))


def policy(way: str, **more: Any) -> nr.Policy:
    given = REQUIRED[way]
    roles = {"id": "identifier", "a": "sensitive", "b": "sensitive"} | given.get("attributes", {})
    return nr.Policy(attributes=roles, require=given["require"], method=given.get("method", {"name": "decoys"}), **more)


def measured(table: pl.DataFrame, rules: nr.Policy) -> list[dependence.Told]:
    found = prepare(table, rules)
    return sorted(told(draft_plan(found, decide_plan(found, rules), rules)), key=lambda one: (one.protected, one.by))


@pytest.mark.parametrize("way", REQUIRED)
def test_the_verdict_is_one_for_every_draw_and_order(way: str) -> None:
    """1,500 rows, twelve times: fresh keys, another order of rows and of the values' first appearance."""
    table, rules = people(), policy(way)
    first = measured(table, rules)
    assert first or way == "classes"
    for run in range(12):
        assert measured(table.sample(fraction=1.0, shuffle=True, seed=run), rules) == first


def test_no_secret_decides(tmp_path: Any) -> None:
    """The limit lies in the middle of what single draws come to: each of ten secrets gets the same answer."""
    table = people()
    (one, other) = measured(table, policy("decoys"))
    verdicts = []
    for number in range(10):
        nr.Secret.create(tmp_path / f"{number}.key")
        randomness = {"record_key": "id", "secret": str(tmp_path / f"{number}.key")}
        limit = (max(one.more, other.more) + max(one.at_most, other.at_most)) / 2
        rules = policy("decoys", randomness=randomness, dependence={"most": limit})
        try:
            nr.anonymize(table, rules)
            verdicts.append("published")
        except nr.errors.PolicyError:
            verdicts.append("refused")
    assert verdicts == ["refused"] * 10, "the error of the draw is counted against the holder"


@pytest.mark.parametrize("way", ["decoys", "decoys that may lack the truth", "pram", "semantic"])
def test_the_expectation_is_the_mean_of_draws(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of 40 real draws lie around the expectation within six standard errors of it and of them."""
    table, rules, draws = people(copied=0.5), policy(way), 40
    expected = {(one.protected, one.by): one for one in measured(table, rules)}
    assert any(one.more > 0.01 for one in expected.values())
    real: dict[tuple[str, str], list[float]] = {pair: [] for pair in expected}
    made = prepare(table, rules)
    for _ in range(draws):
        draft = draft_plan(made, decide_plan(made, rules), rules)
        truth, cells = dependence._sampled(draft)
        statements = {s.name: s for s in draft.statements}
        rows = {name: dependence._Possible.of(statements[name], cells[name]) for name in truth}
        for (own, by), shares in real.items():
            listed = rows[own].listed(statements[own].d)
            given = (truth[own], truth[by], statements[own].d, statements[by].d)
            shares.append(dependence._told(listed, rows[by], *given))
    for pair, one in expected.items():
        error = np.sqrt(one.more * (1 - one.more) * (1 / one.asked + 1 / (draws * one.people)))
        assert np.mean(real[pair]) == pytest.approx(one.more, abs=6 * error + 1e-3)


def test_the_expectation_is_the_sum_over_pairs_of_values() -> None:
    """Sets of three among twelve, b a copy of a: one value is left where none of two decoys is among two others."""
    found = measured(people(6000, copied=1.0), policy("decoys"))
    apart = comb(9, 2) / comb(11, 2)
    for one in found:
        assert one.more == near(apart, one.asked)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("skewed", [False, True])
def test_a_harmless_policy_for_400_records_is_not_refused(seed: int, skewed: bool) -> None:
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, 21) if skewed else np.ones(20)
    table = pl.DataFrame({name: [f"v{x}" for x in rng.choice(20, 400, p=shares / shares.sum())] for name in "abcdef"})
    roles = {name: "sensitive" if name in "abc" else "plain" for name in table.columns}
    rules = nr.Policy(attributes=roles, require=[nr.models.FrequencyLDiversity(on=["a", "b", "c"], l=2)])
    assert nr.anonymize(table, rules).records == 400
