"""Sets that are kept once, and for every record the number of its set among them.

There are only C(d, eta) sets of eta out of d values: 8,568 for five out of 18. Where records are many more than sets,
numbers are smaller and faster than lists. Numbers follow the order of the sets' own contents, and only sets that a cell
shows have one: whoever has the lists can work them out, so they tell nothing more.
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

from noren.statements.set_cells import SetCells, code_dtype

MOST_SETS = (1 << 16) - 1
"""Sets that are numbered at most: a number has two bytes, and one number is nobody's."""
MOST_VALUES = 1 << 22
"""Values in all numbered sets together at most."""
TABLE_BITS = 20
"""Domains up to which the number of a set is looked up by its bit mask."""


def numberable(d: int, eta: int) -> bool:
    """Whether the sets of eta out of d values are few enough to be numbered."""
    return 1 <= eta <= d and eta <= MOST_VALUES and comb(d, eta) <= min(MOST_SETS, MOST_VALUES // eta)


class NumberedSets(SetCells):
    """n sets as numbers into a table of different sets. Says what `SetCells` of the same sets would say."""

    table: SetCells
    ids: NDArray

    def __init__(self, table: SetCells, ids: NDArray) -> None:
        object.__setattr__(self, "d", table.d)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "ids", ids)

    @cached_property
    def data(self) -> NDArray:
        return self.table.data[self.ids]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_mask(self) -> bool:
        return self.table.is_mask

    @property
    def nbytes(self) -> int:
        return int(self.ids.nbytes)

    @property
    def listed(self) -> SetCells:
        return self.table

    @classmethod
    def concat(cls, parts: Sequence[SetCells]) -> SetCells:
        first = parts[0]
        if all(isinstance(part, NumberedSets) and part.table is first.listed for part in parts):
            return NumberedSets(first.listed, np.concatenate([part.ids for part in parts]))  # type: ignore[attr-defined]
        return SetCells.concat(parts)

    def take(self, rows: NDArray | slice) -> SetCells:
        return NumberedSets(self.table, self.ids[rows])

    def packed(self) -> Any:
        import pyarrow as pa

        return pa.array(self.ids)

    def unpacked(self, column: Any) -> SetCells:
        return NumberedSets(self.table, column.to_numpy(zero_copy_only=False))

    @cached_property
    def times(self) -> NDArray[np.int64]:
        """How many rows hold each set of the table."""
        return np.bincount(self.ids, minlength=len(self.table))

    def counted(self) -> tuple[SetCells, NDArray[np.int64]]:
        present = np.flatnonzero(self.times)
        return self.table.take(present), self.times[present]

    def weighed(self) -> tuple[SetCells, NDArray[np.int64]]:
        return self.counted()

    def distinct(self) -> tuple[SetCells, NDArray[np.int64]]:
        """In the order of the same sets without numbers: what is estimated depends on it in the last digits."""
        present = np.flatnonzero(self.times)
        sets, order = self.table.take(present).distinct()
        place = np.zeros(len(self.table), np.int64)
        place[present] = order
        return sets, place[self.ids]

    def sizes(self) -> NDArray[np.uint16]:
        return self.table.sizes()[self.ids]

    def codes(self, eta: int) -> NDArray:
        return self.table.codes(eta)[self.ids]

    def inclusions(self) -> NDArray[np.int64]:
        out = np.zeros(self.d, np.int64)
        for size in np.unique(sizes := self.table.sizes()).tolist():
            rows = np.flatnonzero(sizes == size)
            codes = self.table.take(rows).codes(size)
            out += np.bincount(codes.ravel(), np.repeat(self.times[rows], size), self.d).astype(np.int64)
        return out


def numbered(table: SetCells, ids: NDArray) -> SetCells:
    """The sets of these numbers."""
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
        """(sets, eta): the sets themselves."""
        flat = chain.from_iterable(combinations(range(self.d), self.eta))
        return np.fromiter(flat, code_dtype(self.d), comb(self.d, self.eta) * self.eta).reshape(-1, self.eta)

    @property
    def nowhere(self) -> int:
        """The number of what is no such set."""
        return comb(self.d, self.eta)

    @cached_property
    def _table(self) -> NDArray:
        """The number of every bit mask."""
        out = np.full(1 << self.d, self.nowhere, code_dtype(self.nowhere + 1))
        out[self.universe.data] = np.arange(len(self.codes))
        return out

    @cached_property
    def _after(self) -> NDArray[np.int64]:
        """(eta, d): how many sets with the same beginning come after one that has this value next."""
        return np.array([[comb(self.d - 1 - v, self.eta - j) for v in range(self.d)] for j in range(self.eta)])

    @cached_property
    def universe(self) -> SetCells:
        """All sets."""
        return SetCells.from_codes(self.d, self.codes)

    def numbers(self, cells: SetCells) -> NDArray:
        """Where every set stands among all; `nowhere` for one of another size, as far as that can be seen."""
        if isinstance(cells, NumberedSets):
            return cells.ids if cells.table is self.universe else self.numbers(cells.table)[cells.ids]
        if cells.is_mask and self.d <= TABLE_BITS:
            return self._table[cells.data]
        codes = cells.codes(self.eta)
        after = sum(self._after[j][codes[:, j]] for j in range(self.eta))
        return (self.nowhere - 1 - np.asarray(after)).astype(code_dtype(self.nowhere + 1))
