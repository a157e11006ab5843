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

Where thousands of small steps lead, in far fewer: the path is followed in leaps.

EM steps x <- x a(x) are Euler steps of length 1 along dz/dt = log a(exp z), z = log x. The Jacobian of the right side
is minus a stochastic matrix similar to a positive semidefinite one, so its eigenvalues lie in [-1, 0] at every table.
A stabilised Runge-Kutta-Chebyshev scheme of second order then covers a time of about 0.65 s^2 in s evaluations and
stays on the path, which an extrapolation towards the limit (`ascent`) would leave: what stops early must stop where
plain steps would.

Rows that hold one member of a person's set each, shuffled: N x l rows without set numbers.

Which l rows belong together is not published, so whole sets cannot be used: what remains is how often each value occurs
beside each combination of exact columns, omega. That is all `linear`, `bayes` and the semantic paper's estimators need,
and the variance of `linear` follows from the design as it does for sets.

Of several such columns a person has a row for every combination of members, so that omega counts combinations; of those
that are not asked for, each repeats the rows as often as its sets have values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod, sqrt
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import WORST_CONDITION, stretched
from noren.errors import QueryError
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.fit import Fit, Progress, fit
from noren.estimates.counts.frame import CELL_LIMIT, Frame, common_length, number_slots
from noren.statements.batch import number

if TYPE_CHECKING:
    from noren.designs.semantic.design import SemanticDesign


MAX_BAYES_STEPS = 20_000


