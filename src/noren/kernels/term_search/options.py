"""A group prepared for the search: label classes, the options of every record, and the slack of a choice.

**Classes.** Labels that have the same terms among the group's terms (and the same weight, and the same prior where it
matters) get the same belief whatever is removed; they are one class with a size. **Options.** Whatever the metric, who
keeps more terms loses less, so of all term sets that link to the same labels only the largest matters. These are the
closed sets: intersections of the record's terms with the term sets of labels. A term set is a row of 64-bit words.

**Prices.** Without them a removal costs one over the terms that are left (equation 2). Else `prices` holds a positive
number for every entry, and a removal costs the sum over what it removes.

Beliefs are sums over the records, not means, and everything is scaled by the group's size d accordingly.
"""

# mypy: ignore-errors
# ruff: noqa: SIM110  generators are slow or unknown inside Numba

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernels.compiled import kernel

ONE = np.uint64(1)
ZERO = np.uint64(0)


class GroupOptions(NamedTuple):
    """Class sizes, alpha summed over each class, and the options of all records one after the other.

    Record i has the options first[i] .. first[i + 1] - 1, cheapest first; option o costs cost[o], keeps the terms
    sets[o], and believes val[at[o]:at[o + 1]] (per label) in the classes cls[at[o]:at[o + 1]]; flat[o] is that belief
    if it is the same for all labels there are, else 0. complete[i] says whether record i has all its options.
    """

    size: np.ndarray
    mass: np.ndarray
    first: np.ndarray
    cost: np.ndarray
    sets: np.ndarray
    at: np.ndarray
    cls: np.ndarray
    val: np.ndarray
    flat: np.ndarray
    complete: np.ndarray


class LabelClasses(NamedTuple):
    """Per class of labels: how many they are, and the weight and the mean alpha of one."""

    size: np.ndarray
    weight: np.ndarray
    alpha: np.ndarray


@kernel(no_cpython_wrapper=True)
def label_classes(bounds, codes, start, of, key, keys):
    """Class of every label: labels of one key (weight, prior) with the same terms of this group stand together."""
    cls = key.copy()
    labels = key.size
    size = np.zeros(labels + keys, np.int64)
    for label in range(labels):
        size[cls[label]] += 1
    n = keys
    hits = np.zeros(labels + keys, np.int64)
    heir = np.full(labels + keys, -1, np.int64)
    touched = np.empty(labels + keys, np.int64)
    for t in codes:  # a term that comes again splits nothing
        if t < 0 or t >= start.size - 1:
            continue
        many = 0
        for p in range(start[t], start[t + 1]):
            c = cls[of[p]]
            if hits[c] == 0:
                touched[many] = c
                many += 1
            hits[c] += 1
        for p in range(start[t], start[t + 1]):
            c = cls[of[p]]
            if hits[c] < size[c]:
                if heir[c] < 0:
                    heir[c] = n
                    n += 1
                cls[of[p]] = heir[c]
        for k in range(many):
            c = touched[k]
            if heir[c] >= 0:
                size[heir[c]] = hits[c]
                size[c] -= hits[c]
                heir[c] = -1
            hits[c] = 0
    return cls, n, size[:n]


@kernel(no_cpython_wrapper=True)
def masks_of_record(own, words, start, of, cls, room, place):
    """For the classes that hold any of the record's terms: which terms they hold. `place` is all -1 and stays so."""
    found = 0
    for j in range(own.size):
        t = own[j]
        if t < 0 or t >= start.size - 1:
            continue
        for p in range(start[t], start[t + 1]):
            c = cls[of[p]]
            if place[c] < 0:
                place[c] = found
                room[found] = c
                found += 1
    masks = np.zeros((found, words), np.uint64)
    for j in range(own.size):
        t = own[j]
        if t < 0 or t >= start.size - 1:
            continue
        for p in range(start[t], start[t + 1]):
            masks[place[cls[of[p]]], j >> 6] |= ONE << np.uint64(j & 63)
    classes = room[:found].copy()
    for k in range(found):
        place[classes[k]] = -1
    return classes, masks


