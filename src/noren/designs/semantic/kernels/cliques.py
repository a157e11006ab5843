"""Sets over a general compatibility matrix: rows of 64-bit words in which bit u of row v says that u and v go together.

Enumeration, the look-ahead that keeps Algorithm 1 out of dead ends, and the probabilities it gives to sets.
"""

# mypy: ignore-errors
# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

HALF = np.uint64(32)
ONE = np.uint64(1)
ZERO = np.uint64(0)


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
