"""A table that was read once is not parsed again: its columns stay in memory as small numbers, while they are few.

Parsing a text file costs more than anything else that is done with it. A column of few different texts takes one byte a
record; beyond the limit everything is let go, and the file is read again as often as it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from noren.io.source import SCHEME, Source

MOST_BYTES = 128 << 20


class HeldSource:
    """A source of another's batches, which are kept from the first whole pass on if they are small."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._batches: list[Any] | None = None
        self._tried = False
        self.name = source.name
        self.columns = source.columns
        self.notes = source.notes

    @property
    def rows(self) -> int | None:
        return self._source.rows

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        if self._batches is not None and set(columns) <= set(self._batches[0].schema.names):
            return (batch.select(list(columns)) for batch in self._batches)
        if self._tried:
            return self._source.batches(columns)
        self._tried = True
        return self._kept(columns)

    def _kept(self, columns: Sequence[str]) -> Iterator[Any]:
        kept: list[Any] | None = []
        size = 0
        for batch in self._source.batches(columns):
            small = None if kept is None else compact(batch)
            size += 0 if small is None else small.nbytes
            if kept is not None and small is not None and size <= MOST_BYTES:
                kept.append(small)
            else:
                kept = None
            yield batch if small is None else small
        self._batches = kept or None


def compact(batch: Any) -> Any:
    """The batch with the smallest numbers for its texts; None where a column is no dictionary of texts."""
    import pyarrow as pa

    arrays = []
    for column in batch.columns:
        if not pa.types.is_dictionary(column.type) or not pa.types.is_string(column.type.value_type):
            return None
        texts = len(column.dictionary)
        kind = pa.int8() if texts <= 1 << 7 else pa.int16() if texts <= 1 << 15 else pa.int32()
        arrays.append(pa.DictionaryArray.from_arrays(column.indices.cast(kind), column.dictionary))
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def held(source: Source, data: Any) -> Source:
    """The source of a file, parsed once if it is small; anything else as it is."""
    is_file = isinstance(data, Path) or (isinstance(data, str) and SCHEME.match(data) is None)
    return HeldSource(source) if is_file else source
