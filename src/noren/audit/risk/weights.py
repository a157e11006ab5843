"""What survey weights tell about risk: who is unique in the population, and whom the weight itself finds.

A record of weight w was drawn with chance 1 / w. Of a class with f records, whose weights add up to F, the population's
size is f plus a negative binomial number with chance p = f / F (Benedetti and Franconi 1998; what sdcMicro calls the
individual risk), so that a sample unique is alone in the population with chance p = 1 / w, and E[1 / size] is the
chance that a match is right.

A weight is computed from what a person told (stratum, region, age, who answered). Whoever can compute it knows it: so
it is counted as a quasi-identifier, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.audit.risk.raw import RawColumn, RawTable, read_raw
from noren.audit.risk.result import PopulationRisk, WeightsRisk
from noren.audit.risk.uniques import class_sizes
from noren.errors import DataError
from noren.metrics.population import expected_inverse
from noren.sources.source import Source

STEPS = 400
"""Chances p at which E[1 / size] is worked out; between them it is read off."""


def read_weights(source: Source, name: str, decimal: str | None) -> RawColumn:
    """The weights of all rows; refuses what is none, without a cell."""
    column = read_raw(source, [name], {}, decimal=decimal).columns[0]
    numbers = column.numbers
    if numbers is None or not np.isfinite(numbers).all() or numbers.min() <= 0:
        bad = column.codes.size if numbers is None else int((~(np.isfinite(numbers) & (numbers > 0))).sum())
        raise DataError(
            f"{source.name}: {bad:,} records have no weight {name!r} above 0.",
            hint="Give every record a number above 0; leave out records that stand for nobody.",
        )
    return column


@dataclass(frozen=True, eq=False)
class ByWeight:
    """What weights say: of everybody, and of every row."""

    population: PopulationRisk
    told: WeightsRisk
    chance: NDArray[np.float64]
    """(rows,) E[1 / size of the class in the population]."""


def weight_risk(table: RawTable, column: RawColumn, sizes: NDArray[np.int64], of: NDArray[np.int64]) -> ByWeight:
    """Population uniques and the risk of every row by its weight; and what the weight itself gives away."""
    assert column.numbers is not None
    weights = _by_person(table, column.numbers)
    total = float(weights.sum())
    people = _of_class(table, weights, of, len(sizes))
    share = np.minimum(sizes / np.maximum(people, 1e-300), 1.0)
    uniques = float(share[sizes == 1].sum())
    population = max(table.persons, round(total))
    both = RawTable(table.name, table.n, (*table.columns, column), table.people)
    with_weight, _ = class_sizes(both, range(len(both.columns)))
    alone, _ = class_sizes(both, [len(table.columns)])
    told = WeightsRisk(
        column.name,
        column.d,
        int((alone == 1).sum()),
        int((sizes == 1).sum()),
        int((with_weight == 1).sum()),
        float(len(weights) * np.square(weights).sum() / total**2),
    )
    found = PopulationRisk(table.persons / population, population, uniques, uniques / population, "weights")
    return ByWeight(found, told, _inverse(sizes, share)[of])


def _by_person(table: RawTable, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of every person: the largest of their rows', which have the same in a table of people."""
    if table.people is None:
        return weights
    out = np.zeros(table.persons)
    np.maximum.at(out, table.people, weights)
    return out


def _of_class(table: RawTable, weights: NDArray[np.float64], of: NDArray[np.int64], classes: int) -> NDArray:
    """How many people of the population the people of every class stand for."""
    if table.people is None:
        return np.bincount(of, weights, classes)
    pairs = np.unique(of * np.int64(table.persons) + table.people)
    return np.bincount(pairs // table.persons, weights[pairs % table.persons], classes)


def _inverse(sizes: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """E[1 / size] of every class, on a grid of chances: cautious, for it rises with the chance."""
    edges = np.exp(np.linspace(np.log(max(float(share.min()), 1e-9)), 0.0, STEPS))
    place = np.minimum(np.searchsorted(edges, share), STEPS - 1)
    out = np.empty(len(sizes))
    for step in np.unique(place):
        rows = place == step
        out[rows] = expected_inverse(sizes[rows], float(edges[step]))
    return out
