"""The (l, d) frontier of semantic diversity: for every l, the distance that l values of each set keep.

A set has l values at mutual distance d if some l of its members are pairwise at least d apart. The frontier is the
smallest, over all sets, of the largest such d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noren.cells import SetCells
from noren.models.semantic_diversity import largest_separated
from noren.release.manifest import ColumnEntry
from noren.release.store import Store

MOST_L = 5
LARGEST_SET = 16
"""Beyond so many members the subsets of a set are too many to try."""


def semantic_distances(store: Store, entries: Sequence[ColumnEntry]) -> list[tuple[str, int, float, str]]:
    """(column, l, d, statement) for every column of sets whose values have distances."""
    out = []
    for entry in entries:
        if entry.form != "set" or entry.distances is None or entry.design is None or entry.design.eta > LARGEST_SET:
            continue
        sets = _distinct_sets(store, entry, entry.design.eta)
        for size in range(2, min(MOST_L, sets.shape[1]) + 1):
            d = frontier(sets, entry.distances, size)
            out.append((entry.name, size, d, f"every set has {size} values at mutual distance {d:g} or more"))
    return out


def frontier(sets: NDArray, distances: NDArray[np.float64], size: int) -> float:
    """The largest d at which every set still has `size` values that far apart; 0 if some set has fewer values."""
    steps = np.unique(distances[distances > 0])
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        found = largest_separated(sets, distances >= steps[middle] * (1 - 1e-12), size)
        if len(found) and found.min() >= size:
            low = middle + 1
        else:
            high = middle
    return float(steps[low - 1]) if low else 0.0


def _distinct_sets(store: Store, entry: ColumnEntry, eta: int) -> NDArray:
    parts = []
    for batch in store.batches([entry]):
        cells = batch[entry.name]
        assert isinstance(cells, SetCells)
        parts.append(np.unique(cells.codes(eta), axis=0))
    return np.unique(np.concatenate(parts), axis=0) if parts else np.zeros((0, eta), np.int64)
