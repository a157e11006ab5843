"""Answers of counts: what is certain, what is left to chance, and what each says of itself, by hand."""

from __future__ import annotations

from math import inf, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.estimates.counts.estimate import SEVERAL_ROWS
from noren.release.manifest import Manifest, PublishedMargin
from noren.release.store import MemoryStore
from noren.statements import CodeCells, SetCells, TermCells
from tests.statements import exact_column, member_column, set_column, term_column

PEOPLE = pl.DataFrame(
    {
        "sex": ["f", "m", "m"] * 8,
        "ill": ["a", "b", "c", "d"] * 6,
        "pay": [float(i % 6) for i in range(24)],
        "w": [1.0, 3.0, 2.0] * 8,
    }
)
"""Eight women who weigh 1 each, and sixteen men who weigh 40 together."""


def manifest(records: int, columns: Any, **more: Any) -> Manifest:
    """Of so many records, nothing demanded and nothing judged."""
    given: Any = {"requirements": (), "methods": (), "randomness": "fresh", "verdicts": ()} | more
    return Manifest(noren="0", records=records, columns=columns, **given)


def made(method: str | None = None, **roles: Any) -> nr.Release:
    asked = [nr.models.KAnonymity(k=3)] if method else []
    more: dict[str, Any] = {"method": method} if method else {}
    named = dict.fromkeys(PEOPLE.columns, "plain") | roles
    return nr.anonymize(PEOPLE, nr.Policy(attributes=named, require=asked, dependence={"most": 1.0}, **more))


def again(release: nr.Release, **changes: Any) -> nr.Release:
    return nr.Release(release.manifest.model_copy(update=changes), release.store)


@pytest.fixture(scope="module")
def plain() -> nr.Release:
    return made()


@pytest.fixture(scope="module")
def drawn() -> nr.Release:
    """What the people have is hidden in sets of two, the same in every run."""
    columns = (exact_column("sex", 2, values=("f", "m")), set_column("ill", 4, values=("a", "b", "c", "d")))
    ill = np.arange(24) % 4
    others = (ill + 1 + np.random.default_rng(2).integers(0, 3, 24)) % 4
    cells = {
        "sex": CodeCells(2, np.array([0, 1, 1] * 8, np.uint8)),
        "ill": SetCells.from_codes(4, np.sort(np.stack([ill, others], axis=1), axis=1)),
    }
    return nr.Release(manifest(24, columns), MemoryStore(cells))


@pytest.fixture(scope="module")
def weighed() -> nr.Release:
    return made(w={"role": "plain", "weight": True})


@pytest.fixture(scope="module")
def coarse() -> nr.Release:
    return made("mondrian", pay="quasi-identifier")


# ---------------------------------------------------------------------- nothing hidden


def rows(release: nr.Release, **options: Any) -> list[tuple[Any, ...]]:
    """The answer about a column that is published exactly, and the same asked as two counts."""
    found = release.estimate("sex", **options)
    counts = [release.count({"sex": sex}, **options) for sex in ("f", "m")]
    table = [row[1:] for row in found.frame.rows()]
    for row, count in zip(table, counts, strict=True):
        assert (count.count, count.low, count.high) == pytest.approx((row[0], row[2], row[3]))
        assert (count.std_error is None) == (row[1] is None)
        assert count.std_error is None or count.std_error == pytest.approx(row[1])
        assert count.level == found.level
    return table


def test_without_chance_bounds_are_hard(plain: nr.Release) -> None:
    assert rows(plain) == [(8, None, 8, 8), (16, None, 16, 16)]
    assert plain.estimate("sex").level == 1
    assert plain.estimate("sex").diagnostics["bounds"] == "hard"


def test_beside_drawn_columns_errors_are_nothing(drawn: nr.Release) -> None:
    assert rows(drawn) == [(8, 0, 8, 8), (16, 0, 16, 16)]
    assert drawn.estimate("sex").level == 0.95
    assert "bounds" not in drawn.estimate("sex").diagnostics


def test_people_left_out_may_be_anywhere(plain: nr.Release, drawn: nr.Release) -> None:
    for release in (plain, drawn):
        assert rows(again(release, suppressed=3)) == [(8, None, 8, 11), (16, None, 16, 19)]
        assert again(release, suppressed=3).count({"sex": "f"}).level == 1


def test_a_sample_of_a_population_has_the_error_of_a_share(plain: nr.Release, drawn: nr.Release) -> None:
    error = sqrt(24 * (1 / 3) * (2 / 3))
    reach = NormalDist().inv_cdf(0.95) * error
    expected = [(8, error, 8 - reach, 8 + reach), (16, error, 16 - reach, 16 + reach)]
    for release in (plain, drawn):
        found = rows(release, population=True, level=0.9)
        assert [value for row in found for value in row] == pytest.approx([value for row in expected for value in row])
    small = plain.count({"pay": 1, "sex": "f"}, population=True)
    assert (small.count, small.low) == (0, 0)


