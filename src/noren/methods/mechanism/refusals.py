"""Refused cuts: a class stayed whole although its size permitted parts, so some part broke a requirement.

Mondrian would have cut on inside the class; microaggregation would have left its groups apart; a full-domain search
would have stopped a level earlier, in all classes at once. Whoever knows that the method cuts where it may concludes
that some part would have broken the requirement on the secret: among all ways to hand the class's values out to its
people, all equally likely, only those remain in which a part breaks it (`learn`).

Where cuts leave records behind (mondrian under closeness), a record moves to a narrower class that covers it wherever
both classes still hold. So a person in a wide class, whom a narrower one covers too, has a secret that the narrow class
could not take or the wide one could not spare (`Stays`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.methods.mechanism.rule import CERTAIN, Beliefs, Rule, unchanged
from noren.methods.mechanism.sight import Sight, judged, normal
from noren.models.class_check import ClassModel
from noren.ragged import distinct_of, in_order, rows_in_order
from noren.statements import Statement

COUNTS_AT_ONCE = 1 << 20
"""Entries of the histograms of several draws that are judged together."""
MOST_PEOPLE = 200_000
"""People up to whom all are simulated; else a tenth of as many are."""
MOST_PARTS = 1 << 15
"""Parts of one table up to which the levels below a full-domain release are simulated."""

CLEARLY = 4.0
"""Standard errors by which a belief must rise before it counts as a gain."""


@dataclass(frozen=True)
class Cut:
    """Classes and the parts into which k alone would cut them; members class by class."""

    of: NDArray[np.int64]
    """The class of every member, ascending."""
    part: NDArray[np.int64]
    """The part of every member."""
    values: NDArray[np.int64]
    """The values of every class, in any order inside it."""
    d: int
    who: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Every member's number among all people, where these are known."""

    def whole(self, some: NDArray[np.bool_]) -> Cut:
        """Some classes alone, by their members."""
        of, part = distinct_of(self.of[some])[2], distinct_of(self.part[some])[2]
        return Cut(of, part, self.values[some], self.d, self.who[some])

    @property
    def classes(self) -> int:
        return int(self.of.max(initial=-1)) + 1

    @property
    def parts(self) -> int:
        return int(self.part.max(initial=-1)) + 1

    @property
    def owner(self) -> NDArray[np.int64]:
        """Return the class of every part."""
        out = np.zeros(self.parts, np.int64)
        out[self.part] = self.of
        return out

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of members of every part."""
        return np.bincount(self.part, minlength=self.parts)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Return (classes, values): the distribution in each published class."""
        counts = np.bincount(self.of * self.d + self.values, minlength=self.classes * self.d)
        counts = counts.reshape(self.classes, self.d).astype(float)
        return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


@dataclass(frozen=True)
class Learned:
    """The beliefs about the members of every part, given that the cut was refused."""

    top: NDArray[np.int64]
    """The value believed most, chosen by one half of the draws."""
    belief: NDArray[np.float64]
    """The belief in it, by the other half: the choice does not flatter it."""
    error: NDArray[np.float64]
    before: NDArray[np.float64]
    """The largest share of a value in the published class."""
    posterior: NDArray[np.float64]
    """(parts, values), by all draws."""
    violations: NDArray[np.int64]
    """Draws of its class in which some part broke the requirement."""

    @property
    def settled(self) -> NDArray[np.bool_]:
        """Return parts of classes with enough draws for a conclusion."""
        return self.violations > 1

    @property
    def gains(self) -> NDArray[np.bool_]:
        return np.asarray(self.settled & (self.belief - self.before > CLEARLY * self.error + 1e-9))


