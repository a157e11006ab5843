"""Full-domain generalisation: classes of a level vector, and whether they meet their requirements.

Entries are distinct quasi-identifier values (or classes of a finer level vector), each with a representative row of
`codes`, a number of records and, for requirements on sensitive columns, sparse histograms: values and weights of
entry e lie at bounds[e]..bounds[e+1]. maps[offsets[i, h] + leaf] is the group of a leaf of column i at height h, and
widths[i, h] the number of groups there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import class_holds

SPAN = np.int64(1) << np.int64(62)
MIX = np.uint64(0x9E3779B97F4A7C15)


class Held(NamedTuple):
    """Sparse histograms: the sensitive values of entry e, numbered through all columns, and how many records have
    each, lie at bounds[e]..bounds[e+1]."""

    bounds: Any
    values: Any
    weights: Any


class Limits(NamedTuple):
    """What a class needs at least, and when the outcome of a level vector is settled."""

    column_of: Any
    first_of: Any
    """The sensitive column of a value that is numbered through, and the first value of each column."""
    least: Any
    needed: Any
    """Records of a class, and values of each sensitive column: no part of a class with fewer can hold."""
    most: Any
    """Records that may be dropped."""
    monotone: Any
    """Whether a vector that drops more rules out all finer ones."""


@kernel
def level_classes(codes, maps, offsets, widths, levels, rows, classes):
    """Number the classes of entries at a level vector, into `classes`; returns how many there are.

    Keys are mixed-radix numbers. Where the next column would leave 62 bits, the key so far is first replaced by
    its number among the keys that occur, so no product of domains is too large.
    """
    entries, q = len(rows), codes.shape[1]
    keys = np.zeros(entries, np.int64)
    span = np.int64(1)
    for i in range(q):
        width = widths[i, levels[i]]
        if width == 1:
            continue
        if span > SPAN // width:
            span = np.int64(_numbered(keys, span, classes))
            for e in range(entries):
                keys[e] = classes[e]
        start = offsets[i, levels[i]]
        if span == 1:
            for e in range(entries):
                keys[e] = maps[start + codes[rows[e], i]]
        else:
            for e in range(entries):
                keys[e] = keys[e] * width + maps[start + codes[rows[e], i]]
        span *= width
    return _numbered(keys, span, classes)


@kernel
def _numbered(keys, span, classes):
    """Number the distinct keys (0 <= key < span) in the order they come; small spans by a table, others by hashing."""
    n = len(keys)
    count = 0
    if span <= 8 * n + 256:
        seen = np.full(span, -1, np.int32)
        for e in range(n):
            found = seen[keys[e]]
            if found < 0:
                found = seen[keys[e]] = count
                count += 1
            classes[e] = found
        return count
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    shift = np.uint64(64 - bits)
    mask = (1 << bits) - 1
    slots = np.full(1 << bits, -1, np.int64)
    number = np.empty(1 << bits, np.int32)
    for e in range(n):
        key = keys[e]
        at = np.int64((np.uint64(key) * MIX) >> shift)
        while slots[at] != key and slots[at] != -1:
            at = (at + 1) & mask
        if slots[at] == -1:
            slots[at] = key
            number[at] = count
            count += 1
        classes[e] = number[at]
    return count


@kernel
def sized(classes, count, rows, sizes):
    """Representative row and number of records of every class, from those of its entries."""
    first = np.empty(count, np.int64)
    total = np.zeros(count, np.int64)
    for e in range(len(classes)):
        c = classes[e]
        if total[c] == 0:
            first[c] = rows[e]
        total[c] += sizes[e]
    return first, total


@kernel
def by_class(classes, count):
    """Entries ordered by class, and where each class begins."""
    starts = np.zeros(count + 1, np.int64)
    for c in classes:
        starts[c + 1] += 1
    for c in range(count):
        starts[c + 1] += starts[c]
    place = starts[:-1].copy()
    order = np.empty(len(classes), np.int64)
    for e in range(len(classes)):
        order[place[classes[e]]] = e
        place[classes[e]] += 1
    return order, starts


@kernel
def rolled_up(classes, count, held, span):
    """Sparse histograms of classes from those of their entries; `span` is the number of values over all columns."""
    bounds, values, weights = held
    order, starts = by_class(classes, count)
    out_bounds = np.zeros(count + 1, np.int64)
    out_values = np.empty(len(values), np.int32)
    out_weights = np.empty(len(values), np.int64)
    place = np.full(span, -1, np.int64)
    at = 0
    for c in range(count):
        begin = at
        for o in range(starts[c], starts[c + 1]):
            e = order[o]
            for p in range(bounds[e], bounds[e + 1]):
                v = values[p]
                if place[v] < begin:
                    place[v] = at
                    out_values[at] = v
                    out_weights[at] = weights[p]
                    at += 1
                else:
                    out_weights[place[v]] += weights[p]
        out_bounds[c + 1] = at
    return Held(out_bounds, out_values[:at].copy(), out_weights[:at].copy())


@kernel
def small_classes(total, least):
    """How many records lie in classes of fewer than `least`, and which classes those are."""
    fails = np.zeros(len(total), np.bool_)
    records = 0
    for c in range(len(total)):
        if total[c] < least:
            fails[c] = True
            records += total[c]
    return fails, records


@kernel
def failing_at_levels(classes, total, held, limits, rules):
    """Which classes fail, the records in them, and the records that every finer level vector loses as well.

    The latter lie in classes that have less than the limits say. Counting stops where the outcome is settled: more
    records fail than may be dropped and nothing else is asked (monotone), or more are lost below too.
    """
    bounds, values, weights = held
    column_of, first_of, needed = limits.column_of, limits.first_of, limits.needed
    count = len(total)
    fails, dropped = small_classes(total, limits.least)
    below = dropped
    if below > limits.most:
        return fails, dropped, below
    order, starts = by_class(classes, count)
    hists = np.zeros(rules.reference.shape, np.float64)
    seen = np.zeros(len(needed), np.int64)
    for c in range(count):
        if fails[c]:
            continue
        hists[:] = 0.0
        seen[:] = 0
        for o in range(starts[c], starts[c + 1]):
            e = order[o]
            for p in range(bounds[e], bounds[e + 1]):
                j = column_of[values[p]]
                v = values[p] - first_of[j]
                if hists[j, v] == 0.0:
                    seen[j] += 1
                hists[j, v] += weights[p]
        poor = False
        for j in range(len(needed)):
            poor = poor or seen[j] < needed[j]
        if poor:
            below += total[c]
        if poor or (dropped <= limits.most and not class_holds(rules, hists, total[c])):
            fails[c] = True
            dropped += total[c]
            if below > limits.most or (limits.monotone and dropped > limits.most):
                break
    return fails, dropped, below


@kernel
def penalty_of(fails, total, first, codes, penalties, offsets, levels):
    """What dropping the failing classes adds to the loss: for each record the sum of its columns' penalties."""
    extra = 0.0
    for c in range(len(fails)):
        if fails[c]:
            one = 0.0
            for i in range(codes.shape[1]):
                one += penalties[offsets[i, levels[i]] + codes[first[c], i]]
            extra += one * total[c]
    return extra


@kernel
def next_open(order, start, closed, bound, best):
    """The first position from `start` whose node is neither closed nor bound to be as bad as the best one found."""
    for position in range(start, len(order)):
        node = order[position]
        if not closed[node] and bound[node] < best:
            return position
    return len(order)
