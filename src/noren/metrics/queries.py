"""Errors of count queries on a generalised or grouped release (paper 004, section 5.3.3).

A query asks how many records lie under a chosen generalised value in each of s columns, the sensitive one among them. A
published record counts by the share of its cells that lies under the query's values, as if the values under a cell were
equally likely (in a group: as often as its published counts say).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.metrics.general import GeneralColumn, GeneralTable
from noren.ragged import row_numbers
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from noren.statements import Design, SetCells

Shares = Callable[[str, slice], NDArray[np.float64]]
MOST_VALUES = 2000
"""Values of a drawn column whose inclusion probabilities are inverted here."""
BLOCK = 1 << 22
"""Cells of the (queries, kinds of cells) tables that are worked on at a time."""


@dataclass(frozen=True)
class WorkloadError:
    """The relative errors |ACT - EST| / ACT of queries with a positive true count; lower is better."""

    mean: float
    median: float
    answered: int
    """Queries with a true count above zero."""
    empty: int
    """Queries that no original record meets: they have no relative error and are left out."""


@dataclass(frozen=True)
class Workload:
    """Random queries: the base values of each condition."""

    chosen: Mapping[str, NDArray[np.bool_]]
    """column -> (queries, values): which values a query asks for."""
    asked: Mapping[str, NDArray[np.bool_]]
    """column -> (queries,): whether a query has a condition on the column."""

    def __len__(self) -> int:
        return len(next(iter(self.asked.values())))


def random_workload(
    table: GeneralTable,
    hierarchies: Mapping[str, Hierarchy],
    sensitive: str | None,
    dimensions: int,
    queries: int = 1000,
    selectivity: float | None = None,
    seed: int = 0,
    *,
    intervals: bool = True,
) -> Workload:
    """Return queries with `dimensions` conditions: on the sensitive column (unless None) and on random others.

    A condition on a column with a hierarchy is one of its nodes below the root, each equally likely. Without one it is
    an interval of an ordered column or a set of categories: of ceil(values * selectivity^(1/dimensions)) values, or
    of a random number of values if no selectivity is given. Without `intervals`, ordered columns are asked for sets of
    values too. Equal seeds give equal workloads.
    """
    names = list(table.measured)
    if sensitive is not None:
        table.column(sensitive)
    if not 1 <= dimensions <= len(names):
        raise QueryError(
            f"the number of conditions must be from 1 to {len(names)}, not {dimensions}.", hint="Ask for fewer."
        )
    if queries < 1:
        raise QueryError(f"the workload has {queries} queries.", hint="Ask for at least one.")
    if selectivity is not None and not 0 < selectivity <= 1:
        raise QueryError(
            f"selectivity must be above 0 and at most 1, not {selectivity:g}.",
            hint="Give it as a share of the records, for example 0.05.",
        )
    random = np.random.default_rng(seed)
    rank = random.random((queries, len(names)))
    if sensitive is not None:
        rank[:, names.index(sensitive)] = -1
    place = np.argsort(np.argsort(rank, axis=1), axis=1)
    asked = {name: place[:, i] < dimensions for i, name in enumerate(names)}
    share = None if selectivity is None else selectivity ** (1 / dimensions)
    chosen = {
        name: _predicates(table.columns[name], hierarchies.get(name), share, queries, random, intervals)
        for name in names
    }
    return Workload(chosen, asked)


def true_counts(table: GeneralTable, workload: Workload) -> NDArray[np.float64]:
    """Return ACT: how many original records meet each query."""
    rows = {name: table.columns[name].truth for name in workload.chosen}
    kinds = {name: len(table.columns[name].domain) for name in rows}
    return _counts(rows, kinds, workload, lambda name, part: workload.chosen[name][part].astype(np.float64))


def estimated_counts(
    table: GeneralTable, workload: Workload, drawn: Mapping[str, DrawnColumn] | None = None
) -> NDArray[np.float64]:
    """Return EST: published records counted by the share of their cells that meets each query.

    A column that was drawn counts by the score of its set, whose expectation is 1 where the truth is asked for, else 0.
    """
    sets = drawn or {}
    rows = {
        name: sets[name].number if name in sets else table.columns[name].cells[table.keep] for name in workload.chosen
    }
    kinds = {name: sets[name].kinds if name in sets else table.columns[name].kinds for name in rows}

    def shares(name: str, part: slice) -> NDArray[np.float64]:
        chosen = workload.chosen[name][part]
        return sets[name].scores(chosen) if name in sets else table.columns[name].overlap(chosen)

    return _counts(rows, kinds, workload, shares)


@dataclass(frozen=True)
class DrawnColumn:
    """The sets of the published records, and the scores of their values."""

    number: NDArray[np.int64]
    score: NDArray[np.float64]
    """(different sets, values): E[score of value u | truth v] is 1 for u = v and 0 otherwise."""

    @property
    def kinds(self) -> int:
        return len(self.score)

    @classmethod
    def of(cls, design: Design, sets: SetCells, places: NDArray[np.int64]) -> DrawnColumn:
        """Return the scores of sets over a domain, for those of its values at these positions."""
        if design.is_blind or design.d > MOST_VALUES:
            raise QueryError(
                "queries cannot be answered from sets that carry no information or cover very many values."
            )
        distinct, number = sets.distinct()
        inside = np.zeros((len(distinct), design.d))
        np.put_along_axis(inside, distinct.codes(design.eta).astype(np.int64), 1.0, axis=1)
        return cls(number, (inside @ np.linalg.pinv(design.inclusion_matrix()))[:, places])

    def scores(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return (queries, distinct sets): what each set counts for each query."""
        return np.asarray(chosen @ self.score.T)


