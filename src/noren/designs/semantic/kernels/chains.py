"""Sums over all feasible sets of a chain, by dynamic programmes; sums over listed sets.

`after[i]` is the first place compatible with place i to its right, `before[i]` the first one that is not, to its left.
"""

# mypy: ignore-errors
# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

import numpy as np

from noren.kernel import kernel


@kernel
def enumerate_chains(after, out):
    """All chains of out.shape[1] places in lexicographic order, into rows of `out`, which has room for them all."""
    F = after.size
    l = out.shape[1]
    at = np.zeros(l + 1, np.int64)
    depth = 0
    count = 0
    at[0] = -1
    while depth >= 0:
        at[depth] += 1
        if at[depth] >= F:
            depth -= 1
            continue
        if depth == l - 1:
            for k in range(l):
                out[count, k] = at[k]
            count += 1
            if count == out.shape[0]:
                return
            continue
        at[depth + 1] = after[at[depth]] - 1
        depth += 1


@kernel
def messages(weights, after, before, l):
    """left[k, i]: weight of all sets of k + 1 places that lie within the first i places; right[k, i]: the last i.

    Both are (l, F + 1) running sums from their own end, so that small sums at an end keep all their digits.
    """
    F = after.size
    right = np.zeros((l, F + 1))
    left = np.zeros((l, F + 1))
    for k in range(l):
        for i in range(F):
            rest = 1.0 if k == 0 else left[k - 1, before[i]]
            left[k, i + 1] = left[k, i] + weights[i] * rest
            j = F - 1 - i
            rest = 1.0 if k == 0 else right[k - 1, F - after[j]]
            right[k, i + 1] = right[k, i] + weights[j] * rest
    return right, left


@kernel
def splits(after, before, right, left):
    """split[v, k]: running sums over how many of the l - 1 others lie left of v; without the weight of v itself."""
    l, F = right.shape[0], after.size
    split = np.zeros((F, l + 1))
    for v in range(F):
        for k in range(l):
            a = 1.0 if k == 0 else left[k - 1, before[v]]
            m = l - 1 - k
            b = 1.0 if m == 0 else right[m - 1, F - after[v]]
            split[v, k + 1] = split[v, k] + a * b
    return split


@kernel
def pair_weights(weights, after, before, right, left):
    """out[v, u]: total weight of the sets that contain both; the diagonal has the sets that contain v."""
    l, F = right.shape[0], after.size
    out = np.zeros((F, F))
    step = np.empty((l, F))  # step[j, u]: weight of all ways from v to u with j places strictly between, u included
    total = np.empty(F + 1)
    for v in range(F):
        for k in range(l):
            a = 1.0 if k == 0 else left[k - 1, before[v]]
            m = l - 1 - k
            b = 1.0 if m == 0 else right[m - 1, F - after[v]]
            out[v, v] += weights[v] * a * b
        step[:, :] = 0.0
        for u in range(after[v], F):
            step[0, u] = weights[u]
        for j in range(1, l - 1):
            total[0] = 0.0
            for u in range(F):
                total[u + 1] = total[u] + step[j - 1, u]
            for u in range(after[v], F):
                step[j, u] = weights[u] * total[before[u]]
        for u in range(after[v], F):
            mass = 0.0
            for j in range(l - 1):
                for k in range(l - 1 - j):
                    m = l - 2 - j - k
                    a = 1.0 if k == 0 else left[k - 1, before[v]]
                    b = 1.0 if m == 0 else right[m - 1, F - after[u]]
                    mass += step[j, u] * a * b
            out[v, u] = weights[v] * mass
            out[u, v] = out[v, u]
    return out


