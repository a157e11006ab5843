"""Totals where general values or groups take part: from the library's own cross tabulation of the columns asked for.

Such cells have no design and so no unbiased scores. Averaging each column alone over what its cells leave open would
flatten every relation between columns; the joint table that `estimate` would show does not, under the assumption that
it names. What is told beside such numbers are hard bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.rows import row_numbers
from noren.estimates.statistics.records import Product, Records, Totals
from noren.estimates.statistics.variables import Variable


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected records of every combination of the values that the columns asked for tell apart."""

    table: NDArray[np.float64]
    places: Sequence[int]
    """The axis of every dimension."""
    first: Sequence[NDArray[np.int64]]
    """A base value for every place along a dimension."""
    assumes: str

    @classmethod
    def of(cls, records: Records, base: Product, variables: Sequence[Variable]) -> Expected:
        from noren.estimates.counts.tabulate import tabulate

        places = list(dict.fromkeys([*(variable.axis for variable in variables), *base]))
        axes, first = [], []
        for place in places:
            axis = records.scores[place].axis
            told = [variable.groups for variable in variables if variable.axis == place]
            told += [base[place].astype(np.int64)] if place in base else []
            atoms = row_numbers(told, axis.d)
            size = int(atoms.max(initial=0)) + 1
            one = np.zeros(size, np.int64)
            one[atoms] = np.arange(axis.d)
            axes.append(replace(axis, groups=atoms, n_groups=size))
            first.append(one)
        found = tabulate(axes, weights=records.weights)
        return cls(
            found.counts / (1.0 if records.weights is None else records.weights.unit), places, first, found.assumes
        )

    def totals(self, functions: Sequence[Product]) -> Totals:
        """Sums of functions, which nothing random stands behind."""
        values = []
        for function in functions:
            rest = self.table
            for place, one in zip(reversed(self.places), reversed(list(self.first)), strict=True):
                factor = function.get(place)
                rest = rest @ (np.ones(len(one)) if factor is None else factor[one])
            values.append(float(rest))
        return Totals(np.array(values), np.zeros((len(values), len(values))), float(self.table.sum()))
