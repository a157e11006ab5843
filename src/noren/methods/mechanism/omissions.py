"""Suppressed terms: a method suppresses the cheapest terms that suffice, so other missing terms were never there.

Whoever knows this reads more in a published set of terms than it says: either nothing is missing, or something that
would break the requirement on the record's group if it were put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.models.kernels import figures_of, label_beliefs
from noren.models.term_check import Beliefs as GroupBeliefs
from noren.models.term_check import TermModel
from noren.ragged import chosen
from noren.schema.knowledge import Knowledge
from noren.statements import TermCells

MOST_WORK = 2_000_000_000
"""Beliefs that are computed at most; of more groups a random part is looked at."""
AT_ONCE = 1 << 23


@dataclass(frozen=True)
class LeftOut:
    """The beliefs in every row's group, from its terms and possible suppressed terms."""

    rows: NDArray[np.int64]
    """The rows that were looked at."""
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    """Per row: the largest belief in a label of its group."""
    excluded: int
    """Terms of rows that could have stayed, and so were never there."""
    possible: int
    """Terms of rows that may be missing."""


def left_out(
    cells: TermCells,
    knowledge: Knowledge,
    model: TermModel,
    alpha: NDArray[np.float64],
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
) -> LeftOut:
    """Analyse groups of rows order[bounds[g]:bounds[g + 1]] with published terms, codes of the knowledge (-1:
    unknown)."""
    shown = PublishedTerms(cells, knowledge, model, alpha)
    kept, before, after = [], [], []
    excluded = possible = 0
    for rows in _some_groups(order, bounds, shown.odds.size * shown.alpha.size):
        now, then, fine, odd = shown.group(rows)
        kept.append(rows)
        before.append(np.full(len(rows), now))
        after.append(np.full(len(rows), then))
        excluded, possible = excluded + fine, possible + odd
    return LeftOut(np.concatenate(kept), np.concatenate(before), np.concatenate(after), excluded, possible)


def _some_groups(order: NDArray[np.int64], bounds: NDArray[np.int64], work: int) -> Iterator[NDArray[np.int64]]:
    """Return all groups, or a random part if they are too many."""
    groups = np.arange(len(bounds) - 1)
    share = MOST_WORK / max(1, len(order) * work)
    if share < 1:
        rng = np.random.default_rng(0)  # which groups are looked at is no release
        groups = rng.permutation(groups)[: max(1, int(share * len(groups)))]
    for group in groups.tolist():
        yield order[bounds[group] : bounds[group + 1]]


class PublishedTerms:
    """What every row's terms disclose, and the frequency of every term."""

    def __init__(self, cells: TermCells, knowledge: Knowledge, model: TermModel, alpha: NDArray[np.float64]) -> None:
        self.cells = cells
        self.knowledge = knowledge
        self.model = model
        self.alpha = alpha
        self.unlinked = alpha if model.unlinked == "prior" else np.zeros(len(alpha))
        self.has = np.zeros((len(cells), len(knowledge.terms)), bool)
        known = cells.data >= 0
        self.has[cells.owner[known], cells.data[known]] = True
        common = np.minimum(self.has.mean(axis=0), 0.5)
        self.odds = common / (1 - common)

    def group(self, rows: NDArray[np.int64]) -> tuple[float, float, int, int]:
        """Return the largest belief before and after, how many terms were never there, and how many may be missing."""
        own = self._own(rows)
        whole = own.mean(axis=0)
        after = np.zeros(len(self.alpha))
        excluded = possible = 0
        step = max(1, AT_ONCE // (len(self.odds) * len(after)))
        for begin in range(0, len(rows), step):
            some, mine = slice(begin, begin + step), own[begin : begin + step]
            could, breaks, with_it = self.put_back(rows, some)
            weight = self.odds * breaks
            mixed = mine + (weight[:, :, None] * with_it).sum(axis=1)
            after += (mixed / (1 + weight.sum(axis=1))[:, None]).sum(axis=0)
            possible += int(breaks.sum())
            excluded += int((could & ~breaks).sum())
        return float(whole.max()), float(after.max() / len(rows)), excluded, possible

    def put_back(
        self, rows: NDArray[np.int64], some: slice = slice(None)
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
        """Return for some rows of a group and every term: whether the row could have it, whether the group would then
        fail, and the resulting beliefs."""
        own, terms = self._own(rows), len(self.odds)
        offsets, entries = chosen(self.cells.offsets, np.repeat(rows[some], terms))
        more = np.tile(np.arange(terms), len(rows[some]))
        codes = np.insert(self.cells.data[entries].astype(np.int64), offsets[1:], more)
        with_it, linked = self._beliefs(offsets + np.arange(len(offsets)), codes)
        with_it = with_it.reshape(-1, terms, len(self.alpha))
        could = linked.reshape(-1, terms) & ~self.has[rows[some]]
        changed = own.mean(axis=0) + (with_it - own[some][:, None]) / len(rows)
        table = figures_of(changed.reshape(-1, len(self.alpha)), self.alpha, self.model.tail_from)
        holds = self.model.judge_beliefs(GroupBeliefs(np.ones(len(table), np.int64), table))[1]
        return could, could & ~np.asarray(holds).reshape(could.shape), with_it

    def _own(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the belief in every label from the published rows."""
        offsets, entries = chosen(self.cells.offsets, rows)
        return self._beliefs(offsets, self.cells.data[entries])[0]

    def _beliefs(self, offsets: NDArray, codes: NDArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the belief in every label of these sets of terms, and which are linked to a label."""
        found, kind = label_beliefs(offsets, codes, *self.knowledge.links)
        linked = np.diff(found.indptr) > 0
        return np.where(linked[:, None], found.toarray(), self.unlinked)[kind], linked[kind]
