"""Guessing the seed: it must work on releases that careless code made, and must not on ours."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import attack, predictable
from noren.audit.base import Case
from noren.audit.patterns import design_pattern, moments, neighbours, order_patterns, trend
from noren.audit.predictable import FAMILIES, ORDER, Predictable, chance, draw, seeds, truths
from noren.audit.sets import Sets
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.statements import CodeCells, SetCells
from tests.unit.audit.world import drawn, secret

N, D, L = 1_500, 14, 5


@pytest.fixture(autouse=True)
def few_draws(monkeypatch) -> None:
    """Enough of the costly guesses for the seeds that are tried first."""
    monkeypatch.setattr(predictable, "DEEP", 10 * N)
    monkeypatch.setattr(predictable, "SLOW", 20 * N)


def good(n: int = N, d: int = D, size: int = L) -> tuple[nr.Release, np.ndarray]:
    """Our release of a table sorted by illness, as tables often are."""
    truth = np.sort(np.random.default_rng(99).integers(0, d, n))
    table = pl.DataFrame({"town": truth % 3, "ill": [f"v{code:02d}" for code in truth]})
    policy = nr.Policy(
        attributes={"town": "plain", "ill": "sensitive"},
        require=[{"model": "frequency-l-diversity", "on": "ill", "l": size}],
        dependence={"most": 1.0},
    )
    return nr.anonymize(table, policy), truth


def weak(how: str, family: str, seed: int = 42) -> tuple[nr.Release, np.ndarray, np.ndarray]:
    """The same table in the hands of somebody who writes the obvious code: sets, truth and origin of every row."""
    release, truth = good()
    start = {"generator": np.random.default_rng, "state": np.random.RandomState, "python": random.Random}[family]
    rng = start(seed)

    def order(generator) -> np.ndarray:
        if family == "python":
            rows = list(range(N))
            generator.shuffle(rows)
            return np.array(rows)
        return generator.permutation(N)

    origin = order(rng) if how == "first" else np.arange(N)
    sets = []
    for value in truth[origin]:
        others = [other for other in range(D) if other != value]
        picked = rng.sample(others, L - 1) if family == "python" else rng.choice(others, L - 1, replace=False)
        sets.append([value, *picked])
    if how == "after":
        origin = order(rng)
    if how == "same":
        origin = order(start(seed))
    drawn = np.array(sets) if how == "first" else np.array(sets)[origin]
    towns = np.random.default_rng(123_456_789).integers(0, 3, N)  # tells nothing about the order
    cells = {"town": CodeCells(3, towns), "ill": SetCells.from_codes(D, drawn)}
    return Release(release.manifest, MemoryStore(cells)), truth[origin], origin


@pytest.mark.parametrize("family", ["generator", "state", "python"])
@pytest.mark.parametrize("how", ["none", "first", "after", "same"])
def test_a_careless_release_is_stripped(how, family) -> None:
    release, truth, origin = weak(how, family)
    found = {one.target[0]: one for one in attack(release, "predictable", seeds=60)}
    ill = found["ill"].scenarios[0]
    assert ill.summary["seed_found"] == 1
    assert ill.summary["mean_belief"] > 0.6 > found["ill"].baseline["mean_belief"] == 1 / L
    known = ill.frame.with_columns(truth=pl.Series([f"v{code:02d}" for code in truth])).filter(pl.col("left") == 1)
    assert known.height > N / 3
    assert (known["value"] == known["truth"]).all(), "what is left is the truth"
    assert any("seed 42" in note for note in found["ill"].notes)
    if how != "none":
        rows = ill.frame["original_row"].to_numpy()
        assert (rows - 1 == origin).all(), "the original order is recovered"
        assert found[ORDER].scenarios[0].summary["order_found"] == 1


def test_our_release_resists() -> None:
    for size in (2, 5):
        release, _ = good(size=size)
        for one in attack(release, "predictable", seeds=100):
            assert one.scenarios[0].summary["seed_found"] == 0
            assert one.scenarios[0].summary["order_found"] == 0
            assert one.scenarios[0].summary["mean_belief"] == pytest.approx(one.baseline["mean_belief"])
            assert one.facts["alarms"] == 0
            assert one.facts["found"] == []
            assert any("no seed explains anything" in note for note in one.notes)


def test_another_seed_is_not_found() -> None:
    release, *_ = weak("none", "generator", seed=987_654_321)
    assert all(one.scenarios[0].summary["seed_found"] == 0 for one in attack(release, "predictable", seeds=100))


def test_a_seed_from_the_clock_is_found_in_its_window() -> None:
    release, *_ = weak("first", "generator", seed=1_700_000_321)
    found = attack(release, "predictable", seeds=0, time_from=1_700_000_300, time_to=1_700_000_340)
    assert found[0].scenarios[0].summary["seed_found"] == 1
    for window in ({"time_from": 5}, {"time_from": 5, "time_to": 4}, {"time_from": 0, "time_to": 10**9}):
        with pytest.raises(QueryError, match="time_from"):
            attack(release, "predictable", **window)


def test_a_weak_shuffle_of_classes_is_undone() -> None:
    rng = np.random.default_rng(5)
    table = pl.DataFrame({"age": np.sort(rng.integers(20, 70, N)), "ill": rng.integers(0, 6, N).astype(str)})
    policy = nr.Policy(
        attributes={"age": "quasi-identifier", "ill": "sensitive"},
        require=[nr.models.KAnonymity(k=5), nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Mondrian(),
    )
    release = nr.anonymize(table, policy)
    (ours,) = attack(release, "predictable", seeds=60)
    assert ours.target == (ORDER,)
    assert ours.scenarios[0].summary["order_found"] == 0
    sorted_rows = release.cells(release.columns)
    back = np.argsort(sorted_rows["age"].data, kind="stable")
    order = np.random.RandomState(7).permutation(N)
    careless = Release(
        release.manifest, MemoryStore({name: cells.take(back[order]) for name, cells in sorted_rows.items()})
    )
    (theirs,) = attack(careless, "predictable", seeds=60)
    assert theirs.scenarios[0].summary["order_found"] == 1
    assert (theirs.scenarios[0].frame["original_row"].to_numpy() - 1 == order).all()


def test_an_unshuffled_table_is_noticed_without_a_seed() -> None:
    release, truth = good()
    cells = release.cells(["town", "ill"])
    sets = SetCells.from_codes(D, by_design(truth))
    careless = Release(release.manifest, MemoryStore({"town": cells["town"], "ill": sets}))
    found = attack(careless, "predictable", seeds=5)
    assert found[0].facts["alarms"] >= 2
    tests = {(one["test"], one["column"]) for one in found[0].facts["patterns"] if one["alarm"]}
    assert tests >= {("neighbours", "ill"), ("trend", "ill")}


def by_design(truth: np.ndarray) -> np.ndarray:
    """Sets by the design, in the table's own order."""
    rng = np.random.default_rng(77)
    keys = rng.random((len(truth), D))
    keys[np.arange(len(truth)), truth] = -1
    return keys.argsort(axis=1)[:, :L]


