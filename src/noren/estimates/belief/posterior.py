"""Bayes' rule for every record, from everything that is published about it.

How far each column is to be trusted beside the others.

Each column's evidence is raised to a power between 0 and 2. Columns that say the same share one; a column that is
noise gets none. The powers are those under which people's own cells are foreseen best by the tables that were learned
without them, so that beliefs are as sure as they prove right, and no surer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noren.ahead import side_by_side
from noren.estimates.belief.pairs import (
    START,
    Evidence,
    Pair,
    both,
    evidence_of,
    glanced,
    information,
    kinds,
    learned,
    marginal,
    secret_of,
)
from noren.ragged import distinct_of, in_order, offsets_of, owners, row_numbers
from noren.schema.roles import Role
from noren.statements import Cells, Likelihood, Statement

ASKED, LEAST_ASKED = 4_000, 500
"""Records whose own cells are foreseen: fewer where domains are large."""
MOST_ENTRIES = 1 << 19
"""Records times values up to which all of them are asked."""
MOST_POWER = 2.0
PRICE = 3.0
"""Log-likelihood that a power of 1 must gain, so that columns that say something by chance alone get none."""


def powers(
    own: Evidence, pairs: Sequence[Pair], priors: NDArray[np.float64], fold: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return one weight for every pair. priors: (folds, values)."""
    from scipy.optimize import minimize

    asked = _asked(len(fold), own.d)
    start, told = np.log(np.maximum(priors[fold[asked]], 1e-300)), np.zeros((len(pairs), len(asked), own.d))
    for number in range(len(priors)):
        mine = np.flatnonzero(fold[asked] == number)
        bounds, value = offsets_of(np.full(len(mine), own.d)), np.tile(np.arange(own.d), len(mine))
        for at, pair in enumerate(pairs):
            told[at, mine] = pair.told(number, asked[mine], bounds, value).reshape(len(mine), own.d)
    likely = np.full((len(asked), own.d), own.cells.floor)
    bounds, value, weight = own.listed(asked)
    likely[np.repeat(np.arange(len(asked)), np.diff(bounds)), value] = weight

    def loss(power: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logs = start + np.tensordot(power, told, 1)
        before = np.exp(logs - logs.max(axis=1, keepdims=True))
        before /= before.sum(axis=1, keepdims=True)
        after = before * likely
        total = np.maximum(after.sum(axis=1, keepdims=True), 1e-300)
        slope = after / total - before
        gain = np.tensordot(told, slope, ([1, 2], [0, 1]))
        return PRICE * float(power.sum()) - float(np.log(total).sum()), PRICE - gain

    first = np.full(len(pairs), 0.5)
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=[(0.0, MOST_POWER)] * len(pairs))
    return np.asarray(found.x)


