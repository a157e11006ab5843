"""Who stayed behind: a record moves to a narrower class that covers it wherever both classes still hold.

So a person in a wide class, whom a narrower one covers too, has a secret that the narrow class could not take or the
wide one could not spare. Classes that could exchange one more record of a secret have no such person.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noren.methods.mechanism.refusals import Refusals
from noren.methods.mechanism.rule import CERTAIN, Beliefs, Rule
from noren.methods.mechanism.sight import Sight, normal

OVERLOOKED = 0.5
"""How likely a record that could have moved stayed all the same, because the search looks at neighbours for some
rounds. Chosen on census and generated tables."""


@dataclass(frozen=True)
class Stays(Rule):
    """Classes that cuts leave records behind in, where a requirement compares with the whole table; else cuts alone.

    Of people in classes whose members are all known the cuts tell, of those whom several classes cover the rest.
    """

    says: str
    cuts: Refusals

    @property
    def refuses_cuts(self) -> bool:
        return True

    @property
    def answers_some(self) -> bool:
        return True

    def drawn(self, draws: int) -> Rule:
        return replace(self, cuts=replace(self.cuts, draws=draws))

    def beliefs(self, sight: Sight) -> Beliefs:
        found = self.cuts.beliefs(sight)
        if not any(model.relative for model in sight.models) or not sight.whole:
            return found
        weight, told = _stayed(sight)
        told &= ~found.told
        after = np.where(told[:, None], normal(weight, sight.overall), found.after)
        named = "people_of_overlapping_classes" if sight.asked is None else "at_least_people_of_overlapping_classes"
        facts = {**found.facts, named: int(sight.asked_people[told].sum())}
        return replace(found, after=after, told=found.told | told, facts=facts)

    def certain(self, sight: Sight, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
        out = self.cuts.certain(sight, secrets)
        if not any(model.relative for model in sight.models) or not sight.whole:
            return out
        weight, told = _stayed(sight)
        at = (sight.place[sight.item], np.maximum(secrets, 0))
        known = told[at[0]] & (normal(weight, sight.overall)[at] >= CERTAIN) & (sight.before[at] < CERTAIN)
        return np.asarray(out | (known & (secrets >= 0)))


def _stayed(sight: Sight) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(items asked for, values): how likely every secret is, and for which items that is more than the classes say."""
    takes, spares = _holds_with(sight, 1), _holds_with(sight, -1)
    sizes = np.array([sight.table.columns[name].d for name in sight.names])
    loss = ((sight.width - 1) / np.maximum(1, sizes - 1)).sum(axis=1)
    covered = np.maximum(1, np.bincount(sight.pair_class, sight.people[sight.pair_item], sight.classes))
    line = sight.place[sight.pair_item]
    asked = np.flatnonzero(line >= 0)
    asked = asked[np.lexsort((loss[sight.pair_class[asked]], line[asked]))]
    line, group = line[asked], sight.pair_class[asked]
    items = len(sight.before)
    begin = np.searchsorted(line, np.arange(items + 1))
    welcome = np.zeros((items, sight.d), bool)
    weight = np.zeros((items, sight.d))
    told = np.zeros(items, bool)
    for turn in range(int(np.diff(begin).max(initial=0))):
        who = np.flatnonzero(np.diff(begin) > turn)
        mine = group[begin[who] + turn]
        away = welcome[who] & spares[mine]
        weight[who] += sight.counts[mine] / covered[mine, None] * np.where(away, OVERLOOKED, 1.0)
        told[who] |= (away & (sight.counts[mine] > 0)).any(axis=1)
        welcome[who] |= takes[mine]
    return weight, told


def _holds_with(sight: Sight, more: int) -> NDArray[np.bool_]:
    """(classes, values): whether every class would hold with one more of every secret, or with one less."""
    out = np.zeros(sight.counts.shape, bool)
    for value in range(sight.d):
        counts = sight.counts.copy()
        counts[:, value] += more
        there = counts[:, value] >= 0
        out[there, value] = sight.fine(counts[there])
    return out
