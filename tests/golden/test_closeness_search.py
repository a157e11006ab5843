"""Closeness by decoys: values computed independently on Adult, and cases small enough for paper and pencil."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from noren.designs import closeness
from noren.designs.closeness import largest_ps
from noren.designs.decoys import DecoyDesign
from noren.errors import PolicyError
from noren_papers.sensitive_qids.search import largest_p, search
from tests.oracles import closeness as oracle

# Adult, first 30,162 complete rows, values in alphabetical order: counts, then for each t and distance the chosen
# eta, its expected L2 error (equation 9) and the largest p for eta = 1 .. d - 1. Source: an independent search over
# all subsets with Bayes' rule.
ADULT: dict[str, tuple[list[int], list[tuple[float, str, int, float, list[float]]]]] = {
    "race": (
        [286, 895, 2817, 231, 25933],
        [
            (0.1, "equal", 1, 0.024002474116, [0.20979017943, 0.29495052307, 0.37099771437, 0.4288857377]),
            (0.1, "ordered", 1, 0.012395147646, [0.38369131799, 0.45797637645, 0.52388338267, 0.59231734367]),
            (0.2, "equal", 1, 0.012637862243, [0.37738063217, 0.48986863058, 0.57561970082, 0.63364099596]),
            (0.2, "ordered", 1, 0.006230918954, [0.63708806564, 0.69544732925, 0.74407430223, 0.7958544706]),
            (0.3, "equal", 1, 0.008587006424, [0.51434061156, 0.62826497124, 0.70528525191, 0.7535606663]),
            (0.3, "ordered", 1, 0.0036359242145, [0.81692558704, 0.84076595452, 0.86530504407, 0.8988062934]),
            (0.4, "equal", 1, 0.0063758448496, [0.62836445916, 0.73161139225, 0.79480516357, 0.83232109357]),
            (0.4, "ordered", 1, 0.0023819353939, [0.90762581997, 0.92523648829, 0.94204818663, 0.96096132534]),
            (0.5, "equal", 1, 0.0048958716839, [0.72476855039, 0.8117263257, 0.86032431928, 0.8880086674]),
            (0.5, "ordered", 1, 0.0016781127047, [0.9507986451, 0.95687718778, 0.97884644298, 1.0]),
        ],
    ),
    "workclass": (
        [943, 2067, 22286, 1074, 2499, 1279, 14],
        [
            (
                0.1,
                "equal",
                2,
                0.042257270568,
                [0.10714075626, 0.19389747722, 0.23847682469, 0.27084988718, 0.30002096817, 0.33940893045],
            ),
            (
                0.1,
                "ordered",
                1,
                0.010711112055,
                [0.44556091928, 0.47051521048, 0.5623863733, 0.62992116251, 0.69454165751, 0.73620817623],
            ),
            (
                0.2,
                "equal",
                1,
                0.015527349803,
                [0.32471608874, 0.3678751244, 0.42184212585, 0.46613076706, 0.5040096971, 0.54920090129],
            ),
            (
                0.2,
                "ordered",
                1,
                0.005193937185,
                [0.71624471494, 0.74434377996, 0.81228306374, 0.86761316221, 0.92158772828, 0.97386741513],
            ),
            (
                0.3,
                "equal",
                1,
                0.010404896465,
                [0.4559784347, 0.50789019425, 0.56722132445, 0.61359720151, 0.65171277398, 0.69172066485],
            ),
            (
                0.3,
                "ordered",
                1,
                0.0031879296007,
                [0.85824354907, 0.92224178588, 0.94671669629, 0.99244111851, 1.0, 1.0],
            ),
            (
                0.4,
                "equal",
                1,
                0.0076546992807,
                [0.57148650833, 0.6272591413, 0.68531037625, 0.72889480152, 0.76360183156, 0.79485458889],
            ),
            (0.4, "ordered", 1, 0.0017009302748, [0.95268017942, 0.97491940464, 1.0, 1.0, 1.0, 1.0]),
            (
                0.5,
                "equal",
                1,
                0.0058441631648,
                [0.67391601057, 0.73023500218, 0.78313417218, 0.8215145043, 0.85129431421, 0.87294721469],
            ),
            (0.5, "ordered", 1, 0.00022205293019, [0.99913358644, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ],
    ),
    "marital-status": (
        [4214, 21, 14065, 370, 9726, 939, 827],
        [
            (
                0.1,
                "equal",
                3,
                0.064477149794,
                [0.065978872434, 0.12372692136, 0.17479043583, 0.22061931534, 0.26341196767, 0.3048040136],
            ),
            (
                0.1,
                "ordered",
                2,
                0.02413766148,
                [0.21136349779, 0.33409169276, 0.39229195385, 0.46351785294, 0.52062309068, 0.70852967081],
            ),
            (
                0.2,
                "equal",
                2,
                0.030610369238,
                [0.15513303838, 0.26579429787, 0.34934997156, 0.41673535339, 0.47175470402, 0.54672227564],
            ),
            (
                0.2,
                "ordered",
                1,
                0.0099940920517,
                [0.47063418277, 0.63972641914, 0.74805095516, 0.80339687303, 0.84416189604, 1.0],
            ),
            (
                0.3,
                "equal",
                2,
                0.019340074124,
                [0.26037364481, 0.41166383764, 0.51209170941, 0.58355943204, 0.63994132199, 0.74339636681],
            ),
            (0.3, "ordered", 1, 0.0054033791046, [0.7023130275, 0.82533065178, 0.90433037558, 0.95859416533, 1.0, 1.0]),
            (
                0.4,
                "equal",
                1,
                0.012598464822,
                [0.38968532546, 0.56091268704, 0.65890008453, 0.72649426892, 0.77674901386, 0.90643341064],
            ),
            (
                0.4,
                "ordered",
                1,
                0.0021964869225,
                [0.92459071262, 0.95998609645, 0.97552059672, 0.99889277686, 1.0, 1.0],
            ),
            (
                0.5,
                "equal",
                1,
                0.0079880783141,
                [0.55509412781, 0.71426609262, 0.78175375351, 0.8242002582, 0.85412382808, 1.0],
            ),
            (0.5, "ordered", 1, 0.0012438701746, [0.97384100923, 0.990382907, 1.0, 1.0, 1.0, 1.0]),
        ],
    ),
}
CASES = [(name, *row) for name, (_, rows) in ADULT.items() for row in rows]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_adult(case: tuple[str, float, closeness.Distance, int, float, list[float]]) -> None:
    name, t, distance, eta, el2, p_by_eta = case
    counts = np.array(ADULT[name][0])
    found = largest_ps(counts, t, distance)
    assert [option.p for option in found] == pytest.approx(p_by_eta, rel=1e-9)
    assert all(option.exact for option in found)
    best = search(counts, t, distance)
    assert best.design.eta == eta
    assert best.design.p == found[eta - 1].p
    assert best.design.expected_l2(int(counts.sum())) == pytest.approx(el2, rel=1e-9)
    assert best.rho == pytest.approx(best.design.rho, rel=1e-9)


def test_the_papers_algorithm_1_breaks_its_own_limit() -> None:
    # Adult race, t = 0.1: the printed rule picks p = 0.745 at eta = 1, where one set moves the belief by 0.52.
    counts = ADULT["race"][0]
    printed = 0.7453196485543192
    assert float(max(oracle.all_distances(counts, 1, printed, "equal"))) == pytest.approx(0.5235225280230925)
    ours = search(np.array(counts), 0.1, "equal").design
    assert max(oracle.all_distances(counts, ours.eta, ours.p, "equal")) <= 0.1


@pytest.mark.parametrize(("t", "p"), [(0.1, 0.2), (0.25, 0.5), (0.4, 0.8)])
@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_two_equally_common_values(t: float, p: float, distance: str) -> None:
    # By hand: B = (1/2 + p/2, 1/2 - p/2), so D = p / 2.
    assert largest_p(np.array([50, 50]), t, 1, distance).p == pytest.approx(p, rel=1e-9)


def test_smallest_eta_is_respected_and_the_whole_domain_is_refused() -> None:
    counts = np.array(ADULT["race"][0])
    assert search(counts, 0.1, "equal", smallest_eta=3).design.eta == 3
    with pytest.raises(PolicyError, match="domain of 5"):
        search(counts, 0.1, "equal", smallest_eta=5)


def test_a_domain_of_one_value_has_no_secret() -> None:
    found = search(np.array([12]), 0.1, "ordered")
    assert found.design == DecoyDesign.exact(1)
    assert largest_p(np.array([12]), 0.1, 1, "equal").rho == 1.0


@pytest.mark.parametrize("distance", ["equal", "ordered"])
@pytest.mark.parametrize("t", [1.0, 1.5])
def test_a_limit_of_one_allows_everything(distance: str, t: float) -> None:
    found = search(np.array([1, 2, 3]), t, distance)
    assert found.design.is_exact
    assert found.rho == inf


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_a_tiny_limit_gives_a_tiny_coin(distance: str) -> None:
    found = search(np.array([5, 3, 9, 1]), 1e-200, distance)
    assert 0 < found.design.p < 1e-198
    assert found.exact


@pytest.mark.parametrize("distance", ["equal", "ordered"])
@pytest.mark.parametrize("counts", [[0, 7, 0], [7, 0, 0], [0, 0, 7]])
def test_all_mass_on_one_value_leaves_nothing_to_learn(counts: list[int], distance: str) -> None:
    assert [option.p for option in largest_ps(np.array(counts), 0.05, distance)] == [1.0, 1.0]


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_absent_values_fill_sets_up(distance: str) -> None:
    # {absent, v} tells as much as {v}; the largest p must survive both that and a pair of occurring values
    counts = [0, 40, 0, 0, 25, 35, 0]
    for option in largest_ps(np.array(counts), 0.2, distance):
        assert max(oracle.all_distances(counts, option.eta, option.p, distance)) <= 0.2 * (1 + 1e-12)
        if option.p < 1:
            assert max(oracle.all_distances(counts, option.eta, option.p * (1 + 1e-6), distance)) > 0.2


def test_many_values_fall_back_to_a_bound_that_says_so() -> None:
    rng = np.random.default_rng(5)  # counts for a test, not a release
    counts = rng.integers(50, 900, 40)
    found = largest_ps(counts, 0.1, "ordered")
    equal = largest_ps(counts, 0.1, "equal")
    assert found[0].exact  # singletons are tried one by one
    assert not found[19].exact
    assert all(a.p >= b.p * (1 - 1e-9) for a, b in zip(found, equal, strict=True))


def test_large_tables_and_domains_stay_above_the_bound_for_any_distribution() -> None:
    for counts in (np.full(2_000, 7), np.arange(1, 42) * 10_000_000):
        found = search(counts, 0.3, "equal", smallest_eta=20)
        assert found.rho >= (1.3 / 0.7) ** 2 * (1 - 1e-9)  # m (1 - t - m) is at most ((1 - t) / 2)^2


@pytest.mark.parametrize(
    ("counts", "t", "distance"),
    [
        ([], 0.1, "equal"),
        ([0, 0], 0.1, "equal"),
        ([1, -1], 0.1, "equal"),
        ([0.5, 0.5], 0.1, "equal"),
        ([1, 1], 0.0, "equal"),
        ([1, 1], float("nan"), "equal"),
        ([1, 1], 0.1, "tree"),
    ],
)
def test_senseless_arguments_are_refused(counts: list, t: float, distance: str) -> None:
    with pytest.raises(ValueError):
        search(np.array(counts), t, distance)
    with pytest.raises(ValueError):
        largest_p(np.array([1, 2]), 0.1, 3, "equal")
