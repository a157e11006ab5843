"""A second engine, for the tests: a table in three partitions, each worked on by a thread, and results that merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.engine import Apply, CodeBatch, Counting, Profile, Reading
from noren.engines.local import LocalEngine, code_batch, kept_batches
from noren.engines.shuffle import permutation
from noren.models.base import Judgement
from noren.models.verdict import Verdict
from noren.progress import Meter, silent
from noren.release.published import Published
from noren.secret import Keystream
from noren.sources.source import Source
from noren.statements import CellBatch, batch_length, concat, take

PARTITIONS = 3


@dataclass(frozen=True)
class Slice:
    """Some rows of a source, as a source."""

    whole: Source
    start: int
    stop: int
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.whole.columns

    @property
    def rows(self) -> int:
        return self.stop - self.start

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        at = 0
        for batch in self.whole.batches(columns):
            low, high = max(self.start - at, 0), min(self.stop - at, batch.num_rows)
            if high > low:
                yield batch.slice(low, high - low)
            at += batch.num_rows


def slices(source: Source) -> list[Slice]:
    """Three parts of different sizes, the second of a single row."""
    rows = sum(batch.num_rows for batch in source.batches(source.columns[:1]))
    first = min(rows, rows * 3 // 5)
    ends = [0, first, min(rows, first + 1), rows]
    return [Slice(source, start, stop) for start, stop in pairwise(ends)]


def spread(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Something done to every partition, each in a thread of its own."""
    with ThreadPoolExecutor(PARTITIONS) as pool:
        return list(pool.map(work, items))


class PartitionedEngine(LocalEngine):
    """Every verb over three partitions."""

    def __init__(self) -> None:
        self.used: list[str] = []
        """The verbs that were asked for."""

    def profile(
        self,
        source: Source,
        counting: Counting,
        *,
        meter: Meter = silent,
    ) -> Profile:
        self.used.append("profile")
        parts = spread(lambda part: LocalEngine().profile(part, counting, meter=meter), slices(source))
        whole = parts[-1]  # in another order than the table's: nothing may rest on it
        for part in parts[:-1]:
            whole.merge(part)
        return whole

    def encoded(self, source: Source, reading: Reading, *, meter: Meter = silent) -> Iterator[CodeBatch]:
        self.used.append("encoded")
        for batches in spread(lambda part: list(_coded(part, reading)), _placed(source, reading)):
            for batch in batches:
                yield batch
                meter(batch.records)

    def histogram(
        self, source: Source, reading: Reading, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        self.used.append("histogram")

        def counted(part: tuple[Slice, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            rows = [np.stack([b.codes[name].astype(np.int64) for name in names], axis=1) for b in _coded(part, reading)]
            return np.unique(np.concatenate([np.zeros((0, len(names)), np.int64), *rows]), axis=0, return_counts=True)

        parts = spread(counted, _placed(source, reading))
        rows, place = np.unique(np.concatenate([rows for rows, _ in parts]), axis=0, return_inverse=True)
        counts = np.concatenate([counts for _, counts in parts])
        return rows, np.bincount(place.ravel(), counts, len(rows)).astype(np.int64)

    def apply(self, source: Source, reading: Reading, apply: Apply, *, meter: Meter = silent) -> Iterator[CellBatch]:
        self.used.append("apply")
        made = spread(lambda part: [apply(batch) for batch in _coded(part, reading)], _placed(source, reading))
        for batches in reversed(made):  # in any order, says the protocol
            for batch in batches:
                yield batch
                meter(batch_length(batch))

    def scatter(
        self, batches: Iterable[CellBatch], rows: int, stream: Keystream, folder: Path | None
    ) -> Iterator[CellBatch]:
        self.used.append("scatter")
        whole = concat(list(batches))
        assert batch_length(whole) == rows
        whole = take(whole, permutation(rows, stream))
        parts = np.array_split(np.arange(rows), PARTITIONS)
        return (take(whole, part) for part in parts if len(part))

    def judge(self, published: Published, make: Callable[[], Judgement], *, meter: Meter = silent) -> list[Verdict]:
        self.used.append("judge")
        judgements = [make() for _ in range(PARTITIONS)]
        wanted = [name for name in published.columns if name in judgements[0].needs]
        parts: list[list[CellBatch]] = [[] for _ in judgements]
        for batch in published.batches(wanted) if wanted else ():
            for part, rows in zip(parts, np.array_split(np.arange(batch_length(batch)), PARTITIONS), strict=True):
                part.append(take(batch, rows))
            meter(batch_length(batch))

        def observed(pair: tuple[Judgement, list[CellBatch]]) -> None:
            for batch in pair[1]:
                pair[0].observe(batch)

        spread(observed, zip(judgements, parts, strict=True))
        first, *others = judgements
        for other in others:
            first.merge(other)
        return first.verdicts()


def _placed(source: Source, reading: Reading) -> list[tuple[Slice, int]]:
    """Every partition, and how many records of the table come before it."""
    parts = slices(source)
    wanted = list(reading.drop) or list(source.columns[:1])
    counts = spread(lambda part: sum(kept.num_rows for kept, _ in kept_batches(part, wanted, reading.drop)), parts)
    before = np.concatenate([[0], np.cumsum(counts)])[:-1].tolist()
    return list(zip(parts, before, strict=True))


def _coded(placed: tuple[Slice, int], reading: Reading) -> Iterator[CodeBatch]:
    part, start = placed
    for batch, _ in kept_batches(part, reading.columns, reading.drop):
        yield code_batch(batch, reading, part.name, start)
        start += batch.num_rows
