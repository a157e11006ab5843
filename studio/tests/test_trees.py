"""Trees that are edited: what is put together, dissolved, renamed or moved still holds every value once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.schema import Hierarchy, HierarchyError
from noren_studio import trees

TREE: trees.Tree = {"North": {"A": ["1", "2"], "B": ["3"]}, "South": {"C": ["4", "5"]}}


def test_siblings_are_put_together_and_taken_apart() -> None:
    made = trees.merged(TREE, [("North", "A"), ("North", "B")], "AB")
    assert made == {"North": {"AB": ["1", "2", "3"]}, "South": {"C": ["4", "5"]}}
    assert trees.merged(TREE, [("South", "C", "4"), ("South", "C", "5")], "45")["South"]["C"] == {"45": ["4", "5"]}
    assert trees.dissolved(TREE, ("North",)) == {"South": {"C": ["4", "5"]}, "A": ["1", "2"], "B": ["3"]}


def test_a_value_or_a_node_moves_and_empty_nodes_go() -> None:
    assert trees.moved(TREE, ("North", "B", "3"), ("South", "C")) == {
        "North": {"A": ["1", "2"]},
        "South": {"C": ["4", "5", "3"]},
    }
    assert trees.moved(TREE, ("South", "C"), ("North",))["North"]["C"] == ["4", "5"]


def test_a_node_is_renamed_in_its_place() -> None:
    assert list(trees.renamed(TREE, ("North",), "Nord")) == ["Nord", "South"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda: trees.merged(TREE, [("North", "A"), ("South", "C")], "x"),
        lambda: trees.merged(TREE, [("North", "A")], "x"),
        lambda: trees.merged(TREE, [("North", "A"), ("North", "B")], " "),
        lambda: trees.renamed(TREE, ("North",), "South"),
        lambda: trees.renamed(TREE, ("North", "A", "1"), "x"),
        lambda: trees.moved(TREE, ("North",), ("North", "A")),
        lambda: trees.moved(TREE, ("North",), ("South", "C")),
    ],
)
def test_what_would_be_no_tree_is_refused(edit: object) -> None:
    with pytest.raises(HierarchyError):
        edit()  # type: ignore[operator]


@given(st.lists(st.text(max_size=5), max_size=5).map(tuple))
def test_a_key_is_one_path(path: tuple[str, ...]) -> None:
    assert trees.path_of(trees.key_of(path)) == path


@given(st.data())
def test_edits_lose_no_value(data: st.DataObject) -> None:
    tree = TREE
    before = Counter(trees.leaves(tree))
    for _ in range(6):
        paths = _paths(tree)
        path, other = data.draw(st.sampled_from(paths)), data.draw(st.sampled_from(paths))
        name = data.draw(st.sampled_from(["x", "y", "z"]))
        edits = [
            lambda t, p, o, n: trees.merged(t, [p, o], n),
            lambda t, p, o, n: trees.renamed(t, p, n),
            lambda t, p, o, n: trees.dissolved(t, p),
            lambda t, p, o, n: trees.moved(t, p, o),
        ]
        edit = data.draw(st.sampled_from(edits))
        try:
            made = edit(tree, path, other, name)
            Hierarchy.from_tree(made)
        except (HierarchyError, KeyError, TypeError):
            continue
        tree = made
        assert Counter(trees.leaves(tree)) == before


def _paths(tree: object, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(tree, dict):
        return [p for label, below in tree.items() for p in ((*at, label), *_paths(below, (*at, label)))]
    return [(*at, str(value)) for value in tree]  # type: ignore[attr-defined]


def test_gaps_and_orphans() -> None:
    assert trees.gaps(TREE, ["1", "9"]) == ["9"]
    assert trees.orphans(TREE, ["1", "2", "3", "4"]) == ["5"]
