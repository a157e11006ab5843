"""Columns that tell each other: what another published column says about a protected one, before anything is published.

For every protected column A and every other published column B the adversary knows how A goes together with B among the
*other* people, sees the person's published cell of B and the person's own cell of A, and concludes by Bayes. Counted
are the people whose true value is then believed with certainty, beyond those whom their own cell gives away already.

What counts is the expectation over the design, not what one draw came to: how often two drawn cells leave one value is
averaged over cells that are imagined for every pair of true values that occurs, as often as it occurs. They are drawn
under a fixed key that is no secret, for people in an order that follows from what they have. So the verdict is a
function of table and policy, whatever the secret and however often one tries; cells that a method decided are taken as
they are. Two standard errors of the draw, and of the imagining, are counted against the holder.

In a small table, or over many values, two columns seem to tell each other by chance: what only a few others show is
then wrong about as often as the person's set leaves room for. Certainty therefore counts only as far as it proves
right: among people who are as well supported, for nearly all of them, and for more than chance explains. Who is nearly
certain by the own cell and by how common the values are is not counted. Large tables are sampled, from all of them, and
only the sampled records are coded; nothing is skipped because a domain is large.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from noren.designs import draw_columns
from noren.policy.policy import Policy
from noren.secret import RecordStream, Secret
from noren.secret.key import KEY_BYTES
from noren.secret.streams import numbered_digests
from noren.sources.sample import ReservoirSource
from noren.statements import Cells, MemberStatement, SetStatement, Statement, concat
from noren.statements.batch import PERSON
from noren.workflow.apart import PickedSource, picked
from noren.workflow.draft import Draft
from noren.workflow.refusal import Told, least_refused, refused

KNOWN = 200_000
"""Records from which the adversary learns how columns go together."""
ASKED = 20_000
"""Imagined records whose secrets are asked for, and at most so many products of their possible values:"""
PRODUCTS = 20_000_000
LEAST = 1_000
"""Imagined records that are asked for however many values are possible."""
DENSE = 1 << 22
"""Pairs of values up to which how often they occur together is a table."""
CERTAIN = 0.99
SUPPORT = 2
"""Other people who must show the same before somebody is certain."""
RIGHT = 0.95
"""How often certainty must prove right, among people with about as many others who show the same, to be believed,"""
PROOF = 3.0
"""and by how many standard deviations more often than their own cells alone let one expect."""


def told(draft: Draft, most_asked: int | None = None, above: float | None = None) -> list[Told]:
    """Every ordered pair of a protected and another published column, the most telling first; of so many people.

    With `above`, only pairs that may tell of a larger share than that.
    """
    statements = [_whole(s) for s in draft.statements]
    hidden = [s for s in statements if s.role.needs_requirement and s.hides]
    if not hidden or len(statements) < 2:
        return []
    truth, cells = _sampled(draft, drawn=False)
    n = len(next(iter(truth.values()))) if truth else 0
    if n < 2 * SUPPORT:
        return []
    shown = [s for s in statements if s.name in truth and s.d]
    rows = _Imagined(draft, truth, cells, shown)
    most, people = most_asked or ASKED, draft.records
    loud = None if above is None else _screened(rows, shown, hidden, least_refused(above, people, LEAST))
    out = []
    for own in hidden:
        others = [s for s in shown if s.name != own.name and (loud is None or (own.name, s.name) in loud)]
        if own.name not in truth or not others:
            continue
        listed = rows.of(own.name, most).listed(own.d)
        a, prior = truth[own.name], np.bincount(truth[own.name], minlength=own.d).astype(np.float64)
        alone = _certain(listed.weight * prior[listed.value], listed.value, np.resize(a, most))
        for other in others:
            beside = rows.of(other.name, most)
            asked = min(most, max(LEAST, PRODUCTS // (listed.value.shape[1] * beside.value.shape[1])))
            more = _told(listed.first(asked), beside.first(asked), a, truth[other.name], own.d, other.d)
            out.append(Told(own.name, other.name, more, alone, asked, people))
    return sorted(out, key=lambda one: -one.more)


def _whole(statement: Statement) -> Statement:
    """What is drawn, before its members go into rows of their own: other columns may tie a person's rows together."""
    if isinstance(statement, MemberStatement):
        return SetStatement(statement.column, statement.drawn)
    return statement


