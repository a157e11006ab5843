"""'suppress' on random tables and knowledge: true, safe, as cheap as brute force, and refused only where it must be."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren as nr
from noren.workflow.anonymize import run
from tests.oracles.term_search import Rule, brute_force
from tests.oracles.terms import Demand, World, groups
from tests.unit.term_world import check, known

LETTERS = "abcd"


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Two to five labels over four terms, some with weights, some with priors."""
    sets = draw(st.lists(st.frozensets(st.sampled_from(LETTERS), max_size=4), min_size=2, max_size=5))
    labels = {f"L{i}": held for i, held in enumerate(sets)}
    labels["L0"] = labels["L0"] | {"a"}
    weights = {}
    if draw(st.booleans()):
        weights = {label: Fraction(draw(st.integers(1, 4))) for label in labels}
    priors = None
    if draw(st.booleans()):
        parts = [draw(st.integers(1, 4)) for _ in labels]
        priors = {label: Fraction(part, sum(parts)) for label, part in zip(labels, parts, strict=True)}
    return World(labels, weights, priors)


demands = st.one_of(
    st.builds(Demand, st.just("cl"), st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3)]), st.just(2)),
    st.builds(
        Demand,
        st.sampled_from(["l2", "emd"]),
        t=st.sampled_from([Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)]),
        prior=st.booleans(),
    ),
)
people = st.lists(
    st.tuples(st.integers(0, 3), st.frozensets(st.sampled_from(LETTERS + "?"), max_size=3)), min_size=1, max_size=9
)


def model_of(demand: Demand) -> dict[str, Any]:
    unlinked = "prior" if demand.prior else "ignore"
    if demand.kind == "cl":
        return {"model": "qs-diversity", "on": "signs", "c": float(demand.c), "l": demand.l, "unlinked": unlinked}
    return {
        "model": "qs-closeness", "on": "signs", "t": float(demand.t), "distance": demand.kind, "unlinked": unlinked
    }  # fmt: skip


def table(rows: list[tuple[int, frozenset[str]]]) -> pa.Table:
    signs = pa.array([sorted(own) for _, own in rows], pa.list_(pa.string()))
    return pa.table({"row": range(len(rows)), "age": [age for age, _ in rows], "signs": signs})


def policy(world: World, demand: Demand, **method: Any) -> nr.Policy:
    signs = {"role": "quasi-sensitive", "knowledge": known(world), "unknown": "keep"}
    return nr.Policy(
        attributes={"row": "plain", "age": "quasi-identifier", "signs": signs},
        require=[model_of(demand)],
        method={"name": "suppress", "nodes": 3_000} | method,
    )


def cheapest(world: World, demand: Demand, group: list[list[str]], everybody: list[list[str]]) -> float | None:
    """The least cost of one group by trying every removal."""
    code = {letter: i for i, letter in enumerate(LETTERS + "?")}
    alpha = [float(share) for share in world.alpha(everybody).values()]
    rule = Rule(demand.kind, float(demand.c), demand.l, float(demand.t), alpha)
    return brute_force(
        [[code[term] for term in own] for own in group],
        [{code[term] for term in held} for held in world.labels.values()],
        rule,
        [float(world.weights.get(label, 1)) for label in world.labels],
        alpha if demand.prior else None,
    )


@settings(max_examples=60)
@given(world=worlds(), demand=demands, rows=people, k=st.integers(1, 3), how=st.sampled_from(["merge", "drop"]))
def test_releases_are_true_and_safe(
    world: World, demand: Demand, rows: list[tuple[int, frozenset[str]]], k: int, how: str
) -> None:
    original = table(rows)
    k = min(k, len(rows))
    try:
        made = run(original, policy(world, demand, k=k, infeasible=how, suppression=0.4 if how == "drop" else 0.0))
    except nr.errors.RequirementNotMet:
        if how == "merge":
            everybody = [own for _, own in rows]
            assert not demand.met(world, [()] * len(rows), world.alpha(everybody)), "without terms, it would do"
        return
    shown = check(made.release, original, demand, world)
    assert len(shown) >= 0.6 * len(rows)
    assert min(map(len, groups(shown, ["age"]))) >= k
    assert all(verdict.holds is True for verdict in made.facts.verdicts)


tiny = st.lists(
    st.tuples(st.integers(0, 1), st.frozensets(st.sampled_from(LETTERS + "?"), max_size=3)), min_size=1, max_size=4
)


@settings(max_examples=40)
@given(world=worlds(), demand=demands, rows=tiny)
def test_costs_are_those_of_brute_force(world: World, demand: Demand, rows: list[tuple[int, frozenset[str]]]) -> None:
    """With k = 1 the groups are known beforehand, so every group's least cost is."""
    everybody = [sorted(own) for _, own in rows]
    wanted = []
    for age in sorted({age for age, _ in rows}):
        group = [sorted(own) for years, own in rows if years == age]
        wanted.append((len(group), cheapest(world, demand, group, everybody)))
    rules = policy(world, demand, infeasible="refuse")
    if any(cost is None for _, cost in wanted):
        count = sum(cost is None for _, cost in wanted)
        with pytest.raises(nr.errors.RequirementNotMet, match=f"{count} of {len(wanted)} groups"):
            run(table(rows), rules)
        return
    (figures,) = run(table(rows), rules).facts.terms
    order = np.lexsort((figures.cost, figures.records))
    found = [(int(figures.records[g]), float(figures.cost[g])) for g in order]
    assert figures.optimal.all()
    for (size, cost), (many, least) in zip(found, sorted(wanted), strict=True):  # type: ignore[type-var]
        assert size == many
        assert abs(cost - least) < 1e-9  # type: ignore[operator]
