"""A table that was read once is not parsed again: its columns stay in memory as small numbers, while they are few.

Parsing a text file costs more than anything else that is done with it; so does taking rows from a base. A column of
few different texts takes one byte a record; beyond the limit everything is let go, and the table is read again as often
as it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from noren.sources.postgres import PostgresSource
from noren.sources.source import SCHEME, Source

MOST_BYTES = 128 << 20


class HeldSource:
    """A source of another's batches, which are kept from the first whole pass on if they are small."""

    def __init__(self, source: Source, numbers: bool = False) -> None:
        """With `numbers`, columns of whole numbers and dates are kept too."""
        self._source = source
        self._numbers = numbers
        self._types: Any = None
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
            return (self._typed(batch.select(list(columns))) for batch in self._batches)
        if self._tried:
            return self._source.batches(columns)
        self._tried = True
        return self._kept(columns)

    def _kept(self, columns: Sequence[str]) -> Iterator[Any]:
        kept: list[Any] | None = []
        size = 0
        for batch in self._source.batches(columns):
            small = None if kept is None else compact(batch, self._numbers)
            self._types = {field.name: field.type for field in batch.schema}
            size += 0 if small is None else small.nbytes
            if kept is not None and small is not None and size <= MOST_BYTES:
                kept.append(small)
            else:
                kept = None
            yield batch if small is None else self._typed(small)
        self._batches = kept or None

    def _typed(self, batch: Any) -> Any:
        """The batch with numbers as they came."""
        import pyarrow as pa

        if not self._numbers:
            return batch
        kinds = [self._types[name] for name in batch.schema.names]
        arrays = [
            column if pa.types.is_dictionary(column.type) or column.type == kind else column.cast(kind)
            for column, kind in zip(batch.columns, kinds, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def compact(batch: Any, numbers: bool = False) -> Any:
    """The batch with the smallest numbers for its texts; None where a column is no dictionary of texts, nor with
    `numbers` one of numbers or dates, which are kept as small as they are."""
    import pyarrow as pa

    arrays = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
            arrays.append(small_texts(column))
        elif numbers and pa.types.is_signed_integer(column.type):
            arrays.append(_small(column))
        elif numbers and (pa.types.is_boolean(column.type) or pa.types.is_date32(column.type)):
            arrays.append(column)
        else:
            return None
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def small_texts(column: Any) -> Any:
    """A dictionary of texts with as few bytes a cell as its texts need."""
    import pyarrow as pa

    texts = len(column.dictionary)
    kind = pa.int8() if texts <= 1 << 7 else pa.int16() if texts <= 1 << 15 else pa.int32()
    if column.type.index_type == kind:
        return column
    return pa.DictionaryArray.from_arrays(column.indices.cast(kind), column.dictionary)


def _small(column: Any) -> Any:
    """Whole numbers in as few bytes as hold them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(column).as_py()
    low, high = ends["min"] or 0, ends["max"] or 0
    for kind, bits in ((pa.int8(), 7), (pa.int16(), 15), (pa.int32(), 31)):
        if -(1 << bits) <= low and high < 1 << bits:
            return column.cast(kind)
    return column


def held(source: Source, data: Any) -> Source:
    """The source of a file or of a table in a base, read once if it is small; anything else as it is."""
    if isinstance(source, PostgresSource):
        return HeldSource(source, numbers=True)
    return HeldSource(source) if is_file(data) else source


def is_file(data: Any) -> bool:
    """Whether a table is named by a path: then several threads may read it, each for itself."""
    return isinstance(data, Path) or (isinstance(data, str) and SCHEME.match(data) is None)
