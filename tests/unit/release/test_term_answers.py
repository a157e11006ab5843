"""Counts of records by the terms that they publish, by hand: who surely has a term, and who may."""

from __future__ import annotations

import numpy as np
import pytest

from noren.estimates.counts.axes import Axis
from noren.estimates.counts.tabulate import HARD, Tabulation
from noren.release.term_answers import LEFT_OUT, OVERLAP, AskedTerms, tabulate_terms
from noren.statements import CodeCells, TermCells
from tests.statements import node_column

TERMS = TermCells.from_entries(3, 5, np.array([0, 0, 1, 3, 4, 4]), np.array([0, 1, 1, 0, 2, 0]))
"""Five records with the terms {0, 1}, {1}, none, {0} and {0, 2}."""
SURE = np.array([True, True, True, False, True])
TOWN = np.array([0, 1, 0, 0, 1])


def exact(admitted: int) -> Axis:
    """A condition: the town is this one."""
    return Axis.exact("town", TOWN, 2, np.where(np.arange(2) == admitted, 0, -1), 1)


def general(codes: list[int]) -> Axis:
    """A condition on a general column: the value is 0; the node 2 stands for either."""
    return Axis("age", node_column("age", 2), CodeCells(3, np.array(codes)), np.array([0, -1]), 1)


def shown(table: Tabulation) -> tuple[list[float], list[float], list[float]]:
    return table.counts.ravel().tolist(), table.low.ravel().tolist(), table.high.ravel().tolist()


def test_sure_records_are_counted_and_all_others_may_be_meant() -> None:
    found = tabulate_terms([], AskedTerms(SURE), "likelihood", suppressed=2)
    assert shown(found) == ([4], [4], [7])
    assert found.assumes == f"{LEFT_OUT}; {HARD}"
    assert found.diagnostics == {"bounds": "hard", "records": 5}
    assert np.isnan(found.std_error).all()
    assert (found.iterations, found.method) == (0, "published terms")
    assert shown(tabulate_terms([], AskedTerms(SURE), "likelihood")) == ([4], [4], [5])


def test_every_term_has_a_row() -> None:
    found = tabulate_terms([], AskedTerms(SURE, TERMS), "likelihood", suppressed=2)
    assert shown(found) == ([2, 2, 1], [2, 2, 1], [7, 7, 7])
    assert found.assumes == f"{LEFT_OUT}; {OVERLAP}; {HARD}"
    assert found.diagnostics["overlap"] is True


def test_a_condition_leaves_fewer() -> None:
    """Of the first town are the records 0, 2 and 3, of the second 1 and 4."""
    for town, counts, most in ((0, [1, 1, 0], 3), (1, [1, 1, 1], 2)):
        found = tabulate_terms([exact(town)], AskedTerms(SURE, TERMS), "likelihood", suppressed=1)
        assert shown(found) == (counts, counts, [most + 1] * 3)
        assert found.counts.shape == (3, 1)
        assert found.diagnostics["converged"]
        assert found.iterations == 0  # nothing was searched for
        alone = tabulate_terms([exact(town)], AskedTerms(SURE), "likelihood", suppressed=1)
        assert shown(alone) == ([2], [2], [most + 1])


def test_a_general_column_leaves_bounds() -> None:
    """Record 0 has the value, record 4 another one, and the others one that nobody knows."""
    axis = general([0, 2, 2, 2, 1])
    found = tabulate_terms([axis], AskedTerms(SURE, TERMS), "likelihood")
    assert found.low.ravel().tolist() == [1, 1, 0]
    assert found.high.ravel().tolist() == [4, 4, 4]
    assert found.counts.ravel()[[0, 2]].tolist() == pytest.approx([1, 0])
    assert 1 <= found.counts.ravel()[1] <= 2
    assert found.assumes.startswith(f"{LEFT_OUT}; {OVERLAP}; coarsening at random")
    assert found.assumes.endswith(f"; {HARD}")
    rows = [np.array([0, 4]), np.array([0, 1]), np.array([4])]  # of the sure ones, by term
    codes = np.array([0, 2, 2, 2, 1])
    alone = [
        tabulate_terms([general(codes[some].tolist())], AskedTerms(np.ones(len(some), bool)), "likelihood")
        for some in rows
    ]
    assert found.counts.ravel().tolist() == pytest.approx([float(one.counts.ravel()[0]) for one in alone])
    assert found.iterations == max(one.iterations or 0 for one in alone)


def test_a_column_without_terms_has_no_rows() -> None:
    none = TermCells.from_entries(0, 2, np.array([], np.int64), np.array([], np.int64))
    found = tabulate_terms([general([0, 1])], AskedTerms(np.ones(2, bool), none), "likelihood")
    assert shown(found) == ([], [], [])


def test_some_records_are_taken_with_their_terms() -> None:
    some = AskedTerms(SURE, TERMS).take(np.array([4, 3]))
    assert some.sure.tolist() == [True, False]
    assert some.listed is not None
    assert [some.listed.take(np.array([row])).data.tolist() for row in (0, 1)] == [[0, 2], [0]]
    assert AskedTerms(SURE).take(np.array([0])).listed is None
