"""Moved people: a group keeps what the requirement permits, and records of too frequent secrets move on.

Whoever knows how many people the group had sees how many left. What stayed shows which secret was too common: the
ones that cannot be put back without breaking the requirement. So those who left have one of these, often the only one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.methods.mechanism.rule import Beliefs, Left, Rule
from noren.methods.mechanism.sight import Sight, normal
from noren.methods.mechanism.skips import join_residue

DRAWS = 4_000
LARGEST = 24
"""People of a group up to which it is asked why nobody of it stayed: in a larger one somebody always does."""


@dataclass(frozen=True)
class Moves(Rule):
    """The rule of groups that close from the most precise to the most generalised, without too frequent secrets.

    nested: classes of generalised values are groups as well; otherwise only those of equal quasi-identifiers are, and
    all others hold what moved out of them. partly: a group may close in part; otherwise it moves as a whole.
    along_curve: what moved to the end lies in groups along a Hilbert curve. No bound: that people who moved together
    have one secret, say, is joined with nothing that later classes hold.
    """

    says: str
    nested: bool = False
    partly: bool = True
    along_curve: bool = False

    bounded: ClassVar[bool] = False

    def beliefs(self, sight: Sight) -> Beliefs:
        flow = _Flow(sight, self.partly)
        flow.run(self._closing(sight))
        found = flow.beliefs()
        return join_residue(sight, found) if self.along_curve else found

    def _closing(self, sight: Sight) -> NDArray[np.int64]:
        """Return the classes that closed by the rule, in order; the others hold the rest."""
        covered = np.bincount(sight.pair_class, minlength=sight.classes)
        precise = (1 / np.maximum(sight.width, 1)).mean(axis=1) if sight.width.shape[1] else np.ones(sight.classes)
        closing = (covered < sight.items) if self.nested else (covered == 1)
        found = np.flatnonzero(closing & (covered > 0))
        return found[np.argsort(-precise[found], kind="stable")]


class _Flow:
    """The expected movements of the people of every item, class by class, for every secret."""

    def __init__(self, sight: Sight, partly: bool) -> None:
        self.sight = sight
        self.partly = partly
        self.fresh = sight.people.astype(np.float64)
        """People of whom no class has said anything yet."""
        self.open = np.zeros((sight.items, sight.d))
        """People who left a class, by what they must have."""
        self.after = sight.before.copy()
        self.told = np.zeros(sight.items, bool)
        self.left: list[Left] = []

    def run(self, closing: NDArray[np.int64]) -> None:
        sight = self.sight
        by_class = np.argsort(sight.pair_class, kind="stable")
        bounds = np.searchsorted(sight.pair_class[by_class], np.arange(sight.classes + 1))
        leaving = _leaving(sight)
        last = np.ones(sight.classes, bool)
        last[closing] = False
        for one in closing.tolist():
            self._close(one, sight.pair_item[by_class[bounds[one] : bounds[one + 1]]], leaving[one])
        self._settle(last)

    def _close(self, one: int, items: NDArray[np.int64], leaving: NDArray[np.bool_]) -> None:
        """Close a class: it keeps its rows; others of the group left with a too frequent secret."""
        sight = self.sight
        stayed, before = sight.counts[one], self.open[items].sum(axis=0)
        fresh = self.fresh[items]
        moved = float(before.sum() + fresh.sum() - stayed.sum())
        gone = np.zeros(sight.d)
        if moved > 1e-9:
            some = leaving if self.partly and leaving.any() else np.ones(sight.d, bool)
            gone = moved * some * sight.overall / max(1e-300, float(sight.overall[some].sum()))
            if self.partly and leaving.sum() == 1 and len(items) == 1 and not before.any():
                self.left.append(Left(items, stayed, int(leaving.argmax())))
        whole = stayed + gone
        rest = np.maximum(whole - before, 0.0)
        if before.any():  # a difference of expected numbers: nobody is certain by that alone
            rest = rest + (1 + np.sqrt(before.sum())) * whole / whole.sum()
        share = rest / rest.sum() if rest.sum() > 0 else whole / whole.sum()
        new = items[fresh > 0]
        self.after[new] = share
        self.told[new] = True
        fraction = np.where(whole > 0, gone / np.where(whole > 0, whole, 1.0), 0.0)
        self.open[items] = (self.open[items] + fresh[:, None] * share) * fraction
        self.fresh[items] = 0.0

    def _settle(self, last: NDArray[np.bool_]) -> None:
        """Conclude about people of whom nothing stayed anywhere."""
        sight = self.sight
        waiting = np.flatnonzero(self.fresh > 0)
        if not len(waiting):
            return
        total = sight.counts[last].sum(axis=0)
        others = np.maximum(total - self.open.sum(axis=0), 0.0)
        factor = (others + 1) / (total + 1)  # expected numbers: nobody is certain by their difference alone
        pooled = sight.pooled(last, self.fresh + self.open.sum(axis=1))[waiting]
        mine = pooled * factor
        mine = np.where(mine.sum(axis=1, keepdims=True) > 0, mine, pooled)
        pool = others / others.sum() if others.sum() > 0 else sight.overall
        for n in np.unique(sight.people[waiting]).tolist():
            if sight.k <= n <= LARGEST and n > 1:
                some = sight.people[waiting] == n
                mine[some] *= _why_nobody_stayed(sight, pool, n, self.partly)
        self.after[waiting] = normal(mine, sight.overall)
        self.told[waiting] = pooled.sum(axis=1) > 0

    def beliefs(self) -> Beliefs:
        sight = self.sight
        facts = {"moved": round(float(self.open.sum()))}
        return Beliefs(sight.item, sight.before, self.after, self.told, np.zeros(sight.items), facts, (), self.left)


def _leaving(sight: Sight) -> NDArray[np.bool_]:
    """Return (classes, values): which secret the last one to leave a class can have had.

    It was the commonest then, and with one more of it the class falls short.
    """
    counts = sight.counts
    tall = (counts > 0) & (counts >= counts.max(axis=1, keepdims=True) - 1 - 1e-9)
    at = np.nonzero(tall)
    one_more = counts[at[0]]
    one_more[np.arange(len(one_more)), at[1]] += 1
    out = np.zeros(counts.shape, bool)
    out[at] = ~sight.fine(one_more)
    return out


def _why_nobody_stayed(sight: Sight, pool: NDArray[np.float64], n: int, partly: bool) -> NDArray[np.float64]:
    """Return (values,): the likelihood ratio of a secret in a group of n that kept nobody, compared with the pool."""
    rng = np.random.default_rng(n)  # simulation only: nothing of it is published
    drawn = rng.multinomial(n, pool, DRAWS).astype(np.float64)
    best = (drawn > 0).astype(np.float64) if partly else drawn
    kept = drawn[~sight.fine(best)]
    if len(kept) < DRAWS // 100:
        return np.ones(sight.d)
    found = (kept.sum(axis=0) + pool) / (n * len(kept) + 1)
    return np.asarray(np.where(pool > 0, found / np.where(pool > 0, pool, 1.0), 1.0))
