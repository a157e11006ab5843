"""Arrays of sets of values over a domain of d values.

In memory a set is a bit mask of the smallest unsigned type that holds d bits (d <= 64), beyond that a row of
codes in ascending order. Both say the same; nothing outside this file needs to know which one it is.

Where that is smaller, distinct sets are kept once, with the number of its set for every record. There are only C(d,
eta) sets of eta out of d values: 8,568 for five out of 18. Where records are many more than sets, numbers are smaller
and faster than lists. Numbers follow the order of the sets' own contents, and only sets that a cell shows have one:
whoever has the lists can work them out, so they disclose nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.statements.batch import number

MASK_LIMIT = 64


def code_dtype(d: int) -> np.dtype:
    """Return the smallest unsigned integer type that can number d values."""
    return np.min_scalar_type(max(d - 1, 0))


def mask_dtype(d: int) -> np.dtype:
    """Return the smallest unsigned integer type with d bits."""
    for bits in (8, 16, 32, 64):
        if d <= bits:
            return np.dtype(f"uint{bits}")
    raise ValueError(f"{d} values do not fit a bit mask")


def masks_of(codes: NDArray, d: int) -> NDArray:
    """Return bit masks of rows of codes."""
    out = np.zeros(len(codes), mask_dtype(d))
    for column in codes.T:
        out |= np.left_shift(out.dtype.type(1), column.astype(out.dtype))
    return out


@dataclass(frozen=True)
class SetCells:
    """n sets over d values. `data` is (n,) bit masks or (n, eta) ascending codes."""

    d: int
    data: NDArray

    def __post_init__(self) -> None:
        expected = 1 if self.d <= MASK_LIMIT else 2
        if self.data.ndim != expected:
            raise ValueError(f"sets over {self.d} values need a {expected}-dimensional array")

    def __len__(self) -> int:
        return int(self.data.shape[0])

    @property
    def is_mask(self) -> bool:
        return self.data.ndim == 1

    @property
    def catalogue(self) -> SetCells:
        """Return sets that include all of these, to compute something for each."""
        return self

    @classmethod
    def from_codes(cls, d: int, codes: NDArray) -> SetCells:
        """Make sets from an (n, eta) array of codes; the order in a row does not matter, repeated codes are refused."""
        codes = np.asarray(codes)
        if codes.size and int(codes.max()) >= d:
            raise ValueError(f"a code exceeds the {d} values of the domain")
        ordered = np.sort(codes, axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            raise ValueError("a set repeats a value")
        out = masks_of(codes, d) if d <= MASK_LIMIT else ordered.astype(code_dtype(d))
        return cls(d, out)

    @classmethod
    def concat(cls, parts: Sequence[SetCells]) -> SetCells:
        return cls(parts[0].d, np.concatenate([part.data for part in parts]))

    def take(self, rows: NDArray | slice) -> SetCells:
        return SetCells(self.d, self.data[rows])

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)

    def pack(self) -> Any:
        import pyarrow as pa

        if self.is_mask:
            return pa.array(self.data)
        return pa.FixedSizeListArray.from_arrays(pa.array(self.data.ravel()), self.data.shape[1])

    def unpack(self, column: Any) -> SetCells:
        if self.is_mask:
            return SetCells(self.d, column.to_numpy(zero_copy_only=False))
        flat = column.flatten().to_numpy(zero_copy_only=False)
        return SetCells(self.d, flat.reshape(-1, self.data.shape[1]))

    def distinct(self) -> tuple[SetCells, NDArray[np.int64]]:
        """Return the distinct sets in ascending order, and every row's set."""
        if self.is_mask:
            masks, ids = number(self.data)
            return SetCells(self.d, masks), ids
        key, largest = np.zeros(len(self), np.int64), 1
        for column in range(self.data.shape[1]):  # order-preserving numbers for ever longer beginnings of the rows
            if largest * self.d >= 1 << 62:
                key, largest = number(key)[1], len(self)
            key, largest = key * self.d + self.data[:, column], largest * self.d
        key = number(key)[1]
        first = np.zeros(int(key.max(initial=-1)) + 1, np.int64)
        first[key] = np.arange(len(self))
        return self.take(first), key

    def count_sets(self) -> tuple[SetCells, NDArray[np.int64]]:
        """Return the distinct sets with their counts."""
        distinct, ids = self.distinct()
        return distinct, np.bincount(ids, minlength=len(distinct))

    def weigh_sets(self) -> tuple[SetCells, NDArray[np.int64]]:
        """Return sets with their counts; each set once if that needs no work."""
        return self, np.ones(len(self), np.int64)

    def sizes(self) -> NDArray[np.uint16]:
        """Return the number of values of each set."""
        if not self.is_mask:
            return np.full(len(self), self.data.shape[1], np.uint16)
        return np.asarray(np.bitwise_count(self.data), np.uint16)

    def codes(self, eta: int) -> NDArray:
        """Return (n, eta) codes in ascending (domain) order. Every set must have exactly eta values."""
        if not self.is_mask:
            return self.data
        out, left = np.empty((len(self), eta), code_dtype(self.d)), self.data.copy()
        for place in range(eta):
            lowest = left & (~left + 1)
            out[:, place] = np.bitwise_count(lowest - 1)
            left ^= lowest
        return out

    def contains(self, values: NDArray) -> NDArray[np.bool_]:
        """Return whether set i contains values[i]."""
        if self.is_mask:
            shifted = self.data.astype(np.uint64) >> values.astype(np.uint64)
            return (shifted & np.uint64(1)).astype(bool)
        return np.asarray((self.data == values[:, None]).any(axis=1))

    def inclusions(self) -> NDArray[np.int64]:
        """Return w_v: the number of sets that contain value v (equation 17 for one attribute)."""
        if not self.is_mask:
            return np.bincount(self.data.ravel(), minlength=self.d).astype(np.int64)
        return np.array([np.count_nonzero(self.data & self.data.dtype.type(1 << v)) for v in range(self.d)], np.int64)


