"""Cross tabulations from published sets: the registry of estimators and `tabulate`, which adds the intervals.

All of them estimate the table over the product of the base domains and then sum it into the reported groups. Columns
published exactly split the records first: what is known exactly is never estimated.

| name | what it is | use it for |
| --- | --- | --- |
| `likelihood` | EM on every record's whole sets | everything; smallest error |
| `linear` | inversion of the inclusion probabilities | unbiased sums over many cells; may be negative |
| `bayes` | equation 26 of the sensitive-QID paper | reproducing it |
| `value-adding` | equation 18 of the same | its baseline |
| `semantic-linear` | equations 1 and 2 of the semantic-diversity paper | reproducing it |
| `share`, `uniform-linear` | equation 20, equations 21 and 22 of the same | its baselines |

The last three know one semantic column and any exact ones. Where a semantic column's sets do not determine its counts,
no inversion is attempted: the likelihood answers, with bounds for what is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.analysis import intervals, likelihood
from noren.analysis.axes import WORST_CONDITION, Axis, Frame, along, prepare
from noren.analysis.likelihood import Fit, Progress
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError

if TYPE_CHECKING:
    from noren.designs.semantic.design import SemanticDesign

MAX_BAYES_STEPS = 20_000


@dataclass(frozen=True)
class Tabulation:
    """Estimated counts with their standard errors and intervals, one dimension per axis.

    low and high lie between 0 and the number of records. `linear` counts are unbiased and may fall outside that
    range, hence outside the interval (those of `semantic-linear` and `uniform-linear` too); the other estimators'
    intervals are stretched to hold the count. `interval` says where each cell's came from: "fisher", "linear", "exact"
    (nothing was hidden) or "none" (the sets do not determine the count; the bounds are all that is known, and half
    their distance stands in for the standard error). `method` is what was done, which is not what was asked for if the
    diagnostics say `ill_conditioned` and `asked_for`.
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
    w = frame.inclusions()
    hit = prod(axis.p_true for axis in frame.decoys)
    designs = [axis.design for axis in frame.decoys]
    inside, cells = prod(design.eta for design in designs), prod(design.d for design in designs)
    records = frame.records.reshape(-1, *[1] * len(designs))
    miss = (1 - hit) / (cells - inside) if cells > inside else 0.0
    return Fit(w * (hit / inside) + (records - w) * miss, 0)


