"""A random sample of a table: every record is in it with the same probability, decided by nobody's choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.secret import KeystreamLane, Secret
from noren.secret.streams import CarriedKeys
from noren.sources.held import small_texts
from noren.sources.source import RowRange, Source

SAMPLE = "sample"


class SampledSource:
    """A source of some of another's records, the same ones in every pass.

    Each record is kept with probability `share`, independently of all others, by a keystream under a key that exists
    for this object only. How many are kept is random too, so that it does not tell how many records there were.
    """

    def __init__(self, source: Source, share: float, key: CarriedKeys | None = None, part: int = 0) -> None:
        """`key` and `part` are those of a sample of which this source is a part."""
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
        """Not known before the records are read."""
        return None

    def over(self, part: Source, place: RowRange) -> Source:
        """Every part has a lane of its own, so that which records are taken does not depend on who reads it when."""
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
    """A sample of the source; itself if all of it is wanted."""
    return source if share is None else SampledSource(source, share)


# ---------------------------------------------------------------------- records by chance in one pass
#
# Every record draws a random word as it passes, and the records of the smallest words stay. Whatever their number,
# those are a uniformly random choice of so many records out of all, however the table is ordered and cut into batches.


ROOM = 2.0
"""How many times the records that are wanted may be held before the largest words are let go."""


@dataclass(frozen=True)
class _Part:
    """Records of one batch that may stay: their words, their numbers in the table, their cells."""

    words: NDArray[np.uint64]
    numbers: NDArray[np.int64]
    batch: Any

    def rows(self, chosen: NDArray[np.bool_]) -> _Part:
        if chosen.all():
            return self
        return _Part(self.words[chosen], self.numbers[chosen], _taken(self.batch, np.flatnonzero(chosen)))


class Reservoir:
    """A uniform random sample, without replacement, of at most so many of the records that were added.

    The same places are taken at every try: which records are looked at is no release, and no verdict may depend on it.
    """

    def __init__(self, most: int, columns: Sequence[str], *, seed: int = 0) -> None:
        self.most = most
        self._columns = list(columns)
        self.seen = 0
        """Records that passed by."""
        self._rng = np.random.default_rng(seed)
        self._highest = np.uint64(2**64 - 1)
        self._parts: list[_Part] = []
        self._held = 0

    def add(self, batch: Any) -> None:
        """The next records of the table, as an Arrow RecordBatch."""
        words = self._rng.integers(0, 2**64, batch.num_rows, np.uint64)
        numbers = np.arange(self.seen, self.seen + batch.num_rows)
        self.seen += batch.num_rows
        part = _Part(words, numbers, batch.select(self._columns)).rows(words <= self._highest)
        if len(part.words):
            self._parts.append(part)
            self._held += len(part.words)
        if self._held > ROOM * self.most:
            self._let_go()

    def _let_go(self) -> None:
        """Only the smallest words stay."""
        if self._held <= self.most:
            return
        words = np.concatenate([part.words for part in self._parts])
        self._highest = np.partition(words, self.most - 1)[self.most - 1]
        shorter = (part.rows(part.words <= self._highest) for part in self._parts)
        self._parts = [part for part in shorter if len(part.words)]
        self._held = sum(len(part.words) for part in self._parts)

    def of(self, keep: NDArray[np.bool_], name: str) -> ReservoirSource:
        """The sampled records among these, as a source of their own."""
        self._let_go()
        return ReservoirSource(name, [part for one in self._parts if len((part := one.rows(keep[one.numbers])).words)])


class ReservoirSource:
    """A source of the records that a reservoir holds, in the table's order."""

    notes: tuple[str, ...] = ()

    def __init__(self, name: str, parts: Sequence[_Part]) -> None:
        self.name = name
        self._parts = parts
        self._numbers = np.concatenate([np.zeros(0, np.int64), *(part.numbers for part in parts)])

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._parts[0].batch.schema.names) if self._parts else ()

    @property
    def rows(self) -> int:
        return len(self._numbers)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for part in self._parts:
            yield part.batch.select(list(columns))

    def numbers(self, start: int, records: int) -> NDArray[np.int64]:
        """The numbers, in the table, of a run of the records that were taken."""
        return self._numbers[start : start + records]


def _taken(batch: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of a batch; texts that only others have are not kept along."""
    import pyarrow as pa

    arrays = []
    for column in batch.columns:
        taken = column.take(pa.array(rows))
        if pa.types.is_dictionary(taken.type):
            fewer = len(taken.dictionary) > len(rows)
            taken = small_texts(taken.dictionary_decode().dictionary_encode() if fewer else taken)
        arrays.append(taken)
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)
