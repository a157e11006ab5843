"""How much an estimated table understates the associations of its columns, seen by the linear estimate.

EM that stops early pulls a table towards its start. Let D be what a pair's counts differ from independence. The linear
estimate of D is unbiased, so its slope on the table's own D is 1 where nothing is pulled and larger where associations
are too weak. Sums of D over a margin are zero, so the noise of the slope has a closed form in the designs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from noren.analysis.axes import Axis
from noren.analysis.frame import Frame
from noren.analysis.intervals import linear_scores
from noren.designs.inversion import ClosedInversion

LEAST = 0.1
"""Share by which an association must be shrunk to be told."""
SURE = 2.0
"""Standard errors by which the slope must exceed 1."""


def shrunk(frame: Frame, x: NDArray[np.float64]) -> dict[str, float]:
    """Pairs of drawn columns whose association is likely too weak, and by which share of its true strength."""
    out = {}
    w = frame.inclusions() if len(frame.decoys) > 1 else None
    for pair in combinations(range(len(frame.decoys)), 2):
        axes = [frame.decoys[j] for j in pair]
        if w is None or not all(isinstance(axis.design.inversion, ClosedInversion) for axis in axes):
            continue
        view = [replace(axis, groups=None if j in pair else np.zeros(axis.d, np.int64), n_groups=None)
                for j, axis in enumerate(frame.decoys)]  # fmt: skip
        base = replace(frame, decoys=tuple(view))
        rest = tuple(j + 1 for j in range(len(frame.decoys)) if j not in pair)
        table, seen = x.sum(axis=(0, *rest)), linear_scores(base, w).sum(axis=(0, *rest))
        slope, error = _slope(_beyond(table), _beyond(seen), axes, float(table.sum()))
        if slope - 1 > SURE * error and 1 - 1 / slope >= LEAST:
            out[" x ".join(axis.name for axis in axes)] = round(1 - 1 / slope, 3)
    return out


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
