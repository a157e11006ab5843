"""Records of a curve that were passed over: a group takes the next records whose secrets it does not hold yet.

A person who lies on the curve before the last of a group and is in a later one was passed over because the group held
the person's secret already. So of a later class only the secrets count that every class which passed the person has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.methods.mechanism.rule import Beliefs, Rule, unchanged
from noren.methods.mechanism.sight import Sight, normal

FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Skips(Rule):
    """Groups of different secrets along a Hilbert curve through the quasi-identifiers.

    No bound: groups that passed over the same people, and the ends of what they cover, tie secrets of many groups.
    """

    says: str

    @property
    def bounded(self) -> bool:
        return False

    @property
    def answers_some(self) -> bool:
        return True

    def beliefs(self, sight: Sight) -> Beliefs:
        if not sight.names or not sight.whole:
            return unchanged(sight)
        place = _places(sight)
        first, last = _span(sight, place)
        passes = _passes(sight, first)
        last = np.where(passes, last, -1)
        covered = np.maximum(1, np.bincount(sight.pair_class, sight.people[sight.pair_item], sight.classes))
        line = sight.place[sight.pair_item]
        asked = np.flatnonzero(line >= 0)
        asked = asked[np.lexsort((first[sight.pair_class[asked]], line[asked]))]
        line, group = line[asked], sight.pair_class[asked]
        place = place if sight.asked is None else place[sight.asked]
        items = len(place)
        begin = np.searchsorted(line, np.arange(items + 1))
        open_ = np.ones((items, sight.d), bool)
        weight = np.zeros((items, sight.d))
        told = np.zeros(items, bool)
        for turn in range(int(np.diff(begin).max(initial=0))):
            who = np.flatnonzero(np.diff(begin) > turn)
            mine = group[begin[who] + turn]
            weight[who] += sight.counts[mine] / covered[mine, None] * open_[who]
            passed = (first[mine] < place[who]) & (place[who] < last[mine])
            open_[who[passed]] &= sight.counts[mine[passed]] > 0
            told[who[passed]] = True
        after = normal(weight, sight.overall)
        facts = {"groups_that_pass_over": int(passes.sum())}
        return Beliefs(sight.place[sight.item], sight.before, after, told, np.zeros(items), facts)


def _places(sight: Sight) -> NDArray[np.int64]:
    """Where every item begins on the curve."""
    from noren.methods.hilbert import along_curve

    curve = along_curve(sight.table, np.arange(sight.table.n))
    place = np.full(sight.items, FAR)
    np.minimum.at(place, sight.item[curve], np.arange(sight.table.n))
    return place


def _passes(sight: Sight, first: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Classes that are one group of different secrets, none of which was too common to wait for its turn."""
    l = int(sight.sizes.min())  # noqa: E741
    alone = (sight.counts.max(axis=1) <= 1) & (sight.sizes < 2 * l)
    order = np.argsort(first, kind="stable")
    left = np.cumsum(sight.counts[order[::-1]], axis=0)[::-1]
    forced = (left.max(axis=1) * l > left.sum(axis=1) - l)[np.argsort(order)]
    return np.asarray(alone & ~forced)


def _span(sight: Sight, place: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two places on the curve: somebody of the class stands at or before the first, and at or after the second.

    Each end of what a class covers is somebody's, so the farthest and the nearest who could be that one bound it.
    """
    first, last = np.full(sight.classes, FAR), np.full(sight.classes, -1, np.int64)
    for column, name in enumerate(sight.names):
        if sight.table.columns[name].tree is not None:
            continue  # a general node need not have anybody at its ends
        mine = sight.codes[sight.pair_item, column]
        for end in (sight.low, sight.high):
            at = mine == end[sight.pair_class, column]
            nearest, farthest = np.full(sight.classes, FAR), np.full(sight.classes, -1, np.int64)
            np.minimum.at(nearest, sight.pair_class[at], place[sight.pair_item[at]])
            np.maximum.at(farthest, sight.pair_class[at], place[sight.pair_item[at]])
            there = nearest < FAR
            first = np.where(there, np.minimum(first, farthest), first)
            last = np.where(there, np.maximum(last, nearest), last)
    return first, last
