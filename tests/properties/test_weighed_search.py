"""Suppression where pairs of a label and a term have weights, against brute force over all removals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.errors import NorenError
from noren.methods.suppress.beliefs import TermRequirement, measure_groups
from noren.methods.suppress.search import Setting, search_group, search_groups
from noren.ragged import owners
from noren.schema.knowledge import Knowledge
from tests.oracles import term_search as oracle
from tests.properties.test_term_search import Case, csr, kept, world


@pytest.mark.parametrize("priced", [False, True], ids=["equation 2", "prices"])
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_the_cheapest_removal_is_found_and_known(priced: bool, data: st.DataObject) -> None:
    case = Case(data.draw, priced=priced, paired=True)
    least, found = case.least(), case.search("best")
    assert found.optimal
    assert found.feasible == (least is not None)
    if least is None:
        assert found.cost == np.inf
        assert not found.removed.any()
    else:
        assert found.cost == pytest.approx(least, abs=1e-9)
        assert found.lower_bound == found.cost
        assert case.holds(found.removed)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_what_stops_early_is_still_right(data: st.DataObject) -> None:
    case = Case(data.draw, paired=True)
    least = case.least()
    for nodes in (1, 7, 40):
        case.bears(case.search("best", nodes=nodes), least)


@pytest.mark.parametrize("room", [4, 7])
@given(st.data())
@settings(max_examples=80, deadline=None)
def test_options_that_are_not_all_are_never_called_the_cheapest(room: int, data: st.DataObject) -> None:
    """With room for a few options a record, results hold and bounds stay below."""
    case = Case(data.draw, paired=True)
    least = case.least()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("noren.methods.suppress.search.MOST_OPTIONS", room)
        found = case.search("best")
    if least is not None:
        assert found.lower_bound <= least + 1e-9
        assert found.cost >= least - 1e-9
    if found.feasible:
        assert case.holds(found.removed)
    if found.optimal:
        assert found.feasible == (least is not None)
        assert least is None or found.cost == pytest.approx(least, abs=1e-9)


def weighed(knowledge: Knowledge, seed: int) -> Knowledge:
    drawn = np.random.default_rng(seed).beta(2, 2, len(knowledge.codes))
    return Knowledge(**{**vars_of(knowledge), "pair_weights": drawn})


def vars_of(knowledge: Knowledge) -> dict[str, object]:
    return {name: getattr(knowledge, name) for name in knowledge.__dataclass_fields__}


def test_records_of_many_terms_are_searched_in_blocks() -> None:
    """Forty terms have a million million subsets: what is found holds, and nothing is called proven."""
    rng = np.random.default_rng(8)
    sets = [rng.choice(80, 72, replace=False).tolist() for _ in range(40)]
    plain = Knowledge.from_sets(sets, terms=[f"term {i}" for i in range(80)])
    knowledge = weighed(plain, 9)
    start = {(label, term): 0.0 for label, held in enumerate(sets) for term in held}
    order = [(label, term) for label, held in enumerate(sets) for term in sorted(held)]
    assert knowledge.pair_weights is not None
    pairs = start | dict(zip(order, knowledge.pair_weights.tolist(), strict=True))
    group = [sorted(sets[0])[:70], sorted(sets[1])[:40], sorted(sets[2])[:3]]
    for kind in ("cl", "l2", "emd"):
        alpha = np.full(40, 1 / 40)
        rule = oracle.Rule(kind, 1.0, 6, 0.2, alpha.tolist())
        wanted = TermRequirement("cl", c=1.0, l=6) if kind == "cl" else TermRequirement("t", t=0.2, metric=kind)  # type: ignore[arg-type]
        found = search_group(*csr(group), knowledge, wanted, alpha, seconds=None, nodes=20_000)
        assert found.feasible
        assert not found.optimal
        assert found.lower_bound == 0
        assert 0 < found.cost < 1
        held = [set(own) for own in sets]
        assert rule.holds(oracle.group_belief(kept(group, found.removed), held, pairs=pairs))


def test_weights_that_are_equal_within_every_term_change_nothing() -> None:
    """Not a number, not a removal, not a node: only ratios within a term tell labels apart."""
    knowledge, bounds, codes = world(3, 60)
    once = np.ones(len(knowledge.codes))
    scale = np.random.default_rng(1).uniform(0.1, 9, len(knowledge.terms))[knowledge.codes]
    groups, wanted = np.arange(0, 61, 4), TermRequirement("cl", c=1.0, l=8)
    given = (np.arange(60), groups, bounds, codes)
    plain = search_groups(*given, knowledge, wanted, seconds=None, nodes=3000)
    for weights in (once, scale):
        same = Knowledge(**{**vars_of(knowledge), "pair_weights": weights})
        assert same.pairs is None
        found = search_groups(*given, same, wanted, seconds=None, nodes=3000)
        assert (found.removed == plain.removed).all()
        assert (found.cost == plain.cost).all()
        assert found.nodes == plain.nodes
        assert (measure_groups(*given, same, l=8) == measure_groups(*given, knowledge, l=8)).all()


def test_all_subsets_with_equal_weights_are_the_closed_sets() -> None:
    """The options of weighed pairs, asked of weights that say nothing, are those of label sets, one for one."""
    from noren.methods.suppress.beliefs import postings_of
    from noren.methods.suppress.kernels import options as kernel

    knowledge, bounds, codes = world(7, 12)
    setting = Setting.of(knowledge, TermRequirement("cl", l=3), None, "ignore")
    plain = setting.options(bounds, codes)
    postings = postings_of(knowledge)
    silent = postings._replace(logs=np.zeros(len(postings.of)))
    every = kernel.group_options(bounds, codes, np.zeros(0), silent, setting.alpha, False, 4096)
    assert every.complete.all()
    assert (every.first == plain.first).all()
    assert every.cost == pytest.approx(plain.cost)
    owner = owners(plain.first)
    assert sorted(zip(owner, every.kept, strict=True)) == sorted(zip(owner, plain.kept, strict=True))


@pytest.mark.parametrize("search", ["adaptive", "depth-first"])
def test_the_paper_s_searches_refuse_pair_weights_by_name(search: str) -> None:
    knowledge = Knowledge.from_sets([[0, 1], [0, 1]], terms=["a", "b"], pair_weights=np.array([1.0, 2.0, 1.0, 1.0]))
    with pytest.raises(NorenError, match=f"'{search}' works on label sets"):
        search_group(*csr([[0]]), knowledge, TermRequirement("cl"), search=search)  # type: ignore[arg-type]
