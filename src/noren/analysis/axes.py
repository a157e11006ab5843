"""What a cross tabulation is made of: its axes, and the records as tuples of published sets.

`prepare` turns axes into a `Frame`: columns published exactly become one slot number per record (their groups can be
formed before anything is estimated), decoy columns become numbered distinct sets, and columns whose sets
say nothing are put aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from noren.analysis.tuples import Tuples
from noren.cells import SetCells, ValueCells
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError

CELL_LIMIT = 50_000_000
NO_INFORMATION = 1e-9  # Pt - Po below this


@dataclass(frozen=True)
class Axis:
    """One attribute of a cross tabulation: its published cells, the design that made them, and how base values
    are grouped for the answer.

    `groups` maps a base value's code to a reported group 0..n_groups-1, or to -1 for "not counted"; None reports
    every base value. A condition on a decoy column is an axis whose allowed values all map to group 0.
    """

    name: str
    cells: SetCells | ValueCells
    design: DecoyDesign
    groups: NDArray[np.int64] | None = None
    n_groups: int | None = None

    def __post_init__(self) -> None:
        if self.cells.d != self.design.d:
            raise QueryError(
                f"{self.name!r} has {self.cells.d} values in its cells and {self.design.d} in its design.",
                hint="Pass the design that the release's manifest gives for this column.",
            )
        if isinstance(self.cells, ValueCells) and not (self.design.is_exact or self.design.d == 1):
            raise QueryError(
                f"{self.name!r} is published exactly, but its design says eta={self.design.eta}, p={self.design.p}.",
                hint="Use DecoyDesign.exact(d) for a column published as it is.",
            )
        if self.groups is not None and len(self.groups) != self.design.d:
            raise QueryError(
                f"The groups of {self.name!r} name {len(self.groups)} values; its domain has {self.design.d}.",
                hint="Give one group number, or -1, for every value of the domain.",
            )

    @cached_property
    def group_of(self) -> NDArray[np.int64]:
        """The reported group of every base value."""
        if self.groups is None:
            return np.arange(self.design.d, dtype=np.int64)
        return np.asarray(self.groups, np.int64)

    @property
    def size(self) -> int:
        """Number of reported groups."""
        if self.n_groups is not None:
            return self.n_groups
        return int(self.group_of.max(initial=-1)) + 1

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """|G| of every reported group, in base values."""
        return np.bincount(self.group_of[self.group_of >= 0], minlength=self.size).astype(np.int64)

    @property
    def is_exact(self) -> bool:
        """The cell says the value: published as it is, or a domain with nothing to hide."""
        return self.design.is_exact or self.design.d == 1

    @property
    def is_blind(self) -> bool:
        """Every set is as likely under every value (eta = d or p = 0): nothing can be learnt along this axis."""
        return not self.is_exact and self.design.p_gap < NO_INFORMATION

    def sum_groups(self, table: NDArray, axis: int) -> NDArray:
        """Sum base values into the reported groups along one dimension of a table."""
        moved = np.moveaxis(table, axis, 0)
        if self.groups is None:
            return table
        out = np.zeros((self.size, *moved.shape[1:]))
        counted = self.group_of >= 0
        np.add.at(out, self.group_of[counted], moved[counted])
        return np.moveaxis(out, 0, axis)


def number(keys: NDArray) -> tuple[NDArray, NDArray[np.int32]]:
    """The distinct keys in ascending order, and each key's number among them."""
    top = int(keys.max(initial=0))
    if top < 1 << 24:
        present = np.zeros(top + 1, np.bool_)
        present[keys] = True
        lookup = np.cumsum(present, dtype=np.int32) - 1
        return np.flatnonzero(present).astype(keys.dtype), lookup[keys].astype(np.int32)
    distinct, inverse = np.unique(keys, return_inverse=True)
    return distinct, inverse.astype(np.int32)


def _distinct_sets(axis: Axis) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct sets of a decoy column as rows of codes, and every record's set number."""
    cells, eta = axis.cells, axis.design.eta
    assert isinstance(cells, SetCells)
    if cells.is_mask:
        masks, ids = number(cells.data)
        distinct = SetCells(cells.d, masks)
    else:
        if cells.data.shape[1] != eta:
            raise _wrong_size(axis)
        key = np.zeros(len(cells), np.int64)
        for column in range(eta):  # order-preserving numbers for ever longer beginnings of the rows
            key = number(key * cells.d + cells.data[:, column])[1].astype(np.int64)
        first = np.zeros(int(key.max(initial=-1)) + 1, np.int64)
        first[key] = np.arange(len(cells))
        ids, distinct = key.astype(np.int32), cells.take(first)
    if len(distinct) and np.any(distinct.sizes() != eta):
        raise _wrong_size(axis)
    return distinct.codes(eta).astype(np.int32), ids