@kernel(no_cpython_wrapper=True)
def contains(mask, part):
    """Whether a term set holds every term of another one."""
    for w in range(part.size):
        if part[w] & ~mask[w]:
            return False
    return True


@kernel(no_cpython_wrapper=True)
def same(a, b):
    for w in range(a.size):
        if a[w] != b[w]:
            return False
    return True


@kernel(no_cpython_wrapper=True)
def count_terms(mask):
    n = 0
    for w in range(mask.size):
        x = mask[w]
        while x:
            x &= x - ONE
            n += 1
    return n


@kernel(no_cpython_wrapper=True)
def _slot(table, stored, mask):
    """Where a mask stands in an open-addressing table, or the free slot for it."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for w in range(mask.size):
        h = (h ^ mask[w]) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    at = np.int64(h & np.uint64(table.size - 1))
    while table[at] >= 0 and not same(stored[table[at]], mask):
        at = (at + 1) & (table.size - 1)
    return at


@kernel(no_cpython_wrapper=True)
def closed_sets(full, generators, most):
    """All intersections of the record's own term set with generators, and whether there were no more than `most`.

    The full set comes first, the smallest second (if it differs), so that a truncated list still has both ends.
    """
    slots = 16
    while slots < 4 * most:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    stored = np.empty((most + 2, full.size), np.uint64)
    stored[0] = full
    table[_slot(table, stored, full)] = 0
    n = 1
    last = full.copy()
    for g in range(generators.shape[0]):
        last &= generators[g]
    at = _slot(table, stored, last)
    if table[at] < 0:
        stored[n] = last
        table[at] = n
        n += 1
    q = 0
    while q < n:
        for g in range(generators.shape[0]):
            meet = stored[q] & generators[g]
            at = _slot(table, stored, meet)
            if table[at] < 0:
                if n >= most:
                    return stored[:n].copy(), False
                stored[n] = meet
                table[at] = n
                n += 1
        q += 1
    return stored[:n].copy(), True


@kernel(no_cpython_wrapper=True)
def distinct_masks(masks, untouched):
    """Distinct rows; the empty one is added if some label holds none of the record's terms."""
    slots = 16
    while slots < 4 * masks.shape[0]:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    out = np.zeros((masks.shape[0] + 1, masks.shape[1]), np.uint64)
    n = 0
    for k in range(masks.shape[0]):
        at = _slot(table, out, masks[k])
        if table[at] < 0:
            out[n] = masks[k]
            table[at] = n
            n += 1
    if untouched:
        out[n] = ZERO
        n += 1
    return out[:n]


@kernel(no_cpython_wrapper=True)
def option_cost(kept, terms, prices):
    """What a record loses that keeps these of its terms."""
    total = 0.0
    if prices.size:
        for j in range(terms):
            if not (kept[j >> 6] >> np.uint64(j & 63)) & ONE:
                total += prices[j]
    else:
        for j in range(count_terms(kept) + 1, terms + 1):
            total += 1.0 / j
    return total


@kernel(no_cpython_wrapper=True)
def _cheapest_first(sets, terms, prices):
    """The same term sets, cheapest first, of equal ones the larger first: a smaller set never comes before a larger."""
    n = 0
    found = sets.copy()
    for left in range(terms, -1, -1):
        for o in range(found.shape[0]):
            if count_terms(found[o]) == left:
                sets[n] = found[o]
                n += 1
    if not prices.size:
        return
    cost = np.empty(n)
    for o in range(n):
        own = option_cost(sets[o], terms, prices)
        found[0] = sets[o]
        k = o
        while k > 0 and cost[k - 1] > own:
            cost[k] = cost[k - 1]
            sets[k] = sets[k - 1]
            k -= 1
        cost[k] = own
        sets[k] = found[0]


