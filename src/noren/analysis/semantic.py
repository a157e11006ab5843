"""Tables from the semantic paper's own form of release: N x l shuffled records, one value each, without set ids.

Which l rows belong together is not published, so whole sets cannot be used: what remains is how often each value occurs
beside each combination of exact columns, omega. That is all `linear`, `bayes` and the paper's estimators need, and the
variance of `linear` follows from the design as it does for sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.analysis.axes import Axis, Frame, prepare
from noren.analysis.estimators import (
    SEMANTIC_ESTIMATORS,
    Estimator,
    Tabulation,
    advised,
    bayes,
    check,
    linear,
    report,
    tabulate,
)
from noren.analysis.likelihood import Fit, Progress
from noren.cells import SetCells, ValueCells
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError

if TYPE_CHECKING:
    from noren.designs.semantic.design import SemanticDesign


@dataclass(frozen=True)
class RecordFrame(Frame):
    """A frame whose rows are single values: l of them make a record, and omega is counted, not summed over sets."""

    omega: NDArray[np.float64]

    @property
    def l(self) -> int:  # noqa: E743  the paper's letter
        """Rows per record."""
        return self.decoys[0].design.eta

    @cached_property
    def records(self) -> NDArray[np.float64]:
        """How many records every slot has; not a whole number if rows were filtered."""
        return np.asarray(self.omega.sum(axis=1) / self.l)

    def inclusions(self) -> NDArray[np.float64]:
        """omega: how often each value occurs in each slot."""
        return self.omega

    def facts(self) -> dict[str, int | float]:
        return {"rows": len(self.slot_of), "rows_per_record": self.l, "records": float(self.records.sum())}

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A group holds at most as many records as its values occur, at least what all other values cannot hold."""
        axis, total = self.decoys[0], self.records[:, None]
        inside = self.omega @ axis.membership.T
        outside = self.omega @ (1 - axis.membership).T
        return np.maximum(total - outside, 0.0), np.minimum(inside, total)


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
    return Fit(projected(found, frame.records), 0, {"projected": True, "negative_before": negative})


RECORD_ESTIMATORS: Mapping[str, Estimator] = {"linear": projected_linear, "bayes": bayes, **SEMANTIC_ESTIMATORS}


def tabulate_records(
    exact_axes: Sequence[Axis],
    values: ValueCells,
    design: SemanticDesign,
    *,
    name: str = "value",
    axis_groups: NDArray[np.int64] | None = None,
    n_groups: int | None = None,
    estimator: str = "linear",
    level: float = 0.95,
    population: bool = False,
    eps: float = 1.0,
    progress: Progress | None = None,
) -> Tabulation:
    """Estimate a table of exact columns by one semantic column from N x l shuffled rows, with intervals at `level`.

    `values` holds one member of one record's set a row, `exact_axes` the same rows' exact columns; the answer has their
    dimensions, then the semantic column's. `axis_groups` and `n_groups` are those of an `Axis`. `linear` counts are
    projected on the tables that are possible.
    """
    empty = np.zeros((0, design.eta), np.int64)
    axis = Axis(name, SetCells.from_codes(design.d, empty), design, axis_groups, n_groups)
    if estimator in ("likelihood", "value-adding"):
        raise QueryError(
            f"{estimator!r} needs whole sets; the record form does not say which rows belong together.",
            hint=f"Choose one of: {', '.join(RECORD_ESTIMATORS)}.",
        )
    inexact = [other.name for other in exact_axes if not other.is_exact]
    if inexact:
        raise QueryError(
            f"The record form serves one sensitive column; {', '.join(map(repr, inexact))} hold sets.",
            hint="Pass columns that are published exactly.",
        )
    check([*exact_axes, axis], estimator, tuple(RECORD_ESTIMATORS), level)
    if values.d != design.d:
        raise QueryError(
            f"{name!r} has {values.d} values in its cells and {design.d} in its design.",
            hint="Pass the design that the release's manifest gives for this column.",
        )
    if axis.is_exact:
        single = Axis(name, values, design, axis_groups, n_groups)
        return tabulate([*exact_axes, single], level=level, population=population)
    frame = _frame(exact_axes, values, axis)
    asked, (estimator, why) = estimator, advised(frame, estimator, "bayes")
    fit = RECORD_ESTIMATORS[estimator](frame, progress=progress, eps=eps)
    return report(frame, fit, estimator, level, population, {"asked_for": asked} if why else {}, why)


def _frame(exact_axes: Sequence[Axis], values: ValueCells, axis: Axis) -> RecordFrame:
    """Count the rows of every exact slot and value."""
    d = axis.design.d
    rows = prepare([*exact_axes, Axis(axis.name, values, DecoyDesign.exact(d))])
    slots, slot = np.unique(rows.slots // d, return_inverse=True)
    omega = np.zeros((len(slots), d))
    omega[slot, rows.slots % d] = rows.records
    return RecordFrame(
        axes=(*exact_axes, axis),
        n=rows.n / axis.design.eta,
        slots=slots,
        slot_of=rows.slot_of,
        decoys=(axis,),
        sets=(),
        set_of=(),
        weights=(),
        omega=omega,
    )
