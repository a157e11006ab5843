"""Groups of values where people have several rows: the holder counts the people of every group.

The cells say which group a row is in and the group's table what it holds, but not whose value is whose. So this rests
on the original, and demands that all rows of a person are in one group: rows in several groups would tell together
what each of them leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.models.classes import Classes
from noren.models.histograms import ClassTable, PeopleTable
from noren.models.verdict import Basis
from noren.statements import CellBatch, Statement
from noren.statements.batch import PERSON
from noren.statements.group import GroupTable


@dataclass(frozen=True)
class PeopleValues:
    """What everybody who is published has of a column: (person, value, rows), ascending, each pair once."""

    person: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def of(cls, people: NDArray[np.int64], values: NDArray) -> PeopleValues:
        d = int(values.max(initial=0)) + 1
        key, count = np.unique(people.astype(np.int64) * d + values, return_counts=True)
        return cls(key // d, key % d, count)


class PeopleGroups(Classes):
    """The groups that a column names, with the people in them."""

    basis: Basis = "the original"

    def __init__(self, column: Statement, held: PeopleValues) -> None:
        super().__init__((column.name, PERSON))
        self.column = column
        self.held = held
        self._pairs: list[NDArray[np.int64]] = []
        self._known = np.zeros(0, np.int64)

    def _add(self, batch: CellBatch) -> None:
        person = batch[PERSON].data.astype(np.int64)  # type: ignore[attr-defined]
        pairs = np.stack([self.column.checked(batch[self.column.name]), person], axis=1)
        self._pairs.append(np.unique(pairs, axis=0))

    def _join(self, other: PeopleGroups) -> None:
        self._pairs += other._pairs

    def _made(self) -> ClassTable:
        none = np.zeros((0, 2), np.int64)
        pairs = np.unique(np.concatenate([none, *self._pairs]), axis=0)
        self._pairs = [pairs]
        assert self.column.table is not None
        held, said = self.held, self.column.table
        group_of = np.full(int(max(held.person.max(initial=-1), pairs[:, 1].max(initial=-1))) + 1, -1, np.int64)
        group_of[pairs[:, 1]] = pairs[:, 0]
        group = group_of[held.person]
        alone = len(pairs) == len(np.unique(pairs[:, 1]))  # nobody is in two groups
        agrees = alone and len(np.unique(held.person)) == len(pairs) and bool((group >= 0).all())
        if not len(pairs) or not agrees or not _same(said, group, held):
            return ClassTable(
                self.column, none[:, 0], none[:, 0], np.zeros(1, np.int64), none[:, 0], none[:, 0], len(pairs)
            )
        order = np.lexsort((held.value, held.person, group))
        group, person = group[order], held.person[order]
        new = np.append(True, group[1:] != group[:-1])
        fresh = np.append(True, person[1:] != person[:-1])
        people = np.bincount(np.cumsum(new)[fresh] - 1)
        starts = np.append(np.flatnonzero(new), len(group))
        self._known = group[new]
        return PeopleTable(
            self.column, people, people, starts, held.value[order], held.count[order], 0, np.cumsum(fresh) - 1, person
        )

    def names(self, classes: NDArray[np.int64]) -> list[dict[str, str]]:
        return [{self.column.name: f"group {number}"} for number in self._known[classes].tolist()]


def _same(said: GroupTable, group: NDArray[np.int64], held: PeopleValues) -> bool:
    """Whether the table of the groups counts the rows of the people in them."""
    key, place = np.unique(group * np.int64(said.d) + held.value, return_inverse=True)
    rows = np.bincount(place.ravel(), held.count).astype(np.int64)
    return np.array_equal(key, said.group * np.int64(said.d) + said.value) and np.array_equal(rows, said.count)
