"""The decoy design's closed forms, and what an adversary believes: values worked out independently."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign, largest_p
from tests.oracles.posterior import (
    mean_true_probability,
    ordered_emd,
    posterior,
    total_variation,
    worst_confidence,
)

# d, eta, p, Pt, Po, Pt - Po, kappa inside, kappa outside, rho, expected L2 error at N = 1,000 (equation 9)
CLOSED_FORMS = [
    (3, 2, 1.0, 1.0, 0.5, 0.5, 0.5, 0.0, inf, 0.044721359549995794),
    (4, 2, 0.5, 0.75, 0.41666666666666663, 0.3333333333333333, 0.25, 0.08333333333333333, 3.0, 0.09082951062292476),
    (5, 1, 0.2, 0.36, 0.16, 0.2, 0.36, 0.16, 2.25, 0.13856406460551016),
    (7, 5, 1.0, 1.0, 0.6666666666666666, 0.3333333333333333, 0.06666666666666667, 0.0, inf, 0.10954451150103323),
    (
        16,
        6,
        0.15625,
        0.47265625,
        0.3684895833333333,
        0.10416666666666667,
        0.00015739468864468865,
        0.00010536338661338661,
        1.4938271604938271,
        0.5870796368466548,
    ),
    (2, 1, 0.5, 0.75, 0.25, 0.5, 0.75, 0.25, 3.0, 0.03872983346207417),
    (4, 4, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, inf),
    (
        41,
        2,
        0.25,
        0.2865853658536585,
        0.04283536585365853,
        0.24375,
        0.007164634146341463,
        0.0009146341463414634,
        7.833333333333333,
        0.17619421883739494,
    ),
]


@pytest.mark.parametrize("row", CLOSED_FORMS)
def test_closed_forms(row: tuple[float, ...]) -> None:
    d, eta, p, *expected = row
    design = DecoyDesign(d=int(d), eta=int(eta), p=p)
    found = [
        design.p_true,
        design.p_other,
        design.p_gap,
        design.kappa_in,
        design.kappa_out,
        design.rho,
        design.expected_l2(1000),
    ]
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("row", [row for row in CLOSED_FORMS if row[8] not in (inf, 1.0)])
def test_p_from_rho_and_back(row: tuple[float, ...]) -> None:
    assert largest_p(int(row[0]), int(row[1]), row[8]) == pytest.approx(row[2], rel=1e-9)


def test_posterior_with_the_truth_always_inside() -> None:
    # By hand: prior odds 0.6 : 0.1 stay, the value outside is ruled out.
    found = posterior(np.array([0.6, 0.3, 0.1]), [0, 2], DecoyDesign(d=3, eta=2))
    assert found == pytest.approx([6 / 7, 0, 1 / 7])


def test_posterior_with_a_coin() -> None:
    # By hand: rho = 3, weights 1.2 : 0.9 : 0.2 : 0.1.
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    found = posterior(prior, [0, 1], DecoyDesign(d=4, eta=2, p=0.5))
    assert found == pytest.approx([0.5, 0.375, 1 / 12, 1 / 24])
    assert total_variation(prior, found) == pytest.approx(0.175)
    assert ordered_emd(prior, found) == pytest.approx(1 / 9)


def test_posterior_refuses_what_it_cannot_mean() -> None:
    design = DecoyDesign(d=3, eta=2)
    with pytest.raises(ValueError, match="2 distinct values"):
        posterior(np.array([0.6, 0.3, 0.1]), [0, 0], design)
    with pytest.raises(ValueError, match="3 values"):
        posterior(np.array([0.6, 0.4]), [0, 1], design)
    with pytest.raises(ValueError, match="possible under this prior"):
        posterior(np.array([1.0, 0, 0]), [1, 2], design)
    assert ordered_emd(np.array([1.0]), np.array([1.0])) == 0.0


# Adult, first 30,162 complete rows: counts in alphabetical order and, by l, the worst confidence of an adversary who
# knows the attribute's distribution.
CONFIDENCE = {
    "education": (
        [820, 1048, 377, 151, 288, 557, 455, 1008, 1307, 5044, 375, 9840, 1627, 45, 542, 6678],
        {2: 0.9954476479514416, 3: 0.9804703068951773, 5: 0.9197121226282831, 10: 0.7315985130111524},
    ),
    "occupation": (
        [3721, 9, 4030, 3992, 989, 1350, 1966, 3212, 143, 4038, 644, 3584, 912, 1572],
        {2: 0.9977761304670126, 3: 0.9637231503579953, 5: 0.702749738948834, 10: 0.27219413549039434},
    ),
    "native-country": (
        [
            18,
            107,
            68,
            56,
            92,
            67,
            27,
            100,
            86,
            27,
            128,
            29,
            63,
            42,
            1,
            12,
            19,
            13,
            100,
            42,
            24,
            68,
            80,
            59,
            17,
            610,
            33,
            14,
            30,
            188,
            56,
            34,
            109,
            11,
            71,
            42,
            17,
            18,
            27504,
            64,
            16,
        ],
        {2: 0.9999636429740048, 3: 0.9995638901003053, 5: 0.9986565484187212, 10: 0.995691995800601},
    ),
    "race": (
        [286, 895, 2817, 231, 25933],
        {2: 0.9911710747592112, 3: 0.9804536862003781},
    ),
    "workclass": (
        [943, 2067, 22286, 1074, 2499, 1279, 14],
        {2: 0.9993721973094171, 3: 0.9588263132986276, 5: 0.870682919206126},
    ),
    "marital-status": (
        [4214, 21, 14065, 370, 9726, 939, 827],
        {2: 0.9985091580292489, 3: 0.9729524073049253, 5: 0.8670324251017137},
    ),
}


@pytest.mark.parametrize("name", CONFIDENCE)
def test_worst_confidence_on_adult(name: str) -> None:
    counts, by_l = CONFIDENCE[name]
    for l, expected in by_l.items():  # noqa: E741
        assert worst_confidence(np.array(counts), l) == pytest.approx(expected, rel=1e-9)
        assert worst_confidence(np.array([*counts, 0, 0]), l) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="values that occur"):
        worst_confidence(np.array([*counts, 0]), len(counts) + 1)


def test_mean_probability_of_the_true_value() -> None:
    # Adult workclass at l = 5: about 0.63, three times the 0.2 that a uniform prior would give.
    workclass = np.array(CONFIDENCE["workclass"][0])
    assert mean_true_probability(workclass, 5) == pytest.approx(0.63, abs=0.005)
    assert mean_true_probability(np.full(8, 10), 4) == pytest.approx(0.25)
    assert mean_true_probability(workclass, 1) == pytest.approx(1.0)
    share = workclass / workclass.sum()
    assert mean_true_probability(workclass, 7) == pytest.approx(float((share**2).sum()))


def test_mean_probability_by_simulation_agrees_with_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.array(CONFIDENCE["occupation"][0])
    exact = mean_true_probability(counts, 4)
    monkeypatch.setattr("tests.oracles.posterior.ENUMERATION_LIMIT", 0)
    # a million values in [0, 1]: standard error at most 0.0005, six and a half of them for a false alarm below 1e-9
    assert mean_true_probability(counts, 4) == pytest.approx(exact, abs=0.0033)
