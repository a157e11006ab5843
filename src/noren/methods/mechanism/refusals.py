"""Refused cuts: a class stayed whole although its size alone would have permitted parts, so some part falls short.

Mondrian would have cut on inside the class; microaggregation would have left its groups apart; a full-domain search
would have stopped a level earlier, in all classes at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.methods.mechanism.cutting import Cut, Learned, learn
from noren.methods.mechanism.rule import CERTAIN, Beliefs, Rule, unchanged
from noren.methods.mechanism.sight import Sight
from noren.ragged import distinct_of, in_order, rows_in_order

DRAWS = 200
MOST_PEOPLE = 200_000
"""People up to whom all are simulated; else a tenth of as many are."""
MOST_PARTS = 1 << 15
"""Parts of one table up to which the levels below a full-domain release are simulated."""

Parts = Callable[[Sight, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""The parts that size alone leads to: of these people, whose classes are known."""
Members = Callable[[Sight], NDArray[np.int64]]
"""The class of every person as far as it is known, -1 where it is not."""


def by_cover(sight: Sight) -> NDArray[np.int64]:
    """People whom one class alone covers, in classes whose members are all known."""
    mine = sight.sole[sight.item]
    return np.where((mine >= 0) & sight.known[np.maximum(mine, 0)], mine, -1)


