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
def label_classes(codes, start, of, key, keys):
    """Class of every label: labels of one key (weight, prior) with the same terms of this group stand together."""
    cls = key.copy()
    labels = key.size
    size = np.zeros(labels + keys, np.int64)
    for label in range(labels):
        size[cls[label]] += 1
    n = keys
    hits = np.zeros(labels + keys, np.int64)
    heir = np.empty(labels + keys, np.int64)
    heir[:] = -1
    touched = np.empty(labels + keys, np.int64)
    for e in range(codes.size):  # a term that comes again splits nothing
        t = codes[e]
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
def contains(masks, k, parts, o):
    """Whether a term set, a row of masks, holds every term of another one, a row of parts."""
    for w in range(parts.shape[1]):
        if parts[o, w] & ~masks[k, w]:
            return False
    return True


@kernel(no_cpython_wrapper=True)
def count_terms(masks, k):
    n = 0
    for w in range(masks.shape[1]):
        x = masks[k, w]
        while x:
            x &= x - ONE
            n += 1
    return n


@kernel(no_cpython_wrapper=True)
def _slot(table, stored, k):
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


@kernel(no_cpython_wrapper=True)
def _new_table(rows):
    """An empty table for so many term sets."""
    slots = 16
    while slots < 4 * rows:
        slots *= 2
    table = np.empty(slots, np.int64)
    table[:] = -1
    return table


@kernel(no_cpython_wrapper=True)
def closed_sets(terms, generators, most):
    """All intersections of the record's own term set with generators, and whether there were no more than `most`.

    The full set comes first, the smallest second (if it differs), so that a truncated list still has both ends.
    """
    words = generators.shape[1]
    table = _new_table(most)
    stored = np.zeros((most + 2, words), np.uint64)
    for j in range(terms):
        stored[0, j >> 6] |= ONE << np.uint64(j & 63)
    table[_slot(table, stored, 0)] = 0
    for w in range(words):
        stored[1, w] = stored[0, w]
        for g in range(generators.shape[0]):
            stored[1, w] &= generators[g, w]
    n = 1
    at = _slot(table, stored, 1)
    if table[at] < 0:
        table[at] = n
        n += 1
    q = 0
    while q < n:
        for g in range(generators.shape[0]):
            for w in range(words):
                stored[n, w] = stored[q, w] & generators[g, w]
            at = _slot(table, stored, n)
            if table[at] < 0:
                if n >= most:
                    return stored[:n], False
                table[at] = n
                n += 1
        q += 1
    return stored[:n], True


@kernel(no_cpython_wrapper=True)
def distinct_masks(masks, untouched):
    """Distinct rows; the empty one is added if some label holds none of the record's terms."""
    table = _new_table(masks.shape[0])
    out = np.zeros((masks.shape[0] + 1, masks.shape[1]), np.uint64)
    n = 0
    for k in range(masks.shape[0]):
        for w in range(masks.shape[1]):
            out[n, w] = masks[k, w]
        at = _slot(table, out, n)
        if table[at] < 0:
            table[at] = n
            n += 1
    if untouched:
        for w in range(masks.shape[1]):
            out[n, w] = ZERO
        n += 1
    return out[:n]


@kernel(no_cpython_wrapper=True)
def option_cost(sets, o, terms, prices):
    """What a record loses that keeps these of its terms."""
    total = 0.0
    if prices.size:
        for j in range(terms):
            if not (sets[o, j >> 6] >> np.uint64(j & 63)) & ONE:
                total += prices[j]
    else:
        for j in range(count_terms(sets, o) + 1, terms + 1):
            total += 1.0 / j
    return total


@kernel(no_cpython_wrapper=True)
def _put(target, row, source, o):
    """One term set into a row of others."""
    for w in range(target.shape[1]):
        target[row, w] = source[o, w]


@kernel(no_cpython_wrapper=True)
def _cheapest_first(found, terms, prices):
    """The same term sets, cheapest first, of equal ones the larger first: a smaller set never comes before a larger."""
    sets = np.empty(found.shape, np.uint64)
    n = 0
    for left in range(terms, -1, -1):
        for o in range(found.shape[0]):
            if count_terms(found, o) == left:
                _put(sets, n, found, o)
                n += 1
    if prices.size:
        cost = np.empty(n)
        for o in range(n):
            own = option_cost(sets, o, terms, prices)
            _put(found, 0, sets, o)
            k = o
            while k > 0 and cost[k - 1] > own:
                cost[k] = cost[k - 1]
                _put(sets, k, sets, k - 1)
                k -= 1
            cost[k] = own
            _put(sets, k, found, 0)
    return sets


