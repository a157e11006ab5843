"""Skipped records of a curve: a group takes the next records with secrets that it does not yet contain.

A person who lies on the curve before the last of a group and is in a later one was skipped because the group held the
person's secret already. So of a later class only the secrets count that every class which passed the person has.

Of two records the second is the next one with another secret, so whoever lies between has the secret of the first. The
ends of what such a class covers often name both. These equalities are chained and joined with what each class holds,
until nothing more follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.methods.mechanism.rule import Beliefs, Rule, unchanged
from noren.methods.mechanism.sight import Sight, normal
from noren.ragged import ranges

FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Skips(Rule):
    """Groups of different secrets along a Hilbert curve through the quasi-identifiers.

    No bound: groups that skipped the same people, and the ends of what they cover, tie secrets of many groups.
    """

    says: str

    bounded: ClassVar[bool] = False

    def beliefs(self, sight: Sight) -> Beliefs:
        if not sight.names or not sight.whole:
            return unchanged(sight)
        curve, place = _places(sight)
        first, last = _span(sight, place)
        passes = _passes(sight, first)
        last = np.where(passes, last, -1)
        open_ = np.ones((sight.items, sight.d), bool)
        weight = np.zeros((sight.items, sight.d))
        told = np.zeros(sight.items, bool)
        for who, mine, rows in sight.turns(first):
            weight[who] += rows * open_[who]
            passed = (first[mine] < place[who]) & (place[who] < last[mine])
            open_[who[passed]] &= sight.counts[mine[passed]] > 0
            told[who[passed]] = True
        facts = {"groups_that_pass_over": int(passes.sum())}
        after = normal(weight, sight.overall)
        found = Beliefs(sight.item, sight.before, after, told, np.zeros(sight.items), facts)
        return join_pairs(sight, found, curve, place, passes)


def join_pairs(
    sight: Sight, found: Beliefs, curve: NDArray[np.int64], place: NDArray[np.int64], passes: NDArray[np.bool_]
) -> Beliefs:
    """Return the beliefs without the secrets that chained equalities exclude."""
    named, left = _chained(sight, curve, place, passes)
    weight = found.after * left
    after = normal(np.where(weight.sum(axis=1, keepdims=True) > 0, weight, left), sight.overall)
    facts = {**found.facts, "named_in_pairs": int(sight.people[named].sum())}
    return replace(found, after=after, told=found.told | named, facts=facts)


def join_residue(sight: Sight, found: Beliefs) -> Beliefs:
    """Return the same if only the residue of other phases is along the curve."""
    if not sight.names or not sight.whole:
        return found
    curve, place = _places(sight)
    return join_pairs(sight, found, curve, place, _passes(sight, _span(sight, place)[0]))


def _places(sight: Sight) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the item at every position of the curve, and the first position of every item."""
    from noren.methods.hilbert import along_curve

    curve = sight.item[along_curve(sight.table, np.arange(sight.table.n))]
    place = np.full(sight.items, FAR)
    np.minimum.at(place, curve, np.arange(sight.table.n))
    return curve, place


def _named_pairs(sight: Sight, classes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes of two whose ends leave one pair of people to be their members, and (classes, 2) these items.

    Each end of what the class covers is somebody's, so where one of the two has the least value the other has the
    largest.
    """
    if any(sight.table.columns[name].tree is not None for name in sight.names):
        return np.empty(0, np.int64), np.empty((0, 2), np.int64)
    at = np.isin(sight.pair_class, classes)
    item, group = sight.pair_item[at], sight.pair_class[at]
    at_low, at_high = sight.codes[item] == sight.low[group], sight.codes[item] == sight.high[group]
    corner = (at_low | at_high).all(axis=1) & ~(at_low & at_high).all(axis=1)
    item, group, at_low, at_high = item[corner], group[corner], at_low[corner], at_high[corner]
    bits = 1 << np.arange(len(sight.names))
    sides = np.stack([group, group]) << len(bits) | np.stack([(at_high & ~at_low) @ bits, (at_low & ~at_high) @ bits])
    number = np.unique(sides, return_inverse=True)[1].reshape(2, -1)
    people = np.bincount(number[0], sight.people[item], minlength=int(number.max(initial=-1)) + 1)
    pairs = np.bincount(group, sight.people[item] * people[number[1]], minlength=sight.classes)
    mine = np.flatnonzero((pairs[group] == 2) & (people[number[1]] > 0))
    mine = mine[np.argsort(group[mine], kind="stable")]
    return group[mine][::2], item[mine].reshape(-1, 2)


def _chained(
    sight: Sight, curve: NDArray[np.int64], place: NDArray[np.int64], passes: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which items a class of two names, and (items, values) the secrets that are left to every item."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    named, left = np.zeros(sight.items, bool), np.ones((sight.items, sight.d), bool)
    classes, pairs = _named_pairs(sight, np.flatnonzero(passes & (sight.sizes == 2)))
    pairs = np.take_along_axis(pairs, np.argsort(place[pairs], axis=1), axis=1)
    named[pairs] = True
    begins = np.full(sight.items, -1)
    begins[pairs] = place[pairs[:, :1]]
    low, high = place[pairs[:, 0]] + 1, place[pairs[:, 1]]
    between = curve[ranges(low, high)]
    first = np.repeat(pairs[:, 0], high - low)
    passed = (begins[between] > place[first]) & (sight.people[between] == 1)
    edges = csr_array((np.ones(int(passed.sum())), (first[passed], between[passed])), shape=(sight.items,) * 2)
    count, same = connected_components(edges, directed=False)
    could, held = np.ones((count, sight.d), bool), sight.counts[classes] > 0
    for side in (0, 1):
        np.logical_and.at(could, same[pairs[:, side]], held)
    before = -1
    while before != (before := int(could.sum())):
        for mine, partner in ((0, 1), (1, 0)):
            known = np.flatnonzero(could[same[pairs[:, mine]]].sum(axis=1) == 1)
            np.logical_and.at(could, same[pairs[known, partner]], ~could[same[pairs[known, mine]]])
    left[named] = could[same[named]]
    return named, left


def _passes(sight: Sight, first: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return classes that are one group of different secrets, none of which was too frequent to wait."""
    l = int(sight.sizes.min())  # noqa: E741
    alone = (sight.counts.max(axis=1) <= 1) & (sight.sizes < 2 * l)
    order = np.argsort(first, kind="stable")
    left = np.cumsum(sight.counts[order[::-1]], axis=0)[::-1]
    forced = (left.max(axis=1) * l > left.sum(axis=1) - l)[np.argsort(order)]
    return np.asarray(alone & ~forced)


def _span(sight: Sight, place: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two positions on the curve: a member is at or before the first, and one at or after the second.

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
