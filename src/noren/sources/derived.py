"""Sources derived from another: with marks of missing cells, with sets of terms, with composite columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noren.errors import DataError
from noren.schema.domain import MISSING
from noren.schema.tuples import Member, tuple_text
from noren.sources.source import RowRange, Source
from noren.statements.texts import as_dictionary


class DerivedSource:
    """A source derived from another one, with as many rows."""

    def __init__(self, source: Source) -> None:
        self.inner = source
        self.name = source.name
        self.columns = source.columns
        self.notes = source.notes

    @property
    def rows(self) -> int | None:
        return self.inner.rows


class MarkedSource(DerivedSource):
    """A source in which the marks of some columns are missing cells."""

    def __init__(self, source: Source, marks: Mapping[str, Sequence[str]]) -> None:
        super().__init__(source)
        self._marks = {name: list(texts) for name, texts in marks.items() if name in source.columns}

    def over(self, part: Source, place: RowRange) -> Source:
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
    """Return the source with the marks of its columns read as missing; unchanged if there are none."""
    return MarkedSource(source, marks) if marks else source


def _without(column: Any, texts: list[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    marked = pc.is_in(column.cast(pa.string()), pa.array(texts, pa.string()))
    return pc.if_else(marked, pa.scalar(None, column.type), column)


# ---------------------------------------------------------------------- sets of terms
#
# Set-valued columns, however a table writes them: a text with separators, a list, or a group of yes/no columns.
#
# The source that comes out has one list of texts per set-valued column. Terms are trimmed; empty ones and those that
# mean "missing" are left out. A cell without text is missing, a list without terms is an empty set.


YES = ("1", "1.0", "yes", "true", "y")
NO = ("0", "0.0", "no", "false", "n", "", "nan")


@dataclass(frozen=True)
class TermSpec:
    """How one set-valued column is written. Without separator and columns it is a list, or a single term."""

    separator: str | None = None
    columns: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    """Texts that mean "missing"."""


class TermSource(DerivedSource):
    """A source whose set-valued columns are lists. Yes/no columns are replaced by their set."""

    def __init__(self, source: Source, specs: Mapping[str, TermSpec]) -> None:
        super().__init__(source)
        self._specs = dict(specs)
        member = {column: name for name, spec in specs.items() for column in spec.columns}
        absent = [column for column in member if column not in source.columns]
        taken = [name for name, spec in specs.items() if spec.columns and name in source.columns]
        if absent:
            raise DataError(
                f"{source.name}: it has no column {absent[0]!r}, which is part of the set {member[absent[0]]!r}.",
                hint=f"Correct attributes.{member[absent[0]]}.columns.",
            )
        if taken:
            raise DataError(
                f"{source.name}: a set of columns has the name {taken[0]!r}, which is already the name of a column.",
                hint="Give the set another name under [attributes].",
            )
        self.columns = tuple(dict.fromkeys(member.get(column, column) for column in source.columns))

    def over(self, part: Source, place: RowRange) -> Source:
        return TermSource(part, self._specs)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        specs = self._specs
        read = list(dict.fromkeys(c for n in columns for c in (specs[n].columns if n in specs else ()) or (n,)))
        for batch in self.inner.batches(read):
            arrays = []
            for name in columns:
                spec = specs.get(name)
                if spec is None:
                    arrays.append(batch.column(name))
                elif spec.columns:
                    arrays.append(_from_flags(batch, spec.columns, self.name, spec.markers))
                else:
                    arrays.append(_from_cells(batch.column(name), name, spec))
            yield pa.RecordBatch.from_arrays(arrays, list(columns))


def with_terms(source: Source, specs: Mapping[str, TermSpec]) -> Source:
    """Return the source with its set-valued columns as lists; unchanged if there are none."""
    return TermSource(source, specs) if specs else source


def _from_cells(column: Any, name: str, spec: TermSpec) -> Any:
    """Return lists of trimmed texts from texts or lists."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        if spec.separator is not None:
            raise DataError(f"column {name!r} holds lists, which have no separator.", hint="Remove the separator.")
        sizes = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        return _trim_terms(_texts(column.flatten(), name), sizes, column.is_null(), spec.markers)
    _text(kind, name)
    texts = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
    words = texts.dictionary.cast(_text(texts.dictionary.type, name))
    if spec.separator is None:
        lists = pa.LargeListArray.from_arrays(np.arange(len(words) + 1), words)
    else:
        split = pc.split_pattern(words, spec.separator)
        lists = split.cast(pa.large_list(pa.string()))
    sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    nothing = pa.array(["", *spec.markers, None], pa.string())
    missing = pc.is_in(pc.utf8_trim_whitespace(words), value_set=nothing)
    return _trim_terms(lists.flatten(), sizes, missing, spec.markers).take(texts.indices)