def test_chance_decides_nothing_about_general_values_and_people_left_out(
    plain: nr.Release, drawn: nr.Release, coarse: nr.Release
) -> None:
    for release in (coarse, again(plain, suppressed=1), again(drawn, suppressed=1)):
        for ask in (release.estimate, lambda name, release=release, **o: release.count({name: "f"}, **o)):
            with pytest.raises(QueryError, match="no interval for the population here"):
                ask("sex", population=True)


def test_a_mean_of_a_population_needs_chance_too(plain: nr.Release, coarse: nr.Release) -> None:
    found = plain.mean("pay", population=True)
    pay = PEOPLE["pay"].to_list()
    error = sqrt(sum((one - 2.5) ** 2 for one in pay) / 23 / 24)
    assert found.frame.select("mean", "std_error").row(0) == pytest.approx((2.5, error))
    assert plain.mean("pay").frame.select("mean", "low", "high").row(0) == pytest.approx((2.5, 2.5, 2.5))
    with pytest.raises(QueryError, match="no interval for the population here"):
        coarse.mean("pay", population=True)
    bounds = coarse.mean("pay")
    assert bounds.level == 1
    assert bounds.frame["low"][0] <= 2.5 <= bounds.frame["high"][0]


# ---------------------------------------------------------------------- weights


def test_weights_are_numbers_of_people(weighed: nr.Release) -> None:
    assert [row[0] for row in rows(weighed)] == pytest.approx([8, 40])
    assert [row[0] for row in rows(weighed, weighted=False)] == [8, 16]
    assert weighed.estimate("w").frame["count"].to_list() == pytest.approx([8, 16, 24])
    half = again(weighed, sample=0.5)
    assert [row[0] for row in rows(half)] == pytest.approx([16, 80])
    assert [row[0] for row in rows(half, weighted=False)] == [8, 16]


def test_weights_of_people_left_out_are_not_known(weighed: nr.Release) -> None:
    left = again(weighed, suppressed=3)
    assert [row[3] for row in rows(left)] == pytest.approx([8, 40])
    told = "the 3 suppressed people are not counted, because their weights are unknown"
    assert left.count({"sex": "f"}).assumes.endswith(told)
    assert left.estimate("sex").assumes.endswith(told)
    assert told not in weighed.count({"sex": "f"}).assumes


def test_a_count_says_what_its_weights_cost(weighed: nr.Release, plain: nr.Release) -> None:
    assert weighed.count({"sex": "f"}).design_effect == pytest.approx(1)
    assert weighed.count({"sex": "m"}).design_effect == pytest.approx(16 * (8 * 9 + 8 * 4) / 40**2)
    assert plain.count({"sex": "m"}).design_effect is None


@pytest.mark.parametrize("number", [1, 2])
def test_a_release_of_one_record_has_one(number: int) -> None:
    about = manifest(number, (exact_column("town", 2),))
    release = nr.Release(about, MemoryStore({"town": CodeCells(2, np.zeros(number, np.uint8))}))
    assert (release.count({"town": "0"}).records, release.estimate("town").records) == (number, number)
    assert release.count({"town": "1"}).records == 0
    assert release.count({"town": "0"}, population=True).std_error == 0  # everybody


# ---------------------------------------------------------------------- shuffled rows


def shuffled(**more: Any) -> nr.Release:
    """Three people with two rows each, one of which tells the truth about what they have."""
    columns = (member_column("ill", 4), exact_column("town", 2, kind="integer"))
    about = manifest(3, columns, **more)
    cells = {
        "ill": CodeCells(4, np.array([0, 1, 1, 2, 3, 0])),
        "town": CodeCells(2, np.array([0, 0, 1, 1, 1, 1])),
    }
    return nr.Release(about, MemoryStore(cells))


def test_rows_of_a_person_count_once() -> None:
    release = shuffled()
    assert release.rows == 6
    assert release.estimate("town").frame["count"].to_list() == [1, 2]
    found = release.count({"town": 1})
    assert (found.count, found.records) == (2, 2)
    assert release.estimate("ill").frame["count"].sum() == pytest.approx(3)
    assert release.estimate("ill").estimator == "linear"
    with pytest.raises(QueryError, match="shuffled rows, which do not show which belong"):
        release.mean("town")
    with pytest.raises(QueryError, match="already has one row per possible value"):
        release.expand()


def test_shuffled_rows_have_no_weights() -> None:
    release = shuffled(weight="town")
    with pytest.raises(QueryError, match="weights cannot be matched to people"):
        release.estimate("ill")
    assert release.estimate("town", weighted=False).frame["count"].to_list() == [1, 2]


# ---------------------------------------------------------------------- terms


def with_terms(**more: Any) -> nr.Release:
    """Four records with the terms {0, 1}, {1}, none and {0}, of whom the first two live in town 0."""
    columns = (term_column("signs", ("cough", "fever"), None), exact_column("town", 2, kind="integer"))
    about = manifest(4, columns, **more)
    terms = TermCells.from_entries(2, 4, np.array([0, 0, 1, 3]), np.array([0, 1, 1, 0]))
    return nr.Release(about, MemoryStore({"signs": terms, "town": CodeCells(2, np.array([0, 0, 1, 1]))}))


