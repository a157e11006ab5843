"""Some of a table's records, by chance: only they are coded, and nothing of the others is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.local import kept_batches
from noren.io.source import Source


class PickedSource:
    """A source of records that are published, each taken with probability `share`, which knows their numbers."""

    def __init__(
        self, source: Source, drop: Sequence[str], keep: NDArray[np.bool_], share: float, rng: np.random.Generator
    ) -> None:
        self._source = source
        self._drop = drop
        self._keep = keep
        self._share = share
        self._rng = rng
        self._numbers: list[NDArray[np.int64]] = []
        self.name = source.name
        self.columns = source.columns
        self.notes = source.notes

    @property
    def rows(self) -> int | None:
        """Not known before the records are read."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        self._numbers, start = [], 0
        for batch, _ in kept_batches(self._source, columns, self._drop):
            kept = np.flatnonzero(self._keep[start : start + batch.num_rows])
            rows = kept if self._share >= 1 else kept[self._rng.random(len(kept)) < self._share]
            self._numbers.append(rows + start)
            start += batch.num_rows
            if len(rows):
                yield batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))

    def numbers(self, start: int, records: int) -> NDArray[np.int64]:
        """The numbers, in the table, of a run of the records that were taken."""
        return np.concatenate(self._numbers)[start : start + records]
