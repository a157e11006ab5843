"""Methods part by part, where a table does not fit the machine that decides.

Cuts are nested: what holds of the classes of every part holds of all of them, also where classes of two parts come out
alike, for every requirement here survives putting classes together. A method then decides each part as it would decide
a table. What compares classes with the whole table, or counts people over all of it, cannot be decided so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.engines import RandomOrder, Recode, Records, Table
from noren.engines.apart import Cuts, PartFound, told_pairs
from noren.errors import NorenError, RequirementNotMet
from noren.methods.base import ClassMethod
from noren.methods.cover import automatic_hierarchy
from noren.methods.mondrian.space import Space, leaf_order, losses_of, space_of
from noren.methods.requirements import Compiled, compiled
from noren.metrics.general import view_of
from noren.metrics.losses import granularity_score, ncp_loss
from noren.models.base import Model
from noren.schema.column import Column
from noren.schema.nodes import tree_of
from noren.schema.roles import Role

SAMPLE = 50_000
"""Records that decide where a table is cut into parts."""
EVEN = 0.3
"""The share of a part that lies on each side of a cut, at least, where some cut leaves as much."""
TRIED = 8
"""Positions of a cut that are tried in every column."""


@dataclass(frozen=True)
class DecidePart:
    """A method that decides about some records; may travel."""

    method: ClassMethod
    requirements: tuple[Model, ...]
    columns: Mapping[str, Column]
    codes: Mapping[str, NDArray]

    @classmethod
    def of(cls, table: Table, method: ClassMethod) -> DecidePart:
        """Intervals that a method would make are made of the whole table, so that all parts have the same."""
        columns, places = table.seen
        if method.makes_intervals:
            columns = {name: _with_intervals(column, table.counts[name]) for name, column in columns.items()}
        return cls(method, table.requirements, columns, places)

    def seen(self, codes: Mapping[str, NDArray]) -> Records:
        """Some records as the method sees them."""
        known = {name: self.codes[name][codes[name]] if name in self.codes else codes[name] for name in self.columns}
        return Records(len(next(iter(known.values()))), self.columns, known)

    def __call__(self, codes: Mapping[str, NDArray], order: RandomOrder) -> tuple[PartFound, Mapping[str, NDArray]]:
        records = self.seen(codes)
        places = order(records.n)
        plan = self.method.decided_part(records.taken(places), self.requirements, order).placed(places, records.n)
        if plan.keep is not None or not all(isinstance(one, Recode) for one in plan.treatments.values()):
            raise NorenError(f"the method {self.method.name!r} left out records of a part; nothing is published.")
        pairs, at = told_pairs(plan, records, list(self.columns))
        view = view_of(records, plan)
        figures = {"ncp_loss": ncp_loss(view), "granularity_score": granularity_score(view)} if records.quasi else {}
        return PartFound(records.n, pairs, plan.notes, figures), at


def _with_intervals(column: Column, counts: NDArray[np.int64]) -> Column:
    if column.tree is not None or column.role.needs_requirement:
        return column
    tree = automatic_hierarchy(column, np.flatnonzero(counts))
    return column.met(column.name, column.domain, hierarchy=tree)


def obstacles(method: ClassMethod, requirements: Sequence[Model], table: Table) -> list[str]:
    """Why a table cannot be decided part by part, each by name."""
    found = [] if method.apart else [f"the method {method.name!r} sees all records at once"]
    if method.suppression:
        found.append("who is left out is judged over all records (suppression)")
    if table.people_key:
        found.append("people with several rows are counted over all records ([people] key)")
    if method.model_dump().get("blind"):
        found.append("one class size is found for all records (blind)")
    if any(column.role is Role.QUASI_SENSITIVE for column in table.columns.values()):
        found.append("terms are read together with all others (quasi-sensitive)")
    for model in requirements:
        if model.relative or model.of_mechanism or model.invariant or not model.coarsening_preserves:
            found.append(f"{model.model} compares with the whole table")
    return found


# ---------------------------------------------------------------------- where to cut


def cuts_of(records: Records, parts: int, largest: float) -> Cuts:
    """Cuts by which no part holds more than a share `largest` of these records, which are a sample, or about `parts`.

    Each is the cut of the largest part, among even ones, after which the parts' general values say most.
    """
    space = space_of(records, {})
    names = records.quasi
    columns = [space.rows[:, b] for b in range(len(names))]
    axes: list[int] = []
    bounds: list[int] = []
    ways: list[list[int]] = []
    leaves: list[tuple[NDArray[np.int64], tuple[int, int] | None]] = [(np.arange(records.n), None)]
    stuck: list[tuple[NDArray[np.int64], tuple[int, int] | None]] = []
    while leaves and len(leaves) + len(stuck) < parts:
        at = max(range(len(leaves)), key=lambda i: len(leaves[i][0]))
        rows, above = leaves.pop(at)
        found = _best_cut(rows, columns, space) if len(rows) > largest * records.n else None
        if found is None:
            stuck.append((rows, above))
            continue
        axis, bound = found
        step = len(axes)
        axes.append(axis)
        bounds.append(bound)
        ways.append([0, 0])
        if above is not None:
            ways[above[0]][above[1]] = step
        low = columns[axis][rows] < bound
        leaves += [(rows[low], (step, 0)), (rows[~low], (step, 1))]
    for number, (_, above) in enumerate([*leaves, *stuck]):
        if above is not None:
            ways[above[0]][above[1]] = ~number
    ranks = tuple(_rank(records.columns[name]) for name in names)
    done = tuple((low, high) for low, high in ways)
    return Cuts(names, ranks, tuple(axes), tuple(bounds), done, len(leaves) + len(stuck))


def _rank(column: Column) -> NDArray[np.int32]:
    """Where every value stands in the order by which `space_of` cuts the column."""
    rank = np.arange(column.d, dtype=np.int32)
    if column.tree is not None:
        rank[leaf_order(tree_of(column.tree))] = np.arange(column.d, dtype=np.int32)
    return rank


def _best_cut(rows: NDArray[np.int64], columns: Sequence[NDArray], space: Space) -> tuple[int, int] | None:
    """The column and the position of the best cut of some records; None where all are alike."""
    best: tuple[float, int, int] | None = None
    for axis, ranks in enumerate(columns):
        mine = ranks[rows]
        for bound in _positions(mine):
            low = mine < bound
            lost = _lost(rows[low], space) + _lost(rows[~low], space)
            if best is None or lost < best[0]:
                best = (lost, axis, bound)
    return None if best is None else best[1:]


def _positions(ranks: NDArray) -> list[int]:
    """Some positions that leave enough on both sides, or the one that parts most evenly."""
    values, counts = np.unique(ranks, return_counts=True)
    if len(values) < 2:
        return []
    below = np.cumsum(counts)[:-1] / len(ranks)
    even = np.argsort(np.abs(below - 0.5), kind="stable")[:TRIED]
    good = even[(below[even] >= EVEN) & (below[even] <= 1 - EVEN)]
    return [int(values[i + 1]) for i in (good if len(good) else even[:1])]


def _lost(rows: NDArray[np.int64], space: Space) -> float:
    """What some records lose together as one class."""
    return float(losses_of(space.rows[rows], np.array([0, len(rows)]), space.costs).loss[0] * len(rows))


def sound(cuts: Cuts, sizes: NDArray[np.int64], held: Mapping[str, NDArray[np.int64]], rules: Compiled) -> int | None:
    """A part whose records do not meet the requirements as one class; None where all do.

    sizes: records of every part. held: (parts, values) how often each part has every secret.
    """
    for part in range(cuts.parts):
        hists = np.zeros_like(rules.rules.reference)
        for j, name in enumerate(rules.sensitive):
            hists[j, : held[name].shape[1]] = held[name][part]
        if not rules.holds(hists, int(sizes[part])):
            return part
    return None


def rules_of(decide: DecidePart) -> Compiled:
    """The requirements on a part, in numbers."""
    nobody = {name: np.zeros(0, np.int64) for name in decide.columns}
    return compiled(Records(0, decide.columns, nobody), decide.requirements)


def demand_sound(table: Table, rules: Compiled, held: Mapping[str, NDArray[np.int64]]) -> None:
    """Refuse a table that does not meet the requirements as one class."""
    hists = np.zeros_like(rules.rules.reference)
    for j, name in enumerate(rules.sensitive):
        hists[j, : held[name].shape[1]] = held[name].sum(axis=0)
    if not rules.holds(hists, table.n):
        message = f"the requirements do not hold even if all {table.n:,} records form one class."
        raise RequirementNotMet(message, hint="Ask for less protection, or leave out the columns that cannot reach it.")
