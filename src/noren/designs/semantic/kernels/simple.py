"""Algorithm 1 on a chain: each value uniform among those with which the set can still be completed.

Codes on a chain are places 0..F-1; `after[i]` is the first place to the right that is compatible with place i. The
number of candidates of a step depends on the steps before it, so a step takes 64 bits and is never redrawn:
redrawing would favour some paths. The probability of a step is off by less than 2^-64.
"""

# mypy: ignore-errors
# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.designs.semantic.kernels.draws import put_sorted
from noren.kernel import kernel

HALF = np.uint64(32)


@kernel(inline="always")
def _index64(high, low, n):
    """One of n < 2^32 from 64 random bits: the integer part of n times a binary fraction."""
    size = np.uint64(n)
    return np.int64((np.uint64(high) * size + ((np.uint64(low) * size) >> HALF)) >> HALF)


class Gaps(NamedTuple):
    """For every gap between places (0: left of all, F + 1: right of all; place i is i + 1) three numbers."""

    capacity: Any
    """How many more values fit. A value in a gap costs one or two of its capacity, never more."""
    free: Any
    """How many places inside are compatible with both ends."""
    tight: Any
    """How many of those leave room for the rest of the capacity."""


@kernel
def gap_tables(after, before):
    """The gaps of a chain."""
    F = after.size
    capacity = np.zeros((F + 2, F + 2), np.int32)
    free = np.zeros((F + 2, F + 2), np.int32)
    tight = np.zeros((F + 2, F + 2), np.int32)
    for a in range(F + 2):
        first = 0 if a == 0 else (after[a - 1] if a <= F else F)
        for b in range(a + 1, F + 2):
            end = F if b == F + 1 else before[b - 1]
            free[a, b] = max(0, end - first)
            at, fit = first, 0
            while at < end:
                fit += 1
                at = after[at]
            capacity[a, b] = fit
    for a in range(F + 1):
        first = 0 if a == 0 else after[a - 1]
        for b in range(a + 1, F + 2):
            for u in range(first, first + free[a, b]):
                tight[a, b] += capacity[a, u + 1] + capacity[u + 1, b] + 1 == capacity[a, b]
    return Gaps(capacity, free, tight)


@kernel
def _slack(ends, n, capacity, missing):
    total = 0
    for g in range(n - 1):
        total += capacity[ends[g], ends[g + 1]]
    return total - missing


@kernel
def chain_simple(words, codes, order, place, after, gaps, out):
    """Algorithm 1: each value uniform among those with which the set can still be completed to l values."""
    capacity, free, tight = gaps
    F = order.size
    l = out.shape[1]
    ends = np.empty(l + 2, np.int64)
    values = np.empty(l, np.int64)
    for i in range(codes.size):
        ends[0] = 0
        ends[1] = place[np.int64(codes[i])] + 1
        ends[2] = F + 1
        for k in range(1, l):
            spare = _slack(ends, k + 2, capacity, l - k) > 0
            counts = free if spare else tight
            total = 0
            for g in range(k + 1):
                total += counts[ends[g], ends[g + 1]]
            pick = _index64(words[i, 2 * k - 2], words[i, 2 * k - 1], total)
            g = 0
            while pick >= counts[ends[g], ends[g + 1]]:
                pick -= counts[ends[g], ends[g + 1]]
                g += 1
            a, b = ends[g], ends[g + 1]
            u = 0 if a == 0 else after[a - 1]
            if spare:
                u += pick
            else:
                while True:
                    if capacity[a, u + 1] + capacity[u + 1, b] + 1 == capacity[a, b]:
                        if pick == 0:
                            break
                        pick -= 1
                    u += 1
            for t in range(k + 1, g, -1):
                ends[t + 1] = ends[t]
            ends[g + 1] = u + 1
        for k in range(l):
            values[k] = order[ends[k + 1] - 1]
        put_sorted(values, out[i])


