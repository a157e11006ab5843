"""Count queries: predicates, spread counts and relative errors."""

from __future__ import annotations

import numpy as np
import pytest

from noren.errors import QueryError
from noren.metrics.general import GeneralTable
from noren.metrics.queries import (
    Workload,
    estimated_counts,
    query_error,
    random_workload,
    true_counts,
    workload_error,
)
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from noren.statements import GroupTable
from tests.oracles.general_metrics import general_table

TREE = Hierarchy((("a", "b", "c", "d"), ("ab", "ab", "cd", "cd")))
ROLES = {"town": Role.QUASI_IDENTIFIER, "age": Role.QUASI_IDENTIFIER, "job": Role.SENSITIVE}
DOMAINS = {
    "town": Domain(("a", "b", "c", "d")),
    "age": Domain(tuple(map(str, range(20, 30))), "integer"),
    "job": Domain(("x", "y", "z")),
}
CODES = {
    "town": np.array([0, 0, 1, 2, 2, 3]),
    "age": np.array([0, 1, 2, 3, 4, 9]),
    "job": np.array([0, 1, 0, 1, 2, 2]),
}


def table(height: int, keep: list[bool] | None = None) -> GeneralTable:
    """Towns at a level of their tree, the rest as it is."""
    tree = tree_of(TREE)
    recoded = {"town": (tree.nodes, tree.at[height][CODES["town"]])}
    return general_table(ROLES, DOMAINS, CODES, recoded, None if keep is None else np.array(keep))


def asking(**values: list[int]) -> Workload:
    """One query that asks for these codes."""
    chosen = {name: np.isin(np.arange(len(DOMAINS[name])), values.get(name, []))[None, :] for name in CODES}
    return Workload(chosen, {name: np.array([name in values]) for name in CODES})


def test_a_cell_counts_by_the_share_that_is_asked_for():
    asked = asking(town=[0], job=[0])
    assert true_counts(table(1), asked).tolist() == [1]
    assert estimated_counts(table(0), asked).tolist() == [1]
    assert estimated_counts(table(1), asked).tolist() == [1.0]  # two x under "ab", each half a town a
    assert estimated_counts(table(2), asked).tolist() == [0.5]  # two x under the root, each a quarter
    assert estimated_counts(table(2), asking(town=[0, 1, 2, 3])).tolist() == [6]


def test_dropped_records_are_not_counted():
    assert estimated_counts(table(0, [False, True, True, True, True, True]), asking(town=[0])).tolist() == [1]
    assert estimated_counts(table(0, [False] * 6), asking(town=[0])).tolist() == [0]


def test_a_group_counts_by_its_counts():
    group = np.array([0, 0, 0, 1, 1, 1])
    groups = GroupTable.from_codes(2, 3, group, CODES["job"])
    view = general_table(ROLES, DOMAINS, CODES, {"job": (groups, group)})
    assert estimated_counts(view, asking(job=[0])).tolist() == pytest.approx([2])
    assert estimated_counts(view, asking(town=[0], job=[0])).tolist() == pytest.approx([2 * 2 / 3])


def test_an_exact_table_has_no_error():
    for dimensions in (1, 2, 3):
        found = query_error(table(0), {"town": TREE}, "job", dimensions, queries=200, seed=4)
        assert (found.mean, found.median) == (0, 0)
        assert found.answered + found.empty == 200
    assert query_error(table(2), {"town": TREE}, "job", 3, queries=200, seed=4).mean > 0


def test_queries_without_records_are_counted_apart():
    found = workload_error(np.array([0.0, 2.0, 4.0]), np.array([3.0, 1.0, 5.0]))
    assert (found.mean, found.median, found.answered, found.empty) == (0.375, 0.375, 2, 1)
    with pytest.raises(QueryError, match="no record meets any of the 2 queries"):
        workload_error(np.zeros(2), np.ones(2))


def test_conditions_are_nodes_below_the_root_intervals_and_sets():
    workload = random_workload(table(0), {"town": TREE}, "job", 2, queries=300, seed=1)
    assert all(asked.sum() == 300 for name, asked in workload.asked.items() if name == "job")
    assert (sum(asked.astype(int) for asked in workload.asked.values()) == 2).all()
    nodes = {"".join(np.array(list("abcd"))[row]) for row in workload.chosen["town"]}
    assert nodes == {"a", "b", "c", "d", "ab", "cd"}
    edges = np.diff(workload.chosen["age"].astype(int), axis=1, prepend=0, append=0)
    assert ((edges == 1).sum(axis=1) == 1).all()
    assert set(workload.chosen["age"].sum(axis=1)) == set(range(1, 10))
    assert set(workload.chosen["job"].sum(axis=1)) == {1, 2}


def test_selectivity_sets_the_size_of_sets_and_intervals():
    workload = random_workload(table(0), {"town": TREE}, None, 2, queries=50, selectivity=0.25, seed=1)
    assert set(workload.chosen["age"].sum(axis=1)) == {5}
    assert set(workload.chosen["job"].sum(axis=1)) == {2}
    whole = random_workload(table(0), {}, None, 1, queries=5, selectivity=1.0)
    assert all(chosen.all() for chosen in whole.chosen.values())


def test_equal_seeds_give_equal_workloads():
    one, same, other = (query_error(table(2), {"town": TREE}, "job", 2, queries=50, seed=s) for s in (3, 3, 4))
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dimensions": 4}, "from 1 to 3, not 4"),
        ({"dimensions": 0}, "from 1 to 3, not 0"),
        ({"queries": 0}, "0 queries"),
        ({"selectivity": 0.0}, "above 0 and at most 1, not 0"),
        ({"sensitive": "pay"}, "no column 'pay'"),
        ({"hierarchies": {"town": Hierarchy((("a", "b"),))}}, "hierarchy of 'town' lacks"),
    ],
)
def test_what_cannot_be_asked(change, said):
    given = {"hierarchies": {}, "sensitive": "job", "dimensions": 2, "queries": 10, **change}
    with pytest.raises(QueryError, match=said):
        query_error(table(0), **given)
