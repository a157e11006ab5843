"""Keeps the columns of a small table in memory, so that it is parsed once.

Parsing a text file costs more than anything else that is done with it; so does taking rows from a base. A column of
few different texts takes one byte a record; beyond the limit everything is let go, and the table is read again as often
as it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from noren.sources.csv import CsvSource
from noren.sources.postgres import PostgresSource
from noren.sources.source import FolderSource, Source

MOST_BYTES = 128 << 20


class HeldSource:
    """A source that keeps the batches of another from the first complete pass on, if they are small."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._types: dict[str, Any] = {}
        self._batches: list[Any] | None = None
        self._tried = False
        self.name = source.name
        self.columns = source.columns
        self.notes = source.notes

    @property
    def rows(self) -> int | None:
        return self._source.rows

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        if self._batches is not None and set(columns) <= self._types.keys():
            return (self._restore_types(batch.select(list(columns))) for batch in self._batches)
        if self._tried:
            return self._source.batches(columns)
        self._tried = True
        return self._keep_batches(columns)

    def _keep_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        kept: list[Any] | None = []
        size = 0
        for batch in self._source.batches(columns):
            self._types = {field.name: field.type for field in batch.schema}
            if kept is not None:
                small = compact(batch)
                size += small.nbytes
                kept.append(small)
                kept = kept if size <= MOST_BYTES else None
            yield batch
        self._batches = kept or None

    def _restore_types(self, batch: Any) -> Any:
        """Return the batch with the original types of numbers."""
        import pyarrow as pa

        arrays = [
            column if pa.types.is_dictionary(column.type) else column.cast(self._types[name])
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def compact(batch: Any) -> Any:
    """Return the batch with texts and whole numbers in as few bytes a cell as possible."""
    import pyarrow as pa

    arrays = [
        small_texts(column)
        if pa.types.is_dictionary(column.type)
        else small_numbers(column)
        if pa.types.is_signed_integer(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def small_texts(column: Any) -> Any:
    """Return a dictionary of texts with as few bytes a cell as its texts need."""
    import pyarrow as pa

    texts = len(column.dictionary)
    kind = pa.int8() if texts <= 1 << 7 else pa.int16() if texts <= 1 << 15 else pa.int32()
    if column.type.index_type == kind:
        return column
    return pa.DictionaryArray.from_arrays(column.indices.cast(kind), column.dictionary)


def small_numbers(column: Any) -> Any:
    """Return whole numbers in as few bytes as possible."""
    import pyarrow as pa

    for kind in (pa.int8(), pa.int16(), pa.int32()):
        with suppress(pa.ArrowInvalid):
            return column.cast(kind)
    return column


def hold_columns(source: Source) -> Source:
    """Return a source that reads a small text file or database table once; other sources unchanged."""
    first = source.parts[0] if isinstance(source, FolderSource) else source
    return HeldSource(source) if isinstance(first, CsvSource | PostgresSource) else source
