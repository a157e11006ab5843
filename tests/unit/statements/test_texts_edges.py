"""Columns of a file at their edges: dictionaries with more than the cells name, missing cells, lists as written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import ReleaseError
from noren.schema.domain import MISSING, Domain
from noren.statements.terms import TermCells, encode_terms, present, term_counts
from noren.statements.texts import (
    arrow_type,
    as_dictionary,
    codes_in,
    json_lists,
    labels_in,
    lists_of,
    unguard_formulas,
)

TOWNS = Domain(("Bonn", "Köln", "Ulm"))


def dictionary(positions: list[int | None], texts: list[str | None]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(positions, pa.int32()), pa.array(texts, pa.string()))


def test_a_dictionary_with_a_text_that_is_not_published_is_refused_even_if_no_cell_names_it() -> None:
    """Otherwise a file would tell what its cells do not."""
    fine = dictionary([1, 0, 1], ["Ulm", "Bonn"])
    assert codes_in("town", TOWNS, fine).tolist() == [0, 2, 0]
    assert labels_in("town", TOWNS.values, fine).tolist() == [0, 2, 0]
    for read in (lambda column: codes_in("town", TOWNS, column), lambda c: labels_in("town", TOWNS.values, c)):
        with pytest.raises(ReleaseError, match="a value that its published domain does not name"):
            read(dictionary([1, 0, 1], ["Ulm", "Bonn", "Hof"]))
        with pytest.raises(ReleaseError, match="a value that its published domain does not name"):
            read(dictionary([1, 0, 2], ["Ulm", "Bonn", "Hof"]))
        assert read(dictionary([1, 0], ["Ulm", "Bonn", ""])).tolist() == [0, 2], "an empty text is no value"


@pytest.mark.parametrize("column", [["Ulm", None], ["Ulm", ""]])
def test_a_missing_cell_needs_a_domain_that_names_it(column: list[str | None]) -> None:
    with pytest.raises(ReleaseError, match="a value that its published domain does not name"):
        codes_in("town", TOWNS, pa.array(column))
    with pytest.raises(ReleaseError, match="a value that its published domain does not name"):
        labels_in("town", [*TOWNS.values, MISSING], pa.array(column))
    assert codes_in("town", Domain(("Ulm", MISSING)), pa.array(column)).tolist() == [0, 1]


def test_lists_of_texts_stand_in_a_dictionary_and_those_of_numbers_do_not() -> None:
    codes, offsets = np.array([0, 2, 1]), np.array([0, 2, 3])
    texts = lists_of(TOWNS, codes, offsets)
    assert pa.types.is_dictionary(texts.type.value_type)
    assert texts.to_pylist() == [["Bonn", "Ulm"], ["Köln"]]
    numbers = lists_of(Domain(("3", "5", "8"), "integer"), codes, offsets)
    assert numbers.type.value_type == arrow_type("integer")
    assert numbers.to_pylist() == [[3, 8], [5]]


def test_lists_for_people_have_letters_as_they_are() -> None:
    assert json_lists(TOWNS, np.array([1, 0]), np.array([0, 2])).to_pylist() == ['["Köln", "Bonn"]']


def test_one_apostrophe_goes_and_those_behind_it_stay() -> None:
    assert unguard_formulas(pa.array(["'=1", "''a'b", "a'", ""])).to_pylist() == ["=1", "'a'b", "a'", ""]


def test_moments_of_a_zone_are_none_of_the_published_ones() -> None:
    """Whole seconds in any unit are read; with a zone the text is another one."""
    seen = Domain(("2020-02-28 23:30:05",), "datetime")
    moment = datetime(2020, 2, 28, 23, 30, 5)
    for unit in ("s", "ms", "us"):
        assert codes_in("seen", seen, pa.array([moment], pa.timestamp(unit))).tolist() == [0]
    assert codes_in("seen", seen, pa.array(["2020-02-28 23:30:05"])).tolist() == [0]
    with pytest.raises(ReleaseError, match="does not name"):
        codes_in("seen", seen, pa.array([moment.replace(tzinfo=UTC)], pa.timestamp("ms", "UTC")))


def test_numbers_are_found_however_they_are_written() -> None:
    grams = Domain(("0.5", "2"), "number")
    assert codes_in("grams", grams, pa.array(["2.0", "0.50"])).tolist() == [1, 0]
    assert codes_in("grams", grams, pa.array([2.0, 0.5])).tolist() == [1, 0]
    with pytest.raises(ReleaseError, match="a cell that is not a number"):
        codes_in("grams", grams, pa.array(["heavy"]))


# ---------------------------------------------------------------- terms


def test_terms_count_once_a_record_and_missing_cells_apart() -> None:
    column = pa.array([["fever", "cough", "fever"], None, [], ["cough"]])
    labels, counts, missing = term_counts(column)
    assert (dict(zip(labels, counts.tolist(), strict=True)), missing) == ({"fever": 1, "cough": 2}, 1)
    found = encode_terms(column, Domain(("cough", "rash")))
    assert (found.offsets.tolist(), found.data.tolist()) == ([0, 1, 1, 1, 2], [0, 0])
    assert present(column, "signs").tolist() == [True, False, True, True]
    assert present(pa.array(["a", None, "", "b"]), "town").tolist() == [True, False, False, True]


def test_terms_of_some_records() -> None:
    cells = TermCells.from_entries(4, 4, np.array([3, 0, 0, 2, 0]), np.array([1, 3, 0, 2, 3]))
    assert (cells.offsets.tolist(), cells.data.tolist()) == ([0, 2, 2, 3, 4], [0, 3, 2, 1])

    def lists(some: TermCells) -> list[list[int]]:
        return [some.data[a:b].tolist() for a, b in zip(some.offsets[:-1], some.offsets[1:], strict=True)]

    assert lists(cells.take(slice(1, 3))) == [[], [2]]
    assert lists(cells.take(slice(2, 1))) == []
    assert lists(cells.take(np.array([3, 0, 3]))) == [[1], [0, 3], [1]]
    assert lists(TermCells.concat([cells.take(slice(0, 1)), cells.take(slice(2, 4))])) == [[0, 3], [2], [1]]
    kinds, which = TermCells.concat([cells, cells]).distinct()
    assert [lists(kinds)[at] for at in which] == lists(cells) * 2
    assert len(kinds) == 4
    assert lists(cells.keep(np.array([False, True, True, False]))) == [[3], [], [2], []]
    assert cells.counts().tolist() == [1, 1, 1, 1]
    wanted = np.array([True, False, False, True])
    assert cells.has(wanted).tolist() == [True, False, False, False]
    assert cells.has(np.array([True, True, False, False]), every=True).tolist() == [False] * 4
    assert cells.has(wanted, every=True).tolist() == [True, False, False, False]


def test_positions_of_any_width_are_read_and_nothing_is_minus_one() -> None:
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32()):
        column = pa.DictionaryArray.from_arrays(pa.array([1, None, 0], kind), pa.array(["a", "b"]))
        texts, positions = as_dictionary(column, "x")
        assert (texts.to_pylist(), positions.tolist()) == (["a", "b"], [1, -1, 0])
        assert positions.dtype == np.dtype(np.int32)