MOST_SETS = (1 << 16) - 1
"""Sets that are numbered at most: a number has two bytes, and one number is nobody's."""
MOST_VALUES = 1 << 22
"""Values in all numbered sets together at most."""
TABLE_BITS = 20
"""Domains up to which the number of a set is looked up by its bit mask."""


def numberable(d: int, eta: int) -> bool:
    """Return whether the sets of eta out of d values are few enough to be numbered."""
    return 1 <= eta <= d and eta <= MOST_VALUES and comb(d, eta) <= min(MOST_SETS, MOST_VALUES // eta)


class NumberedSets(SetCells):
    """n sets as numbers into a table of distinct sets; equivalent to `SetCells` of the same sets."""

    table: SetCells
    ids: NDArray

    def __init__(self, table: SetCells, ids: NDArray) -> None:
        object.__setattr__(self, "d", table.d)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "ids", ids)

    @cached_property
    def data(self) -> NDArray:
        return np.asarray(self.table.data[self.ids])

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_mask(self) -> bool:
        return self.table.is_mask

    @property
    def nbytes(self) -> int:
        return int(self.ids.nbytes)

    @property
    def catalogue(self) -> SetCells:
        return self.table

    @classmethod
    def concat(cls, parts: Sequence[SetCells]) -> SetCells:
        first = parts[0]
        if all(isinstance(part, NumberedSets) and part.table is first.catalogue for part in parts):
            return NumberedSets(first.catalogue, np.concatenate([part.ids for part in parts]))  # type: ignore[attr-defined]
        return SetCells.concat(parts)

    def take(self, rows: NDArray | slice) -> SetCells:
        return NumberedSets(self.table, self.ids[rows])

    def pack(self) -> Any:
        import pyarrow as pa

        return pa.array(self.ids)

    def unpack(self, column: Any) -> SetCells:
        return NumberedSets(self.table, column.to_numpy(zero_copy_only=False))

    @cached_property
    def times(self) -> NDArray[np.int64]:
        """Return how many rows have each set of the table."""
        return np.bincount(self.ids, minlength=len(self.table))

    def count_sets(self) -> tuple[SetCells, NDArray[np.int64]]:
        present = np.flatnonzero(self.times)
        return self.table.take(present), self.times[present]

    def weigh_sets(self) -> tuple[SetCells, NDArray[np.int64]]:
        return self.count_sets()

    def distinct(self) -> tuple[SetCells, NDArray[np.int64]]:
        """Return the distinct sets in the order of unnumbered sets, so that estimates are identical."""
        present = np.flatnonzero(self.times)
        sets, order = self.table.take(present).distinct()
        place = np.zeros(len(self.table), np.int64)
        place[present] = order
        return sets, place[self.ids]

    def sizes(self) -> NDArray[np.uint16]:
        return np.asarray(self.table.sizes()[self.ids])

    def codes(self, eta: int) -> NDArray:
        return np.asarray(self.table.codes(eta)[self.ids])

    def inclusions(self) -> NDArray[np.int64]:
        out = np.zeros(self.d, np.int64)
        for size in np.unique(sizes := self.table.sizes()).tolist():
            rows = np.flatnonzero(sizes == size)
            codes = self.table.take(rows).codes(size)
            out += np.bincount(codes.ravel(), np.repeat(self.times[rows], size), self.d).astype(np.int64)
        return out


def look_up_sets(table: SetCells, ids: NDArray) -> SetCells:
    """Return the sets of these numbers."""
    return NumberedSets(table, ids)


@dataclass(frozen=True)
class SetOrder:
    """All sets of eta out of d values, in ascending order of their lists."""

    d: int
    eta: int

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, d: int, eta: int) -> SetOrder:
        return cls(d, eta)

    @cached_property
    def codes(self) -> NDArray:
        """Return the sets as a (sets, eta) array."""
        flat = chain.from_iterable(combinations(range(self.d), self.eta))
        return np.fromiter(flat, code_dtype(self.d), comb(self.d, self.eta) * self.eta).reshape(-1, self.eta)

    @property
    def nowhere(self) -> int:
        """Return the number that means no such set."""
        return comb(self.d, self.eta)

    @cached_property
    def _table(self) -> NDArray:
        """Return the number of every bit mask."""
        out = np.full(1 << self.d, self.nowhere, code_dtype(self.nowhere + 1))
        out[self.universe.data] = np.arange(len(self.codes))
        return out

    @cached_property
    def _after(self) -> NDArray[np.int64]:
        """Return (eta, d): how many sets with the same beginning come after one with this next value."""
        return np.array([[comb(self.d - 1 - v, self.eta - j) for v in range(self.d)] for j in range(self.eta)])

    @cached_property
    def universe(self) -> SetCells:
        """Return all sets."""
        return SetCells.from_codes(self.d, self.codes)

    def numbers(self, cells: SetCells) -> NDArray:
        """Return the number of every set among all; `nowhere` for one of another size, if that is detectable."""
        if isinstance(cells, NumberedSets):
            return cells.ids if cells.table is self.universe else self.numbers(cells.table)[cells.ids]
        if cells.is_mask and self.d <= TABLE_BITS:
            return np.asarray(self._table[cells.data])
        codes = cells.codes(self.eta)
        after = sum(self._after[j][codes[:, j]] for j in range(self.eta))
        return (self.nowhere - 1 - np.asarray(after)).astype(code_dtype(self.nowhere + 1))
