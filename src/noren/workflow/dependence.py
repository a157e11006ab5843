"""Linked columns: what another published column discloses about a protected one, before anything is published.

For every protected column A and every other published column B the adversary knows how A goes together with B among the
*other* people, sees the person's published cell of B and the person's own cell of A, and concludes by Bayes. Counted
are the people whose true value is then believed with certainty, beyond those whom their own cell discloses already.

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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.designs import draw_columns
from noren.engines.local import kept_batches
from noren.errors import PolicyError, Problem
from noren.policy.policy import Policy
from noren.policy.toml import value
from noren.secret import RecordStream, Secret
from noren.secret.key import KEY_BYTES
from noren.secret.streams import numbered_digests
from noren.sources.source import RowRange, Source
from noren.statements import Cells, MemberStatement, SetStatement, Statement, concat
from noren.statements.batch import PERSON
from noren.workflow.draft import Draft

KNOWN = 200_000
"""Records from which the adversary learns how columns go together."""
ASKED = 20_000
"""Imagined records whose secrets are asked for, and at most so many products of their possible values:"""
PRODUCTS = 20_000_000
LEAST = 1_000
"""Imagined records that are asked for however many values are possible."""
MOST_RATIO = 99.0
"""How many times likelier a value is than each other that is possible, if it is certain."""
FEW_PAIRS = 1 << 16
"""Combinations of two values of a column and one of another that are looked through."""
DENSE = 1 << 22
"""Pairs of values up to which how often they occur together is a table."""
CERTAIN = 0.99
SUPPORT = 2
"""Other people who must show the same before somebody is certain."""
RIGHT = 0.95
"""How often certainty must prove right, among people with about as many others who show the same, to be believed,"""
PROOF = 3.0
"""and by how many standard deviations more often than their own cells alone let one expect."""
SCREENED = 1_000
"""People on whom every pair is looked at first."""
BELOW = 5.0
UNSEEN = 20.0
"""People whom a share means on average that may not show one."""


def told(draft: Draft, most_asked: int | None = None, above: float | None = None) -> list[Told]:
    """Return every pair of a protected and another published column, those that disclose most first.

    With `above`, only pairs that may tell of a larger share than that.
    """
    statements = [_whole(s) for s in draft.statements]
    hidden = [s for s in statements if s.hides and s.role.needs_requirement]
    if not hidden or len(statements) < 2:
        return []
    truth, cells = _sampled(draft, drawn=False)
    n = len(next(iter(truth.values()))) if truth else 0
    if n < 2 * SUPPORT:
        return []
    shown = [s for s in statements if s.name in truth and s.d]
    rows = _Imagined(draft, truth, cells, shown)
    most, people = most_asked or ASKED, draft.records
    limit = None if above is None else least_refused(above, people, LEAST)
    out = []
    for own in hidden:
        if own.name not in truth:
            continue
        others = [s for s in shown if s.name != own.name]
        if limit is not None and _error_of(0.0, limit) <= limit:
            others = [s for s in others if _may_be_certain(truth[own.name], truth[s.name], own, s.d)]
        few = rows.of(own.name, SCREENED).listed(own.d) if others else None
        if limit is not None and few is not None:
            others = [s for s in others if _may_exceed(few, rows.of(s.name, SCREENED), truth, own, s, limit)]
        if few is None or not others:
            continue
        listed = rows.of(own.name, few.people(most)).listed(own.d)
        a, prior = truth[own.name], np.bincount(truth[own.name], minlength=own.d).astype(np.float64)
        alone = _certain(listed.weight * prior[listed.value], listed.value, np.resize(a, len(listed)))
        for other in others:
            beside = rows.of(other.name, rows.of(other.name, SCREENED).people(most, listed.width))
            asked = min(len(listed), len(beside), max(LEAST, PRODUCTS // (listed.width * beside.width)))
            more = _told(listed.first(asked), beside.first(asked), a, truth[other.name], own.d, other.d)
            out.append(Told(own.name, other.name, more, alone, asked, people))
    return sorted(out, key=lambda one: -one.more)


def _may_be_certain(a: NDArray[np.int64], b: NDArray[np.int64], own: Statement, others: int) -> bool:
    """Return whether any cells at all could make somebody newly certain of a value, as far as the counts of pairs rule
    that out.

    Whoever is certain of v finds every other possible value w at least 99 times less likely. What the other cell says
    of both is a weighted sum over its values u, so the counts n(u, v) and n(u, w) differ as much for one u at least,
    beside what the own cell says at most (`ratio`). One record, the person's own, is not counted for w.
    """
    design, d = own.design, own.d
    ratio = 1.0 if design is None or (design.floor == 0 and design.is_even) else float(np.exp(design.epsilon))
    if design is None or isinstance(own, MemberStatement) or ratio >= MOST_RATIO or others * d * d > FEW_PAIRS:
        return True
    counts = np.bincount(b * d + a, minlength=others * d).reshape(others, d)
    needed = MOST_RATIO / ratio * np.maximum(counts - 1, 0)
    beside = np.asarray(((counts[:, :, None] >= needed[:, None, :]) & (counts[:, :, None] > 0)).any(axis=0))
    np.fill_diagonal(beside, False)
    prior, set_size = counts.sum(axis=0), d if design.floor > 0 else design.eta
    largest = -np.sort(-(beside * prior), axis=1)[:, : set_size - 1].sum(axis=1)
    certain = (beside.sum(axis=1) >= set_size - 1) & (prior < RIGHT * (prior + ratio * largest))
    return bool(certain.any())


def _may_exceed(
    listed: _Possible,
    beside: _Possible,
    truth: Mapping[str, NDArray[np.int64]],
    own: Statement,
    other: Statement,
    most: float,
) -> bool:
    """Return whether a small sample leaves it open that a pair discloses more than this: most pairs of a wide table
    disclose nothing. The estimate is never below the later one, and must be five standard deviations below the
    limit."""
    if listed.width * beside.width * SCREENED > PRODUCTS:
        return True
    share = _told(listed, beside, truth[own.name], truth[other.name], own.d, other.d, proof=-BELOW)
    return share + _error_of(share, most) > most


def _error_of(share: float, most: float) -> float:
    """Return by how much a share among the screened people may differ from the expected one."""
    return max(BELOW * float(np.sqrt((share + most) / SCREENED)), UNSEEN / SCREENED)


def _whole(statement: Statement) -> Statement:
    """Return the drawn sets before their members go into separate rows, because other columns may link a person's
    rows."""
    if isinstance(statement, MemberStatement):
        return SetStatement(statement.column, statement.drawn)
    return statement


def demand_independence(draft: Draft, policy: Policy) -> list[str]:
    """Refuse a draft in which columns disclose each other too much; otherwise return remarks for the holder."""
    most = policy.dependence.most
    if most >= 1:
        return []
    found = [one for one in told(draft, above=most) if one.at_most > most]
    if not found:
        return []
    raise refused(found, {s.name for s in draft.statements if s.hides}, list(draft.by_name), policy)


class _Imagined:
    """Cells of simulated people: each has the values of a sampled person, and drawn columns are drawn anew."""

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
        """Return the possible values of a column for the first so many people."""
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


def _sampled(draft: Draft, *, drawn: bool = True) -> tuple[dict[str, NDArray[np.int64]], dict[str, Cells]]:
    """Return true codes of listed columns and published cells of a sample, one record a person, in an order that
    depends on the values. Without `drawn`, only cells of columns that are not drawn."""
    table, terms = draft.table, _term_columns(draft)
    listed = [s.name for s in draft.statements if not s.column.is_open and s.name not in terms]
    decided = [name for name in listed if drawn or name not in draft.designs]
    share = min(1.0, KNOWN / max(1, draft.records))
    chosen = picked(draft.keep, share, np.random.default_rng(0))  # the same records at every try
    source = PickedSource(table.source, table.drop, chosen)
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
    """Return the same records, one a person, in a random-like order that depends only on their values."""
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
    """Return pseudo-random words, one for each number (the finaliser of SplitMix64)."""
    words = (words + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


AT_ONCE = 1 << 20
"""Records that are chosen from at once."""


def picked(keep: NDArray[np.bool_], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the numbers of published records, each taken with probability `share`, ascending."""
    found = []
    for start in range(0, len(keep), AT_ONCE):
        kept = np.flatnonzero(keep[start : start + AT_ONCE])
        found.append(start + (kept if share >= 1 else kept[rng.random(len(kept)) < share]))
    return np.concatenate(found) if found else np.zeros(0, np.int64)


