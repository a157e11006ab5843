"""Sets of a record's terms, as rows of 64-bit words: bit j says whether the record keeps its j-th term."""

# mypy: ignore-errors
# ruff: noqa: SIM110  generators are slow or unknown inside Numba

from __future__ import annotations

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order

ONE = np.uint64(1)
ZERO = np.uint64(0)


@kernel
def contains(masks, k, parts, o):
    """Whether a term set, a row of masks, holds every term of another one, a row of parts."""
    for w in range(parts.shape[1]):
        if parts[o, w] & ~masks[k, w]:
            return False
    return True


@kernel
def count_terms(masks, k):
    n = 0
    for w in range(masks.shape[1]):
        x = masks[k, w]
        while x:
            x &= x - ONE
            n += 1
    return n


@kernel
def slot_of(table, stored, k):
    """Where the k-th row of term sets stands in an open-addressing table, or the free slot for it."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for w in range(stored.shape[1]):
        h = (h ^ stored[k, w]) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    at = np.int64(h & np.uint64(table.size - 1))
    while table[at] >= 0:
        same = True
        for w in range(stored.shape[1]):
            same = same and stored[table[at], w] == stored[k, w]
        if same:
            break
        at = (at + 1) & (table.size - 1)
    return at


@kernel
def new_table(rows):
    """An empty table for so many term sets."""
    slots = 16
    while slots < 4 * rows:
        slots *= 2
    table = np.empty(slots, np.int64)
    table[:] = -1
    return table


@kernel
def closed_sets(terms, masks, found, untouched, most):
    """All intersections of the record's own term set with the first `found` masks, and with the empty set if a label is
    untouched; how many, and whether there were no more than `most`.

    The full set comes first, the smallest second (if it differs), so that a truncated list still has both ends.
    """
    words = masks.shape[1]
    table = new_table(most)
    stored = np.zeros((most + 2, words), np.uint64)
    for j in range(terms):
        stored[0, j >> 6] |= ONE << np.uint64(j & 63)
    table[slot_of(table, stored, 0)] = 0
    for w in range(words):
        stored[1, w] = ZERO if untouched else stored[0, w]
        for g in range(found):
            stored[1, w] &= masks[g, w]
    n = 1
    at = slot_of(table, stored, 1)
    if table[at] < 0:
        table[at] = n
        n += 1
    q = distinct = 0
    while q < n:
        for g in range(found if q == 0 else distinct):  # the full set meets all masks, the others each of them once
            for w in range(words):
                stored[n, w] = stored[q, w] & (masks[g, w] if q == 0 else stored[g, w])
            at = slot_of(table, stored, n)
            if table[at] < 0:
                if n >= most:
                    return stored, n, False
                table[at] = n
                n += 1
        if q == 0:
            distinct = n
        q += 1
    return stored, n, True


@kernel
def option_cost(sets, o, terms, prices, begin):
    """What a record loses that keeps these of its terms, the prices of which begin there."""
    total = 0.0
    if prices.size:
        for j in range(terms):
            if not (sets[o, j >> 6] >> np.uint64(j & 63)) & ONE:
                total += prices[begin + j]
    else:
        for j in range(count_terms(sets, o) + 1, terms + 1):
            total += 1.0 / j
    return total


@kernel
def put(target, row, source, o):
    """One term set into a row of others."""
    for w in range(target.shape[1]):
        target[row, w] = source[o, w]


@kernel
def cheapest_first(found, terms, prices):
    """The same term sets, cheapest first, of equal ones the larger first: a smaller set never comes before a larger."""
    sets = np.empty(found.shape, np.uint64)
    n = 0
    for left in range(terms, -1, -1):
        for o in range(found.shape[0]):
            if count_terms(found, o) == left:
                put(sets, n, found, o)
                n += 1
    if prices.size:
        cost = np.empty(n)
        for o in range(n):
            cost[o] = option_cost(sets, o, terms, prices, 0)
            put(found, o, sets, o)
        order = stable_order(cost)
        for o in range(n):
            put(sets, o, found, order[o])
    return sets


@kernel
def longer(numbers, least):
    """The same numbers with room for so many, and more."""
    if numbers.size >= least:
        return numbers
    out = np.zeros(2 * least, numbers.dtype)
    for i in range(numbers.size):
        out[i] = numbers[i]
    return out