def _wrong_size(axis: Axis) -> QueryError:
    return QueryError(
        f"Some sets of {axis.name!r} do not hold the {axis.design.eta} values its design prescribes.",
        hint="Pass the design from the release's manifest.",
    )


def exact_codes(axis: Axis) -> NDArray:
    """The value of every cell of an exact axis."""
    if isinstance(axis.cells, ValueCells):
        return axis.cells.data
    if axis.design.d == 1:
        return np.zeros(len(axis.cells), np.uint8)
    sets, ids = _distinct_sets(axis)
    return np.asarray(sets[ids, 0])


@dataclass(frozen=True)
class Frame:
    """A tabulation in the form the estimators work on: a table of (exact slot, decoy value, decoy value, ...).

    `slots` are the combinations of exact groups that occur, as flat indices into the exact axes' reported shape.
    Records that an exact axis leaves uncounted are gone; `n` still counts them.
    """

    axes: Sequence[Axis]
    n: int
    slots: NDArray[np.int64]
    slot_of: NDArray[np.int32]
    decoys: tuple[Axis, ...]
    sets: tuple[NDArray[np.int32], ...]
    set_of: tuple[NDArray[np.int32], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of the estimated table."""
        return (len(self.slots), *(axis.design.d for axis in self.decoys))

    @property
    def kept(self) -> int:
        """Records that count."""
        return len(self.slot_of)

    @cached_property
    def tuples(self) -> Tuples:
        """The records' distinct tuples of sets."""
        designs = [axis.design for axis in self.decoys]
        return Tuples.build(len(self.slots), designs, self.sets, (self.slot_of, *self.set_of))

    def sum_groups(self, table: NDArray) -> NDArray:
        """Sum a table over the decoys' base values into their reported groups."""
        for j, axis in enumerate(self.decoys, start=1):
            table = axis.sum_groups(table, j)
        return table

    def place(self, table: NDArray) -> NDArray:
        """Spread a table over (slot, decoy groups) out to the reported shape, repeated along blind axes."""
        exact = [i for i, axis in enumerate(self.axes) if axis.is_exact]
        blind = [i for i, axis in enumerate(self.axes) if axis.is_blind]
        decoys = [i for i in range(len(self.axes)) if i not in exact and i not in blind]
        sizes = [axis.size for axis in self.axes]
        full = np.zeros((prod(sizes[i] for i in exact), *table.shape[1:]), table.dtype)
        full[self.slots] = table
        full = full.reshape([sizes[i] for i in (*exact, *decoys)] + [1] * len(blind))
        full = np.moveaxis(full, range(len(sizes)), (*exact, *decoys, *blind))
        return np.ascontiguousarray(np.broadcast_to(full, sizes))


def prepare(axes: Sequence[Axis]) -> Frame:
    """Check the axes against each other and number their cells."""
    if not axes:
        raise QueryError("A tabulation needs at least one attribute.", hint="Name a column of the release.")
    lengths = {len(axis.cells) for axis in axes}
    if len(lengths) > 1:
        raise QueryError(f"The columns have different lengths: {sorted(lengths)}.", hint="Use columns of one release.")
    n = lengths.pop()
    exact = [axis for axis in axes if axis.is_exact]
    decoys = tuple(axis for axis in axes if not axis.is_exact and not axis.is_blind)
    flat = np.zeros(n, np.int64)
    counted = np.ones(n, np.bool_)
    for axis in exact:
        group = axis.group_of[exact_codes(axis)]
        counted &= group >= 0
        flat = flat * axis.size + group
    numbered = [_distinct_sets(axis) for axis in decoys]
    set_of = [ids for _, ids in numbered]
    if not counted.all():
        flat, set_of = flat[counted], [ids[counted] for ids in set_of]
    slots, slot_of = number(flat)
    cells = max(1, len(slots)) * prod(axis.design.d + 1 for axis in decoys)
    if cells > CELL_LIMIT:
        raise QueryError(
            f"The table would have about {cells:,} cells; the limit is {CELL_LIMIT:,}.",
            hint="Tabulate fewer attributes at once.",
        )
    return Frame(axes, n, slots, slot_of, decoys, tuple(sets for sets, _ in numbered), tuple(set_of))
