"""Suppress more people, until who is missing discloses nothing.

What a method leaves out is a class of which nothing is published, and it must be as good a class as any other. Where it
is not, whole classes of those who would have been published join it, first those that help most: then all other classes
stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noren.engines import Plan, RandomOrder, Records
from noren.engines.left_out import Members
from noren.metrics.general import GeneralTable, view_of
from noren.statements import TermCells

FINE = 1e-3
"""Differences in what classes add to the balance of secrets that do not count."""


def completed(
    plan: Plan, records: Records, members: Members, limit: int, order: RandomOrder
) -> NDArray[np.bool_] | None:
    """Return the final suppressed records, at most `limit`; None if no further classes suffice."""
    out = np.zeros(records.n, bool) if plan.keep is None else ~plan.keep
    if members.holds(out):
        return out
    return walked(out, *_walk(plan, records, members, out, order), members, limit)


def without(plan: Plan, records: Records, out: NDArray[np.bool_]) -> Plan:
    """Return the plan without these records, which are whole groups; the results of searches are restricted to the
    others."""
    view = view_of(records, plan)
    group = np.full(records.n, -1, np.int64)
    group[view.keep] = view.classes
    stay = np.unique(group[~out])
    searches = []
    for search in plan.searches:
        had = _terms([records.terms[name].cells for name in search.columns], ~out)
        left = _terms([plan.omitted.get(name, records.terms[name].cells) for name in search.columns], ~out)
        searches.append(search.among(stay, had, had - left))
    return replace(plan, keep=~out, searches=tuple(searches))


def _terms(parts: list[TermCells], kept: NDArray[np.bool_]) -> int:
    """Return the number of terms of some records; a term in two columns counts once."""
    record, code = (np.concatenate(found) for found in zip(*((one.owner, one.data) for one in parts), strict=True))
    return len(
        TermCells.from_entries(max(one.d for one in parts), len(kept), record[kept[record]], code[kept[record]]).data
    )


def walked(
    out: NDArray[np.bool_], order: NDArray[np.int64], units: NDArray[np.int64], members: Members, limit: int
) -> NDArray[np.bool_] | None:
    """Return the suppressed people, with the fewest first classes of an order that meet the requirements."""
    sizes = np.bincount(units[~out], minlength=len(order))
    order = order[sizes[order] <= limit - int(out.sum())]
    order = order[: int(np.searchsorted(np.cumsum(sizes[order]), limit - int(out.sum()), side="right"))]
    place = np.full(len(sizes) + 1, len(order), np.int64)
    place[order] = np.arange(len(order))
    rank = place[np.where(out, len(sizes), units)]

    def with_first(count: int) -> NDArray[np.bool_]:
        return out | (rank < count)

    enough = _least(lambda count: members.holds(with_first(count)), len(order))
    return None if enough is None else with_first(enough)


def _least(holds: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number from 1 to `most` that holds, by doubling and bisection.

    It is the smallest if all numbers above one that holds do too; otherwise it holds, but a smaller one may as well.
    """
    high = 1
    while high < most and not holds(high):
        high *= 2
    high = min(high, most)
    if high < 1 or not holds(high):
        return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _walk(
    plan: Plan, records: Records, members: Members, out: NDArray[np.bool_], order: RandomOrder
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an order of classes, and the class of every record: those whose secrets the suppressed records lack come
    first, of equal ones the cheapest."""
    view = view_of(records, plan)
    units = _units(view)
    count = int(units.max(initial=-1)) + 1
    kept, chance = units[~out], order(count)
    cost = np.bincount(kept, 1.0 - _losses(view)[~out], minlength=count)
    total = np.bincount(kept, _lean(members, out)[~out], minlength=count)
    lean = np.round(total / np.maximum(1, np.bincount(kept, minlength=count)) / FINE)
    return np.lexsort([chance, cost, lean]), units


def _units(view: GeneralTable) -> NDArray[np.int64]:
    """Return the published class or group of every record; -1 for the suppressed people."""
    grouped = [column.cells for column in view.columns.values() if column.groups is not None]
    units = np.full(view.n, -1, np.int64)
    units[view.keep] = grouped[0][view.keep] if grouped else view.classes
    return units


def _losses(view: GeneralTable) -> NDArray[np.float64]:
    """Return the loss of every record: the mean share of each column's values that a cell leaves possible."""
    parts = [(one.spread[one.cells] - 1) / max(1, len(one.domain) - 1) for one in map(view.column, view.quasi)]
    return np.mean(parts, axis=0) if parts else np.zeros(view.n)


def _lean(members: Members, out: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return for every record how much more frequent its secrets with a requirement are among the suppressed than among
    all."""
    records, lean = members.records, np.zeros(members.records.n)
    required = {name for model in members.requirements for name in model.on}
    for name in (name for name in records.sensitive if name in required):
        codes, d = records.codes[name], records.columns[name].d
        mine = np.bincount(codes[out], minlength=d) / max(1, int(out.sum()))
        lean += (mine - np.bincount(codes, minlength=d) / max(1, records.n))[codes]
    return lean
