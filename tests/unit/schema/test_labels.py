"""Names of general values are read again: each names what it covers and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.schema.domain import MISSING, Domain, bin_labels
from noren.schema.nodes import Nodes, runs_of
from noren.statements.node import find_misnamed

EDGES = (0.0, 5.0, 10.0, 20.0, 50.0)
DOMAINS = {
    "whole numbers": Domain((*map(str, range(10, 18)), MISSING), "integer"),
    "bins": Domain(bin_labels(EDGES), edges=EDGES),
    "names in order": Domain(("low", "middle", "high", "top", MISSING)),
    "days": Domain(tuple(f"2024-02-{day}" for day in range(20, 28)), "date"),
}


def label_of(domain: Domain, codes: list[int]) -> str:
    """What a release calls these values: itself, an interval, a list, and a missing value beside them."""
    gone = domain.missing_code
    there = [code for code in codes if code != gone]
    if not there:
        return MISSING
    tail = f" or {MISSING}" if gone in codes else ""
    if len(there) == 1:
        return domain.values[there[0]] + tail
    if there == list(range(there[0], there[-1] + 1)):
        if domain.edges is not None:
            return f"[{EDGES[there[0]]:g}, {EDGES[there[-1] + 1]:g}){tail}"
        return f"[{domain.values[there[0]]}, {domain.values[there[-1]]}]{tail}"
    return "{" + ", ".join(domain.values[code] for code in there) + "}" + tail


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(sorted(DOMAINS)), st.data())
def test_a_name_is_that_of_what_it_covers_and_of_nothing_else(kind: str, data: st.DataObject) -> None:
    domain = DOMAINS[kind]
    some = st.lists(st.integers(0, len(domain) - 1), min_size=1, unique=True).map(sorted)
    own, other = data.draw(some), data.draw(some)
    label = label_of(domain, own)
    found = find_misnamed(domain, Nodes.from_runs(len(domain), [label], [runs_of(other)]))
    assert found == ([] if own == other else [label])


def test_everything_may_leave_out_the_missing_and_nothing_else() -> None:
    domain = DOMAINS["whole numbers"]
    for codes, right in ((range(9), True), (range(8), True), (range(1, 9), False), (range(7), False)):
        nodes = Nodes.from_runs(9, ["*"], [runs_of(list(codes))])
        assert (find_misnamed(domain, nodes) == []) is right


def test_two_names_of_the_same_values_are_one_too_many() -> None:
    domain = DOMAINS["whole numbers"]
    nodes = Nodes.from_runs(9, ["[10, 12]", "{10, 11, 12}", "*", "any"], [[(0, 3)], [(0, 3)], [(0, 9)], [(0, 9)]])
    assert find_misnamed(domain, nodes) == ["{10, 11, 12}"]


@pytest.mark.parametrize("label", ["[13, 11]", "[10, 99]", "[a, b]", "10 to 12", "[10, 12", "{10, 12}", ""])
def test_what_cannot_be_read_names_nothing(label: str) -> None:
    nodes = Nodes.from_runs(9, [label], [[(0, 3)]])
    assert find_misnamed(DOMAINS["whole numbers"], nodes) == [label]


def test_edges_that_do_not_rise_are_read_one_by_one() -> None:
    edges = (0.0, 10.0, 5.0, 20.0)
    domain = Domain(("a", "b", "c"), edges=edges)
    inside = np.flatnonzero((np.array(edges[:-1]) >= 0) & (np.array(edges[1:]) <= 10))
    nodes = Nodes.from_runs(3, ["[0, 10)"], [runs_of(inside.tolist())])
    assert find_misnamed(domain, nodes) == []