@kernel(no_cpython_wrapper=True)
def record_options(terms, prices, classes, masks, labels, prior, most):
    """The options of one record, cheapest first: cost, term set, and beliefs as CSR (class, belief per label)."""
    size, weight, mean_alpha = labels
    n_classes = size.size
    found, complete = closed_sets(terms, distinct_masks(masks, classes.size < n_classes), most)
    sets = _cheapest_first(found, terms, prices)
    cost = np.empty(sets.shape[0])
    at = np.zeros(sets.shape[0] + 1, np.int64)
    cls = np.empty(0, np.int64)
    val = np.empty(0)
    for sweep in range(2):
        total = 0
        for o in range(sets.shape[0]):
            left = count_terms(sets, o)
            cost[o] = option_cost(sets, o, terms, prices)
            first = total
            if left == 0:
                for c in range(n_classes):
                    if sweep:
                        cls[total], val[total] = c, weight[c]
                    total += 1
            else:
                for k in range(classes.size):
                    if contains(masks, k, sets, o):
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
def _longer(numbers, least):
    """The same numbers with room for so many, and more."""
    if numbers.size >= least:
        return numbers
    out = np.empty(2 * least, numbers.dtype)
    for i in range(numbers.size):
        out[i] = numbers[i]
    return out


def group_options(bounds, codes, prices, postings, key, keys, alpha, prior, most):
    """Everything the search needs to know about a group; at most `most` options a record. No prices: equation 2."""
    words = max(1, (int(np.diff(bounds).max(initial=0)) + 63) // 64)
    first, at = np.zeros(bounds.size, np.int64), np.zeros(65, np.int64)
    complete = np.zeros(bounds.size - 1, np.bool_)
    size, mass, cost, sets, at, cls, val, flat = _options(
        bounds, codes, prices, postings, key, keys, alpha, prior, most, words, first, at, complete
    )
    return GroupOptions(size, mass, first, cost, sets.reshape(-1, words), at, cls, val, flat, complete)


@kernel(level=1)
def _options(bounds, codes, prices, postings, key, keys, alpha, prior, most, words, first, at, complete):
    """`group_options`, into `first` and `complete`; term sets one after the other."""
    start, of, weights = postings.start, postings.of, postings.weights
    d = bounds.size - 1
    label_class, n, size = label_classes(codes, start, of, key, keys)
    weight, mass, mean = np.zeros(n), np.zeros(n), np.zeros(n)
    for label in range(key.size):
        weight[label_class[label]] = weights[label]
        mass[label_class[label]] += alpha[label]
    room, place = np.empty(n, np.int64), np.empty(n, np.int64)
    for c in range(n):
        mean[c] = mass[c] / size[c]
        place[c] = -1
    labels = LabelClasses(size, weight, mean)
    cost, sets = np.empty(64), np.empty(64 * words, np.uint64)
    cls, val = np.empty(1024, np.int64), np.empty(1024)
    m = 0
    for i in range(d):
        own = codes[bounds[i] : bounds[i + 1]]
        classes, masks = masks_of_record(own, words, start, of, label_class, room, place)
        paid = prices[bounds[i] : bounds[i + 1]] if prices.size else prices
        c, s, a, k, v, complete[i] = record_options(own.size, paid, classes, masks, labels, prior, most)
        used = at[m]
        cost, at, sets = _longer(cost, m + c.size), _longer(at, m + c.size + 1), _longer(sets, (m + c.size) * words)
        cls, val = _longer(cls, used + k.size), _longer(val, used + k.size)
        for o in range(c.size):  # in loops, which take a tenth of the time to compile that slices do
            cost[m + o] = c[o]
            at[m + o + 1] = used + a[o + 1]
            for word in range(words):
                sets[(m + o) * words + word] = s[o, word]
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
    return size, mass, cost[:m], sets[: m * words], at[: m + 1], cls[: at[m]], val[: at[m]], flat
