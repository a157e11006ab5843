"""The relation of a secret to another column, learned from the cells of other people.

What two columns of cells say together: one step towards their joint distribution, and what it makes of a record.

A column is given as sparse rows: entries bounds[c] <= e < bounds[c + 1] are the values that cell c lists, each with
what its probability exceeds `floor` by; all other values have the probability `floor`. `of` is the cell of a record.

Published columns as evidence: for every record the values that its cell speaks for, and how strongly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.kernel import kernel
from noren.ragged import chosen, distinct_of
from noren.statements import Cells, Likelihood, Statement

MOST_KINDS = 512
"""Different cells of a column that are distinguished where they are read as they stand; the rarest are taken
together."""
BINS = 64
"""Groups of neighbouring numbers, where a column has more values than can be distinguished."""
FEW = 64
"""Generalised values up to which each is read as it stands; more overlap, and are read by the values under them."""


@dataclass(frozen=True)
class Evidence:
    """The likelihoods over d values of the cells of one column, or of two together."""

    name: str
    d: int
    cells: Likelihood
    """Of every different cell; what exceeds the floor is listed."""
    of: NDArray[np.int64]
    """The cell of every record."""
    widths: tuple[int, int] | None = None
    """Of two columns together: how many values each has."""

    @cached_property
    def rows(self) -> Rows:
        """Return the arrays that the kernels take."""
        cells = self.cells
        return Rows(cells.bounds, cells.value, cells.weight - cells.floor, float(cells.floor), self.of)

    @cached_property
    def width(self) -> float:
        """Return the mean number of values that a record's cell lists."""
        return float(self.cells.lengths[self.of].mean()) if len(self.of) else 0.0

    def listed(self, records: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the possible values of these records as sparse rows: offsets, values, and their likelihoods."""
        bounds, taken = chosen(self._possible.bounds, self.of[records])
        return bounds, self._possible.value[taken], self._possible.weight[taken]

    def dense(self, records: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a (records, values) array: the likelihood of each record's cell under every value."""
        bounds, value, weight = self.listed(records)
        out = np.zeros((len(records), self.d))
        out[np.repeat(np.arange(len(records)), np.diff(bounds)), value] = weight
        return out

    def moved(self, records: NDArray[np.int64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a (records, values) array: how much a record's cell changes the prior belief."""
        out = self.dense(records)
        out *= prior
        out /= np.maximum(out.sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(out - out.mean(axis=0))

    @cached_property
    def _possible(self) -> Likelihood:
        return self.cells.listed(self.d)


def secret_of(statement: Statement, cells: Cells) -> Evidence | None:
    """Return the secret's own cells; None if they are not about listed values."""
    if statement.terms is not None or statement.rows_per_record > 1 or statement.d == 0:
        return None
    distinct, of = cells.distinct()
    found = statement.likelihood(distinct)
    return None if found is None else Evidence(statement.name, statement.d, _scaled(found), of)


def evidence_of(statement: Statement, cells: Cells) -> Evidence | None:
    """Return the evidence of another column; None for sets of terms and for rows of several people."""
    if statement.terms is not None or statement.rows_per_record > 1:
        return None
    distinct, of = cells.distinct()
    many = len(distinct)
    if statement.is_exact or (statement.is_key and (many <= FEW or statement.d == 0)):
        return kinds(statement.name, _grouped(statement, distinct, of) if many > MOST_KINDS else of)
    found = None if statement.d == 0 else statement.likelihood(distinct)
    return None if found is None else Evidence(statement.name, statement.d, _scaled(found), of)


def kinds(name: str, of: NDArray[np.int64]) -> Evidence:
    """Return cells in which each distinct cell counts as one value."""
    d = int(of.max(initial=0)) + 1
    return Evidence(name, d, Likelihood(np.arange(d + 1), np.arange(d), np.ones(d)), of)


def both(one: Evidence, two: Evidence) -> Evidence:
    """Combine two columns into one over pairs of values."""
    first, second = one.cells.listed(one.d), two.cells.listed(two.d)
    keys, _, of = distinct_of(one.of * np.int64(len(second)) + two.of)
    a, b = keys // len(second), keys % len(second)
    wide, narrow = first.lengths[a], second.lengths[b]
    size = wide * narrow
    bounds = np.concatenate([[0], np.cumsum(size)])
    at = np.arange(bounds[-1]) - np.repeat(bounds[:-1], size)
    behind = np.repeat(narrow, size)
    left, right = np.repeat(first.bounds[a], size) + at // behind, np.repeat(second.bounds[b], size) + at % behind
    value = first.value[left] * np.int64(two.d) + second.value[right]
    cells = Likelihood(bounds, value, first.weight[left] * second.weight[right])
    return Evidence(f"{one.name} and {two.name}", one.d * two.d, cells, of, (one.d, two.d))


def _grouped(statement: Statement, distinct: Cells, of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Merge kinds of cells: neighbouring numbers, otherwise the rarest ones."""
    amounts = None if statement.column.is_open else statement.domain.amounts
    if amounts is not None and statement.is_exact:
        number = np.nan_to_num(np.asarray(amounts, np.float64)[statement.key(distinct)], nan=np.inf)[of]
        edges = np.unique(np.quantile(number, np.arange(1, BINS) / BINS, method="higher"))
        return np.asarray(np.searchsorted(edges, number, side="right"))
    count = np.bincount(of)
    place = np.full(len(count), MOST_KINDS - 1, np.int64)
    place[np.argsort(-count, kind="stable")[: MOST_KINDS - 1]] = np.arange(MOST_KINDS - 1)
    return np.asarray(place[of])


def _scaled(found: Likelihood) -> Likelihood:
    """Scale the largest likelihood to 1, so that products of many stay in range."""
    top = float(found.weight.max(initial=found.floor)) or 1.0
    return Likelihood(found.bounds, found.value, found.weight / top, found.floor / top)


class Rows(NamedTuple):
    """The likelihoods of a column's distinct cells, and the cell of every record."""

    bounds: NDArray[np.int64]
    value: NDArray[np.int64]
    excess: NDArray[np.float64]
    floor: float
    of: NDArray[np.int64]


@kernel
def joint_step(
    joint: NDArray[np.float64], own: Rows, other: Rows, records: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float]:
    """Take one step of EM: return the next joint distribution, and the log-likelihood of the current one."""
    by_own, by_other = joint.sum(axis=1), joint.sum(axis=0)
    cells = np.zeros_like(joint)
    of_own, of_other, of_all = np.zeros(joint.shape[0]), np.zeros(joint.shape[1]), 0.0
    fit = 0.0
    for i in records:
        a, b = own.of[i], other.of[i]
        total = own.floor * other.floor
        for e in range(own.bounds[a], own.bounds[a + 1]):
            v = own.value[e]
            inside = other.floor * by_own[v]
            for f in range(other.bounds[b], other.bounds[b + 1]):
                inside += other.excess[f] * joint[v, other.value[f]]
            total += own.excess[e] * inside
        if own.floor > 0:
            for f in range(other.bounds[b], other.bounds[b + 1]):
                total += own.floor * other.excess[f] * by_other[other.value[f]]
        if total <= 0:
            fit -= 700.0
            continue
        fit += np.log(total)
        of_all += own.floor * other.floor / total
        for e in range(own.bounds[a], own.bounds[a + 1]):
            weight = own.excess[e] / total
            v = own.value[e]
            of_own[v] += other.floor * weight
            for f in range(other.bounds[b], other.bounds[b + 1]):
                cells[v, other.value[f]] += weight * other.excess[f]
        if own.floor > 0:
            for f in range(other.bounds[b], other.bounds[b + 1]):
                of_other[other.value[f]] += own.floor * other.excess[f] / total
    for v in range(joint.shape[0]):
        for u in range(joint.shape[1]):
            cells[v, u] = joint[v, u] * (cells[v, u] + of_own[v] + of_other[u] + of_all)
    whole = cells.sum()
    return (cells / whole if whole > 0 else joint), fit


@kernel
def add_told(
    out: NDArray[np.float64],
    bounds: NDArray[np.int64],
    value: NDArray[np.int64],
    records: NDArray[np.int64],
    given: NDArray[np.float64],
    other: Rows,
    weight: float,
) -> None:
    """Add to every entry (record, value) the weighted logarithm of the likelihood of the record's other cell.

    given: (values, values of the other column), its distribution for every value. Entries bounds[k] <= e <
    bounds[k + 1] are those of records[k].
    """
    for k in range(len(records)):
        b = other.of[records[k]]
        for e in range(bounds[k], bounds[k + 1]):
            v = value[e]
            told = other.floor
            for f in range(other.bounds[b], other.bounds[b + 1]):
                told += other.excess[f] * given[v, other.value[f]]
            out[e] += weight * np.log(max(told, 1e-300))


STEPS = 60
"""Steps of expectation maximisation at most."""
START = 12
"""Steps towards the other column's own distribution, from which a pair starts."""
STRIDE = 1.7
"""How much further than expectation maximisation a step goes: it arrives sooner, and held-out records are asked."""
LOOK = 3
"""Steps after which held-out records are asked whether it still helps."""
ENOUGH = 1e-6
"""Gain of held-out likelihood a record below which learning stops."""
MIXED = (2.0, 8.0, 32.0, 128.0)
"""People of the other column's overall distribution that are mixed into that of every value; the best is chosen."""

CHANCE = 12.0
"""Held-out log-likelihood that the relation to two columns together must gain over independence, summed over the
folds. By chance a wrong distribution is exp(12) times likelier than the true one with a probability of at most
exp(-12). The best candidates gained at most 9 in 12 tables of independent columns; a rule that makes 10 to 25 of 6,000
people certain gained 57 to 151 in 24 tables. A single column needs no gain: many weak relations disclose much
together."""
SHARPER = (2.0, 4.0)
"""Powers of the distance from independence that are tried besides: a rule without exception is learned too soft."""
MOST_RULED, MOST_WEIGHED = 5_000, 1 << 21
"""Values of the secret and two columns, multiplied, up to which a rule between the three is looked for, and the same
times the records that are asked."""
SWEEPS = 12
"""Times that all values of a rule are looked through, at most."""
EXCEPTED = 1e-3
"""Weight of independence beside a rule, so that one record does not refute what is mostly right."""


@dataclass(frozen=True)
class Pair:
    """The distribution of another column for every value of the secret, one for each fold of people."""

    evidence: Evidence
    given: NDArray[np.float64]
    """(folds, values, values of the other column), learned without the people of the fold."""
    usual: NDArray[np.float64]
    """(folds, values of the other column): the same for anybody."""

    def told(self, fold: int, records: NDArray[np.int64], bounds: NDArray, value: NDArray) -> NDArray[np.float64]:
        """Return for every entry the log ratio of the likelihood of the record's cell under its value and overall."""

        out = np.zeros(len(value))
        rows = self.evidence.rows
        add_told(out, bounds, value, records, self.given[fold], rows, 1.0)
        base = np.zeros(len(records))
        each, none = np.arange(len(records) + 1), np.zeros(len(records), np.int64)
        add_told(base, each, none, records, self.usual[fold][None, :], rows, 1.0)
        return np.asarray(out - np.repeat(base, np.diff(bounds)))


def learned(
    own: Evidence, other: Evidence, folds: Sequence[tuple[NDArray, NDArray]], priors: NDArray[np.float64]
) -> Pair:
    """Learn the pair for every fold from the other folds. priors: those of the secret.

    If the pair predicts the held-out records of all folds no better than chance might, the columns count as unrelated.
    """
    given, usual, gain = [], [], 0.0
    for (known, held), prior in zip(folds, priors, strict=True):
        joint = _joint(own, other, np.outer(prior, marginal(other, known, START)), known, held)
        shares = joint.sum(axis=0)
        tried = [_given(joint, shares, mixed, len(known)) for mixed in MIXED]
        tried += [_given(_sharpened(joint, power), shares, MIXED[0], len(known)) for power in SHARPER]
        if (rule := _rule(own, other, joint, known)) is not None:
            tried += [_given(rule, rule.sum(axis=0), mixed, len(known)) for mixed in MIXED]
        fits = [_foreseen(own, other, one, joint, held) for one in [shares[None, :], *tried]]
        given.append(tried[int(np.argmax(fits[1:]))])
        gain += max(fits[1:]) - fits[0]
        usual.append(shares)
    if gain < CHANCE and other.widths is not None:
        given = [np.tile(shares, (own.d, 1)) for shares in usual]
    return Pair(other, np.stack(given), np.stack(usual))


def marginal(own: Evidence, known: NDArray[np.int64], steps: int = 2 * STEPS) -> NDArray[np.float64]:
    """Return the distribution of a column among some records."""

    anything = _anything(len(own.of))
    joint = np.full((own.d, 1), 1 / own.d)
    for _ in range(steps):
        after, _ = joint_step(joint, own.rows, anything, known)
        still = np.abs(after - joint).sum() * max(1, len(known)) < 0.1
        joint = after
        if still:
            break
    return np.asarray(joint[:, 0])


def glanced(own: Evidence, other: Evidence, prior: NDArray[np.float64], some: NDArray[np.int64]) -> NDArray[np.float64]:
    """Estimate the joint distribution roughly, to select the columns worth learning."""

    joint = np.outer(prior, marginal(other, some, START))
    for _ in range(START // 2):
        joint, _ = joint_step(joint, own.rows, other.rows, some)
    return np.asarray(joint)


def information(joint: NDArray[np.float64]) -> float:
    """Return the mutual information of a joint distribution."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / np.maximum(apart[there], 1e-300))).sum())


def _anything(records: int) -> Rows:
    """Return a column without information."""

    return Rows(np.array([0, 1]), np.zeros(1, np.int64), np.ones(1), 0.0, np.zeros(records, np.int64))


def _joint(
    own: Evidence, other: Evidence, joint: NDArray[np.float64], known: NDArray[np.int64], held: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the likeliest joint distribution, started from independence and stopped when held-out records fit best."""

    best, before = joint, -np.inf
    for step in range(STEPS):
        if step % LOOK == 0:
            _, fit = joint_step(joint, own.rows, other.rows, held)
            if fit <= before + ENOUGH * max(1, len(held)):
                break
            best, before = joint, fit
        after, _ = joint_step(joint, own.rows, other.rows, known)
        further = joint * np.divide(after, joint, out=np.ones_like(joint), where=joint > 0) ** STRIDE
        joint = further / further.sum()
    return best


def _sharpened(joint: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Move the joint distribution further away from independence."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    out = apart * np.divide(joint, apart, out=np.zeros_like(joint), where=apart > 0) ** power
    return np.asarray(out * (joint.sum(axis=1, keepdims=True) / np.maximum(out.sum(axis=1, keepdims=True), 1e-300)))


def _rule(own: Evidence, two: Evidence, joint: NDArray, known: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Return the joint distribution under the likeliest rule by which one of three columns follows from the other two;
    None if independence explains the records as well."""
    if two.widths is None or joint.size > MOST_RULED:
        return None
    some = known[:: max(1, len(known) * joint.size // MOST_WEIGHED)]
    shape = (own.d, *two.widths)
    own_cells, two_cells = own.dense(some).T.astype(np.float32), two.dense(some).T.astype(np.float32)
    likely = (own_cells[:, None] * two_cells).reshape(*shape, -1)
    best, most = None, 0.0
    for start in range(2):
        for axis in range(3):
            moved = np.moveaxis(joint.reshape(shape), axis, -1)
            rule, gain = _followed(np.moveaxis(likely, axis, 2), moved)
            if gain > most:
                best, most = np.moveaxis(rule, -1, axis).reshape(joint.shape), gain
        for _ in range(0 if start else 2 * START):
            joint, _ = joint_step(joint, own.rows, two.rows, known)
    return best


def _followed(likely: NDArray[np.float32], joint: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Fit a rule: assign to one pair of values after the other the third value that makes the records likeliest. Return
    the joint distribution and the gain in likelihood over independence."""
    of_two, of_third = joint.sum(axis=2), joint.sum(axis=(0, 1))
    shares = ((of_two + np.outer(of_two.sum(axis=1), of_two.sum(axis=0))) / 2).ravel()
    value, each = joint.reshape(len(shares), -1).argmax(axis=1), np.arange(len(shares))
    weighed = likely.reshape(len(shares), len(of_third), -1) * shares[:, None, None].astype(np.float32)
    chance = of_third.astype(np.float32) @ weighed.sum(axis=0)
    for _ in range(SWEEPS):
        before = value.copy()
        now = weighed[each, value].sum(axis=0) + np.float32(EXCEPTED) * chance
        for at in each:
            options = weighed[at] + (now - weighed[at, value[at]])
            value[at] = np.log(np.maximum(options, 1e-30)).sum(axis=1).argmax()
            now = options[value[at]]
        gain = float(np.log(np.maximum(now, 1e-30) / np.maximum(chance, 1e-30)).sum())
        if gain < 0 or (value == before).all():
            break
    rule = np.zeros((len(shares), len(of_third)))
    rule[each, value] = shares
    return rule.reshape(joint.shape), gain


def _given(joint: NDArray, shares: NDArray, mixed: float, people: int) -> NDArray[np.float64]:
    """Return the other column's distribution for every value, mixed with some of the overall distribution."""
    counts = joint * people + mixed * shares[None, :]
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _foreseen(own: Evidence, other: Evidence, given: NDArray, joint: NDArray, held: NDArray[np.int64]) -> float:
    """Return the log-likelihood of held-out records under such a distribution."""

    return float(joint_step(given * joint.sum(axis=1, keepdims=True), own.rows, other.rows, held)[1])
