"""Losses of generalised releases: lost detail of cells, and sizes of equivalence classes.

Mean over records and quasi-identifiers, dropped records included at full loss, so that dropping never pays. The
figures of different tools compare only under the same rule for one cell; each function says its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.metrics.general import GeneralColumn, GeneralTable, node_totals
from noren.metrics.information import (
    information_score,
    quasi_utility_score,
    sensitive_utility_score,
    utility_score,
)
from noren.schema.kinds import CALENDAR, NUMERIC


def ncp_loss(table: GeneralTable) -> float:
    """Return the normalised certainty penalty, 0 to 1. A cell of a numeric column without hierarchy loses (high - low)
    / range of the domain; any other (values it covers - 1) / (values of the domain - 1); a dropped record loses 1."""
    return _mean_over_cells(table, _certainty_penalty)


def granularity_score(table: GeneralTable) -> float:
    """Return 1 - mean of (leaves under the cell - 1) / (values of the domain - 1); a suppressed record scores 0."""
    return 1 - _mean_over_cells(table, _leaf_share)


def non_uniform_entropy_loss(table: GeneralTable) -> float:
    """Return the bits needed to recover true values from cells, divided by the bits at full suppression: 0 to 1.

    A cell costs -log2 P(true value | cell), P from the frequencies of the original column; in a group from the
    group's published counts (de Waal and Willenborg 1999; Gionis and Tassa 2009).
    """
    lost = whole = 0.0
    for column in table.quasi_columns():
        truth, cells = column.truth[table.keep], column.cells[table.keep].astype(np.int64)
        bits = np.log2(table.n / np.maximum(column.counts, 1))
        whole += float((bits * column.counts).sum())
        lost += float(bits[column.truth[~table.keep]].sum())
        if column.nodes is not None:
            covered = np.log2(table.n / np.maximum(node_totals(column.nodes, column.counts), 1))
            lost += float((bits[truth] - covered[cells]).sum())
        elif column.groups is not None:
            groups = column.groups
            found = np.searchsorted(groups.group * np.int64(groups.d) + groups.value, cells * groups.d + truth)
            lost += float(np.log2(groups.sizes[cells] / groups.count[found]).sum())
    return lost / whole if whole > 0 else 0.0


def average_class_size_loss(table: GeneralTable) -> float:
    """Return the mean number of published records per class."""
    if not len(table.sizes):
        raise QueryError("no record is published.", hint="Publish a release with at least one record first.")
    return float(table.sizes.mean())


def discernibility_loss(table: GeneralTable) -> float:
    """Return the discernibility: the sum of squared class sizes, plus n for each suppressed record."""
    return float((table.sizes.astype(np.float64) ** 2).sum() + float(table.dropped) * table.n)


GENERAL_METRICS: dict[str, Callable[[GeneralTable], float]] = {
    "information_score": information_score,
    "utility_score": utility_score,
    "quasi_utility_score": quasi_utility_score,
    "sensitive_utility_score": sensitive_utility_score,
    "granularity_score": granularity_score,
    "ncp_loss": ncp_loss,
    "non_uniform_entropy_loss": non_uniform_entropy_loss,
    "average_class_size_loss": average_class_size_loss,
    "discernibility_loss": discernibility_loss,
}
"""Metrics that need nothing but the table. The ending says which way is better: a loss small, a score large."""


def _mean_over_cells(table: GeneralTable, loss: Callable[[GeneralColumn], NDArray[np.float64]]) -> float:
    """Return the mean over records and quasi-identifiers of a loss that depends on the kind of cell; 1 for dropped
    records."""
    columns = table.quasi_columns()
    lost = sum(float(loss(column)[column.cells[table.keep]].sum()) + table.dropped for column in columns)
    return lost / (table.n * len(columns))


def _leaf_share(column: GeneralColumn) -> NDArray[np.float64]:
    """Return (possible values - 1) / (values - 1) for every kind of cell."""
    return np.maximum(column.spread - 1, 0) / max(1, len(column.domain) - 1)


def _certainty_penalty(column: GeneralColumn) -> NDArray[np.float64]:
    """Return the same as `_leaf_share`, but by width for intervals of numbers without a hierarchy."""
    domain, nodes = column.domain, column.nodes
    numeric = domain.edges is not None or domain.has_ends or domain.kind in (*NUMERIC, *CALENDAR)
    if nodes is None or column.belongs_to_tree or not numeric or not domain.is_ranked or len(domain.plain) < 2:
        return _leaf_share(column)
    places = domain.line()
    members, bounds = nodes.flat_members()
    width = np.fmax.reduceat(places[members], bounds[:-1]) - np.fmin.reduceat(places[members], bounds[:-1])
    beside = np.logical_or.reduceat(np.isnan(places[members]), bounds[:-1]) & ~np.isnan(width)
    return np.asarray(np.nan_to_num(width) + beside / len(domain))
