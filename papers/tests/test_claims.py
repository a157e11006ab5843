"""The evaluator of claims: who wins, who ties, what is too close to tell."""

from __future__ import annotations

from math import inf, nan, sqrt

import polars as pl
import pytest

from noren_papers.claims import (
    CANNOT,
    FAILS,
    HARDLY,
    HOLDS,
    IN_PART,
    MOSTLY,
    MUCH,
    NO_WORSE,
    UNDECIDED,
    VERDICTS,
    Answer,
    Claims,
    Mean,
    Tally,
    answer,
    any_of,
    cannot,
    count_alike,
    count_below,
    count_facts,
    count_trend,
    error_of,
    judged,
    means,
    paired,
    typical,
)


@pytest.mark.parametrize(
    ("true", "false", "verdict"),
    [(4, 0, HOLDS), (3, 1, MOSTLY), (9, 1, MOSTLY), (2, 1, IN_PART), (2, 2, IN_PART), (2, 5, IN_PART), (1, 3, HARDLY),
     (1, 9, HARDLY), (0, 4, FAILS)],
)  # fmt: skip
def test_the_share_of_true_comparisons_is_the_verdict(true: int, false: int, verdict: str) -> None:
    found = judged([True] * true + [False] * false, "measured 7")
    assert found.verdict == verdict
    assert found.measured == f"measured 7 (true in {true} of {true + false} comparisons)"


def test_ties_and_close_calls_decide_nothing() -> None:
    assert Tally(true=3, ties=3).verdict == HOLDS
    assert Tally(true=3, ties=2, unclear=2).verdict == UNDECIDED
    assert Tally(ties=6).verdict == UNDECIDED
    assert Tally().verdict == CANNOT
    assert "true in 1 of 4 comparisons, 2 tied, 1 undecided" in Tally(true=1, ties=2, unclear=1).told()


def test_one_of_hundreds_beyond_two_standard_errors_decides_nothing() -> None:
    """Equal things are so far apart on a given side in one comparison of 44; exact numbers are never chance."""
    above, below = (Mean(2.0, 0.1), 1.0), (Mean(1.0, 0.1), 2.0)

    def verdict(true: int, false: int) -> str:
        return count_below([below] * true + [above] * false).verdict

    assert verdict(43, 1) == HOLDS
    assert verdict(42, 1) == MOSTLY, "of 43 not even one is to be expected"
    assert verdict(86, 2) == HOLDS
    assert verdict(85, 3) == MOSTLY
    assert verdict(1, 43) == FAILS
    assert verdict(1, 42) == HARDLY
    assert count_below([(1.0, 2.0)] * 99 + [(2.0, 1.0)]).verdict == MOSTLY
    assert count_below([below] * 99 + [(2.0, 1.0)]).verdict == MOSTLY
    assert answer("measured 7", count_below([below] * 87 + [above])).count == "87 of 88", "the count hides nothing"


def test_every_verdict_can_be_reached() -> None:
    found = {Tally(true=t, false=f, ties=e).verdict for t in range(8) for f in range(8) for e in range(8)}
    assert found == set(VERDICTS)


def test_below_tells_smaller_equal_larger_and_too_close() -> None:
    assert count_below([(1.0, 2.0), (2.0, 1.0), (3.0, 3.0), (0.1 + 0.2, 0.3)]) == Tally(1, 1, 2, 0)
    assert count_below([(Mean(1.0, 0.1), 1.19)]) == Tally(unclear=1)
    assert count_below([(Mean(1.0, 0.1), 1.21)]) == Tally(true=1)
    assert count_below([(Mean(1.0, 0.3), Mean(2.0, 0.4))]) == Tally(unclear=1), "two errors of 0.5"
    assert count_below([(0.0, 0.0), (0.0, inf), (inf, inf)]) == Tally(1, 0, 2, 0)
    assert count_below([(nan, 1.0)]) == Tally()


def test_much_is_half() -> None:
    assert count_below([(1.0, 2.0), (1.01, 2.0), (0.4, 1.0)], MUCH) == Tally(2, 1)
    assert count_below([(Mean(0.45, 0.03), 1.0)], MUCH) == Tally(unclear=1)


