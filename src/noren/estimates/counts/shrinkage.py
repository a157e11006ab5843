"""How much an estimated table understates the associations of its columns, seen by the linear estimate.

EM that stops early pulls a table towards its start. Let D be what a pair's counts differ from independence. The linear
estimate of D is unbiased, so its slope on the table's own D is 1 where nothing is pulled and larger where associations
are too weak. Sums of D over a margin are zero, so the noise of the slope has a closed form in the designs.

In a small table that slope is too noisy to tell. But how far EM went is known: a plain step closes a part lambda of the
gap to the maximum along a direction of which the sets keep a share lambda of the information, so that t steps leave
(1 - lambda)^t of it. What is left out of an association is foretold by the mean of two such losses: of its own
direction, which what was lost is missing from, and of a direction with the columns' average information. On generated
tables that is within 0.1 of the loss on average (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import ClosedInversion
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.frame import Frame
from noren.estimates.counts.intervals import linear_scores

LEAST = 0.1
"""Share by which an association must be shrunk to be told."""
MARGIN_STEPS = 100
SURE = 2.0
"""Standard errors by which the slope must exceed 1."""


EXPECTED = 0.2
"""Loss that follows from how far EM went, from which on it is told."""
ENTRIES = 5_000_000
"""Sets times values up to which their information is worked out."""


def shrunk(
    frame: Frame, x: NDArray[np.float64], steps: Mapping[tuple[int, ...], float] | None = None
) -> dict[str, float]:
    """Pairs of drawn columns whose association is likely too weak, and by which share of its true strength.

    `steps` says how many plain steps of EM made each pair of the table's dimensions.
    """
    out = {}
    w = frame.inclusions() if len(frame.decoys) > 1 else None
    effect = 1.0 if frame.survey is None else frame.survey.design_effect
    for pair in combinations(range(len(frame.decoys)), 2):
        axes = [frame.decoys[j] for j in pair]
        if w is None or not all(isinstance(axis.design.inversion, ClosedInversion) for axis in axes):
            continue
        view = [replace(axis, groups=None if j in pair else np.zeros(axis.d, np.int64), n_groups=None)
                for j, axis in enumerate(frame.decoys)]  # fmt: skip
        base = replace(frame, decoys=tuple(view))
        rest = tuple(j + 1 for j in range(len(frame.decoys)) if j not in pair)
        table, seen = x.sum(axis=(0, *rest)), linear_scores(base, w).sum(axis=(0, *rest))
        slope, error = _slope(_beyond(table), _beyond(seen), axes, float(table.sum()) * effect)
        lost = 1 - 1 / slope if slope - 1 > SURE * error else 0.0
        taken = (steps or {}).get((pair[0] + 1, pair[1] + 1))
        foretold = 0.0 if taken is None else expected_loss(axes, table, taken)
        lost = max(lost if lost >= LEAST else 0.0, foretold if foretold >= EXPECTED else 0.0)
        if lost:
            out[" x ".join(axis.name for axis in axes)] = round(lost, 3)
    return out


def expected_loss(axes: Sequence[Axis], table: NDArray[np.float64], steps: float) -> float:
    """Which share of the association of two drawn columns so many plain steps of EM leave out, from independence."""
    if any(len(axis.rows) * axis.d > ENTRIES for axis in axes):
        return 0.0
    (first, root), (second, other) = (_information(axis) for axis in axes)
    own = _beyond(table) / np.outer(root, other)
    square = float(np.square(own).sum())
    usual = float(np.prod([(np.trace(one) - 1) / max(len(one) - 1, 1) for one in (first, second)]))
    along = float((own * (first @ own @ second)).sum()) / square if square > 0 else usual
    return float(np.mean([(1 - min(max(part, 0.0), 1.0)) ** steps for part in (along, usual)]))


def _information(axis: Axis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a column's sets keep of differences between its values, scaled by the roots of their shares; and these."""
    weight = axis.rows.dense(axis.d)
    seen = np.bincount(axis.distinct[1], minlength=len(weight)) / max(len(axis.distinct[1]), 1)
    share = np.full(axis.d, 1 / axis.d)
    for _ in range(MARGIN_STEPS):
        post = weight * share
        post /= np.maximum(post.sum(axis=1, keepdims=True), 1e-300)
        share = seen @ post
    root = np.sqrt(np.maximum(share, 1e-9))
    return np.asarray((post * seen[:, None]).T @ post / np.outer(root, root)), root


def _beyond(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the counts differ from independence of rows and columns."""
    total = table.sum()
    return np.asarray(table - np.outer(table.sum(axis=1), table.sum(axis=0)) / (total if total > 0 else 1.0))


def _slope(own: NDArray, seen: NDArray, axes: Sequence[Axis], records: float) -> tuple[float, float]:
    """Slope of the linear estimate on the table's own deviations, and its standard error."""
    square = float(np.square(own).sum())
    if square <= 0:
        return 1.0, 0.0
    noise = 1.0
    for axis in axes:
        share = axis.design.eta / axis.d
        gap = axis.design.eta / axis.design.inversion.condition  # Pt - Po
        noise *= share * (1 - share) * axis.d / (axis.d - 1) / gap**2
    return float((own * seen).sum()) / square, sqrt(records * noise / square)
