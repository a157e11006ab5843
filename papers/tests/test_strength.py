"""Strength of requirements: worked values of paper 004 and their corrections (golden/generalisation.json)."""

from __future__ import annotations

import numpy as np
import pytest

from noren.errors import QueryError
from noren_papers.tau_l.strength import (
    curves,
    eligibility,
    eligible_ranges,
    envelope,
    largest_c,
    paper_c,
    psi,
    save_strength_chart,
    strength_chart,
    strength_table,
    weakest_simple,
)

# "strength", "m14_l14": (tau, u) -> (theorem 23, exact) for 14 values and l = 14
AT_14 = {
    (0.5, 2): (13.0, 13.0), (0.5, 3): (6.5, 13.0), (0.4, 4): (4.333333, 8.666667), (0.3, 5): (3.25, 5.428571),
    (0.25, 6): (2.6, 4.0), (0.2, 7): (2.166667, 3.0), (0.15, 8): (1.857143, 2.235294),
}  # fmt: skip
# "psi"
PSI = {
    (0.5, 3): [0.5, 0.75, 1, 1],
    (0.3, 5): [0.3, 0.475, 0.65, 0.825, 1, 1],
    (0.15, 8): [0.15, 0.271428571, 0.392857143, 0.514285714, 0.635714286, 0.757142857, 0.878571429, 1, 1],
}
# paper 004, table 1: counts of UCI columns (recounted), sensitive values, largest simple l.
# Abalone: the paper says 29 values, which is the largest number of rings; 28 numbers occur.
TABLE_1 = {
    "Abalone, rings": (
        [689, 634, 568, 487, 391, 267, 259, 203, 126, 115, 103, 67, 58, 57, 42, 32, 26, 15, 14, 9, 6, 2, 2, *[1] * 5],
        28,
        6,
    ),
    "Adult, salary": ([34014, 11208], 2, 1),
    "Adult, occupation": (
        [6020, 6008, 5984, 5540, 5408, 4808, 2970, 2316, 2046, 1480, 1420, 976, 232, 14],
        14,
        7,
    ),
    "Car, class": ([1210, 384, 69, 65], 4, 1),
    "Chess (KRK), depth of win": (
        [4553, 4194, 3597, 2854, 2796, 2166, 1985, 1712, 1433, 683, 592, 471, 390, 246, 198, 81, 78, 27],
        18,
        6,
    ),
    "Contraceptive method": ([629, 511, 333], 3, 2),
    "Mushroom, class": ([4208, 3916], 2, 1),
    "Nursery, rank": ([4320, 4266, 4044, 328, 2], 5, 3),
}


@pytest.mark.parametrize(("tau", "l"), PSI)
def test_psi(tau, l):
    assert psi(np.arange(1, len(PSI[tau, l]) + 1), tau, l) == pytest.approx(PSI[tau, l])


@pytest.mark.parametrize(("tau", "u"), AT_14)
def test_the_largest_c_over_14_values(tau, u):
    paper, exact = AT_14[tau, u]
    assert paper_c(14, 14, u) == pytest.approx(paper, abs=1e-6)
    assert largest_c(14, 14, tau, u) == pytest.approx(exact, abs=1e-6)
    assert weakest_simple(tau, u) == u
    rows = strength_table(14, tau, u)
    assert [row.l for row in rows] == list(range(2, 15))
    assert all(row.paper is None or row.paper <= row.exact + 1e-12 for row in rows)
    assert all(row.exact < 1 for row in rows if row.l < u)
    assert all(row.paper is None for row in rows if row.l < u)


def test_the_counterexample_to_theorem_23():
    """Five values, (0.9, 2): the theorem allows c to 1, but f1 < 9 (1 - f1) already says f1 < 0.9."""
    assert paper_c(5, 2, 2) == pytest.approx(1)
    assert largest_c(5, 2, 0.9, 2) == pytest.approx(9)


def test_below_u_a_small_c_is_enough():
    """(0.3, 2) says f1 < 0.3 / 1.3 < 1/4, so four-diversity and hence (1/3, 3): l need not reach u for c below 1."""
    assert largest_c(10, 2, 1 / 3, 3) == pytest.approx(0.5)
    assert paper_c(10, 2, 3) is None


def test_theorem_23_is_exact_at_tau_of_one_over_u():
    for m, l, u in [(5, 5, 4), (8, 8, 3), (14, 13, 5), (14, 14, 8)]:
        assert largest_c(m, l, 1 / u, u) == pytest.approx(paper_c(m, l, u))


