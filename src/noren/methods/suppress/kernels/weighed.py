"""The options of a record whose terms weigh differently for different labels.

Where pairs have weights, two term sets that link to the same labels may still tell different things, so the closed
sets of `options` are not all there is: every subset of a record's terms is an option of its own, unless a cheaper one
leaves the very same beliefs. A record of at most `ENUMERATED` terms has all of them. A longer one, or one with more
different options than there is room for, has those on a greedy way from all terms to none and beside it, and is marked
as not complete: what is found for its group is checked like any other choice, but never called the cheapest.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.suppress.kernels.term_sets import (
    ONE,
    ZERO,
    cheapest_first,
    contains,
    count_terms,
    longer,
    new_table,
    option_cost,
    put,
)

ENUMERATED = 15
BARELY = 1e-18
"""Beliefs below this are none: all of them together are less than what is lost by rounding."""


class Fits(NamedTuple):
    """What the beliefs of one record follow from: the classes of labels that have some of its terms, which of them
    (`masks`) and with which weight (`logs`, classes by terms), and the places of those that have term j
    (held[first[j]:first[j + 1]]); and per class of all labels its size, the weight and the mean alpha of a label. With
    `prior` a record that fits nothing believes alpha."""

    classes: np.ndarray
    masks: np.ndarray
    logs: np.ndarray
    first: np.ndarray
    held: np.ndarray
    size: np.ndarray
    weight: np.ndarray
    alpha: np.ndarray
    prior: bool


@kernel
def logs_of_record(own, start, of, logs, cls, classes, place):
    """(classes, terms): the logarithm of the weight of every pair. `place` is all -1 and stays so."""
    out = np.zeros((classes.size, own.size))
    for k in range(classes.size):
        place[classes[k]] = k
    for j in range(own.size):
        t = own[j]
        if t < 0 or t >= start.size - 1:
            continue
        for p in range(start[t], start[t + 1]):
            out[place[cls[of[p]]], j] = logs[p]
    for k in range(classes.size):
        place[classes[k]] = -1
    return out


@kernel
def _has(sets, o, j):
    """Whether a term set has term j."""
    return (sets[o, j >> 6] >> np.uint64(j & 63)) & ONE != ZERO


@kernel
def holders_of_terms(masks, terms):
    """Which rows of masks have term j, for all terms one after the other, and where those of each begin."""
    first = np.zeros(terms + 1, np.int64)
    held = np.empty(masks.shape[0] * terms, np.int64)
    n = 0
    for j in range(terms):
        for k in range(masks.shape[0]):
            if _has(masks, k, j):
                held[n] = k
                n += 1
        first[j + 1] = n
    return first, held[:n]


@kernel
def _holders(fits, j):
    return fits.first[j + 1] - fits.first[j]


@kernel
def _believe(sets, o, fits, cls, val):
    """The classes that fit a term set, and the belief in a label of each, in their order; how many."""
    n = 0
    most = -np.inf
    if count_terms(sets, o) == 0:
        for c in range(fits.size.size):
            cls[c], val[c] = c, 0.0
        n = fits.size.size
        most = 0.0
    else:
        rare = -1
        for j in range(fits.first.size - 1):
            if _has(sets, o, j) and (rare < 0 or _holders(fits, j) < _holders(fits, rare)):
                rare = j
        for p in range(fits.first[rare], fits.first[rare + 1]):
            k = fits.held[p]
            if contains(fits.masks, k, sets, o):
                total = 0.0
                for j in range(fits.first.size - 1):
                    if _has(sets, o, j):
                        total += fits.logs[k, j]
                cls[n], val[n] = fits.classes[k], total
                most = max(most, total)
                n += 1
    if n == 0:
        if fits.prior:
            for c in range(fits.size.size):
                if fits.alpha[c] > 0:
                    cls[n], val[n] = c, fits.alpha[c]
                    n += 1
        return n
    mass = 0.0
    for k in range(n):
        val[k] = fits.weight[cls[k]] * np.exp(val[k] - most)
        mass += val[k] * fits.size[cls[k]]
    kept = 0
    for k in range(n):
        if val[k] / mass >= BARELY:
            cls[kept], val[kept] = cls[k], val[k] / mass
            kept += 1
    return kept


@kernel
def _every_subset(terms, words):
    """All sets of a record's terms."""
    out = np.zeros((1 << terms, words), np.uint64)
    for o in range(out.shape[0]):
        out[o, 0] = np.uint64(o)
    return out


