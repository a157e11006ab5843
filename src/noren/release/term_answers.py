"""Counts of records by their published terms, with bounds that hold for all suppressed terms.

A record publishes some of its terms, never one that it has not. So a condition that more terms cannot unmeet is surely
met by the records whose published terms meet it, and may be met by any other: nothing says how many terms a record
lost. The estimate counts the sure records alone, `low` bounds those, `high` counts everybody the other conditions
leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.axes import Axis
from noren.estimates.counts.tabulate import HARD, Tabulation, tabulate_bounded
from noren.statements import TermCells

LEFT_OUT = "suppressed terms count as absent"
OVERLAP = "a record counts once for each of its terms, so rows overlap"


@dataclass(frozen=True)
class AskedTerms:
    """The part of a question about terms: the records that certainly meet its conditions, and a column term by term."""

    sure: NDArray[np.bool_]
    listed: TermCells | None = None

    def take(self, rows: NDArray[np.int64]) -> AskedTerms:
        return AskedTerms(self.sure[rows], None if self.listed is None else self.listed.take(rows))


def tabulate_terms(
    axes: Sequence[Axis],
    asked: AskedTerms,
    estimator: str,
    *,
    suppressed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> Tabulation:
    """Count the records that certainly meet the conditions on terms, one dimension per axis.

    A column asked for term by term adds a dimension in front. Each of its rows is what a condition on that term alone
    gives.
    """
    everybody = _tabulate_rows(axes, np.arange(len(asked.sure)), "spread", None)
    if asked.listed is None:
        found = _tabulate_rows(axes, np.flatnonzero(asked.sure), estimator, progress)
        made = replace(found, high=everybody.high + suppressed)
    elif axes and asked.listed.d:
        made = _stack_tables(
            [_tabulate_rows(axes, rows, estimator, progress) for rows in _rows_by_term(asked)], len(axes)
        )
        made = replace(made, high=np.broadcast_to(everybody.high + suppressed, made.counts.shape))
    else:
        counts = asked.listed.keep(asked.sure[asked.listed.owner]).counts().astype(np.float64)
        made = _sure(counts, np.full_like(counts, everybody.high.ravel()[0] + suppressed))
    facts = made.diagnostics | {"records": len(asked.sure)} | ({"overlap": True} if asked.listed is not None else {})
    return replace(made, assumes=_assumes(made.assumes, asked), diagnostics=facts)


def _tabulate_rows(
    axes: Sequence[Axis],
    rows: NDArray[np.int64],
    estimator: str,
    progress: Callable[[int, float], None] | None,
) -> Tabulation:
    """Return the table of some records; without axes their number."""
    if not axes:
        number = np.full(1, float(len(rows)))
        return _sure(number, number)
    taken = [
        replace(axis, cells=axis.cells.take(rows), classes=None) for axis in axes
    ]  # parts of classes are no classes
    return tabulate_bounded(taken, estimator, progress=progress)


def _sure(counts: NDArray[np.float64], high: NDArray[np.float64]) -> Tabulation:
    """Return records counted by their published terms."""
    unknown, source = np.full_like(counts, np.nan), np.full(counts.shape, "hard")
    return Tabulation(counts, unknown, counts, high, "published terms", source, 0, "", {"bounds": "hard"})


def _rows_by_term(asked: AskedTerms) -> Iterator[NDArray[np.int64]]:
    """Return for every term the records that publish it."""
    cells = asked.listed
    assert cells is not None
    entries = np.flatnonzero(asked.sure[cells.owner])
    entries = entries[np.argsort(cells.data[entries], kind="stable")]
    edges = np.searchsorted(cells.data[entries], np.arange(cells.d + 1))
    rows = cells.owner[entries]
    return (rows[start:stop] for start, stop in pairwise(edges))


def _stack_tables(tables: Sequence[Tabulation], axes: int) -> Tabulation:
    """Stack tables of single terms."""
    arrays: dict[str, Any] = {
        name: np.array([getattr(table, name) for table in tables]).reshape(len(tables), *[1] * axes)
        for name in ("counts", "std_error", "low", "interval")
    }
    facts = [table.diagnostics for table in tables]
    diagnostics = {
        "bounds": "hard",
        "converged": all(fact.get("converged", True) for fact in facts),
        "moved_into_bounds": max(fact["moved_into_bounds"] for fact in facts),
    }
    longest = max(tables, key=lambda table: len(table.assumes))
    iterations = max(table.iterations or 0 for table in tables)
    return replace(longest, iterations=iterations, diagnostics=diagnostics, **arrays)


def _assumes(coarse: str, asked: AskedTerms) -> str:
    """Return the assumption behind the counts: that of generalised values, and that no term was suppressed."""
    given = coarse.removesuffix(HARD).rstrip("; ")
    parts = [LEFT_OUT, *([OVERLAP] if asked.listed is not None else [])]
    parts += [given] if given and not given.startswith("nothing") else []
    return "; ".join([*parts, HARD])
