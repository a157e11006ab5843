"""Tests of published randomness that need no seed: does the order tell anything, do decoys look as designed.

Each compares a statistic with what a uniformly random order, or the published design, would give. They are meant for
very small false alarm rates, so that a single alarm among many tests means something.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.audit.correlates import members
from noren.audit.sets import Sets, drawn_anew
from noren.cells import Cells, Statement
from noren.release.published import Published

MOST_VALUES = 128
LEAST_COUNT = 50
"""Values that fewer rows hold share one place, so that sums are close to normal."""
LEAST_PAIRS = 400
"""Sets that must hold a pair of values before it is judged."""
MOSTLY = 0.8
"""A column in which one value has more rows than this says too little about an order."""
REFERENCE = 200_000
"""Simulated sets that published ones are compared with."""


@dataclass(frozen=True)
class Pattern:
    """One test and what it found."""

    test: str
    column: str
    z: float
    """How many standard deviations from what chance gives."""
    p: float
    """How often chance goes as far."""

    def to_dict(self, alarm: float) -> dict[str, object]:
        found = {"test": self.test, "column": self.column, "z": round(self.z, 3), "p": self.p}
        return found | {"alarm": self.p < alarm}


def features(statement: Statement, cells: Cells) -> NDArray[np.float64] | None:
    """(rows, features), centred: which values a row holds; None where nothing varies or there are too many values."""
    if statement.design is not None and statement.rows_per_record == 1:
        if statement.d > MOST_VALUES:
            return None
        found = members(Sets(statement, cells).codes, statement.d).astype(np.float64)
    elif statement.kinds is not None:
        codes = cells.distinct()[1]
        counts = np.bincount(codes)
        if len(counts) > MOST_VALUES:
            found = codes[:, None].astype(np.float64)
        else:
            often = np.flatnonzero(counts >= LEAST_COUNT)
            place = np.full(len(counts), len(often))
            place[often] = np.arange(len(often))
            found = members(place[codes][:, None], len(often) + 1).astype(np.float64)
    else:
        found = np.nan_to_num(statement.position(cells))[:, None]
    found -= found.mean(axis=0)
    found = found[:, found.std(axis=0) > 0]
    return found if found.shape[1] and len(found) >= 2 * LEAST_COUNT else None


def neighbours(rows: NDArray[np.float64]) -> tuple[float, float]:
    """Are neighbouring rows alike? Sum of products of neighbours against all orders: z and p, both sides.

    Under a uniform order its mean is -tr(C) and its variance about n tr(C^2), C the covariance of the features.
    """
    n = len(rows)
    covariance = rows.T @ rows / n
    total = float((rows[:-1] * rows[1:]).sum())
    z = (total + float(np.trace(covariance))) / np.sqrt(n * float((covariance**2).sum()))
    return float(z), two_sided(float(z))


def trend(rows: NDArray[np.float64]) -> tuple[float, float]:
    """Do values change along the table? Squared correlation of place and features, chi-square under any order."""
    from scipy.stats import chi2

    n = len(rows)
    place = np.arange(n) - (n - 1) / 2
    slope = place @ rows
    covariance = rows.T @ rows / (n - 1)
    values, vectors = np.linalg.eigh(covariance)
    live = values > values.max() * 1e-9
    along = (slope @ vectors[:, live]) ** 2 / (values[live] * float(place @ place))
    df = int(live.sum())
    found = float(along.sum())
    return float((found - df) / np.sqrt(2 * df)), float(chi2.sf(found, df))


def order_patterns(statement: Statement, cells: Cells) -> list[Pattern]:
    """Both tests of order for one column."""
    rows = features(statement, cells)
    if rows is None:
        return []
    tests = (("neighbours", neighbours), ("trend", trend))
    return [Pattern(name, statement.name, *test(rows)) for name, test in tests]


def design_pattern(sets: Sets, prior: NDArray[np.float64]) -> Pattern | None:
    """Do decoys stand together as often as the design says? The pair of values that is farthest off.

    The reference is simulated by the published design from the estimated distribution, so that it holds for every
    design; both sides' errors count. p is Bonferroni's over the pairs.
    """
    d, n = sets.design.d, len(sets)
    if d > MOST_VALUES or sets.design.eta in (1, d):
        return None
    many = max(REFERENCE, 2 * n)
    truth = np.random.default_rng(0).choice(d, many, p=prior)
    drawn = drawn_anew({sets.name: sets}, {sets.name: truth}, "reference")[sets.name]
    ours, theirs = _pairs(sets.codes, d) / n, _pairs(drawn.codes, d) / many
    shared = (ours * n + theirs * many) / (n + many)
    error = np.sqrt(shared * (1 - shared) * (1 / n + 1 / many))
    upper = np.triu_indices(d)
    fine = (np.minimum(shared, 1 - shared)[upper] * n >= LEAST_PAIRS) & (error[upper] > 0)
    if not fine.any():
        return None
    z = (ours - theirs)[upper][fine] / error[upper][fine]
    worst = float(z[np.abs(z).argmax()])
    return Pattern("decoys as designed", sets.name, worst, min(1.0, two_sided(worst) * int(fine.sum())))


def _pairs(codes: NDArray, d: int) -> NDArray[np.float64]:
    """How many sets hold both of two values; on the diagonal, how many hold one."""
    out = np.zeros((d, d))
    for start in range(0, len(codes), 1 << 16):
        part = members(codes[start : start + (1 << 16)], d)
        out += part.T @ part
    return out


def ranked_columns(release: Published) -> dict[str, NDArray[np.float64]]:
    """Every column as ranks in standard units: enough to see that a table was sorted."""
    from scipy.stats import rankdata

    out = {}
    for statement in release.statements:
        place = statement.position(release.cells([statement.name])[statement.name])
        if np.isnan(place).any() or np.unique(place, return_counts=True)[1].max() > MOSTLY * len(place):
            continue
        ranks = rankdata(place)
        out[statement.name] = (ranks - ranks.mean()) / ranks.std()
    return out


def two_sided(z: float) -> float:
    return 2 * NormalDist().cdf(-abs(z)) if abs(z) < 37 else 0.0
