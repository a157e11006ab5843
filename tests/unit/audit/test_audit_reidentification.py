"""Re-identification: risks by hand, a given population, and estimates of population uniqueness."""

from __future__ import annotations

from itertools import product
from math import comb, log

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import attack, reasons
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.metrics.population import expected_inverse, pitman, pitman_fit, snb, uniqueness, zayatz
from noren.release.release import Release
from noren.schema.roles import Role
from noren.statements import CodeCells, SetCells
from tests.unit.audit.world import assembled, of_values, stated


def only(release: Release, **options):
    (found,) = attack(release, "reidentification", **options)
    return found


def test_prosecutor_and_marketer_by_hand() -> None:
    found = only(of_values("a", "abcd", "aabbc"), threshold=0.2)
    rows = found.scenario("release-rows")
    assert rows.frame["risk"].to_list() == pytest.approx([1.0] + [1 / 4] * 4 + [1 / 5] * 5)
    assert rows.frame["candidates"].to_list() == [1] + [4] * 4 + [5] * 5
    assert rows.summary["mean_risk"] == pytest.approx(3 / 10), "classes over records"
    assert rows.summary["max_risk"] == 1.0
    assert rows.summary["unique"] == pytest.approx(0.1)
    assert rows.summary["at_risk"] == pytest.approx(0.5), "a risk of 0.2 is not above it"
    assert found.baseline["mean_risk"] == found.baseline["max_risk"] == pytest.approx(0.1)
    assert not found.holder_only
    # the table is taken for the population
    assert rows.summary["max_journalist"] == 1.0
    assert rows.summary["population_unique"] == pytest.approx(0.1)
    assert "whole population" in found.notes[-1]


def test_a_given_population() -> None:
    nodes = (("0-4", ((0, 5),)), ("5-9", ((5, 10),)))
    entry = stated("age", Role.QUASI_IDENTIFIER, "node", "integer", values=tuple(map(str, range(10))), nodes=nodes)
    release = assembled([entry], {"age": CodeCells(2, np.array([0, 0, 1]))})
    people = pl.DataFrame({"age": [0, 1, 1, 4, 5, 77, None]})
    found = only(release, population=people)
    rows = found.scenario("release-rows")
    assert rows.frame["journalist"].to_list() == pytest.approx([1 / 4, 1 / 4, 1.0])
    assert rows.summary["mean_journalist"] == pytest.approx(0.5)
    assert rows.summary["population_unique"] == pytest.approx(1 / 7)
    assert found.facts["population"] == 7
    assert found.facts["journalist_from"] == "the population given"
    assert found.baseline["mean_journalist"] == pytest.approx(1 / 7)


def test_a_population_that_lacks_people() -> None:
    found = only(of_values("aab", "ab"), population=pl.DataFrame({"where": [0, 0]}))
    rows = found.scenario("release-rows")
    assert rows.frame["journalist"].to_list() == pytest.approx([1 / 3] * 3 + [0.0] * 2)
    assert "2 published classes hold more records" in found.notes[-1]
    with pytest.raises(QueryError, match="no column 'where'"):
        only(of_values("aab", "ab"), population=pl.DataFrame({"there": [0, 0]}))
    with pytest.raises(QueryError, match="no records"):
        only(of_values("aab", "ab"), population=pl.DataFrame({"where": []}, schema={"where": pl.Int64}))


def test_bins_of_a_population() -> None:
    entry = stated("age", Role.QUASI_IDENTIFIER, "exact", values=("[0, 10)", "[10, 20]"), edges=(0, 10, 20))
    release = assembled([entry], {"age": CodeCells(2, np.array([0, 1]))})
    found = only(release, population=pl.DataFrame({"age": [0.0, 9.5, 10.0, 20.0, 15.0, 21.0]}))
    assert found.scenario("release-rows").frame["journalist"].to_list() == pytest.approx([1 / 2, 1 / 3])


