"""From terms to labels: K(t), the beliefs of groups, and what the requirements ask of them.

Records are CSR: record r has the distinct term codes `codes[bounds[r]:bounds[r + 1]]`; a code outside 0..terms-1 is an
unknown term. K(t) walks the shortest posting and asks the bit rows of the other terms, so nothing of size records x
labels is ever held. Empty term sets link to all labels: they are counted and added once.
"""

# mypy: ignore-errors
# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel

ONE = np.uint64(1)
LOW = 63


class Postings(NamedTuple):
    """A knowledge table: which labels hold a term."""

    start: Any
    of: Any
    """The labels that hold term t are of[start[t]:start[t + 1]]."""
    bits: Any
    """(terms, labels / 64): the same as bits."""
    weights: Any
    """Per label: its weight."""
    logs: Any = None
    """Logarithms of the weights of pairs, beside `of`; None where pairs say nothing."""


@kernel
def link(codes, postings, out):
    """K(t) of one record into `out`, ascending; returns how many. Not for empty term sets, which link to all."""
    start, of, bits = postings.start, postings.of, postings.bits
    terms = start.size - 1
    shortest = -1
    for j in range(codes.size):
        t = codes[j]
        if t < 0 or t >= terms:
            return 0
        if shortest < 0 or start[t + 1] - start[t] < start[shortest + 1] - start[shortest]:
            shortest = t
    n = 0
    for p in range(start[shortest], start[shortest + 1]):
        label = of[p]
        word, bit = label >> 6, np.uint64(label & LOW)
        inside = True
        for j in range(codes.size):
            if not (bits[codes[j], word] >> bit) & ONE:
                inside = False
                break
        if inside:
            out[n] = label
            n += 1
    return n


@kernel
def _share(codes, postings, logs, labels, n, out):
    """The beliefs of one record in the n labels that it links to, into `out`. `logs` are those of the postings."""
    weights = postings.weights
    total = 0.0
    if n == 0:
        return
    if logs is None:
        for k in range(n):
            total += weights[labels[k]]
        for k in range(n):
            out[k] = weights[labels[k]] / total
    else:
        for k in range(n):
            out[k] = 0.0
        for j in range(codes.size):  # labels and postings both ascend: one walk through a posting finds them all
            p = postings.start[codes[j]]
            for k in range(n):
                while postings.of[p] < labels[k]:
                    p += 1
                out[k] += logs[p]
        most = -np.inf
        for k in range(n):
            most = max(most, out[k])
        for k in range(n):
            out[k] = weights[labels[k]] * np.exp(out[k] - most)
            total += out[k]
        for k in range(n):
            out[k] /= total


@kernel
def link_beliefs(bounds, codes, postings, at, labels):
    """The beliefs of all records, as `link_labels` lists their labels. Not for records without terms."""
    out = np.empty(labels.size)
    for r in range(bounds.size - 1):
        first, last = at[r], at[r + 1]
        own = codes[bounds[r] : bounds[r + 1]]
        _share(own, postings, postings.logs, labels[first:last], last - first, out[first:last])
    return out


@kernel
def link_counts(bounds, codes, postings):
    """|K(t)| of every record."""
    labels = postings.weights.size
    out = np.empty(bounds.size - 1, np.int64)
    room = np.empty(labels, np.int64)
    for r in range(out.size):
        own = codes[bounds[r] : bounds[r + 1]]
        out[r] = labels if own.size == 0 else link(own, postings, room)
    return out


@kernel
def link_labels(bounds, codes, postings, sizes):
    """K(t) of every record as CSR labels, given |K(t)|. Meant for a block of records, not for a whole table."""
    labels = postings.weights.size
    at = np.zeros(sizes.size + 1, np.int64)
    for r in range(sizes.size):
        at[r + 1] = at[r] + sizes[r]
    out = np.empty(at[sizes.size], np.int64)
    for r in range(sizes.size):
        own = codes[bounds[r] : bounds[r + 1]]
        if own.size == 0:
            for label in range(labels):
                out[at[r] + label] = label
        else:
            link(own, postings, out[at[r] : at[r + 1]])
    return at, out