@kernel
def _moments(weights, scores, near, l, mirrored):
    """sums[k, i, p] = sum over sets of k places among the first i of weight * (sum of scores)^p, p = 0, 1, 2.

    `near[i]` places before place i are compatible with it. Mirrored: the same from the other end.
    """
    F = weights.size
    sums = np.zeros((l, F + 1, 3))
    for i in range(F + 1):
        sums[0, i, 0] = 1.0
    for k in range(1, l):
        for i in range(F):
            at = F - 1 - i if mirrored else i
            w, s = weights[at], scores[at]
            end = F - near[at] if mirrored else near[at]
            m0, m1, m2 = sums[k - 1, end, 0], sums[k - 1, end, 1], sums[k - 1, end, 2]
            sums[k, i + 1, 0] = sums[k, i, 0] + w * m0
            sums[k, i + 1, 1] = sums[k, i, 1] + w * (m1 + s * m0)
            sums[k, i + 1, 2] = sums[k, i, 2] + w * (m2 + 2.0 * s * m1 + s * s * m0)
    return sums


@kernel
def chain_second_moments(weights, scores, after, before, l, out):
    """out[g, v] = E[(sum of scores[g] over the set)^2 | v] when sets around v have the product of their weights."""
    F = weights.size
    for g in range(scores.shape[0]):
        left = _moments(weights, scores[g], before, l, False)
        right = _moments(weights, scores[g], after, l, True)
        for v in range(F):
            m0 = 0.0
            m1 = 0.0
            m2 = 0.0
            for k in range(l):
                a, b = left[k, before[v]], right[l - 1 - k, F - after[v]]
                m0 += a[0] * b[0]
                m1 += a[1] * b[0] + a[0] * b[1]
                m2 += a[2] * b[0] + 2.0 * a[1] * b[1] + a[0] * b[2]
            s = scores[g, v]
            out[g, v] = (m2 + 2.0 * s * m1 + s * s * m0) / m0


@kernel
def circle_second_moments(scores, step, l, out):
    """The same for uniform sets on a circle on which neighbours are at least `step` apart: cut it at the truth."""
    F = scores.shape[1]
    inner = F - 2 * step + 1  # offsets step .. F - step from the truth
    near = np.empty(max(inner, 0), np.int64)
    for i in range(near.size):
        near[i] = max(0, i + 1 - step)
    weights = np.ones(near.size)
    around = np.empty(near.size)
    for g in range(scores.shape[0]):
        for v in range(F):
            for i in range(near.size):
                around[i] = scores[g, (v + step + i) % F]
            sums = _moments(weights, around, near, l, False)
            m0, m1, m2 = sums[l - 1, near.size, 0], sums[l - 1, near.size, 1], sums[l - 1, near.size, 2]
            s = scores[g, v]
            out[g, v] = (m2 + 2.0 * s * m1 + s * s * m0) / m0


@kernel
def listed_inclusion(sets, likelihood, out):
    """out[v, u] += P(set | v) over listed sets that contain v and u."""
    for i in range(sets.shape[0]):
        for a in range(sets.shape[1]):
            p = likelihood[i, a]
            for b in range(sets.shape[1]):
                out[sets[i, a], sets[i, b]] += p


@kernel
def listed_second_moments(sets, likelihood, scores, out):
    """out[g, v] += P(set | v) (sum of scores[g] over the set)^2 over listed sets that contain v."""
    l = sets.shape[1]
    for i in range(sets.shape[0]):
        for g in range(scores.shape[0]):
            total = 0.0
            for a in range(l):
                total += scores[g, sets[i, a]]
            for a in range(l):
                out[g, sets[i, a]] += likelihood[i, a] * total * total


@kernel
def sampled_second_moments(codes, sets, scores, second, fourth):
    """second[g, v] and fourth[g, v] += those powers of the sum of scores[g] over the sets drawn for v."""
    for i in range(sets.shape[0]):
        for g in range(scores.shape[0]):
            total = 0.0
            for a in range(sets.shape[1]):
                total += scores[g, sets[i, a]]
            square = total * total
            second[g, codes[i]] += square
            fourth[g, codes[i]] += square * square
