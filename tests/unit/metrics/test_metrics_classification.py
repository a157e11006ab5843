"""What a learner gets out of a release: random leaves, trees, rules."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from noren.engines import Group, Recode
from noren.errors import NorenError, QueryError
from noren.metrics.classification import preserved_rules, random_leaves, tree_accuracy
from noren.metrics.general import GeneralColumn, GeneralTable
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.statements import GroupTable
from tests.oracles.general_metrics import general_table

N = 400
TREE = tree_of(Hierarchy((("a", "b", "c", "d"), ("ab", "ab", "cd", "cd"))))


def table(height: int, keep: np.ndarray | None = None) -> GeneralTable:
    """The class is x for towns a and c, y for b and d; sex says nothing."""
    town, sex = np.arange(N) % 4, np.arange(N) // 4 % 2
    return general_table(
        {"town": Role.QUASI_IDENTIFIER, "sex": Role.QUASI_IDENTIFIER, "job": Role.SENSITIVE},
        {"town": Domain(("a", "b", "c", "d")), "sex": Domain(("f", "m")), "job": Domain(("x", "y"))},
        {"town": town, "sex": sex, "job": town % 2},
        {"town": (TREE.nodes, TREE.at[height][town])},
        keep,
    )


def test_leaves_lie_under_their_cells_and_all_are_drawn():
    random = np.random.default_rng(0)
    nodes = Nodes.from_members(5, ["odd", "one", "last two"], [[0, 2, 4], [1], [3, 4]])
    cells = np.repeat([0, 1, 2], 200)
    column = GeneralColumn(
        Column(role=Role.QUASI_IDENTIFIER).over("x", Domain(tuple("abcde"))), cells, Recode(nodes, cells)
    )
    drawn = random_leaves(column, np.ones(600, bool), random)
    assert [set(drawn[cells == node]) for node in range(3)] == [{0, 2, 4}, {1}, {3, 4}]


def test_a_group_gives_its_values_as_often_as_it_holds_them():
    """Value 1 is three quarters of group 1. 4000 draws miss that by 0.06 with a chance below 1e-12 (Hoeffding)."""
    random = np.random.default_rng(0)
    groups = GroupTable(2, 3, np.array([0, 1, 1]), np.array([2, 0, 1]), np.array([5, 1, 3]))
    cells = np.repeat([0, 1], [100, 4000])
    column = GeneralColumn(Column(role=Role.SENSITIVE).over("x", Domain(tuple("abc"))), cells, Group(groups, cells))
    drawn = random_leaves(column, np.ones(4100, bool), random)
    assert set(drawn[:100]) == {2}
    assert set(drawn[100:]) == {0, 1}
    assert abs((drawn[100:] == 1).mean() - 0.75) < 0.06


def test_trees_of_an_exact_table_are_as_good():
    pytest.importorskip("sklearn")
    found = tree_accuracy(table(0), "job", rounds=2)
    assert (found.ratio, found.released, found.original, found.rounds) == (1, 1, 1, 2)


def test_trees_of_a_vague_table_are_worse():
    """Towns a and b, c and d cannot be told apart, so what is learned is close to guessing."""
    pytest.importorskip("sklearn")
    found = tree_accuracy(table(1), "job", rounds=3, seed=1)
    assert found.original == 1
    assert found.released == pytest.approx(found.ratio)
    assert found.ratio < 0.9
    assert found == tree_accuracy(table(1), "job", rounds=3, seed=1)


def test_rules_of_an_exact_table_are_all_kept():
    """Four rules of a town alone, and eight of a town with a sex."""
    found = preserved_rules(table(0), "job", accuracy=0.9, support=50, rounds=2)
    assert (found.original, found.preserved, found.share) == (12, 12, 1)
    assert preserved_rules(table(0), "job", accuracy=0.9, support=51).original == 4


def test_rules_of_a_vague_table_are_lost():
    found = preserved_rules(table(2), "job", accuracy=0.9, support=50)
    assert (found.original, found.preserved, found.share) == (12, 0, 0)
    dropped = preserved_rules(table(0, np.arange(N) % 4 != 0), "job", accuracy=0.9, support=50)
    assert (dropped.original, dropped.preserved) == (12, 9)
    none = preserved_rules(table(0), "job", accuracy=0.9, support=N + 1)
    assert (none.original, none.share) == (0, None)


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(NorenError, match=r"pip install 'noren\[learn\]'"):
        tree_accuracy(table(0), "job")


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("pay", {}, "no column 'pay'"),
        ("job", {"rounds": 0}, "0 rounds"),
        ("job", {"accuracy": 1.5}, "is out of range"),
        ("job", {"support": 0}, "is out of range"),
    ],
)
def test_what_cannot_be_learned(target, options, said):
    with pytest.raises(QueryError, match=said):
        preserved_rules(table(0), target, **options)


def test_a_column_alone_cannot_be_learned():
    alone = GeneralTable({"job": table(0).columns["job"]}, np.ones(N, bool))
    with pytest.raises(QueryError, match="no column is left"):
        preserved_rules(alone, "job")


def test_an_empty_release_teaches_nothing():
    with pytest.raises(QueryError, match="no record is published"):
        preserved_rules(table(0, np.zeros(N, bool)), "job")