@dataclass(frozen=True)
class Refusals(Rule):
    """Each class was kept from falling into its parts by the requirement on the secret."""

    says: str
    parts: Parts
    members: Members = by_cover
    draws: int = DRAWS

    @property
    def refuses_cuts(self) -> bool:
        return True

    @property
    def answers_some(self) -> bool:
        return True

    def drawn(self, draws: int) -> Rule:
        return replace(self, draws=draws)

    def beliefs(self, sight: Sight) -> Beliefs:
        mine = self.members(sight)
        known = np.bincount(mine[mine >= 0], minlength=sight.classes) == sight.sizes
        facts: dict[str, object] = {
            "classes_with_known_members": int((known & (sight.sizes > 0)).sum()),
            "cut_by_k_alone": 0,
        }
        notes = (
            []
            if known.all()
            else [f"{int((~known).sum()):,} classes overlap others, so that nobody knows whom they hold"]
        )
        who = np.flatnonzero((mine >= 0) & known[np.maximum(mine, 0)])
        if not len(who) or not sight.whole:
            return unchanged(sight, notes, **facts)
        cut, who = cut_of(sight, who, mine, self.parts(sight, who, mine[who]))
        if cut is None:
            return unchanged(sight, notes, **facts)
        facts |= {"cut_by_k_alone": cut.classes, "draws": self.draws}
        if len(who) > MOST_PEOPLE:
            chosen = np.zeros(sight.classes, bool)
            chosen[mine[np.random.default_rng().choice(who, MOST_PEOPLE // 10)]] = True  # nothing of it is published
            cut, who = _within(sight, who[chosen[mine[who]]], mine, cut.part[chosen[mine[who]]])
            notes.append(f"measured on {len(who):,} people of classes that were drawn at random")
        found = learn(cut, sight.models, sight.secret, sight.overall, self.draws)
        facts |= {"undecided_classes": len(np.unique(cut.owner[~found.settled]))}
        return told(sight, who, cut, found, found.posterior, facts, notes)

    def certain(self, sight: Sight, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whoever shares a part with another secret is not: exchanged, the two leave every part as it is. Of the others
        those are for whom no arrangement that breaks a part shows another secret."""
        out = np.zeros(sight.table.n, bool)
        mine = self.members(sight)
        known = np.bincount(mine[mine >= 0], minlength=sight.classes) == sight.sizes
        who = np.flatnonzero((mine >= 0) & known[np.maximum(mine, 0)])
        if not len(who) or not sight.whole:
            return out
        cut, who = cut_of(sight, who, mine, self.parts(sight, who, mine[who]))
        if cut is None:
            return out
        pure = _of_one_secret(cut, secrets[who]) & (sight.shares.max(axis=1)[mine[who]] < CERTAIN)
        doubtful = np.zeros(sight.classes, bool)
        doubtful[mine[who[pure]]] = True
        some = doubtful[mine[who]]
        if not some.any():
            return out
        pure = pure[some]
        cut, who = _within(sight, who[some], mine, cut.part[some])
        found = learn(cut, sight.models, sight.secret, sight.overall, self.draws)
        told = np.where(found.settled[cut.part], found.posterior[cut.part, np.maximum(secrets[who], 0)], 1.0)
        out[who] = pure & (told >= CERTAIN) & (secrets[who] >= 0)
        return out


def _of_one_secret(cut: Cut, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For every member whether all of the part have one secret."""
    low, high = np.full(cut.parts, np.iinfo(np.int64).max), np.full(cut.parts, -1, np.int64)
    np.minimum.at(low, cut.part, secrets)
    np.maximum.at(high, cut.part, secrets)
    return np.asarray((low == high)[cut.part])


@dataclass(frozen=True)
class Levels(Rule):
    """Every column stands at one level, and one level lower some class of the whole table fell short."""

    says: str
    draws: int = DRAWS

    def drawn(self, draws: int) -> Rule:
        return replace(self, draws=draws)

    def beliefs(self, sight: Sight) -> Beliefs:
        mine = by_cover(sight)
        who = np.flatnonzero(mine >= 0)
        best: tuple[float, NDArray[np.int64], Cut, Learned] | None = None
        lower = _one_level_down(sight) if len(who) == sight.table.n and sight.whole else []
        for parts in lower:
            cut, some = cut_of(sight, who, mine, parts[who])
            if cut is None or cut.parts > MOST_PARTS or len(some) > MOST_PEOPLE:
                continue
            found = learn(cut, sight.models, sight.secret, sight.overall, self.draws)
            chance = 1 - float(np.prod(1 - _chance(found, cut, self.draws)))
            if chance > 0 and (best is None or chance < best[0]):
                best = chance, some, cut, found
        facts: dict[str, object] = {"levels_refused_by_the_secret": len(lower), "draws": self.draws}
        if best is None:
            return unchanged(
                sight, ["size alone refuses every level below, or nobody knows whom classes hold"], **facts
            )
        chance, some, cut, found = best
        broken = _chance(found, cut, self.draws)[cut.owner][:, None]
        shares = cut.shares[cut.owner]
        unbroken = np.where(broken < 1, (shares - broken * found.posterior) / np.maximum(1e-12, 1 - broken), shares)
        blamed = np.minimum(1.0, broken / chance)
        posterior = blamed * found.posterior + (1 - blamed) * np.maximum(unbroken, 0.0)
        return told(sight, some, cut, found, posterior, facts | {"chance_of_refusal": chance}, [])

    def certain(self, sight: Sight, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """A level that two classes refuse tells nothing for certain: whatever one of them holds, the other does."""
        out = np.zeros(sight.table.n, bool)
        mine = by_cover(sight)
        everybody = np.flatnonzero(mine >= 0)
        for parts in _one_level_down(sight) if len(everybody) == sight.table.n and sight.whole else []:
            cut, who = cut_of(sight, everybody, mine, parts[everybody])
            if cut is None:
                continue
            held = np.bincount(cut.part * sight.d + secrets[who], minlength=cut.parts * sight.d)
            short = np.unique(cut.owner[~sight.fine(held.reshape(cut.parts, sight.d).astype(np.float64))])
            if len(short) != 1:
                continue
            here = cut.of == short[0]
            one, some = _within(sight, who[here], mine, cut.part[here])
            found = learn(one, sight.models, sight.secret, sight.overall, self.draws)
            told = np.where(found.settled[one.part], found.posterior[one.part, secrets[some]], 1.0)
            out[some] |= (told >= CERTAIN) & (sight.shares.max(axis=1)[mine[some]] < CERTAIN)
        return out


def _chance(found: Learned, cut: Cut, draws: int) -> NDArray[np.float64]:
    """Per class: how often it fell short when its values were handed out at random."""
    out = np.zeros(cut.classes)
    out[cut.owner] = found.violations / draws
    return out


def told(
    sight: Sight,
    who: NDArray[np.int64],
    cut: Cut,
    found: Learned,
    posterior: NDArray[np.float64],
    facts: dict[str, object],
    notes: list[str],
) -> Beliefs:
    """Beliefs about items from those about parts: people of one item in several parts count alike."""
    line, part, people = sight.place[sight.item[who]], cut.part, sight.people
    if sight.asked is not None:
        line, part, people = line[line >= 0], part[line >= 0], people[sight.asked]
    n = np.bincount(line, minlength=len(people))
    after, error = np.zeros_like(sight.before), np.zeros(len(people))
    np.add.at(after, line, posterior[part])
    np.add.at(error, line, found.error[part])
    spoken = (n == people) & (n > 0)
    scale = np.maximum(n, 1)
    after = np.where(spoken[:, None], after / scale[:, None], sight.before)
    item = sight.place[sight.item]
    return Beliefs(item, sight.before, after, spoken, np.where(spoken, error / scale, 0.0), facts, notes)


def cut_of(
    sight: Sight, who: NDArray[np.int64], mine: NDArray[np.int64], parts: NDArray[np.int64]
) -> tuple[Cut | None, NDArray[np.int64]]:
    """The classes that fall into several parts, each of at least k people, none of which reaches into another class."""
    small = np.bincount(parts) < sight.k
    spoilt = np.zeros(sight.classes, bool)
    spoilt[mine[who[small[parts]]]] = True
    pure = several(mine[who], parts) & ~spoilt[mine[who]]
    who, parts = who[pure], parts[pure]
    return _within(sight, who, mine, parts) if len(who) else (None, who)


def _within(
    sight: Sight, who: NDArray[np.int64], mine: NDArray[np.int64], parts: NDArray[np.int64]
) -> tuple[Cut, NDArray[np.int64]]:
    """Whole classes and their parts; the people class by class."""
    order = in_order(mine[who])
    who, parts = who[order], parts[order]
    classes, _, of = distinct_of(mine[who])
    counts = np.rint(sight.counts[classes]).astype(np.int64)
    values = np.repeat(np.tile(np.arange(sight.d), len(classes)), counts.ravel())
    return Cut(of, distinct_of(parts)[2], values, sight.d), who


def several(mine: NDArray[np.int64], parts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The people of classes that fall into several parts, none of which reaches into another class."""
    order, bounds = rows_in_order([mine, parts], len(mine))
    of, part = mine[order[bounds[:-1]]], parts[order[bounds[:-1]]]
    mixed = np.bincount(part) > 1
    spoilt = np.zeros(int(mine.max()) + 1, bool)
    spoilt[of[mixed[part]]] = True
    many = np.bincount(of, minlength=len(spoilt)) > 1
    return np.asarray((many & ~spoilt)[mine])


# ---------------------------------------------------------------------- parts


def mondrian_parts(sight: Sight, who: NDArray[np.int64], mine: NDArray[np.int64]) -> NDArray[np.int64]:
    """The parts that Mondrian makes for k alone inside every class."""
    key = ("parts", sight.k)
    if key not in sight.memory:
        sight.memory[key] = parts_for_size(sight.table, who, mine, sight.k)
    found: NDArray[np.int64] = sight.memory[key]
    return found


def parts_for_size(table: Records, who: NDArray[np.int64], mine: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The parts that k alone leads to inside every class, numbered class by class."""
    from noren.methods.mondrian.classes import cut_inside
    from noren.models import KAnonymity

    columns = {column: table.columns[column] for column in table.quasi}
    codes = {column: table.codes[column][who] for column in table.quasi}
    return cut_inside(Records(len(who), columns, codes), mine, [KAnonymity(k=k)])


def repeatable(n: int) -> NDArray[np.int64]:
    """An order that is the same in every replay. What is replayed is never published, so nobody can profit from it."""
    return np.random.default_rng(0).permutation(n)


def _one_level_down(sight: Sight) -> list[NDArray[np.int64]]:
    """For every column that could stand a level lower: the part of every person, where k permits all of them."""
    from noren.methods.cover import automatic_hierarchy
    from noren.ragged import row_numbers
    from noren.schema.nodes import tree_of

    table, mine = sight.table, sight.sole[sight.item]
    out = []
    named = [name for name in table.quasi if name != sight.secret.name]
    for name in named:
        tree = tree_of(automatic_hierarchy(table.columns[name], table.codes[name]))
        codes = table.codes[name]
        for level in range(tree.height, 0, -1):
            node = tree.at[level][codes]
            together = row_numbers([mine, node], [sight.classes, len(tree.nodes)], table.n)
            parts = row_numbers([mine, tree.at[level - 1][codes]], [sight.classes, len(tree.nodes)], table.n)
            here = int(together.max()) + 1 == sight.classes < int(parts.max()) + 1
            if here and np.bincount(parts).min() >= sight.k:
                out.append(parts)
    return out
