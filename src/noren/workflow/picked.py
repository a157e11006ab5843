"""Some of a table's records, by chance: only they are coded, and nothing of the others is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.local import kept_batches
from noren.sources.source import Place, Source

AT_ONCE = 1 << 20


def picked(keep: NDArray[np.bool_], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The numbers of published records, each taken with probability `share`, ascending."""
    found = []
    for start in range(0, len(keep), AT_ONCE):
        kept = np.flatnonzero(keep[start : start + AT_ONCE])
        found.append(start + (kept if share >= 1 else kept[rng.random(len(kept)) < share]))
    return np.concatenate(found) if found else np.zeros(0, np.int64)


class PickedSource:
    """A source of the records that have these numbers, ascending, among those that lack nothing in `drop`."""

    def __init__(self, source: Source, drop: Sequence[str], chosen: NDArray[np.int64]) -> None:
        self.inner = source
        self._drop = drop
        self._chosen = chosen
        self.name = source.name
        self.columns = source.columns
        self.notes = source.notes

    @property
    def by_number(self) -> Source:
        """The source whose records the numbers count."""
        return self.inner

    @property
    def rows(self) -> int | None:
        return len(self._chosen)

    def over(self, part: Source, place: Place) -> Source:
        first, stop = np.searchsorted(self._chosen, [place.start, place.stop])
        return PickedSource(part, self._drop, self._chosen[first:stop] - place.start)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        start = 0
        for batch, _ in kept_batches(self.inner, columns, self._drop):
            low, high = np.searchsorted(self._chosen, [start, start + batch.num_rows])
            rows = self._chosen[low:high] - start
            start += batch.num_rows
            if len(rows):
                yield batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))

    def numbers(self, start: int, records: int) -> NDArray[np.int64]:
        """The numbers, in the table, of a run of the records that were taken."""
        return self._chosen[start : start + records]