def value_adding(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equation 18: a cell gets an equal share of every record whose set contains it, also of sets that miss the true
    value.

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
    """Invert the inclusion probabilities axis by axis, which is unbiased for every cell and sum: (Po J + (Pt - Po) I)
    for uniform decoys, the design's own matrix for semantic ones."""
    return Fit(invert(frame, frame.inclusions()), 0)


def invert(frame: Frame, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the table whose expected inclusion counts are w."""
    for j, axis in enumerate(frame.decoys, start=1):
        w = axis.design.inversion.invert(w, j)
    return w


def condition(frame: Frame) -> float | None:
    """Return the condition number of the inclusion probabilities: how much linear inversion can amplify noise; None if
    unbounded."""
    out = prod((axis.design.inversion.condition for axis in frame.decoys), start=1.0)
    return out if out < np.inf else None


def bayes(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equations 26 and 27: apply Bayes' rule to inclusion counts until no cell changes by eps, then divide once.

    The change is that of equation 26, before the division. That takes thousands of steps and more, so their path is
    followed in leaps: `iterations` counts applications of the equation, `plain_steps` the steps they stand for.
    """
    w = frame.inclusions()
    divisor = float(prod(axis.design.eta for axis in frame.decoys))
    inclusion = inclusion_of(frame)
    found = follow(lambda x: bayes_step(inclusion, x, w), w, eps, MAX_BAYES_STEPS, progress)
    facts = {
        "stopping": f"change below {eps:g} before the division by {divisor:g}",
        "plain_steps": round(found.steps),
        "last_change": found.change,
        "converged": found.change < eps,
    }
    return Fit(found.table / divisor, found.evaluations, facts)


Inclusion = Sequence[tuple[float, float | NDArray[np.float64]]]
"""Of every drawn axis P(u in R | v), as `Inversion.inclusion` gives it."""


def inclusion_of(frame: Frame) -> Inclusion:
    """Return the probabilities that equation 26 needs, axis by axis."""
    return [axis.design.inversion.inclusion for axis in frame.decoys]


def bayes_step(inclusion: Inclusion, x: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply equation 26 once, with delta as a Kronecker product."""
    expected = delta(inclusion, x)
    ratio = np.divide(w, expected, out=np.zeros_like(w), where=expected > 0)
    return x * delta(inclusion, ratio, back=True)


def delta(inclusion: Inclusion, x: NDArray[np.float64], *, back: bool = False) -> NDArray[np.float64]:
    """Return the expected inclusion counts of x, or with `back` the transpose."""
    for j, (always, more) in enumerate(inclusion, start=1):
        if isinstance(more, float):
            x = always * x.sum(axis=j, keepdims=True) + more * x
        else:
            x = np.moveaxis(np.tensordot(more if back else more.T, x, axes=(1, j)), 0, j)
    return x


def by_likelihood(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """EM on whole sets, stopped at convergence (one attribute) or by held-out likelihood (several)."""
    return fit(frame, progress)


def equation_2(design: SemanticDesign) -> NDArray[np.float64]:
    """Return the semantic paper's inclusion probabilities: 1 for v itself, (l-1) / |extract| for values compatible with
    it.

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
    """Solve equations 1 and 2 of the semantic-diversity paper in every exact slot.

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
    """Return the estimator to use, and why it replaces the requested one: an inversion that is not possible."""
    if estimator not in INVERTS or not frame.decoys:
        return estimator, ""
    if frame.lost.any():
        return instead, f"Linear inversion is not possible here, so {instead!r} is used."
    if estimator == "semantic-linear" and np.linalg.cond(equation_2(_semantic(frame))) > WORST_CONDITION:
        return instead, (
            f"The estimating equation of {frame.decoys[0].name!r} has no solution, so the counts are those of "
            f"{instead!r}."
        )
    return estimator, ""


Floats = NDArray[np.float64]
PLAIN = 100  # steps before the first leap: the beginning of the path bends most
CLOSE = 3e-5  # share of all records by which one leap may leave the path
DAMPING = 2 / 13
SMALLEST = 1e-300


@dataclass(frozen=True)
class Place:
    """A table on the path, the number of plain steps to it, and the work so far."""

    table: Floats
    steps: float
    evaluations: int
    change: float
    """By how much the last plain step moved a cell at most."""


def follow(
    step: Callable[[Floats], Floats], x: Floats, eps: float, most: int, progress: Progress | None = None
) -> Place:
    """Return the first table on the path of plain steps from x at which no cell changes by eps; uses at most `most`
    evaluations.

    Empty cells stay empty.
    """
    path = _Path(step, x, progress)
    z, k = np.log(x[path.live]), 0.0
    f, change = path.slope(z)
    while k < PLAIN and change >= eps:
        z, k = z + f, k + 1
        f, change = path.slope(z)
    h = k / 4
    while change >= eps and path.evaluations < most:
        reached, slope, after, error = path.leap(z, f, h)
        if error > CLOSE:
            h *= max(0.1, 0.8 * (CLOSE / error) ** (1 / 3))
            continue
        if after < eps:  # somewhere on this leap: halve until it is known to a step
            low, high, middle = 0.0, 1.0, (reached, slope, after)
            while (high - low) * h > 0.5:
                t = (low + high) / 2
                here = _between(z, f, reached, slope, h, t)
                found = path.slope(here)
                if found[1] < eps:
                    high, middle = t, (here, *found)
                else:
                    low = t
            k += high * h
            z, f, change = middle
            break
        z, f, change, k = reached, slope, after, k + h
        h *= min(2.0, 0.8 * (CLOSE / max(error, 1e-3 * CLOSE)) ** (1 / 3))
    return Place(path.table(z + f), k + 1, path.evaluations, change)


class _Path:
    """The right side of the differential equation on the nonempty cells, and the number of its evaluations."""

    def __init__(self, step: Callable[[Floats], Floats], x: Floats, progress: Progress | None) -> None:
        self.step, self.live, self.shape, self.progress, self.evaluations = step, x > 0, x.shape, progress, 0

    def table(self, z: Floats) -> Floats:
        out = np.zeros(self.shape)
        out[self.live] = np.exp(z)
        return out

    def slope(self, z: Floats) -> tuple[Floats, float]:
        """Return log a at z, and the largest change of a cell by a plain step."""
        self.evaluations += 1
        x = self.table(z)
        following = self.step(x)
        change = float(np.abs(following - x).max(initial=0.0))
        if self.progress is not None:
            self.progress(self.evaluations, change)
        return np.log(np.maximum(following[self.live], SMALLEST)) - np.maximum(z, np.log(SMALLEST)), change

    def leap(self, z: Floats, f: Floats, h: float) -> tuple[Floats, Floats, float, float]:
        """Return the point of the path after h, its slope and change, and the share of records that may be
        misplaced."""
        first, stages = _stages(max(2, ceil(sqrt(1 + 1.54 * h))))
        before, now = z, z + first * h * f
        for own, one, two, slope, start in stages:
            g = self.slope(now)[0]
            before, now = now, own * z + one * now + two * before + h * (slope * g + start * f)
        after, change = self.slope(now)
        error = 0.8 * (z - now) + 0.4 * h * (f + after)
        weight = np.exp(now)
        return now, after, change, float((weight * np.abs(error)).sum() / weight.sum())


def _stages(s: int) -> tuple[float, list[tuple[float, float, float, float, float]]]:
    """Return the coefficients of the scheme with s stages (Chebyshev polynomials and their derivatives, slightly
    damped)."""
    at = 1 + DAMPING / s**2
    t, d, dd = [1.0, at], [0.0, 1.0], [0.0, 0.0]
    for j in range(2, s + 1):
        t.append(2 * at * t[j - 1] - t[j - 2])
        d.append(2 * t[j - 1] + 2 * at * d[j - 1] - d[j - 2])
        dd.append(4 * d[j - 1] + 2 * at * dd[j - 1] - dd[j - 2])
    rate = d[s] / dd[s]
    b = [dd[max(j, 2)] / d[max(j, 2)] ** 2 for j in range(s + 1)]
    out = []
    for j in range(2, s + 1):
        one, two, slope = 2 * b[j] * at / b[j - 1], -b[j] / b[j - 2], 2 * b[j] * rate / b[j - 1]
        out.append((1 - one - two, one, two, slope, -(1 - b[j - 1] * t[j - 1]) * slope))
    return b[1] * rate, out


def _between(z: Floats, f: Floats, last: Floats, slope: Floats, h: float, t: float) -> Floats:
    """Interpolate a point of the leap by the cubic with the slopes of both ends."""
    start = (1 + 2 * t) * (1 - t) ** 2 * z + t * (1 - t) ** 2 * h * f
    return np.asarray(start + t * t * (3 - 2 * t) * last + t * t * (t - 1) * h * slope)


@dataclass(frozen=True)
class ShuffledFrame(Frame):
    """A frame whose rows are single values: l rows make a record, and omega is counted."""

    omega: NDArray[np.float64]
    rows_each: int

    @property
    def l(self) -> int:  # noqa: E743  the paper's letter
        """Return the number of combinations per record."""
        return prod(axis.design.eta for axis in self.decoys)

    @cached_property
    def records(self) -> NDArray[np.float64]:
        """Return the number of records of every slot; not a whole number if rows were filtered."""
        return np.asarray(self.omega.reshape(len(self.slots), -1).sum(axis=1) / self.l)

    def inclusions(self) -> NDArray[np.float64]:
        """Return omega: how often each value occurs in each slot."""
        return self.omega

    def facts(self) -> dict[str, int | float]:
        return {"rows": len(self.slot_of), "rows_per_record": self.rows_each, "records": float(self.records.sum())}

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return bounds: a group has at most as many records as its values occur, and at least those that no other
        value can have."""
        inside = self.sum_groups(self.omega)
        total = stretched(self.records, 0, inside.ndim)
        return np.maximum(total - (total * self.l - inside), 0.0), np.minimum(inside, total)


def prepare_shuffled(axes: Sequence[Axis], rows_each: int | None = None) -> ShuffledFrame:
    """Count the rows of every exact slot and combination of members.

    rows_each: rows of a person in the release; as many as the axes' sets have combinations unless given.
    """
    n = common_length(axes)
    shuffled = tuple(axis for axis in axes if axis.is_shuffled)
    others = [axis for axis in axes if not axis.is_shuffled]
    if any(not axis.is_exact for axis in others):
        hidden = ", ".join(repr(axis.name) for axis in axes if not axis.is_exact)
        raise QueryError(
            f"Shuffled members can be combined with exact columns only, but {hidden} are all hidden.",
            hint="Pass columns of one release.",
        )
    combinations = prod(axis.design.eta for axis in shuffled)
    each = combinations if rows_each is None else rows_each
    flat, counted = number_slots(others, n)
    slots, slot_of = number(flat[counted])
    shape = (len(slots), *(axis.d for axis in shuffled))
    if (cells := prod(shape)) > CELL_LIMIT:
        raise QueryError(
            f"The table would have {cells:,} cells; the limit is {CELL_LIMIT:,}.",
            hint="Tabulate fewer attributes at once.",
        )
    place = slot_of.astype(np.int64)
    for axis in shuffled:
        members, ids = axis.distinct
        place = place * axis.d + axis.statement.checked(members)[ids[counted]]
    omega = np.bincount(place, minlength=cells).reshape(shape) * (combinations / each)
    return ShuffledFrame(
        axes=axes,
        n=n / each,
        slots=slots,
        slot_of=slot_of.astype(np.int32),
        decoys=shuffled,
        set_of=(),
        survey=None,
        counted=None,
        omega=omega.astype(np.float64),
        rows_each=each,
    )


def projected(table: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest table without negative cells whose rows have these totals."""
    ranked = -np.sort(-table, axis=1)
    excess = np.cumsum(ranked, axis=1) - totals[:, None]
    size = np.arange(1, table.shape[1] + 1)
    last = table.shape[1] - 1 - np.argmax((ranked * size > excess)[:, ::-1], axis=1)
    shift = np.take_along_axis(excess / size, last[:, None], axis=1)
    return np.where(totals[:, None] > 0, np.maximum(table - shift, 0.0), 0.0)


def projected_linear(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Invert linearly, then take the nearest possible table; intervals are those of the inversion."""
    found = linear(frame).table
    negative = float(np.minimum(found, 0.0).sum())
    nearest = projected(found.reshape(len(found), -1), frame.records).reshape(found.shape)
    return Fit(nearest, 0, {"projected": True, "negative_before": negative})


SHUFFLED_ESTIMATORS: Mapping[str, Estimator] = {"linear": projected_linear, "bayes": bayes, **SEMANTIC_ESTIMATORS}