def linear(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Invert the inclusion probabilities axis by axis, unbiased for every cell and every sum: (Po J + (Pt - Po) I) for
    uniform decoys, the design's own matrix for semantic ones."""
    return Fit(invert(frame, frame.inclusions()), 0)


def invert(frame: Frame, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """The table whose expected inclusion counts are w."""
    for j, axis in enumerate(frame.decoys, start=1):
        design = axis.design
        if isinstance(design, DecoyDesign):
            w = (w - design.p_other / design.eta * w.sum(axis=j, keepdims=True)) / design.p_gap
        elif axis.solution is not None:
            w = along(axis.solution.inverse, w, j)
    return w


def condition(frame: Frame) -> float | None:
    """Condition number of the inclusion probabilities: by how much linear inversion can amplify noise; None if without
    limit."""
    out = 1.0
    for axis in frame.decoys:
        if isinstance(axis.design, DecoyDesign):
            out *= axis.design.eta / axis.design.p_gap
        elif axis.solution is not None:
            out *= axis.solution.condition
    return out if out < np.inf else None


def bayes(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equations 26 and 27: Bayes' rule on inclusion counts, iterated until no cell moves by eps records."""
    w = frame.inclusions()
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
    expected = _delta(frame, x, back=False)
    ratio = np.divide(w, expected, out=np.zeros_like(w), where=expected > 0)
    return x * _delta(frame, ratio, back=True)


def _delta(frame: Frame, x: NDArray[np.float64], *, back: bool) -> NDArray[np.float64]:
    """Expected inclusion counts of x (or `back` the transpose): Po * (sum along an axis) + (Pt - Po) x for uniform
    decoys, the design's matrix for semantic ones."""
    for j, axis in enumerate(frame.decoys, start=1):
        if isinstance(axis.design, DecoyDesign):
            x = axis.design.p_other * x.sum(axis=j, keepdims=True) + axis.design.p_gap * x
        elif axis.solution is not None:
            x = along(axis.solution.matrix if back else axis.solution.matrix.T, x, j)
    return x


def by_likelihood(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """EM on whole sets, stopped at convergence (one attribute) or by held-out likelihood (several)."""
    return likelihood.fit(frame, progress)


def equation_2(design: SemanticDesign) -> NDArray[np.float64]:
    """The semantic paper's inclusion probabilities: 1 for v itself, (l-1) / |extract| for values compatible with it.

    Duplicate-processing and the closed form of `flat` draw on the circle, so their compatible values are those at
    that distance on the circle. Exact for duplicate-processing and for l = 2 where all are as likely.
    """
    pairs = design.compatibility.pairs
    circular = design.name == "semantic-duplicate-processing" or (
        design.name == "semantic-flat" and design.weights is None
    )
    if circular:
        apart = np.abs(np.subtract.outer(np.arange(design.d), np.arange(design.d)))
        pairs = np.minimum(apart, design.d - apart) >= design.compatibility.step
    partners = np.maximum(pairs.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.eye(design.d) + pairs * (design.eta - 1) / partners)


def semantic_linear(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equations 1 and 2 of the semantic-diversity paper, solved in every exact slot on its own.

    Biased wherever equation 2 is not the design's inclusion matrix (the simple design with l > 2).
    """
    matrix = equation_2(_semantic(frame))
    table = np.asarray(np.linalg.solve(matrix.T, frame.inclusions().T).T, np.float64)
    return Fit(table, 0, {"equation_2_condition": float(np.linalg.cond(matrix))})


def share(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equation 20: every member of a set is the true one with probability 1/l."""
    return Fit(frame.inclusions() / _semantic(frame).eta, 0)


def uniform_linear(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equations 21 and 22: linear inversion as if decoys were any other value, whatever the distance."""
    design = _semantic(frame)
    q = (design.eta - 1) / (design.d - 1)
    return Fit((frame.inclusions() - q * frame.records[:, None]) / (1 - q), 0)


def _semantic(frame: Frame) -> SemanticDesign:
    design = frame.decoys[0].design
    assert not isinstance(design, DecoyDesign)
    return design


Estimator = Callable[..., Fit]
ESTIMATORS: Mapping[str, Estimator] = {
    "likelihood": by_likelihood,
    "bayes": bayes,
    "linear": linear,
    "value-adding": value_adding,
}
SEMANTIC_ESTIMATORS: Mapping[str, Estimator] = {
    "semantic-linear": semantic_linear,
    "share": share,
    "uniform-linear": uniform_linear,
}
NEEDS_INFORMATION = frozenset({"bayes", "linear", *SEMANTIC_ESTIMATORS})
INVERTS = frozenset({"linear", "semantic-linear"})
UNBOUNDED = frozenset({"linear", "semantic-linear", "uniform-linear"})


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
    check(axes, estimator, (*ESTIMATORS, *SEMANTIC_ESTIMATORS), level)
    frame = prepare(axes)
    asked, estimator, why = estimator, *advised(frame, estimator, "likelihood")
    fit = {**ESTIMATORS, **SEMANTIC_ESTIMATORS}[estimator](frame, progress=progress, eps=eps)
    return report(frame, fit, estimator, level, population, {"asked_for": asked} if why else {}, why)


def check(axes: Sequence[Axis], estimator: str, known: Sequence[str], level: float) -> None:
    """Refuse what cannot be estimated, before any work is done."""
    if estimator not in known:
        raise QueryError(f"There is no estimator {estimator!r}.", hint=f"Choose one of: {', '.join(known)}.")
    if not 0 < level < 1:
        raise QueryError(f"level={level} is not a probability.", hint="Use a number between 0 and 1, such as 0.95.")
    blind = [axis.name for axis in axes if axis.is_blind]
    if blind and estimator in NEEDS_INFORMATION:
        raise QueryError(
            f"The sets of {', '.join(map(repr, blind))} say nothing about the value (eta = d or p = 0); "
            f"{estimator!r} cannot invert that.",
            hint="Leave the column out, or use estimator='likelihood', which answers with the widest interval.",
        )
    decoys = [axis for axis in axes if not axis.is_exact]
    if estimator in SEMANTIC_ESTIMATORS and (len(decoys) != 1 or isinstance(decoys[0].design, DecoyDesign)):
        raise QueryError(
            f"{estimator!r} is made for one column of semantically diverse sets and any columns published exactly.",
            hint="Use estimator='likelihood' or 'linear', which take any columns together.",
        )


def advised(frame: Frame, estimator: str, instead: str) -> tuple[str, str]:
    """The estimator to use, and why it is not the one asked for: an inversion of what cannot be inverted."""
    if estimator not in INVERTS or not frame.decoys:
        return estimator, ""
    if frame.lost.any():
        return instead, f"Inversion would be meaningless; the counts are those of {instead!r}."
    if estimator == "semantic-linear" and np.linalg.cond(equation_2(_semantic(frame))) > WORST_CONDITION:
        return instead, f"Equation 2 of {frame.decoys[0].name!r} has no solution; the counts are those of {instead!r}."
    return estimator, ""


def report(
    frame: Frame, fit: Fit, estimator: str, level: float, population: bool, extra: Mapping[str, Any], why: str = ""
) -> Tabulation:
    """Sum a fitted table into the reported groups, add intervals, and lay both out over the axes."""
    counts = frame.sum_groups(fit.table)
    w = frame.inclusions() if frame.decoys else fit.table
    centre = intervals.linear_scores(frame, w)
    if estimator == "likelihood":
        found = intervals.hybrid_interval(
            frame, centre, fit.table, level=level, population=population, maximum=likelihood.maximum(frame, fit)
        )
    else:
        found = intervals.linear_interval(frame, centre, invert(frame, w), level=level, population=population)
    found = intervals.bound_lost(frame, found, level=level, population=population)
    low, high = found.low, found.high
    if estimator not in UNBOUNDED or fit.diagnostics.get("projected"):
        low, high = np.minimum(low, counts), np.maximum(high, counts)
    blind = [axis.name for axis in frame.axes if axis.is_blind]
    texts = [*(axis.ill_conditioned for axis in frame.decoys), why]
    errors = [axis.solution.error for axis in frame.decoys if axis.solution is not None]
    source = "linear, of the published design" if estimator in SEMANTIC_ESTIMATORS else "linear"
    diagnostics = {
        "records": frame.kept,
        "cells": prod(frame.shape),
        "condition": condition(frame),
        "interval_from": "fisher and linear" if estimator == "likelihood" else source,
        **({"no_information": blind} if blind else {}),
        **({"ill_conditioned": " ".join(filter(None, texts))} if any(texts) else {}),
        **({"inclusion_error": max(errors)} if errors else {}),
        **frame.facts(),
        **fit.diagnostics,
        **extra,
    }
    placed = intervals.Interval(*(frame.place(part) for part in (found.std_error, low, high, found.source)))
    counts, placed = intervals.hide_blind(frame.axes, frame.place(counts), placed)
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