def demand_independence(draft: Draft, policy: Policy) -> list[str]:
    """Refuse a draft in which columns tell each other too much; else what a holder should know about it."""
    most = policy.dependence.most
    if most >= 1:
        return []
    found = [one for one in told(draft, above=most) if one.at_most > most]
    if not found:
        return []
    raise refused(found, {s.name for s in draft.statements if s.hides}, list(draft.by_name), policy)


class _Imagined:
    """Cells of imagined people: each has what a sampled person has, and drawn columns are drawn for each anew."""

    def __init__(
        self, draft: Draft, truth: Mapping[str, NDArray], cells: Mapping[str, Cells], shown: Sequence[Statement]
    ) -> None:
        self.truth = truth
        self._cells = cells
        self._designs = draft.designs
        self._statements = {s.name: s for s in shown}
        self._stream = RecordStream(Secret(bytes(KEY_BYTES)))  # a known key: nothing that is drawn here is published
        self._found: dict[tuple[str, int], _Possible] = {}

    def of(self, name: str, people: int) -> _Possible:
        """What the cells of the first so many leave possible of a column."""
        if (name, people) not in self._found:
            statement, codes = self._statements[name], np.resize(self.truth[name], people)
            if name in self._designs:
                numbers = numbered_digests(np.arange(people))
                design = {name: self._designs[name]}
                cells: Cells = draw_columns(design, {name: codes}, self._stream, digests=numbers)[name]
            else:
                cells = self._cells[name].take(np.resize(np.arange(len(self.truth[name])), people))
            self._found[name, people] = _Possible.of(statement, cells)
        return self._found[name, people]


def _screened(
    rows: _Imagined, shown: Sequence[Statement], hidden: Sequence[Statement], most: float
) -> set[tuple[str, str]]:
    """The pairs that are worth a close look."""
    few = {s.name: rows.of(s.name, SCREENED).dense(s.d).T for s in shown if s.d <= MOST_VALUES}
    found = Screen(rows.truth, few, certain=CERTAIN, support=SUPPORT, right=RIGHT)
    return found.loud({s.name for s in hidden}, [s.name for s in shown], most)


def _sampled(draft: Draft, *, drawn: bool = True) -> tuple[dict[str, NDArray[np.int64]], dict[str, Cells]]:
    """True codes of listed columns and published cells of some records from all of the table, one a person, for
    another row of the same person is nothing that the adversary knows from others; their order follows from what they
    have. Without `drawn`, cells of columns that are not drawn."""
    table = draft.table
    listed = [s.name for s in draft.statements if not s.column.is_open and s.name not in _term_columns(draft)]
    decided = [name for name in listed if drawn or name not in draft.designs]
    if (known := draft.sampled(KNOWN)) is not None:
        places = {name: draft.published_codes(name, table.columns[name].domain.values) for name in listed}
        truth = {name: places[name][known[0][name]] for name in listed}
        return _in_order(truth, {name: known[1][name] for name in decided}, None)
    source = _some(draft, np.random.default_rng(0))  # the same records at every try
    codes: dict[str, list[NDArray]] = {name: [] for name in listed}
    parts: list[dict[str, Cells]] = []
    whose: list[NDArray[np.int64]] = []
    for batch in table.engine.encoded(source, table.reading(listed, draft.key)):
        at = source.numbers(batch.start, batch.records)
        published = draft.cells_of(batch, decided, np.arange(batch.records), at)
        parts.append({name: cells for name, cells in published.items() if name != PERSON})
        if table.people is not None:
            whose.append(table.people[at])
        for name in listed:
            codes[name].append(batch.codes[name])
    draft.forget()
    if not parts:
        return {}, {}
    cells, truth = {}, {}
    for name in listed:  # column by column, so that none is held twice for longer than that
        place = draft.published_codes(name, table.columns[name].domain.values)
        truth[name] = place[np.concatenate(codes.pop(name))]
        if name in decided:
            cells[name] = concat([{name: part.pop(name)} for part in parts])[name]
    return _in_order(truth, cells, np.concatenate(whose) if whose else None)


