"""EM over likelihood rows of any cells: start and stopping.

    x_c <- sum_i x_c L_i(c) / sum_g x_g L_i(g),      L_i(c) = prod_j P(cell_ij | c_j)

P(cell | value) is the design's for a drawn cell, 1 for a general value that covers the value (coarsening at random),
c_g(v) / N_v for a group. One attribute is brought to its maximum. Several together have many cells, and their maximum
fits noise: EM starts from independence of the attributes and goes on for as long as it predicts records that were held
out, then as far on all records (`held_out`). Tables of one hidden attribute by exact ones are treated like the latter:
exact columns split the records, and small slices need the others' help.

Two kinds of evidence stand behind it, `Frame` (exact and drawn columns) and `Grid` (any columns); both sum over
`products` of sets by sparse matrices.

EM that takes long steps: every third one extrapolates the path (SQUAREM, on logarithms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Progress = Callable[[int, float], None]
Step = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], float]]
"""One EM step: the following table, and the log likelihood of the one given."""
LONGEST = 1e4
LEAST = -575.0
"""Logarithm of the smallest cell a long step may leave, beside the largest: a denormal one would overflow the next."""


def ascend(
    step: Step, x: NDArray[np.float64], tolerance: float, max_steps: int, progress: Progress | None = None
) -> tuple[NDArray[np.float64], int, float]:
    """Iterate EM until a step changes no cell by more than `tolerance`; return the table, the steps and the last
    change.

    An extrapolation that lowers the likelihood is taken back.
    """
    total = x.sum()
    best, fallback, change, steps = -np.inf, x, np.inf, 0
    path: list[NDArray[np.float64]] = []
    while steps < max_steps:
        following, value = step(x)
        steps += 1
        if value < best - 1e-9 * abs(best):
            x, path, best = fallback, [], -np.inf
            continue
        best, change = value, float(np.abs(following - x).max())
        path.append(np.log(np.maximum(x, 1e-300)))
        x = following
        if progress is not None:
            progress(steps, change)
        if change <= tolerance:
            break
        if len(path) == 3:
            first, second = path[1] - path[0], path[2] - path[1]
            weight = np.sqrt(x)  # cells on their way to zero move fastest on this scale and matter least
            bend = float(np.linalg.norm(weight * (second - first)))
            length = min(LONGEST, float(np.linalg.norm(weight * first)) / max(bend, 1e-300))
            fallback = x
            if length > 1:
                x = path[0] + 2 * length * first + length**2 * (second - first)
                x = np.exp(np.maximum(x - x.max(), LEAST))
                x *= total / x.sum()
            path = []
    return x, steps, change


MAX_STEPS = 2000
FOLDS = 4
HELD_OUT_MIX = 0.01  # share of the start mixed in when held-out records are scored: an empty cell is not impossible
FOLD_SEED = 20180  # which records are held out together; fixed, so that an answer can be repeated


@dataclass(frozen=True)
class Fit:
    """An estimated table, the number of iterations, and the stopping rule."""

    table: NDArray[np.float64]
    iterations: int
    diagnostics: dict[str, Any] = field(default_factory=dict)
    maximum: NDArray[np.float64] | None = None
    """Where the likelihood is largest, if the table was drawn away from there on purpose."""


@dataclass(frozen=True)
class Stopping:
    """When EM stops. The rule is the same for all tables; these parameters were measured on each kind of table."""

    tolerance: float
    """Records: one attribute stops when no cell moves by more."""
    still: float = 0.01
    """Records: several attributes also stop when no cell moves by more in any fold."""
    together: NDArray[np.int64] | None = None
    """Tuples of one number are held out together: records of a class tell of each other."""


DRAWN = Stopping(tolerance=0.1)
"""Where sets are drawn."""
COARSE = Stopping(tolerance=0.01)
"""Where all that is hidden is coarse."""


class Passes(Protocol):
    """A protocol: records over which EM can take a step."""

    @property
    def counts(self) -> NDArray[np.float64]:
        """Return how often each distinct tuple of cells occurs."""

    def em_pass(
        self,
        x: NDArray[np.float64],
        held: NDArray[np.int32] | None = None,
        floor: NDArray[np.float64] | None = None,
        scale: float = 1.0,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return sum_i L_i(c) / (L_i . x) over the records not held out, every tuple's L . x, and the log likelihood of
        the held-out ones, sum of log(scale L_i . x + floor_i)."""


class Evidence(Passes, Protocol):
    """A protocol: what EM needs to know about the records to estimate a table."""

    @property
    def stopping(self) -> Stopping:
        """Return the stopping rule."""

    def estimate(self, rule: Stopping, max_steps: int, progress: Progress | None) -> Fit:
        """Return the table: known counts, the maximum of the likelihood of one attribute, or the table at which
        held-out records stop."""


def fit(
    evidence: Evidence,
    progress: Progress | None = None,
    *,
    tolerance: float | None = None,
    max_steps: int = MAX_STEPS,
) -> Fit:
    """Return the likelihood estimate, with the stopping rule for the table's form."""
    rule = evidence.stopping
    if tolerance is not None:
        rule = replace(rule, tolerance=tolerance, still=tolerance)
    return evidence.estimate(rule, max_steps, progress)


def converge(
    records: Passes, x: NDArray[np.float64], tolerance: float, max_steps: int, progress: Progress | None = None
) -> Fit:
    """Iterate EM until a step changes no cell by more than `tolerance` records."""

    def step(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        acc, sums, _ = records.em_pass(table)
        return table * acc, float((records.counts * np.log(np.maximum(sums, 1e-300))).sum())

    table, steps, change = ascend(step, x, tolerance, max_steps, progress)
    return Fit(table, steps, {"stopping": "converged", "last_change": change, "converged": change <= tolerance})