def test_similar_is_a_quarter_either_way() -> None:
    assert count_alike([(1.0, 1.25), (1.25, 1.0), (1.26, 1.0), (0.0, 0.0), (0.0, 1.0)]) == Tally(3, 2)
    assert count_alike([(Mean(1.2, 0.1), 1.0)]) == Tally(unclear=1)
    assert count_alike([(one, 0.5) for one in (0.5, 0.4, 0.39, 0.62, 0.63)]) == Tally(3, 2)
    assert count_below([(1.25, 1.0), (0.1, 1.0), (1.3, 1.0)], NO_WORSE) == Tally(2, 1)


def test_a_trend_compares_every_two_points() -> None:
    assert count_trend([1.0, 2.0, 2.0, 1.5]) == Tally(3, 2, 1)
    assert count_trend([3.0, 2.0, 1.0], rising=False) == Tally(3)
    slow = [Mean(1.0, 0.4), Mean(2.0, 0.4), Mean(3.0, 0.4)]
    assert count_trend(slow) == Tally(true=1, unclear=2), "the ends decide what the steps cannot"
    # apart they overlap, together they always rise
    line = [[1.0, 10.0], [1.1, 11.0]]
    assert count_trend(line) == Tally(1)
    assert count_trend([Mean.of(point) for point in line]) == Tally(unclear=1)


def test_some_needs_one() -> None:
    assert any_of(count_facts([False, True])) == Tally(true=1)
    assert any_of(count_facts([False, False])) == Tally(false=1)
    assert any_of(count_facts([False, None])) == Tally(unclear=1)
    assert any_of(count_facts([])).verdict == CANNOT


def test_means_and_ratios_carry_their_standard_errors() -> None:
    assert Mean.of([2.0]) == Mean(2.0, 0.0)
    assert Mean.of([1.0, 3.0]).error == pytest.approx(1.0)
    ratio = Mean.ratio([2.0, 4.0, 5.0], [1.0, 2.0, 4.0])
    assert ratio.value == pytest.approx(11 / 7)
    rest = [2 - 11 / 7, 4 - 22 / 7, 5 - 44 / 7]
    assert ratio.error == pytest.approx(sqrt(sum(r * r for r in rest) / 2 * 3) / 7)
    assert Mean.ratio([1.0, 2.0], [2.0, 4.0]).error == pytest.approx(0.0)
    assert paired([0.0], [0.0])[0] == Mean(1.0)
    assert paired([1.0], [0.0])[0] == Mean(inf)


def test_answers_add_claims_up_and_say_when_there_is_nothing() -> None:
    found = answer("x 1", count_below([(1.0, 2.0)]), count_trend([2.0, 1.0]))
    assert (found.verdict, found.measured) == (IN_PART, "x 1 (true in 1 of 2 comparisons)")
    assert answer("x 1", count_below([])).measured == "x 1 (nothing could be compared)"
    assert cannot("no such table").verdict == CANNOT


def test_claims_stand_above_their_judges_and_are_answered_in_order() -> None:
    said = Claims()

    @said("The second is larger.")
    def larger(first: float, second: float) -> Answer:
        return answer(f"{first:g} and {second:g}", count_below([(first, second)]))

    said("The first is nothing.")(lambda first: judged([first == 0], "seen 1"))
    assert list(said.items()) == [(text, text) for text in ("The second is larger.", "The first is nothing.")]
    assert larger(1.0, 2.0).verdict == HOLDS, "a judge stays a function"
    found = said.answered(first=3.0, second=2.0, third="nobody asks for it")
    assert {text: one.verdict for text, one in found.items()} == dict.fromkeys(said, FAILS)
    assert found["The second is larger."].measured.startswith("3 and 2")
    with pytest.raises(KeyError, match="second"):
        said.answered(first=3.0)


def test_means_of_a_sheet_agree_with_those_of_lists() -> None:
    sheet = pl.DataFrame({"x": ["b", "a", "b", "b"], "y": [1.0, 7.0, 2.0, 6.0]})
    found = means(sheet, ("x",), "y", pl.len().alias("repetitions")).rows()
    assert [row[0] for row in found] == ["b", "a"], "in order of appearance"
    assert found[0][1:3] == pytest.approx((3.0, error_of([1.0, 2.0, 6.0])))
    assert found[1][1:] == (7.0, None, 1)
    assert error_of([7.0]) is None
    assert error_of([]) is None


def test_a_typical_ratio_is_the_geometric_mean_of_what_can_be_compared() -> None:
    assert typical([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    assert typical([0.0, inf, nan, 4.0]) == pytest.approx(4.0)
    assert typical([0.0]) != typical([0.0]), "nothing to compare is no number"