def _in_order(
    truth: Mapping[str, NDArray[np.int64]], cells: Mapping[str, Cells], whose: NDArray[np.int64] | None
) -> tuple[dict[str, NDArray[np.int64]], dict[str, Cells]]:
    """The same records, one a person, in an order that follows from what they have, mixed like any sample."""
    columns = [*truth.values(), *(found.distinct()[1] for found in cells.values())]
    row = np.zeros(len(columns[0]) if columns else 0, np.uint64)
    for number in columns:
        row = _mixed(row ^ (number.astype(np.uint64) + np.uint64(1)))
    if whose is not None:
        person = np.unique(whose, return_inverse=True)[1].reshape(-1)
        together = np.zeros(int(person.max(initial=-1)) + 1, np.uint64)
        np.add.at(together, person, row)
        row = _mixed(row ^ together[person])
    order = np.argsort(row, kind="stable")
    begins = np.flatnonzero(np.diff(row[order], prepend=~row[order[:1]]))
    again = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    order = order[np.argsort(_mixed(row[order] ^ _mixed(again.astype(np.uint64))), kind="stable")]
    if whose is not None:
        order = order[np.sort(np.unique(whose[order], return_index=True)[1])]
    found = {name: codes[order] for name, codes in truth.items()}
    return _told_apart(found), {name: one.take(order) for name, one in cells.items()}


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words without pattern, one for each (the finaliser of SplitMix64)."""
    words = (words + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _some(draft: Draft, rng: np.random.Generator) -> ReservoirSource | PickedSource:
    """Published records from all of the table: those that were taken while values were counted, or where these are too
    few for how many were left out, some of another pass."""
    table = draft.table
    if table.known is not None:
        taken = table.known.of(draft.keep, table.name)
        if taken.rows >= min(draft.records, KNOWN // 2):
            return taken
    chosen = picked(draft.keep, min(1.0, KNOWN / max(1, draft.records)), rng)
    return PickedSource(table.source, table.drop, chosen)


def _told_apart(truth: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """The columns in which every record's true value is one of the published domain."""
    return {name: found for name, found in truth.items() if (found >= 0).all()}


def _term_columns(draft: Draft) -> set[str]:
    return {s.name for s in draft.statements if s.side is not None and not s.hides}


