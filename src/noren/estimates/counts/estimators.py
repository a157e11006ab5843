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
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import WORST_CONDITION, stretched
from noren.errors import QueryError
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bayes import bayes
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import CELL_LIMIT, Frame, common_length, number_slots
from noren.estimates.counts.tuples import Fit, Progress
from noren.statements.batch import number

if TYPE_CHECKING:
    from noren.designs.semantic.design import SemanticDesign


def value_adding(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equation 18: a cell gets an equal share of every record whose set contains it, also of sets that miss the true
    value.

    Fast and biased towards uniform. Within each exact slot N is the slot's records.
    """
    w = frame.inclusions
    designs = [axis.design for axis in frame.decoys]
    hit = prod(design.p_true for design in designs)
    inside, cells = prod(design.eta for design in designs), prod(design.d for design in designs)
    records = frame.records.reshape(-1, *[1] * len(designs))
    miss = (1 - hit) / (cells - inside) if cells > inside else 0.0
    return Fit(w * (hit / inside) + (records - w) * miss, 0)


def linear(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Invert the inclusion probabilities axis by axis, which is unbiased for every cell and sum: (Po J + (Pt - Po) I)
    for uniform decoys, the design's own matrix for semantic ones."""
    return Fit(invert(frame, frame.inclusions), 0)


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
    table = np.asarray(np.linalg.solve(matrix.T, frame.inclusions.T).T, np.float64)
    return Fit(table, 0, {"equation_2_condition": float(np.linalg.cond(matrix))})


def share(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equation 20: every member of a set is the true one with probability 1/l."""
    return Fit(frame.inclusions / _semantic(frame).eta, 0)


def uniform_linear(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equations 21 and 22: linear inversion as if decoys were any other value, whatever the distance."""
    design = _semantic(frame)
    q = (design.eta - 1) / (design.d - 1)
    return Fit((frame.inclusions - q * frame.records[:, None]) / (1 - q), 0)


def _semantic(frame: Frame) -> SemanticDesign:
    return cast("SemanticDesign", frame.decoys[0].design)


Estimator = Callable[..., Fit]
ESTIMATORS: Mapping[str, Estimator] = {
    "likelihood": fit,
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

    @cached_property
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
        place = place * axis.d + axis.statement.check_cells(members)[ids[counted]]
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
