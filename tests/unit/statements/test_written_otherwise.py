"""Cells that stand for the same thing in another form: numbered sets, listed general values, dates on a line."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import ReleaseError
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.statements import GroupTable, NodeStatement, SetCells
from noren.statements.set_cells import NumberedSets
from noren.statements.texts import encode_bins, encode_labels
from tests.statements import exact_column, group_column

ONE = SetCells.from_codes(4, np.array([[0, 1], [1, 2], [2, 3]]))
OTHER_TABLE = SetCells.from_codes(4, np.array([[2, 3], [0, 1]]))


def test_numbers_of_one_table_stay_numbers_and_those_of_two_become_sets() -> None:
    same = NumberedSets.concat([NumberedSets(ONE, np.array([2, 0])), NumberedSets(ONE, np.array([1]))])
    assert isinstance(same, NumberedSets)
    assert same.ids.tolist() == [2, 0, 1]
    mixed = NumberedSets.concat([NumberedSets(ONE, np.array([2, 0])), NumberedSets(OTHER_TABLE, np.array([0, 1]))])
    assert mixed.codes(2).tolist() == [[2, 3], [0, 1], [2, 3], [0, 1]]
    beside = NumberedSets.concat([NumberedSets(ONE, np.array([1])), OTHER_TABLE])
    assert beside.codes(2).tolist() == [[1, 2], [2, 3], [0, 1]]


@pytest.mark.parametrize("values", [[0], [1], [0, 1, 1, 2]])
def test_shares_of_groups_are_those_of_their_tables(values: list[int]) -> None:
    table = GroupTable.from_codes(1, 3, np.zeros(len(values), np.int64), np.array(values))
    found = group_column("ill", 3, groups=table).shares(np.array([len(values)]))
    assert found.tolist() == [values.count(code) / len(values) for code in range(3)]
    exact = exact_column("ill", 3).shares(np.bincount(values, minlength=3))
    assert exact.tolist() == found.tolist()


def test_groups_of_one_line_each_are_groups_and_no_fewer_lines_are() -> None:
    column = group_column("ill", 3)
    lines = {"group": pa.array([0, 1, 2]), "value": pa.array(["0", "1", "2"]), "count": pa.array([1, 2, 3])}
    assert column.read_side(lines).totals.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="a group is empty"):
        column.read_side({name: cells.slice(0, 2) for name, cells in lines.items()})


def test_the_last_group_is_one_and_the_next_number_is_none() -> None:
    column = group_column("ill", 3)
    assert column.from_arrow(pa.array([0, 2])).data.tolist() == [0, 2]  # type: ignore[attr-defined]
    for strange in (3, -1):
        with pytest.raises(ReleaseError, match="names a group that does not exist"):
            column.from_arrow(pa.array([0, strange]))


LEVELS = (("a", "b", "c"), ("X", "X", "c"), ("*", "*", "*"))
NODES = {"nodes": [["a", [[0, 1]]], ["b or c", [[1, 3]]]]}


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_general_values_are_of_a_hierarchy_or_listed_and_both_only_beside_hidden_ones(
    tree: bool, hidden: bool, listed: bool
) -> None:
    domain = Domain(LEVELS[0], hidden=("c",) if hidden else ())
    column = Column(role=Role.PLAIN).over("ill", domain, hierarchy=Hierarchy(LEVELS) if tree else None)
    fields: dict[str, Any] = NODES if listed else {}

    def unread(*given: Any) -> Any:
        raise AssertionError("general values have no design")

    if tree == listed and not (listed and hidden):
        with pytest.raises(ValueError, match="takes its nodes from a hierarchy or from a list"):
            NodeStatement.parse(column, fields, unread)
    else:
        found = NodeStatement.parse(column, fields, unread)
        assert ("b or c" in found.catalogue.labels) == listed  # type: ignore[attr-defined]


def test_days_lie_between_published_edges() -> None:
    days = [date(2020, 1, 1), date(2020, 2, 1), date(2020, 3, 1)]
    edges = tuple(float(day.toordinal()) for day in days)
    labels = ("[2020-01-01, 2020-02-01)", "[2020-02-01, 2020-03-01]")
    domain = Domain((*labels, MISSING), "string", "data", edges=edges, measure="date")
    texts = ["2020-01-01", "2020-01-31", "2020-02-01", "2020-03-01", None, "2020-03-02", "2019-12-31"]
    codes, missing, outside = encode_bins(pa.array(texts), "day", domain)
    assert codes[:5].tolist() == [0, 0, 1, 1, 2]
    assert (missing, outside) == (1, 2)


def test_what_a_domain_does_not_name_is_other_or_counted() -> None:
    texts = pa.array(["a", "x", None, "b", "x"])
    codes, bad = encode_labels(texts, "ill", Domain(("a", OTHER, "b", MISSING)))
    assert (codes.tolist(), bad) == ([0, 1, 3, 2, 1], 0)
    codes, bad = encode_labels(texts, "ill", Domain(("b", "a")))
    assert (codes.tolist(), bad) == ([1, 0, 0, 0, 0], 3)
    codes, bad = encode_labels(texts, "ill", Domain((OTHER,)))
    assert (codes[[0, 1, 3, 4]].tolist(), bad) == ([0, 0, 0, 0], 1)
