"""The beliefs from the quasi-sensitive terms of a group, the requirements on them, and the cost of suppression.

K(t), beliefs and distances come from `kernels/linkage.py`; `search` computes them another way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.methods.suppress.kernels.linkage import Postings, belief_sums, group_measures
from noren.models import QSCloseness, QSDiversity
from noren.models.base import Model
from noren.models.term_check import TermModel
from noren.schema.knowledge import Knowledge
from noren.statements import TermCells

Unlinked = Literal["ignore", "prior"]
"""What a record that links to no label contributes to its group's belief: nothing, or the prior."""
Array = NDArray[Any]

TOLERANCE = 1e-12
"""Rounding allowed on a requirement: beliefs are means of at most 1."""


@dataclass(frozen=True)
class TermRequirement:
    """QS (c, l)-diversity ("cl"): p1 <= c (p_l + p_{l+1} + ...); QS t-closeness ("t"): distance to alpha <= t.

    "emd" takes all labels to be equally far apart, with "no label" as one more value for belief that nothing takes.
    """

    kind: Literal["cl", "t"]
    c: float = 1.0
    l: int = 2  # noqa: E741
    t: float = 0.4
    metric: Literal["l2", "emd"] = "l2"

    def holds(self, measures: Array) -> NDArray[np.bool_]:
        """Which groups satisfy it, from the columns of `measure_groups`."""
        if self.kind == "cl":
            return np.asarray(measures[:, 1] <= self.c * measures[:, 2] + TOLERANCE)
        if self.metric == "l2":
            return np.asarray(measures[:, 3] <= self.t**2 + TOLERANCE)
        return np.asarray(measures[:, 4] <= self.t + TOLERANCE)


def removal_cost(sizes: Array, removed: Array) -> float:
    """Return equation 2 for one group, from each record's number of terms and of suppressed terms; 0 if there were
    none."""
    harmonic = harmonic_sums(int(np.max(sizes, initial=0)))
    most = harmonic[sizes].sum()
    return float((harmonic[sizes] - harmonic[np.asarray(sizes) - removed]).sum() / most) if most else 0.0


@cache
def harmonic_sums(most: int) -> NDArray[np.float64]:
    """0, 1, 1 + 1/2, ..."""
    return np.concatenate(([0.0], np.cumsum(1 / np.arange(1, most + 1))))


def priced_cost(prices: Array, removed: Array) -> float:
    """Return the cost of one group's suppressed entries as a share of the price of all; 0 if there were no terms."""
    most = float(prices.sum())
    return float(prices[removed].sum() / most) if most else 0.0


def postings_of(knowledge: Knowledge) -> Postings:
    """Return a knowledge table in the form of the kernels."""
    logs = None if knowledge.pairs is None else knowledge.pairs.logs
    return Postings(*knowledge.postings, knowledge.bits, knowledge.label_weights, logs)


def estimated_prior(bounds: Array, codes: Array, knowledge: Knowledge) -> NDArray[np.float64]:
    """Return alpha, the mean belief over the whole table; records without a possible label contribute nothing."""
    sums = belief_sums(bounds, codes, postings_of(knowledge))
    return np.asarray(sums / max(1, bounds.size - 1))


def measure_groups(
    order: Array,
    group_bounds: Array,
    bounds: Array,
    codes: Array,
    knowledge: Knowledge,
    alpha: Array | None = None,
    *,
    l: int = 1,  # noqa: E741
    unlinked: Unlinked = "ignore",
) -> NDArray[np.float64]:
    """Return linked records, largest belief, tail from l on, squared L2 and earth mover's distance to alpha of every
    group."""
    prior = np.zeros(len(knowledge.labels)) if alpha is None else np.asarray(alpha, np.float64)
    postings = postings_of(knowledge)
    return np.asarray(group_measures(order, group_bounds, bounds, codes, postings, prior, unlinked == "prior", l))


@dataclass(frozen=True)
class Linkage:
    """Columns that one knowledge table links to labels, their combined terms, and the requirements on every group."""

    names: tuple[str, ...]
    knowledge: Knowledge
    cells: TermCells
    """All terms of a record; codes outside the knowledge are unknown terms."""
    alpha: NDArray[np.float64]
    """What is believed about a person before the release."""
    rules: tuple[tuple[TermRequirement, Unlinked], ...]

    def split(self, kept: NDArray[np.bool_], columns: Mapping[str, TermCells]) -> dict[str, TermCells]:
        """Return the remaining terms of every column if only these entries of the joint sets are published."""
        width = np.int64(self.cells.d)
        left = (self.cells.owner * width + self.cells.data)[kept]
        out = {}
        for name in self.names:
            cells = columns[name]
            key = cells.owner * width + cells.data
            place = np.searchsorted(left, key)
            inside = np.zeros(len(key), bool)
            within = place < len(left)
            inside[within] = left[place[within]] == key[within]
            out[name] = cells.keep(inside)
        return out


def linkages(table: Records, requirements: Sequence[Model]) -> list[Linkage]:
    """Return one linkage per knowledge table, in the order of the columns."""
    together: dict[int, list[str]] = {}
    for name, column in table.terms.items():
        together.setdefault(id(column.knowledge), []).append(name)
    out = []
    for names in together.values():
        knowledge = table.terms[names[0]].knowledge
        cells = _join_cells([table.terms[name].cells for name in names])
        prior = table.terms[names[0]].prior if knowledge.priors is None else knowledge.priors
        if prior is None:
            prior = estimated_prior(cells.offsets, cells.data, knowledge)
        asked = [m for m in requirements if isinstance(m, TermModel) and set(m.on) & set(names)]
        rules = tuple(dict.fromkeys((requirement_of(model), model.unlinked) for model in asked))
        out.append(Linkage(tuple(names), knowledge, cells, np.asarray(prior, np.float64), rules))
    return out


def requirement_of(model: Model) -> TermRequirement:
    """A requirement on terms in the form of the searches."""
    if isinstance(model, QSDiversity):
        return TermRequirement("cl", c=model.c, l=model.l)
    assert isinstance(model, QSCloseness)
    return TermRequirement("t", t=model.t, metric=model.distance)


def _join_cells(parts: Sequence[TermCells]) -> TermCells:
    if len(parts) == 1:
        return parts[0]
    d = max(part.d for part in parts)
    record, code = (np.concatenate(found) for found in zip(*((p.owner, p.data) for p in parts), strict=True))
    return TermCells.from_entries(d, len(parts[0]), record, code)
