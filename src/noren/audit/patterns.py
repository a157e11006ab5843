"""Tests of published randomness that need no seed: do order or decoys show a pattern?

Each compares a statistic with what a uniformly random order, or the published design, would give. They are meant for
very small false alarm rates, so that a single alarm among many tests means something.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.audit.sets import Sets, drawn_anew
from noren.ragged import different
from noren.release.published import Published
from noren.statements import Cells, Statement

MOST_VALUES = 128
LEAST_COUNT = 50
"""Values that fewer rows hold share one place, so that sums are close to normal."""
LEAST_PAIRS = 400
"""Sets that must hold a pair of values before it is judged."""
MOSTLY = 0.8
"""A column in which one value has more rows than this says too little about an order."""
REFERENCE, ENOUGH = 200_000, 1_000_000
"""Simulated sets that published ones are compared with: twice as many, within these bounds."""


@dataclass(frozen=True)
class Pattern:
    """The result of one test."""

    test: str
    column: str
    z: float
    """How many standard deviations from what chance gives."""
    p: float
    """How often chance goes as far."""

    def to_dict(self, alarm: float) -> dict[str, object]:
        found = {"test": self.test, "column": self.column, "z": round(self.z, 3), "p": self.p}
        return found | {"alarm": self.p < alarm}


@dataclass(frozen=True)
class Moments:
    """The statistics of a column's features that the tests of order need, computed without a full matrix."""

    n: int
    covariance: NDArray[np.float64]
    """Of the features that vary."""
    together: float
    """Sum over neighbouring rows of the products of their features, centred."""
    slope: NDArray[np.float64]
    """Sum of the features weighted by the row's place, counted from the middle."""


def moments(statement: Statement, cells: Cells | Sets) -> Moments | None:
    """Compute these statistics; None if nothing varies or there are too many values."""
    if len(cells) < 2 * LEAST_COUNT:
        return None
    if isinstance(cells, Sets):
        return None if statement.d > MOST_VALUES else _of_members(cells.codes, cells.pairs, statement.d)
    if statement.kinds is not None:
        codes = cells.distinct()[1]
        counts = np.bincount(codes)
        if len(counts) > MOST_VALUES:
            return _of_numbers(codes.astype(np.float64))
        often = np.flatnonzero(counts >= LEAST_COUNT)
        place = np.full(len(counts), len(often))
        place[often] = np.arange(len(often))
        held = np.bincount(place, counts, minlength=len(often) + 1)
        return _of_members(place[codes][:, None], np.diag(held), len(often) + 1)
    return _of_numbers(np.nan_to_num(statement.position(cells)))


def _of_members(codes: NDArray, held: NDArray[np.float64], d: int) -> Moments | None:
    """Handle rows with some of d values each; `held` counts the rows that hold two of them, or one."""
    n = len(codes)
    mean = np.diag(held) / n
    covariance = held / n - np.outer(mean, mean)
    live = np.flatnonzero((np.diag(held) > 0) & (np.diag(held) < n))
    if not len(live):
        return None
    both = sum(int((codes[:-1, a] == codes[1:, b]).sum()) for a in range(codes.shape[1]) for b in range(codes.shape[1]))
    ends = [np.isin(np.arange(d), codes[row]) for row in (0, -1)]
    place = np.arange(n) - (n - 1) / 2
    slope = sum(np.bincount(codes[:, a], place, minlength=d) for a in range(codes.shape[1]))
    together = both - float(mean @ (2 * n * mean - ends[0] - ends[1])) + (n - 1) * float(mean @ mean)
    return Moments(n, covariance[np.ix_(live, live)], together, np.asarray(slope)[live])


def _of_numbers(values: NDArray[np.float64]) -> Moments | None:
    """Handle rows with one number each."""
    values = values - values.mean()
    spread = float(values @ values) / len(values)
    if spread <= 0:
        return None
    place = np.arange(len(values)) - (len(values) - 1) / 2
    slope = np.array([float(place @ values)])
    return Moments(len(values), np.array([[spread]]), float(values[:-1] @ values[1:]), slope)


def neighbours(of: Moments) -> tuple[float, float]:
    """Test whether neighbouring rows are similar: the sum of their products against all orders (two-sided z and p).

    Under a uniform order its mean is -tr(C) and its variance about n tr(C^2), C the covariance of the features.
    """
    z = (of.together + float(np.trace(of.covariance))) / np.sqrt(of.n * float((of.covariance**2).sum()))
    return float(z), two_sided(float(z))


def trend(of: Moments) -> tuple[float, float]:
    """Test whether values change along the table: squared correlation of position and features (chi-square)."""
    from scipy.stats import chi2

    n = of.n
    values, vectors = np.linalg.eigh(of.covariance * (n / (n - 1)))
    live = values > values.max() * 1e-9
    along = (of.slope @ vectors[:, live]) ** 2 / (values[live] * (n * (n * n - 1) / 12))
    df = int(live.sum())
    found = float(along.sum())
    return float((found - df) / np.sqrt(2 * df)), float(chi2.sf(found, df))


def order_patterns(statement: Statement, cells: Cells | Sets) -> list[Pattern]:
    """Run both tests of order for one column."""
    found = moments(statement, cells)
    if found is None:
        return []
    tests = (("neighbours", neighbours), ("trend", trend))
    return [Pattern(name, statement.name, *test(found)) for name, test in tests]


def design_pattern(sets: Sets, prior: NDArray[np.float64]) -> Pattern | None:
    """Test whether pairs of values occur in sets as often as the design says; reports the worst pair.

    The reference is simulated by the published design from the estimated distribution, so that it holds for every
    design; both sides' errors count. p is Bonferroni's over the pairs.
    """
    d, n = sets.design.d, len(sets)
    if d > MOST_VALUES or sets.design.eta in (1, d):
        return None
    many = max(REFERENCE, min(2 * n, ENOUGH))
    truth = np.random.default_rng(0).choice(d, many, p=prior)
    drawn = drawn_anew({sets.name: sets}, {sets.name: truth}, "reference")[sets.name]
    ours, theirs = sets.pairs / n, drawn.pairs / many
    shared = (ours * n + theirs * many) / (n + many)
    error = np.sqrt(shared * (1 - shared) * (1 / n + 1 / many))
    upper = np.triu_indices(d)
    fine = (np.minimum(shared, 1 - shared)[upper] * n >= LEAST_PAIRS) & (error[upper] > 0)
    if not fine.any():
        return None
    z = (ours - theirs)[upper][fine] / error[upper][fine]
    worst = float(z[np.abs(z).argmax()])
    return Pattern("decoys as designed", sets.name, worst, min(1.0, two_sided(worst) * int(fine.sum())))


def ranked_columns(release: Published) -> dict[str, NDArray[np.float64]]:
    """Return every column as standardised ranks, which is enough to detect a sorted table."""
    out = {}
    for statement in release.statements:
        place = statement.position(release.cells([statement.name])[statement.name])
        if np.isnan(place).any():
            continue
        number = np.searchsorted(different(place), place)
        counts = np.bincount(number)
        if counts.max() > MOSTLY * len(place):
            continue
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[number]  # equal ones share their mean rank
        out[statement.name] = (ranks - ranks.mean()) / ranks.std()
    return out


def two_sided(z: float) -> float:
    return 2 * NormalDist().cdf(-abs(z)) if abs(z) < 37 else 0.0
