"""Joined groups: microaggregation makes groups by quasi-identifiers alone, and joins those that fall short.

Whoever knows everybody's quasi-identifiers makes the same groups, and sees by the published means and covers which of
them were joined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.methods.mechanism.refusals import by_cover, repeatable
from noren.methods.mechanism.sight import Sight

NEAR = 1e-2
"""How far the mean of joined groups may be from the published one, in standard deviations: that is rounded."""


def joined_groups(sight: Sight, who: NDArray[np.int64], mine: NDArray[np.int64]) -> NDArray[np.int64]:
    """The groups of these people before any were joined."""
    return np.unique(_groups(sight)[who], return_inverse=True)[1].reshape(-1)


def by_means(sight: Sight) -> NDArray[np.int64]:
    """The class of every person: each group goes to the class of the nearest mean that covers it, where sizes and means
    then agree."""
    if not sight.averaged:
        return by_cover(sight)
    numbers = _numbers(sight)
    spread = np.where((spread := np.nanstd(numbers, axis=0)) > 0, spread, 1.0)
    groups = _groups(sight)
    count = int(groups.max()) + 1
    there = np.isfinite(numbers)
    sums = np.stack([np.bincount(groups, np.where(t, x, 0.0), count) for x, t in zip(numbers.T, there.T, strict=True)])
    some = np.stack([np.bincount(groups, t, count) for t in there.T])
    places = np.nan_to_num((sums / np.maximum(some, 1)).T) / spread
    nearest = _nearest(sight, groups, places, np.nan_to_num(sight.means) / spread)
    mine = np.maximum(nearest, 0)[groups]
    sizes = np.bincount(mine, minlength=sight.classes)
    good = sizes == sight.sizes
    for column, (x, t) in enumerate(zip(numbers.T, there.T, strict=True)):
        total = np.bincount(mine, np.where(t, x, 0.0), sight.classes)
        mean = total / np.maximum(np.bincount(mine, t, sight.classes), 1)
        good &= np.abs(mean - np.nan_to_num(sight.means[:, column])) <= NEAR * spread[column]
    return np.where(good[mine] & (nearest >= 0)[groups], mine, -1)


def _nearest(sight: Sight, groups: NDArray, places: NDArray, means: NDArray) -> NDArray[np.int64]:
    """For every group the class of the nearest mean among those that cover all of it; -1 where there is none."""
    from scipy.sparse import csr_array

    count = len(places)
    shape = (count, sight.items)
    held = csr_array((np.ones(len(groups)), (groups, sight.item)), shape=shape)
    ones = np.ones(len(sight.pair_item))
    reach = csr_array((ones, (sight.pair_item, sight.pair_class)), shape=(sight.items, sight.classes))
    both = (held @ reach).tocoo()
    whole = both.data >= np.bincount(groups, minlength=count)[both.row] - 0.5
    group, to = both.row[whole], both.col[whole]
    far = ((places[group] - means[to]) ** 2).sum(axis=1)
    order = np.lexsort((far, group))
    first = np.unique(group[order], return_index=True)
    out = np.full(count, -1, np.int64)
    out[first[0]] = to[order][first[1]]
    return out


def _groups(sight: Sight) -> NDArray[np.int64]:
    from noren.methods.microaggregation import Microaggregation, groups_by_size

    return groups_by_size(sight.table, sight.k, Microaggregation().block, repeatable(sight.table.n))


def _numbers(sight: Sight) -> NDArray[np.float64]:
    """(people, columns): what everybody has in the averaged columns, NaN where it is missing."""
    from noren.methods.microaggregation import amounts_of

    out = []
    for name in sight.averaged:
        amounts = amounts_of(sight.table.columns[name])
        assert amounts is not None, "means are for numbers"
        out.append(amounts[sight.table.codes[name]])
    return np.stack(out, axis=1)
