"""Suppression where pairs of a label and a term have weights, against brute force over all removals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.errors import NorenError
from noren.methods.suppress.beliefs import TermRequirement, measure_groups
from noren.methods.suppress.search import search_group, search_groups
from noren.methods.suppress.setting import Setting
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
        found = case.search("best", nodes=nodes)
        if least is not None:
            assert found.lower_bound <= least + 1e-9
            assert found.cost >= least - 1e-9
        if found.feasible:
            assert case.holds(found.removed)
            assert not found.optimal or found.cost == pytest.approx(least, abs=1e-9)


@given(st.data(), st.sampled_from(["few", "one by one"]))
@settings(max_examples=100, deadline=None)
def test_options_that_are_not_all_are_never_called_the_cheapest(data: st.DataObject, room: str) -> None:
    """With room for a few options, or for records of no more than two terms, results hold and bounds stay below."""
    case = Case(data.draw, paired=True)
    least = case.least()
    with pytest.MonkeyPatch.context() as patched:
        if room == "few":
            patched.setattr("noren.methods.suppress.setting.MOST_OPTIONS", 4)
        else:
            patched.setattr("noren.methods.suppress.setting.MOST_OPTIONS", 7)
        found = case.search("best")
    if least is not None:
        assert found.lower_bound <= least + 1e-9
        assert found.cost >= least - 1e-9
    if found.feasible:
        assert case.holds(found.removed)
    if found.optimal:
        assert found.feasible == (least is not None)
        assert least is None or found.cost == pytest.approx(least, abs=1e-9)
