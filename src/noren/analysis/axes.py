"""What a cross tabulation is made of: its axes, and the records as tuples of published sets.

`prepare` turns axes into a `Frame`: columns published exactly become one slot number per record (their groups can be
formed before anything is estimated), decoy columns become numbered distinct sets, and columns whose sets
say nothing are put aside. A decoy column's design is a `DecoyDesign` (any values) or a `SemanticDesign` (values that
are far apart); the latter brings its own likelihood and inclusion probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.analysis.tuples import Tuples
from noren.cells import SetCells, ValueCells
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError

if TYPE_CHECKING:  # a recipient without semantic columns loads none of this
    from noren.designs.any import Design
    from noren.designs.semantic.design import SemanticDesign

CELL_LIMIT = 50_000_000
NO_INFORMATION = 1e-9  # Pt - Po below this
WORST_CONDITION = 1e8  # of inclusion probabilities; beyond, directions count as lost
KEPT_SUM = 1e-6  # a sum whose score misses its values by more is lost
ALIKE = 1e-8  # members whose likelihoods differ by less, relatively, weigh the same


@dataclass(frozen=True)
class Axis:
    """One attribute of a cross tabulation: its published cells, the design that made them, and how base values
    are grouped for the answer.

    `groups` maps a base value's code to a reported group 0..n_groups-1, or to -1 for "not counted"; None reports
    every base value. A condition on a decoy column is an axis whose allowed values all map to group 0.
    """

    name: str
    cells: SetCells | ValueCells
    design: Design
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
                hint="Use DecoyDesign.exact(d) for a column published as it is, tabulate_records for shuffled values.",
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
        if self.is_exact:
            return False
        if isinstance(self.design, DecoyDesign):
            return self.design.p_gap < NO_INFORMATION
        return self.design.eta == self.design.d

    @property
    def p_true(self) -> float:
        """Probability that the set contains the true value."""
        return self.design.p_true if isinstance(self.design, DecoyDesign) else 1.0

    @property
    def solution(self) -> Solution | None:
        """How a semantic column's inclusion counts become true counts; uniform decoys have closed forms."""
        return None if isinstance(self.design, DecoyDesign) else solve(self.design)

    @cached_property
    def membership(self) -> NDArray[np.float64]:
        """(groups, d): 1 where a reported group holds a base value."""
        return np.asarray(self.group_of == np.arange(self.size)[:, None], np.float64)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """(groups, d): a record's score for a group is the sum over its set; only for semantic columns."""
        assert self.solution is not None
        return np.asarray(self.membership @ self.solution.inverse)

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """(groups, d): E[score^2 | v] for every group and true value; only for semantic columns."""
        assert not isinstance(self.design, DecoyDesign)
        return self.design.second_moment(self.scores)

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        """Which reported groups' sums the sets do not determine."""
        if self.is_exact or self.is_blind or self.solution is None or not self.solution.undetermined:
            return np.zeros(self.size, np.bool_)
        if self.solution.unreliable:
            part = self.membership.sum(axis=1)
            return np.asarray((part > 0) & (part < self.design.d))
        missed = np.abs(self.scores @ self.solution.matrix.T - self.membership)
        return np.asarray(missed.max(axis=1, initial=0.0) > KEPT_SUM)

    @property
    def ill_conditioned(self) -> str:
        """What the sets of this column leave undetermined; empty if nothing."""
        if self.is_exact or self.is_blind or self.solution is None or not self.solution.undetermined:
            return ""
        return (
            f"The sets of {self.name!r} (l = {self.design.eta}, {self.design.d} values) leave "
            f"{self.solution.undetermined} of {self.design.d} independent sums of its counts undetermined: "
            f"{int(self.lost.sum())} of its {self.size} reported groups have bounds instead of intervals."
        )

    def sum_groups(self, table: NDArray, axis: int) -> NDArray:
        """Sum base values into the reported groups along one dimension of a table."""
        moved = np.moveaxis(table, axis, 0)
        if self.groups is None:
            return table
        out = np.zeros((self.size, *moved.shape[1:]))
        counted = self.group_of >= 0
        np.add.at(out, self.group_of[counted], moved[counted])
        return np.moveaxis(out, 0, axis)


@dataclass(frozen=True)
class Solution:
    """The linear system of a semantic column: inclusion counts w = M' x, and its (pseudo-)inverse."""

    matrix: NDArray[np.float64]  # M[v, u] = P(u in R | v)
    inverse: NDArray[np.float64]  # of M'; on sums that are determined it is right, on others it is finite
    condition: float
    undetermined: int  # independent sums that are lost
    unreliable: bool  # theory says that sums are lost, and the matrix does not show which
    error: float  # largest Monte Carlo error of M, 0 if exact
    draws: float  # per true value, behind M


@lru_cache(maxsize=64)
def solve(design: SemanticDesign) -> Solution:
    """Invert the inclusion probabilities, leaving out directions that they do not determine."""
    found = design.inclusion()
    fine, condition = design.identifiability()
    left, values, right = np.linalg.svd(found.matrix.T)
    noise = 2 * np.sqrt(design.d) * found.error  # bounds what Monte Carlo errors add to singular values
    kept = values > max(values[0] / WORST_CONDITION, noise)
    undetermined = int((~kept).sum())
    inverse = (right[kept].T / values[kept]) @ left[:, kept].T
    unreliable = not fine and undetermined == 0
    if undetermined or unreliable:
        condition = inf
    spread = float((found.matrix * (1 - found.matrix)).max())
    draws = inf if found.exact or found.error == 0 else spread / found.error**2
    return Solution(
        found.matrix, inverse, condition, max(undetermined, int(unreliable)), unreliable, found.error, draws
    )


