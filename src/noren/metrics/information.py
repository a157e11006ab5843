"""Information that a release retains (paper 004, Definition 14).

A cell that leaves v base values open retains 1/v. A group of an anatomised column leaves open the different values it
holds; that it also publishes their counts is not rewarded, so nodes and groups over the same values compare. A dropped
record retains nothing. The measure alone is a poor guide: exact quasi-identifiers beside a sensitive column that says
nothing score high. Therefore the parts are always distinguished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from noren.errors import QueryError
from noren.metrics.general import GeneralTable


@dataclass(frozen=True)
class Utility:
    """Return the share of the original's information that the release keeps: 1 for the original."""

    total: float
    quasi: float | None
    """Of the quasi-identifiers alone; None without any."""
    sensitive: float | None
    """Of the sensitive columns alone; None without any."""


def column_information(table: GeneralTable, name: str) -> float:
    """Return the sum over published records of 1 / possible base values; n for an exact column."""
    column = table.column(name)
    return float((1 / np.maximum(column.spread, 1))[column.cells[table.keep]].sum())


def information_score(table: GeneralTable) -> float:
    """Return I(G) over all quasi-identifiers and sensitive columns (Definition 14)."""
    return sum(column_information(table, name) for name in table.measured)


def utility_scores(table: GeneralTable) -> Utility:
    """um = I(G) / I(original), in total and apart."""
    if not table.measured:
        raise QueryError("no column can be measured.", hint="Give a quasi-identifier or a sensitive column.")
    kept = {name: column_information(table, name) / table.n for name in table.measured}

    def mean(names: Sequence[str]) -> float | None:
        return sum(kept[name] for name in names) / len(names) if names else None

    return Utility(sum(kept.values()) / len(kept), mean(table.quasi), mean(table.sensitive))


def utility_score(table: GeneralTable) -> float:
    """um over all columns. Read it beside the two parts."""
    return utility_scores(table).total


def quasi_utility_score(table: GeneralTable) -> float:
    """Return the utility um of the quasi-identifiers only."""
    table.quasi_columns()
    return float(utility_scores(table).quasi or 0.0)


def sensitive_utility_score(table: GeneralTable) -> float:
    """Return the utility um of the sensitive columns only."""
    if not table.sensitive:
        raise QueryError("the table has no sensitive column.", hint="Give a column that role in the policy.")
    return float(utility_scores(table).sensitive or 0.0)
