"""The registry of estimators for exact and drawn columns.

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

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import WORST_CONDITION
from noren.estimates.counts.ascent import Progress
from noren.estimates.counts.fit import Fit, fit
from noren.estimates.counts.frame import Frame
from noren.estimates.counts.path import follow

if TYPE_CHECKING:
    from noren.designs.semantic.design import SemanticDesign

MAX_BAYES_STEPS = 20_000


def value_adding(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equation 18: a cell gets an equal share of every record whose set contains it, and of the misses.

    Fast and biased towards uniform. Within each exact slot N is the slot's records.
    """
    w = frame.inclusions()
    designs = [axis.design for axis in frame.decoys]
    hit = prod(design.p_true for design in designs)
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
        w = axis.design.inversion.invert(w, j)
    return w


def condition(frame: Frame) -> float | None:
    """Condition number of the inclusion probabilities: by how much linear inversion can amplify noise; None if without
    limit."""
    out = prod((axis.design.inversion.condition for axis in frame.decoys), start=1.0)
    return out if out < np.inf else None


def bayes(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equations 26 and 27: Bayes' rule on inclusion counts, iterated until no cell moves by eps, then divided once.

    The change is that of equation 26, before the division. That takes thousands of steps and more, so their path is
    followed in leaps: `iterations` counts applications of the equation, `plain_steps` the steps they stand for.
    """
    w = frame.inclusions()
    divisor = float(prod(axis.design.eta for axis in frame.decoys))
    found = follow(lambda x: bayes_step(frame, x, w), w, eps, MAX_BAYES_STEPS, progress)
    facts = {
        "stopping": f"change below {eps:g} before the division by {divisor:g}",
        "plain_steps": round(found.steps),
        "last_change": found.change,
        "converged": found.change < eps,
    }
    return Fit(found.table / divisor, found.evaluations, facts)


def bayes_step(frame: Frame, x: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """One application of equation 26, with delta as a Kronecker product."""
    expected = _delta(frame, x, back=False)
    ratio = np.divide(w, expected, out=np.zeros_like(w), where=expected > 0)
    return x * _delta(frame, ratio, back=True)


def _delta(frame: Frame, x: NDArray[np.float64], *, back: bool) -> NDArray[np.float64]:
    """Expected inclusion counts of x, or `back` the transpose."""
    for j, axis in enumerate(frame.decoys, start=1):
        x = axis.design.inversion.expected(x, j, back=back)
    return x


def by_likelihood(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """EM on whole sets, stopped at convergence (one attribute) or by held-out likelihood (several)."""
    return fit(frame, progress)


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
    return cast("SemanticDesign", frame.decoys[0].design)


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


def advised(frame: Frame, estimator: str, instead: str) -> tuple[str, str]:
    """The estimator to use, and why it is not the one asked for: an inversion of what cannot be inverted."""
    if estimator not in INVERTS or not frame.decoys:
        return estimator, ""
    if frame.lost.any():
        return instead, f"Inversion would be meaningless; the counts are those of {instead!r}."
    if estimator == "semantic-linear" and np.linalg.cond(equation_2(_semantic(frame))) > WORST_CONDITION:
        return instead, f"Equation 2 of {frame.decoys[0].name!r} has no solution; the counts are those of {instead!r}."
    return estimator, ""
