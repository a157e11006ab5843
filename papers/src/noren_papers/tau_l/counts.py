"""Count queries on general values (paper 004, section 5.3.3), many at a time.

A query asks for one value of the taxonomy in each of s columns, the sensitive one among them. A published record
counts by the product over these columns of the share of its cell that lies under the value asked for: leaves(b) /
leaves(t) in the paper, or a share of weights that were estimated from the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.axes import Axis
from noren.estimates.counts.tabulate import tabulate
from noren.metrics.general import GeneralColumn, GeneralTable
from noren.ragged import row_numbers
from noren.schema.column import Column
from noren.schema.nodes import tree_of
from noren.statements import CodeCells, ExactStatement, NodeStatement, Statement
from noren_papers.tau_l.sources import Prepared

Numbers = NDArray[np.float64]
Weights = Mapping[str, Numbers]


@dataclass(frozen=True)
class Queries:
    """Queries of one number of dimensions: asked[q, c] is the node asked for in column c, -1 for no condition."""

    columns: tuple[str, ...]
    asked: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.asked)

    def only(self, which: NDArray) -> Queries:
        return Queries(self.columns, self.asked[which])


def catalogue(data: Prepared) -> dict[str, NDArray[np.bool_]]:
    """column -> (nodes, base values): what every value of its taxonomy covers, the base values first."""
    return {name: tree_of(tree).nodes.membership for name, tree in data.hierarchies.items()}


def draw(data: Prepared, dimensions: int, queries: int, rng: np.random.Generator) -> Queries:
    """Random queries with a condition on the sensitive column and on `dimensions` - 1 others.

    A condition is a level of the taxonomy, drawn evenly, and one of its values that some record has, drawn evenly. The
    root is a level like the others: such a condition is met by everybody.
    """
    columns = (data.sensitive, *data.quasi_identifiers)
    rank = rng.random((queries, len(columns)))
    rank[:, 0] = -1
    met = np.argsort(np.argsort(rank, axis=1), axis=1) < dimensions
    asked = np.full((queries, len(columns)), -1, np.int64)
    for place, name in enumerate(columns):
        tree = tree_of(data.hierarchies[name])
        occurring = data.counts_of(name) > 0
        level = rng.integers(0, tree.height + 1, queries)
        for height in range(tree.height + 1):
            rows = np.flatnonzero(level == height)
            asked[rows, place] = rng.choice(np.unique(tree.at[height][occurring]), len(rows))
    return Queries(columns, np.where(met, asked, -1))


def truth(data: Prepared, members: Mapping[str, NDArray[np.bool_]], queries: Queries) -> Numbers:
    """ACT: original records that meet each query."""
    rows = [data.coded.codes[name] for name in queries.columns]
    return _totals(rows, [members[name].astype(np.float64) for name in queries.columns], queries)


def estimate(
    table: GeneralTable, members: Mapping[str, NDArray[np.bool_]], queries: Queries, weights: Weights | None = None
) -> Numbers:
    """EST: published records by the share of their cells that meets each query; evenly by leaf unless weighed."""
    columns = [table.columns[name] for name in queries.columns]
    rows = [column.cells[table.keep] for column in columns]
    given = weights or {}
    shares = [share_of(column, members[column.name], given.get(column.name)) for column in columns]
    return _totals(rows, shares, queries)


def share_of(column: GeneralColumn, members: NDArray[np.bool_], weights: Numbers | None = None) -> Numbers:
    """(asked, cells): the share of every kind of cell that lies under each value asked for.

    Where all weights under a cell are zero the leaves count alike.
    """
    even = column.overlap(members.astype(np.float64))
    if weights is None:
        return even
    inside = column.overlap(members * weights)
    whole = column.overlap(weights)
    return np.where(whole > 0, inside / np.where(whole > 0, whole, 1.0), even)


def likely_shares(table: GeneralTable, columns: Sequence[str]) -> dict[str, Numbers]:
    """How often each base value of a column occurs, by the likelihood of its published cells alone."""
    out = {}
    for name in columns:
        column = table.columns[name]
        meant = Column(role=column.role).over(name, column.domain)
        said: Statement = ExactStatement(meant) if column.nodes is None else NodeStatement(meant, column.nodes)
        axis = Axis(name, said, CodeCells(column.kinds, column.cells[table.keep]))
        out[name] = tabulate([axis], "likelihood").counts
    return out


def relative_errors(actual: Numbers, estimated: Numbers) -> Numbers:
    """|ACT - EST| / ACT, for true counts above zero."""
    return np.abs(actual - estimated) / actual


def _totals(rows: Sequence[NDArray], shares: Sequence[Numbers], queries: Queries) -> Numbers:
    """Sum over records of the product of their shares.

    Equal records are taken together, and each condition leaves fewer of them for the next; the one that leaves fewest
    comes first, and what it leaves is kept for the queries that ask for the same.
    """
    n = len(rows[0])
    number = row_numbers(list(rows), [share.shape[1] for share in shares], n)
    times = np.bincount(number).astype(np.float64)
    first = np.empty(len(times), np.int64)
    first[number] = np.arange(n)
    cells = [row[first] for row in rows]
    work = [
        (share > 0) @ np.bincount(cell, minlength=share.shape[1]) for cell, share in zip(cells, shares, strict=True)
    ]
    kept: dict[tuple[int, int], tuple[NDArray[np.int64], Numbers]] = {}
    out = np.zeros(len(queries))
    for place, query in enumerate(queries.asked):
        (_, c, node), *others = sorted((work[c][node], c, node) for c, node in enumerate(query.tolist()) if node >= 0)
        if (c, node) not in kept:
            part = shares[c][node][cells[c]]
            met = np.flatnonzero(part)
            kept[c, node] = met, times[met] * part[met]
        left, weight = kept[c, node]
        for _, c, node in others:
            part = shares[c][node][cells[c][left]]
            met = np.flatnonzero(part)
            left, weight = left[met], weight[met] * part[met]
        out[place] = weight.sum()
    return out
