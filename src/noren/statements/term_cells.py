"""Cells that hold any number of terms each: symptoms, purchases, tags; and lists of terms as counts and codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.ragged import different
from noren.schema.domain import Domain
from noren.statements.encode import as_dictionary


@dataclass(frozen=True)
class TermCells:
    """n sets of terms over d terms: record i has the codes data[offsets[i]:offsets[i + 1]], ascending, each once."""

    d: int
    offsets: NDArray[np.int64]
    data: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return int(self.offsets.nbytes + self.data.nbytes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many terms every record has."""
        return np.diff(self.offsets)

    @property
    def owner(self) -> NDArray[np.int64]:
        """The record of every entry."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @classmethod
    def from_entries(cls, d: int, n: int, record: NDArray, code: NDArray) -> TermCells:
        """Sets from (record, code) pairs in any order; a repeated pair counts once."""
        key = different(record.astype(np.int64) * d + code)
        offsets = np.searchsorted(key, np.arange(n + 1) * np.int64(d))
        first = np.repeat(np.arange(n) * np.int64(d), np.diff(offsets))
        return cls(d, offsets.astype(np.int64), (key - first).astype(np.int32))

    @classmethod
    def concat(cls, parts: Sequence[TermCells]) -> TermCells:
        sizes = np.concatenate([part.sizes for part in parts])
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return cls(parts[0].d, offsets, np.concatenate([part.data for part in parts]))

    def take(self, rows: NDArray | slice) -> TermCells:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            stop = max(start, stop)
            offsets = self.offsets[start : stop + 1]
            return TermCells(self.d, offsets - offsets[0], self.data[offsets[0] : offsets[-1]])
        sizes = self.sizes[rows]
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        entries = np.repeat(self.offsets[:-1][rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return TermCells(self.d, offsets, self.data[entries])

    def packed(self) -> Any:
        import pyarrow as pa

        return pa.LargeListArray.from_arrays(pa.array(self.offsets), pa.array(self.data))

    def unpacked(self, column: Any) -> TermCells:
        offsets = column.offsets.to_numpy()
        return TermCells(self.d, offsets - offsets[0], column.flatten().to_numpy(zero_copy_only=False))

    def distinct(self) -> tuple[TermCells, NDArray[np.int64]]:
        """The different sets of terms in the order they are first seen, and every row's among them."""
        import polars as pl

        rows = pl.from_arrow(self.packed())
        assert isinstance(rows, pl.Series)
        texts = rows.list.eval(pl.element().cast(pl.String)).list.join(",")
        ids = texts.rank("dense").to_numpy().astype(np.int64) - 1
        first = np.zeros(int(ids.max(initial=-1)) + 1, np.int64)
        first[ids[::-1]] = np.arange(len(self))[::-1]
        return self.take(first), ids

    def keep(self, entries: NDArray[np.bool_]) -> TermCells:
        """The same records without the entries that are not kept."""
        gone = np.concatenate(([0], np.cumsum(entries)))
        return TermCells(self.d, gone[self.offsets].astype(np.int64), self.data[entries])

    def counts(self) -> NDArray[np.int64]:
        """How many records have each term."""
        return np.bincount(self.data, minlength=self.d).astype(np.int64)

    def has(self, wanted: NDArray[np.bool_], every: bool = False) -> NDArray[np.bool_]:
        """Which records have one of the wanted terms, or all of them."""
        found = np.concatenate(([0], np.cumsum(wanted[self.data])))[self.offsets]
        return np.asarray(np.diff(found) >= (int(wanted.sum()) if every else 1))


def present(column: Any, name: str) -> NDArray[np.bool_]:
    """Which cells are not missing."""
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), bool)
    return np.asarray(as_dictionary(column, name)[1] >= 0)


def _entries(column: Any) -> tuple[NDArray[np.int64], Any]:
    """The record of every term, and the terms."""
    import pyarrow.compute as pc

    sizes = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(column)), sizes), column.flatten()


def term_counts(column: Any) -> tuple[list[str], NDArray[np.int64], int]:
    """The terms that occur, in how many records, and how many cells are missing. A repeated term counts once."""
    record, flat = _entries(column)
    encoded = flat.dictionary_encode()
    labels = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    cells = TermCells.from_entries(len(labels), len(column), record, codes)
    return labels, cells.counts(), int(column.null_count)


def encode_terms(column: Any, domain: Domain) -> TermCells:
    """Codes into the domain, each once a record. Terms that the domain lacks are left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    record, flat = _entries(column)
    found = pc.index_in(flat, value_set=pa.array(domain.values, pa.string())).fill_null(-1)
    codes = found.to_numpy(zero_copy_only=False)
    inside = codes >= 0
    return TermCells.from_entries(len(domain), len(column), record[inside], codes[inside])
