"""Exact and drawn columns together, in the form the estimators work on.

`prepare` turns axes into a `Frame`: columns published exactly become one slot number per record (their groups can be
formed before anything is estimated), drawn columns become numbered distinct sets, and columns whose sets say nothing
are put aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, Weights
from noren.estimates.counts.fit import DRAWN, Fit, Progress, Stopping, converge
from noren.estimates.counts.tuples import Tuples
from noren.statements.batch import number

CELL_LIMIT = 50_000_000


@dataclass(frozen=True)
class Frame:
    """A table of (exact slot, drawn value, drawn value, ...) and the records that speak of it.

    `slots` are the combinations of exact groups that occur, as flat indices into the exact axes' reported shape.
    Records that an exact axis leaves uncounted are gone; `n` still counts them.
    """

    axes: Sequence[Axis]
    n: float
    slots: NDArray[np.int64]
    slot_of: NDArray[np.int32]
    decoys: tuple[Axis, ...]
    sets: tuple[NDArray[np.int32], ...]
    set_of: tuple[NDArray[np.int32], ...]
    weights: tuple[NDArray[np.float64] | None, ...]
    """What the members of every distinct set weigh, by column."""
    survey: Weights | None
    """What all rows weigh, where they are not people but stand for some."""
    counted: NDArray[np.bool_] | None
    """Which rows count; None if all do."""

    stopping: ClassVar[Stopping] = DRAWN

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of the estimated table."""
        return (len(self.slots), *(axis.d for axis in self.decoys))

    @property
    def kept(self) -> int:
        """Records that count."""
        return len(self.slot_of)

    @cached_property
    def tuples(self) -> Tuples:
        """The records' distinct tuples of sets."""
        designs = [axis.design for axis in self.decoys]
        columns = (self.slot_of, *self.set_of)
        return Tuples.build(len(self.slots), designs, self.sets, columns, self.weights, self.each)

    @cached_property
    def each(self) -> NDArray[np.float64] | None:
        """What every record that counts weighs."""
        if self.survey is None:
            return None
        return self.survey.of if self.counted is None else self.survey.of[self.counted]

    def squared(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The table of squared weights that goes with the table x: variances go by it. x itself without weights."""
        if self.survey is None:
            return x
        squares = self.tuples.squared()
        if not self.decoys or self.kept == 0:
            return squares.inclusions()
        prior = np.maximum(x, 1e-6 * max(float(x.mean()), 1e-6))  # an unbiased table may have negative cells
        return np.asarray(prior * squares.em_pass(prior)[0])

    @cached_property
    def records(self) -> NDArray[np.float64]:
        """How many records every slot has."""
        return np.bincount(self.slot_of, self.each, minlength=len(self.slots)).astype(np.float64)

    def inclusions(self) -> NDArray[np.float64]:
        """w: how many records' product sets contain each cell."""
        return self.tuples.inclusions()

    def facts(self) -> dict[str, int | float]:
        """What diagnostics tell about the records themselves."""
        return {"distinct_tuples": len(self.tuples)}

    # ------------------------------------------------------------------ as evidence for EM

    @property
    def counts(self) -> NDArray[np.float64]:
        return self.tuples.counts

    def known(self) -> Fit | None:
        if not self.decoys:
            return Fit(self.tuples.inclusions(), 0, {"stopping": "nothing to estimate"})
        if self.kept == 0:
            return Fit(np.zeros(self.shape), 0, {"stopping": "no records"})
        return None

    @property
    def is_single(self) -> bool:
        return self.shape[0] * len(self.decoys) == 1

    def alone(self, rule: Stopping, max_steps: int, progress: Progress | None) -> Fit:
        start = np.full(self.shape, self.kept / self.shape[1])
        found = converge(self, start, rule.tolerance, max_steps, progress)
        if rule is not self.stopping or self.survey is not None:  # whoever names a tolerance wants the maximum itself
            return found
        from noren.estimates.counts.regularised import regularised

        return regularised(self, found)

    def em_pass(
        self,
        x: NDArray[np.float64],
        held: NDArray[np.int32] | None = None,
        floor: NDArray[np.float64] | None = None,
        scale: float = 1.0,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        return self.tuples.em_pass(x, held, floor, scale)

    def start(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The product of the attributes' own estimates."""
        from noren.estimates.counts.raking import Singles

        return Singles.of(self.tuples, counts, self.stopping.tolerance).product()

    def searched(self, rule: Stopping, max_steps: int, progress: Progress | None) -> Fit:
        from noren.estimates.counts.raking import by_held_out

        answers = self._alone() if rule is self.stopping else {}
        return by_held_out(self.tuples, rule, progress, max_steps, answers)

    def _alone(self) -> dict[int, NDArray[np.float64]]:
        """What a recipient gets who asks for one drawn column, by the column's place in the table."""
        from noren.estimates.counts.fit import fit
        from noren.estimates.counts.raking import each

        def alone(axis: Axis) -> NDArray[np.float64] | None:
            one = prepare([axis], self.survey)
            return fit(one).table[0] if one.kept == self.kept else None

        found = each(alone, self.decoys, len(self.tuples))
        return {j: table for j, table in enumerate(found, start=1) if table is not None}

    # ------------------------------------------------------------------ what is reported

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        """(1, groups of drawn axes): combinations whose counts the sets do not determine."""
        out = np.zeros([1] * (len(self.decoys) + 1), np.bool_)
        for j, axis in enumerate(self.decoys, start=1):
            out = out | np.expand_dims(axis.scoring.lost, [k for k in range(out.ndim) if k != j])
        return out

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(slot, groups of drawn axes): how many records must be in each combination, and how many can be."""
        parts = [
            (_groups_of(axis, sets, weights, must=True), _groups_of(axis, sets, weights, must=False))
            for axis, sets, weights in zip(self.decoys, self.sets, self.weights, strict=True)
        ]
        shape = [axis.size for axis in self.decoys]
        least, most = (self.tuples.count([p[k][0] for p in parts], [p[k][1] for p in parts], shape) for k in range(2))
        return least, most

    def sum_groups(self, table: NDArray) -> NDArray:
        """Sum a table over the drawn axes' base values into their reported groups."""
        for j, axis in enumerate(self.decoys, start=1):
            table = axis.grouping.sum(table, j)
        return table

    def place(self, table: NDArray) -> NDArray:
        """Spread a table over (slot, groups of drawn axes) out to the reported shape, repeated along blind axes."""
        exact = [i for i, axis in enumerate(self.axes) if axis.is_exact]
        blind = [i for i, axis in enumerate(self.axes) if axis.is_blind]
        decoys = [i for i in range(len(self.axes)) if i not in exact and i not in blind]
        sizes = [axis.size for axis in self.axes]
        full = np.zeros((prod(sizes[i] for i in exact), *table.shape[1:]), table.dtype)
        full[self.slots] = table
        full = full.reshape([sizes[i] for i in (*exact, *decoys)] + [1] * len(blind))
        full = np.moveaxis(full, range(len(sizes)), (*exact, *decoys, *blind))
        return np.ascontiguousarray(np.broadcast_to(full, sizes))


def _groups_of(
    axis: Axis, sets: NDArray[np.int32], weights: NDArray[np.float64] | None, *, must: bool
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The groups that each distinct set's true value can be in (or the one it must be in), and 1 or 0 for each."""
    if axis.design.floor > 0:  # any value can be true
        present = axis.grouping.sizes == axis.d if must else axis.grouping.sizes > 0
        return np.tile(np.arange(axis.size, dtype=np.int32), (len(sets), 1)), present.astype(np.float64)
    group = axis.grouping.of[sets]
    possible = np.ones(group.shape, np.bool_) if weights is None else weights > 0
    if must:
        top = np.where(possible, group, -1).max(axis=1, keepdims=True)
        only = (top >= 0) & np.all(~possible | (group == top), axis=1, keepdims=True)
        return np.maximum(top, 0).astype(np.int32), only.astype(np.float64)
    group = np.sort(np.where(possible, group, -1), axis=1)
    new = group >= 0
    new[:, 1:] &= group[:, 1:] != group[:, :-1]
    return np.maximum(group, 0).astype(np.int32), new.astype(np.float64)


def number_slots(exact: Sequence[Axis], n: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The combination of exact groups of every record, as a flat index, and which records count."""
    flat = np.zeros(n, np.int64)
    counted = np.ones(n, np.bool_)
    for axis in exact:
        group = axis.grouping.of[axis.codes]
        counted &= group >= 0
        flat = flat * axis.size + group
    return flat, counted


def common_length(axes: Sequence[Axis]) -> int:
    """The number of rows that all axes have."""
    if not axes:
        raise QueryError("A tabulation needs at least one attribute.", hint="Name a column of the release.")
    lengths = {len(axis.cells) for axis in axes}
    if len(lengths) > 1:
        raise QueryError(f"The columns have different lengths: {sorted(lengths)}.", hint="Use columns of one release.")
    return lengths.pop()


def prepare(axes: Sequence[Axis], survey: Weights | None = None, among: int | None = None) -> Frame:
    """Check the axes against each other and number their cells.

    `survey` says what every row weighs, `among` of how many records the rows are those that a condition left.
    """
    n = common_length(axes)
    decoys = tuple(axis for axis in axes if axis.is_drawn and not axis.is_blind)
    flat, counted = number_slots([axis for axis in axes if axis.is_exact], n)
    set_of = [axis.distinct[1] for axis in decoys]
    found = [axis.sets for axis in decoys]
    if not counted.all():
        flat, set_of = flat[counted], [ids[counted] for ids in set_of]
    slots, slot_of = number(flat)
    cells = max(1, len(slots)) * prod(axis.d + 1 for axis in decoys)
    if cells > CELL_LIMIT:
        raise QueryError(
            f"The table would have about {cells:,} cells; the limit is {CELL_LIMIT:,}.",
            hint="Tabulate fewer attributes at once.",
        )
    sets, weights = tuple(sets for sets, _ in found), tuple(weight for _, weight in found)
    all_of = n if among is None else among
    kept = None if counted.all() else counted
    return Frame(axes, all_of, slots, slot_of.astype(np.int32), decoys, sets, tuple(set_of), weights, survey, kept)