@kernel
def _greedy_sets(terms, words, fits, near, most):
    """Term sets from all terms to none: at every step each one without a further term, and on from that whose beliefs
    are the most even, or with `near` the closest to alpha. At most `most` of them, ways before sides."""
    out = np.zeros((most, words), np.uint64)
    work = np.zeros((2, words), np.uint64)
    cls, val = np.empty(fits.size.size, np.int64), np.empty(fits.size.size)
    for j in range(terms):
        work[0, j >> 6] |= ONE << np.uint64(j & 63)
    put(out, 0, work, 0)
    n = 1
    for left in range(terms, 1, -1):
        best, pick = np.inf, -1
        for j in range(terms):
            if not _has(work, 0, j):
                continue
            put(work, 1, work, 0)
            work[1, j >> 6] ^= ONE << np.uint64(j & 63)
            score = 0.0
            for k in range(_believe(work, 1, fits, cls, val)):
                away = 2 * fits.alpha[cls[k]] if near else 0.0
                score += fits.size[cls[k]] * val[k] * (val[k] - away)
            if pick < 0 or score < best:
                best, pick = score, j
            if n < most - left:
                put(out, n, work, 1)
                n += 1
        work[0, pick >> 6] ^= ONE << np.uint64(pick & 63)
        if n < most - 1:
            put(out, n, work, 0)
            n += 1
    return out[: n + 1]


@kernel
def _place(table, at, cls, val, n, own_cls, own_val):
    """Where the option with these beliefs stands in an open-addressing table, or the free slot for it."""
    key = 0.0
    for k in range(n):
        key += own_val[k] * (own_cls[k] + 1)
    slot = np.int64(key * 1e6) & (table.size - 1)
    while table[slot] >= 0:
        o = table[slot]
        same = at[o + 1] - at[o] == n
        for k in range(n if same else 0):
            same = same and own_cls[k] == cls[at[o] + k] and own_val[k] == val[at[o] + k]
        if same:
            break
        slot = (slot + 1) & (table.size - 1)
    return slot


@kernel
def _distinct(found, terms, prices, fits, most):
    """Of the term sets those that leave different beliefs, cheapest first, with cost and beliefs; largest beliefs
    first. Ends once there are more than `most`."""
    sets = cheapest_first(found, terms, prices)
    many = sets.shape[0]
    table = new_table(many)
    cost, at = np.empty(many), np.zeros(many + 1, np.int64)
    cls, val = np.empty(1024, np.int64), np.empty(1024)
    own_cls, own_val = np.empty(fits.size.size, np.int64), np.empty(fits.size.size)
    n = 0
    for o in range(many):
        new = _believe(sets, o, fits, own_cls, own_val)
        used = at[n]
        cls, val = longer(cls, used + new), longer(val, used + new)
        for k in range(new):
            val[used + k] = -own_val[k]
        order = stable_order(val[used : used + new])
        for k in range(new):
            cls[used + k], val[used + k] = own_cls[order[k]], own_val[order[k]]
        slot = _place(table, at, cls, val, new, cls[used : used + new], val[used : used + new])
        if table[slot] >= 0:
            continue
        table[slot] = n
        cost[n] = option_cost(sets, o, terms, prices, 0)
        put(sets, n, sets, o)
        at[n + 1] = used + new
        n += 1
        if n > most:
            break
    return cost[:n], sets[:n], at[: n + 1], cls[: at[n]], val[: at[n]]


@kernel
def weighed_options(terms, prices, fits, near, most):
    """The options of one record, cheapest first: cost, term set, beliefs as CSR, and whether they are all there are."""
    words = fits.masks.shape[1]
    if terms <= ENUMERATED:
        cost, sets, at, cls, val = _distinct(_every_subset(terms, words), terms, prices, fits, most)
        if cost.size <= most:
            return cost, sets, at, cls, val, True
    cost, sets, at, cls, val = _distinct(_greedy_sets(terms, words, fits, near, most), terms, prices, fits, most)
    return cost, sets, at, cls, val, False
