"""Published cells in memory: the cells of a batch of records as codes.

What the codes say about the truth is the business of the column's statement; here they are only numbers that can be
counted, taken, put together and packed. Sets and terms have containers of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from noren.ragged import distinct_of

TABLE_LIMIT = 1 << 24
"""Largest code up to which distinct codes are found by a table instead of sorting."""


class Cells(Protocol):
    """The cells of one column, one for each row."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def take(self, rows: NDArray | slice) -> Self:
        """Return these rows in this order."""

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the parts of a column."""

    def pack(self) -> Any:
        """Return the cells as an Arrow array, for buckets on disk and for other machines."""

    def unpack(self, column: Any) -> Self:
        """Return cells of the same kind from what `pack` returned."""

    def distinct(self) -> tuple[Self, NDArray[np.int64]]:
        """Return the distinct cells, and the number of every row's cell."""


PERSON = "\0person"
"""The name of a column that is never published: whose row each is, for the holder's own checks."""
CellBatch = Mapping[str, Cells]
"""A run of records: the same number of cells for every published column."""


def batch_length(batch: CellBatch) -> int:
    return len(next(iter(batch.values())))


def concat(batches: Sequence[CellBatch]) -> dict[str, Cells]:
    """Concatenate batches."""
    first = batches[0]
    if len(batches) == 1:
        return dict(first)
    return {name: type(cells).concat([batch[name] for batch in batches]) for name, cells in first.items()}


def take(batch: CellBatch, rows: NDArray | slice) -> dict[str, Cells]:
    """Return the same columns, with these rows in this order."""
    return {name: cells.take(rows) for name, cells in batch.items()}


def pack_batch(batch: CellBatch) -> dict[str, Any]:
    """Return a batch as Arrow columns."""
    return {name: cells.pack() for name, cells in batch.items()}


def unpack_batch(columns: Any, like: CellBatch) -> dict[str, Cells]:
    """Return a batch from what `pack` returned, with cells of the same kinds as these."""
    return {name: cells.unpack(columns.column(name)) for name, cells in like.items()}


def record_bytes(batch: CellBatch) -> float:
    """Return the average size of a record of cells."""
    return sum(cells.nbytes for cells in batch.values()) / max(1, batch_length(batch))


def number(keys: NDArray) -> tuple[NDArray, NDArray[np.int64]]:
    """Return the distinct keys (not negative) in ascending order, and each key's number."""
    top = int(keys.max(initial=0))
    if top < TABLE_LIMIT and top < max(1 << 16, 32 * len(keys)):  # a table of mostly nothing costs more than sorting
        present = np.zeros(top + 1, np.bool_)
        present[keys] = True
        lookup = np.cumsum(present, dtype=np.int32) - 1
        return np.flatnonzero(present).astype(keys.dtype), lookup[keys].astype(np.int64)
    distinct, _, inverse = distinct_of(keys)
    return distinct, inverse


@dataclass(frozen=True)
class CodeCells:
    """n cells of one of d codes each: values of a domain, nodes of a catalogue, groups of a table."""

    d: int
    data: NDArray

    def __len__(self) -> int:
        return int(self.data.shape[0])

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)

    @classmethod
    def concat(cls, parts: Sequence[CodeCells]) -> CodeCells:
        return cls(parts[0].d, np.concatenate([part.data for part in parts]))

    def take(self, rows: NDArray | slice) -> CodeCells:
        return CodeCells(self.d, self.data[rows])

    def contains(self, codes: NDArray) -> NDArray[np.bool_]:
        """Return whether each cell is this code."""
        return np.asarray(self.data == codes)

    def pack(self) -> Any:
        import pyarrow as pa

        return pa.array(self.data)

    def unpack(self, column: Any) -> CodeCells:
        return CodeCells(self.d, column.to_numpy(zero_copy_only=False))

    def distinct(self) -> tuple[CodeCells, NDArray[np.int64]]:
        codes, ids = number(self.data)
        return CodeCells(self.d, codes), ids


@dataclass(frozen=True)
class OpenCells:
    """n cells published exactly and never coded. `data` is a pyarrow Array."""

    data: Any

    def __len__(self) -> int:
        return len(self.data)

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)

    @classmethod
    def concat(cls, parts: Sequence[OpenCells]) -> OpenCells:
        import pyarrow as pa

        return cls(pa.concat_arrays([part.data for part in parts]))

    def take(self, rows: NDArray | slice) -> OpenCells:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self.data))
            return OpenCells(self.data.slice(start, stop - start))
        return OpenCells(self.data.take(np.ascontiguousarray(rows)))

    def pack(self) -> Any:
        return self.data

    def unpack(self, column: Any) -> OpenCells:
        return OpenCells(column)

    def distinct(self) -> tuple[OpenCells, NDArray[np.int64]]:
        """Return the distinct cells in ascending order, as for codes."""
        import pyarrow.compute as pc

        encoded = self.data.dictionary_encode(null_encoding="encode")
        order = pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return OpenCells(encoded.dictionary.take(order)), place[encoded.indices.to_numpy(zero_copy_only=False)]