@kernel
def belief_sums(bounds, codes, postings):
    """Sum over the records of P(L | t) for every label, and how many records link to nothing.

    Divided by the number of records this is the estimated prior alpha (unlinked records ignored).
    """
    weights = postings.weights
    labels = weights.size
    out = np.zeros(labels)
    room, share = np.empty(labels, np.int64), np.empty(labels)
    empty = unlinked = 0
    for r in range(bounds.size - 1):
        own = codes[bounds[r] : bounds[r + 1]]
        if own.size == 0:
            empty += 1
            continue
        n = link(own, postings, room)
        unlinked += n == 0
        _share(own, postings, postings.logs, room, n, share)
        for k in range(n):
            out[room[k]] += share[k]
    if empty:
        whole = _sum(weights, labels)
        for label in range(labels):
            out[label] += empty * weights[label] / whole
    return out, unlinked


@kernel
def _sum(values, n):
    """The sum of the first n values."""
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@kernel
def _largest_sum(values, n, m):
    """Sum of the m largest of values[:n]; reorders them. A quickselect, so that no full sort is needed."""
    if m >= n:
        return _sum(values, n)
    low, high = 0, n - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if m - 1 <= j:
            high = j
        elif m - 1 >= i:
            low = i
        else:
            break
    return _sum(values, m)


@kernel
def group_measures(order, group_bounds, bounds, codes, postings, alpha, prior, l):
    """What the requirements ask of every group; group g holds the records `order[group_bounds[g]:group_bounds[g+1]]`.

    Columns: linked records, largest belief p1, tail p_l + p_{l+1} + ..., squared L2 distance to alpha, earth mover's
    distance to alpha (all labels equally far apart; belief that no label takes is one more value). With `prior` an
    unlinked record believes alpha, otherwise nothing.
    """
    weights = postings.weights
    labels = weights.size
    groups = group_bounds.size - 1
    out = np.zeros((groups, 5))
    room = np.empty(labels, np.int64)
    belief = np.zeros(labels)
    touched = np.empty(labels, np.int64)
    values, share = np.empty(labels), np.empty(labels)
    everything, alpha_total = _sum(weights, labels), _sum(alpha, labels)
    alpha_square = 0.0
    for label in range(labels):
        alpha_square += alpha[label] * alpha[label]
    for g in range(groups):
        size = group_bounds[g + 1] - group_bounds[g]
        found = empty = linked = 0
        for k in range(group_bounds[g], group_bounds[g + 1]):
            r = order[k]
            own = codes[bounds[r] : bounds[r + 1]]
            if own.size == 0:
                empty += 1
                continue
            n = link(own, postings, room)
            linked += n > 0
            _share(own, postings, postings.logs, room, n, share)
            for i in range(n):
                label = room[i]
                if share[i] == 0:  # too small for a number
                    continue
                if belief[label] == 0:
                    touched[found] = label
                    found += 1
                belief[label] += share[i]
        linked += empty
        dense = empty > 0 or (prior and linked < size)
        if dense:
            found = labels
            for label in range(labels):
                touched[label] = label
                belief[label] += empty * weights[label] / everything
                if prior:
                    belief[label] += (size - linked) * alpha[label]
        peak = mass = square = overlap = 0.0
        for i in range(found):
            label = touched[i]
            b = belief[label] / size
            belief[label] = 0.0
            values[i] = b
            peak = max(peak, b)
            mass += b
            square += b * (b - 2 * alpha[label])
            overlap += min(b, alpha[label])
        out[g, 0] = linked
        out[g, 1] = peak
        out[g, 2] = max(0.0, mass - _largest_sum(values, found, l - 1))
        out[g, 3] = max(0.0, square + alpha_square)
        out[g, 4] = max(0.0, 1.0 - overlap - min(max(0.0, 1 - mass), max(0.0, 1 - alpha_total)))
    return out
