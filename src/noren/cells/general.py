"""Cells that say "somewhere under this node" or "one of this group's values"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class NodeCells:
    """n generalised cells: codes into a catalogue of d nodes."""

    d: int
    data: NDArray

    def __len__(self) -> int:
        return int(self.data.shape[0])

    @classmethod
    def concat(cls, parts: Sequence[NodeCells]) -> NodeCells:
        return cls(parts[0].d, np.concatenate([part.data for part in parts]))

    def take(self, rows: NDArray | slice) -> NodeCells:
        return NodeCells(self.d, self.data[rows])


@dataclass(frozen=True)
class GroupCells:
    """n cells that name one of d groups; what a group holds stands in its GroupTable."""

    d: int
    data: NDArray

    def __len__(self) -> int:
        return int(self.data.shape[0])

    @classmethod
    def concat(cls, parts: Sequence[GroupCells]) -> GroupCells:
        return cls(parts[0].d, np.concatenate([part.data for part in parts]))

    def take(self, rows: NDArray | slice) -> GroupCells:
        return GroupCells(self.d, self.data[rows])


@dataclass(frozen=True)
class GroupTable:
    """What every group holds: rows (group, value, count), ascending by group and value, each pair once."""

    groups: int
    d: int
    group: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]

    def __post_init__(self) -> None:
        wrong = ValueError("a group table lists every value of a group once, in order, with a count")
        if not len(self.group):
            return
        inside = self.group.min() >= 0 and self.group.max() < self.groups
        if not (inside and self.value.min() >= 0 and self.value.max() < self.d and self.count.min() >= 1):
            raise wrong
        key = self.group * np.int64(self.d) + self.value
        if not (key[1:] > key[:-1]).all() or int(self.count.max()) > 2**53 // len(self.count):
            raise wrong

    @classmethod
    def from_codes(cls, groups: int, d: int, group: NDArray, value: NDArray) -> GroupTable:
        """Count the values of every group."""
        key, count = np.unique(group.astype(np.int64) * d + value, return_counts=True)
        return cls(groups, d, key // d, key % d, count)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Records of every group."""
        return np.bincount(self.group, self.count, minlength=self.groups).astype(np.int64)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """How often each value occurs in all groups together."""
        return np.bincount(self.value, self.count, minlength=self.d).astype(np.int64)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Rows of group g are bounds[g] <= row < bounds[g+1]."""
        return np.searchsorted(self.group, np.arange(self.groups + 1))