def test_terms_are_counted_under_exact_conditions() -> None:
    release = with_terms(suppressed=2)
    found = release.estimate("signs", where={"town": 0})
    assert found.frame.select("signs", "count", "low", "high").rows() == [("cough", 1, 1, 4), ("fever", 2, 2, 4)]
    both = release.count({"signs": {"all": ["cough", "fever"]}, "town": 0})
    assert (both.count, both.low, both.high, both.level) == (1, 1, 4, 1)
    assert release.count({"signs": ["cough", "fever"]}).count == 3
    by = release.estimate("town", where={"signs": "cough"}).frame
    assert by.select("town", "count", "high").rows() == [("0", 1, 4), ("1", 1, 4)]
    with pytest.raises(QueryError, match="no interval for the population here"):
        with_terms().estimate("signs", population=True)
    with pytest.raises(QueryError, match="holds sets of terms"):
        release.mean("signs")


def test_terms_are_counted_by_records() -> None:
    release = with_terms(weight="town")
    assert release.estimate("signs", weighted=False).frame["count"].to_list() == [2, 2]
    with pytest.raises(QueryError, match="sets of terms are counted in records, not in weights"):
        release.estimate("signs")


# ---------------------------------------------------------------------- hidden columns


def test_conditions_on_hidden_columns_are_estimated(drawn: nr.Release, coarse: nr.Release) -> None:
    everything = drawn.count({"ill": ["a", "b", "c", "d"]})
    assert everything.count == pytest.approx(24)
    parts = [drawn.count({"ill": some}, estimator="linear").count for some in (["a", "b"], ["c", "d"])]
    assert sum(parts) == pytest.approx(24)
    some = drawn.estimate("ill", where={"ill": ["a", "b"]}, estimator="linear").frame["count"].to_list()
    assert some[2:] == [0, 0]
    assert sum(some) == pytest.approx(parts[0])
    low = coarse.count({"pay": [0, 1, 2], "sex": "f"})
    true = PEOPLE.filter((pl.col("pay") < 3) & (pl.col("sex") == "f")).height
    assert low.low <= true <= low.high
    assert low.level == 1
    both = coarse.estimate("pay").frame
    assert both["count"].sum() == pytest.approx(24)
    assert inf > both["high"].max() >= 4  # type: ignore[operator]


def test_only_errors_rest_on_how_many_rows_a_person_has(drawn: nr.Release, coarse: nr.Release) -> None:
    mixed, general = again(drawn, rows_are_people=False), again(coarse, rows_are_people=False)
    assert SEVERAL_ROWS in mixed.estimate("ill").assumes
    assert SEVERAL_ROWS in mixed.estimate("sex", population=True).assumes
    assert SEVERAL_ROWS not in mixed.estimate("sex").assumes  # counted, and not sampled
    assert SEVERAL_ROWS not in general.estimate("pay").assumes  # bounds hold whoever has which rows
    assert SEVERAL_ROWS not in drawn.estimate("ill").assumes


def test_sampling_is_added_to_the_noise_of_margins_once(drawn: nr.Release) -> None:
    """Of a population the variance of a count c among n records is larger by c (1 - c / n)."""
    margin = PublishedMargin(of=("ill",), epsilon=1, sensitivity=2, counts=(6, 5, 8, 6))
    release = again(drawn, margins=(margin,))
    own, sampled = (release.estimate("ill", estimator="linear", population=one) for one in (False, True))
    assert own.diagnostics["margins"] == sampled.diagnostics["margins"] == [{"of": ["ill"], "epsilon": 1.0}]
    counts = own.frame["count"].to_numpy()
    more = sampled.frame["std_error"].to_numpy() ** 2 - own.frame["std_error"].to_numpy() ** 2
    assert more == pytest.approx(np.maximum(counts * (1 - counts / 24), 0))
    assert (own.frame["std_error"] < drawn.estimate("ill", estimator="linear").frame["std_error"]).all()
    left = again(release, suppressed=1).estimate("ill", estimator="linear")
    assert "margins" not in left.diagnostics
    assert "margins" not in release.estimate("sex").diagnostics


def test_a_table_agrees_with_what_a_margin_knows_of_one_of_its_columns(drawn: nr.Release) -> None:
    release = again(drawn, margins=(PublishedMargin(of=("ill",), epsilon=1, sensitivity=2, counts=(9, 2, 8, 6)),))
    table = release.estimate(["ill", "sex"])
    assert table.diagnostics["raked_to_margins"] == [["ill"]]
    sums = table.frame.group_by("ill", maintain_order=True).agg(pl.col("count").sum())["count"].to_list()
    alone = release.estimate("ill").frame["count"]
    assert sums == pytest.approx((alone / alone.sum() * 24).to_list(), abs=1e-6)
    assert sums != pytest.approx(drawn.estimate("ill").frame["count"].to_list(), abs=1e-3)
    for other in (release.estimate(["ill", "sex"], estimator="linear"), drawn.estimate(["ill", "sex"])):
        assert "raked_to_margins" not in other.diagnostics
    assert "raked_to_margins" not in release.estimate("ill").diagnostics


def test_three_numbers_have_a_trend(plain: nr.Release) -> None:
    assert plain.test("w", "pay", permutations=99).kind == "trend"
