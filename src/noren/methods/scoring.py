"""How good a recoding is, so that candidates can be compared on one number.

The default is the error of count queries, because it weighs quasi-identifiers and secrets as an analyst would.
Information utility alone is degenerate: exact quasi-identifiers beside a sensitive column that says nothing score high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from noren.designs import draw_columns
from noren.engines import Plan, Records, Table
from noren.errors import QueryError
from noren.metrics.general import GeneralTable
from noren.metrics.information import utility_scores
from noren.metrics.losses import ncp_loss
from noren.metrics.queries import DrawnColumn, query_error
from noren.secret import Keystream
from noren.statements import CodeCells, SetCells

Objective = Literal["queries", "utility", "ncp"]
DIMENSIONS = (1, 2, 3)
QUERIES = 200


def count_query_loss(
    table: Records,
    view: GeneralTable,
    dimensions: Sequence[int] = DIMENSIONS,
    drawn: Mapping[str, DrawnColumn] | None = None,
) -> float:
    """Mean relative error of random count queries with one to three conditions, one of them on a secret."""
    trees = {name: fact.tree for name, fact in table.columns.items() if fact.tree is not None}
    secret = next(iter(table.sensitive), None)
    errors = []
    for number in dimensions:
        if number <= len(view.measured):
            try:
                errors.append(query_error(view, trees, secret, number, QUERIES, drawn=drawn).mean)
            except QueryError:
                continue
    return float(np.mean(errors)) if errors else 0.0


def drawn_columns(table: Table, records: Records, plan: Plan) -> dict[str, DrawnColumn]:
    """Sets drawn as the plan says for the records that it keeps, in a form that queries can be asked of."""
    out = {}
    keep = slice(None) if plan.keep is None else plan.keep
    for name, design in plan.designs.items():
        index = table.columns[name].domain.index
        places = np.array([index[value] for value in records.columns[name].domain.values], np.int64)
        sets = draw_columns({name: design}, {name: places[records.codes[name][keep]]}, Keystream())[name]
        if isinstance(sets, CodeCells):  # one value is a set of one
            sets = SetCells.from_codes(sets.d, sets.data[:, None])
        out[name] = DrawnColumn.of(design, sets, places)
    return out


def loss_of(table: Records, view: GeneralTable, objective: Objective) -> float:
    """The objective as a loss: lower is better."""
    if objective == "queries":
        return count_query_loss(table, view)
    if objective == "utility":
        return 1 - utility_scores(view).total
    return ncp_loss(view)