def test_people_of_the_original() -> None:
    table = pl.DataFrame({"age": [1, 2, 3, 4, 4, 5], "ill": list("ababab")})
    policy = nr.Policy(
        attributes={"age": nr.quasi_identifier(), "ill": nr.sensitive()},
        require=[nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Mondrian(blind=False),
        mechanism="ignored",  # a table of few people
    )
    found = only(nr.anonymize(table, policy), original=table, policy=policy)
    raw, inside = found.scenario("raw"), found.scenario("release")
    assert raw.frame["risk"].to_list() == pytest.approx([1, 1, 1, 0.5, 0.5, 1])
    assert raw.holder_only
    assert inside.frame["risk"].to_list() == pytest.approx([1 / 3] * 6)
    assert not found.scenario("release-rows").holder_only, "published rows tell this to everybody"
    assert found.chart().to_dict()


def test_a_fraction_says_which_model_is_taken() -> None:
    rng = np.random.default_rng(7)
    table = pl.DataFrame({"age": rng.zipf(1.5, 300) % 90, "ill": rng.choice(list("abc"), 300)})
    policy = nr.Policy(
        attributes={"age": nr.quasi_identifier(), "ill": nr.sensitive()},
        require=[nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Mondrian(),
    )
    found = only(nr.anonymize(table, policy), original=table, policy=policy, fraction=0.1)
    assert any("of the raw table are estimated by Pitman's model" in note for note in found.notes)
    raw, inside = found.scenario("raw").summary, found.scenario("release").summary
    assert 0 < raw["population_unique"] < raw["unique"]
    assert inside["population_unique"] == 0
    assert raw["mean_journalist"] < raw["mean_risk"]
    assert found.facts["population"] == 3000


def test_sets_cannot_be_matched() -> None:
    design = DecoyDesign(d=3, eta=2).model_dump(mode="json")
    entry = stated("job", Role.QUASI_IDENTIFIER, "set", values=tuple("abc"), design=design)
    release = assembled([entry], {"job": SetCells.from_codes(3, np.array([[0, 1], [1, 2]]))})
    assert "sets or groups" in str(reasons(release)["reidentification"])
    with pytest.raises(QueryError, match="sets or groups"):
        only(release)


def test_rows_of_shuffled_members_are_not_people() -> None:
    """Two rows for each of three people: a class of four rows is one of two people."""
    where = stated("w", Role.QUASI_IDENTIFIER, "exact", values=tuple("xy"))
    design = DecoyDesign(d=3, eta=2).model_dump(mode="json")
    member = stated("x", Role.SENSITIVE, "member", values=tuple("abc"), design=design)
    cells = {"w": CodeCells(2, np.array([0, 0, 0, 0, 1, 1])), "x": CodeCells(3, np.array([0, 1, 1, 2, 0, 2]))}
    release = assembled([where, member], cells, records=3)
    assert only(release).scenario("release-rows").frame["candidates"].to_list() == [2] * 4 + [1] * 2
    assert "no row belongs to one person" in str(reasons(release)["homogeneity"])


# ---------------------------------------------------------------------- estimators


def test_zayatz_by_hand() -> None:
    """Two uniques and one pair of four records, from eight: the hypergeometric chances in full."""
    one, two = comb(7, 3) / comb(8, 4), 2 * comb(6, 3) / comb(8, 4)
    chance = (2 / 3) * one / ((2 / 3) * one + (1 / 3) * two)
    assert zayatz(np.array([1, 1, 2]), 8) == pytest.approx(2 * chance * 8 / 4)
    assert zayatz(np.array([2, 2]), 8) == 0.0


def test_the_journalists_expectation() -> None:
    """pi / (1 - pi) log(1 / pi) for a unique (Benedetti and Franconi); the sum of the series for others."""
    for pi in (0.01, 0.1, 0.5, 0.9):
        assert expected_inverse(np.array([1]), pi)[0] == pytest.approx(pi / (1 - pi) * log(1 / pi), rel=1e-9)
        for f in (2, 7):
            series = sum(
                comb(F - 1, f - 1) * pi**f * (1 - pi) ** (F - f) / F for F in range(f, 9000 if pi < 0.1 else 900)
            )
            assert expected_inverse(np.array([f]), pi)[0] == pytest.approx(series, rel=1e-9)
    assert expected_inverse(np.array([1, 4]), 1.0).tolist() == [1.0, 0.25]


def pitman_likelihood(sizes: list[int], theta: float, alpha: float) -> float:
    """Pitman's sampling formula seat by seat: the log of the chance to seat these classes one after another."""
    total, seated, opened = 0.0, 0, 0
    for size in sizes:
        for already in range(size):
            if seated:
                weight = theta + alpha * opened if already == 0 else already - alpha
                total += log(weight / (theta + seated))
            opened += already == 0
            seated += 1
    return total


def test_pitman_is_fitted_at_the_maximum() -> None:
    sizes = [1] * 30 + [2] * 9 + [3] * 4 + [7, 12, 20]
    fitted = pitman_fit(np.array(sizes))
    assert fitted is not None
    theta, alpha = fitted
    best = pitman_likelihood(sizes, theta, alpha)
    for a, b in product((-0.02, 0.0, 0.02), (-0.2, 0.0, 0.2)):
        assert pitman_likelihood(sizes, theta + b, alpha + a) <= best + 1e-7
    # the expectation, one more person at a time: a new class is unique, and a unique one may be joined
    expected = 0.0
    classes = 0.0
    for seated in range(200):
        new = (theta + alpha * classes) / (theta + seated) if seated else 1.0
        joined = expected * (1 - alpha) / (theta + seated) if seated else 0.0
        expected += new - joined
        classes += new
    assert pitman(np.array(sizes), 200) == pytest.approx(expected, rel=1e-9)


def test_what_cannot_be_fitted() -> None:
    assert pitman_fit(np.ones(50, np.int64)) is None
    assert pitman_fit(np.array([50])) is None
    assert snb(np.array([2, 2, 3]), 100) is None
    all_alone = uniqueness(np.ones(50, np.int64), 0.05)
    assert all_alone.chosen == "zayatz"
    assert all_alone.share == pytest.approx(1.0)


def restaurant(people: int, theta: float, alpha: float, seed: int) -> np.ndarray:
    """A population by Pitman's formula itself."""
    rng = np.random.default_rng(seed)
    chance = rng.random(people)
    table, sizes = np.zeros(people, np.int64), [1]
    for i in range(1, people):
        if chance[i] < (theta + alpha * len(sizes)) / (theta + i):
            table[i] = len(sizes)
            sizes.append(1)
            continue
        while True:
            found = table[rng.integers(i)]
            if rng.random() >= alpha / sizes[found]:
                break
        table[i] = found
        sizes[found] += 1
    return table


def sampled(population: np.ndarray, fraction: float, seed: int) -> tuple[np.ndarray, int]:
    """Sizes of the classes of a random sample, and how many people of the population are unique."""
    some = np.random.default_rng(seed).choice(population, round(len(population) * fraction), replace=False)
    return np.unique(some, return_counts=True)[1], int((np.unique(population, return_counts=True)[1] == 1).sum())


@pytest.mark.parametrize("fraction", [0.05, 0.1])
def test_pitman_finds_the_uniques_of_its_own_population(fraction) -> None:
    """On average over eight samples within 15 %; single ones scatter by about 8 %."""
    population = restaurant(40_000, 30.0, 0.6, 2)
    factors = []
    for seed in range(8):
        sizes, true = sampled(population, fraction, seed)
        found = uniqueness(sizes, fraction)
        assert found.chosen == "pitman"
        factors.append(found.uniques / true)
    assert 0.85 < np.mean(factors) < 1.15
    assert 0.7 < min(factors) <= max(factors) < 1.4


@pytest.mark.parametrize("fraction", [0.2, 0.5])
def test_snb_finds_the_uniques_of_its_own_population(fraction) -> None:
    rng = np.random.default_rng(3)
    population = np.repeat(np.arange(20_000), 1 + rng.negative_binomial(0.5, 0.15, 20_000))
    sizes, true = sampled(population, fraction, 4)
    found = uniqueness(sizes, fraction)
    assert found.chosen == "snb"
    assert 0.9 < found.uniques / true < 1.1
    by_zayatz = found.ways["zayatz"]
    assert by_zayatz is not None
    assert by_zayatz >= found.uniques


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.5, 0.9])
def test_the_rule_on_a_population_of_no_model(fraction) -> None:
    """Products of skewed columns: within a factor 2.5 for small samples, 1.2 for large ones, and never below."""
    rng = np.random.default_rng(5)
    population = np.minimum(90, rng.gamma(6, 7, 60_000)).astype(int) * 400
    population += rng.zipf(1.3, 60_000) % 50 * 8 + rng.zipf(1.7, 60_000) % 8
    sizes, true = sampled(population, fraction, 6)
    factor = uniqueness(sizes, fraction).uniques / true
    assert 0.9 < factor < (1.2 if fraction >= 0.5 else 2.5)


def test_more_of_the_population_means_more_uniques_among_the_sampled() -> None:
    """Every estimate lies between the sample's uniques that must be expected and the whole population."""
    sizes = np.array([1] * 40 + [2] * 10 + [5] * 6)
    for fraction in (0.01, 0.1, 0.11, 0.5, 0.99, 1.0):
        found = uniqueness(sizes, fraction)
        assert 0 <= found.share <= 1
    assert uniqueness(sizes, 1.0).uniques == 40
    assert uniqueness(np.array([2, 2]), 0.1).uniques == 0
