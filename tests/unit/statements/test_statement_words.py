"""What a statement tells a report: how the column is published, and how many values a cell leaves possible."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs import DecoyDesign, PramDesign
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import (
    FORMS,
    ChangedStatement,
    CodeCells,
    ExactStatement,
    GroupStatement,
    GroupTable,
    MemberStatement,
    NodeStatement,
    SetCells,
    SetStatement,
    TermCells,
    TermsStatement,
)
from noren.statements.group import _counterfeits

COLUMN = Column(role=Role.SENSITIVE).over("ill", Domain(tuple("abcdef")))
SURE, UNSURE = DecoyDesign(d=6, eta=2), DecoyDesign(d=6, eta=2, p=0.5)


def test_every_form_says_how_it_is_published() -> None:
    for form, kind in FORMS.items():
        assert kind.form == form
        assert kind.words.startswith("published ")
        assert not (kind.is_exact and kind.hides)
    nodes = Nodes.from_members(6, ["abc", "d"], [[0, 1, 2], [3]])
    told = {
        ExactStatement(COLUMN).description,
        SetStatement(COLUMN, SURE).description,
        MemberStatement(COLUMN, SURE).description,
        NodeStatement(COLUMN, nodes).description,
        GroupStatement(COLUMN, 1200).description,
    }
    assert told == {
        "as it is",
        "a set of 2 of 6 values",
        "shuffled rows, one per value of a set of 2 out of 6 values",
        "as general values",
        "as the numbers of 1,200 groups; a second table lists each group's values",
    }


def test_spread_is_how_many_values_stay_possible() -> None:
    sets = SetCells.from_codes(6, np.array([[0, 3], [1, 2]]))
    assert SetStatement(COLUMN, SURE).count_possible(sets).tolist() == [2, 2]
    assert SetStatement(COLUMN, UNSURE).count_possible(sets).tolist() == [6, 6], (
        "a set that may lack the truth excludes nothing"
    )
    assert MemberStatement(COLUMN, SURE).count_possible(CodeCells(6, np.array([1, 5, 2]))).tolist() == [2, 2, 2]
    nodes = Nodes.from_members(6, ["ace", "d"], [[0, 2, 4], [3]])
    assert NodeStatement(COLUMN, nodes).count_possible(CodeCells(2, np.array([1, 0, 0]))).tolist() == [1, 3, 3]
    table = GroupTable.from_codes(2, 6, np.array([0, 0, 0, 1]), np.array([0, 0, 5, 3]))
    assert GroupStatement(COLUMN, 2, 1, table).count_possible(CodeCells(2, np.array([0, 1]))).tolist() == [2, 1]
    assert ExactStatement(COLUMN).count_possible(CodeCells(6, np.array([4, 4]))).tolist() == [1, 1]
    changed = ChangedStatement(COLUMN, PramDesign(d=6, keep=0.9))
    assert changed.count_possible(CodeCells(6, np.array([4, 4]))).tolist() == [6, 6], "any value may have been another"


def test_every_statement_agrees_with_what_it_leaves_possible() -> None:
    """`spread` is a shorter way to count what `possible` lists."""
    nodes = Nodes.from_members(6, ["ace", "d"], [[0, 2, 4], [3]])
    table = GroupTable.from_codes(2, 6, np.array([0, 0, 0, 1]), np.array([0, 0, 5, 3]))
    cases = [
        (SetStatement(COLUMN, SURE), SetCells.from_codes(6, np.array([[0, 3], [1, 2]]))),
        (SetStatement(COLUMN, UNSURE), SetCells.from_codes(6, np.array([[0, 3], [1, 2]]))),
        (NodeStatement(COLUMN, nodes), CodeCells(2, np.array([1, 0, 0]))),
        (GroupStatement(COLUMN, 2, 1, table), CodeCells(2, np.array([0, 1]))),
        (ExactStatement(COLUMN), CodeCells(6, np.array([4, 4]))),
    ]
    for statement, cells in cases:
        found = statement.possible(cells)
        assert found is not None
        assert statement.count_possible(cells).tolist() == np.diff(found[0]).tolist()


def test_terms_count_the_records_that_publish_them() -> None:
    knowledge = Knowledge.from_pairs([("flu", "fever"), ("cold", "cough")])
    column = Column(role=Role.QUASI_SENSITIVE, knowledge=knowledge).over("signs", Domain(("fever", "cough")))
    cells = TermCells(2, np.array([0, 2, 3, 3]), np.array([0, 1, 1], np.int32))
    assert TermsStatement(column).tally(cells).tolist() == [1, 2]
    assert "may have been left out" in TermsStatement(column).description


@pytest.mark.parametrize(
    "given", [[[1, 1], [0, 1]], [[0, 1], [0, 2]], [[3, 1]], [[-1, 1]], [[0, 0]], [[0, True]], [[0]], "00", [["0", 1]]]
)
def test_counterfeits_are_of_groups_in_order_each_once(given) -> None:
    assert _counterfeits([[0, 2], [2, 1]], 3) == {0: 2, 2: 1}
    with pytest.raises(ValueError, match="counterfeits are pairs"):
        _counterfeits(given, 3)