@pytest.mark.parametrize("name", TABLE_1)
def test_eligible_simple_diversity_of_table_1(name):
    counts, values, simple = TABLE_1[name]
    ranges = eligible_ranges(counts)
    assert (ranges.values, ranges.simple) == (values, simple)
    assert ranges.records == sum(counts)


def test_adult_salary_needs_c_of_4_at_l_of_2():
    ranges = eligible_ranges(TABLE_1["Adult, salary"][0])
    assert 3 < ranges.smallest_c(2) < 4
    assert (ranges.largest_l(3), ranges.largest_l(4)) == (1, 2)


def test_ranges_of_a_small_column():
    ranges = eligible_ranges([1, 4, 0, 2, 1])
    assert (ranges.records, ranges.values, ranges.simple) == (8, 4, 2)
    assert ranges.entropy == pytest.approx(2**1.75)
    assert ranges.recursive == (1.0, 2.0, 4.0)
    assert [ranges.largest_l(c) for c in (1, 1.01, 2, 3, 5)] == [1, 2, 2, 3, 4]
    assert ranges.cumulative == (0.5, 0.75, 0.875, 1.0)
    assert ranges.base_values_suffice(0.5, 3) is True
    assert ranges.base_values_suffice(0.5, 2) is True
    assert ranges.base_values_suffice(0.25, 4) is False
    alone = eligible_ranges([7])
    assert (alone.simple, alone.recursive, alone.entropy) == (1, (), 1)


def test_which_recursive_diversity_serves_adult():
    """(0.2, 7) over Adult's occupations: no integer c fits, but (c, l) with l below 7 and c below 1 does."""
    ranges = eligible_ranges(TABLE_1["Adult, occupation"][0])
    assert ranges.recursive_for(0.2, 7) == (2, 3, 4, 5)
    assert ranges.recursive_for(0.15, 8) == ()
    assert 8 in ranges.recursive_for(0.3, 5)
    verdicts = {verdict.model: verdict for verdict in eligibility(ranges, 0.15, 8)}
    assert verdicts["tau-l-diversity"].eligible
    assert not verdicts["frequency-l-diversity"].eligible
    assert not verdicts["recursive-cl-diversity"].eligible
    assert verdicts["entropy-l-diversity"].eligible
    assert verdicts["k-anonymity"].eligible
    assert {name for name, verdict in verdicts.items() if verdict.guarantees} == {
        "tau-l-diversity", "frequency-l-diversity", "recursive-cl-diversity",
    }  # fmt: skip
    few = {verdict.model: verdict.eligible for verdict in eligibility(eligible_ranges([3]), 0.5, 2)}
    assert [name for name, eligible in few.items() if eligible] == ["k-anonymity", "t-closeness"]


def test_the_lines_of_figure_4():
    lines = list(curves(14, 0.3, 5).values())
    assert len(lines) == 5
    for line in lines[1:]:
        assert (np.array(line) <= np.array(lines[0]) + 1e-9).all()
    assert lines[-1] == pytest.approx([k / 14 for k in range(1, 15)])
    for line in lines[2:4]:
        assert np.isclose(line[:4], lines[0][:4]).any()
    assert len(curves(4, 0.25, 4)) == 3
    with pytest.raises(QueryError, match="no class satisfies"):
        envelope(5, 0.1, 3)


def test_the_chart_names_its_lines(tmp_path):
    picture = strength_chart(14, 0.3, 5).to_dict()
    assert "(0.3, 5)-diversity, 14 values" in picture["title"]["text"]
    save_strength_chart(4, 0.5, 2, tmp_path / "bounds.svg")
    assert "simple 2-diversity" in (tmp_path / "bounds.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: largest_c(5, 6, 0.5, 2), "l = 6 is not between 2 and the 5 values"),
        (lambda: largest_c(5, 2, 0.5, 6), "l = 6 is more than the 5 values"),
        (lambda: weakest_simple(0.2, 4), "tau = 0.2 is not in the range from 1/l = 0.25"),
        (lambda: weakest_simple(1.0, 4), "below 1"),
        (lambda: weakest_simple(0.5, 1), "l = 1 is below 2"),
        (lambda: eligible_ranges([0, 0]), "counts must be"),
        (lambda: eligible_ranges([1, 2]).smallest_c(3), "l = 3 is not between 2"),
    ],
)
def test_what_makes_no_sense(call, said):
    with pytest.raises(QueryError) as error:
        call()
    assert said in str(error.value)
