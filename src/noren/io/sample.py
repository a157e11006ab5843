"""A random sample of a table: every record is in it with the same probability, decided by nobody's choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from noren.io.source import Source
from noren.secret import KeystreamLane, Secret


class SampledSource:
    """A source of some of another's records, the same ones in every pass.

    Each record is kept with probability `share`, independently of all others, by a keystream under a key that exists
    for this object only. How many are kept is random too, so that it does not tell how many records there were.
    """

    def __init__(self, source: Source, share: float) -> None:
        self._source = source
        self._key = Secret.fresh().derive("sample")
        self._below = np.uint64(min(int(share * 2**64), 2**64 - 1))
        self.name = source.name
        self.columns = source.columns
        self.notes = (*source.notes, f"a random sample: every record is in it with probability {share:g}")

    @property
    def rows(self) -> int | None:
        """Not known before the records are read."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        lane = KeystreamLane(self._key, 1)
        for batch in self._source.batches(columns):
            words = np.empty(batch.num_rows, np.dtype("<u8"))
            if len(words):
                lane.fill(words)
            yield batch.filter(pa.array(words < self._below))


def sampled(source: Source, share: float | None) -> Source:
    """A sample of the source; itself if all of it is wanted."""
    return source if share is None else SampledSource(source, share)