@kernel(no_cpython_wrapper=True)
def record_options(terms, prices, classes, masks, labels, prior, most):
    """The options of one record, cheapest first: cost, term set, and beliefs as CSR (class, belief per label)."""
    size, weight, mean_alpha = labels
    n_classes = size.size
    words = masks.shape[1]
    full = np.zeros(words, np.uint64)
    for j in range(terms):
        full[j >> 6] |= ONE << np.uint64(j & 63)
    sets, complete = closed_sets(full, distinct_masks(masks, classes.size < n_classes), most)
    _cheapest_first(sets, terms, prices)
    cost = np.empty(sets.shape[0])
    at = np.zeros(sets.shape[0] + 1, np.int64)
    cls = np.empty(0, np.int64)
    val = np.empty(0)
    for sweep in range(2):
        total = 0
        for o in range(sets.shape[0]):
            left = count_terms(sets[o])
            cost[o] = option_cost(sets[o], terms, prices)
            first = total
            if left == 0:
                for c in range(n_classes):
                    if sweep:
                        cls[total], val[total] = c, weight[c]
                    total += 1
            else:
                for k in range(classes.size):
                    if contains(masks[k], sets[o]):
                        if sweep:
                            cls[total], val[total] = classes[k], weight[classes[k]]
                        total += 1
            if total == first and prior:
                for c in range(n_classes):
                    if mean_alpha[c] > 0:
                        if sweep:
                            cls[total], val[total] = c, mean_alpha[c]
                        total += 1
            elif sweep:
                mass = 0.0
                for k in range(first, total):
                    mass += val[k] * size[cls[k]]
                for k in range(first, total):
                    val[k] /= mass
            at[o + 1] = total
        if not sweep:
            cls = np.empty(total, np.int64)
            val = np.empty(total)
    return cost, sets, at, cls, val, complete


@kernel(no_cpython_wrapper=True)
def _doubled(array):
    """The same array with twice the rows."""
    n = array.shape[0]
    out = np.empty((2 * n, *array.shape[1:]), array.dtype)
    out[:n] = array
    return out


@kernel()
def group_options(bounds, codes, prices, postings, key, keys, alpha, prior, most):
    """Everything the search needs to know about a group; at most `most` options a record. No prices: equation 2."""
    start, of, weights = postings.start, postings.of, postings.weights
    d = bounds.size - 1
    label_class, n, size = label_classes(bounds, codes, start, of, key, keys)
    weight = np.zeros(n)
    mass = np.zeros(n)
    for label in range(key.size):
        weight[label_class[label]] = weights[label]
        mass[label_class[label]] += alpha[label]
    labels = LabelClasses(size, weight, mass / size)
    words = 1
    for i in range(d):
        words = max(words, (bounds[i + 1] - bounds[i] + 63) // 64)
    room = np.empty(n, np.int64)
    place = np.full(n, -1, np.int64)
    first = np.zeros(d + 1, np.int64)
    complete = np.zeros(d, np.bool_)
    cost = np.empty(64)
    sets = np.empty((64, words), np.uint64)
    at = np.zeros(65, np.int64)
    cls = np.empty(1024, np.int64)
    val = np.empty(1024)
    m = 0
    for i in range(d):
        own = codes[bounds[i] : bounds[i + 1]]
        classes, masks = masks_of_record(own, words, start, of, label_class, room, place)
        paid = prices[bounds[i] : bounds[i + 1]] if prices.size else prices
        c, s, a, k, v, complete[i] = record_options(own.size, paid, classes, masks, labels, prior, most)
        while m + c.size > cost.size:
            cost, sets, at = _doubled(cost), _doubled(sets), _doubled(at)
        used = at[m]
        while used + k.size > cls.size:
            cls, val = _doubled(cls), _doubled(val)
        for o in range(c.size):  # in loops, which take a tenth of the time to compile that slices do
            cost[m + o] = c[o]
            at[m + o + 1] = used + a[o + 1]
            for word in range(words):
                sets[m + o, word] = s[o, word]
        for e in range(k.size):
            cls[used + e] = k[e]
            val[used + e] = v[e]
        m += c.size
        first[i + 1] = m
    flat = np.zeros(m)
    for o in range(m):
        same = at[o + 1] - at[o] == n
        for e in range(at[o], at[o + 1]):
            same = same and val[e] == val[at[o]]
        if same:
            flat[o] = val[at[o]]
    return GroupOptions(size, mass, first, cost[:m], sets[:m], at[: m + 1], cls[: at[m]], val[: at[m]], flat, complete)
