"""Claims as declarations: which lines of a sheet are compared, and what is told of them."""

from __future__ import annotations

import polars as pl
import pytest

from noren_papers.claims import CANNOT, FAILS, HOLDS, IN_PART, UNDECIDED, Claims
from noren_papers.relations import Along, Check, Compare, Kind, answer_from

SHEET = pl.DataFrame(
    {
        "l": [2, 2, 2, 5, 5, 5],
        "series": ["a", "b", "c"] * 2,
        "error": [1.0, 2.0, None, 4.0, 3.0, 9.0],
        "deviation": [0.1, 0.1, None, 0.1, 0.1, 0.1],
        "each": [[0.5, 1.5], [1.0, 3.0], None, [2.0, 6.0], [1.0, 5.0], [9.0]],
    }
)


@pytest.mark.parametrize(
    ("kind", "count"),
    [("below", "1 of 2"), ("above", "1 of 2"), ("much below", "1 of 2"), ("much above", "0 of 2"),
     ("no worse", "1 of 2"), ("alike", "0 of 2")],
)  # fmt: skip
def test_series_are_compared_where_both_have_a_value(kind: Kind, count: str) -> None:
    assert answer_from(SHEET, Compare("a", kind, "b", "error", ("l",))).count == count
    assert answer_from(SHEET, Compare("c", "above", "a", "error", ("l",))).count == "1 of 1"


def test_places_at_which_a_claim_fails_are_named() -> None:
    told = answer_from(SHEET, Compare("a", "below", ("b", "c"), "error", ("l",))).measured
    assert "error of a is 0.5 to 1.33 times that of b, in 2 places, not at l = 5" in told
    assert "error of a is 0.444 times that of c, in 1 place (" in told


def test_the_least_rival_is_the_one_that_counts() -> None:
    assert answer_from(SHEET, Compare("c", "above", ("a", "b"), "error", ("l",), rival="most")).count == "1 of 1"
    assert answer_from(SHEET, Compare("a", "above", ("b", "c"), "error", ("l",), rival="least")).count == "1 of 2"


def test_standard_errors_and_repetitions_decide_what_is_too_close() -> None:
    wide = SHEET.with_columns(deviation=pl.lit(2.0))
    assert answer_from(wide, Compare("a", "below", "b", "error", ("l",), error="deviation")).verdict == UNDECIDED
    paired = Compare("a", "below", "b", "error", ("l",), each="each")
    assert answer_from(SHEET, paired).count == "1 of 2", "in every repetition the same way"
    lines = SHEET.filter(pl.col("series") == "a")
    assert answer_from(lines, Along("l", "error", ("series",), each="each")).verdict in {HOLDS, UNDECIDED}


def test_one_place_may_be_enough_and_no_place_is_no_answer() -> None:
    assert answer_from(SHEET, Compare("a", "below", "b", "error", ("l",), some=True)).verdict == HOLDS
    nothing = answer_from(SHEET, Compare("a", "below", "nobody", "error", ("l",)))
    assert (nothing.verdict, "0 places" in nothing.measured) == (CANNOT, True)
    assert answer_from(SHEET, Compare("a", "below", 2.5, "error", ("l",))).count == "1 of 2"


def test_lines_rise_or_fall() -> None:
    assert answer_from(SHEET, Along("l", "error", ("series",))).verdict == HOLDS
    assert answer_from(SHEET, Along("l", "error", ("series",), rising=False)).verdict == FAILS
    assert "a 1 to 4; b 2 to 3" in answer_from(SHEET, Along("l", "error", ("series",))).measured


def test_a_condition_is_asked_of_every_line() -> None:
    found = answer_from(SHEET, Check(pl.col("error") < 4, ("series", "l"), ("error",)))
    assert found.count == "3 of 6"
    assert "not at a l = 5, c l = 5" in found.measured
    assert "1 undecided" in found.measured, "an empty value is neither"


def test_claims_are_declared_with_their_relations() -> None:
    said = Claims()
    said("It is below.", Compare("a", "below", "b", "error", ("l",)))
    said("Errors grow and are below four.", Along("l", "error", ("series",)), Check(pl.col("error") < 4, ("l",)))
    found = said.answered(frame=SHEET)
    assert list(found) == list(said)
    assert found["It is below."].verdict == IN_PART
    assert found["Errors grow and are below four."].count == "5 of 8"
