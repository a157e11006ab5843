"""Columns that were hidden together, asked for singly: a member's values are groups of the composite's tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.query import Grouping
from noren.schema.column import Column
from noren.schema.tuples import TupleDomain


@dataclass(frozen=True)
class Members:
    """What can be asked for: the published columns, and the members of those that are tuples."""

    columns: Mapping[str, Column]
    """Members as columns of their own beside the published ones."""
    owner: Mapping[str, str]
    """The composite of every member."""
    codes: Mapping[str, NDArray[np.int64]]
    """The code of every member in each tuple."""

    @classmethod
    def of(cls, columns: Mapping[str, Column]) -> Members:
        known, owner, codes = dict(columns), {}, {}
        for name, column in columns.items():
            domain = None if column.is_open else column.domain
            if not isinstance(domain, TupleDomain):
                continue
            for member in domain.members:
                if member.name not in columns:
                    known[member.name] = column.met(member.name, member.domain, hierarchy=member.tree, distance="equal")
                    owner[member.name] = name
                    codes[member.name] = domain.codes[member.name]
        return cls(known, owner, codes)

    def published(self, name: str) -> str:
        """The published column that says something about this one."""
        return self.owner.get(name, name)

    def of_tuples(self, name: str, admitted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which values of the published column a condition on this one admits."""
        return admitted[self.codes[name]] if name in self.codes else admitted

    def grouped(self, group: Grouping) -> Grouping:
        """A grouping of this column's values as one of the published column's."""
        if group.column not in self.codes:
            return group
        return Grouping(self.owner[group.column], group.title, group.labels, group.groups[self.codes[group.column]])


@dataclass(frozen=True)
class Shape:
    """How columns that are asked for stand along the axes of a table: several members of one composite share one."""

    axes: Sequence[Grouping]
    _columns: Sequence[Sequence[int]]
    """The columns of every axis, by their place in the question."""
    _sizes: Sequence[int]
    _cells: Sequence[NDArray[np.int64]]
    """Where every group of an axis stands in the grid of its columns."""

    @classmethod
    def of(cls, shown: Sequence[Grouping]) -> Shape:
        places: dict[str, list[int]] = {}
        for place, group in enumerate(shown):
            places.setdefault(group.column, []).append(place)
        axes, cells = [], []
        for column, own in places.items():
            sizes = tuple(len(shown[place].labels) for place in own)
            if len(own) == 1:
                axes.append(shown[own[0]])
                cells.append(np.arange(sizes[0]))
                continue
            grid = np.ravel_multi_index(tuple(shown[place].groups for place in own), sizes)
            used, groups = np.unique(grid, return_inverse=True)
            title = ", ".join(shown[place].title for place in own)
            axes.append(Grouping(column, title, tuple(map(str, used)), groups.astype(np.int64)))
            cells.append(used)
        return cls(axes, list(places.values()), [len(group.labels) for group in shown], cells)

    def spread(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The table with one dimension for each column asked for; combinations that no tuple has are 0."""
        if all(len(columns) == 1 for columns in self._columns):
            return table
        rest = table.shape[len(self.axes) :]
        for axis, (columns, cells) in enumerate(zip(self._columns, self._cells, strict=True)):
            size = int(np.prod([self._sizes[place] for place in columns]))
            wide = np.zeros((*table.shape[:axis], size, *table.shape[axis + 1 :]))
            wide[(slice(None),) * axis + (cells,)] = table
            table = wide
        order = [place for columns in self._columns for place in columns]
        table = table.reshape(*(self._sizes[place] for place in order), *rest)
        back = np.argsort(order).tolist()
        return table.transpose(*back, *range(len(order), table.ndim))
