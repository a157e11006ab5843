"""Cross tabulations from published sets: the registry of estimators and `tabulate`, which adds the intervals.

All of them estimate the table over the product of the base domains and then sum it into the reported groups. Columns
published exactly split the records first: what is known exactly is never estimated.

| name | what it is | use it for |
| --- | --- | --- |
| `likelihood` | EM on every record's whole sets | everything; smallest error |
| `linear` | inversion of the inclusion probabilities | unbiased sums over many cells; may be negative |
| `bayes` | equation 26 of the sensitive-QID paper | reproducing it |
| `value-adding` | equation 18 of the same | its baseline |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.analysis import intervals, likelihood
from noren.analysis.axes import Axis, Frame, prepare
from noren.analysis.likelihood import Fit, Progress
from noren.errors import QueryError

MAX_BAYES_STEPS = 20_000


@dataclass(frozen=True)
class Tabulation:
    """Estimated counts with their standard errors and intervals, one dimension per axis.

    low and high lie between 0 and the number of records. `linear` counts are unbiased and may fall outside that
    range, hence outside the interval; the other estimators' intervals are stretched to hold the count. `interval`
    says where each cell's came from: "fisher", "linear", "exact" (nothing was hidden) or "none" (nothing can be
    learnt; the bounds are all that is known, and half their distance stands in for the standard error).
    """

    counts: NDArray[np.float64]
    std_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    method: str
    interval: NDArray[np.str_]
    iterations: int | None
    diagnostics: dict[str, Any]


def value_adding(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equation 18: a cell gets an equal share of every record whose set contains it, and of the misses.

    Fast and biased towards uniform. Within each exact slot N is the slot's records.
    """
    w = frame.tuples.inclusions()
    designs = [axis.design for axis in frame.decoys]
    hit = prod(design.p_true for design in designs)
    inside, cells = prod(design.eta for design in designs), prod(design.d for design in designs)
    records = np.bincount(frame.slot_of, minlength=len(frame.slots)).reshape(-1, *[1] * len(designs))
    miss = (1 - hit) / (cells - inside) if cells > inside else 0.0
    return Fit(w * (hit / inside) + (records - w) * miss, 0)


def linear(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Invert the Kronecker product of (Po J + (Pt - Po) I), axis by axis: unbiased for every cell and every sum."""
    return Fit(invert(frame, frame.tuples.inclusions()), 0, {"condition": condition(frame)})


def invert(frame: Frame, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """The table whose expected inclusion counts are w."""
    for j, axis in enumerate(frame.decoys, start=1):
        design = axis.design
        w = (w - design.p_other / design.eta * w.sum(axis=j, keepdims=True)) / design.p_gap
    return w


def condition(frame: Frame) -> float:
    """Condition number of the inclusion probabilities: by how much linear inversion can amplify noise."""
    return float(prod(axis.design.eta / axis.design.p_gap for axis in frame.decoys))


def bayes(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equations 26 and 27: Bayes' rule on inclusion counts, iterated until no cell moves by eps records."""
    w = frame.tuples.inclusions()
    divisor = float(prod(axis.design.eta for axis in frame.decoys))
    x, change, step = w, np.inf, 0
    while step < MAX_BAYES_STEPS and change >= eps:
        following = bayes_step(frame, x, w)
        change = float(np.abs(following - x).max(initial=0.0)) / divisor
        x, step = following, step + 1
        if progress is not None:
            progress(step, change)
    return Fit(x / divisor, step, {"stopping": f"change below {eps:g} records", "converged": change < eps})


def bayes_step(frame: Frame, x: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """One application of equation 26, with delta as a Kronecker product."""
    expected = _delta(frame, x)
    ratio = np.divide(w, expected, out=np.zeros_like(w), where=expected > 0)
    return x * _delta(frame, ratio)


def _delta(frame: Frame, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """delta x: every axis maps x to Po * (sum along it) + (Pt - Po) x."""
    for j, axis in enumerate(frame.decoys, start=1):
        x = axis.design.p_other * x.sum(axis=j, keepdims=True) + axis.design.p_gap * x
    return x


def by_likelihood(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """EM on whole sets, stopped at convergence (one attribute) or by held-out likelihood (several)."""
    return likelihood.fit(frame, progress)


Estimator = Callable[..., Fit]
ESTIMATORS: Mapping[str, Estimator] = {
    "likelihood": by_likelihood,
    "bayes": bayes,
    "linear": linear,
    "value-adding": value_adding,
}
NEEDS_INFORMATION = frozenset({"bayes", "linear"})


def tabulate(
    axes: Sequence[Axis],
    estimator: str = "likelihood",
    *,
    level: float = 0.95,
    population: bool = False,
    eps: float = 1.0,
    progress: Progress | None = None,
) -> Tabulation:
    """Estimate how many records fall into every combination of the axes' groups, with intervals at `level`.

    Assumes that the sets were drawn by the axes' designs. Without `population` the truth is the count in the original
    table. `eps` is the bayes estimator's stopping change, in records. `progress(step, value)` is called after every
    iteration with the largest change or the held-out log likelihood per record.
    """
    if estimator not in ESTIMATORS:
        raise QueryError(f"There is no estimator {estimator!r}.", hint=f"Choose one of: {', '.join(ESTIMATORS)}.")
    if not 0 < level < 1:
        raise QueryError(f"level={level} is not a probability.", hint="Use a number between 0 and 1, such as 0.95.")
    blind = [axis.name for axis in axes if axis.is_blind]
    if blind and estimator in NEEDS_INFORMATION:
        raise QueryError(
            f"The sets of {', '.join(map(repr, blind))} say nothing about the value (eta = d or p = 0); "
            f"{estimator!r} cannot invert that.",
            hint="Leave the column out, or use estimator='likelihood', which answers with the widest interval.",
        )
    frame = prepare(axes)
    fit = ESTIMATORS[estimator](frame, progress=progress, eps=eps)
    counts = frame.sum_groups(fit.table)
    w = frame.tuples.inclusions() if frame.decoys else fit.table
    centre = intervals.linear_scores(frame, w)
    if estimator == "likelihood":
        found = intervals.hybrid_interval(frame, centre, fit.table, level=level, population=population)
    else:
        found = intervals.linear_interval(frame, centre, invert(frame, w), level=level, population=population)
    low, high = found.low, found.high
    if estimator != "linear":
        low, high = np.minimum(low, counts), np.maximum(high, counts)
    diagnostics = {
        "records": frame.kept,
        "cells": prod(frame.shape),
        "distinct_tuples": len(frame.tuples),
        "condition": condition(frame),
        "interval_from": "fisher and linear" if estimator == "likelihood" else "linear",
        **({"no_information": blind} if blind else {}),
        **fit.diagnostics,
    }
    placed = intervals.Interval(*(frame.place(part) for part in (found.std_error, low, high, found.source)))
    counts, placed = intervals.hide_blind(axes, frame.place(counts), placed)
    return Tabulation(
        counts=counts,
        std_error=placed.std_error,
        low=placed.low,
        high=placed.high,
        method=estimator,
        interval=intervals.LABELS[placed.source],
        iterations=fit.iterations or None,
        diagnostics=diagnostics,
    )
