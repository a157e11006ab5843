"""Rows that hold one member of a person's set each, shuffled: N x l rows without set numbers.

Which l rows belong together is not published, so whole sets cannot be used: what remains is how often each value occurs
beside each combination of exact columns, omega. That is all `linear`, `bayes` and the semantic paper's estimators need,
and the variance of `linear` follows from the design as it does for sets.

Of several such columns a person has a row for every combination of members, so that omega counts combinations; of those
that are not asked for, each repeats the rows as often as its sets have values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import stretched
from noren.errors import QueryError
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import SEMANTIC_ESTIMATORS, Estimator, bayes, linear
from noren.estimates.counts.fit import Fit, Progress
from noren.estimates.counts.frame import CELL_LIMIT, Frame, common_length, number_slots
from noren.statements.batch import number


@dataclass(frozen=True)
class ShuffledFrame(Frame):
    """A frame whose rows are single values: l of them make a record, and omega is counted, not summed over sets."""

    omega: NDArray[np.float64]
    rows_each: int

    @property
    def l(self) -> int:  # noqa: E743  the paper's letter
        """Combinations per record."""
        return prod(axis.design.eta for axis in self.decoys)

    @cached_property
    def records(self) -> NDArray[np.float64]:
        """How many records every slot has; not a whole number if rows were filtered."""
        return np.asarray(self.omega.reshape(len(self.slots), -1).sum(axis=1) / self.l)

    def inclusions(self) -> NDArray[np.float64]:
        """omega: how often each value occurs in each slot."""
        return self.omega

    def facts(self) -> dict[str, int | float]:
        return {"rows": len(self.slot_of), "rows_per_record": self.rows_each, "records": float(self.records.sum())}

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A group holds at most as many records as its values occur, at least what all other values cannot hold."""
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
            f"Shuffled members stand beside columns that are published exactly; {hidden} are hidden together.",
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
        sets=(),
        set_of=(),
        weights=(),
        survey=None,
        counted=None,
        omega=omega.astype(np.float64),
        rows_each=each,
    )


def projected(table: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest table without negative cells whose rows have these totals."""
    ranked = -np.sort(-table, axis=1)
    excess = np.cumsum(ranked, axis=1) - totals[:, None]
    size = np.arange(1, table.shape[1] + 1)
    last = table.shape[1] - 1 - np.argmax((ranked * size > excess)[:, ::-1], axis=1)
    shift = np.take_along_axis(excess / size, last[:, None], axis=1)
    return np.where(totals[:, None] > 0, np.maximum(table - shift, 0.0), 0.0)


def projected_linear(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Linear inversion, then the nearest table that is possible; its interval stays that of the inversion."""
    found = linear(frame).table
    negative = float(np.minimum(found, 0.0).sum())
    nearest = projected(found.reshape(len(found), -1), frame.records).reshape(found.shape)
    return Fit(nearest, 0, {"projected": True, "negative_before": negative})


SHUFFLED_ESTIMATORS: Mapping[str, Estimator] = {"linear": projected_linear, "bayes": bayes, **SEMANTIC_ESTIMATORS}
