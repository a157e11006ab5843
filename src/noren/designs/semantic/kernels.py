"""Sets of values that are far apart, from random words, and the probabilities with which they come.

Codes on a *chain* are places 0..F-1 in an order in which a set is feasible as soon as its neighbours are; `after[i]`
is the first place to the right that is compatible with place i. A general compatibility matrix is rows of 64-bit
words in which bit u of row v says that u and v go together. Every kernel that draws writes rows of codes in ascending
order. On the circle words are 32-bit and exactly uniform: the kernel lists the cells to redraw. Products of weights
take 53 bits for each choice, the steps of Algorithm 1 take 64: their number of candidates depends on the steps
before, so that redrawing would favour some paths.
"""

# mypy: ignore-errors
# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)
ZERO = np.uint64(0)


@kernel
def put_sorted(values, out):
    """Copy a few values in ascending order."""
    for k in range(values.size):
        x = values[k]
        j = k
        while j > 0 and out[j - 1] > x:
            out[j] = out[j - 1]
            j -= 1
        out[j] = x


# ------------------------------------------------------------------------------------------------ circle


@kernel
def circle_flat(words, codes, F, step, out, rejected):
    """l points on the circle with gaps step + a_i, (a_i) a uniform composition of F - l step; one point is the truth.

    The composition is l - 1 bars among F - l step + l - 1 places (Floyd). Returns how many cells must be redrawn.
    """
    l = out.shape[1]
    spots = F - l * step + l - 1
    bars = np.empty(l, np.int64)
    count = 0
    for i in range(codes.size):
        fine = True
        for k in range(l - 1):
            j = spots - (l - 1) + k
            n = np.uint64(j + 1)
            product = np.uint64(words[i, k]) * n
            low = product & LOW
            if low < n and low < (ONE << HALF) % n:
                fine = False
            bar = np.int64(product >> HALF)
            for t in range(k):
                if bars[t] == bar:
                    bar = j  # every earlier bar is below j, so it goes last
                    break
            t = k
            while t > 0 and bars[t - 1] > bar:
                bars[t] = bars[t - 1]
                t -= 1
            bars[t] = bar
        if not fine:
            rejected[count] = i
            count += 1
        # Point k lies k gaps after the truth; those past the end of the domain come first.
        v = np.int64(codes[i])
        wrapped = 0
        for k in range(l - 1):
            wrapped += v + (k + 1) * step + bars[k] - k >= F
        out[i, wrapped] = v
        for k in range(l - 1):
            x = v + (k + 1) * step + bars[k] - k
            if x >= F:
                out[i, k - (l - 1 - wrapped)] = x - F
            else:
                out[i, wrapped + 1 + k] = x
    return count


@kernel
def duplicate_weights(sets, F, step, out):
    """out[i, j] = P(sets[i] | true value sets[i, j]): the share of drawing sequences that end in this set.

    Depth first over the orders in which the decoys can have come. Index x of a circle of n values is, after index i
    was drawn, index x - i - step of the next circle, or gone.
    """
    n_sets, l = sets.shape
    width = 2 * step - 1
    total = 1.0
    for k in range(1, l):
        total *= F - k * width
    index = np.empty((l + 1, l), np.int64)  # index[depth, j]: where decoy j stands; -1: drawn
    choice = np.empty(l + 1, np.int64)
    for i in range(n_sets):
        for m in range(l):
            v = np.int64(sets[i, m])
            alive = True
            for j in range(l):
                index[1, j] = -1
                if j != m:
                    x = np.int64(sets[i, j]) - v - step
                    while x < 0:
                        x += F
                    index[1, j] = x
                    alive = alive and x < F - width
            orders = 0
            depth = 1
            choice[1] = -1
            while depth >= 1 and alive:
                if depth == l:
                    orders += 1
                    depth -= 1
                    continue
                choice[depth] += 1
                c = choice[depth]
                if c == l:
                    depth -= 1
                    continue
                if index[depth, c] < 0:
                    continue
                n = F - depth * width
                fits = True
                for j in range(l):
                    index[depth + 1, j] = -1
                    if j != c and index[depth, j] >= 0:
                        x = index[depth, j] - index[depth, c] - step
                        while x < 0:
                            x += n
                        index[depth + 1, j] = x
                        if x >= n - width:
                            fits = False
                if fits:
                    depth += 1
                    choice[depth] = -1
            out[i, m] = orders / total


# ------------------------------------------------------------------------------------------------ products on a chain


