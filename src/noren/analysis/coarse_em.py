"""Maximum likelihood from coarse cells, by EM.

    x_c <- sum_i x_c L_i(c) / sum_b x_b L_i(b),      L_i(c) = prod_j P(cell_ij | c_j)

P(cell | value) is 1 for a node that covers the value (coarsening at random) and c_g(v) / N_v for a group. Each column
alone is brought to its maximum. Several together have many cells, and their maximum fits noise: EM starts from
the columns' own estimates, taken as independent, and goes on for as long as it predicts records that were held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.analysis.ascent import Progress, ascend
from noren.analysis.coarse_atoms import WHOLE, Detail
from noren.analysis.coarse_cells import Reading
from noren.analysis.coarse_grid import Grid
from noren.errors import QueryError

CELL_LIMIT = 20_000_000
WORK_LIMIT = 2e9  # multiplications of one pass
FOLDS = 4
ALL_FOLDS = 200_000  # records up to which every fold is scored; the curve of larger tables is smooth
PATIENCE = 5
GAIN = 0.1  # log likelihood of all held-out records: less within PATIENCE steps is nothing
HELD_OUT_MIX = 0.01  # share of the start mixed in when held-out records are scored: an empty cell is not impossible


@dataclass(frozen=True)
class Fit:
    """Estimated counts of the reported cells, the number of steps, and how they were stopped."""

    counts: NDArray[np.float64]
    iterations: int
    diagnostics: dict[str, Any]


def fit(
    readings: Sequence[Reading],
    *,
    progress: Progress | None = None,
    tolerance: float = 0.01,
    max_iterations: int = 2000,
) -> Fit:
    """The likelihood estimate: every column alone, then all together."""
    n = len(readings[0].codes)
    axes, steps = [], 0
    facts: dict[str, Any] = {"stopping": "nothing to estimate", "converged": True}
    for reading in readings:
        detail = Detail.of(reading)
        alone = Grid.of([detail.atoms], n)
        table = detail.atoms.prior
        if alone.hidden and len(alone.counts):
            _check(alone)
            table, steps, facts = converge(alone, progress, tolerance, max_iterations)
        elif n:
            table = np.bincount(detail.atoms.links.index[reading.codes], minlength=len(table)).astype(np.float64)
        axes.append(detail.at_report(table))
    grid = Grid.of(axes, n)
    _check(grid)
    facts |= {"cells": prod(grid.shape), "distinct_tuples": len(grid.counts)}
    if not len(grid.counts):
        return Fit(grid.sum_groups(np.zeros(prod(grid.shape))), 0, facts)
    if not grid.hidden:
        return Fit(grid.sum_groups(grid.start() * grid.counts.sum()), steps, facts)
    if prod(grid.shape) == grid.shape[-1]:  # one column alone: its maximum is what the start says
        return Fit(grid.sum_groups(grid.step(grid.start(), grid.counts)[0]), steps, facts)
    straddling = [
        reading.axis.name
        for reading, axis in zip(readings, axes, strict=True)
        if reading.axis.nodes is not None and axis.links.weight.min(initial=1.0) < WHOLE
    ]
    if straddling:
        facts["straddling"] = straddling
    table, steps, found = stop_by_held_out(grid, progress, tolerance, max_iterations)
    return Fit(grid.sum_groups(table), steps, facts | found | {"work": float(grid.plan.work)})


def _check(grid: Grid) -> None:
    hint = "Ask for fewer columns, higher levels or wider intervals, or use estimator='spread'."
    if prod(grid.shape) > CELL_LIMIT:
        raise QueryError(f"The likelihood would need {prod(grid.shape):,} cells, more than {CELL_LIMIT:,}.", hint=hint)
    if grid.hidden and (work := grid.plan.work) > WORK_LIMIT:
        raise QueryError(f"A step of the likelihood would take {work:.1e} sums, more than {WORK_LIMIT:.0e}.", hint=hint)


def climb(grid: Grid, steps: int, progress: Progress | None = None) -> NDArray[np.float64]:
    """Plain EM steps from independence."""
    x = grid.start()
    for step in range(steps):
        following, _ = grid.step(x, grid.counts)
        if progress is not None:
            progress(step + 1, float(np.abs(following - x).max()))
        x = following
    return x


def stop_by_held_out(
    grid: Grid, progress: Progress | None, tolerance: float, max_iterations: int
) -> tuple[NDArray[np.float64], int, dict[str, Any]]:
    """EM for as long as it predicts held-out records better, 4/3 as far on all records as on three quarters of them.

    Held out is every fourth record in the order of the table, so that an answer can be repeated.
    """
    total = np.concatenate([[0], np.cumsum(grid.counts)]).astype(np.int64)
    n = int(total[-1])
    folds = [np.diff((total + f) // FOLDS).astype(np.float64) for f in range(FOLDS if n <= ALL_FOLDS else 1)]
    folds = [held for held in folds if 0 < held.sum() < n]
    start = grid.start()
    floor = grid.step(start, grid.counts)[1] * HELD_OUT_MIX
    tables, curve, change = [start] * len(folds), [-np.inf], np.inf
    while folds and len(curve) <= max_iterations and change > tolerance:
        change, score, following = 0.0, 0.0, []
        for x, held in zip(tables, folds, strict=True):
            moved, sums = grid.step(x, grid.counts - held)
            scale = (1 - HELD_OUT_MIX) / x.sum()
            score += float(held @ np.log(np.maximum(scale * sums + floor, 1e-300)))
            change = max(change, float(np.abs(moved - x).max()))
            following.append(moved)
        tables = following
        curve.append(score)
        if progress is not None:
            progress(len(curve) - 1, change)
        if len(curve) > PATIENCE + 1 and max(curve[-PATIENCE:]) < max(curve[1:-PATIENCE]) + GAIN:
            break
    best = int(np.argmax(curve)) - 1 if folds else 0  # steps before the best score
    steps = max(1, round(best * FOLDS / (FOLDS - 1)))
    facts = {"stopping": "held-out likelihood", "folds": len(folds), "held_out_steps": len(curve) - 1}
    return climb(grid, steps, progress), steps, {**facts, "converged": len(curve) <= max_iterations}


def converge(
    grid: Grid, progress: Progress | None, tolerance: float, max_iterations: int
) -> tuple[NDArray[np.float64], int, dict[str, Any]]:
    """EM until a step moves no cell by more than `tolerance` records. The first step is spreading."""

    def step(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        following, sums = grid.step(table, grid.counts)
        return following, float(grid.counts @ np.log(np.maximum(sums, 1e-300)))

    spread = grid.step(grid.start(), grid.counts)[0]
    x, steps, change = ascend(step, spread, tolerance, max_iterations - 1, progress)
    facts = {"stopping": f"no value moves by more than {tolerance:g} records", "converged": change <= tolerance}
    return x, steps + 1, {**facts, "last_change": change}
