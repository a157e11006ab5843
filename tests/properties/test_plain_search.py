"""The proof that groups under closeness are searched by first, against brute force and the search that comes after."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noren.methods.suppress import search as term_search
from noren.methods.suppress.beliefs import TermRequirement, estimated_prior
from noren.methods.suppress.search import FEW, MORE, GroupsResult, patience, search_groups
from tests.properties.test_term_search import Case, world


@pytest.mark.parametrize("priced", [False, True], ids=["equation 2", "prices"])
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_proof_alone_and_the_whole_search_find_the_optimum(priced: bool, data: st.DataObject) -> None:
    case = Case(data.draw, priced=priced)
    assume(case.kind != "cl")
    least = case.least()
    with patch.object(term_search, "_search", side_effect=AssertionError("so small a group needs no other search")):
        alone = case.search("best")
    with patch.object(term_search, "FEW", 0), patch.object(term_search, "patience", return_value=0):
        whole = case.search("best")
    for found in (alone, whole):
        assert found.optimal
        assert found.feasible == (least is not None)
        case.bears(found, least)


def searched(wanted: TermRequirement, threads: int) -> GroupsResult:
    knowledge, bounds, codes = world(5, 60)
    alpha = estimated_prior(bounds, codes, knowledge)
    groups = np.array([0, 3, 4, 10, 18, 27, 37, 48, 60])
    return search_groups(
        np.arange(60), groups, bounds, codes, knowledge, wanted, alpha, seconds=None, nodes=10**6, threads=threads
    )


@pytest.mark.parametrize("metric", ["l2", "emd"])
def test_groups_that_few_nodes_do_not_settle_are_searched_on(metric: str) -> None:
    """Few nodes, more nodes and the whole search: whichever ends first, the cost is the least there is."""
    wanted = TermRequirement("t", t=0.2 if metric == "l2" else 0.6, metric=metric)  # type: ignore[arg-type]
    usual = searched(wanted, 2)
    assert usual.searched.any()
    assert usual.optimal.all()
    for few, more in ((1, 10**6), (1, 0), (0, 0), (40, 0)):
        with patch.object(term_search, "FEW", few), patch.object(term_search, "patience", return_value=more):
            runs = [searched(wanted, threads) for threads in (1, 3)]
        for found in runs:
            assert found.optimal.all()
            assert found.cost == pytest.approx(usual.cost, abs=1e-9)
            assert found.lower_bound == pytest.approx(usual.cost, abs=1e-9)
        assert (runs[0].removed == runs[1].removed).all()


def test_all_groups_share_the_nodes_that_compiling_would_cost() -> None:
    assert patience(1, None) == MORE
    assert patience(4, None) == MORE // 4
    assert patience(4, 4 * 10**5) == 10**5, "a quarter of what a group has"
    assert patience(MORE // FEW, None) == 0, "no more than before"
    assert patience(1, 4 * FEW) == 0, "no more than before"
