"""Groups and their tables: which values a group leaves possible, and what a manifest may say of numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from noren.designs import read_design
from noren.errors import NorenError
from noren.statements import CodeCells, GroupStatement, GroupTable, TermsStatement
from noren.statements.mean import MeanStatement
from noren.statements.set_cells import numberable
from tests.statements import group_column, meaning, open_column, term_column

TABLE = GroupTable.from_codes(2, 3, np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 1, 2]))
"""The first group holds value 0 once and 1 twice, the second 1 and 2."""


def test_a_group_covers_the_values_of_its_own_table() -> None:
    ill = group_column("ill", 3, groups=TABLE)
    cells = CodeCells(2, np.repeat([0, 1], 3))
    assert ill.covers(cells, np.tile([0, 1, 2], 2)).tolist() == [True, True, False, False, True, True]
    assert ill.count_possible(CodeCells(2, np.array([1, 0]))).tolist() == [2, 2]
    assert ill.tally(cells).tolist() == [3, 3]
    assert ill.possible_counts(ill.tally(cells)).tolist() == [1, 3, 1]
    found = ill.likelihood(CodeCells(2, np.array([1, 0])))
    assert (found.bounds.tolist(), found.value.tolist()) == ([0, 2, 4], [1, 2, 0, 1])
    assert found.weight.tolist() == pytest.approx([1 / 3, 1, 1, 2 / 3])


def test_without_a_table_over_its_own_values_a_group_says_nothing() -> None:
    ill = group_column("ill", 3, groups=TABLE)
    four = GroupTable.from_codes(2, 4, np.array([0, 1]), np.array([0, 3]))
    for held in (None, four):
        with pytest.raises(NorenError, match="has no table of its groups over 3 values"):
            _ = replace(ill, held=held).table


def test_counterfeits_are_told_where_there_are_some() -> None:
    ill = group_column("ill", 3, groups=TABLE)
    fakes = replace(ill, counterfeits={1: 2})
    assert (ill.fake_entries, ill.fakes.tolist(), fakes.fake_entries, fakes.fakes.tolist()) == (0, [0, 0], 2, [0, 2])
    assert ill.manifest_fields() == {"groups": 2, "number": 1}
    assert fakes.manifest_fields() == {"groups": 2, "number": 1, "counterfeits": [[1, 2]]}
    assert "counterfeits" in fakes.description
    assert "counterfeits" not in ill.description


@pytest.mark.parametrize("strange", [True, 1.5, "1", None, 0, -1])
def test_what_is_no_number_of_groups_or_tables_is_refused(strange: Any) -> None:
    for fields in ({"groups": strange, "number": 1}, {"groups": 2, "number": strange}):
        with pytest.raises(ValueError, match="numbers from 1 on"):
            GroupStatement.parse(meaning("x", 3), fields, read_design)
    with pytest.raises(ValueError, match="numbers from 1 on"):
        TermsStatement.parse(meaning("x", 3), {"knowledge": strange}, read_design)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([], {}),
        ([[0, 1]], {0: 1}),
        ([[0, 2], [2, 1]], {0: 2, 2: 1}),
        ([[2, 1], [0, 2]], None),
        ([[1, 1], [1, 1]], None),
        ([[3, 1]], None),
        ([[-1, 1]], None),
        ([[0, 0]], None),
        ([[0, 1.5]], None),
        ([[0.0, 1]], None),
        ([[0, True]], None),
        ([[False, 1]], None),
        ([[0, 1, 2]], None),
        ([[0]], None),
        (["01"], None),
        ([7], None),
        ("01", None),
        (7, None),
    ],
)
def test_counterfeits_are_pairs_of_a_group_and_a_count_in_order(given: Any, kept: dict[int, int] | None) -> None:
    fields = {"groups": 3, "number": 1, "counterfeits": given}
    if kept is None:
        with pytest.raises(ValueError, match="counterfeits are pairs"):
            GroupStatement.parse(meaning("x", 3), fields, read_design)
    else:
        found: Any = GroupStatement.parse(meaning("x", 3), fields, read_design)
        assert found.counterfeits == kept


def test_numbers_have_a_first_and_a_last_one() -> None:
    """A manifest of a stranger may not ask for more than can be held."""
    assert GroupStatement.parse(meaning("x", 3), {"groups": 1 << 40, "number": 1000}, read_design).kinds == 1 << 40
    with pytest.raises(ValueError, match="numbers from 1 on"):
        GroupStatement.parse(meaning("x", 3), {"groups": (1 << 40) + 1, "number": 1}, read_design)
    assert (numberable(2048, 2047), numberable(2049, 2048)) == (True, False), "four million values in all sets"
    assert (group_column("x", 3).side, term_column("x", ("a",), None).side) == ("groups-1", "knowledge-1")


def test_means_are_finite_and_have_no_decimals_unless_they_say_so() -> None:
    column = open_column("pay").column
    assert (MeanStatement(column, (3.0,)).label(0), MeanStatement(column, (3.0,), 1).label(0)) == ("3", "3.0")
    for strange in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="finite number"):
            MeanStatement.parse(column, {"means": [1.0, strange], "decimals": 0}, read_design)
