"""Tests whether two columns are related.

The published cells of two columns are drawn independently, so that where the columns are independent their scores are
too. The statistic is n times the sum of squared correlations of the two columns' whitened scores: the canonical
correlations, Pearson's chi-square for exact columns. Under independence every pairing of one column's published cells
with the other's is as likely as the one that is seen: pairing them at random many times gives an exact test at any
size. Where that would take too long the records are many, and chi-square serves.

With survey weights the hypothesis is about the population, and records that stand for many people are not exchangeable
with others. The statistic is then made of weighted sums, and its reference of the same sums in which every record's
part has a random sign (a wild bootstrap), which keeps weights and unequal variances as they are; beyond many records
it is chi-square with the mean and variance that these sums have (Rao and Scott's second order).

Where a person may have m records, whose they are is not known and no pairing is exact. The sums behind the statistic
have at most m times the variance of independent records, so that divided by m it is at most what chi-square says, for
many people. For fewer people it is set beside pairings of n / m records, too, as many people as there are at least, and
the larger p-value counts: where all records of a person are equal, these are what pairing people would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.rows import row_numbers
from noren.estimates.statistics.records import Records, Variable
from noren.schema.domain import MISSING

TestKind = Literal["independence", "difference", "trend"]
KINDS: dict[str, str] = {
    "independence": "the two columns are independent (as categories)",
    "difference": "the mean of the first column is the same in all groups of the second",
    "trend": "the two columns are uncorrelated",
}
PERMUTATIONS = 1_999
WORK = 1e9
"""Most multiplications for the permutations."""
SHUFFLED = 60
"""What putting a record elsewhere costs, in multiplications."""
LEAST = 1e-8
SURE = 3.0
"""Groups of no more records than so many standard errors are left out of a test within groups."""
FEWEST = 20
"""People who must stand behind the records of a test, where they may have several."""
CHUNK = 4_000_000
"""Numbers that are worked on at once."""


@dataclass(frozen=True)
class Association:
    """The statistic, its degrees of freedom, and the source of its p-value."""

    statistic: float
    df: int
    p_value: float
    permutations: int


def related(
    records: Records,
    one: Variable,
    two: Variable,
    kind: TestKind,
    permutations: int | None,
    seed: int,
    within: Variable | None = None,
) -> Association:
    """Test two columns. Records without a value of either are dropped if that is published; otherwise missing is a
    value."""
    if one.name == two.name:
        raise QueryError(f"{one.name!r} is to be tested against itself.", hint="Name two different columns.")
    if one.axis == two.axis:
        raise QueryError(
            f"{one.name!r} and {two.name!r} are published together as tuples, whose parts cannot be paired anew.",
            hint="`release.estimate` gives their cross tabulation with intervals; `regress` their relation.",
        )
    if within is not None:
        return _within_groups(records, one, two, within, kind)
    scores = [records.scores[variable.axis] for variable in (one, two)]
    if all(each.is_coarse for each in scores):
        raise QueryError(
            f"{one.name!r} and {two.name!r} are generalised in the same classes, so their cells are not independent.",
            hint="Test a generalised column against one that is exact or drawn.",
        )
    tables = [
        scores[0].of(_features(one, numbers=kind != "independence")),
        scores[1].of(_features(two, numbers=kind == "trend")),
    ]
    if records.weights is None:
        rows, own = np.repeat(np.arange(len(records.counts)), records.counts.astype(np.int64)), None
    else:
        rows, own = row_numbers([one.ids for one in records.scores], int(records.n)), records.weights.of
    keep = np.ones(len(rows), bool)
    for variable, score in zip((one, two), scores, strict=True):
        if score.axis.is_exact:
            keep &= score.of(variable.known[:, None])[:, 0][records.ids[rows, variable.axis]] > 0
    rows, own = rows[keep], None if own is None else own[keep]
    if not len(rows):
        raise QueryError(
            f"no record has a value of both {one.name!r} and {two.name!r}.", hint="Choose another column or condition."
        )
    left, right = (
        _whitened(table[records.ids[rows, variable.axis]], own)
        for table, variable in zip(tables, (one, two), strict=True)
    )
    n, df = len(rows), left.shape[1] * right.shape[1]
    if not df:
        name = one.name if not left.shape[1] else two.name
        raise QueryError(f"{name!r} is the same for all records.", hint="Choose another column or condition.")
    people = n / records.inflation
    if records.inflation > 1 and people < FEWEST:
        raise QueryError(
            f"a person may have {records.inflation:g} of these {n:,} records, so they may come from fewer than "
            f"{FEWEST} people, too few for a test.",
            hint="Widen `where`, or use the intervals of `difference` or `estimate`.",
        )
    if own is not None:
        return _weighed(left, right, own, permutations, seed, records.inflation)
    statistic = _statistic(left, right, people)
    work = float(n) * (df + SHUFFLED)
    times = int(min(PERMUTATIONS, WORK / work)) if permutations is None else permutations
    if permutations is None and times < 199:
        return Association(statistic, df, _tail(statistic, df), 0)
    if records.inflation > 1:
        p_value = max(_tail(statistic, df), _of_fewer(left, right, int(people), statistic, times, seed))
        return Association(statistic, df, p_value, times)
    rng = np.random.default_rng(seed)  # a test is no release: anyone may repeat it
    order, found = np.arange(n), 0
    for _ in range(times):
        rng.shuffle(order)
        found += _statistic(left, right[order], n) >= statistic * (1 - 1e-12)
    return Association(statistic, df, (found + 1) / (times + 1), times)


def _within_groups(records: Records, one: Variable, two: Variable, within: Variable, kind: TestKind) -> Association:
    """Test whether two columns are unrelated in every group of a third (Cochran, Mantel and Haenszel).

    With scores a, b, s of the columns' functions and of a group, the sum of s (a - mean of a there) (b - mean of b
    there) over records has the expectation of the group's covariance; added over groups it is 0 where the columns are
    unrelated in each. Its variance is that of the records' own parts.
    """
    if len({one.axis, two.axis, within.axis}) < 3:
        raise QueryError("the three columns must be published apart.", hint="Name three different columns.")
    axes = [records.scores[variable.axis] for variable in (one, two, within)]
    if any(each.is_coarse for each in axes):
        raise QueryError(
            "generalised values and groups have no scores for a test within groups.",
            hint="Use where= on an exact column, and a test for each of its groups.",
        )
    functions = [_features(one, numbers=kind != "independence"), _features(two, numbers=kind == "trend")]
    rows = [records.ids[:, variable.axis] for variable in (one, two, within)]
    left, right = (
        each.of(table[:, 1:] if table.shape[1] > 1 else table)[place]
        for each, table, place in zip(axes[:2], functions, rows[:2], strict=True)
    )
    groups = axes[2].of(_features(within, numbers=False))[rows[2]]
    counts, squares = records.counts, records.squares
    sizes, errors = counts @ groups, np.sqrt(squares @ groups**2)
    part = np.zeros((len(counts), left.shape[1], right.shape[1]))
    for group in np.flatnonzero(sizes > SURE * errors):
        here = groups[:, group]
        a, b = ((counts * here) @ side / sizes[group] for side in (left, right))
        part += here[:, None, None] * (left - a)[:, :, None] * (right - b)[:, None, :]
    own = part.reshape(len(counts), -1)
    total, spread = counts @ own, (own * squares[:, None]).T @ own * records.inflation
    scale = np.sqrt(np.maximum(np.diag(spread), 0.0))
    kept = scale > LEAST * max(1.0, float(records.n))
    if not kept.any():
        raise QueryError(f"the groups of {within.name!r} are too small.", hint="Use coarser groups, or more records.")
    spread = spread[np.ix_(kept, kept)] / np.outer(scale[kept], scale[kept])
    total = total[kept] / scale[kept]
    df = int(np.linalg.matrix_rank(spread, tol=1e-6, hermitian=True))
    statistic = float(total @ np.linalg.pinv(spread, rcond=1e-6, hermitian=True) @ total)
    return Association(statistic, df, _tail(statistic, df), 0)


def _tail(statistic: float, df: float) -> float:
    from scipy.stats import chi2

    return float(chi2.sf(statistic, df))


def _of_fewer(
    left: NDArray[np.float64], right: NDArray[np.float64], people: int, statistic: float, times: int, seed: int
) -> float:
    """Compute the p-value from pairings of a random part of the records."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(times):
        one, two = (rng.choice(len(left), people, replace=False) for _ in range(2))
        found += float(np.square(left[one].T @ right[two]).sum() / people) >= statistic * (1 - 1e-12)
    return (found + 1) / (times + 1)