@kernel
def _sum_orders(candidates, l, reach, out):
    """out[m] = probability of the whole set from member m: a sum over orders, as a sum over subsets S of the set.

    reach[S] is the probability that the draws so far are exactly S; candidates[S] in how many ways S can grow.
    """
    whole = (1 << l) - 1
    for m in range(l):
        reach[:] = 0.0
        reach[1 << m] = 1.0
        for subset in range(1 << m, whole):
            if reach[subset] > 0.0:
                share = reach[subset] / candidates[subset]
                for j in range(l):
                    if not (subset >> j) & 1:
                        reach[subset | (1 << j)] += share
        out[m] = reach[whole]


@kernel
def chain_simple_weights(places, gaps, out):
    """out[i, j] = P(set i | true value places[i, j]); rows are ascending places."""
    capacity, free, tight = gaps
    n_sets, l = places.shape
    F = capacity.shape[0] - 2
    candidates = np.empty(1 << l, np.int64)
    reach = np.empty(1 << l, np.float64)
    ends = np.empty(l + 2, np.int64)
    for i in range(n_sets):
        for subset in range(1, (1 << l) - 1):
            ends[0] = 0
            n = 1
            for j in range(l):
                if (subset >> j) & 1:
                    ends[n] = places[i, j] + 1
                    n += 1
            ends[n] = F + 1
            n += 1
            counts = free if _slack(ends, n, capacity, l - (n - 2)) > 0 else tight
            total = 0
            for g in range(n - 1):
                total += counts[ends[g], ends[g + 1]]
            candidates[subset] = total
        _sum_orders(candidates, l, reach, out[i])


@kernel
def chain_simple_inclusion(places, after, gaps, out):
    """out[v, u] += P(u is drawn | v) over the listed sets of l - 1 ascending places, which one last draw completes.

    Sums over sets one value smaller than the published ones: the last value is uniform over what still fits.
    """
    capacity, free, tight = gaps
    n_sets, k = places.shape
    F = capacity.shape[0] - 2
    candidates = np.empty(1 << k, np.int64)
    reach = np.empty(1 << k, np.float64)
    chance = np.empty(k, np.float64)
    steps = np.zeros((F, F + 1))  # differences along u of what the last draws add
    ends = np.empty(k + 2, np.int64)
    for i in range(n_sets):
        counts = free
        for subset in range(1, 1 << k):  # the whole set comes last, and leaves its ends and counts behind
            ends[0] = 0
            n = 1
            for j in range(k):
                if (subset >> j) & 1:
                    ends[n] = places[i, j] + 1
                    n += 1
            ends[n] = F + 1
            n += 1
            slack = _slack(ends, n, capacity, k + 1 - (n - 2))
            counts = free if slack > 0 else tight
            total = 0
            for g in range(n - 1):
                total += counts[ends[g], ends[g + 1]]
            candidates[subset] = total if slack >= 0 else 0
        last = candidates[(1 << k) - 1]
        if last == 0:
            continue
        _sum_orders(candidates, k, reach, chance)
        for m in range(k):
            v = np.int64(places[i, m])
            for j in range(k):
                out[v, places[i, j]] += chance[m]
        for g in range(k + 1):
            a, b = ends[g], ends[g + 1]
            first = 0 if a == 0 else after[a - 1]
            if counts[a, b] == free[a, b]:
                if free[a, b] > 0:
                    for m in range(k):
                        v = np.int64(places[i, m])
                        steps[v, first] += chance[m] / last
                        steps[v, first + free[a, b]] -= chance[m] / last
            elif counts[a, b] > 0:
                for u in range(first, first + free[a, b]):
                    if capacity[a, u + 1] + capacity[u + 1, b] + 1 == capacity[a, b]:
                        for m in range(k):
                            out[places[i, m], u] += chance[m] / last
    for v in range(F):
        total = 0.0
        for u in range(F):
            total += steps[v, u]
            out[v, u] += total
