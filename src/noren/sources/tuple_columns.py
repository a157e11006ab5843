"""Columns that are hidden together stand in a source as one: the texts of its members as one text a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from noren.errors import DataError
from noren.schema.domain import MISSING
from noren.schema.tuples import Member, tuple_text
from noren.sources.source import Place, Source
from noren.statements.encode import as_dictionary


class TupleSource:
    """A source in which some columns stand under the name of their composite, at the place of the first.

    The members themselves can still be read, for records that lack one of them are dropped by it. Members with bins
    stand in the tuples as their intervals: single numbers would make too many tuples to count.
    """

    def __init__(
        self, source: Source, composites: Mapping[str, Sequence[str]], bins: Mapping[str, Member] | None = None
    ) -> None:
        self.inner = source
        self._composites = {name: tuple(members) for name, members in composites.items()}
        self._bins = dict(bins or {})
        self.name = source.name
        self.notes = source.notes
        owner = {column: name for name, members in self._composites.items() for column in members}
        for column, name in owner.items():
            if column not in source.columns:
                raise DataError(
                    f"{source.name}: no column {column!r}, which {name!r} is made of.",
                    hint="Correct together, or give the table that has it.",
                )
        for name in self._composites:
            if name in source.columns:
                raise DataError(
                    f"{source.name}: {name!r} is a column already, so columns together cannot have that name.",
                    hint="Give them another name: [[together]] name = ...",
                )
        self.columns = tuple(dict.fromkeys(owner.get(column, column) for column in source.columns))

    @property
    def rows(self) -> int | None:
        return self.inner.rows

    def over(self, part: Source, place: Place) -> Source:
        return TupleSource(part, self._composites, self._bins)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        composites = self._composites
        read = list(dict.fromkeys(one for name in columns for one in composites.get(name, (name,))))
        for batch in self.inner.batches(read):
            arrays = [
                self._tuples(batch, composites[name]) if name in composites else batch.column(name) for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))

    def _tuples(self, batch: Any, members: Sequence[str]) -> Any:
        """One text a record, each different tuple of the batch once in a dictionary."""
        import pyarrow as pa

        texts, place = [], np.zeros(batch.num_rows, np.int64)
        for name in members:
            known, positions = as_dictionary(batch.column(name), name)
            values = known.to_pylist()
            if name in self._bins:
                values = self._bins[name].canonical(values)
            texts.append([*values, MISSING])
            codes = np.where(positions < 0, len(values), positions)
            _, place = np.unique(place * (len(values) + 1) + codes, return_inverse=True)
        size = int(place.max(initial=-1)) + 1
        first = np.zeros(size, np.int64)
        first[place[::-1]] = np.arange(batch.num_rows)[::-1]
        columns = []
        for name, values in zip(members, texts, strict=True):
            positions = as_dictionary(batch.column(name), name)[1][first]
            columns.append([values[position] for position in positions])  # -1 is the last, a missing cell
        made = [None if all(part == MISSING for part in row) else tuple_text(row) for row in zip(*columns, strict=True)]
        lost = np.array([text is None for text in made], bool)
        labels = pa.array([text or MISSING for text in made], pa.string())
        return pa.DictionaryArray.from_arrays(
            pa.array(place.astype(np.int32), mask=lost[place] if size else None), labels
        )


def with_tuples(
    source: Source, composites: Mapping[str, Sequence[str]], bins: Mapping[str, Member] | None = None
) -> Source:
    """The source with columns that are hidden together as one; itself if there are none."""
    return TupleSource(source, composites, bins) if composites else source