@dataclass(frozen=True)
class _Possible:
    """The values that records' cells leave possible, one row a record, with the likelihood of the cell under each.

    Shorter rows are filled up with a weight of 0. Values that a row does not list have the likelihood `floor`.
    """

    value: NDArray[np.int64]
    weight: NDArray[np.float64]
    floor: float

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def of(cls, statement: Statement, cells: Cells) -> _Possible:
        distinct, number = cells.distinct()
        found = statement.likelihood(distinct)
        assert found is not None
        place = np.arange(len(found.value)) - found.bounds[:-1][found.owner]
        value = np.zeros((len(found), max(1, int(found.lengths.max(initial=0)))), np.int64)
        weight = np.zeros(value.shape)
        value[found.owner, place] = found.value
        weight[found.owner, place] = found.weight
        return cls(value[number], weight[number], found.floor)

    def first(self, records: int) -> _Possible:
        return _Possible(self.value[:records], self.weight[:records], self.floor)

    def listed(self, d: int) -> _Possible:
        """The same with every value listed, where those that are not have a chance too."""
        if not self.floor > 0:
            return self
        dense = self.dense(d)
        return _Possible(np.broadcast_to(np.arange(d), dense.shape), dense, 0.0)

    def dense(self, d: int) -> NDArray[np.float64]:
        """(records, d): the likelihood of every record's cell under every value."""
        out = np.full((len(self), d), self.floor)
        row = np.broadcast_to(np.arange(len(self))[:, None], self.value.shape)
        kept = self.weight > 0
        out[row[kept], self.value[kept]] = self.weight[kept]
        return out

    def at(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The likelihood of every record's cell under one value each."""
        here = (self.value == codes[:, None]) & (self.weight > 0)
        return np.asarray(np.where(here.any(axis=1), (self.weight * here).sum(axis=1), self.floor))


def _certain(belief: NDArray[np.float64], values: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """The share of records whose true value is believed with certainty."""
    best, sure = _believed(belief)
    return float((sure & (values[np.arange(len(truth)), best] == truth)).mean()) if len(truth) else 0.0


def _believed(belief: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the likeliest value stands, and whether it is certain. Nobody is sure of what nothing speaks for."""
    best = belief.argmax(axis=1)
    return best, belief[np.arange(len(best)), best] >= CERTAIN * np.maximum(belief.sum(axis=1), 1e-300)


def _newly_certain(
    alone: NDArray[np.float64],
    belief: NDArray[np.float64],
    support: NDArray[np.float64],
    values: NDArray[np.int64],
    truth: NDArray[np.int64],
    people: int,
) -> float:
    """The share of records whose true value is believed with certainty, and was not nearly so by the own cell alone:
    as far as certainty with so many others behind it (`support`, of every value) proves right. Records may be those of
    fewer people, again and again."""
    if not len(truth):
        return 0.0
    row, (best, sure) = np.arange(len(truth)), _believed(belief)
    behind, before = support[row, best], alone[row, best] / np.maximum(alone.sum(axis=1), 1e-300)
    sure &= (behind >= SUPPORT) & (before < RIGHT)
    strength = np.floor(np.log2(np.maximum(behind[sure], 1.0))).astype(np.int64)
    before, right = before[sure], values[row, best][sure] == truth[sure]
    found, good = np.bincount(strength, minlength=1), np.bincount(strength, right, 1)
    by_chance, spread = np.bincount(strength, before, 1), np.bincount(strength, before * (1 - before), 1)
    proven = (good - by_chance) * np.sqrt(min(1.0, people / len(truth))) >= PROOF * np.sqrt(spread)
    return float(good[proven & (good >= RIGHT * found)].sum() / len(truth))


def _told(own: _Possible, other: _Possible, a: NDArray[np.int64], b: NDArray[np.int64], d: int, others: int) -> float:
    """The share of people who are certain from their own cell and from the other column's, and not from their own.

    Rows are of the people in their order, and again from the first. Of the other people's pairs only those are looked
    up that both cells leave possible.
    """
    pairs, n = _Pairs.of(b * d + a, d * others), len(own)
    my_a, my_b = np.resize(a, n), np.resize(b, n)
    expected = np.zeros(own.value.shape)
    for k in range(other.value.shape[1]):
        weight = other.weight[:, k] - other.floor * (other.weight[:, k] > 0)
        expected += weight[:, None] * pairs.count(other.value[:, k, None] * d + own.value)
    usual = np.bincount(a, minlength=d)[own.value]
    if other.floor > 0:
        expected += other.floor * usual
    mine = other.at(my_b)
    expected -= mine[:, None] * (own.value == my_a[:, None])
    belief = own.weight * expected
    belief[belief < 1e-12 * max(1e-300, float(belief.max(initial=0.0)))] = 0.0
    largest = np.maximum(other.weight.max(axis=1), other.floor)
    support = expected / np.maximum(largest, 1e-300)[:, None]
    return _newly_certain(own.weight * usual, belief, support, own.value, my_a, len(a))


@dataclass(frozen=True)
class _Pairs:
    """How often pairs of values occur: a table of all, or where these are too many, of those that occur."""

    keys: NDArray[np.int64] | None
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, keys: NDArray[np.int64], size: int) -> _Pairs:
        if size <= DENSE:
            return cls(None, np.bincount(keys, minlength=size).astype(np.float64))
        found, counts = np.unique(keys, return_counts=True)
        return cls(found, counts.astype(np.float64))

    def count(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.keys is None:
            return self.counts[keys]
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0.0)


# ---------------------------------------------------------------------- a first look at few people


SCREENED = 1_000
"""People who are asked."""
MOST_VALUES = 64
"""Values of a domain that is screened; larger ones are looked at closely."""
COUNTED_TOGETHER = 400
"""Combinations of values up to which columns are counted as one."""
DEVIATIONS = 5.0
UNSEEN = 20.0
"""People whom a share means on average that may not show one."""
SLACK = 1e-3
"""By how much certainty and its support may fall short, for rounding."""


class Screen:
    """The cells of a few people in every column, and what everybody has, as tables: most pairs of a wide table disclose
    nothing, and a few people show it.

    What is counted is what `told` counts, on fewer people, and never less. A pair is let go only if its share lies five
    standard deviations below the limit; every other one is looked at closely.
    """

    def __init__(
        self,
        truth: Mapping[str, NDArray[np.int64]],
        likelihoods: Mapping[str, NDArray[np.float64]],
        *,
        certain: float,
        support: float,
        right: float,
    ) -> None:
        """`likelihoods` of a column's values under each person's cell, (values, people), for the first people."""
        self._certain = certain - SLACK
        self._support = support - SLACK
        self._right = right
        self._weights = {name: table.astype(np.float32) for name, table in likelihoods.items()}
        self._n = len(next(iter(likelihoods.values())).T) if likelihoods else 0
        self._codes = {name: truth[name].astype(np.uint8) for name in likelihoods}
        self._asked = {name: np.resize(truth[name], self._n) for name in likelihoods}
        self._mine = {name: table[self._asked[name], np.arange(self._n)] for name, table in self._weights.items()}
        self._largest = {name: table.max(axis=0) for name, table in self._weights.items()}

    def loud(self, owns: Collection[str], names: Sequence[str], most: float) -> set[tuple[str, str]]:
        """Ordered pairs (protected, other) that may exceed the limit."""
        out = {(own, other) for own in owns for other in names if own != other and not {own, other} <= {*self._weights}}
        known = [name for name in names if name in self._weights]
        asked = {name for name in known if name in owns}
        for one, other, pairs in self._pairs(known, asked):
            for own, by, table in ((one, other, pairs), (other, one, pairs.T)):
                if own in asked and self._may_exceed(self._share(own, by, table), most):
                    out.add((own, by))
        return out

    def _may_exceed(self, share: float, most: float) -> bool:
        error = max(DEVIATIONS * float(np.sqrt((share + most) / max(1, self._n))), UNSEEN / max(1, self._n))
        return share + error > most

    def _pairs(self, names: Sequence[str], owns: Collection[str]) -> Iterator[tuple[str, str, NDArray[np.float32]]]:
        """Two columns, of which one is among `owns`, and how often a value of one stands beside a value of the other.

        Columns of few values are counted together, and what two of them have in common is summed from that.
        """
        bundles = self._bundles(sorted(names, key=lambda name: name not in owns))
        keys = [self._key(bundle) for bundle in bundles]
        for at, one in enumerate(bundles):
            for beside, other in enumerate(bundles[at:], at):
                columns = one if beside == at else [*one, *other]
                if not any(name in owns for name in columns):
                    break
                sizes = [len(self._weights[name]) for name in columns]
                key = keys[at] if beside == at else keys[at] * np.uint32(prod(sizes[len(one) :])) + keys[beside]
                found = np.bincount(key, minlength=prod(sizes)).reshape(sizes)
                for i, first in enumerate(one):
                    for j in range(i + 1 if beside == at else len(one), len(columns)):
                        if first in owns or columns[j] in owns:
                            others = tuple(k for k in range(len(columns)) if k not in (i, j))
                            yield first, columns[j], found.sum(axis=others).astype(np.float32)

    def _bundles(self, names: Sequence[str]) -> list[list[str]]:
        """Neighbouring columns whose values have few combinations."""
        out: list[list[str]] = []
        room = 0
        for name in names:
            room //= len(self._weights[name])
            if room:
                out[-1].append(name)
            else:
                out.append([name])
                room = COUNTED_TOGETHER // len(self._weights[name])
        return out

    def _key(self, names: Sequence[str]) -> NDArray[np.uint32]:
        """One number for what everybody has in these columns."""
        key = self._codes[names[0]].astype(np.uint32)
        for name in names[1:]:
            key = key * np.uint32(len(self._weights[name])) + self._codes[name]
        return key

    def _share(self, own: str, by: str, pairs: NDArray[np.float32]) -> float:
        """The share of people who may be certain of the truth from their own cell and another column's, and not nearly
        so from their own."""
        row, truth = np.arange(self._n), self._asked[own]
        expected = pairs @ self._weights[by]
        expected[truth, row] -= self._mine[by]
        belief = self._weights[own] * expected
        sure = np.flatnonzero(belief.max(axis=0) >= self._certain * np.maximum(belief.sum(axis=0), 1e-30))
        if not len(sure):
            return 0.0
        best = belief[:, sure].argmax(axis=0)
        behind = expected[best, sure] / np.maximum(self._largest[by][sure], 1e-30)
        usual = self._weights[own][:, sure] * np.bincount(self._codes[own], minlength=len(expected))[:, None]
        alone = usual[best, np.arange(len(sure))] / np.maximum(usual.sum(axis=0), 1e-30)
        kept = (behind >= self._support) & (alone < self._right + SLACK)
        right = kept & (best == truth[sure])
        strength = np.floor(np.log2(np.maximum(behind, 1.0))).astype(np.int64)
        found = np.bincount(strength[kept], minlength=1)
        good = np.bincount(strength[right], minlength=len(found))
        by_chance = DEVIATIONS * np.sqrt(found * self._right * (1 - self._right))
        return float(good[good >= self._right * found - by_chance].sum() / self._n)
