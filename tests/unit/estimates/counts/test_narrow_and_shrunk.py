"""Intervals of tables with many small cells, and what is said of associations that are too weak."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from noren.designs import DecoyDesign
from noren.estimates.counts import tabulate as room
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.intervals import LINEAR, POSTERIOR, Interval, _quantile, expected_loss, narrowed, shrunk
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells
from tests.unit.estimates.counts.test_raking import counted, published

SHAPE = (9, 8, 7)


def skewed(rng, n):
    """Three columns of skewed values with a common cause: many cells of a few records and none."""
    cause, columns = rng.normal(size=n), []
    for d in SHAPE:
        score = np.exp(0.9 * cause + 0.7 * rng.normal(size=n))
        columns.append(np.minimum((score * 1.2).astype(np.int64), d - 1))
    return columns


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(21)
    columns = skewed(rng, 12_000)
    axes = [published(rng, f"c{j}", c, d, 3) for j, (c, d) in enumerate(zip(columns, SHAPE, strict=True))]
    return axes, counted(columns, SHAPE), tabulate(axes)


def test_intervals_of_small_cells_are_narrow_and_cover(answers, monkeypatch):
    axes, truth, found = answers
    monkeypatch.setattr(room, "narrowed", lambda frame, interval, *rest: interval)
    wide = tabulate(axes)
    covered = (truth >= found.low - 1e-6) & (truth <= found.high + 1e-6)
    assert covered.mean() > 0.94
    for least, most in ((0, 1), (1, 11), (11, 101)):
        assert covered[(truth >= least) & (truth < most)].mean() > 0.91
    small = found.counts < 3
    now, before = (found.high - found.low), (wide.high - wide.low)
    assert now[small].mean() < 0.7 * before[small].mean()
    assert now.mean() < 0.8 * before.mean()
    assert np.all(found.high <= wide.high + 1e-9)
    np.testing.assert_array_equal(found.low, wide.low)
    assert "posterior" in set(found.interval.ravel())
    assert np.all(found.std_error <= wide.std_error + 1e-9)


def test_a_cell_holds_no_more_than_its_margin_may(answers):
    axes, _, found = answers
    one = tabulate([axes[2]], "linear")
    for value in range(SHAPE[2]):
        assert found.high[..., value].max() <= max(one.high[value], found.counts[..., value].max()) + 1e-6


def test_two_columns_and_populations_keep_their_intervals(answers):
    axes, _, _ = answers
    assert "posterior" not in set(tabulate(axes[:2]).interval.ravel())
    assert "posterior" not in set(tabulate(axes, population=True).interval.ravel())


def test_quantiles_of_confined_normals_by_sampling():
    rng = np.random.default_rng(4)
    for mean, sd, top in ((3.0, 2.0, 4.0), (-5.0, 3.0, 10.0)):
        drawn = rng.normal(mean, sd, 2_000_000)
        drawn = drawn[(drawn > 0) & (drawn < top)]
        found = _quantile(np.array([mean]), np.array([sd]), np.array([top]), np.array([0.9]))
        assert found[0] == pytest.approx(np.quantile(drawn, 0.9), abs=0.03)
    far = _quantile(np.array([-1e6]), np.array([10.0]), np.array([50.0]), np.array([0.95]))
    assert 0 <= far[0] < 1e-2, "far out in the tail, and still a number"


def believed_of_a_cell(mean, centre, error, share):
    """A quantile of an exponential prior times a normal likelihood, summed on a fine grid."""
    at = np.linspace(0, 40 * mean, 400_001)
    log = -at / mean - (at - centre) ** 2 / (2 * error**2)
    mass = np.cumsum(np.exp(log - log.max()))
    return float(np.interp(share, mass / mass[-1], at))


@pytest.mark.parametrize(("error", "mean"), [(20.0, 5.0), (250.0, 5.0), (1_000.0, 20.0), (4_000.0, 80.0)])
def test_what_is_believed_of_small_cells_grows_with_the_noise(error, mean):
    """Of a cell estimated at zero: a prior of five records, or of a fiftieth of its standard error if that is more.

    In millions of records a linear estimate is wrong by thousands, and small estimates by more than five records; an
    interval that five records alone decide is then too short. The errors are given here, so that few records will do.
    """
    rng = np.random.default_rng(3)
    frame = prepare([published(rng, f"c{j}", rng.integers(0, 3, 6_000), 3, 2) for j in range(3)])
    x = np.full((1, 3, 3, 3), 200.0)
    x[0, 0, 0, 0] = 0.0
    centre = np.where(x > 0, 200.0, -0.3 * error)
    wide = Interval(np.full(x.shape, error), np.zeros(x.shape), np.full(x.shape, 6_000.0), np.full(x.shape, LINEAR))
    found = narrowed(frame, wide, centre, x, 0.95)
    assert found.source[0, 0, 0, 0] == POSTERIOR
    assert found.high[0, 0, 0, 0] == pytest.approx(believed_of_a_cell(mean, -0.3 * error, error, 0.975), rel=2e-3)


def test_an_association_that_keeps_its_strength_is_not_told(answers):
    axes, truth, found = answers
    assert all(share < 0.35 for share in found.diagnostics.get("shrunk", {}).values())
    frame, many = prepare(axes), dict.fromkeys(combinations((1, 2, 3), 2), 1e6)
    assert not shrunk(frame, truth[None], many)
    assert set(shrunk(frame, truth[None], {(1, 3): 0.0, (1, 2): 1e6, (0, 1): 0.0})) == {"c0 x c2"}


def test_the_estimate_says_so_in_words():
    from noren.estimates.counts.estimate import Estimate

    told = Estimate((), None, "likelihood", 0.95, False, 10, diagnostics={"shrunk": {"a x b": 0.31}})  # type: ignore[arg-type]
    assert told.notes == ("The association a x b is probably underestimated by about 31% of its strength.",)
    assert told.notes[0] in told._notes()
    assert not replace(told, diagnostics={}).notes


def every_set(name: str, d: int, eta: int) -> Axis:
    """A column in which every set occurs once."""
    sets = np.array(list(combinations(range(d), eta)))
    return Axis.drawn(name, SetCells.from_codes(d, sets), DecoyDesign(d=d, eta=eta))


def test_what_few_steps_leave_out_follows_from_the_sets() -> None:
    """With even shares every direction of a column keeps (d / eta - 1) / (d - 1) of its information: 1/3 for two of
    four values, 1/9 for three of four."""
    rng = np.random.default_rng(0)
    table = rng.random((4, 4)) + np.eye(4)
    for (one, two), kept in (((2, 2), 1 / 9), ((2, 3), 1 / 27), ((3, 3), 1 / 81)):
        axes = [every_set("a", 4, one), every_set("b", 4, two)]
        for steps in (0.0, 1.0, 7.5, 200.0):
            assert expected_loss(axes, table, steps) == pytest.approx((1 - kept) ** steps, rel=1e-6)


def test_a_small_table_of_large_sets_says_that_it_shows_little() -> None:
    """2,000 records, sets of three of four values: the fit hardly leaves independence, and says so of every pair."""
    rng = np.random.default_rng(4)
    cause = rng.integers(0, 4, 2_000)
    columns = [np.where(rng.random(2_000) < 0.6, cause, rng.integers(0, 4, 2_000)) for _ in range(3)]
    axes = [published(rng, f"c{j}", column, 4, 3) for j, column in enumerate(columns)]
    found, truth = tabulate(axes), counted(columns, (4, 4, 4))
    told = found.diagnostics["shrunk"]
    assert set(told) == {"c0 x c1", "c0 x c2", "c1 x c2"}
    for a, b in ((0, 1), (0, 2), (1, 2)):
        own, true = (np.trace(t.sum(axis=3 - a - b)) / t.sum() - 0.25 for t in (found.counts, truth))
        lost = 1 - own / true
        assert lost > 0.3
        assert told[f"c{a} x c{b}"] == pytest.approx(lost, abs=0.35)
    assert "pair_steps" not in found.diagnostics
