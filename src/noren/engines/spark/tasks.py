"""The smaller tasks: count, encode, hash keys, count tuples, write again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from noren.engines.engine import Counting
from noren.engines.local import LocalEngine, hashed, kept_batches
from noren.engines.profile import Profile
from noren.engines.spark.chain import Chain
from noren.engines.spark.courier import sent
from noren.engines.spark.draw import Encode, part_number, written_part
from noren.engines.spark.source import payload
from noren.release.set_tally import SetTally
from noren.release.store import ParquetStore
from noren.secret import RecordStream
from noren.sources.place import Spot
from noren.statements import Statement


@dataclass(frozen=True)
class Count:
    """The profile of a partition, and how many records it has."""

    chain: Chain
    counting: Counting

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number = part_number()
        found = LocalEngine().profile(self.chain.source(number, batches), self.counting)
        yield payload(sent(({number: found.records}, found)))


def together(one: tuple[dict[int, int], Profile], other: tuple[dict[int, int], Profile]) -> Any:
    """What `Count` says of two lots of partitions."""
    one[0].update(other[0])
    one[1].merge(other[1])
    return one


@dataclass(frozen=True)
class Codes:
    """The records of a partition as codes, for this machine."""

    encode: Encode
    chain: Chain

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        number = part_number()
        source = self.chain.source(number, batches)
        for batch in LocalEngine().encoded(source, self.encode.reading):
            yield payload(sent(batch))


@dataclass(frozen=True)
class Digest:
    """The digest of every record's key."""

    encode: Encode
    stream: RecordStream

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in self.encode(part_number(), batches):
            digests = self.stream.people(batch.keys).view(np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(digests)], ["digest"])


@dataclass(frozen=True)
class Hash:
    """A number for every cell of a column, the same for the same text."""

    chain: Chain
    name: str
    drop: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        source = self.chain.source(part_number(), batches)
        for batch, _ in kept_batches(source, [self.name], self.drop):
            yield pa.RecordBatch.from_arrays(
                [pa.array(hashed(batch.column(self.name), self.name).view(np.int64))], ["hash"]
            )


@dataclass(frozen=True)
class Tuples:
    """The different tuples of a partition, and how often each occurs."""

    encode: Encode
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import polars as pl
        import pyarrow as pa

        titles = [f"k{i}" for i in range(len(self.names))]
        for batch in self.encode(part_number(), batches):
            codes = {t: batch.codes[name].astype(np.int32) for t, name in zip(titles, self.names, strict=True)}
            found = pl.DataFrame(codes).group_by(titles).agg(pl.len().cast(pl.Int64).alias("n"))
            arrays = [pa.array(found[title].to_numpy()) for title in [*titles, "n"]]
            yield pa.RecordBatch.from_arrays(arrays, [*titles, "n"])


@dataclass(frozen=True)
class Rewrite:
    """Files with other numbers for their sets."""

    names: tuple[str, ...]
    before: tuple[Statement, ...]
    after: tuple[Statement, ...]
    tally: SetTally
    folder: Spot
    aside: Spot

    def __call__(self, numbers: Iterator[int]) -> Iterator[bytes]:
        for number in numbers:
            cells = map(self.tally.written, ParquetStore.part(self.folder / self.names[number], None, self.before))
            place = int(self.names[number].removesuffix(".parquet").rpartition("-")[2])
            done = written_part(place, cells, self.after, self.folder, self.aside, {})
            yield sent(done)
