"""Codes and counts at the ends of what is allowed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from noren.designs.decoys import DecoyDesign
from noren.errors import ModelDoesNotApply
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.kinds import Kind
from noren.schema.roles import Role
from noren.statements import GroupTable, MemberStatement, SetStatement, TermCells, TermsStatement
from noren.statements.mean import mean_cells
from noren.statements.set_cells import SetCells
from noren.statements.texts import encode_bins, label_counts


def test_missing_cells_are_counted_apart_from_the_first_text() -> None:
    labels, counts, missing = label_counts(pa.chunked_array([["a", "a", None, "b"]]), "x")
    assert (labels, counts.tolist(), missing) == (["a", "b"], [2, 1], 1)


def test_cells_outside_all_bins_are_counted_wherever_they_stand() -> None:
    domain = Domain(("[0, 10)", "[10, 20]"), edges=(0.0, 10.0, 20.0), source="bins")
    cells = pa.chunked_array([["99", "20", None, "99", "0", "-1"]])
    codes, missing, outside = encode_bins(cells, "x", domain)
    assert (codes[[1, 4]].tolist(), missing, outside) == ([1, 0], 1, 3)


@pytest.mark.parametrize(("code", "inside"), [(2, True), (3, False), (-1, False)])
def test_a_term_lies_inside_its_list(code: int, inside: bool) -> None:
    statement = TermsStatement(
        Column(role=Role.QUASI_SENSITIVE, knowledge="signs.csv").over("signs", Domain(("a", "b", "c")))
    )
    cells = TermCells(3, np.array([0, 1]), np.array([code], np.int32))
    if inside:
        assert statement.check_cells(cells) is cells
        return
    with pytest.raises(ModelDoesNotApply, match="a term outside its 3 terms"):
        statement.check_cells(cells)


class Pairs(Domain):
    """Four tuples whose first member must differ: the first two share theirs, and so do the others."""

    @property
    def views(self) -> tuple[np.ndarray, ...]:
        return (np.array([0, 0, 1, 1]),)


def test_tuples_that_share_a_member_are_not_different() -> None:
    column = Column(role=Role.SENSITIVE).over("jobs", Pairs(("a|x", "a|y", "b|x", "b|y")))
    statement = SetStatement(column, DecoyDesign(d=4, eta=2))
    assert statement.different(SetCells.from_codes(4, np.array([[0, 1], [0, 2], [2, 3]]))).tolist() == [1, 2, 1]


@pytest.mark.parametrize(("kind", "values"), [("string", ("a", "b", "c")), ("integer", ("1", "2", "3"))])
def test_texts_of_shuffled_members_are_looked_at_as_texts(kind: Kind, values: tuple[str, ...]) -> None:
    column = Column(role=Role.SENSITIVE).over("ill", Domain(values, kind))
    assert MemberStatement(column, DecoyDesign(d=3, eta=2)).texts_path == ("ill" if kind == "string" else None)


def test_counts_of_groups_stay_exact_in_floating_point() -> None:
    def held(count: int, groups: int = 1) -> GroupTable:
        number = np.arange(groups)
        return GroupTable(groups, 1, number, np.zeros(groups, np.int64), np.full(groups, count))

    assert held(2**53).count.tolist() == [2**53]
    assert held(2**51, 4).groups == 4
    for count, groups in ((2**53 + 1, 1), (2**51 + 1, 4)):
        with pytest.raises(ValueError, match="with a count"):
            held(count, groups)


def test_means_that_no_cell_shows_are_not_asked_for() -> None:
    """Some of the records are enough to see whether theirs is the mean they say."""
    column = Column(role=Role.QUASI_IDENTIFIER).over("pay", Domain(("1", "2", "9"), "integer"))
    numbers = np.array([1.0, 2.0, 9.0, 9.0])
    statement, cells = mean_cells(column, numbers, np.array([0, 0, 1, 1]), np.ones(4, bool))
    assert statement.holds_truth(cells.take(np.array([0, 1])), numbers[:2])
    assert statement.holds_truth(cells, numbers)
    assert not statement.holds_truth(cells.take(np.array([0])), numbers[:1])