def _asked(records: int, width: int) -> NDArray[np.int64]:
    """Select records spread over the whole table."""
    count = min(records, max(LEAST_ASKED, min(ASKED, MOST_ENTRIES // max(1, width))))
    return np.unique(np.linspace(0, records - 1, count).astype(np.int64))


KNOWN, HELD = 16_000, 5_000
"""Records from which a pair is learned, and those that say when to stop."""
SMALL = 20_000
"""Up to so many records four folds are made, so that nearly all others are learned from; else two."""
MANY = 50_000
"""Records from which on pairs are learned side by side."""
MOST_READ = 16
"""Other columns that are read; of more, those that seem to tell most after a first look."""
READ_SINGLY = 6
"""The same where each is read by itself, to save time."""
LOOKED_AT = 3_000
"""Records of that first look."""
LEAST_LOOKED_AT, MOST_OWN, MOST_PRODUCTS = 500, 64, 1 << 31
"""Fewer of them where columns have many values, and values of a secret up to which pairs are looked for."""
TELLING = 3
"""Columns that are also read two at a time: those that tell most;"""
TOGETHER = 2
"""and so many pairs of any columns that tell together what neither tells (a parity, a sum), above"""
UNUSUAL = 4.0
"""standard deviations."""
MOST_MOVED = 1 << 24
"""Records times values of all columns that are looked at together."""
MOST_CELLS = 1 << 22
"""Entries of a table of two columns."""
MOST_PAIRS = 4_096
"""Values of two columns together, and"""
MOST_LISTED = 100
"""of those what a record's two cells list."""
ENTRIES = 1 << 22
"""Beliefs that are worked on at once."""
TIE = 1e-9
IGNORED = 0.01
"""Powers below which a column is left aside."""
QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)


@dataclass(frozen=True)
class Concluded:
    """The beliefs about every record, one entry per record."""

    top: NDArray[np.int64]
    """The likeliest value."""
    belief: NDArray[np.float64]
    """How firmly it is believed."""
    moved: NDArray[np.float64]
    """Total variation between what is believed about anybody and about the record."""
    truth_belief: NDArray[np.float64] | None = None
    """With the truth: how firmly it is believed."""
    right: NDArray[np.float64] | None = None
    """With the truth: the chance that the likeliest value is right, 1 over the ties."""

    def taken(self, rows: NDArray[np.int64]) -> Concluded:
        """Return these records in this order."""
        true, right = (None if part is None else part[rows] for part in (self.truth_belief, self.right))
        return Concluded(self.top[rows], self.belief[rows], self.moved[rows], true, right)


@dataclass(frozen=True)
class Belief(Concluded):
    """The belief in every value of every record's secret, given all its published cells."""

    column: str = ""
    before: float = 1.0
    """What is believed about anybody, before anything of the record is seen: the share of the commonest value."""
    used: Mapping[str, float] = field(default_factory=dict)
    """The other columns that tell something, and to which power their evidence is taken."""
    by_class: bool = False
    """Whether only the class of a person's row is known, not the row."""
    without: Concluded | None = None
    """The same without the secret's own cell, where it was asked for."""

    def above(self, most: float) -> NDArray[np.bool_]:
        """Return which secrets are believed with more than this."""
        return np.asarray(self.belief > most + TIE)


def believed(
    name: str,
    statements: Sequence[Statement],
    cells: Mapping[str, Cells],
    *,
    given: Sequence[str] | None = None,
    people: NDArray[np.int64] | None = None,
    truth: NDArray[np.int64] | None = None,
    knows_row: bool = False,
    without: bool = False,
    singly: bool = False,
) -> Belief | None:
    """Compute the beliefs about one secret; None if its cells are not about listed values.

    `given` names the other columns that are read; by default all. `people` says whose row each is: what is learned from
    others is then learned from other people. `truth` adds how often the likeliest value is right. `knows_row` grants
    the adversary the person's row beside generalised values too; `without` also concludes without the secret's own
    cell. `singly` saves time: a few columns are read, each by itself.
    """
    by_name = {statement.name: statement for statement in statements}
    order = _order(statements, cells)
    cells = {statement.name: cells[statement.name].take(order) for statement in statements}
    people, truth = (None if part is None else part[order] for part in (people, truth))
    own = secret_of(by_name[name], cells[name])
    if own is None or not len(own.of):
        return None
    of = None if knows_row else _told_apart(by_name, name, cells)
    folds = _folds(len(own.of), people)
    priors = np.stack([marginal(own, known) for known, _, _ in _parts(folds)])
    open_ = _is_open(own)
    others = [statement for statement in statements if statement.name != name] if open_ else []
    if given is not None:
        others = [statement for statement in others if statement.name in given]
    pairs = _pairs(own, others, cells, folds, priors, singly) if others else []
    power = powers(own, pairs, priors, folds) if pairs else np.zeros(0)
    kept = [(pair, float(x)) for pair, x in zip(pairs, power, strict=True) if x >= IGNORED]
    classes = np.arange(len(own.of)) if of is None else of
    back = np.argsort(order)
    found = _concluded(own, kept, priors, folds, classes, truth).taken(back)
    shares = priors.mean(axis=0)
    return Belief(
        **vars(found),
        column=name,
        before=float(shares.max() / shares.sum()),
        used={pair.evidence.name: x for pair, x in kept},
        by_class=of is not None,
        without=_concluded(_silent(own), kept, priors, folds, classes, truth).taken(back) if without else None,
    )


def _silent(own: Evidence) -> Evidence:
    """Return the secret with a cell that carries no information."""
    cells = Likelihood(np.array([0, own.d]), np.arange(own.d), np.ones(own.d))
    return Evidence(own.name, own.d, cells, np.zeros(len(own.of), np.int64))


def _order(statements: Sequence[Statement], cells: Mapping[str, Cells]) -> NDArray[np.int64]:
    """Order records by their content, so that batches and partitions do not change the result."""
    mixed = np.zeros(len(next(iter(cells.values()))), np.uint64)
    for statement in statements:
        number = cells[statement.name].distinct()[1].astype(np.uint64)
        mixed = (mixed ^ (number + np.uint64(1))) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.argsort(mixed, kind="stable")


def _is_open(own: Evidence) -> bool:
    """Return whether cells leave several values possible."""
    return own.cells.floor > 0 or bool((own.cells.lengths > 1).any())


def _told_apart(by_name: Mapping[str, Statement], name: str, cells: Mapping[str, Cells]) -> NDArray[np.int64] | None:
    """Return the rows that could be a person's, as classes; None if the row itself is known.

    A secret that is published as it is lies in a class. Beside generalised quasi-identifiers only the class is known
    too; beside exact ones, or none that can be matched, the adversary is granted the row.
    """
    keys = [s for s in by_name.values() if s.role in QUASI and s.is_key and s.name != name]
    if by_name[name].hides and not any(s.hides for s in keys):
        return None
    found = [cells[s.name].distinct() for s in keys]
    return row_numbers([number for _, number in found], [len(distinct) for distinct, _ in found], len(cells[name]))


# ---------------------------------------------------------------------- learning from others


def _folds(records: int, people: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the fold of every record; all rows of a person are in one fold."""
    count = 4 if records <= SMALL else 2
    if people is None:
        return np.arange(records) % min(count, max(1, records))
    number = np.unique(people, return_inverse=True)[1].reshape(-1)
    order = np.random.default_rng(0).permutation(int(number.max()) + 1)  # the same in every check; nothing secret
    return np.asarray(order[number] % count)


def _parts(folds: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], int]]:
    """Return for every fold the other people to learn from, its own people, and its number."""
    for number in range(int(folds.max(initial=0)) + 1):
        known, held = np.flatnonzero(folds != number), np.flatnonzero(folds == number)
        yield (_thinned(known, KNOWN) if len(known) else held), _thinned(held, HELD), number


def _thinned(records: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Select some records, evenly spread."""
    if len(records) <= most:
        return records
    return np.asarray(records[np.linspace(0, len(records) - 1, most).astype(np.int64)])


def _pairs(
    own: Evidence,
    others: Sequence[Statement],
    cells: Mapping[str, Cells],
    folds: NDArray[np.int64],
    priors: NDArray[np.float64],
    singly: bool = False,
) -> list[Pair]:
    """Learn the relations of other columns with the secret: pairs of columns that disclose most, and all
    quasi-identifiers together."""
    parts = [(known, held) for known, held, _ in _parts(folds)]
    found = [one for other in others if (one := evidence_of(other, cells[other.name])) is not None]
    most = READ_SINGLY if singly else MOST_READ
    found = _most_telling(own, [one for one in found if one.d > 1 and own.d * one.d <= MOST_CELLS], priors[0], most)
    pairs = _learned(own, found, parts, priors)
    if singly:
        return pairs
    told = [information(pair.given[0] * priors[0][:, None]) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda at: -told[at])[:TELLING]
    best = [(pairs[at].evidence, pairs[before].evidence) for i, at in enumerate(order) for before in order[:i]]
    best = [(a, b) for a, b in best if _fits(own, a, b)]
    known = {frozenset((a.name, b.name)) for a, b in best}
    more = _telling_together(own, found, priors[0])
    twos = [
        both(a, b) for a, b in [*best, *(two for two in more if frozenset((two[0].name, two[1].name)) not in known)]
    ]
    keys = [other for other in others if other.is_key]
    if len(keys) > 1:
        whole = [cells[other.name].distinct() for other in keys]
        alike = row_numbers([number for _, number in whole], [len(part) for part, _ in whole], len(folds))
        many = int(alike.max(initial=0)) + 1
        if many <= len(folds) // 4 and own.d * many <= MOST_CELLS:
            twos.append(kinds("all exact and generalised columns", alike))
    return [*pairs, *_learned(own, twos, parts, priors)]


def _learned(
    own: Evidence, others: Sequence[Evidence], parts: Sequence[tuple[NDArray, NDArray]], priors: NDArray[np.float64]
) -> list[Pair]:
    """Learn each relation, in parallel for many records."""

    def one(other: Evidence) -> Pair:
        return learned(own, other, parts, priors)

    return side_by_side(one, others) if len(own.of) >= MANY else [one(other) for other in others]


def _most_telling(own: Evidence, found: Sequence[Evidence], prior: NDArray[np.float64], most: int) -> list[Evidence]:
    """Return the columns to read, in their order."""
    if len(found) <= most:
        return list(found)
    some = _thinned(np.arange(len(own.of)), LOOKED_AT)
    told = [information(glanced(own, one, prior, some)) for one in found]
    best = np.sort(np.argsort(-np.array(told), kind="stable")[:most])
    return [found[at] for at in best]


def closest_columns(
    names: Sequence[str], statements: Sequence[Statement], cells: Mapping[str, Cells], most: int = READ_SINGLY
) -> dict[str, list[str]]:
    """Return for each of these secrets the other columns that go with it most closely, by second moments of what cells
    say; the secret that they disclose most comes first. Each column is read once, however many secrets there are."""
    if len(statements) <= most + 1:
        return {name: [one.name for one in statements if one.name != name] for name in names}
    made = {
        one.name: secret_of(one, cells[one.name]) if one.name in names else evidence_of(one, cells[one.name])
        for one in statements
    }
    read = {name: one for name, one in made.items() if one is not None and one.d > 1}
    bounds = offsets_of(np.array([one.d for one in read.values()]))
    records = len(next(iter(cells.values())))
    some = _thinned(np.arange(records), min(LOOKED_AT, max(LEAST_LOOKED_AT, MOST_MOVED // max(1, int(bounds[-1])))))
    moved = np.zeros((len(some), int(bounds[-1])), np.float32)
    for at, one in enumerate(read.values()):
        prior = marginal(one, some, START)
        moved[:, bounds[at] : bounds[at + 1]] = one.moved(some, prior) / np.sqrt(np.maximum(prior, 1 / len(some)))
    spread, order = moved.var(axis=0), list(read)
    strength, out = dict.fromkeys(names, 0.0), {name: list[str]() for name in names}
    for name in read.keys() & set(names):
        mine = order.index(name)
        own = slice(bounds[mine], bounds[mine + 1])
        squared = ((moved[:, own].T @ moved / len(some)) ** 2).sum(axis=0) - spread[own].sum() * spread / len(some)
        told = np.add.reduceat(squared, bounds[:-1])
        told[mine] = -np.inf
        best = np.sort(np.argsort(-told, kind="stable")[:most])
        out[name], strength[name] = [order[other] for other in best], float(told[best].sum())
    return {name: out[name] for name in sorted(names, key=lambda name: -strength[name])}


def _fits(own: Evidence, a: Evidence, b: Evidence) -> bool:
    """Return whether two columns can be read together, by the number of pairs of values."""
    return _listed(a) * _listed(b) <= MOST_LISTED and a.d * b.d <= MOST_PAIRS and own.d * a.d * b.d <= MOST_CELLS


def _listed(one: Evidence) -> float:
    """Return the number of values that a record's cell lists."""
    return one.d if one.cells.floor > 0 else one.width


def _telling_together(
    own: Evidence, found: Sequence[Evidence], prior: NDArray[np.float64]
) -> list[tuple[Evidence, Evidence]]:
    """Return pairs of columns that are related to the secret only together, by their third moments."""
    fits = [(i, j) for i, a in enumerate(found) for j, b in enumerate(found[:i]) if _fits(own, a, b)]
    if not fits or own.d > MOST_OWN:
        return []
    bounds = offsets_of(np.array([one.d for one in found]))
    records = min(LOOKED_AT, max(LEAST_LOOKED_AT, MOST_PRODUCTS // (own.d * int(bounds[-1]) ** 2)))
    some = _thinned(np.arange(len(own.of)), records)
    mine = own.moved(some, prior).astype(np.float32)
    moved = np.hstack([one.moved(some, marginal(one, some, START)) for one in found]).astype(np.float32)
    spread = len(some) * np.outer(moved.var(axis=0), moved.var(axis=0))
    score = np.zeros(spread.shape)
    for value in mine.T:
        score += (moved.T @ (moved * value[:, None])) ** 2 / np.maximum(spread * value.var(), 1e-12)
    unusual = np.zeros(len(fits))
    for at, (i, j) in enumerate(fits):
        part = score[bounds[i] : bounds[i + 1], bounds[j] : bounds[j + 1]]
        unusual[at] = (part.sum() - part.size * own.d) / np.sqrt(2 * part.size * own.d)
    order = np.argsort(-unusual, kind="stable")[:TOGETHER]
    return [(found[fits[at][0]], found[fits[at][1]]) for at in order if unusual[at] > UNUSUAL]


# ---------------------------------------------------------------------- concluding


def _concluded(
    own: Evidence,
    pairs: Sequence[tuple[Pair, float]],
    priors: NDArray[np.float64],
    folds: NDArray[np.int64],
    of: NDArray[np.int64],
    truth: NDArray[np.int64] | None,
) -> Concluded:
    """Compute the beliefs about every record; the belief of a class in `of` is the mean over its rows."""
    n = len(of)
    order = in_order(of)
    top, belief, moved = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    right, true = np.zeros(n), np.zeros(n)
    usual = priors.mean(axis=0) / max(float(priors.mean(axis=0).sum()), 1e-300)
    for rows in _whole_classes(order, of, max(1, int(own.width) or 1, own.d if own.cells.floor > 0 else 1)):
        bounds, value, mass = _posterior(own, pairs, priors, folds, rows)
        classes, _, place = distinct_of(of[rows])
        key = place[owners(bounds)] * np.int64(own.d) + value
        distinct, _, entry = distinct_of(key)
        total = np.bincount(entry, mass, minlength=len(distinct))
        whose = distinct // own.d
        total = total / np.bincount(place, minlength=len(classes))[whose]
        begins = np.searchsorted(whose, np.arange(len(classes)))
        most = np.maximum.reduceat(total, begins)
        tied = total >= most[whose] * (1 - TIE)
        ties = np.add.reduceat(tied.astype(np.int64), begins)
        first = np.zeros(len(classes), np.int64)
        first[whose[tied][::-1]] = (distinct % own.d)[tied][::-1]
        top[rows], belief[rows] = first[place], most[place]
        expected = usual[distinct % own.d]
        far = np.add.reduceat(np.abs(total - expected) - expected, begins)
        moved[rows] = ((far + 1) / 2)[place]
        if truth is not None:
            wanted = place * np.int64(own.d) + truth[rows]
            at = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
            there = distinct[at] == wanted
            true[rows] = np.where(there, total[at], 0.0)
            right[rows] = (there & tied[at]) / ties[place]
    return Concluded(top, belief, moved) if truth is None else Concluded(top, belief, moved, true, right)


def _posterior(
    own: Evidence,
    pairs: Sequence[tuple[Pair, float]],
    priors: NDArray[np.float64],
    folds: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Compute the beliefs from every single row as sparse rows: offsets, values and beliefs."""
    bounds, value, weight = own.listed(rows)
    owner = owners(bounds)
    logs = np.log(np.maximum(weight * priors[folds[rows][owner], value], 1e-300))
    for number in range(len(priors)):
        mine = np.flatnonzero(folds[rows] == number)
        if not len(mine) or not pairs:
            continue
        inside = np.flatnonzero((folds[rows] == number)[owner])
        starts = offsets_of(np.diff(bounds)[mine])
        for pair, power in pairs:
            logs[inside] += power * pair.told(number, rows[mine], starts, value[inside])
    logs -= np.maximum.reduceat(logs, bounds[:-1])[owner]
    mass = np.exp(logs)
    return bounds, value, mass / np.bincount(owner, mass, minlength=len(rows))[owner]


def _whole_classes(order: NDArray[np.int64], of: NDArray[np.int64], width: int) -> Iterator[NDArray[np.int64]]:
    """Split rows into blocks that fit into memory, without dividing classes."""
    step, low = max(1, ENTRIES // width), 0
    while low < len(order):
        high = min(len(order), low + step)
        if high < len(order):
            high = int(np.searchsorted(of[order], of[order[high - 1]], side="right"))
        yield order[low:high]
        low = high
