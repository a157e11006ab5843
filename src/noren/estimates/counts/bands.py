"""Classes of exact columns that are fitted apart from those with many times their records.

In EM the slots of exact columns share nothing but the start and the stop. One stop for all is wrong where they differ
much: forty nearly empty countries end it long before the one in which most people live has reached its counts. Slots of
about as many records share a stop, because a single small one has too few held-out records to choose by.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.tuples import Tuples

FAR = 8.0
"""A slot with so many times fewer records than the largest of a band begins the next one."""
LEAST = 200
"""Records of a band."""


def bands_of(records: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """The slots of every band, in ascending order, the band of the largest slots first; records by slot."""
    order = np.argsort(-records, kind="stable")
    falling = records[order]
    total, sums = float(falling.sum()), np.cumsum(falling)
    bands, first = [], 0
    for i in range(1, len(order)):
        held, left = sums[i - 1] - (sums[first - 1] if first else 0.0), total - sums[i - 1]
        if left < LEAST:
            break
        if held >= LEAST and falling[i] * FAR < falling[first]:
            bands.append(np.sort(order[first:i]))
            first = i
    return [*bands, np.sort(order[first:])]


def restricted(tuples: Tuples, slots: NDArray[np.int64]) -> tuple[Tuples, NDArray[np.int64]]:
    """The tuples of some slots, which are numbered anew, and their places among all."""
    place = tuples.order.index(0)
    number = np.full(tuples.shape[0], -1, np.int32)
    number[slots] = np.arange(len(slots), dtype=np.int32)
    rows = np.flatnonzero(number[tuples.ids[:, place]] >= 0)
    ids = tuples.ids[rows]
    ids[:, place] = number[ids[:, place]]  # ascending, so that the tuples stay sorted
    part = Tuples(len(slots), tuples.designs, tuples.sets, tuples.order, ids, tuples.counts[rows], tuples.weights)
    return part, rows
