"""Term suppression against slow oracles: brute force over all removals, and the adaptive search in plain Python."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.methods.suppress import search as term_search
from noren.methods.suppress.beliefs import TermRequirement, Unlinked, estimated_prior, measure_groups
from noren.methods.suppress.search import Search, search_group, search_groups
from noren.schema.knowledge import Knowledge
from tests.oracles import term_search as oracle

SEARCHES: tuple[Search, ...] = ("best", "adaptive", "depth-first")


class Case:
    """A small knowledge table, a group (with an unknown term now and then), a prior and a requirement."""

    def __init__(self, draw: Any, most_terms: int = 4, priced: bool = False, paired: bool = False) -> None:
        terms = draw(st.integers(1, 6))
        worth = st.lists(st.sampled_from([0.1, 1.0, 1.5, 7.0]), min_size=terms + 1, max_size=terms + 1)
        self.prices: list[float] | None = draw(worth) if priced else None
        self.sets = draw(st.lists(st.sets(st.integers(0, terms - 1)), min_size=1, max_size=10))
        weights = draw(st.none() | st.lists(st.sampled_from([1.0, 2.0, 5.5]), min_size=10, max_size=10))
        self.weights = None if weights is None else weights[: len(self.sets)]
        own = st.lists(st.integers(0, terms), max_size=most_terms, unique=True).map(sorted)
        fitting = st.sampled_from(self.sets).flatmap(
            lambda held: (
                st.lists(st.sampled_from(sorted(held)), max_size=most_terms, unique=True).map(sorted)
                if held
                else st.just([])
            )
        )
        self.group: list[list[int]] = draw(st.lists(fitting | own, min_size=1, max_size=3))
        alpha = np.array(draw(st.lists(st.integers(0, 9), min_size=len(self.sets), max_size=len(self.sets))), float)
        self.alpha: NDArray[np.float64] = alpha / max(1.0, alpha.sum())
        self.unlinked: Unlinked = draw(st.sampled_from(["ignore", "prior"]))
        self.kind = draw(st.sampled_from(["cl", "l2", "emd"]))
        c, l = draw(st.sampled_from([0.5, 1.0, 2.0, 3.3])), draw(st.integers(1, 6))  # noqa: E741
        t = draw(st.sampled_from([0.05, 0.2, 0.3, 0.5, 0.6]))
        self.rule = oracle.Rule(self.kind, c, l, t, self.alpha.tolist())
        self.wanted = (
            TermRequirement("cl", c=c, l=l)
            if self.kind == "cl"
            else TermRequirement("t", t=t, metric="l2" if self.kind == "l2" else "emd")
        )
        self.pairs: oracle.Pairs | None = None
        if paired:
            held = [(label, term) for label, own in enumerate(self.sets) for term in sorted(own)]
            some = st.sampled_from([0.01, 0.2, 0.5, 1.0, 1.0, 3.0]) | st.floats(0.001, 1.0)
            self.pairs = dict(zip(held, draw(st.lists(some, min_size=len(held), max_size=len(held))), strict=True))
        names = [f"term {i}" for i in range(terms)]
        self.knowledge = Knowledge.from_sets(
            self.sets,
            terms=names,
            weights=None if self.weights is None else np.array(self.weights),
            pair_weights=None if self.pairs is None else np.array(list(self.pairs.values())),
        )

    @property
    def believed(self) -> list[float] | None:
        return self.alpha.tolist() if self.unlinked == "prior" else None

    def search(self, how: Search, **limits: Any) -> term_search.GroupResult:
        options = {"seconds": None, "nodes": 10**7, **limits}
        return search_group(
            *csr(self.group), self.knowledge, self.wanted, self.alpha, search=how, unlinked=self.unlinked,
            prices=None if self.prices is None else np.array(self.prices), **options,
        )  # fmt: skip

    def least(self) -> float | None:
        return oracle.brute_force(
            self.group, self.sets, self.rule, self.weights, self.believed, self.prices, self.pairs
        )

    def bears(self, found: term_search.GroupResult, least: float | None) -> None:
        """Wherever the search stopped: bounds lie on their sides of the least cost, and what was found holds."""
        if least is not None:
            assert found.lower_bound <= least + 1e-9
            assert found.cost >= least - 1e-9
        if found.feasible:
            assert self.holds(found.removed)
            assert not found.optimal or found.cost == pytest.approx(least, abs=1e-9)

    def holds(self, removed: NDArray[np.bool_]) -> bool:
        left = kept(self.group, removed)
        return self.rule.holds(oracle.group_belief(left, self.sets, self.weights, self.believed, self.pairs))


def csr(group: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    bounds = np.concatenate(([0], np.cumsum([len(own) for own in group]))).astype(np.int64)
    return bounds, np.array([code for own in group for code in own], np.int64)


def kept(group: list[list[int]], removed: NDArray[np.bool_]) -> list[list[int]]:
    bounds, codes = csr(group)
    return [codes[a:b][~removed[a:b]].tolist() for a, b in pairwise(bounds)]


@pytest.mark.parametrize("priced", [False, True], ids=["equation 2", "prices"])
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_every_search_finds_the_optimum_and_knows_it(priced: bool, data: st.DataObject) -> None:
    case = Case(data.draw, priced=priced)
    least = case.least()
    for how in SEARCHES:
        found = case.search(how)
        assert found.optimal
        assert found.feasible == (least is not None)
        if least is not None:
            assert found.cost == pytest.approx(least, abs=1e-9)
            assert found.lower_bound == found.cost
            assert case.holds(found.removed)
        else:
            assert found.cost == np.inf
            assert not found.removed.any()


@pytest.mark.parametrize("priced", [False, True], ids=["equation 2", "prices"])
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_what_stops_early_is_still_right(priced: bool, data: st.DataObject) -> None:
    """A result cut short holds the requirement, and its lower bound lies below the optimum."""
    case = Case(data.draw, priced=priced)
    least = case.least()
    for how in SEARCHES:
        for nodes in (1, 7, 40):
            found = case.search(how, nodes=nodes)
            case.bears(found, least)
            again = case.search(how, nodes=nodes)
            assert (again.cost, again.nodes) == (found.cost, found.nodes)
            assert (again.removed == found.removed).all()


@given(st.data(), st.sampled_from([5, 60, 10**7]))
@settings(max_examples=100, deadline=None)
def test_the_adaptive_search_walks_the_paper_s_tree(data: st.DataObject, budget: int) -> None:
    case = Case(data.draw, most_terms=5)
    if case.kind == "emd" or case.weights is not None or case.unlinked == "prior":
        return
    slow = oracle.AdaptiveSearch(case.group, case.sets, case.rule, budget)
    cost = slow.run()
    fast = case.search("adaptive", nodes=budget)
    assert fast.nodes == slow.nodes
    assert fast.cost == pytest.approx(np.inf if cost is None else cost)


@pytest.mark.parametrize("paired", [False, True], ids=["labels", "pairs"])
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_groups_are_measured_as_defined(paired: bool, data: st.DataObject) -> None:
    case = Case(data.draw, paired=paired)
    n, d = len(case.sets), len(case.group)
    beta = oracle.group_belief(case.group, case.sets, case.weights, case.believed, case.pairs)
    bounds, codes = csr(case.group)
    row = measure_groups(
        np.arange(d), np.array([0, d]), bounds, codes, case.knowledge, case.alpha, l=case.rule.l, unlinked=case.unlinked
    )[0]
    assert row[0] == sum(bool(oracle.labels_of(own, case.sets)) for own in case.group)
    assert row[1] == pytest.approx(max(beta))
    assert row[2] == pytest.approx(oracle.tail(beta, case.rule.l), abs=1e-12)
    assert row[3] ** 0.5 == pytest.approx(oracle.distance(beta, case.alpha.tolist(), "l2"), abs=1e-7)
    assert row[4] == pytest.approx(oracle.distance(beta, case.alpha.tolist(), "emd"), abs=1e-12)
    ignored = oracle.group_belief(case.group, case.sets, case.weights, None, case.pairs)
    assert estimated_prior(bounds, codes, case.knowledge) == pytest.approx(np.array(ignored), abs=1e-12)
    assert len(beta) == n


def world(seed: int, records: int) -> tuple[Knowledge, NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    sets = [rng.choice(30, rng.integers(5, 12), replace=False).tolist() for _ in range(120)]
    knowledge = Knowledge.from_sets(sets, terms=[f"term {i}" for i in range(30)])
    rows = [sorted(rng.choice(sets[rng.integers(120)], 5, replace=False).tolist()) for _ in range(records)]
    return knowledge, *csr(rows)


def test_many_groups_are_the_same_on_any_number_of_threads() -> None:
    knowledge, bounds, codes = world(3, 60)
    order = np.random.default_rng(4).permutation(60)
    groups = np.array([0, 3, 4, 10, 20, 35, 60])
    wanted = TermRequirement("cl", c=1.0, l=8)
    seen: list[tuple[int, int, float]] = []
    runs = [
        search_groups(
            order, groups, bounds, codes, knowledge, wanted, seconds=None, nodes=3000, threads=threads,
            progress=lambda *now: seen.append(now),
        )
        for threads in (1, 3)
    ]  # fmt: skip
    assert (runs[0].removed == runs[1].removed).all()
    assert runs[0].nodes == runs[1].nodes
    assert seen[-1][:2] == (6, 6)
    assert seen[-1][2] == pytest.approx(runs[0].cost.mean())
    left = ~runs[0].removed
    rest = np.concatenate(([0], np.cumsum(left)))[bounds]
    measures = measure_groups(order, groups, rest, codes[left], knowledge, l=8)
    assert wanted.holds(measures).all()
    assert (runs[0].cost[~runs[0].searched] == 0).all()
    assert (runs[0].lower_bound <= runs[0].cost + 1e-12).all()


def test_the_time_bound_in_all_leaves_a_valid_result() -> None:
    knowledge, bounds, codes = world(5, 40)
    groups = np.arange(0, 41, 4)
    wanted = TermRequirement("cl", c=1.0, l=8)
    done = search_groups(
        np.arange(40), groups, bounds, codes, knowledge, wanted, total_seconds=0.0, seconds=None, threads=1
    )
    assert done.feasible.all()


def test_records_with_many_terms_are_searched_but_not_by_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of more than 64 terms; with too many options the result holds, and nothing false is called proven."""
    rng = np.random.default_rng(8)
    sets = [rng.choice(80, 72, replace=False).tolist() for _ in range(40)]
    knowledge = Knowledge.from_sets(sets, terms=[f"term {i}" for i in range(80)])
    group = [sorted(sets[0])[:70], sorted(sets[1])[:3]]
    wanted = TermRequirement("cl", c=1.0, l=6)
    monkeypatch.setattr("noren.methods.suppress.search.MOST_OPTIONS", 64)
    found = search_group(*csr(group), knowledge, wanted, seconds=None, nodes=20_000)
    assert found.feasible
    beta = oracle.group_belief(kept(group, found.removed), [set(held) for held in sets])
    assert oracle.Rule("cl", 1.0, 6).holds(beta)
    assert found.lower_bound <= found.cost
    with pytest.raises(NorenError, match="more than 64 different label sets"):
        search_group(*csr(group), knowledge, wanted, search="adaptive")