class PickedSource:
    """A source of the records with these numbers, ascending, among those without a missing value in `drop`."""

    def __init__(self, source: Source, drop: Sequence[str], chosen: NDArray[np.int64]) -> None:
        self.inner = source
        self._drop = drop
        self._chosen = chosen
        self.name = source.name
        self.columns = source.columns
        self.notes = source.notes

    @property
    def by_number(self) -> Source:
        """Return the source whose records the numbers count."""
        return self.inner

    @property
    def rows(self) -> int | None:
        return len(self._chosen)

    def over(self, part: Source, place: RowRange) -> Source:
        first, stop = np.searchsorted(self._chosen, [place.start, place.stop])
        return PickedSource(part, self._drop, self._chosen[first:stop] - place.start)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        start = 0
        for batch, _ in kept_batches(self.inner, columns, self._drop):
            low, high = np.searchsorted(self._chosen, [start, start + batch.num_rows])
            rows = self._chosen[low:high] - start
            start += batch.num_rows
            if len(rows):
                yield batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))

    def numbers(self, start: int, records: int) -> NDArray[np.int64]:
        """Return the numbers, in the table, of a run of the sampled records."""
        return self._chosen[start : start + records]


def _told_apart(truth: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """Return the columns in which every record's true value is in the published domain."""
    return {name: found for name, found in truth.items() if (found >= 0).all()}


def _term_columns(draft: Draft) -> set[str]:
    return {s.name for s in draft.statements if not s.hides and s.side is not None}


@dataclass(frozen=True)
class _Possible:
    """The possible values of records' cells, one row a record, with their likelihoods.

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

    @property
    def width(self) -> int:
        """Return the largest number of values in a row."""
        return int(self.value.shape[1])

    def people(self, most: int, beside: int = 1) -> int:
        """Return for how many people cells are simulated: fewer if each leaves very many values possible."""
        return min(most, max(LEAST, PRODUCTS // (self.width * beside)))

    def first(self, records: int) -> _Possible:
        return _Possible(self.value[:records], self.weight[:records], self.floor)

    def listed(self, d: int) -> _Possible:
        """Return the same with every value listed, if unlisted values have a positive probability."""
        if not self.floor > 0:
            return self
        dense = self.dense(d)
        return _Possible(np.broadcast_to(np.arange(d), dense.shape), dense, 0.0)

    def dense(self, d: int) -> NDArray[np.float64]:
        """Return a (records, d) array: the likelihood of every record's cell under every value."""
        out = np.full((len(self), d), self.floor)
        row = np.broadcast_to(np.arange(len(self))[:, None], self.value.shape)
        kept = self.weight > 0
        out[row[kept], self.value[kept]] = self.weight[kept]
        return out

    def at(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the likelihood of every record's cell under one value each."""
        here = (self.value == codes[:, None]) & (self.weight > 0)
        return np.asarray(np.where(here.any(axis=1), (self.weight * here).sum(axis=1), self.floor))


def _certain(belief: NDArray[np.float64], values: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """Return the share of records whose true value is believed with certainty."""
    best, sure = _believed(belief)
    return float((sure & (values[np.arange(len(truth)), best] == truth)).mean()) if len(truth) else 0.0


def _believed(belief: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the likeliest value, and whether it is certain. Without evidence nothing is certain."""
    best = belief.argmax(axis=1)
    return best, belief[np.arange(len(best)), best] >= CERTAIN * np.maximum(belief.sum(axis=1), 1e-300)


def _newly_certain(
    alone: NDArray[np.float64],
    belief: NDArray[np.float64],
    support: NDArray[np.float64],
    values: NDArray[np.int64],
    truth: NDArray[np.int64],
    people: int,
    proof: float = PROOF,
) -> float:
    """Return the share of records whose true value becomes certain and was not nearly certain from its own cell, if
    such certainty with so much `support` proves right. Records may be repeated."""
    if not len(truth):
        return 0.0
    row, (best, sure) = np.arange(len(truth)), _believed(belief)
    behind, before = support[row, best], alone[row, best] / np.maximum(alone.sum(axis=1), 1e-300)
    sure &= (behind >= SUPPORT) & (before < RIGHT)
    strength = np.floor(np.log2(np.maximum(behind[sure], 1.0))).astype(np.int64)
    before, right = before[sure], values[row, best][sure] == truth[sure]
    found, good = np.bincount(strength, minlength=1), np.bincount(strength, right, 1)
    by_chance, spread = np.bincount(strength, before, 1), np.bincount(strength, before * (1 - before), 1)
    proven = (good - by_chance) * np.sqrt(min(1.0, people / len(truth))) >= proof * np.sqrt(spread)
    slack = max(0.0, -proof) * np.sqrt(found * RIGHT * (1 - RIGHT))
    return float(good[proven & (good >= RIGHT * found - slack)].sum() / len(truth))


def _told(
    own: _Possible,
    other: _Possible,
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    d: int,
    others: int,
    proof: float = PROOF,
) -> float:
    """Return the share of people who are certain from both columns' cells, but not from their own cell.

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
    return _newly_certain(own.weight * usual, belief, support, own.value, my_a, len(a), proof)


@dataclass(frozen=True)
class _Pairs:
    """The counts of pairs of values: a table of all, or if these are too many, of those that occur."""

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


# ---------------------------------------------------------------------- what the holder reads


DEVIATIONS = 2.0
"""Standard errors that are counted against the holder."""
GROUPS = 4
"""Groups with a problem of their own, two lines each; the others are counted, so that ten lines are never exceeded."""
NAMED = 6
"""Names in one list, before the rest is counted."""


@dataclass(frozen=True)
class Told:
    """What one published column discloses about another."""

    protected: str
    by: str
    more: float
    """People whose true value is believed with certainty, and not by their own cell: expected over the design."""
    alone: float
    """People whose own cell makes it certain."""
    asked: int
    """Imagined people whose secrets were asked for."""
    people: int
    """People of the release, each of whom is drawn for once."""

    @property
    def share(self) -> float:
        """Return the share of people who are certain from both columns."""
        return min(1.0, self.more + self.alone)

    @property
    def at_most(self) -> float:
        """Return the share plus two standard errors."""
        more = min(1.0, max(0.0, self.more))
        return more + DEVIATIONS * float(
            np.sqrt(more * (1 - more) * (1 / max(1, self.people) + 1 / max(1, self.asked)))
        )

    @property
    def both(self) -> frozenset[str]:
        return frozenset((self.protected, self.by))


def least_refused(most: float, people: int, asked: int) -> float:
    """Return the smallest expected share that is refused with this limit and number of people: the smaller root of
    (most - x)^2 = 4 c x (1 - x)."""
    c = DEVIATIONS**2 * (1 / max(1, people) + 1 / max(1, asked))
    half = most + c / 2
    return float((half - np.sqrt(max(0.0, half**2 - (1 + c) * most**2))) / (1 + c))


def cover(found: Sequence[Told], order: Callable[[str], int]) -> dict[str, list[Told]]:
    """Return a few columns without which no pair remains, each with its pairs: those in most pairs first, then those
    that disclose more, then later columns."""
    left, out = list(found), {}
    while left:
        pairs: dict[str, set[frozenset[str]]] = {}
        weight: dict[str, float] = {}
        for one in left:
            for name in one.both:
                pairs.setdefault(name, set()).add(one.both)
                weight[name] = weight.get(name, 0.0) + one.more
        best = max(pairs, key=lambda name: (len(pairs[name]), round(weight[name], 9), order(name)))
        out[best] = sorted((one for one in left if best in one.both), key=lambda one: -one.more)
        left = [one for one in left if best not in one.both]
    return out


def disclosing_groups(found: Sequence[Told]) -> list[list[Told]]:
    """Return the pairs of every group of columns that are linked by disclosure, the strongest first."""
    groups: list[tuple[set[str], list[Told]]] = []
    for one in found:
        linked = [group for group in groups if group[0] & one.both]
        groups = [group for group in groups if group not in linked]
        names = set(one.both).union(*(group[0] for group in linked))
        groups.append((names, [one, *(pair for group in linked for pair in group[1])]))
    pairs = [sorted(group[1], key=lambda one: -one.more) for group in groups]
    return sorted(pairs, key=lambda group: -group[0].more)


def refused(found: Sequence[Told], hidden: Collection[str], order: Sequence[str], policy: Policy) -> PolicyError:
    """Return the refusal of a draft whose columns disclose each other: `hidden` are the protected ones."""
    groups = disclosing_groups(found)
    problems = [
        Problem("together", describe_group(group, order, policy), _ways_out(group, hidden, order, policy))
        for group in groups[:GROUPS]
    ]
    if rest := groups[GROUPS:]:
        columns = {name for group in rest for one in group for name in one.both}
        more = "1 more group" if len(rest) == 1 else f"{len(rest)} more groups"
        problems.append(Problem("together", f"and {more} of {len(columns)} columns."))
    most = min(1.0, max(one.at_most for one in found) + 0.01)
    accept = f"[dependence] most = {most:.2f} accepts {'it' if len(groups) == 1 else 'all of it'}."
    last = problems[-1]
    problems[-1] = Problem(last.where, last.message, f"{last.hint} {accept}".strip())
    return PolicyError(problems, source=policy.source)


def describe_group(group: Sequence[Told], order: Sequence[str], policy: Policy) -> str:
    """Describe which columns disclose each other, and how much the worst pair does."""
    worst = group[0]
    names = _members({name for one in group for name in one.both}, order, policy)
    return (
        f"{list_names(names)} disclose each other: {worst.protected!r} is certain for {worst.share:.0%} of the "
        f"people if {worst.by!r} is known, and for {worst.alone:.0%} if it is not."
    )


def _ways_out(group: Sequence[Told], hidden: Collection[str], order: Sequence[str], policy: Policy) -> str:
    names = sorted({name for one in group for name in one.both}, key=order.index)
    few = cover(group, order.index)
    one = len(names) == 2
    leave = _members(few, order, policy)
    dropped = " or ".join(map(repr, names)) if one else list_names(leave)
    open_ = sorted({pair.by for pair in group if pair.by not in hidden}, key=order.index)
    return (
        f"Protect them as one column (together = {value(_members(names, order, policy))} above [attributes]), or "
        f"drop {dropped}"
    ) + (f", or protect {list_names(open_)} too." if open_ else ".")


def _members(names: Collection[str], order: Sequence[str], policy: Policy) -> list[str]:
    """Return columns of the table: for a composite its members."""
    found = sorted(names, key=order.index)
    return [member for name in found for member in policy.composites.get(name, (name,))]


def list_names(names: Sequence[str], most: int = NAMED) -> str:
    """Return some names in quotes, as in a sentence, and the number of others."""
    shown = [repr(name) for name in names[:most]]
    if len(names) > most:
        return ", ".join(shown) + f" and {len(names) - most} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
