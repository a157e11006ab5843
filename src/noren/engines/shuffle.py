"""Uniformly random orders from a keystream, for rows and whole tables: in memory, or through buckets on disk.

Every record goes to a bucket drawn uniformly and independently; each bucket is then shuffled uniformly; the buckets
are read one after the other. The order that results is uniform over all permutations of the table, whatever the
batches were, so nothing of the original order is left. Only what will be published is written to the buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.kernels import shuffle_with
from noren.errors import DataError
from noren.secret import Keystream
from noren.statements import CellBatch, Cells, batch_length, concat, take
from noren.statements.batch import pack_batch, record_bytes, unpack_batch

WORDS_AT_ONCE = 1 << 20
MOST_BUCKETS = 1 << 16


def permutation(n: int, stream: Keystream) -> NDArray[np.int64]:
    """Return a uniformly random order of n rows: every one of the n! has the same probability."""
    if n >= 1 << 32:
        raise DataError(f"Cannot shuffle {n} rows at once.", hint='Use to="directory" to write tables of this size.')
    order = np.arange(n, dtype=np.int64)
    left = n
    while left > 1:
        left = shuffle_with(stream.words32(min(left, WORDS_AT_ONCE)), order, left)
    return order


def bucket_numbers(n: int, buckets: int, stream: Keystream) -> NDArray[np.uint16]:
    """Assign each of n rows to a bucket, uniformly and independently. Buckets are a power of two."""
    if not 1 <= buckets <= MOST_BUCKETS or buckets & (buckets - 1):
        raise ValueError(f"buckets must be a power of two up to {MOST_BUCKETS}; got {buckets} instead")
    bits = buckets.bit_length() - 1
    words = stream.words32((n + 1) // 2).view(np.uint16)[:n]
    return words >> np.uint16(16 - bits) if bits else np.zeros(n, np.uint16)


MEMORY_BYTES = 256 << 20
BUCKET_BYTES = 48 << 20
MOST_FILES = 256


class Shuffler:
    """Collects batches and returns them in a uniformly random order."""

    def __init__(self, stream: Keystream, records: int, folder: Path | None = None) -> None:
        self._stream = stream
        self._records = records
        self._folder = folder
        self._held: list[CellBatch] = []
        self._buckets: list[Any] = []
        self._like: CellBatch | None = None

    def add(self, batch: CellBatch) -> None:
        if self._like is None:
            self._like = take(batch, slice(0, 0))
            total = record_bytes(batch) * self._records
            if self._folder is not None and total > MEMORY_BYTES:
                self._open_buckets(batch, int(np.ceil(total / BUCKET_BYTES)))
        if not self._buckets:
            self._held.append(batch)
            return
        import pyarrow as pa

        numbers = bucket_numbers(batch_length(batch), len(self._buckets), self._stream)
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(len(self._buckets) + 1))
        rows = pa.record_batch(pack_batch(take(batch, order)))
        for number, writer in enumerate(self._buckets):
            start, stop = int(bounds[number]), int(bounds[number + 1])
            if stop > start:
                writer.write_batch(rows.slice(start, stop - start))

    def finish(self) -> Iterator[CellBatch]:
        """Yield the shuffled records. Buckets are removed as they are read."""
        if self._like is None:
            return
        if not self._buckets:
            yield self._shuffled(self._held)
            return
        for writer in self._buckets:
            writer.close()
        for number in range(len(self._buckets)):
            if parts := self._bucket(number):
                yield self._shuffled(parts)

    def _bucket(self, number: int) -> list[CellBatch]:
        import pyarrow as pa

        assert self._folder is not None
        assert self._like is not None
        path = self._folder / f"bucket-{number}.arrow"
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            parts: list[CellBatch] = [unpack_batch(batch, self._like) for batch in reader]
        path.unlink()
        return parts

    def _shuffled(self, parts: list[CellBatch]) -> dict[str, Cells]:
        """Return the shuffled records of all parts, which are released from memory."""
        whole = concat(parts)
        parts.clear()
        return take(whole, permutation(batch_length(whole), self._stream))

    def _open_buckets(self, batch: CellBatch, wanted: int) -> None:
        import pyarrow as pa

        assert self._folder is not None
        count = 1 << int(np.ceil(np.log2(min(MOST_FILES, max(2, wanted)))))
        schema = pa.record_batch(pack_batch(take(batch, slice(0, 0)))).schema
        for number in range(count):
            path = self._folder / f"bucket-{number}.arrow"
            self._buckets.append(pa.ipc.new_stream(str(path), schema))
