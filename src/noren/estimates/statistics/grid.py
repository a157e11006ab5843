"""The cells of a model: exact values that occur, times all values that hidden columns may have.

A record weighs in every cell of its exact slot with the product of its columns' scores (or likelihoods). Sums over
records are therefore sums over cells, and only the errors need the records, in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.rows import distinct_rows, row_numbers
from noren.estimates.statistics.records import Product, Records
from noren.estimates.statistics.variables import Variable

CELLS = 3_000_000
CHUNK = 4_000_000
"""Numbers that are worked on at once."""


@dataclass(frozen=True, eq=False)
class ModelGrid:
    """E exact slots times H combinations of hidden values; label of every variable in every cell."""

    records: Records
    hidden: Sequence[int]
    """Hidden axes that take part, each with its atoms."""
    members: Sequence[NDArray[np.float64]]
    """(d, atoms) of every hidden axis: which base values an atom holds; 0 where a condition rules one out."""
    slot: NDArray[np.int64]
    """The exact slot of every different tuple."""
    ids: NDArray[np.int64]
    """(tuples, hidden): the cell of every hidden axis."""
    counts: NDArray[np.float64]
    squares: NDArray[np.float64]
    """Sums of squared weights; the counts where records are not weighed."""
    labels: Mapping[str, NDArray[np.int64]]
    """(E, 1) or (1, H): the label of every variable."""
    shape: tuple[int, int]
    exact: Sequence[int]
    """Exact axes that take part."""
    atoms: Sequence[NDArray[np.int64]]
    """The atom of every base value of a hidden axis."""
    own: Sequence[Variable]
    """The variables along exact axes, whose labels make the slots."""
    slots: NDArray[np.int64]
    """(E, own): the labels of every slot."""

    @classmethod
    def of(cls, records: Records, base: Product, variables: Sequence[Variable]) -> ModelGrid:
        places = dict.fromkeys([*(variable.axis for variable in variables), *base])
        exact = [place for place in places if records.scores[place].axis.is_exact]
        hidden = [place for place in places if place not in exact]
        atoms, members = [], []
        for place in hidden:
            own = [variable.groups for variable in variables if variable.axis == place]
            numbers = row_numbers(own, records.scores[place].axis.d)
            size = int(numbers.max(initial=0)) + 1
            atoms.append(numbers)
            members.append((numbers[:, None] == np.arange(size)) * base.get(place, np.ones(len(numbers)))[:, None])
        values = [_values(records, place) for place in exact]
        own_labels = [v.groups[values[exact.index(v.axis)]] for v in variables if v.axis in exact]
        slot = row_numbers(own_labels, len(records.counts))
        slots = int(slot.max(initial=0)) + 1
        first = np.zeros(slots, np.int64)
        first[slot] = np.arange(len(slot))
        sizes = tuple(member.shape[1] for member in members)
        width = int(np.prod(sizes))
        if slots * width > CELLS:
            raise QueryError(
                f"the model has {slots:,} x {width:,} combinations of exact and hidden values, more than {CELLS:,}.",
                hint="Use fewer columns, hierarchy levels (`zip@1`) or intervals (`age/10`).",
            )
        labels: dict[str, NDArray[np.int64]] = {}
        for variable in variables:
            if variable.axis in exact:
                labels[variable.name] = variable.groups[values[exact.index(variable.axis)]][first][:, None]
                continue
            place = hidden.index(variable.axis)
            of_atom = np.zeros(sizes[place], np.int64)
            of_atom[atoms[place]] = variable.groups
            labels[variable.name] = of_atom[np.indices(sizes)[place].ravel()][None, :]
        together = [slot, *(records.ids[:, place] for place in hidden)]
        rows, _ = distinct_rows(together, len(slot))
        number = row_numbers(together, len(slot))
        counts, squares = (
            np.bincount(number, each, len(rows)).astype(np.float64) for each in (records.counts, records.squares)
        )
        along = [variable for variable in variables if variable.axis in exact]
        kinds = np.stack([each[first] for each in own_labels], axis=1) if along else np.zeros((slots, 0), np.int64)
        shape, parts = (slots, width), (rows[:, 0], rows[:, 1:], counts, squares, labels)
        return cls(records, hidden, members, *parts, shape, exact, atoms, along, kinds)

    def located(self, codes: Mapping[int, NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The slot and the combination of hidden atoms of base values, given by axis; -1 where there is none."""
        n = len(next(iter(codes.values())))
        sizes = tuple(member.shape[1] for member in self.members)
        atoms = tuple(self.atoms[k][codes[place]] for k, place in enumerate(self.hidden))
        column = np.ravel_multi_index(atoms, sizes) if sizes else np.zeros(n, np.int64)
        if not self.own:
            return np.zeros(n, np.int64), column
        asked = np.stack([variable.groups[codes[variable.axis]] for variable in self.own], axis=1)
        both = row_numbers(list(np.concatenate([self.slots, asked]).T), len(self.slots) + n)
        place = np.full(int(both.max()) + 1, -1, np.int64)
        place[both[: len(self.slots)]] = np.arange(len(self.slots))
        return place[both[len(self.slots) :]], column

    @cached_property
    def scores(self) -> list[NDArray[np.float64]]:
        """(cells, atoms) of every hidden axis."""
        found = zip(self.hidden, self.members, strict=True)
        return [self.records.scores[place].of(member) for place, member in found]

    def weights(self, tables: Sequence[NDArray[np.float64]], rows: slice) -> NDArray[np.float64]:
        """(rows, H): the product of the columns' numbers for every combination."""
        own = [table[self.ids[rows, place]] for place, table in enumerate(tables)]
        n = len(self.counts[rows])
        return reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(n, -1), own, np.ones((n, 1)))

    def chunks(self, width: int = 1) -> Iterator[slice]:
        step = max(1, CHUNK // max(1, self.shape[1] * width))
        for start in range(0, len(self.counts), step):
            yield slice(start, min(start + step, len(self.counts)))

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """(E, H): the estimated number of records of every cell, unbiased and perhaps negative."""
        return self._summed(1)

    @cached_property
    def squares_table(self) -> NDArray[np.float64]:
        """(E, H): sums of the records' squared scores; less the table, the variance that the draws give it."""
        return self._summed(2)

    def _summed(self, power: int) -> NDArray[np.float64]:
        from scipy.sparse import csr_array

        out = np.zeros(self.shape)
        for rows in self.chunks():
            weights, n = self.weights(self.scores, rows), len(self.counts[rows])
            put = csr_array((self.counts[rows], (self.slot[rows], np.arange(n))), (self.shape[0], n))
            out += put @ weights**power
        return out


def _values(records: Records, place: int) -> NDArray[np.int64]:
    """The base value of every different tuple, of an exact axis."""
    scores = records.scores[place]
    codes = np.arange(scores.axis.d, dtype=np.float64)[:, None]
    return scores.of(codes)[:, 0].astype(np.int64)[records.ids[:, place]]