def test_a_price_is_a_positive_number() -> None:
    knowledge = Knowledge.from_sets([[0], [1]], terms=["a", "b"])
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(NorenError, match="must be a positive number"):
            search_group(*csr([[0]]), knowledge, TermRequirement("cl"), prices=np.array([1.0, bad]))


def test_dear_terms_stay_and_cheap_ones_go() -> None:
    """Two labels share no record's both terms: one term must go, and prices say which."""
    knowledge = Knowledge.from_sets([[0, 1], [0], [1]], terms=["a", "b"])
    wanted = TermRequirement("cl", c=1.0, l=2)
    for dear in (0, 1):
        prices = np.array([3.0 if code == dear else 1.0 for code in (0, 1)])
        for how in SEARCHES:
            found = search_group(*csr([[0, 1]]), knowledge, wanted, search=how, nodes=1000, seconds=None, prices=prices)
            assert kept([[0, 1]], found.removed) == [[dear]]
            assert found.cost == pytest.approx(0.25)


def test_closeness_needs_a_prior() -> None:
    knowledge = Knowledge.from_sets([[0]], terms=["x"])
    with pytest.raises(NorenError, match="need a prior"):
        search_group(*csr([[0]]), knowledge, TermRequirement("t", t=0.1))


def test_a_group_without_records_or_terms_costs_nothing() -> None:
    knowledge = Knowledge.from_sets([[0], [0]], terms=["x"])
    assert search_group(*csr([]), knowledge, TermRequirement("cl", l=2)).cost == 0
    found = search_group(*csr([[], []]), knowledge, TermRequirement("cl", l=2))
    assert (found.cost, found.optimal, found.feasible) == (0, True, True)
    none = search_group(*csr([[], []]), knowledge, TermRequirement("cl", l=3))
    assert (none.optimal, none.feasible) == (True, False)
