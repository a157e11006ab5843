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

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, Weights
from noren.estimates.counts.rows import sum_by_label
from noren.estimates.counts.tuples import Tuples, identity
from noren.statements import Likelihood
from noren.statements.batch import number

CELL_LIMIT = 50_000_000


@dataclass(frozen=True)
class Frame:
    """The shape of a table (exact slot, drawn value, drawn value, ...) and the records that inform about it.

    `slots` are the combinations of exact groups that occur, as flat indices into the exact axes' reported shape.
    Records that an exact axis leaves uncounted are gone; `n` still counts them.
    """

    axes: Sequence[Axis]
    n: float
    slots: NDArray[np.int64]
    slot_of: NDArray[np.int32]
    decoys: tuple[Axis, ...]
    set_of: tuple[NDArray[np.int32], ...]
    survey: Weights | None
    """What all rows weigh, where they are not people but stand for some."""
    counted: NDArray[np.bool_] | None
    """Which rows count; None if all do."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the estimated table."""
        return (len(self.slots), *(axis.d for axis in self.decoys))

    @property
    def kept(self) -> int:
        """Return the number of records that count."""
        return len(self.slot_of)

    @cached_property
    def tuples(self) -> Tuples:
        """Return the records' distinct tuples of sets."""
        rows = (identity(len(self.slots)), *(axis.drawn_rows for axis in self.decoys))
        return Tuples.build(rows, self.shape, (self.slot_of, *self.set_of), self.each)

    @cached_property
    def each(self) -> NDArray[np.float64] | None:
        """Return the weight of every record that counts."""
        if self.survey is None:
            return None
        return self.survey.of if self.counted is None else self.survey.of[self.counted]

    def squared(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the table of squared weights for the table x, from which variances follow; x itself without
        weights."""
        if self.survey is None:
            return x
        squares = self.tuples.squared()
        if not self.decoys or self.kept == 0:
            return squares.counts.reshape(self.shape)
        prior = np.maximum(x, 1e-6 * max(float(x.mean()), 1e-6))  # an unbiased table may have negative cells
        return np.asarray(prior * squares.em_pass(prior)[0])

    @cached_property
    def records(self) -> NDArray[np.float64]:
        """Return the number of records of every slot."""
        return np.bincount(self.slot_of, self.each, minlength=len(self.slots)).astype(np.float64)

    @cached_property
    def inclusions(self) -> NDArray[np.float64]:
        """Return w_c: the number of records whose product sets contain cell c (equation 17)."""
        listed = [Likelihood(r.bounds, r.value, np.ones(len(r.value))) for r in (axis.rows for axis in self.decoys)]
        return self.tuples.count(listed, self.shape[1:])

    def facts(self) -> dict[str, int | float]:
        """Return the diagnostics about the records."""
        return {"distinct_tuples": len(self.tuples)}

    @property
    def is_single(self) -> bool:
        """Return whether there is one hidden column and one slot."""
        return self.shape[0] * len(self.decoys) == 1

    # ------------------------------------------------------------------ what is reported

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        """Return a (1, groups of drawn axes) array: combinations whose counts the sets do not determine."""
        out = np.zeros([1] * (len(self.decoys) + 1), np.bool_)
        for j, axis in enumerate(self.decoys, start=1):
            out = out | np.expand_dims(axis.scoring.lost, [k for k in range(out.ndim) if k != j])
        return out

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (slot, groups of drawn axes) bounds: the smallest and largest possible number of records."""
        shape = [axis.size for axis in self.decoys]
        least, most = (
            self.tuples.count([_groups_of(axis, must=must) for axis in self.decoys], shape) for must in (True, False)
        )
        return least, most

    def sum_groups(self, table: NDArray) -> NDArray:
        """Sum a table over the drawn axes' base values into their reported groups."""
        for j, axis in enumerate(self.decoys, start=1):
            table = axis.grouping.sum(table, j)
        return table

    def place(self, table: NDArray) -> NDArray:
        """Expand a table over (slot, groups of drawn axes) to the reported shape, repeated along blind axes."""
        exact = [i for i, axis in enumerate(self.axes) if axis.is_exact]
        blind = [i for i, axis in enumerate(self.axes) if axis.is_blind]
        decoys = [i for i in range(len(self.axes)) if i not in exact and i not in blind]
        sizes = [axis.size for axis in self.axes]
        full = np.zeros((prod(sizes[i] for i in exact), *table.shape[1:]), table.dtype)
        full[self.slots] = table
        full = full.reshape([sizes[i] for i in (*exact, *decoys)] + [1] * len(blind))
        full = np.moveaxis(full, range(len(sizes)), (*exact, *decoys, *blind))
        return np.ascontiguousarray(np.broadcast_to(full, sizes))


def _groups_of(axis: Axis, *, must: bool) -> Likelihood:
    """Return the groups in which each distinct set's true value can be, or must be."""
    bounds, value = axis.drawn_rows.possible(axis.d)
    label = np.where(axis.grouping.of < 0, axis.size, axis.grouping.of)
    bounds, index, _ = sum_by_label(bounds, value, label, axis.size + 1)
    kept = index < axis.size
    if must:
        kept &= np.repeat(np.diff(bounds) == 1, np.diff(bounds))
    offsets = np.concatenate([[0], np.cumsum(kept)])[bounds]
    return Likelihood(offsets, index[kept], np.ones(int(kept.sum())))


def number_slots(exact: Sequence[Axis], n: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Number the combination of exact groups of every record as a flat index, and return which records count."""
    flat = np.zeros(n, np.int64)
    counted = np.ones(n, np.bool_)
    for axis in exact:
        group = axis.grouping.of[axis.codes]
        counted &= group >= 0
        flat = flat * axis.size + group
    return flat, counted


def common_length(axes: Sequence[Axis]) -> int:
    """Return the common number of rows of all axes."""
    if not axes:
        raise QueryError("A tabulation needs at least one column.", hint="Give a column of the release.")
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
    for axis in decoys:
        axis.drawn_rows  # noqa: B018  refuses sets that cannot come from their design
    set_of = [axis.distinct[1] for axis in decoys]
    if not counted.all():
        flat, set_of = flat[counted], [ids[counted] for ids in set_of]
    slots, slot_of = number(flat)
    cells = max(1, len(slots)) * prod(axis.d + 1 for axis in decoys)
    if cells > CELL_LIMIT:
        raise QueryError(
            f"The table would have about {cells:,} cells; the limit is {CELL_LIMIT:,}.",
            hint="Tabulate fewer columns at once.",
        )
    all_of = n if among is None else among
    kept = None if counted.all() else counted
    return Frame(axes, all_of, slots, slot_of.astype(np.int32), decoys, tuple(set_of), survey, kept)
