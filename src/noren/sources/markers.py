"""Texts that mean "missing" in some columns only: -9 in one, "unknown" in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noren.sources.source import Place, Source


class MarkedSource:
    """A source in which the markers of some columns are missing cells."""

    def __init__(self, source: Source, marks: Mapping[str, Sequence[str]]) -> None:
        self.inner = source
        self._marks = {name: list(texts) for name, texts in marks.items() if name in source.columns}
        self.name = source.name
        self.columns = source.columns
        self.notes = source.notes

    @property
    def rows(self) -> int | None:
        return self.inner.rows

    def over(self, part: Source, place: Place) -> Source:
        return MarkedSource(part, self._marks)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in self.inner.batches(columns):
            arrays = [
                _without(batch.column(name), self._marks[name]) if name in self._marks else batch.column(name)
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))


def with_markers(source: Source, marks: Mapping[str, Sequence[str]]) -> Source:
    """The source with the markers of its columns read as missing; itself if there are none."""
    return MarkedSource(source, marks) if marks else source


def _without(column: Any, texts: list[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    marked = pc.is_in(column.cast(pa.string()), pa.array(texts, pa.string()))
    return pc.if_else(marked, pa.scalar(None, column.type), column)