def query_error(
    table: GeneralTable,
    hierarchies: Mapping[str, Hierarchy],
    sensitive: str | None,
    dimensions: int,
    queries: int = 1000,
    selectivity: float | None = None,
    seed: int = 0,
    drawn: Mapping[str, DrawnColumn] | None = None,
) -> WorkloadError:
    """Return mean and median relative error of a random workload; see `random_workload` for the queries."""
    workload = random_workload(table, hierarchies, sensitive, dimensions, queries, selectivity, seed)
    return workload_error(true_counts(table, workload), estimated_counts(table, workload, drawn))


def workload_error(actual: NDArray[np.float64], estimated: NDArray[np.float64]) -> WorkloadError:
    """Return relative errors where the true count is above zero."""
    met = actual > 0
    if not met.any():
        raise QueryError(
            f"no record meets any of the {len(actual)} queries.", hint="Ask for more queries or fewer conditions."
        )
    errors = np.abs(actual[met] - estimated[met]) / actual[met]
    return WorkloadError(float(errors.mean()), float(np.median(errors)), int(met.sum()), int((~met).sum()))


def _predicates(
    column: GeneralColumn,
    hierarchy: Hierarchy | None,
    share: float | None,
    queries: int,
    random: np.random.Generator,
    intervals: bool,
) -> NDArray[np.bool_]:
    """Return (queries, values): the base values of each condition on the column."""
    d = len(column.domain)
    if hierarchy is not None:
        if hierarchy.missing(column.domain.values):
            raise QueryError(
                f"the hierarchy of {column.name!r} lacks values of the column.",
                hint="Give the hierarchy that the policy uses.",
            )
        nodes = tree_of(hierarchy.restrict_to(column.domain.values)).nodes
        below = np.flatnonzero(nodes.sizes < d) if d > 1 else np.arange(len(nodes))
        drawn, which = np.unique(below[random.integers(0, len(below), queries)], return_inverse=True)
        member = np.zeros((len(drawn), d), bool)
        for i, node in enumerate(drawn.tolist()):
            member[i, nodes.members(node)] = True
        return member[which.ravel()]
    if share is None:
        size = random.integers(1, max(2, d), queries)
    else:
        size = np.full(queries, min(d, ceil(d * share)))
    if intervals and column.domain.is_ordered:
        start = np.floor(random.random(queries) * (d - size + 1)).astype(np.int64)
        code = np.arange(d)
        return np.asarray((code >= start[:, None]) & (code < (start + size)[:, None]))
    return np.asarray(np.argsort(np.argsort(random.random((queries, d)), axis=1), axis=1) < size[:, None])


def _counts(
    rows: Mapping[str, NDArray], kinds: Mapping[str, int], workload: Workload, shares: Shares
) -> NDArray[np.float64]:
    """Return the sum over rows of the product of their shares, with equal rows combined first."""
    n = len(next(iter(rows.values())))
    number = row_numbers(list(rows.values()), list(kinds.values()), n)
    times = np.bincount(number).astype(np.float64) if n else np.zeros(0)
    first = np.empty(len(times), np.int64)
    first[number[::-1]] = np.arange(n)[::-1]
    distinct = {name: row[first] for name, row in rows.items()}
    out = np.empty(len(workload))
    step = max(1, BLOCK // max(1, *kinds.values()))
    for start in range(0, len(out), step):
        part = slice(start, min(start + step, len(out)))
        tables = {name: shares(name, part) for name in rows if workload.asked[name][part].any()}
        for query in range(part.start, part.stop):
            weight = times
            for name, row in distinct.items():
                if workload.asked[name][query]:
                    weight = weight * tables[name][query - start][row]
            out[query] = weight.sum()
    return out
