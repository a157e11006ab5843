"""Sets of terms against the truth and in files: one term in all, sets in order, cells of another kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import NorenError, ReleaseError
from noren.statements import CodeCells, TermCells
from tests.statements import term_column

SIGNS = term_column("signs", ("ache", "cough", "rash"), None)


def cells(*sets: str) -> TermCells:
    """Records by the first letters of their terms."""
    codes = [sorted("acr".index(letter) for letter in own) for own in sets]
    offsets = np.cumsum([0, *map(len, codes)])
    return TermCells(3, offsets, np.array([code for own in codes for code in own], np.int32))


@pytest.mark.parametrize(
    ("truth", "shown", "covered"),
    [
        (("a",), ("r",), [False]),
        (("r",), ("a",), [False]),
        (("r",), ("r",), [True]),
        (("",), ("a",), [False]),
        (("",), ("",), [True]),
        (("ac", "r", "cr"), ("a", "", "ac"), [True, True, False]),
        (("ac", "r"), ("acr", "r"), [False, True]),
        (("a", "c"), ("c", "a"), [False, False]),
    ],
)
def test_a_record_publishes_terms_that_it_has_and_no_others(
    truth: tuple[str, ...], shown: tuple[str, ...], covered: list[bool]
) -> None:
    assert SIGNS.covers(cells(*shown), cells(*truth)).tolist() == covered


def test_cells_are_whole_sets_of_these_terms() -> None:
    data = np.array([0, 1], np.int32)
    good = TermCells(3, np.array([0, 1, 2]), data)
    assert SIGNS.check_cells(good) is good
    assert SIGNS.check_cells(cells()).sizes.tolist() == []
    assert SIGNS.position(cells("ac", "", "r")).tolist() == [2, 0, 1]
    wrong: list[Any] = [
        CodeCells(3, data),
        TermCells(4, np.array([0, 1, 2]), data),
        TermCells(3, np.array([0, 2, 1, 2]), data),
        TermCells(3, np.array([0, 1]), data),
        TermCells(3, np.array([1, 2]), data),
        TermCells(3, np.zeros(0, np.int64), data),
        TermCells(3, np.array([0, 2]), np.array([0, 3], np.int32)),
        TermCells(3, np.array([0, 2]), np.array([-1, 0], np.int32)),
    ]
    for one in wrong:
        with pytest.raises(NorenError):
            SIGNS.check_cells(one)


def test_sets_of_a_file_are_in_order_each_by_itself() -> None:
    for kind in (pa.list_(pa.string()), pa.large_list(pa.string())):
        found: Any = SIGNS.from_arrow(pa.array([["rash"], ["ache", "cough"], [], ["ache"]], kind))
        assert (found.offsets.tolist(), found.data.tolist()) == ([0, 1, 3, 3, 4], [2, 0, 1, 0])
    part: Any = SIGNS.from_arrow(pa.array([["rash"], ["ache", "cough"], ["rash"]])[1:])
    assert (part.offsets.tolist(), part.data.tolist()) == ([0, 2, 3], [0, 1, 2])
    none: Any = SIGNS.from_arrow(pa.array([[], []], pa.list_(pa.string())))
    assert (none.offsets.tolist(), none.data.tolist()) == ([0, 0, 0], [])
    for lists in ([["cough", "ache"]], [["ache", "ache"]], [["ache"], None], [["ache", None]]):
        with pytest.raises(ReleaseError, match="not a set of terms in domain order"):
            SIGNS.from_arrow(pa.array(lists, pa.list_(pa.string())))
    with pytest.raises(ReleaseError, match="not a set of terms in domain order"):
        SIGNS.from_arrow(pa.array(["ache"]))