@kernel(inline="always")
def _unit(high, low):
    """53 random bits as a number in [0, 1)."""
    return ((np.uint64(high) << np.uint64(21)) | (np.uint64(low) >> np.uint64(11))) * (1.0 / 9007199254740992.0)


@kernel
def _first_above(sums, begin, end, x):
    """The first k in begin..end-1 with sums[k + 1] > x, for sums that rise from sums[begin] <= x."""
    while begin < end - 1:
        middle = (begin + end) // 2
        if sums[middle] > x:
            end = middle
        else:
            begin = middle
    return begin


class Messages(NamedTuple):
    """Running sums of the weights of the sets on a chain."""

    right: Any
    left: Any
    """left[k]: over the place of the next value to the left when k more follow it; right[k]: the same to the right,
    counted from the right end."""
    split: Any
    """split[v]: over how many values lie left of v."""


@kernel
def chain_product(words, codes, order, place, after, before, messages, out):
    """Sets with probability proportional to the product of their values' weights, among those with the truth."""
    right, left, split = messages
    F = order.size
    l = out.shape[1]
    values = np.empty(l, np.int64)
    for i in range(codes.size):
        v = place[np.int64(codes[i])]
        values[0] = order[v]
        x = _unit(words[i, 0], words[i, 1]) * split[v, l]
        n_left = _first_above(split[v], 0, l, x)
        at = v
        filled = 1
        for k in range(n_left - 1, -1, -1):
            end = before[at]
            x = _unit(words[i, 2 * filled], words[i, 2 * filled + 1]) * left[k, end]
            at = _first_above(left[k], 0, end, x)
            values[filled] = order[at]
            filled += 1
        at = v
        for k in range(l - 2 - n_left, -1, -1):
            end = F - after[at]
            x = _unit(words[i, 2 * filled], words[i, 2 * filled + 1]) * right[k, end]
            at = F - 1 - _first_above(right[k], 0, end, x)
            values[filled] = order[at]
            filled += 1
        put_sorted(values, out[i])


# ------------------------------------------------------------------------------------------ Algorithm 1 on a chain


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


# -------------------------------------------------------------------------------- Algorithm 1 on a matrix


@kernel
def _count(bits):
    total = 0
    for w in range(bits.size):
        x = bits[w]
        while x != ZERO:
            x &= x - ONE
            total += 1
    return total


@kernel
def _lowest(bits):
    """The first value of a bit set, or -1."""
    for w in range(bits.size):
        x = bits[w]
        if x != ZERO:
            u = 64 * w
            while x & np.uint64(0xFF) == ZERO:
                x >>= np.uint64(8)
                u += 8
            while x & ONE == ZERO:
                x >>= ONE
                u += 1
            return u
    return -1


@kernel
def _nth(bits, n):
    """The value number n of a bit set, counting from 0."""
    for w in range(bits.size):
        x = bits[w]
        u = 64 * w
        while x != ZERO:
            if x & ONE:
                if n == 0:
                    return u
                n -= 1
            x >>= ONE
            u += 1
    return -1


@kernel
def _has_clique(rows, stack, k):
    """Whether the bit set stack[0] contains k pairwise compatible values. Overwrites the stack."""
    if k == 0:
        return True
    depth = 0
    while depth >= 0:
        if _count(stack[depth]) < k - depth:
            depth -= 1
            continue
        if depth == k - 1:
            return True
        u = _lowest(stack[depth])
        stack[depth, u >> 6] ^= ONE << np.uint64(u & 63)
        for w in range(rows.shape[1]):
            stack[depth + 1, w] = stack[depth, w] & rows[u, w]
        depth += 1
    return False


@kernel
def _can_grow(rows, common, missing, stack, out):
    """The values of `common` with which `missing` more values (this one among them) can still be found."""
    for w in range(common.size):
        out[w] = common[w]
    if missing == 1:
        return
    for w in range(common.size):
        x = common[w]
        u = 64 * w
        while x != ZERO:
            if x & ONE:
                for t in range(common.size):
                    stack[0, t] = common[t] & rows[u, t]
                if not _has_clique(rows, stack, missing - 1):
                    out[w] ^= ONE << np.uint64(u & 63)
            x >>= ONE
            u += 1


@kernel
def first_steps(rows, l):
    """For every true value, the candidates of the first step (all values that some set of l shares with it)."""
    F, W = rows.shape
    out = np.zeros((F, W), np.uint64)
    stack = np.empty((l + 1, W), np.uint64)
    for v in range(F):
        _can_grow(rows, rows[v], l - 1, stack, out[v])
    return out