def along(matrix: NDArray, table: NDArray, axis: int) -> NDArray[np.float64]:
    """Multiply a matrix into one dimension of a table."""
    return np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)


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
        key, largest = np.zeros(len(cells), np.int64), 1
        for column in range(eta):  # order-preserving numbers for ever longer beginnings of the rows
            if largest * cells.d >= 1 << 62:
                key = number(key)[1].astype(np.int64)
                largest = len(cells)
            key, largest = key * cells.d + cells.data[:, column], largest * cells.d
        key = number(key)[1].astype(np.int64)
        first = np.zeros(int(key.max(initial=-1)) + 1, np.int64)
        first[key] = np.arange(len(cells))
        ids, distinct = key.astype(np.int32), cells.take(first)
    if len(distinct) and np.any(distinct.sizes() != eta):
        raise _wrong_size(axis)
    return distinct.codes(eta).astype(np.int32), ids


def _weights(axis: Axis, sets: NDArray[np.int32]) -> NDArray[np.float64] | None:
    """P(R | v) of a semantic column's distinct sets and their members, each set's largest put at 1; None if all are."""
    if isinstance(axis.design, DecoyDesign) or not len(sets):
        return None
    found = axis.design.set_weights(sets)
    top = found.max(axis=1, keepdims=True)
    if np.any(top <= 0):
        raise QueryError(
            f"{int((top <= 0).sum()):,} distinct sets of {axis.name!r} cannot come from its design "
            f"({axis.design.name}, l = {axis.design.eta}, distance {axis.design.threshold:.12g}).",
            hint="Pass the design from the release's manifest; if you did, the release was altered.",
        )
    found = found / top
    return None if np.all(found > 1 - ALIKE) else found


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
    n: float
    slots: NDArray[np.int64]
    slot_of: NDArray[np.int32]
    decoys: tuple[Axis, ...]
    sets: tuple[NDArray[np.int32], ...]
    set_of: tuple[NDArray[np.int32], ...]
    weights: tuple[NDArray[np.float64] | None, ...]

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
        return Tuples.build(len(self.slots), designs, self.sets, (self.slot_of, *self.set_of), self.weights)

    @cached_property
    def records(self) -> NDArray[np.float64]:
        """How many records every slot has."""
        return np.bincount(self.slot_of, minlength=len(self.slots)).astype(np.float64)

    def inclusions(self) -> NDArray[np.float64]:
        """w: how many records' product sets contain each cell."""
        return self.tuples.inclusions()

    def facts(self) -> dict[str, int | float]:
        """What diagnostics tell about the records themselves."""
        return {"distinct_tuples": len(self.tuples)}

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        """(1, decoy groups): combinations of groups whose counts the sets do not determine."""
        out = np.zeros([1] * (len(self.decoys) + 1), np.bool_)
        for j, axis in enumerate(self.decoys, start=1):
            out = out | np.expand_dims(axis.lost, [k for k in range(out.ndim) if k != j])
        return out

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(slot, decoy groups): how many records must be in each combination, and how many can be."""
        parts = [
            (_groups_of(axis, sets, weights, must=True), _groups_of(axis, sets, weights, must=False))
            for axis, sets, weights in zip(self.decoys, self.sets, self.weights, strict=True)
        ]
        shape = [axis.size for axis in self.decoys]
        least, most = (self.tuples.count([p[k][0] for p in parts], [p[k][1] for p in parts], shape) for k in range(2))
        return least, most

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


def _groups_of(
    axis: Axis, sets: NDArray[np.int32], weights: NDArray[np.float64] | None, *, must: bool
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The groups that each distinct set's true value can be in (or the one it must be in), and 1 or 0 for each."""
    if axis.design.p < 1:  # any value can be true
        present = axis.group_sizes == axis.design.d if must else axis.group_sizes > 0
        return np.tile(np.arange(axis.size, dtype=np.int32), (len(sets), 1)), present.astype(np.float64)
    group = axis.group_of[sets]
    possible = np.ones(group.shape, np.bool_) if weights is None else weights > 0
    if must:
        top = np.where(possible, group, -1).max(axis=1, keepdims=True)
        only = (top >= 0) & np.all(~possible | (group == top), axis=1, keepdims=True)
        return np.maximum(top, 0).astype(np.int32), only.astype(np.float64)
    group = np.sort(np.where(possible, group, -1), axis=1)
    new = group >= 0
    new[:, 1:] &= group[:, 1:] != group[:, :-1]
    return np.maximum(group, 0).astype(np.int32), new.astype(np.float64)


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
    sets = tuple(found for found, _ in numbered)
    weights = tuple(_weights(axis, found) for axis, found in zip(decoys, sets, strict=True))
    return Frame(axes, n, slots, slot_of, decoys, sets, tuple(set_of), weights)
