"""From terms to labels: K(t), the beliefs of groups, and their measures.

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
    """The transposed knowledge table: the labels of every term."""

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
    """Write K(t) of one record into `out`, ascending; return its size. Not for empty term sets, which link to all."""
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
def share_belief(codes, postings, logs, labels, n, out):
    """Write the beliefs of one record in its n labels into `out`. `logs` are those of the postings."""
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
def longer(numbers, least):
    """Return the same numbers in a larger array."""
    if numbers.size >= least:
        return numbers
    out = np.zeros(2 * least, numbers.dtype)
    for i in range(numbers.size):
        out[i] = numbers[i]
    return out


@kernel
def link_records(bounds, codes, postings):
    """Return K(t) of every record and its beliefs in these labels: offsets, labels, beliefs. Records without terms have
    none here."""
    labels = postings.weights.size
    at = np.zeros(bounds.size, np.int64)
    room, share = np.empty(labels, np.int64), np.empty(labels)
    out, belief = np.empty(1024, np.int64), np.empty(1024)
    for r in range(bounds.size - 1):
        own = codes[bounds[r] : bounds[r + 1]]
        n = link(own, postings, room) if own.size else 0
        share_belief(own, postings, postings.logs, room, n, share)
        out, belief = longer(out, at[r] + n), longer(belief, at[r] + n)
        for k in range(n):
            out[at[r] + k], belief[at[r] + k] = room[k], share[k]
        at[r + 1] = at[r] + n
    return at, out[: at[-1]], belief[: at[-1]]


@kernel
def sum_of(values, n):
    """Return the sum of the first n values."""
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@kernel
def _add_beliefs(records, bounds, codes, postings, room, share, belief, touched):
    """Add what some records believe to `belief`, and list the labels that any of them believes in; how many labels,
    how many records without terms, and how many of the others link to a label."""
    found = empty = linked = 0
    for r in records:
        own = codes[bounds[r] : bounds[r + 1]]
        if own.size == 0:
            empty += 1
            continue
        n = link(own, postings, room)
        linked += n > 0
        share_belief(own, postings, postings.logs, room, n, share)
        for i in range(n):
            label = room[i]
            if share[i] == 0:  # too small for a number
                continue
            if belief[label] == 0:
                touched[found] = label
                found += 1
            belief[label] += share[i]
    if empty:
        found = belief.size
        total = sum_of(postings.weights, found)
        for label in range(found):
            touched[label] = label
            belief[label] += empty * postings.weights[label] / total
    return found, empty, linked


@kernel
def belief_sums(bounds, codes, postings):
    """Return the sum over the records of P(L | t) for every label.

    Divided by the number of records this is the estimated prior alpha (unlinked records ignored).
    """
    labels = postings.weights.size
    out = np.zeros(labels)
    room, touched, share = np.empty(labels, np.int64), np.empty(labels, np.int64), np.empty(labels)
    _add_beliefs(np.arange(bounds.size - 1), bounds, codes, postings, room, share, out, touched)
    return out


@kernel
def group_measures(order, group_bounds, bounds, codes, postings, alpha, prior, l):
    """Return the measures of every group for the requirements; group g has the records
    `order[group_bounds[g]:group_bounds[g+1]]`.

    Columns: linked records, largest belief p1, tail p_l + p_{l+1} + ..., squared L2 distance to alpha, earth mover's
    distance to alpha (all labels equally far apart; belief that no label takes is one more value). With `prior` an
    unlinked record believes alpha, otherwise nothing.
    """
    labels = alpha.size
    groups = group_bounds.size - 1
    out = np.zeros((groups, 5))
    room, touched = np.empty(labels, np.int64), np.empty(labels, np.int64)
    belief, values, share = np.zeros(labels), np.empty(labels), np.empty(labels)
    alpha_square, alpha_rest = 0.0, max(0.0, 1 - sum_of(alpha, labels))
    for label in range(labels):
        alpha_square += alpha[label] * alpha[label]
    for g in range(groups):
        records = order[group_bounds[g] : group_bounds[g + 1]]
        size = records.size
        found, empty, linked = _add_beliefs(records, bounds, codes, postings, room, share, belief, touched)
        linked += empty
        if prior and linked < size:
            found = labels
            for label in range(labels):
                touched[label] = label
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
        tail = 0.0
        if found >= l:
            rest = found - (l - 1)
            tail = sum_of(np.partition(values[:found], rest - 1), rest)
        out[g, 0], out[g, 1], out[g, 2], out[g, 3] = linked, peak, tail, max(0.0, square + alpha_square)
        out[g, 4] = max(0.0, 1.0 - overlap - min(max(0.0, 1 - mass), alpha_rest))
    return out
