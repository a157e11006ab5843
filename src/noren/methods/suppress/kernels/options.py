"""A group prepared for the search: the term sets that each record may keep, their costs and beliefs.

Whatever the cost, who keeps more terms loses less, so of all term sets that link to the same labels only the largest
matters. These are the closed sets: intersections of the record's terms with the term sets of labels. Where pairs of a
label and a term have weights, two term sets that link to the same labels may still say different things: every subset
is an option, unless a cheaper one leaves the very same beliefs.

A term set is a number: bit b says that the record keeps its terms b, b + bits, b + 2 bits, ... A record with more terms
than there are bits keeps or loses some of them together only, and is marked as not complete, as is one with more
options than there is room for: what is found for its group is checked like any other choice, but never called the
cheapest. Beliefs are sums over the records, not means, and everything is scaled by the group's size d accordingly.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.suppress.kernels.linkage import link, longer, share_belief

MOST_BITS, ENUMERATED = 62, 15
"""Bits of a term set; and where pairs have weights, where all sets are listed."""
BARELY = 1e-18
"""Beliefs below this are none: all of them together are less than what is lost by rounding."""
MIXER = 0x1E3779B97F4A7C15


class GroupOptions(NamedTuple):
    """The options of all records one after the other.

    Record i has the options first[i] .. first[i + 1] - 1, cheapest first; option o costs cost[o], keeps the terms
    kept[o], and believes belief[at[o]:at[o + 1]] in label[at[o]:at[o + 1]]. An option that believes in all labels alike
    lists none of them: flat[o] is that belief, else 0. complete[i] says whether record i has all its options, and
    bits[i] how many bits its term sets have.
    """

    first: np.ndarray
    cost: np.ndarray
    kept: np.ndarray
    at: np.ndarray
    label: np.ndarray
    belief: np.ndarray
    flat: np.ndarray
    complete: np.ndarray
    bits: np.ndarray


@kernel
def label_masks(own, bits, postings, mask, touched):
    """Write into `mask` which of a record's terms every label has; return the labels that have any, and their
    number."""
    start, of = postings.start, postings.of
    found = 0
    for j in range(own.size):
        t = own[j]
        if t < 0 or t >= start.size - 1:
            continue
        for p in range(start[t], start[t + 1]):
            if mask[of[p]] == 0:
                touched[found] = of[p]
                found += 1
            mask[of[p]] |= 1 << (j % bits)
    return found


@kernel
def _slot(table, sets, value):
    """Return the position of a set in an open-addressing table, or the free slot for it."""
    at = ((value * MIXER) >> 17) & (table.size - 1)
    while table[at] >= 0 and sets[table[at]] != value:
        at = (at + 1) & (table.size - 1)
    return at


@kernel
def closed_sets(full, masks, untouched, most):
    """Return all intersections of the full set with the masks, and with the empty set if a label is untouched; and
    whether there are at most `most`. The full set comes first, then the smallest, so a truncated list has both."""
    slots = 16
    while slots < 4 * most:
        slots *= 2
    table = np.empty(slots, np.int64)
    table[:] = -1
    sets = np.empty(most + 2, np.int64)
    smallest = full
    for g in range(masks.size):
        smallest &= masks[g]
    if untouched:
        smallest = 0
    sets[0], sets[1] = full, smallest
    table[_slot(table, sets, sets[0])] = 0
    n = 1 + (smallest != full)
    table[_slot(table, sets, sets[n - 1])] = n - 1
    q = distinct = 0
    while q < n:
        for g in range(masks.size if q == 0 else distinct):  # the full set meets all masks, others each of them once
            new = sets[q] & (masks[g] if q == 0 else sets[g])
            at = _slot(table, sets, new)
            if table[at] < 0:
                if n >= most:
                    return sets[:n], False
                sets[n], table[at] = new, n
                n += 1
        if q == 0:
            distinct = n
        q += 1
    return sets[:n], True


@kernel
def _cost(terms, bits, kept, prices):
    """Return the cost of a record that keeps these of its terms: the prices of the others, or by default equation 2."""
    left = 0
    total = 0.0
    for j in range(terms):
        if (kept >> (j % bits)) & 1:
            left += 1
        elif prices.size:
            total += prices[j]
    if prices.size == 0:
        for j in range(left + 1, terms + 1):
            total += 1.0 / j
    return total


@kernel
def _believe(own, bits, kept, postings, alpha, prior, some, label, belief):
    """Return the labels that fit what a record keeps, the belief in each, and their number. With `prior` a record that
    fits nothing gets alpha."""
    m = 0
    for j in range(own.size):
        if (kept >> (j % bits)) & 1:
            some[m] = own[j]
            m += 1
    if m:
        n = link(some[:m], postings, label)
    else:
        n = alpha.size
        for k in range(n):
            label[k] = k
    share_belief(some[:m], postings, postings.logs, label, n, belief)
    if n == 0 and prior:
        n = alpha.size
        for k in range(n):
            label[k], belief[k] = k, alpha[k]
    found = 0
    for k in range(n):
        if belief[k] >= BARELY:
            label[found], belief[found] = label[k], belief[k]
            found += 1
    return found


@kernel
def _list_sets(own, bits, weighed, postings, mask, label, most):
    """List the term sets that a record may keep, and whether they are all relevant ones."""
    full = (1 << min(own.size, bits)) - 1
    if weighed:
        sets = np.empty(full + 1, np.int64)
        for o in range(full + 1):
            sets[o] = o
        return sets, True
    found = label_masks(own, bits, postings, mask, label)
    masks = np.empty(found, np.int64)
    for k in range(found):
        masks[k] = mask[label[k]]
        mask[label[k]] = 0
    return closed_sets(full, masks, found < mask.size, most)


@kernel
def group_options(bounds, codes, prices, postings, alpha, prior, most):
    """Prepare a group for the search. Without prices the cost is equation 2."""
    labels, d = alpha.size, bounds.size - 1
    weighed = postings.logs is not None
    first, complete, widths = np.zeros(d + 1, np.int64), np.zeros(d, np.bool_), np.ones(d, np.int64)
    at, cost, kept, flat = np.zeros(64, np.int64), np.zeros(64), np.zeros(64, np.int64), np.zeros(64)
    cls, val, sign = np.zeros(1024, np.int64), np.zeros(1024), np.zeros(64)
    mask, label, belief = np.zeros(labels, np.int64), np.empty(labels, np.int64), np.empty(labels)
    m = used = 0
    for i in range(d):
        own = codes[bounds[i] : bounds[i + 1]]
        some = np.empty(own.size, np.int64)
        paid = prices[bounds[i] : bounds[i + 1]] if prices.size else prices
        bits = min(max(1, own.size), ENUMERATED if weighed else MOST_BITS)
        begin, fits = m, False
        while not fits:
            sets, complete[i] = _list_sets(own, bits, weighed, postings, mask, label, most)
            spent = np.empty(sets.size)
            for o in range(sets.size):
                spent[o] = _cost(own.size, bits, sets[o], paid)
            m, used = begin, at[begin]
            fits = True
            for o in stable_order(spent):
                n = _believe(own, bits, sets[o], postings, alpha, prior, some, label, belief)
                sign = longer(sign, m + 1)
                sign[m] = 0.0
                same = n == labels
                for k in range(n):
                    same = same and belief[k] == belief[0]
                    sign[m] += belief[k] * np.sqrt(1 + label[k])
                known = False
                for p in range(begin, m):
                    known = known or sign[p] == sign[m]
                if known:
                    continue
                if m - begin == most:
                    fits, bits = False, bits - 1
                    break
                cost, kept, flat, at = longer(cost, m + 1), longer(kept, m + 1), longer(flat, m + 1), longer(at, m + 2)
                cost[m], kept[m], flat[m] = spent[o], sets[o], belief[0] if same else 0.0
                if not same:
                    cls, val = longer(cls, used + n), longer(val, used + n)
                    for k in range(n):
                        cls[used + k], val[used + k] = label[k], belief[k]
                    used += n
                m += 1
                at[m] = used
        widths[i], complete[i] = bits, complete[i] and own.size <= bits
        first[i + 1] = m
    return GroupOptions(first, cost[:m], kept[:m], at[: m + 1], cls[:used], val[:used], flat[:m], complete, widths)
