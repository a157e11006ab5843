"""95% intervals hold the truth about 95% of the time, on skewed, correlated tables.

The mean share of covered cells, and of sums over cells, is asked to lie between 93% and 97%; data seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A mixture of three independent tables with uneven margins: cells from nearly empty to large."""
    out = np.zeros(shape)
    for share in rng.dirichlet([2.0, 2.0, 2.0]):
        part = np.array(share)
        for d in shape:
            part = np.multiply.outer(part, rng.dirichlet(np.full(d, 0.5)))
        out += part
    return out / out.sum()


def publish(rng, values, d, eta, p, **extra) -> Axis:
    if eta == 1 and p == 1:
        return Axis.exact("a", values, d, **extra)
    keys = rng.random((len(values), d))
    heads = np.flatnonzero(rng.random(len(values)) < p)
    keys[heads, values[heads]] = -1.0
    sets = np.argpartition(keys, eta - 1, axis=1)[:, :eta]
    return Axis.drawn("a", SetCells.from_codes(d, sets), DecoyDesign(d=d, eta=eta, p=p), **extra)


def coverage(designs, repetitions, *, n=10_000, seed=0, groups=None, estimator="likelihood", population=False):
    """Share of cells whose interval holds the truth, by source of the interval and overall."""
    rng = np.random.default_rng(seed)
    shape = tuple(d for d, _, _ in designs)
    chances = skewed(rng, shape)
    flat = rng.choice(chances.size, n, p=chances.ravel())
    hits, sources = [], []
    for _ in range(repetitions):
        if population:
            flat = rng.choice(chances.size, n, p=chances.ravel())
        values = np.unravel_index(flat, shape)
        extra = [{} if groups is None or g is None else {"groups": g} for g in groups or [None] * len(shape)]
        axes = [publish(rng, v, *design, **e) for v, design, e in zip(values, designs, extra, strict=True)]
        truth = chances * n if population else np.bincount(flat, minlength=chances.size).reshape(shape).astype(float)
        for j, axis in enumerate(axes):
            truth = axis.grouping.sum(truth, j)
        found = tabulate(axes, estimator, population=population)
        hits.append((found.low - 1e-6 <= truth) & (truth <= found.high + 1e-6))
        sources.append(found.interval)
    hit, source = np.array(hits), np.array(sources)
    return float(hit.mean()), {str(s): float(hit[source == s].mean()) for s in np.unique(source)}


COARSE = [np.arange(12) // 3, np.array([0, 0, 0, 1, 1, -1, 2, 2, 2])]
ONE_VALUE = [None, np.array([-1, -1, 0, 0, 0, -1, 0, -1, -1])]

TWO = [(12, 3, 1.0), (9, 3, 1.0)]

CASES = {
    "one attribute": {"designs": [(12, 3, 1.0)], "n": 5000, "repetitions": 100},
    "one attribute, p < 1": {"designs": [(12, 3, 0.6)], "n": 5000, "repetitions": 100},
    "two attributes": {"designs": TWO, "repetitions": 25},
    "two attributes, p < 1": {"designs": [(12, 3, 0.7), (9, 2, 0.9)], "repetitions": 15},
    "two attributes, population": {"designs": TWO, "repetitions": 15, "population": True},
    "exact by decoys": {"designs": [(12, 1, 1.0), (9, 3, 1.0)], "repetitions": 25},
    "groups": {"designs": TWO, "repetitions": 20, "groups": COARSE},
    "a condition": {"designs": TWO, "repetitions": 30, "groups": ONE_VALUE},
    "linear": {"designs": TWO, "repetitions": 60, "estimator": "linear"},
    "linear groups": {"designs": [TWO[0], (9, 3, 0.8)], "repetitions": 150, "groups": COARSE, "estimator": "linear"},
}
LONG = ("one attribute, p < 1", "exact by decoys")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in CASES])
def test_intervals_cover(name):
    overall, by_source = coverage(**CASES[name])
    assert 0.93 <= overall <= 0.97, (overall, by_source)


def test_intervals_of_sums_hold_where_columns_follow_each_other():
    """A block of the table in which both columns are low, whose shown count leans towards independence."""
    rng, repetitions = np.random.default_rng(7), 40
    place = rng.normal(0, 1, 2000)
    values = [np.clip(((place + rng.normal(0, 0.5, 2000) + 2) / 4 * d).astype(int), 0, d - 1) for d in (9, 8)]
    low = [np.where(np.arange(d) < 3, 0, -1) for d in (9, 8)]
    truth = int(((values[0] < 3) & (values[1] < 3)).sum())
    held, beside = 0, 0
    for _ in range(repetitions):
        axes = [publish(rng, v, d, 3, 1.0, groups=g, n_groups=1) for v, d, g in zip(values, (9, 8), low, strict=True)]
        found = tabulate(axes)
        held += int(found.low[0, 0] <= truth <= found.high[0, 0])
        beside += found.diagnostics.get("outside", 0)
    assert held >= binom.ppf(1e-9, repetitions, 0.94), held
    assert beside > 0, "where the shown count lies outside, the result says so"