def _features(variable: Variable, *, numbers: bool) -> NDArray[np.float64]:
    """Return a (d, k) array: the number of every base value, or one indicator for each label."""
    if numbers:
        there = variable.known > 0
        amounts = variable.amounts
        return np.where(there, amounts, amounts[there].mean() if there.any() else 0.0)[:, None]
    kept = [label for label, text in enumerate(variable.labels) if text != MISSING]
    return np.asarray((variable.groups[:, None] == np.array(kept, np.int64)).astype(np.float64))


def _weighed(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    weights: NDArray[np.float64],
    times: int | None,
    seed: int,
    inflation: float,
) -> Association:
    """Compare weighted sums of products with the same sums under random signs, or with chi-square for many records.

    Where a person may have several records, also against sums in which only one record of so many has a sign and weighs
    for all; the larger p-value counts.
    """
    n, df = len(left), left.shape[1] * right.shape[1]
    scaled = right * weights[:, None]
    total = left.T @ scaled
    statistic = float(np.square(total).sum() / n) / inflation
    wanted = PERMUTATIONS if times is None else times
    if times is None:
        wanted = int(min(PERMUTATIONS, WORK / (float(n) * df)))
    if times is None and wanted < 199:
        spread = _products_covariance(left, scaled)
        mean, square = float(np.trace(spread)), float(np.square(spread).sum())
        return Association(statistic, df, _tail(statistic * n * mean / square, mean**2 / square), 0)
    rng = np.random.default_rng(seed)  # a test is no release: anyone may repeat it
    step, found = max(1, CHUNK // n), dict.fromkeys((1.0, float(inflation)), 0)
    for each in found:
        for start in range(0, wanted, step):
            count = min(step, wanted - start)
            signs = rng.choice(np.array([-1.0, 1.0]), (count, n))
            if each > 1:
                signs *= np.sqrt(each) * (rng.random((count, n)) < 1 / each)
            sums = np.stack([(signs * left[:, k]) @ scaled for k in range(left.shape[1])], axis=1)
            found[each] += int((np.square(sums).sum(axis=(1, 2)) / n >= statistic * (1 - 1e-12)).sum())
    return Association(statistic, df, (max(found.values()) + 1) / (wanted + 1), wanted)


def _products_covariance(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance of the sums of products, chunk by chunk."""
    df, out = left.shape[1] * right.shape[1], np.zeros((left.shape[1] * right.shape[1],) * 2)
    step = max(1, CHUNK // df)
    for start in range(0, len(left), step):
        a, b = left[start : start + step], right[start : start + step]
        each = (a[:, :, None] * b[:, None, :]).reshape(len(a), df)
        out += each.T @ each
    return out


def _whitened(scores: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return uncorrelated columns of mean 0 and variance 1, without constant directions."""
    share = np.full(len(scores), 1 / len(scores)) if weights is None else weights / weights.sum()
    centred = scores - share @ scores
    scale = np.sqrt(share @ centred**2)
    centred = centred[:, scale > LEAST] / scale[scale > LEAST]
    if not centred.shape[1]:
        return np.asarray(centred)
    values, vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)
    kept = values > LEAST * max(1.0, float(values[-1]))
    return np.asarray(centred @ (vectors[:, kept] / np.sqrt(values[kept])))


def _statistic(left: NDArray[np.float64], right: NDArray[np.float64], people: float) -> float:
    """Return (people - 1) times the sum of squared correlations; its mean over pairings is the degrees of freedom."""
    return float(np.square(left.T @ right / len(left)).sum() * (people - 1))
