"""Columns that tell each other: what another published column says about a protected one, before anything is published.

For every protected column A and every other published column B the adversary knows how A goes together with B among the
*other* people, sees the person's published cell of B and the person's own cell of A, and concludes by Bayes. Counted
are the people whose true value is then believed with certainty, beyond those whom their own cell gives away already.

In a small table, or over many values, two columns seem to tell each other by chance: what only a few others show is
then wrong about as often as the person's set leaves room for. Certainty therefore counts only as far as it proves
right: among people who are as well supported, for nearly all of them. Large tables are sampled, by chance and from all
of the table, and only the sampled records are coded and drawn; nothing is skipped because a domain is large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.engines.reservoir import ReservoirSource
from noren.policy.policy import Policy
from noren.statements import Cells, MemberStatement, SetStatement, Statement, concat
from noren.statements.batch import PERSON
from noren.workflow import screen
from noren.workflow.draft import Draft
from noren.workflow.picked import PickedSource, picked
from noren.workflow.refusal import Told, refused

KNOWN = 200_000
"""Records from which the adversary learns how columns go together."""
ASKED = 20_000
"""Records whose secrets are asked for, and at most so many products of their possible values:"""
PRODUCTS = 20_000_000
LEAST = 1_000
"""Records that are asked for however many values are possible."""
DENSE = 1 << 22
"""Pairs of values up to which how often they occur together is a table."""
CERTAIN = 0.99
SUPPORT = 2
"""Other people who must show the same before somebody is certain."""
RIGHT = 0.95
"""How often certainty must prove right, among people with about as many others who show the same, to be believed."""


def told(draft: Draft, most_asked: int | None = None, above: float | None = None) -> list[Told]:
    """Every ordered pair of a protected and another published column, the most telling first; of so many people.

    With `above`, only pairs that may tell of a larger share than that.
    """
    statements = [_whole(s) for s in draft.statements]
    hidden = [s for s in statements if s.role.needs_requirement and s.hides]
    if not hidden or len(statements) < 2:
        return []
    truth, cells = _sampled(draft)
    n = len(next(iter(truth.values()))) if truth else 0
    if n < 2 * SUPPORT:
        return []
    shown = [s for s in statements if s.name in truth and s.d]
    rows = {s.name: _Possible.of(s, cells[s.name].take(slice(0, most_asked or ASKED))) for s in shown}
    loud = None if above is None else _screened(truth, rows, shown, hidden, above)
    out = []
    for own in hidden:
        if own.name not in rows or (loud is not None and not any(name == own.name for name, _ in loud)):
            continue
        listed = rows[own.name].listed(own.d)
        a, prior = truth[own.name], np.bincount(truth[own.name], minlength=own.d).astype(np.float64)
        alone = _certain(listed.weight * prior[listed.value], listed.value, a[: len(listed)])
        for other in shown:
            if other.name == own.name or (loud is not None and (own.name, other.name) not in loud):
                continue
            wide = listed.value.shape[1] * rows[other.name].value.shape[1]
            asked = min(len(listed), max(LEAST, PRODUCTS // wide))
            share = _told(listed.first(asked), rows[other.name].first(asked), a, truth[other.name], own.d, other.d)
            out.append(Told(own.name, other.name, share, alone, asked))
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
    found = [one for one in told(draft, above=most) if one.surely > most]
    if not found:
        return []
    raise refused(found, {s.name for s in draft.statements if s.hides}, list(draft.by_name), policy)


def _screened(
    truth: Mapping[str, NDArray[np.int64]],
    rows: Mapping[str, _Possible],
    shown: Sequence[Statement],
    hidden: Sequence[Statement],
    most: float,
) -> set[tuple[str, str]]:
    """The pairs that are worth a close look."""
    few = {s.name: rows[s.name].first(screen.ASKED).dense(s.d).T for s in shown if s.d <= screen.MOST_VALUES}
    found = screen.Screen(truth, few, certain=CERTAIN, support=SUPPORT, right=RIGHT)
    return found.loud({s.name for s in hidden}, [s.name for s in shown], most)


def _sampled(draft: Draft) -> tuple[dict[str, NDArray[np.int64]], dict[str, Cells]]:
    """True codes of listed columns and published cells of some records, drawn from all of the table; one a person, for
    another row of the same person is nothing that the adversary knows from others."""
    table = draft.table
    rng = np.random.default_rng()  # which records are looked at is no release
    listed = [s.name for s in draft.statements if not s.column.is_open and s.name not in _term_columns(draft)]
    if (known := draft.sampled(KNOWN)) is not None:
        order = rng.permutation(len(next(iter(known[0].values()))))
        places = {name: draft.published_codes(name, table.columns[name].domain.values) for name in listed}
        truth = {name: places[name][known[0][name]][order] for name in listed}
        return _told_apart(truth), {name: known[1][name].take(order) for name in listed}
    source = _some(draft, rng)
    codes: dict[str, list[NDArray]] = {name: [] for name in listed}
    parts: list[dict[str, Cells]] = []
    whose: list[NDArray[np.int64]] = []
    for batch in table.engine.encoded(source, table.reading(listed, draft.key)):
        at = source.numbers(batch.start, batch.records)
        published = draft.cells_of(batch, listed, np.arange(batch.records), at)
        parts.append({name: cells for name, cells in published.items() if name != PERSON})
        if table.people is not None:
            whose.append(table.people[at])
        for name in listed:
            codes[name].append(batch.codes[name])
    draft.forget()
    if not parts:
        return {}, {}
    order = rng.permutation(sum(len(part) for part in codes[listed[0]]))
    if whose:
        order = order[np.unique(np.concatenate(whose)[order], return_index=True)[1]]
        order = rng.permutation(order)
    truth, cells = {}, {}
    for name in listed:  # column by column, so that none is held twice for longer than that
        place = draft.published_codes(name, table.columns[name].domain.values)
        truth[name] = place[np.concatenate(codes.pop(name))][order]
        cells[name] = concat([{name: part.pop(name)} for part in parts])[name].take(order)
    return _told_apart(truth), cells


def _some(draft: Draft, rng: np.random.Generator) -> ReservoirSource | PickedSource:
    """Published records by chance: those that were taken while values were counted, or where these are too few for how
    many were left out, some of another pass."""
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


def _certain(
    belief: NDArray[np.float64],
    values: NDArray[np.int64],
    truth: NDArray[np.int64],
    support: NDArray[np.float64] | None = None,
) -> float:
    """The share of records whose true value is believed with certainty; with `support` of every value, only as far as
    certainty with so many others behind it proves right."""
    if not len(truth):
        return 0.0
    total, best = belief.sum(axis=1), belief.argmax(axis=1)
    row = np.arange(len(truth))
    sure = belief[row, best] >= CERTAIN * np.maximum(total, 1e-300)  # nobody is sure of what nothing speaks for
    right = sure & (values[row, best] == truth)
    if support is None:
        return float(right.mean())
    behind = support[row, best]
    sure &= behind >= SUPPORT
    strength = np.floor(np.log2(np.maximum(behind, 1.0))).astype(np.int64)
    found = np.bincount(strength[sure], minlength=1)
    good = np.bincount(strength[sure & right], minlength=len(found))
    return float(good[good >= RIGHT * found].sum() / len(truth))


def _told(own: _Possible, other: _Possible, a: NDArray[np.int64], b: NDArray[np.int64], d: int, others: int) -> float:
    """The share of people who are certain from their own cell and from the other column's.

    Of the other people's pairs only those are looked up that both cells leave possible.
    """
    pairs, n = _Pairs.of(b * d + a, d * others), len(own)
    expected = np.zeros(own.value.shape)
    for k in range(other.value.shape[1]):
        weight = other.weight[:, k] - other.floor * (other.weight[:, k] > 0)
        expected += weight[:, None] * pairs.count(other.value[:, k, None] * d + own.value)
    if other.floor > 0:
        expected += other.floor * np.bincount(a, minlength=d)[own.value]
    mine = other.at(b[:n])
    expected -= mine[:, None] * (own.value == a[:n, None])
    belief = own.weight * expected
    belief[belief < 1e-12 * max(1e-300, float(belief.max(initial=0.0)))] = 0.0
    largest = np.maximum(other.weight.max(axis=1), other.floor)
    return _certain(belief, own.value, a[:n], expected / np.maximum(largest, 1e-300)[:, None])


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
