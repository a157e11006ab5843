"""How good a recoding is, so that candidates can be compared on one number.

The default is the error of count queries, because it weighs quasi-identifiers and secrets as an analyst would.
Information utility alone is degenerate: exact quasi-identifiers beside a sensitive column that says nothing score high.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.cells import GroupTable
from noren.errors import QueryError
from noren.methods.base import CodedTable, NodeColumn, Recoding
from noren.metrics.general import GeneralTable, general_table
from noren.metrics.information import utility_scores
from noren.metrics.losses import ncp_loss
from noren.metrics.queries import query_error
from noren.schema.nodes import Nodes

Objective = Literal["queries", "utility", "ncp"]
DIMENSIONS = (1, 2, 3)
QUERIES = 200


def view_of(table: CodedTable, recoding: Recoding) -> GeneralTable:
    """Truth beside publication, for the metrics. It never leaves the holder."""
    recoded: dict[str, tuple[Nodes | GroupTable, NDArray]] = {}
    for name, column in recoding.columns.items():
        recoded[name] = (column.nodes if isinstance(column, NodeColumn) else column.table, column.data)
    return general_table(
        {name: fact.role for name, fact in table.columns.items()},
        {name: fact.domain for name, fact in table.columns.items()},
        table.codes,
        recoded,
        recoding.keep,
    )


def count_query_loss(table: CodedTable, view: GeneralTable, dimensions: Sequence[int] = DIMENSIONS) -> float:
    """Mean relative error of random count queries with one to three conditions, one of them on a secret."""
    trees = {name: fact.hierarchy for name, fact in table.columns.items() if fact.hierarchy is not None}
    secret = next(iter(table.sensitive), None)
    errors = []
    for number in dimensions:
        if number <= len(view.measured):
            try:
                errors.append(query_error(view, trees, secret, number, QUERIES).mean)
            except QueryError:
                continue
    return float(np.mean(errors)) if errors else 0.0


def loss_of(table: CodedTable, view: GeneralTable, objective: Objective) -> float:
    """The objective as a loss: lower is better."""
    if objective == "queries":
        return count_query_loss(table, view)
    if objective == "utility":
        return 1 - utility_scores(view).total
    return ncp_loss(view)