def _texts(flat: Any, name: str) -> Any:
    """Return terms as texts; those of a dictionary by their codes, because not every dictionary can be cast."""
    import pyarrow as pa

    kind = flat.type
    if pa.types.is_dictionary(kind):
        return _texts(flat.dictionary, name).take(flat.indices)
    return flat.cast(_text(kind, name))


def _text(kind: Any, name: str) -> Any:
    """Return terms as texts; numbers are converted, nested values are refused."""
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(inner) or pa.types.is_binary(inner) or pa.types.is_large_binary(inner):
        raise DataError(f"column {name!r} holds {inner}, which are not terms.", hint="Give lists of texts.")
    return pa.string()


def _trim_terms(flat: Any, sizes: np.ndarray, missing: Any, markers: Sequence[str]) -> Any:
    """Return lists of the given sizes without empty terms, marks, and spaces around terms."""
    import pyarrow as pa
    import pyarrow.compute as pc

    flat = pc.utf8_trim_whitespace(flat)
    kept = pc.invert(pc.is_in(flat, value_set=pa.array(["", *markers, None], pa.string())))
    stays = kept.to_numpy(zero_copy_only=False).astype(bool)
    before = np.concatenate(([0], np.cumsum(stays)))[np.concatenate(([0], np.cumsum(sizes)))]
    made = pa.LargeListArray.from_arrays(pa.array(before, pa.int64()), flat.filter(kept))
    return pc.if_else(missing, pa.scalar(None, made.type), made)


def _from_flags(batch: Any, columns: Sequence[str], source: str, markers: Sequence[str]) -> Any:
    """Return the set of the columns whose cell is yes."""
    import pyarrow as pa

    says = np.stack([_flags(batch.column(name), name, source, markers) for name in columns], axis=1)
    record, term = np.nonzero(says)
    offsets = np.searchsorted(record, np.arange(batch.num_rows + 1))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(columns, pa.string()).take(term))


def _flags(column: Any, name: str, source: str, markers: Sequence[str]) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(_texts(texts, name).fill_null("")))
    yes = pc.is_in(texts, value_set=pa.array(YES))
    no = pc.is_in(texts, value_set=pa.array([*NO, *(marker.lower() for marker in markers)]))
    strange = int(pc.sum(pc.invert(pc.or_(yes, no))).as_py() or 0)
    if strange:
        raise DataError(
            f"{source}: column {name!r} holds {strange} cells that say neither yes nor no.",
            hint="Write 1/0, yes/no or true/false; an empty cell means no.",
        )
    return np.asarray(yes.to_numpy(zero_copy_only=False), bool)


# ---------------------------------------------------------------------- columns that are hidden together
#
# Their texts stand as one text a record.


class TupleSource(DerivedSource):
    """A source in which composites replace their members, at the position of the first.

    The members themselves can still be read, for records that lack one of them are dropped by it. Members with bins
    stand in the tuples as their intervals: single numbers would make too many tuples to count.
    """

    def __init__(
        self, source: Source, composites: Mapping[str, Sequence[str]], bins: Mapping[str, Member] | None = None
    ) -> None:
        super().__init__(source)
        self._composites = {name: tuple(members) for name, members in composites.items()}
        self._bins = dict(bins or {})
        owner = {column: name for name, members in self._composites.items() for column in members}
        for column, name in owner.items():
            if column not in source.columns:
                raise DataError(
                    f"{source.name}: it has no column {column!r}, which is part of {name!r}.",
                    hint="Correct together, or give a table with this column.",
                )
        for name in self._composites:
            if name in source.columns:
                raise DataError(
                    f"{source.name}: columns under together have the name {name!r}, which is already the name of a "
                    "column.",
                    hint="Give them another name: [[together]] name = ...",
                )
        self.columns = tuple(dict.fromkeys(owner.get(column, column) for column in source.columns))

    def over(self, part: Source, place: RowRange) -> Source:
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
        """Return one text per record, with each distinct tuple of the batch once in a dictionary."""
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
    """Return the source with columns that are hidden together as one; unchanged if there are none."""
    return TupleSource(source, composites, bins) if composites else source