@kernel
def second_steps(rows, first, l):
    """For every pair of a true value and a first decoy, the candidates of the second step."""
    F, W = rows.shape
    out = np.zeros((F, F, W), np.uint64)
    stack = np.empty((l + 1, W), np.uint64)
    common = np.empty(W, np.uint64)
    for v in range(F):
        for u in range(v):
            if (first[v, u >> 6] >> np.uint64(u & 63)) & ONE:
                for w in range(W):
                    common[w] = rows[v, w] & rows[u, w]
                _can_grow(rows, common, l - 2, stack, out[v, u])
                out[u, v] = out[v, u]
    return out


@kernel
def clique_simple(words, codes, rows, first, second, out):
    """Algorithm 1: each value uniform among those with which the set can still be completed to l values.

    `first` and `second` hold the candidates of the first two steps; an empty `second` is worked out on the spot.
    """
    W = rows.shape[1]
    l = out.shape[1]
    stack = np.empty((l + 1, W), np.uint64)
    common = np.empty(W, np.uint64)
    fit = np.empty(W, np.uint64)
    chosen = np.empty(W, np.uint64)
    for i in range(codes.size):
        v = np.int64(codes[i])
        chosen[:] = ZERO
        chosen[v >> 6] |= ONE << np.uint64(v & 63)
        common[:] = rows[v]
        u = v
        for k in range(1, l):
            if k == 1:
                fit[:] = first[v]
            elif k == 2 and second.shape[0] > 0:
                fit[:] = second[v, u]
            else:
                _can_grow(rows, common, l - k, stack, fit)
            n = np.uint64(_count(fit))
            high, low = np.uint64(words[i, 2 * k - 2]), np.uint64(words[i, 2 * k - 1])
            u = _nth(fit, np.int64((high * n + ((low * n) >> HALF)) >> HALF))
            chosen[u >> 6] |= ONE << np.uint64(u & 63)
            for w in range(W):
                common[w] &= rows[u, w]
        for k in range(l):
            u = _lowest(chosen)
            chosen[u >> 6] ^= ONE << np.uint64(u & 63)
            out[i, k] = u


@kernel
def clique_candidates(sets, rows, out):
    """out[i, S] = how many candidates Algorithm 1 has after drawing subset S (as a bit mask of columns) of set i."""
    n_sets, l = sets.shape
    W = rows.shape[1]
    stack = np.empty((l + 1, W), np.uint64)
    common = np.empty(W, np.uint64)
    fit = np.empty(W, np.uint64)
    for i in range(n_sets):
        for subset in range(1, (1 << l) - 1):
            common[:] = ~ZERO
            size = 0
            for j in range(l):
                if (subset >> j) & 1:
                    size += 1
                    for w in range(W):
                        common[w] &= rows[sets[i, j], w]
            _can_grow(rows, common, l - size, stack, fit)
            out[i, subset] = _count(fit)


@kernel
def sum_orders(candidates, out):
    """out[i, m] = probability of set i from its member m: a sum over orders, as a sum over subsets S of the set."""
    n_sets, l = out.shape
    whole = (1 << l) - 1
    reach = np.empty(1 << l, np.float64)
    for i in range(n_sets):
        for m in range(l):
            reach[:] = 0.0
            reach[1 << m] = 1.0
            for subset in range(1 << m, whole):
                if reach[subset] > 0.0:
                    share = reach[subset] / candidates[i, subset]
                    for j in range(l):
                        if not (subset >> j) & 1:
                            reach[subset | (1 << j)] += share
            out[i, m] = reach[whole]


@kernel
def enumerate_cliques(rows, out, limit):
    """All sets of out.shape[1] pairwise compatible values in lexicographic order; returns how many, at most limit + 1.

    Rows beyond out.shape[0] are counted but not written.
    """
    F, W = rows.shape
    l = out.shape[1]
    stack = np.zeros((l + 1, W), np.uint64)
    chosen = np.empty(l + 1, np.int64)
    for v in range(F):
        stack[0, v >> 6] |= ONE << np.uint64(v & 63)
    depth = 0
    count = 0
    while depth >= 0:
        u = _lowest(stack[depth])
        if u < 0 or _count(stack[depth]) < l - depth:
            depth -= 1
            continue
        stack[depth, u >> 6] ^= ONE << np.uint64(u & 63)
        chosen[depth] = u
        if depth == l - 1:
            if count < out.shape[0]:
                for k in range(l):
                    out[count, k] = chosen[k]
            count += 1
            if count > limit:
                return count
            continue
        for w in range(W):
            stack[depth + 1, w] = stack[depth, w] & rows[u, w]
        depth += 1
    return count
