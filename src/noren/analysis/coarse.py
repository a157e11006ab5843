"""Cross tabulations from generalised and anatomised cells: `spread`, `likelihood`, and hard bounds beside both.

| name | what it is | use it for |
| --- | --- | --- |
| `likelihood` | EM over base values, cells coarsened at random | everything; columns tell about each other |
| `spread` | a cell counts evenly for all it stands for, columns independent | reproducing papers; huge tables |

The estimates rest on an assumption, which they name. The bounds `least` and `most` do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.analysis import coarse_em
from noren.analysis.coarse_bounds import Report, Rows
from noren.analysis.coarse_cells import CoarseAxis, Reading
from noren.analysis.coarse_em import Progress
from noren.errors import QueryError

__all__ = ["COARSE_ESTIMATORS", "CoarseAxis", "CoarseTable", "tabulate_coarse"]

COARSE_ESTIMATORS = ("likelihood", "spread")
TOLERANCE = 0.01  # records: the likelihood stops when a step moves no cell by more
MAX_ITERATIONS = 2000
CELL_LIMIT = 50_000_000


@dataclass(frozen=True)
class CoarseTable:
    """Estimated counts of published records, one dimension per axis, between hard bounds.

    Whatever the published cells hide, at least `least` and at most `most` records lie in a cell; `most` also counts
    all records that were suppressed, which may lie anywhere. `assumes` names what `counts` rests on.
    """

    counts: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    estimator: str
    iterations: int
    assumes: str
    diagnostics: dict[str, Any]


def tabulate_coarse(
    axes: Sequence[CoarseAxis],
    estimator: str = "likelihood",
    *,
    suppressed: int = 0,
    progress: Progress | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> CoarseTable:
    """Estimate how many published records fall into every combination of the axes' reported groups.

    `suppressed` records were dropped before publication; they widen `most` only. `progress(step, change)` is called
    after every step of the likelihood with the largest change of a cell, in records.
    """
    _check(axes, estimator, suppressed)
    readings = [Reading.of(axis) for axis in axes]
    rows = Rows.of([Report.of(reading) for reading in readings])
    least, most = rows.bounds()
    facts: dict[str, Any] = {"records": len(axes[0].data)}
    if estimator == "spread" or np.array_equal(least, most):
        counts, iterations = rows.spread(), 0
        facts["distinct_tuples"] = len(rows.counts)
    else:
        found = coarse_em.fit(readings, progress=progress, tolerance=tolerance, max_iterations=max_iterations)
        counts, iterations = found.counts, found.iterations
        facts |= found.diagnostics
    inside = np.clip(counts, least, most)
    facts["moved_into_bounds"] = float(np.abs(inside - counts).max(initial=0.0))
    return CoarseTable(inside, least, most + suppressed, estimator, iterations, _assumes(axes, estimator, facts), facts)


def _check(axes: Sequence[CoarseAxis], estimator: str, suppressed: int) -> None:
    if estimator not in COARSE_ESTIMATORS:
        raise QueryError(
            f"There is no estimator {estimator!r} for generalised cells.",
            hint=f"Choose one of: {', '.join(COARSE_ESTIMATORS)}.",
        )
    if not axes:
        raise QueryError("No column was asked for.", hint="Name at least one.")
    if suppressed < 0:
        raise QueryError(f"suppressed={suppressed} is not a number of records.", hint="Use 0 or more.")
    if len({len(axis.data) for axis in axes}) > 1:
        raise QueryError("The columns have different numbers of records.", hint="Pass all records of each column.")
    if (cells := prod(axis.n_groups for axis in axes)) > CELL_LIMIT:
        raise QueryError(
            f"The answer would have {cells:,} cells, more than {CELL_LIMIT:,}.",
            hint="Ask for fewer columns, higher levels or wider intervals.",
        )


def _assumes(axes: Sequence[CoarseAxis], estimator: str, facts: dict[str, Any]) -> str:
    """What the counts rest on, for the forms that occur."""
    general = [axis for axis in axes if axis.nodes is not None]
    grouped = [axis for axis in axes if axis.groups is not None]
    parts = []
    if general and estimator == "spread":
        weighed = any(axis.weights is not None for axis in general)
        how = "by the given weights" if weighed else "evenly"
        parts.append(f"general values spread {how} over the values they stand for, independently across columns")
    elif general:
        parts.append(
            "records were coarsened at random (which values were generalised does not depend on the value itself "
            "within a published cell)"
        )
    if grouped and estimator == "spread":
        parts.append("which record of a group has which value is unrelated to the other columns")
    elif grouped:
        parts.append("which group a record was put into depends on its value, not on its other columns")
    if straddling := facts.get("straddling"):
        names = ", ".join(map(repr, straddling))
        parts.append(f"inside the groups asked for, values of {names} are unrelated to the other columns")
    if not parts:
        return "nothing: all columns asked for are published exactly"
    return "; ".join([*parts, "low and high are hard bounds"])
