"""A budget of local privacy, split over columns: how much each may tell, and that nothing tells more."""

from __future__ import annotations

from itertools import product
from math import atanh, exp, inf, log

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren as nr
from noren.designs import DecoyDesign
from noren.designs.decoys import largest_p
from noren.methods.budgets import Drawn, epsilons, expected_errors, split
from noren.models import LocalPrivacy, TCloseness

SIZES = {"sex": 2, "job": 14, "town": 41}


def people(n: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame({name: rng.integers(0, d, n).astype(str) for name, d in SIZES.items()})


def policy(*require: dict, method: dict | None = None, **more) -> nr.Policy:
    attributes = {name: {"role": "sensitive", "values": [str(i) for i in range(d)]} for name, d in SIZES.items()}
    return nr.Policy(attributes=attributes, require=list(require), method={"name": "decoys"} | (method or {}), **more)


ALL = {"model": "local-privacy", "on": list(SIZES), "epsilon": 3.0}


@pytest.mark.parametrize(("t", "epsilon"), [(0.1, 0.401), (0.2, 0.811), (0.3, 1.238), (0.5, 2.197)])
def test_closeness_for_every_prior_is_an_epsilon(t, epsilon):
    assert TCloseness(on="job", t=t).epsilon_each == pytest.approx(epsilon, abs=5e-4)
    assert TCloseness(on="job", t=t).epsilon_each == pytest.approx(log(((1 + t) / (1 - t)) ** 2))


@given(d=st.integers(2, 80), epsilon=st.floats(0.05, 6), least=st.integers(1, 5))
@settings(max_examples=60)
def test_the_best_set_size_is_the_best_of_all(d, epsilon, least):
    if least >= d:
        return
    best = DecoyDesign.within(d, exp(epsilon), least)
    others = [DecoyDesign(d=d, eta=eta, p=largest_p(d, eta, exp(epsilon))) for eta in range(least, d)]
    assert best.eta >= least
    assert best.rho <= exp(epsilon)
    assert best.expected_l2(1000) <= min(one.expected_l2(1000) for one in others) * (1 + 1e-9)
    free = DecoyDesign.within(d, exp(epsilon))
    assert abs(free.eta - d / (exp(epsilon) + 1)) < 1 or free.eta in (1, d - 1)


@pytest.mark.parametrize("total", [0.5, 3.0, 8.0])
def test_the_split_is_the_best_of_a_fine_grid(total):
    columns = {name: Drawn(d) for name, d in SIZES.items()}
    found = split([(total, list(SIZES))], columns)
    assert sum(found.values()) == pytest.approx(total, rel=1e-3)
    assert sum(found.values()) <= total * (1 + 1e-9)

    def cost(parts: tuple[float, ...]) -> float:
        return sum(expected_errors(columns[n], np.array([e]))[0] for n, e in zip(SIZES, parts, strict=True))

    grid = [k / 60 * total for k in range(1, 60)]
    best = min(cost((a, b, total - a - b)) for a, b in product(grid, grid) if a + b < total - 1e-9)
    assert cost(tuple(found.values())) <= best * 1.002


def test_bounds_of_single_columns_and_fixed_parameters_come_first():
    asked = [
        LocalPrivacy(on=("sex", "job"), epsilon=2.0),
        TCloseness(on="job", t=0.2),
        LocalPrivacy(on="sex", epsilon=9),
    ]
    columns = {"sex": Drawn(2), "job": Drawn(14, limit=4 * atanh(0.2))}
    found = epsilons(asked, columns)
    assert found["job"] <= 4 * atanh(0.2)
    assert sum(found.values()) == pytest.approx(2.0, rel=2e-3)
    found = epsilons(asked[:1], {"sex": Drawn(2, fixed=0.5), "job": Drawn(14)})
    assert found["job"] == pytest.approx(1.5, rel=1e-3)
    generous = epsilons([LocalPrivacy(on="job", epsilon=20)], {"job": Drawn(14, limit=0.8)})
    assert generous == {"job": 0.8}, "a budget that does not bind costs nothing"
    with pytest.raises(nr.errors.PolicyError, match="p = 1 has none"):
        epsilons(asked[:1], {"sex": Drawn(2, fixed=inf), "job": Drawn(14)})


@pytest.mark.parametrize("method", ["decoys", "pram"])
def test_a_release_keeps_the_budget_and_says_so(method, tmp_path):
    release = nr.anonymize(people(), policy(ALL, method={"name": method}), to=tmp_path / "release")
    total = sum(design.epsilon for design in release.designs.values())
    assert 2.9 < total <= 3.0 + 1e-9
    (verdict,) = nr.verify(tmp_path / "release", original=people())[:1]
    assert (verdict.model, verdict.column, verdict.holds) == ("local-privacy", "sex, job, town", True)
    assert verdict.achieved == pytest.approx(total)
    assert verdict.basis == "the published design"
    stricter = policy(ALL | {"epsilon": 2.8}, method={"name": method})
    assert nr.verify(release, stricter)[0].holds is False


def test_the_stricter_of_closeness_and_budget_rules():
    release = nr.anonymize(people(), policy(ALL, {"model": "t-closeness", "on": "job", "t": 0.1}))
    assert release.designs["job"].epsilon <= 4 * atanh(0.1) + 1e-9
    assert all(verdict.holds for verdict in nr.verify(release))
    both = policy(ALL, {"model": "frequency-l-diversity", "on": ["job", "town"], "l": 8})
    release = nr.anonymize(people(), both)
    assert min(release.designs[name].eta for name in ("job", "town")) >= 8
    assert sum(design.epsilon for design in release.designs.values()) <= 3.0 + 1e-9


def test_sets_that_always_hold_the_truth_have_no_epsilon():
    fixed = policy(ALL, method={"parameters": {"job": {"eta": 3}}})
    with pytest.raises(nr.errors.PolicyError, match="p = 1 has none"):
        nr.anonymize(people(), fixed)
    diverse = policy({"model": "frequency-l-diversity", "on": list(SIZES), "l": 2}, method={
        "parameters": {"sex": {"eta": 2}}})  # fmt: skip
    verdict = nr.verify(nr.anonymize(people(), diverse), policy(ALL))[0]
    assert (verdict.holds, verdict.achieved) == (False, inf)
    assert "no finite epsilon" in verdict.statement


def test_people_with_several_values_have_more_than_one_draw():
    """One value in all rows of a person is one draw; different values are several, and that does not hold."""
    table = people(300).with_columns(who=pl.Series([f"p{i // 2}" for i in range(300)]))
    attributes = {"who": "identifier", "sex": {"role": "sensitive", "values": ["0", "1"]}}
    rules = nr.Policy(
        attributes=attributes,
        require=[{"model": "local-privacy", "on": "sex", "epsilon": 1.0}],
        people={"key": "who"},
    )
    with pytest.raises(nr.errors.RequirementNotMet, match="local-privacy on 'sex'"):
        nr.anonymize(table.select("who", "sex"), rules)
    same = table.select("who", "sex").with_columns(pl.col("sex").first().over("who"))
    release = nr.anonymize(same, rules)
    assert release.verdicts[0].holds
    assert nr.verify(release)[0].holds is None, "a recipient does not know whose rows they are"


def test_a_client_draws_for_every_prior():
    rules = nr.Policy(
        attributes={"job": {"role": "sensitive", "values": ["a", "b", "c", "d"]}},
        require=[
            {"model": "t-closeness", "on": "job", "t": 0.3},
            {"model": "local-privacy", "on": "job", "epsilon": 1.0},
        ],
    )
    client = nr.Collector(rules)
    release = client.release(client.report({"job": value}) for value in "abcd" * 50)
    assert [verdict.holds for verdict in nr.verify(release)] == [True, True]
    assert client.designs["job"].epsilon == pytest.approx(1.0, rel=2e-3)
    data = rules.with_method(nr.methods.Decoys(prior="data"))
    with pytest.raises(nr.errors.PolicyError, match="a client does not know the overall distribution"):
        nr.Collector(data)


def test_closeness_over_a_tree_is_met_by_sets():
    tree = {"tree": {"low": ["a", "b"], "high": ["c", "d"]}}
    rules = nr.Policy(
        attributes={"job": {"role": "sensitive", "hierarchy": tree}},
        require=[{"model": "t-closeness", "on": "job", "t": 0.2, "distance": "tree"}],
    )
    table = pl.DataFrame({"job": ["a"] * 50 + ["b"] * 30 + ["c"] * 15 + ["d"] * 5})
    release = nr.anonymize(table, rules)
    assert nr.verify(release)[0].holds is True
    loose = rules.with_method(nr.methods.Decoys(parameters={"job": {"eta": 2, "p": 0.9}}))
    with pytest.raises(nr.errors.RequirementNotMet, match="t-closeness"):
        nr.anonymize(table, loose)
