"""Left-out terms: the cheapest ones go that let a group hold, so a term that could have stayed was never there.

Whoever knows this reads more in a published set of terms than it says: either nothing is missing, or something that
would break the requirement on the record's group if it were put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.models.term_check import Beliefs as GroupBeliefs
from noren.models.term_check import TermModel
from noren.ragged import owners
from noren.schema.knowledge import Knowledge
from noren.statements import TermCells

MOST_WORK = 2_000_000_000
"""Beliefs that are computed at most; of more groups a random part is looked at."""
AT_ONCE = 1 << 23


@dataclass(frozen=True)
class LeftOut:
    """What is believed in every row's group, from its terms as they stand and with those that may be missing."""

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
    """Groups of rows order[bounds[g]:bounds[g + 1]] with published terms, codes of the knowledge (-1: unknown)."""
    shown = PublishedTerms(cells, knowledge, model, alpha)
    kept, before, after = [], [], []
    excluded = possible = 0
    for rows in _chosen(order, bounds, shown.links.size):
        now, then, fine, odd = shown.group(rows)
        kept.append(rows)
        before.append(np.full(len(rows), now))
        after.append(np.full(len(rows), then))
        excluded, possible = excluded + fine, possible + odd
    return LeftOut(np.concatenate(kept), np.concatenate(before), np.concatenate(after), excluded, possible)


def _chosen(order: NDArray[np.int64], bounds: NDArray[np.int64], work: int) -> Iterator[NDArray[np.int64]]:
    """All groups, or a random part of them where they are too many."""
    groups = np.arange(len(bounds) - 1)
    share = MOST_WORK / max(1, len(order) * work)
    if share < 1:
        rng = np.random.default_rng(0)  # which groups are looked at is no release
        groups = rng.permutation(groups)[: max(1, int(share * len(groups)))]
    for group in groups.tolist():
        yield order[bounds[group] : bounds[group + 1]]


class PublishedTerms:
    """Which labels every row leaves possible, and how common every term is."""

    def __init__(self, cells: TermCells, knowledge: Knowledge, model: TermModel, alpha: NDArray[np.float64]) -> None:
        self.model = model
        self.alpha = alpha
        self.weights = knowledge.label_weights
        bits = np.ascontiguousarray(knowledge.bits).view(np.uint8)
        self.links = np.unpackbits(bits, axis=1, bitorder="little")[:, : len(self.weights)].astype(bool)
        known, owner = cells.data >= 0, cells.owner
        self.masks = np.ones((len(cells), len(self.weights)), bool)
        np.logical_and.at(self.masks, owner[known], self.links[cells.data[known]])
        self.masks[owner[~known]] = False
        self.logs = _dense_logs(knowledge)
        self.scores = None if self.logs is None else np.zeros(self.masks.shape)
        if self.scores is not None and self.logs is not None:
            np.add.at(self.scores, owner[known], self.logs[cells.data[known]])
        self.has = np.zeros((len(cells), len(self.links)), bool)
        self.has[owner[known], cells.data[known]] = True
        common = np.minimum(self.has.mean(axis=0), 0.5)
        self.odds = common / (1 - common)

    def group(self, rows: NDArray[np.int64]) -> tuple[float, float, int, int]:
        """The largest belief before and after, how many terms were never there, how many may be missing."""
        own = self._own(rows)
        whole = own.mean(axis=0)
        after = np.zeros(len(self.weights))
        excluded = possible = 0
        step = max(1, AT_ONCE // self.links.size)
        for begin in range(0, len(rows), step):
            some, mine = slice(begin, begin + step), own[begin : begin + step]
            open_, breaks, with_it = self.put_back(rows, some)
            weight = self.odds * breaks
            mixed = mine + (weight[:, :, None] * with_it).sum(axis=1)
            after += (mixed / (1 + weight.sum(axis=1))[:, None]).sum(axis=0)
            possible += int(breaks.sum())
            excluded += int((open_ & ~breaks).sum())
        return float(whole.max()), float(after.max() / len(rows)), excluded, possible

    def put_back(
        self, rows: NDArray[np.int64], some: slice = slice(None)
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
        """For some rows of a group and every term: whether the row could have it, whether the group would then fall
        short, and what would be believed of the row."""
        own = self._own(rows)
        back = self.masks[rows[some]][:, None, :] & self.links[None]
        could = back.any(axis=2) & ~self.has[rows[some]]
        scores = None
        if self.scores is not None and self.logs is not None:
            scores = self.scores[rows[some]][:, None, :] + self.logs
        with_it = self._beliefs(back, scores)
        changed = own.mean(axis=0) + (with_it - own[some][:, None]) / len(rows)
        return could, could & ~self._holds(changed), with_it

    def _own(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The belief in every label of rows as they stand."""
        return self._beliefs(self.masks[rows], None if self.scores is None else self.scores[rows])

    def _beliefs(self, masks: NDArray[np.bool_], scores: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """The belief in every label of rows that leave these possible, given the logarithms of their pairs' weights."""
        found = masks * self.weights
        if scores is not None:
            most = np.where(masks, scores, -np.inf).max(axis=-1, keepdims=True)
            found = found * np.exp(np.where(masks, scores - np.where(np.isfinite(most), most, 0.0), -np.inf))
        total = found.sum(axis=-1, keepdims=True)
        nothing = self.alpha if self.model.unlinked == "prior" else np.zeros(len(self.weights))
        return np.asarray(np.where(total > 0, found / np.where(total > 0, total, 1.0), nothing))

    def _holds(self, beliefs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which groups with these beliefs (.., labels) would meet the requirement."""
        from noren.models import kernels as kernel

        flat = beliefs.reshape(-1, beliefs.shape[-1])
        ranked = -np.sort(-flat, axis=1)
        table = np.zeros((len(flat), kernel.COLUMNS))
        table[:, kernel.PEAK] = ranked[:, 0]
        table[:, kernel.TAIL] = ranked[:, self.model.tail_from - 1 :].sum(axis=1)
        table[:, kernel.SQUARE] = ((flat - self.alpha) ** 2).sum(axis=1)
        rest = np.abs(np.maximum(0.0, 1 - flat.sum(axis=1)) - max(0.0, 1 - float(self.alpha.sum())))
        table[:, kernel.MOVED] = (np.abs(flat - self.alpha).sum(axis=1) + rest) / 2
        good = self.model.judged(GroupBeliefs(np.ones(len(flat), np.int64), table))[1]
        return np.asarray(good).reshape(beliefs.shape[:-1])


def _dense_logs(knowledge: Knowledge) -> NDArray[np.float64] | None:
    """(terms, labels): the logarithms of pair weights, 0 where a label does not have a term; None without any."""
    if knowledge.pairs is None:
        return None
    start, of, logs = knowledge.pairs
    out = np.zeros((len(knowledge.terms), len(knowledge.labels)))
    out[owners(start), of] = logs
    return out
