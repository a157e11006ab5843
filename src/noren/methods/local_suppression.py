"""Local suppression: single cells are suppressed until every record equals k - 1 others.

Where generalisation makes all cells of a class say less, this withholds a few and leaves the rest exact. A withheld
cell is a generalised value that covers the whole domain. Records look alike only if they withhold the same columns and
agree in the others: a withheld cell is not taken to match everything, as some tools count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from noren.engines import Plan, RandomOrder, Recode, Records
from noren.errors import PolicyError, Problem, RequirementNotMet
from noren.methods.base import ClassMethod, Method
from noren.methods.requirements import demand_reachable
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.ragged import row_numbers
from noren.schema.column import Column
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule
    from noren.methods.requirements import Compiled

SUPPRESSED = "(suppressed)"
MOST_COLUMNS = 16
"""Quasi-identifiers beyond which the sets of columns are too many to try."""
MOST_SETS = 4096
"""Sets of columns that are tried, the cheapest first; with more than twelve columns not all of them."""


class LocalSuppression(ClassMethod):
    """Suppress the cheapest cells of records that match too few others.

    A set of columns costs the sum of their importance. What closes most records for least cost comes first: groups of
    records that agree outside the set, filled up to k, where that is cheaper, with records of classes that have more
    than they need. With requirements beyond k-anonymity no record is lent: that could take a class its diversity.
    """

    name: Literal["local-suppression"] = "local-suppression"
    sentence: ClassVar[str] = (
        "Single cells are suppressed until every record matches enough others; the rest is published exactly."
    )
    importance: dict[str, float] = Field(
        default_factory=dict, description="Cost of a suppressed cell by column; 1 by default."
    )

    @field_validator("importance")
    @classmethod
    def _positive(cls, value: dict[str, float]) -> dict[str, float]:
        if any(not 0 < weight < float("inf") for weight in value.values()):
            raise ValueError("importance must be above 0")
        return value

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls()]

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.moves import Moves

        return Moves(
            "if a group of people with equal quasi-identifiers fails, cells of all of them are suppressed", partly=False
        )

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, requirements, 0.0)
        quasi = [name for name, role in roles.items() if role is Role.QUASI_IDENTIFIER]
        for name in self.importance:
            if name not in quasi:
                message = f"{name!r} is not a quasi-identifier, so none of its cells are suppressed."
                found.append(Problem(f"method.importance.{name}", message, "Remove it."))
        if self.suppression:
            message = f"the method {self.name!r} suppresses cells, not records."
            found.append(Problem("method.suppression", message, "Set suppression = 0."))
        if len(quasi) > MOST_COLUMNS:
            message = f"{len(quasi)} quasi-identifiers; this method takes at most {MOST_COLUMNS}."
            found.append(Problem("attributes", message, 'Use [method] name = "mondrian".'))
        if not requirements:
            found.append(Problem("require", f"the method {self.name!r} needs a requirement.", 'Add "k-anonymity".'))
        return found

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        from noren.methods.requirements import compiled

        demand_reachable(table, requirements)
        search = _Search.of(table, compiled(table, requirements), requirements, self.importance, order(table.n))
        hidden = search.run()
        columns: dict[str, Recode] = {}
        for j, name in enumerate(table.quasi):
            withheld = (hidden >> j) & 1 == 1
            if withheld.any():
                columns[name] = _withhold_cells(table.columns[name], table.codes[name], withheld)
        cells = int(sum(((hidden >> j) & 1).sum() for j in range(len(table.quasi))))
        cost, least = search.cost_of(hidden), search.lower_bound()
        note = f"{cells:,} of {table.n * len(table.quasi):,} cells suppressed"
        if cost > 0:
            note += f"; their cost is {cost:g}, and no choice can cost less than {least:g}"
        return Plan(columns, notes=(note,))


def _withhold_cells(column: Column, codes: NDArray, withheld: NDArray[np.bool_]) -> Recode:
    """Return the column with some suppressed cells."""
    if column.tree is not None:
        tree = tree_of(column.tree)
        return Recode(tree.nodes, np.where(withheld, tree.root, codes.astype(np.int64)))
    d = column.d
    label = SUPPRESSED
    while label in column.domain.index:
        label += " "
    nodes = Nodes.from_runs(d, [*column.domain.values, label], [*([(v, v + 1)] for v in range(d)), [(0, d)]])
    return Recode(nodes, np.where(withheld, d, codes.astype(np.int64)))


@dataclass
class _Search:
    """The search for suppressed cells, as a set of columns (a bit mask) for every record."""

    table: Records
    codes: list[NDArray[np.int64]]
    sizes: list[int]
    weights: NDArray[np.float64]
    needed: Compiled
    secrets: NDArray[np.int64]
    """(sensitive columns, records) codes."""
    k: int
    lends: bool
    """Whether a class may disclose what it has beyond k: k-anonymity is all that is asked."""
    ranks: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        table: Records,
        needed: Compiled,
        requirements: Sequence[Model],
        importance: Mapping[str, float],
        ranks: NDArray[np.int64],
    ) -> _Search:
        k = max([1, *(model.least_class_size for model in requirements)])
        if k > table.n:
            message = f"k = {k} needs at least {k} records, and the table has {table.n}."
            raise RequirementNotMet(message, hint=f"The largest k is {table.n}.")
        if len(table.quasi) > MOST_COLUMNS:
            raise PolicyError([Problem("attributes", f"more than {MOST_COLUMNS} quasi-identifiers.")])
        sizes = [table.columns[name].d for name in table.quasi]
        secrets = [table.codes[name].astype(np.int64) for name in needed.sensitive]
        return cls(
            table,
            [table.codes[name].astype(np.int64) for name in table.quasi],
            sizes,
            np.array([importance.get(name, 1.0) for name in table.quasi]),
            needed,
            np.array(secrets, np.int64).reshape(len(secrets), table.n),
            k,
            all(model.about == "classes" for model in requirements),
            ranks,
        )

    # ------------------------------------------------------------------ sets of columns

    @property
    def everything(self) -> int:
        return (1 << len(self.codes)) - 1

    def price(self, mask: int) -> float:
        return float(sum(weight for j, weight in enumerate(self.weights.tolist()) if mask >> j & 1))

    def masks(self) -> list[int]:
        """Return sets of columns in ascending order of price."""
        q = len(self.codes)
        found = [sum(1 << j for j in some) for size in range(1, q + 1) for some in combinations(range(q), size)]
        cheap = sorted(found, key=lambda mask: (self.price(mask), mask))[:MOST_SETS]
        return cheap if self.everything in cheap else [*cheap, self.everything]

    def groups(self, mask: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the group of every row: rows that agree in the columns outside the set."""
        kept = [j for j in range(len(self.codes)) if not mask >> j & 1]
        return row_numbers([self.codes[j][rows] for j in kept], [self.sizes[j] for j in kept], len(rows))

    # ------------------------------------------------------------------ what it costs

    def cost_of(self, hidden: NDArray[np.int64]) -> float:
        return float(sum(weight * ((hidden >> j) & 1).sum() for j, weight in enumerate(self.weights)))

    def lower_bound(self) -> float:
        """Return a lower bound of the cost: a record needs a class of k records that agree outside its suppressed
        cells."""
        everyone, masks, total = np.arange(self.table.n), self.masks(), 0.0
        dearest = self.price(masks[:MOST_SETS][-1])  # sets that were not tried cost at least that
        waiting = everyone[self._small(0, everyone)]
        for mask in masks:
            group = self.groups(mask, everyone)
            small = (np.bincount(group) < self.k)[group[waiting]]
            total += int((~small).sum()) * min(self.price(mask), dearest)
            waiting = waiting[small]
            if not len(waiting):
                break
        return total

    def _small(self, mask: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        group = self.groups(mask, rows)
        return np.asarray((np.bincount(group) < self.k)[group])

    # ------------------------------------------------------------------ the search

    def run(self) -> NDArray[np.int64]:
        """Return the suppressed cells of every record. Groups close in the order of their cost per record."""
        hidden = np.full(self.table.n, -1, np.int64)
        self._close(hidden, 0)
        rising = sorted(
            (self.price(mask) * max(1.0, self.k / size), -size, mask)
            for mask in self.masks()
            for size in self._starts()
        )
        for _, size, mask in rising:
            if (hidden >= 0).all():
                break
            if -size >= self.k:
                self._close(hidden, mask)
            elif mask != self.everything:
                self._fill(hidden, mask, -size)
        if self.lends:
            self._join(hidden)
        if (hidden < 0).any():
            self._put_rest(hidden)
        return hidden

    def _starts(self) -> set[int]:
        """Return how many waiting records a group may have before it is filled up: any, half of k, or k."""
        return {1, (self.k + 1) // 2, self.k} if self.lends else {self.k}

    def _close(self, hidden: NDArray[np.int64], mask: int) -> None:
        """Publish the waiting records of groups that meet all requirements."""
        rows = np.flatnonzero(hidden < 0)
        group = self.groups(mask, rows)
        hidden[rows[self._holds(rows, group)[group]]] = mask

    def _holds(self, rows: NDArray[np.int64], group: NDArray[np.int64]) -> NDArray[np.bool_]:
        counts = np.bincount(group)
        good = counts >= self.k
        if self.lends:
            return np.asarray(good)
        codes = {name: secret[rows] for name, secret in zip(self.needed.sensitive, self.secrets, strict=True)}
        judged = np.where(good[group], group, -1)
        return np.asarray(good & ~self.needed.failing(codes, judged, len(counts)))

    def _fill(self, hidden: NDArray[np.int64], mask: int, least: int) -> None:
        """Close groups of at least so many waiting records, with others from classes without suppressed cells."""
        waiting = np.flatnonzero(hidden < 0)
        shown = np.flatnonzero(hidden == 0)
        if not len(waiting) or not len(shown):
            return
        rows = np.concatenate([waiting, shown])
        group = self.groups(mask, rows)
        here, there = group[: len(waiting)], group[len(waiting) :]
        counts = np.bincount(here, minlength=int(group.max()) + 1)
        wanted = (counts >= least) & (counts < self.k)
        if not wanted.any():
            return
        own = self.groups(0, shown)
        spare = np.bincount(own) - self.k
        place = np.lexsort([self.ranks[shown], own])
        first = np.concatenate([[0], np.cumsum(np.bincount(own))[:-1]])
        nth = np.empty(len(shown), np.int64)
        nth[place] = np.arange(len(shown)) - first[own[place]]
        lent = np.flatnonzero((nth < spare[own]) & wanted[there])
        lent = lent[np.lexsort([self.ranks[shown[lent]], there[lent]])]
        target = there[lent]
        starts = (
            np.flatnonzero(np.concatenate([[True], target[1:] != target[:-1]])) if len(target) else np.zeros(0, int)
        )
        position = np.arange(len(target)) - np.repeat(starts, np.diff(np.append(starts, len(target))))
        enough = np.bincount(target, minlength=len(counts)) + counts >= self.k
        taken = enough[target] & (position < self.k - counts[target])
        hidden[shown[lent[taken]]] = mask
        hidden[waiting[(wanted & enough)[here]]] = mask

    def _join(self, hidden: NDArray[np.int64]) -> None:
        """Join each of the last few records to the class with the smallest cost: all suppress the cells in which they
        differ."""
        for row in np.flatnonzero(hidden < 0).tolist():
            done = np.flatnonzero(hidden >= 0)
            if not len(done):
                return
            classes = self._published(hidden, done)
            first = np.unique(classes, return_index=True)[1]
            masks = hidden[done[first]]
            union = masks.copy()
            for j, codes in enumerate(self.codes):
                union |= (codes[done[first]] != codes[row]).astype(np.int64) << j
            sizes = np.bincount(classes)
            prices = [np.array([self.price(mask) for mask in some.tolist()]) for some in (union, masks)]
            best = int(np.argmin((sizes + 1) * prices[0] - sizes * prices[1]))
            hidden[[row, *done[classes == best]]] = union[best]

    def _published(self, hidden: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the published class of every row."""
        shown = [np.where((hidden[rows] >> j) & 1 == 1, size, self.codes[j][rows]) for j, size in enumerate(self.sizes)]
        return row_numbers(shown, [size + 1 for size in self.sizes], len(rows))

    def _put_rest(self, hidden: NDArray[np.int64]) -> None:
        """Suppress all cells of the remaining records, joined by the smallest classes until they meet all
        requirements."""
        rows = np.flatnonzero((hidden < 0) | (hidden == self.everything))
        hidden[rows] = self.everything
        others = np.flatnonzero(hidden != self.everything)
        classes = self._published(hidden, others)
        counts = np.bincount(classes)
        queue = np.argsort(counts, kind="stable").tolist()
        while not self._holds(rows, np.zeros(len(rows), np.int64))[0]:
            if not queue:
                message = "even with every cell suppressed, the records together fail a requirement."
                raise RequirementNotMet(message, hint="Loosen the requirements.")
            joined = others[classes == queue.pop(0)]
            hidden[joined] = self.everything
            rows = np.concatenate([rows, joined])
