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

from noren.kernel import kernel
from noren.methods.suppress.kernels.term_sets import (
    ONE,
    ZERO,
    closed_sets,
    contains,
    count_terms,
    longer,
    option_cost,
)
from noren.methods.suppress.kernels.weighed import Fits, holders_of_terms, logs_of_record, weighed_options


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


@kernel
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


@kernel
def masks_of_record(codes, begin, terms, start, of, cls, room):
    """For the classes that hold any of the record's terms: which terms they hold. How many they are, into `room`."""
    classes, masks, place = room
    found = 0
    for j in range(terms):
        t = codes[begin + j]
        if t < 0 or t >= start.size - 1:
            continue
        for p in range(start[t], start[t + 1]):
            c = cls[of[p]]
            if place[c] < 0:
                place[c], classes[found] = found, c
                for w in range(masks.shape[1]):
                    masks[found, w] = ZERO
                found += 1
            masks[place[c], j >> 6] |= ONE << np.uint64(j & 63)
    for k in range(found):
        place[classes[k]] = -1
    return found


class Holders(NamedTuple):
    """Room for the classes that hold terms of a record: which they are, the terms of each, and for every class its
    place among them, -1 between calls."""

    classes: np.ndarray
    masks: np.ndarray
    place: np.ndarray


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
    first, complete = np.zeros(bounds.size, np.int64), np.zeros(bounds.size - 1, np.bool_)
    listed = _options if postings.logs is None else _weighed
    size, mass, cost, sets, at, cls, val, flat = listed(
        bounds, codes, prices, postings, splits, key, keys, asked, words, first, complete
    )
    m = first[-1]
    used = at[m]
    kept = sets[: m * words].reshape(-1, words)
    return GroupOptions(size, mass, first, cost[:m], kept, at[: m + 1], cls[:used], val[:used], flat[:m], complete)


@kernel
def _prepared(splits, key, keys, weights, alpha, words):
    """The class of every label, alpha summed over each class, what is known about the classes, and room for holders."""
    label_class, n, size = label_classes(splits.codes, splits.start, splits.of, key, keys)
    weight, mass, mean = np.zeros(n), np.zeros(n), np.zeros(n)
    for label in range(key.size):
        weight[label_class[label]] = weights[label]
        mass[label_class[label]] += alpha[label]
    place = np.empty(n, np.int64)
    for c in range(n):
        mean[c] = mass[c] / size[c]
        place[c] = -1
    room = Holders(np.empty(n, np.int64), np.empty((n, words), np.uint64), place)
    return label_class, mass, LabelClasses(size, weight, mean), room


@kernel
def _options(bounds, codes, prices, postings, splits, key, keys, asked, words, first, complete):
    """`group_options`, into `first` and `complete`; term sets one after the other, and more room than is used."""
    label_class, mass, labels, room = _prepared(splits, key, keys, postings.weights, asked.alpha, words)
    size, weight, mean = labels
    classes, masks = room.classes, room.masks
    n, most = size.size, asked.most
    rank, left, price = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    at, cost, flat = np.zeros(65, np.int64), np.zeros(64), np.zeros(64)
    kept, cls, val = np.zeros(64 * words, np.uint64), np.zeros(1024, np.int64), np.zeros(1024)
    m = 0
    for i in range(bounds.size - 1):
        terms = bounds[i + 1] - bounds[i]
        found = masks_of_record(codes, bounds[i], terms, postings.start, postings.of, label_class, room)
        sets, count, complete[i] = closed_sets(terms, masks, found, found < n, most)
        for o in range(count):  # cheapest first, of equal ones the larger: a smaller set never comes before a larger
            left[o], price[o] = count_terms(sets, o), option_cost(sets, o, terms, prices, bounds[i])
            k = o
            while k > 0:
                before = rank[k - 1]
                if price[before] < price[o] or (price[before] == price[o] and left[before] >= left[o]):
                    break
                rank[k] = before
                k -= 1
            rank[k] = o
        at, cost, flat = longer(at, m + count + 1), longer(cost, m + count), longer(flat, m + count)
        kept = longer(kept, (m + count) * words)
        for turn in range(count):
            o = rank[turn]
            used = e = at[m]
            cls, val = longer(cls, used + n), longer(val, used + n)
            everything = left[o] == 0
            for k in range(n if everything else found):
                if everything or contains(masks, k, sets, o):
                    cls[e] = k if everything else classes[k]
                    val[e] = weight[cls[e]]
                    e += 1
            if e == used and asked.prior:
                for c in range(n):
                    if mean[c] > 0:
                        cls[e], val[e] = c, mean[c]
                        e += 1
            else:
                total = 0.0
                for k in range(used, e):
                    total += val[k] * size[cls[k]]
                for k in range(used, e):
                    val[k] /= total
            same = e - used == n
            for k in range(used, e):
                same = same and val[k] == val[used]
            cost[m], flat[m], at[m + 1] = price[o], val[used] if same else 0.0, e
            for word in range(words):
                kept[m * words + word] = sets[o, word]
            m += 1
        first[i + 1] = m
    return size, mass, cost, kept, at, cls, val, flat


@kernel
def _weighed(bounds, codes, prices, postings, splits, key, keys, asked, words, first, complete):
    """`_options` where pairs of a label and a term have weights."""
    start, of, logs = postings.start, postings.of, postings.logs
    label_class, mass, labels, room = _prepared(splits, key, keys, postings.weights, asked.alpha, words)
    size, weight, mean = labels
    at, cost, kept = np.zeros(65, np.int64), np.zeros(64), np.zeros(64 * words, np.uint64)
    cls, val = np.zeros(1024, np.int64), np.zeros(1024)
    m = 0
    for i in range(bounds.size - 1):
        own = codes[bounds[i] : bounds[i + 1]]
        found = masks_of_record(codes, bounds[i], own.size, start, of, label_class, room)
        classes, masks = room.classes[:found], room.masks[:found]
        paid = prices[bounds[i] : bounds[i + 1]] if prices.size else prices
        weighed = logs_of_record(own, start, of, logs, label_class, classes, room.place)
        begin, held = holders_of_terms(masks, own.size)
        fits = Fits(classes, masks, weighed, begin, held, size, weight, mean, asked.prior)
        c, s, a, k, v, complete[i] = weighed_options(own.size, paid, fits, asked.near, asked.most)
        used = at[m]
        cost, at, kept = longer(cost, m + c.size), longer(at, m + c.size + 1), longer(kept, (m + c.size) * words)
        cls, val = longer(cls, used + k.size), longer(val, used + k.size)
        for o in range(c.size):  # in loops, which take a tenth of the time to compile that slices do
            cost[m + o] = c[o]
            at[m + o + 1] = used + a[o + 1]
            for word in range(words):
                kept[(m + o) * words + word] = s[o, word]
        for e in range(k.size):
            cls[used + e] = k[e]
            val[used + e] = v[e]
        m += c.size
        first[i + 1] = m
    flat = np.zeros(m)
    for o in range(m):
        same = at[o + 1] - at[o] == size.size
        for e in range(at[o], at[o + 1]):
            same = same and val[e] == val[at[o]]
        if same:
            flat[o] = val[at[o]]
    return size, mass, cost, kept, at, cls, val, flat
