"""What an adversary with a knowledge table believes about the records of a group, for the independent verification.

Deliberately plain, and apart from `linkage` and the searches: K(t) is the intersection of the bit rows of a record's
terms, beliefs are summed in a dense array, and the largest are found by sorting. A code below 0 is an unknown term.
`record_beliefs` is the one place where the belief in a label is worked out from the weights of labels and of pairs;
`pairs` is `Knowledge.pairs`, None where pairs say nothing.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

COLUMNS = 9
LINKED, PEAK, TAIL, SQUARE, MOVED, SQUARE_LINKED, MOVED_LINKED, RISE, MASS = range(COLUMNS)


@kernel
def linked_labels(own, bits, out):
    """The labels that have all terms of one record, ascending into `out`; how many. Not for records without terms."""
    for j in range(own.size):
        if own[j] < 0:
            return 0
    found = 0
    for word in range(bits.shape[1]):
        common = bits[own[0], word]
        for j in range(1, own.size):
            common &= bits[own[j], word]
        label = word * 64
        while common:
            if common & np.uint64(1):
                out[found] = label
                found += 1
            common >>= np.uint64(1)
            label += 1
    return found


@kernel
def _pair_log(own, pairs, label):
    """The sum over one record's terms of log w(label, term), for a label that has them all."""
    total = 0.0
    for j in range(own.size):
        low, high = pairs.start[own[j]], pairs.start[own[j] + 1] - 1
        while low < high:
            middle = (low + high) // 2
            if pairs.of[middle] < label:
                low = middle + 1
            else:
                high = middle
        total += pairs.logs[low]
    return total


@kernel
def record_beliefs(own, bits, weights, pairs, room, belief):
    """The labels that have all terms of one record, into `room`, and the belief in each, into `belief`; how many.

    P(L | t) = w(L) w(L, t1) w(L, t2) ... over the sum of the same. Products are taken relative to the largest, so that
    none vanishes for being a product of many small numbers. Not for records without terms.
    """
    found = linked_labels(own, bits, room)
    total = 0.0
    if pairs is None:
        for i in range(found):
            belief[i] = weights[room[i]]
            total += belief[i]
    else:
        most = -np.inf
        for i in range(found):
            belief[i] = _pair_log(own, pairs, room[i])
            most = max(most, belief[i])
        for i in range(found):
            belief[i] = weights[room[i]] * np.exp(belief[i] - most)
            total += belief[i]
    for i in range(found):
        belief[i] /= total
    return found


@kernel
def mean_beliefs(offsets, codes, bits, weights, pairs):
    """The mean belief in every label over all records; a record that is linked to nothing believes nothing."""
    labels = weights.size
    n = offsets.size - 1
    out = np.zeros(labels)
    room, own_belief = np.empty(labels, np.int64), np.empty(labels)
    everywhere = 0
    for r in range(n):
        own = codes[offsets[r] : offsets[r + 1]]
        if own.size == 0:
            everywhere += 1
            continue
        found = record_beliefs(own, bits, weights, pairs, room, own_belief)
        for i in range(found):
            out[room[i]] += own_belief[i]
    whole = _sum(weights, labels)
    for label in range(labels):
        out[label] = (out[label] + everywhere * weights[label] / whole) / max(1, n)
    return out


@kernel
def _sum(values, n):
    """The sum of the first n values."""
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@kernel
def _sort(values, n):
    """The first n values in descending order: Shell's sort, because NumPy's takes long to compile."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i - gap
            while j >= 0 and values[j] < value:
                values[j + gap] = values[j]
                j -= gap
            values[j + gap] = value
        gap //= 3


@kernel
def group_beliefs(order, bounds, offsets, codes, bits, weights, pairs, alpha, prior, l):  # noqa: E741
    """One line per group order[bounds[g]:bounds[g + 1]], columns as named above.

    The columns "linked" count linked records alone, renormalised. With `prior` an unlinked record believes alpha.
    """
    labels = weights.size
    groups = bounds.size - 1
    out = np.zeros((groups, COLUMNS))
    belief = np.zeros(labels)
    linked_only = np.zeros(labels)
    ranked, own_belief = np.empty(labels), np.empty(labels)
    room = np.empty(labels, np.int64)
    whole = _sum(weights, labels)
    rest_alpha = max(0.0, 1.0 - _sum(alpha, labels))
    for g in range(groups):
        belief[:] = 0.0
        linked = 0
        size = bounds[g + 1] - bounds[g]
        everywhere = 0
        for k in range(bounds[g], bounds[g + 1]):
            r = order[k]
            own = codes[offsets[r] : offsets[r + 1]]
            if own.size == 0:
                everywhere += 1
                linked += 1
                continue
            found = record_beliefs(own, bits, weights, pairs, room, own_belief)
            for i in range(found):
                belief[room[i]] += own_belief[i]
            linked += found > 0
        for label in range(labels):
            belief[label] += everywhere * weights[label] / whole
            linked_only[label] = belief[label] / max(1, linked)
            if prior:
                belief[label] += (size - linked) * alpha[label]
            belief[label] /= max(1, size)
        positive, mass = 0, 0.0
        square, moved, square_linked, moved_linked, rise = 0.0, 0.0, 0.0, 0.0, -np.inf
        for label in range(labels):
            if belief[label] > 0:
                ranked[positive] = belief[label]
                positive += 1
            mass += belief[label]
            more, more_linked = belief[label] - alpha[label], linked_only[label] - alpha[label]
            square += more * more
            moved += abs(more)
            square_linked += more_linked * more_linked
            moved_linked += abs(more_linked)
            rise = max(rise, more)
        _sort(ranked, positive)
        tail = 0.0
        for i in range(l - 1, positive):
            tail += ranked[i]
        out[g, LINKED] = linked
        out[g, PEAK] = ranked[0] if positive else 0.0
        out[g, TAIL] = tail
        out[g, MASS] = mass
        out[g, SQUARE] = square
        out[g, MOVED] = (moved + abs(max(0.0, 1 - mass) - rest_alpha)) / 2
        if linked:
            out[g, SQUARE_LINKED] = square_linked
            out[g, MOVED_LINKED] = (moved_linked + rest_alpha) / 2
        out[g, RISE] = rise
    return out
