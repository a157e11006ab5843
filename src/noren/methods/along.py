"""Groups of records along a curve, set up for the kernels: how much of a value is eligible, groups of diverse values,
and which of them meet the requirements. A set of records is l-eligible if no value makes up more than 1/l of it."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.ragged import in_order, offsets_of, owners, ranges

if TYPE_CHECKING:
    from noren.methods.kernels import Rules

Numbers = NDArray[np.int64]


def eligible_caps(bounds: Numbers, counts: Numbers, l: int) -> Numbers:
    """For every group the largest c for which its counts, none above c any more, are l-eligible.

    That is l * c <= sum of min(count, c). Group g has the counts bounds[g]:bounds[g + 1].
    """
    owner, groups = owners(bounds), len(bounds) - 1
    low, high = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.maximum.at(high, owner, counts)
    while (low < high).any():
        middle = (low + high + 1) // 2
        kept = np.bincount(owner, np.minimum(counts, middle[owner]), minlength=groups)
        fits = l * middle <= kept
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    return low


def eligible_cap(counts: Numbers, l: int) -> int:
    """The largest c for which the counts, none above c any more, are l-eligible: l * c <= sum of min(count, c)."""
    return int(eligible_caps(np.array([0, len(counts)]), counts, l)[0])


def first_of_value(values: Numbers, m: int, cap: int) -> NDArray[np.bool_]:
    """Marks the first `cap` records of every value."""
    counts = np.bincount(values, minlength=m)
    if cap >= counts.max(initial=0):
        return np.ones(len(values), np.bool_)
    out = np.empty(len(values), np.bool_)
    out[in_order(values)] = ranges(np.zeros_like(counts), counts) < cap
    return out


def diverse_groups(values: Numbers, m: int, l: int) -> tuple[Numbers, int]:
    """1-D l-diversity (Ghinita et al. 2007): the group of every record, and how many there are.

    Every value has a bucket of its records in curve order. With N records left a bucket of n gives its head if
    n * l > N - l; the heads that come first on the curve fill the group up to l. Fewer than 2l records are the last
    group. The records must be l-eligible, and every group is.
    """
    from noren.methods.curve_kernels import NONE, Buckets, fill_groups

    left = np.bincount(values, minlength=m)
    ranked = in_order(-left)
    place = np.empty(m, np.int64)
    place[ranked] = np.arange(m)
    at_least = np.cumsum(np.bincount(left, minlength=left.max(initial=0) + 2)[::-1])[::-1].copy()
    heads = np.full(2 << max(0, m - 1).bit_length(), NONE)
    buckets = Buckets(in_order(values), offsets_of(left)[:-1].copy(), left, ranked, place, at_least, heads)
    groups = np.empty(len(values), np.int64)
    return groups, fill_groups(values, buckets, np.empty(max(m, l), np.int64), groups, l)


def failing_classes(classes: Numbers, count: int, values: Numbers, column: int, rules: Rules) -> NDArray[np.bool_]:
    """Which classes do not meet the requirements on one sensitive column; classes below 0 are left out."""
    from noren.methods.curve_kernels import judged

    failed, _ = judged(*_sorted_by_class(classes, count), values, column, rules, True)
    return np.asarray(failed > 0)


def joined_groups(groups: Numbers, count: int, values: Numbers, column: int, rules: Rules) -> tuple[Numbers, int]:
    """Consecutive groups put together until they meet the requirements: the class of every group, and how many.

    What is left over at the end joins as many of the last classes as it takes. No class at all: not even all records
    together are enough.
    """
    from noren.methods.curve_kernels import judged

    of, found = judged(*_sorted_by_class(groups, count), values, column, rules, False)
    return of, found


def _sorted_by_class(classes: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """Records class by class, and where each class begins; classes below 0 are left out."""
    rows = in_order(classes)
    outside = int((classes < 0).sum())
    return rows[outside:], offsets_of(np.bincount(classes[rows[outside:]], minlength=count))
