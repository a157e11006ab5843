"""Choices of options, one per record of a group: in which order records are looked at, what a choice costs, and what it
removes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.ragged import chosen, ranges

if TYPE_CHECKING:
    from noren.methods.suppress.kernels.options import GroupOptions


def overlap_order(group: GroupOptions) -> NDArray[np.int64]:
    """Records by how much belief they share with others before anything is removed, most first.

    The bound sees an overlap only once both records are fixed, so those should be fixed early.
    """
    d = group.first.size - 1
    own = group.first[:-1]
    some = own[group.flat[own] <= 0]
    laid = ranges(group.at[some], group.at[some + 1])
    belief = np.bincount(group.cls[laid], group.val[laid], minlength=group.size.size)
    lengths = group.at[own + 1] - group.at[own]
    held = ranges(group.at[own], group.at[own + 1])
    c, v = group.cls[held], group.val[held]
    common = group.size[c] * np.maximum(0.0, np.minimum(v, belief[c] - v))
    shared = np.bincount(np.repeat(np.arange(d), lengths), common, minlength=d)
    return np.argsort(-np.rint(shared * 1e9), kind="stable")


def reordered(group: GroupOptions, order: NDArray[np.int64]) -> GroupOptions:
    """The same group with its records in another order."""
    first, take = chosen(group.first, order)
    at, held = chosen(group.at, take)
    return group._replace(
        first=first,
        cost=group.cost[take],
        sets=group.sets[take],
        at=at,
        cls=group.cls[held],
        val=group.val[held],
        flat=group.flat[take],
        complete=group.complete[order],
    )


def choice_cost(group: GroupOptions, choice: NDArray[np.int64]) -> float:
    """What a choice costs, added up as the kernels do."""
    return float(np.cumsum(group.cost[choice])[-1])


def removed_entries(bounds: NDArray[np.int64], kept: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which (record, term) entries are missing from the kept term sets, one row a record."""
    sizes = np.diff(bounds)
    record = np.repeat(np.arange(sizes.size), sizes)
    term = ranges(np.zeros_like(sizes), sizes)
    return np.asarray((kept[record, term >> 6] >> (term & 63).astype(np.uint64)) & np.uint64(1) == 0)
