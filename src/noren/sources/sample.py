"""A random sample of a table: every record is included with the same probability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from noren.secret import KeystreamLane, Secret
from noren.secret.streams import CarriedKeys
from noren.sources.source import RowRange, Source

SAMPLE = "sample"


class SampledSource:
    """A source of some of another's records, the same ones in every pass.

    Each record is kept with probability `share`, independently of all others, by a keystream under a key that exists
    for this object only. How many are kept is random too, so that it does not tell how many records there were.
    """

    def __init__(self, source: Source, share: float, key: CarriedKeys | None = None, part: int = 0) -> None:
        """Make the sample; `key` and `part` are those of a sample of which this source is a part."""
        self.inner = source
        self._share = share
        self._key = CarriedKeys.of(Secret.fresh(), [(SAMPLE, "")]) if key is None else key
        self._part = part
        self._below = np.uint64(min(int(share * 2**64), 2**64 - 1))
        self.name = source.name
        self.columns = source.columns
        self.notes = (*source.notes, f"a random sample: every record is in it with probability {share:g}")

    carries_keys = True

    @property
    def rows(self) -> int | None:
        """Return None, because the number is unknown before the records are read."""
        return None

    def over(self, part: Source, place: RowRange) -> Source:
        """Return the sample of a part, with its own random stream, so that the result does not depend on who reads it
        when."""
        return SampledSource(part, self._share, self._key, place.number)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        lane = KeystreamLane(self._key.derive(SAMPLE), 1 + self._part)
        for batch in self.inner.batches(columns):
            words = np.empty(batch.num_rows, np.dtype("<u8"))
            if len(words):
                lane.fill(words)
            yield batch.filter(pa.array(words < self._below))


def sampled(source: Source, share: float | None) -> Source:
    """Return a random sample of the source, or the source itself if all records are wanted."""
    return source if share is None else SampledSource(source, share)
