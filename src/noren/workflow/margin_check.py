"""What can be checked of noised margins: that they are those the policy asks for, and that their noise is as declared.

This shares no code with the drawing. With the original at hand, the distances of the published counts from the true
ones must look like discrete Laplace noise of the declared scale: the sum of their absolute values lies within what such
noise leaves but once in 10^9 tables either way. So exact counts, or noise that is too small, fail.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from noren.engines import Table
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.release.manifest import PublishedMargin
from noren.release.release import Release

RARE = 1e-9


def asked_margins(release: Release, policy: Policy) -> list[Verdict]:
    """A verdict on what a release's margins spend, against what the policy permits; none where neither has any."""
    asked = {(margin.of, margin.epsilon, margin.sensitivity) for margin in policy.margins}
    found = [(margin.of, margin.epsilon, margin.sensitivity) for margin in release.manifest.margins]
    if not asked and not found:
        return []
    strange = [margin for margin in found if margin not in asked]
    text = "" if not strange else f"the release counts {' x '.join(strange[0][0])} otherwise than the policy asks"
    spent, holds = release.manifest.spent, not strange and len(set(found)) == len(found)
    ground, records = "the release alone", release.records
    return [
        Verdict("margins", "all columns", policy.spent, spent, holds, ground, records, 0 if holds else records, text)
    ]


def declared_noise(release: Release, table: Table) -> list[Verdict]:
    """A verdict on every margin: whether its distance from the original is the noise it declares."""
    return [_noise(release, margin, table) for margin in release.manifest.margins]


def _noise(release: Release, margin: PublishedMargin, table: Table) -> Verdict:
    shape = tuple(release.column(name).d for name in margin.of)
    rows, times = table.histogram(margin.of)
    places = []
    for j, name in enumerate(margin.of):
        known = release.column(name).domain.index
        places.append(np.array([known.get(value, -1) for value in table.columns[name].domain.values])[rows[:, j]])
    title, records = ", ".join(margin.of), release.records
    if any((place < 0).any() for place in places):
        text = "some values of the original are not among those that the margin counts"
        return Verdict("margin-noise", title, margin.scale, float("nan"), None, "the original", records, 0, text)
    truth = np.bincount(np.ravel_multi_index(tuple(places), shape), times, prod(shape))
    distance = float(np.abs(np.array(margin.counts) - truth).sum())
    low, high = reach(len(margin.counts), margin.scale)
    holds = low <= distance <= high
    text = (
        ""
        if holds
        else f"counts lie {distance:,.0f} from the original in all; such noise reaches {low:,.0f} to {high:,.0f}"
    )
    found = distance / len(margin.counts)
    return Verdict(
        "margin-noise", title, margin.scale, found, holds, "the original", records, 0 if holds else records, text
    )


def reach(cells: int, scale: float) -> tuple[float, float]:
    """Between which sums of absolute noise lies, but for once in 10^9 tables on either side.

    The absolute value of discrete Laplace noise is 0 with chance (1 - q) / (1 + q), else geometric with q = exp(-1 /
    scale): by Chernoff's bound on its moment generating function.
    """
    from scipy.optimize import minimize_scalar

    q = np.exp(-1 / scale)
    goal = -np.log(RARE)

    def log_moment(s: float) -> float:
        return float(np.log((1 - q) / (1 + q)) + np.log1p(2 * q * np.exp(s) / (1 - q * np.exp(s))))

    def upper(s: float) -> float:
        return (goal + cells * log_moment(s)) / s

    most = 1 / scale
    high = minimize_scalar(upper, bounds=(1e-6 * most, most * (1 - 1e-9)), method="bounded").fun
    low = -minimize_scalar(
        lambda s: (goal + cells * log_moment(-s)) / s, bounds=(1e-6, 60 + sqrt(cells)), method="bounded"
    ).fun
    return max(float(low), 0.0), float(high)
