"""Show how often plain decoys break semantic diversity: theorem, exact mean, simulation."""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.errors import QueryError
from noren_papers.semantic.rates import (
    curve,
    exact_rate,
    save_violation_chart,
    separated,
    theorem_bound,
    violation_chart,
    violation_of_table,
    violation_rate,
)

# equation 11 of paper 003 with its binomial put right, worked out by hand from the counts of spaced choices
CORRECTED = {(14, 3, 3): 0.5385, (148, 3, 10): 0.2306, (10, 4, 2): 0.7619, (14, 2, 3): 0.1538, (14, 4, 3): 0.8776}
# mean over all true values, by listing all sets: (F, l, d) -> rate
MEANS = {(10, 4, 2): 5 / 6, (14, 2, 3): 25 / 91, (14, 3, 2): 36 / 91, (14, 3, 3): 61 / 91, (14, 4, 3): 133 / 143}


@pytest.mark.parametrize(("F", "l", "d"), CORRECTED)
def test_the_corrected_theorem(F: int, l: int, d: int) -> None:
    assert theorem_bound(F, l, d) == pytest.approx(CORRECTED[F, l, d], abs=5e-5)


@pytest.mark.parametrize(("F", "l", "d"), MEANS)
def test_the_mean_over_all_values(F: int, l: int, d: int) -> None:
    assert exact_rate(F, l, d) == pytest.approx(MEANS[F, l, d], rel=1e-12)


SHAPES = st.integers(2, 9).flatmap(lambda F: st.tuples(st.just(F), st.integers(2, F), st.integers(1, F - 1)))


def violating(F: int, l: int, d: int, v: int) -> float:
    """Share of the sets of l values around v that hold two closer than d, by listing them."""
    around = [s for s in combinations(range(F), l) if v in s]
    return sum(any(b - a < d for a, b in combinations(s, 2)) for s in around) / len(around)


@given(SHAPES)
@settings(max_examples=80, deadline=None)
def test_against_all_sets(shape: tuple[int, int, int]) -> None:
    F, l, d = shape
    rates = [violating(F, l, d, v) for v in range(F)]
    assert exact_rate(F, l, d) == pytest.approx(sum(rates) / F, abs=1e-12)
    assert theorem_bound(F, l, d) == pytest.approx(rates[0], abs=1e-12)
    assert theorem_bound(F, l, d) == pytest.approx(rates[-1], abs=1e-12)
    assert theorem_bound(F, l, d) <= min(rates) + 1e-12


@given(st.integers(0, 9), st.integers(0, 5), st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_spaced_choices_against_a_list(n: int, size: int, d: int) -> None:
    listed = [s for s in combinations(range(n), size) if all(b - a >= d for a, b in combinations(s, 2))]
    assert separated(n, size, d) == len(listed)


def test_neighbours_may_stand_together_at_distance_one() -> None:
    rate = violation_rate(9, 3, 1, draws=1000)
    assert (rate.bound, rate.exact, rate.simulated) == (0, 0, 0)
    assert rate.for_records(10**6) == 0


def test_sets_that_cannot_be_spread_always_violate() -> None:
    rate = violation_rate(5, 4, 3, draws=1000)
    assert (rate.bound, rate.exact, rate.simulated) == (1, 1, 1)
    assert rate.for_records(1) == 1


@pytest.mark.parametrize(("F", "l", "d"), [(14, 3, 3), (10, 4, 2), (80, 3, 6)])
def test_a_simulation_meets_the_exact_mean(F: int, l: int, d: int) -> None:
    """A mean of independent draws, and of values drawn uniformly: normal bounds that 1e-9 of all runs would break."""
    draws = 60_000
    rate = violation_rate(F, l, d, draws)
    spread = (rate.exact * (1 - rate.exact) / draws) ** 0.5
    assert abs(rate.simulated - rate.exact) < NormalDist().inv_cdf(1 - 5e-10) * spread + 1 / draws
    assert rate.std_error == pytest.approx(spread, rel=0.05)
    assert (rate.values, rate.l, rate.d, rate.draws) == (F, l, d, draws)


def test_a_whole_table() -> None:
    """Equation 12: 1 - (1 - rho)^N."""
    assert violation_of_table(0.25, 3) == pytest.approx(1 - 0.75**3)
    assert violation_of_table(0.25, 0) == 0
    assert violation_of_table(1.0, 1) == 1
    assert violation_of_table(1e-18, 1000) == pytest.approx(1e-15, rel=1e-9, abs=0), "small rates are not lost"
    assert violation_rate(14, 3, 3, 500).for_records(7) == pytest.approx(1 - (1 - 7 / 13) ** 7)


@pytest.mark.parametrize(
    ("F", "l", "d", "text"), [(5, 1, 2, "l = 1"), (5, 6, 2, "l = 6"), (5, 2, 0, "d = 0"), (5, 2, 5, "d = 5")]
)
def test_what_cannot_be_asked(F: int, l: int, d: int, text: str) -> None:
    with pytest.raises(QueryError, match=text):
        violation_rate(F, l, d, 100)


def test_a_curve_goes_from_no_violation_to_nothing_else() -> None:
    rates = curve(10, [2, 3], draws=200)
    assert [(r.l, r.d) for r in rates if r.l == 3] == [(3, d) for d in range(1, 6)]
    for size in (2, 3):
        own = [r.exact for r in rates if r.l == size]
        assert own == sorted(own)
        assert own[0] == 0
    assert [r.exact for r in rates if r.l == 3][-1] == 1
    assert 0 < [r.exact for r in rates if r.l == 2][-1] < 1


def test_a_chart_holds_all_three_answers(tmp_path: Path) -> None:
    rates = curve(8, [2, 3], draws=200)
    shown = violation_chart(rates).to_dict()
    (rows,) = shown["datasets"].values()
    assert len(rows) == 3 * len(rates)
    assert {row["from"] for row in rows} == {"theorem (lower bound)", "exact mean", "simulated"}
    save_violation_chart(rates, tmp_path / "rates.svg")
    assert "Violations of semantic diversity by plain decoys, 8 values" in (tmp_path / "rates.svg").read_text()


def test_the_theorem_in_words() -> None:
    """(14, 3, 3) for an end value: of C(13, 2) pairs, C(9, 2) keep their distance."""
    assert theorem_bound(14, 3, 3) == 1 - comb(9, 2) / comb(13, 2)