def learn(
    cut: Cut,
    models: Sequence[ClassModel],
    column: Statement,
    overall: NDArray[np.float64],
    draws: int,
    seed: int = 0,
) -> Learned:
    """Assign values at random, and keep the draws in which a class could not have been cut."""
    rng = np.random.default_rng(seed)  # simulation only: nothing of it is published
    classes, parts, d, owner, sizes = cut.classes, cut.parts, cut.d, cut.owner, cut.sizes
    sums = np.zeros((2, parts, d))
    squares = np.zeros((parts, d))
    kept = np.zeros((2, classes), np.int64)
    step = max(1, COUNTS_AT_ONCE // max(1, parts * d))
    for begin in range(0, draws, step):
        held = np.empty((min(step, draws - begin), parts, d), np.int64)
        for counts in held:
            shuffled = cut.values[np.argsort(cut.of + rng.random(len(cut.of)), kind="stable")]
            counts[:] = np.bincount(cut.part * d + shuffled, minlength=parts * d).reshape(parts, d)
        fine = judged(held.reshape(len(held) * parts, d), models, column, overall).reshape(held.shape[:2])
        for number, (counts, good) in enumerate(zip(held, fine, strict=True), begin):
            half = number % 2
            broken = np.asarray(np.bincount(owner, ~good, minlength=classes) > 0)
            kept[half] += broken
            share = np.where(broken[owner, None], counts / sizes[:, None], 0.0)
            sums[half] += share
            if half:
                squares += share**2
    seen = kept[:, owner]
    halves = sums / np.maximum(1, seen)[:, :, None]
    top = halves[0].argmax(axis=1)
    at = (np.arange(parts), top)
    shares = cut.shares[owner]
    settled = np.asarray(seen.min(axis=0) > 1)
    spread = squares[at] / np.maximum(1, seen[1]) - halves[1][at] ** 2
    error = np.sqrt(np.maximum(spread, 0) / np.maximum(1, seen[1]))
    everything = sums.sum(axis=0) / np.maximum(1, seen.sum(axis=0))[:, None]
    return Learned(
        top=np.where(settled, top, shares.argmax(axis=1)),
        belief=np.where(settled, halves[1][at], shares.max(axis=1)),
        error=np.where(settled, error, 0.0),
        before=shares.max(axis=1),
        posterior=np.where(settled[:, None], everything, shares),
        violations=np.where(settled, seen.sum(axis=0), 0),
    )


# ---------------------------------------------------------------------- rules

Parts = Callable[[Sight, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""The parts that size alone leads to: of these people, whose classes are known."""
Members = Callable[[Sight], NDArray[np.int64]]
"""The class of every person as far as it is known, -1 where it is not."""


def by_cover(sight: Sight) -> NDArray[np.int64]:
    """Return people covered by exactly one class, in classes whose members are all known."""
    mine = sight.sole[sight.item]
    return np.where((mine >= 0) & sight.known[np.maximum(mine, 0)], mine, -1)


@dataclass(frozen=True)
class Refusals(Rule):
    """The rule of classes that were not cut because of the requirement on the secret."""

    says: str
    parts: Parts
    members: Members = by_cover

    refuses_cuts: ClassVar[bool] = True

    def beliefs(self, sight: Sight) -> Beliefs:
        known, cut = self._cut(sight)
        facts: dict[str, object] = {
            "classes_with_known_members": int((known & (sight.sizes > 0)).sum()),
            "cut_by_k_alone": 0,
        }
        notes = []
        if not known.all():
            notes.append(f"{int((~known).sum()):,} classes overlap others, so their members are unknown")
        if cut is None:
            return unchanged(sight, notes, **facts)
        facts |= {"cut_by_k_alone": cut.classes, "draws": sight.draws}
        if len(cut.who) > MOST_PEOPLE:
            some = np.random.default_rng().choice(len(cut.who), MOST_PEOPLE // 10)  # nothing of it is published
            cut = cut.whole(np.isin(cut.of, cut.of[some]))
            notes.append(f"measured on a random sample of {len(cut.who):,} people")
        found = learn(cut, sight.models, sight.secret, sight.overall, sight.draws)
        facts |= {"undecided_classes": len(np.unique(cut.owner[~found.settled]))}
        return beliefs_of(sight, cut, found, found.posterior, facts, notes)

    def _cut(self, sight: Sight) -> tuple[NDArray[np.bool_], Cut | None]:
        """Return the classes whose members are known, and the refused cuts."""
        mine = self.members(sight)
        known = np.bincount(mine[mine >= 0], minlength=sight.classes) == sight.sizes
        who = np.flatnonzero((mine >= 0) & known[np.maximum(mine, 0)])
        if not len(who) or not sight.whole:
            return known, None
        return known, cut_of(sight, who, mine, self.parts(sight, who, mine[who]))

    def certain(self, sight: Sight, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the people whose secret is certain. A person in a part with different secrets is not: two of them can
        be exchanged. Others are certain if no arrangement that breaks a part shows another secret."""
        out = np.zeros(sight.table.n, bool)
        _, cut = self._cut(sight)
        if cut is None:
            return out
        pure = _of_one_secret(cut, secrets[cut.who]) & (cut.shares.max(axis=1)[cut.of] < CERTAIN)
        some = np.isin(cut.of, cut.of[pure])
        if some.any():
            one = cut.whole(some)
            out[one.who] = pure[some] & _is_sure(sight, one, secrets[one.who]) & (secrets[one.who] >= 0)
        return out


def _is_sure(sight: Sight, cut: Cut, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for every member whether no draw that breaks a part shows another secret, or too few draws exist."""
    found = learn(cut, sight.models, sight.secret, sight.overall, sight.draws)
    belief = np.where(found.settled[cut.part], found.posterior[cut.part, np.maximum(secrets, 0)], 1.0)
    return np.asarray(belief >= CERTAIN)


def _of_one_secret(cut: Cut, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for every member whether all of the part have one secret."""
    low, high = np.full(cut.parts, np.iinfo(np.int64).max), np.full(cut.parts, -1, np.int64)
    np.minimum.at(low, cut.part, secrets)
    np.maximum.at(high, cut.part, secrets)
    return np.asarray((low == high)[cut.part])


@dataclass(frozen=True)
class Levels(Rule):
    """The rule of columns at one level each: one level lower, some class of the whole table failed."""

    says: str

    def beliefs(self, sight: Sight) -> Beliefs:
        best: tuple[float, Cut, Learned] | None = None
        lower = self._cuts(sight)
        for cut in lower:
            if cut is None or cut.parts > MOST_PARTS or len(cut.who) > MOST_PEOPLE:
                continue
            found = learn(cut, sight.models, sight.secret, sight.overall, sight.draws)
            chance = 1 - float(np.prod(1 - _chance(found, cut, sight.draws)))
            if chance > 0 and (best is None or chance < best[0]):
                best = chance, cut, found
        facts: dict[str, object] = {"levels_refused_by_the_secret": len(lower), "draws": sight.draws}
        if best is None:
            note = "class sizes already exclude every lower level, or the members of classes are unknown"
            return unchanged(sight, [note], **facts)
        chance, cut, found = best
        broken = _chance(found, cut, sight.draws)[cut.owner][:, None]
        shares = cut.shares[cut.owner]
        unbroken = np.where(broken < 1, (shares - broken * found.posterior) / np.maximum(1e-12, 1 - broken), shares)
        blamed = np.minimum(1.0, broken / chance)
        posterior = blamed * found.posterior + (1 - blamed) * np.maximum(unbroken, 0.0)
        return beliefs_of(sight, cut, found, posterior, facts | {"chance_of_refusal": chance}, [])

    def _cuts(self, sight: Sight) -> list[Cut | None]:
        """Return the classes of every level below, where everybody's class is known."""
        mine = by_cover(sight)
        if (mine < 0).any() or not sight.whole:
            return []
        return [cut_of(sight, np.arange(sight.table.n), mine, parts) for parts in _one_level_down(sight)]

    def certain(self, sight: Sight, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the people whose secret is certain; a level that two classes refuse discloses nothing for certain."""
        out = np.zeros(sight.table.n, bool)
        for cut in self._cuts(sight):
            if cut is None:
                continue
            held = np.bincount(cut.part * sight.d + secrets[cut.who], minlength=cut.parts * sight.d)
            short = np.unique(cut.owner[~sight.fine(held.reshape(cut.parts, sight.d).astype(np.float64))])
            if len(short) == 1:
                one = cut.whole(cut.of == short[0])
                out[one.who] |= _is_sure(sight, one, secrets[one.who]) & (one.shares.max() < CERTAIN)
        return out


def _chance(found: Learned, cut: Cut, draws: int) -> NDArray[np.float64]:
    """Return for each class how often it failed when its values were assigned at random."""
    out = np.zeros(cut.classes)
    out[cut.owner] = found.violations / draws
    return out


def beliefs_of(
    sight: Sight,
    cut: Cut,
    found: Learned,
    posterior: NDArray[np.float64],
    facts: dict[str, object],
    notes: list[str],
) -> Beliefs:
    """Return beliefs about items from those about parts: people of one item in several parts are averaged."""
    item = sight.item[cut.who]
    n = np.bincount(item, minlength=sight.items)
    after, error = np.zeros_like(sight.before), np.zeros(sight.items)
    np.add.at(after, item, posterior[cut.part])
    np.add.at(error, item, found.error[cut.part])
    spoken = (n == sight.people) & (n > 0)
    scale = np.maximum(n, 1)
    after = np.where(spoken[:, None], after / scale[:, None], sight.before)
    return Beliefs(sight.item, sight.before, after, spoken, np.where(spoken, error / scale, 0.0), facts, notes)


def cut_of(sight: Sight, who: NDArray[np.int64], mine: NDArray[np.int64], parts: NDArray[np.int64]) -> Cut | None:
    """The classes that fall into several parts, each of at least k people, none of which reaches into another class;
    the people class by class."""
    small = np.bincount(parts) < sight.k
    spoilt = np.zeros(sight.classes, bool)
    spoilt[mine[who[small[parts]]]] = True
    pure = in_several_parts(mine[who], parts) & ~spoilt[mine[who]]
    if not pure.any():
        return None
    who, parts = who[pure], parts[pure]
    order = in_order(mine[who])
    who, parts = who[order], parts[order]
    classes, _, of = distinct_of(mine[who])
    counts = np.rint(sight.counts[classes]).astype(np.int64)
    values = np.repeat(np.tile(np.arange(sight.d), len(classes)), counts.ravel())
    return Cut(of, distinct_of(parts)[2], values, sight.d, who)


def in_several_parts(mine: NDArray[np.int64], parts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the people of classes that split into several parts, none of which reaches into another class."""
    order, bounds = rows_in_order([mine, parts], len(mine))
    of, part = mine[order[bounds[:-1]]], parts[order[bounds[:-1]]]
    mixed = np.bincount(part) > 1
    spoilt = np.zeros(int(mine.max()) + 1, bool)
    spoilt[of[mixed[part]]] = True
    many = np.bincount(of, minlength=len(spoilt)) > 1
    return np.asarray((many & ~spoilt)[mine])


OVERLOOKED = 0.5
"""How likely a record that could have moved stayed all the same, because the search looks at neighbours for some
rounds. Chosen on census and generated tables."""


@dataclass(frozen=True)
class Stays(Rule):
    """The rule of classes with records left behind by cuts under requirements that compare with the whole table;
    otherwise only cuts.

    Of people in classes whose members are all known the cuts tell, of those whom several classes cover the rest.
    """

    says: str
    cuts: Refusals

    refuses_cuts: ClassVar[bool] = True

    def beliefs(self, sight: Sight) -> Beliefs:
        found = self.cuts.beliefs(sight)
        if not any(model.relative for model in sight.models) or not sight.whole:
            return found
        weight, told = _stayed(sight)
        told &= ~found.told
        after = np.where(told[:, None], normal(weight, sight.overall), found.after)
        facts = {**found.facts, "people_of_overlapping_classes": int(sight.people[told].sum())}
        return replace(found, after=after, told=found.told | told, facts=facts)

    def certain(self, sight: Sight, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
        out = self.cuts.certain(sight, secrets)
        if not any(model.relative for model in sight.models) or not sight.whole:
            return out
        weight, told = _stayed(sight)
        at = (sight.item, np.maximum(secrets, 0))
        known = told[at[0]] & (normal(weight, sight.overall)[at] >= CERTAIN) & (sight.before[at] < CERTAIN)
        return np.asarray(out | (known & (secrets >= 0)))


def _stayed(sight: Sight) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return (items, values): the probability of every secret, and for which items it exceeds that of the classes."""
    takes, spares = _holds_with(sight, 1), _holds_with(sight, -1)
    sizes = np.array([sight.table.columns[name].d for name in sight.names])
    loss = ((sight.width - 1) / np.maximum(1, sizes - 1)).sum(axis=1)
    welcome = np.zeros((sight.items, sight.d), bool)
    weight = np.zeros((sight.items, sight.d))
    told = np.zeros(sight.items, bool)
    for who, mine, rows in sight.turns(loss):
        away = welcome[who] & spares[mine]
        weight[who] += rows * np.where(away, OVERLOOKED, 1.0)
        told[who] |= (away & (sight.counts[mine] > 0)).any(axis=1)
        welcome[who] |= takes[mine]
    return weight, told


def _holds_with(sight: Sight, more: int) -> NDArray[np.bool_]:
    """Return (classes, values): whether every class would hold with one more of every secret, or with one less."""
    out = np.zeros(sight.counts.shape, bool)
    for value in range(sight.d):
        counts = sight.counts.copy()
        counts[:, value] += more
        there = counts[:, value] >= 0
        out[there, value] = sight.fine(counts[there])
    return out


# ---------------------------------------------------------------------- parts


def mondrian_parts(sight: Sight, who: NDArray[np.int64], mine: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the parts that Mondrian forms for k alone inside every class."""
    if sight.k not in sight.parts:
        sight.parts[sight.k] = parts_for_size(sight.table, who, mine, sight.k)
    return sight.parts[sight.k]


def parts_for_size(table: Records, who: NDArray[np.int64], mine: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the parts for k alone inside every class, numbered class by class."""
    from noren.methods.mondrian.classes import cut_inside
    from noren.models import KAnonymity

    columns = {column: table.columns[column] for column in table.quasi}
    codes = {column: table.codes[column][who] for column in table.quasi}
    return cut_inside(Records(len(who), columns, codes), mine, [KAnonymity(k=k)])


def repeatable(n: int) -> NDArray[np.int64]:
    """Return an order that is the same in every replay, which is never published."""
    return np.random.default_rng(0).permutation(n)


def _one_level_down(sight: Sight) -> list[NDArray[np.int64]]:
    """Return the parts of everybody for every column that could be one level lower under k."""
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


# ---------------------------------------------------------------------- joined groups

NEAR = 1e-2
"""How far the mean of joined groups may be from the published one, in standard deviations: that is rounded."""


def joined_groups(sight: Sight, who: NDArray[np.int64], mine: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the groups of these people before any were joined."""
    return np.unique(_groups(sight)[who], return_inverse=True)[1].reshape(-1)


def by_means(sight: Sight) -> NDArray[np.int64]:
    """Return the class of every person: each group is in the class of the nearest mean that covers it, if sizes and
    means agree."""
    if not sight.averaged:
        return by_cover(sight)
    numbers = _numbers(sight)
    spread = np.where((spread := np.nanstd(numbers, axis=0)) > 0, spread, 1.0)
    groups = _groups(sight)
    count = int(groups.max()) + 1
    there = np.isfinite(numbers)
    sums = np.stack([np.bincount(groups, np.where(t, x, 0.0), count) for x, t in zip(numbers.T, there.T, strict=True)])
    some = np.stack([np.bincount(groups, t, count) for t in there.T])
    places = np.nan_to_num((sums / np.maximum(some, 1)).T) / spread
    nearest = _nearest(sight, groups, places, np.nan_to_num(sight.means) / spread)
    mine = np.maximum(nearest, 0)[groups]
    sizes = np.bincount(mine, minlength=sight.classes)
    good = sizes == sight.sizes
    for column, (x, t) in enumerate(zip(numbers.T, there.T, strict=True)):
        total = np.bincount(mine, np.where(t, x, 0.0), sight.classes)
        mean = total / np.maximum(np.bincount(mine, t, sight.classes), 1)
        good &= np.abs(mean - np.nan_to_num(sight.means[:, column])) <= NEAR * spread[column]
    return np.where(good[mine] & (nearest >= 0)[groups], mine, -1)


def _nearest(sight: Sight, groups: NDArray, places: NDArray, means: NDArray) -> NDArray[np.int64]:
    """Return for every group the class of the nearest mean among those that cover all of it; -1 if there is none."""
    from scipy.sparse import csr_array

    count = len(places)
    shape = (count, sight.items)
    held = csr_array((np.ones(len(groups)), (groups, sight.item)), shape=shape)
    ones = np.ones(len(sight.pair_item))
    reach = csr_array((ones, (sight.pair_item, sight.pair_class)), shape=(sight.items, sight.classes))
    both = (held @ reach).tocoo()
    whole = both.data >= np.bincount(groups, minlength=count)[both.row] - 0.5
    group, to = both.row[whole], both.col[whole]
    far = ((places[group] - means[to]) ** 2).sum(axis=1)
    order = np.lexsort((far, group))
    first = np.unique(group[order], return_index=True)
    out = np.full(count, -1, np.int64)
    out[first[0]] = to[order][first[1]]
    return out


def _groups(sight: Sight) -> NDArray[np.int64]:
    from noren.methods.microaggregation import Microaggregation, groups_by_size

    return groups_by_size(sight.table, sight.k, Microaggregation().block, repeatable(sight.table.n))


def _numbers(sight: Sight) -> NDArray[np.float64]:
    """Return (people, columns): everybody's numbers in the averaged columns, NaN if missing."""
    from noren.methods.microaggregation import amounts_of

    out = []
    for name in sight.averaged:
        amounts = amounts_of(sight.table.columns[name])
        assert amounts is not None, "means are for numbers"
        out.append(amounts[sight.table.codes[name]])
    return np.stack(out, axis=1)