def test_decoys_that_are_not_as_designed_are_noticed() -> None:
    rng = np.random.default_rng(6)
    truth = rng.integers(0, D, 20_000)
    design = DecoyDesign(d=D, eta=L)
    prior = np.full(D, 1 / D)
    fair = Sets(drawn("ill", design), SetCells.from_codes(D, by_design(truth)))
    assert design_pattern(fair, prior).p > 1e-9
    lazy = np.sort((truth[:, None] + np.arange(L)) % D, axis=1)  # always the next four values
    assert design_pattern(Sets(drawn("ill", design), SetCells.from_codes(D, lazy)), prior).p < 1e-12
    everything = SetCells.from_codes(3, np.tile(np.arange(3), (9, 1)))
    assert design_pattern(Sets(drawn("ill", DecoyDesign(d=3, eta=3)), everything), prior[:3]) is None


def test_tests_of_order_are_calibrated() -> None:
    """Under a random order z is standard: mean 0 and variance 1, p uniform."""
    rng = np.random.default_rng(12)
    codes = rng.choice(6, 2_000, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    z, p = [], []
    for _ in range(400):
        rows = moments(secret("exact", 6), CodeCells(6, rng.permutation(codes)))
        z.append(neighbours(rows)[0])
        p.append(trend(rows)[1])
    assert abs(np.mean(z)) < 6 / 20
    assert abs(np.var(z) - 1) < 6 * (2 / 400) ** 0.5
    assert abs(np.mean(p) - 0.5) < 6 * (1 / 12 / 400) ** 0.5
    assert order_patterns(secret("exact", 1), CodeCells(1, np.zeros(500, int))) == []


def test_decoys_around_a_truth_are_recognised() -> None:
    # around truth 2 the others are 0 1 3 4 5, so numbers 0 and 2 are the values 0 and 3; around 3 they are 0 and 2
    fits = truths(np.array([[0, 2]]), np.array([[0, 2, 3]]))
    assert fits.tolist() == [[False, True, True]]
    assert not truths(np.array([[0, 4]]), np.array([[1, 2, 3]])).any()
    assert chance(13, 4) == pytest.approx(5 / 715)


def test_chance_is_an_upper_bound_of_accidental_fits() -> None:
    rng = np.random.default_rng(3)
    n, d, size = 20_000, 8, 3
    sets = np.sort(rng.random((n, d)).argsort(axis=1)[:, :size], axis=1)
    picked = np.sort(rng.random((n, d - 1)).argsort(axis=1)[:, : size - 1], axis=1)
    share = truths(picked, sets).any(axis=1).mean()
    bound = chance(d - 1, size - 1)
    assert share < bound + 6 * (bound / n) ** 0.5


def test_generators_are_used_as_one_would() -> None:
    family = FAMILIES[0]
    rng = np.random.default_rng(9)
    expected = [np.sort(rng.choice(6, 2, replace=False)) for _ in range(4)]
    (found,) = draw(family, family.start(9), [(7, 3)], 4)
    assert (found == np.array(expected)).all()
    assert sorted(set(seeds(50, (10**9, 10**9 + 2)))) == sorted(
        {*range(50), *(s for s in seeds(0, None)), *range(10**9, 10**9 + 3)}
    )


def test_columns_that_no_number_of_records_decides_on_are_left_out() -> None:
    release, _ = good(n=600, d=4, size=3)  # three of three others, bar one: nearly everything fits
    found = Predictable(seeds=10).run(Case(release))
    assert found[0].scenarios[0].summary["seed_found"] == 0
