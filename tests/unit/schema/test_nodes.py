"""General values over a domain: runs of codes, what they cover, and hierarchies as numbered nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, runs_of, tree_of

UNSOUND = {
    "no run": [[]],
    "a run without a value": [[(2, 2)]],
    "a run that falls": [[(3, 1)]],
    "below the first value": [[(-1, 2)]],
    "beyond the last value": [[(4, 7)]],
    "runs in falling order": [[(3, 4), (0, 1)]],
    "runs that overlap": [[(0, 3), (2, 4)]],
    "runs that touch": [[(0, 2), (2, 4)]],
    "a sound node, then an empty one": [[(0, 6)], []],
    "an empty node, then a sound one": [[], [(0, 6)]],
}


@pytest.mark.parametrize("case", UNSOUND)
def test_unsound_runs_are_refused(case):
    runs = UNSOUND[case]
    with pytest.raises(ValueError, match="rising runs of base values"):
        Nodes.from_runs(6, [f"n{i}" for i in range(len(runs))], runs)


def test_every_node_has_one_label():
    with pytest.raises(ValueError, match="one label"):
        Nodes.from_runs(6, ["a"], [[(0, 1)], [(1, 2)]])
    with pytest.raises(ValueError, match="one label"):
        Nodes.from_members(6, ["a", "b"], [[0]])


def test_runs_of_a_later_node_may_start_lower():
    nodes = Nodes.from_runs(6, ["high", "low"], [[(4, 6)], [(0, 1), (3, 4)]])
    assert nodes.runs == [[(4, 6)], [(0, 1), (3, 4)]]
    assert nodes.sizes.tolist() == [2, 2]


def test_an_empty_catalogue_has_no_nodes():
    nodes = Nodes.from_runs(3, [], [])
    assert len(nodes) == 0
    assert nodes.runs == []
    assert nodes.sizes.tolist() == []
    assert nodes.membership.shape == (0, 3)


def test_members_may_come_in_any_order_and_twice():
    nodes = Nodes.from_members(10, ["some"], [[9, 3, 5, 4, 3]])
    assert nodes.runs == [[(3, 6), (9, 10)]]
    assert nodes.members(0).tolist() == [3, 4, 5, 9]


def test_consecutive_codes_make_one_run():
    assert runs_of([3, 4, 5, 9]) == [(3, 6), (9, 10)]
    assert runs_of([]) == []
    assert runs_of(np.array([2], np.uint8)) == [(2, 3)]
    assert runs_of([1, 0, 2]) == [(0, 3)]


@given(st.sets(st.integers(0, 40)))
def test_runs_hold_exactly_their_codes_and_as_few_runs_as_possible(codes):
    runs = runs_of(sorted(codes, reverse=True))
    assert {code for start, stop in runs for code in range(start, stop)} == codes
    assert len(runs) == sum(code - 1 not in codes for code in codes)


@st.composite
def catalogues(draw):
    d = draw(st.integers(1, 70))
    chosen = st.sets(st.integers(0, d - 1), min_size=1)
    return d, [sorted(codes) for codes in draw(st.lists(chosen, min_size=1, max_size=8))]


@settings(max_examples=60)
@given(catalogues())
def test_a_catalogue_against_brute_force(case):
    d, members = case
    nodes = Nodes.from_members(d, [f"n{i}" for i in range(len(members))], members)
    assert len(nodes) == len(members)
    assert nodes.sizes.tolist() == [len(codes) for codes in members]
    assert [nodes.members(i).tolist() for i in range(len(nodes))] == members
    expected = np.array([[code in codes for code in range(d)] for codes in members])
    assert np.array_equal(nodes.membership, expected)
    flat, bounds = nodes.flat_members()
    assert flat.tolist() == [code for codes in members for code in codes]
    assert bounds.tolist() == np.cumsum([0, *map(len, members)]).tolist()
    node, code = (part.ravel() for part in np.indices((len(members), d)))
    assert np.array_equal(nodes.covers(node, code), expected.ravel())
    shuffled = np.random.default_rng(0).permutation(len(node))
    small = nodes.covers(node[shuffled].astype(np.uint8), code[shuffled].astype(np.uint8))
    assert np.array_equal(small, expected.ravel()[shuffled])
    again = Nodes.from_runs(d, nodes.labels, nodes.runs)
    assert again.runs == nodes.runs


# ---------------------------------------------------------------- hierarchies

DISEASES = Hierarchy.from_rows(
    [
        ["flu", "lung", "chest", "any"],
        ["angina", "heart", "chest", "any"],
        ["burn", "burn", "burn", "any"],
        ["cold", "lung", "chest", "any"],
    ]
)


def test_nodes_of_a_hierarchy_are_leaves_then_levels():
    tree = tree_of(DISEASES)
    assert tree.nodes.labels == ("flu", "angina", "burn", "cold", "lung", "chest", "any")
    assert [tree.nodes.members(i).tolist() for i in range(7)] == [[0], [1], [2], [3], [0, 3], [0, 1, 3], [0, 1, 2, 3]]
    assert tree.nodes.runs[4] == [(0, 1), (3, 4)]
    assert tree.height == DISEASES.height == 3
    assert tree.root == 6


def test_a_padded_branch_is_one_node():
    tree = tree_of(DISEASES)
    assert tree.at[:, 2].tolist() == [2, 2, 2, 6]
    # one disease alone under "heart" is that disease, whatever the level calls it
    assert tree.at[:, 1].tolist() == [1, 1, 5, 6]
    assert "heart" not in tree.nodes.labels


def test_parents_lead_to_the_root():
    tree = tree_of(DISEASES)
    assert tree.parent.tolist() == [4, 5, 6, 4, 5, 6, 6]
    assert tree.parent[tree.root] == tree.root


def test_one_value_is_its_own_root():
    tree = tree_of(Hierarchy((("only",),)))
    assert tree.nodes.labels == ("only",)
    assert tree.root == 0
    assert tree.parent.tolist() == [0]
    assert tree.at.tolist() == [[0], [0]]


def test_a_flat_hierarchy_gets_a_root():
    tree = tree_of(Hierarchy((("a", "b", "c"),)))
    assert tree.nodes.labels == ("a", "b", "c", "*")
    assert tree.parent.tolist() == [3, 3, 3, 3]


def test_a_node_that_reads_like_another_is_told_apart_by_its_level():
    rows = [["a", "b", "c", "*"], ["b", "b", "c", "*"], ["c", "x", "x", "*"], ["d", "x", "x", "*"]]
    tree = tree_of(Hierarchy.from_rows(rows))
    assert tree.nodes.labels == ("a", "b", "c", "d", "b (level 1)", "x", "*")
    again = [["a", "b", "b", "*"], ["c", "b", "b", "*"], ["d", "d", "b", "*"], ["e", "e", "e", "*"]]
    labels = tree_of(Hierarchy.from_rows(again)).nodes.labels
    assert labels == ("a", "c", "d", "e", "b", "b (level 2)", "*")
    assert len(set(labels)) == len(labels)


@st.composite
def hierarchies(draw):
    """Levels that merge the groups below them at random, down to one root."""
    d = draw(st.integers(1, 12))
    groups = list(range(d))
    levels = [tuple(f"v{i}" for i in range(d))]
    for height in range(1, draw(st.integers(1, 4)) + 1):
        merged = {group: draw(st.integers(0, 3)) for group in set(groups)}
        groups = [merged[group] for group in groups]
        levels.append(tuple(f"h{height}g{group}" for group in groups))
    return Hierarchy(tuple(levels))


@settings(max_examples=60)
@given(hierarchies())
def test_a_tree_against_its_hierarchy(hierarchy):
    tree = tree_of(hierarchy)
    d = len(hierarchy.leaves)
    covered = [frozenset(tree.nodes.members(i).tolist()) for i in range(len(tree.nodes))]
    assert len(set(covered)) == len(covered), "two nodes that cover the same are one"
    assert len(set(tree.nodes.labels)) == len(covered)
    for height, level in enumerate(hierarchy.levels):
        for leaf in range(d):
            under = frozenset(i for i in range(d) if level[i] == level[leaf])
            assert covered[tree.at[height, leaf]] == under
    assert covered[tree.root] == frozenset(range(d))
    assert set(covered) == {covered[node] for node in tree.at.ravel()}
    for node, parent in enumerate(tree.parent.tolist()):
        larger = [codes for codes in covered if codes > covered[node]]
        assert covered[parent] == (min(larger, key=len) if larger else covered[node])


def test_five_thousand_leaves_are_no_matter():
    values = tuple(f"{i:05d}" for i in range(5000))
    tree = tree_of(Hierarchy.from_prefixes(values, [4, 3, 2, 1]))
    assert len(tree.nodes) == 5000 + 500 + 50 + 5 + 1
    assert tree.nodes.sizes[tree.root] == 5000
    assert tree.nodes.starts[tree.at[2, 4321]] == 4300
    everyone = np.arange(5000)
    for level in tree.at:
        assert tree.nodes.covers(level, everyone).all()
    assert not tree.nodes.covers(tree.at[3], np.roll(everyone, 1000)).any()
