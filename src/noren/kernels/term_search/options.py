"""A group prepared for the search: label classes, the options of every record, and the slack of a choice.

**Classes.** Labels that have the same terms among the group's terms (and the same weight, and the same prior where it
matters) get the same belief whatever is removed; they are one class with a size. **Options.** Whatever the metric, who
keeps more terms loses less, so of all term sets that link to the same labels only the largest matters. These are the
closed sets: intersections of the record's terms with the term sets of labels. A term set is a row of 64-bit words.
Where pairs of a label and a term have weights, classes also agree in those, and `weighed` lists the options.

**Prices.** Without them a removal costs one over the terms that are left (equation 2). Else `prices` holds a positive
number for every entry, and a removal costs the sum over what it removes.

Beliefs are sums over the records, not means, and everything is scaled by the group's size d accordingly.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernels.compiled import kernel
from noren.kernels.term_search.term_sets import (
    ONE,
    cheapest_first,
    closed_sets,
    contains,
    count_terms,
    distinct_masks,
    longer,
    option_cost,
)
from noren.kernels.term_search.weighed import Fits, holders_of_terms, logs_of_record, weighed_options


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
def record_options(terms, prices, classes, masks, labels, prior, most):
    """The options of one record, cheapest first: cost, term set, and beliefs as CSR (class, belief per label)."""
    size, weight, mean_alpha = labels
    n_classes = size.size
    found, complete = closed_sets(terms, distinct_masks(masks, classes.size < n_classes), most)
    sets = cheapest_first(found, terms, prices)
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


class Splits(NamedTuple):
    """What tells labels of a group apart: of[start[s]:start[s + 1]] from all others, for every s of codes."""

    codes: np.ndarray
    start: np.ndarray
    of: np.ndarray


class Asked(NamedTuple):
    """How options are listed: at most `most` a record, alpha for records that fit nothing (`prior`), and whether those
    that cannot all be listed should be near alpha."""

    alpha: np.ndarray
    prior: bool
    near: bool
    most: int


def group_options(bounds, codes, prices, postings, splits, key, keys, asked):
    """Everything the search needs to know about a group. No prices: equation 2."""
    words = max(1, (int(np.diff(bounds).max(initial=0)) + 63) // 64)
    first, at = np.zeros(bounds.size, np.int64), np.zeros(65, np.int64)
    complete = np.zeros(bounds.size - 1, np.bool_)
    size, mass, cost, sets, at, cls, val, flat = _options(
        bounds, codes, prices, postings, postings.logs, splits, key, keys, asked, words, first, at, complete
    )
    return GroupOptions(size, mass, first, cost, sets.reshape(-1, words), at, cls, val, flat, complete)


@kernel(level=1)
def _options(bounds, codes, prices, postings, logs, splits, key, keys, asked, words, first, at, complete):
    """`group_options`, into `first` and `complete`; term sets one after the other. `logs` are those of the postings."""
    start, of, weights, alpha = postings.start, postings.of, postings.weights, asked.alpha
    d = bounds.size - 1
    label_class, n, size = label_classes(splits.codes, splits.start, splits.of, key, keys)
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
        if logs is None:
            c, s, a, k, v, whole = record_options(own.size, paid, classes, masks, labels, asked.prior, asked.most)
        else:
            weighed = logs_of_record(own, start, of, logs, label_class, classes, place)
            begin, held = holders_of_terms(masks, own.size)
            fits = Fits(classes, masks, weighed, begin, held, size, weight, mean, asked.prior)
            c, s, a, k, v, whole = weighed_options(own.size, paid, fits, asked.near, asked.most)
        complete[i] = whole
        used = at[m]
        cost, at, sets = longer(cost, m + c.size), longer(at, m + c.size + 1), longer(sets, (m + c.size) * words)
        cls, val = longer(cls, used + k.size), longer(val, used + k.size)
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
