"""Information, utility, losses and excessive protection of small tables worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from noren.engines import Recode
from noren.errors import QueryError, RequirementNotMet
from noren.metrics.general import GeneralColumn, GeneralTable, node_totals
from noren.metrics.information import information_score, utility_scores
from noren.metrics.losses import (
    GENERAL_METRICS,
    average_class_size_loss,
    discernibility_loss,
    granularity_score,
    ncp_loss,
    non_uniform_entropy_loss,
)
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.statements import GroupTable
from noren_papers.tau_l.excess import excess_of_classes, excessive_protection
from tests.oracles.general_metrics import general_table

# paper 004, figures 1 to 3: twelve patients, classes {1,2,4,5}, {6,7,8,10}, {3,9,11,12}
AGES = [20, 21, 22, 23, 24, 30, 31, 32, 33, 34, 25, 26]
ZIPS = [10001, 10002, 10003, 10004, 10005, 10006, 10007, 10008, 10009, 10000, 10011, 10012]
DISEASES = ["hepatitis"] * 4 + ["tuberculosis", "hepatitis"] + ["tuberculosis"] * 3 + ["flu", "hepatitis", "anemia"]
FIRST, SECOND, THIRD = [0, 1, 3, 4], [5, 6, 7, 9], [2, 8, 10, 11]


def nested(values: list[int], step: int) -> Hierarchy:
    return Hierarchy((tuple(map(str, values)), tuple(f"{v // step * step}+" for v in values)))


@pytest.fixture
def patients() -> GeneralTable:
    """Figure 3(a) with its taxonomies: ages 20..39 in tens, codes 10000..10019 in tens, diseases in two kinds."""
    trees = {
        "age": tree_of(nested(list(range(20, 40)), 10)),
        "zip": tree_of(nested(list(range(10000, 10020)), 10)),
        "disease": tree_of(
            Hierarchy(
                (("hepatitis", "anemia", "tuberculosis", "flu"), ("hemal", "hemal", "respiratory", "respiratory"))
            )
        ),
    }
    base = tuple(Domain(tree.nodes.labels[: tree.nodes.d]) for tree in trees.values())
    domains = dict(zip(trees, base, strict=True))
    codes = {
        "age": np.array(AGES) - 20,
        "zip": np.array(ZIPS) - 10000,
        "disease": np.array([domains["disease"].index[v] for v in DISEASES]),
    }
    height = {name: np.zeros(12, int) for name in trees}
    height["age"][FIRST + SECOND] = 1
    height["zip"][FIRST + SECOND] = 1
    height["age"][THIRD], height["zip"][THIRD] = 2, 2
    height["disease"][[0, 1]] = 1
    recoded = {name: (tree.nodes, tree.at[height[name], codes[name]]) for name, tree in trees.items()}
    roles = {"age": Role.QUASI_IDENTIFIER, "zip": Role.QUASI_IDENTIFIER, "disease": Role.SENSITIVE}
    return general_table(roles, domains, codes, recoded)


def test_the_running_example(patients):
    """The classes of figure 3. With 20 leaves a tuple swept to the roots holds 1/20 + 1/20 + 1 = 1.1, the others of
    the two first classes 1/10 + 1/10 + 1 = 1.2, tuples 1 and 2 only 0.7: 0.7 * 2 + 1.2 * 6 + 1.1 * 4 = 13."""
    assert information_score(patients) == pytest.approx(13)
    utility = utility_scores(patients)
    assert utility.total == pytest.approx(13 / 36)
    assert utility.quasi == pytest.approx(2 / 24)
    assert utility.sensitive == pytest.approx(11 / 12)
    assert sorted(patients.sizes.tolist()) == [4, 4, 4]
    assert excessive_protection(patients, 0.5, 3, "disease") == pytest.approx(0)
    assert excess_of_classes(patients, 0.6, 3, "disease").tolist() == pytest.approx([0.15] * 3)


def test_excess_is_for_tables_that_hold_only(patients):
    with pytest.raises(RequirementNotMet, match=r"does not satisfy \(0.4, 3\)-diversity of 'disease'"):
        excessive_protection(patients, 0.4, 3, "disease")
    with pytest.raises(QueryError, match=r"tau = 0\.2 is not in the range from 1/l"):
        excessive_protection(patients, 0.2, 3, "disease")
    with pytest.raises(QueryError, match="weights of 'disease'"):
        excessive_protection(patients, 0.5, 3, "disease", weights=[0, 1, 1, 1])
    with pytest.raises(QueryError, match="no column 'illness'"):
        excessive_protection(patients, 0.5, 3, "illness")


# golden/generalisation.json, "checks": frequencies of one class, (tau, l), whether it holds, its excess
CHECKS = [
    ([2, 1, 1], 0.5, 3, True, 0.0),
    ([2, 2, 0], 0.5, 3, False, 0.25),
    ([4, 3, 2, 1], 0.4, 4, False, 0.2),
    ([2, 2, 1, 0], 0.4, 4, False, 0.4),
    ([1, 1, 1, 1], 0.25, 4, True, 0.0),
    ([34, 33, 33, 0], 0.5, 3, True, 0.24),
]


@pytest.mark.parametrize(("counts", "tau", "l", "holds", "excess"), CHECKS)
def test_excess_of_one_class(counts, tau, l, holds, excess):  # noqa: E741
    truth = np.repeat(np.arange(len(counts)), counts)
    weights = np.ones(len(counts))
    column = GeneralColumn(Column(role=Role.SENSITIVE).over("s", Domain(tuple("abcd")[: len(counts)])), truth)
    table = GeneralTable({"s": column}, np.ones(len(truth), bool))
    if holds:
        assert excessive_protection(table, tau, l, "s", weights) == pytest.approx(excess, abs=1e-12)
    else:
        with pytest.raises(RequirementNotMet):
            excessive_protection(table, tau, l, "s", weights)


def flat_table(keep: list[bool] | None = None) -> GeneralTable:
    """Six records: a numeric column in intervals, a categorical one in sets, a sensitive one in two groups."""
    age = Domain(("10", "20", "40", "50"), "integer")
    town = Domain(("a", "b", "c"))
    ages, towns = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1, 0, 2, 2, 2])
    intervals = Nodes.from_runs(4, ["[10, 20]", "[40, 50]"], [[(0, 2)], [(2, 4)]])
    sets = Nodes.from_members(3, ["{a, b}", "c"], [[0, 1], [2]])
    group, job = np.array([0, 1, 0, 1, 0, 1]), np.array([0, 0, 1, 1, 1, 2])
    held = np.ones(6, bool) if keep is None else np.array(keep)
    groups = GroupTable.from_codes(2, 3, group[held], job[held])
    return general_table(
        {"age": Role.QUASI_IDENTIFIER, "town": Role.QUASI_IDENTIFIER, "job": Role.SENSITIVE},
        {"age": age, "town": town, "job": Domain(("x", "y", "z"))},
        {"age": ages, "town": towns, "job": job},
        {
            "age": (intervals, np.array([0, 0, 0, 1, 1, 1])),
            "town": (sets, np.array([0, 0, 0, 1, 1, 1])),
            "job": (groups, group),
        },
        held,
    )


def test_losses_of_intervals_and_sets():
    table = flat_table()
    assert ncp_loss(table) == pytest.approx((6 * 0.25 + 3 * 0.5) / 12)
    assert granularity_score(table) == pytest.approx(1 - (6 / 3 + 3 / 2) / 12)
    assert discernibility_loss(table) == 18
    assert average_class_size_loss(table) == 3
    assert utility_scores(table).sensitive == pytest.approx((3 / 2 + 3 / 3) / 6)


def test_dropped_records_lose_everything():
    table = flat_table([True, True, True, True, True, False])
    assert table.dropped == 1
    assert ncp_loss(table) == pytest.approx((5 * 0.25 + 3 * 0.5 + 2) / 12)
    assert granularity_score(table) == pytest.approx((10 - 5 / 3 - 3 / 2) / 12)
    assert discernibility_loss(table) == 9 + 4 + 6
    assert utility_scores(table).quasi == pytest.approx((5 / 2 + 3 / 2 + 2) / 12)
    nothing = flat_table([False] * 6)
    assert (ncp_loss(nothing), granularity_score(nothing), discernibility_loss(nothing)) == (1, 0, 36)
    assert non_uniform_entropy_loss(nothing) == 1
    assert utility_scores(nothing).total == 0
    with pytest.raises(QueryError, match="no record is published"):
        average_class_size_loss(nothing)
    with pytest.raises(QueryError, match="no record is published"):
        excessive_protection(nothing, 0.5, 2, "job")


def test_a_numeric_column_with_a_hierarchy_loses_by_leaves():
    tree = tree_of(Hierarchy((("10", "20", "40", "50"), ("low", "low", "high", "high"))))
    domain = Domain(("10", "20", "40", "50"), "integer")
    column = GeneralColumn(
        Column(role=Role.QUASI_IDENTIFIER).over("age", domain), np.arange(4), Recode(tree.nodes, tree.at[1])
    )
    assert column.belongs_to_tree
    assert ncp_loss(GeneralTable({"age": column}, np.ones(4, bool))) == pytest.approx(1 / 3)


def test_entropy_counts_how_common_the_true_value_is():
    """Column a a a b: under the root an a costs log2(4/3) bits and the b two; the whole is exactly that."""
    tree = tree_of(Hierarchy((("a", "b"),)))
    truth = np.array([0, 0, 0, 1])
    column = GeneralColumn(
        Column(role=Role.QUASI_IDENTIFIER).over("x", Domain(("a", "b"))),
        truth,
        Recode(tree.nodes, np.array([2, 2, 0, 1])),
    )
    whole = 3 * np.log2(4 / 3) + 2
    found = non_uniform_entropy_loss(GeneralTable({"x": column}, np.ones(4, bool)))
    assert found == pytest.approx(2 * np.log2(4 / 3) / whole)


def test_what_is_published_as_it_is_loses_nothing():
    codes = np.array([0, 1, 1])
    column = GeneralColumn(Column(role=Role.SENSITIVE_QUASI_IDENTIFIER).over("x", Domain(("a", "b"))), codes)
    table = GeneralTable({"x": column}, np.ones(3, bool))
    found = {name: metric(table) for name, metric in GENERAL_METRICS.items()}
    assert found == {
        "information_score": 3, "utility_score": 1, "quasi_utility_score": 1, "sensitive_utility_score": 1,
        "granularity_score": 1, "ncp_loss": 0, "non_uniform_entropy_loss": 0, "average_class_size_loss": 1.5,
        "discernibility_loss": 5,
    }  # fmt: skip


def test_the_registry_says_which_way_is_better():
    assert all(name.endswith(("_loss", "_score")) for name in GENERAL_METRICS)
    assert all(metric.__name__ == name for name, metric in GENERAL_METRICS.items())


def test_what_the_view_refuses():
    column = GeneralColumn(Column(role=Role.PLAIN).over("x", Domain(("a",))), np.zeros(2, int))
    table = GeneralTable({"x": column}, np.ones(2, bool))
    with pytest.raises(QueryError, match="no quasi-identifier"):
        ncp_loss(table)
    with pytest.raises(QueryError, match="no sensitive column"):
        GENERAL_METRICS["sensitive_utility_score"](table)
    with pytest.raises(ValueError, match="3 records"):
        GeneralTable({"x": column}, np.ones(3, bool))


def test_totals_of_nodes_with_several_runs():
    nodes = Nodes.from_members(5, ["odd", "low"], [[0, 2, 4], [0, 1]])
    assert node_totals(nodes, np.array([1, 10, 100, 1000, 10000])).tolist() == [10101, 11]
    assert node_totals(nodes, np.eye(5)).shape == (5, 2)
