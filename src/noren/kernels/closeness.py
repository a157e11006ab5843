"""The worst set for ordered closeness, by sign vectors. Arrays in, arrays out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.kernel import kernel


@kernel
def ordered_worst(
    counts: NDArray[np.int64], steps: NDArray[np.int64], d: int, t: float
) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """Largest G(Z) - t m(Z) over sets Z of j values, for every j at once.

    counts: (k,) positive int64, the values that occur, in domain order. steps: (k-1,) int64, how many of the d-1
    places of the ordered distance lie between one occurring value and the next. Returns the maximum for j = 0..k
    and the sign vector that attains it (bit i set: sign i is -1).

    |y| = max over s of s y turns the sum of absolute values into a maximum over sign vectors; for one of them the
    objective is a sum of one score per value, so the best Z of j values is the j highest scores. A Gray code flips
    one sign a step: S and C are updated in integers (no drift), and the previous ranking is nearly sorted.
    """
    k = counts.size
    total = counts.sum()
    scale = 1.0 / (d - 1)
    mass = counts / total
    upto = np.cumsum(counts)
    s_of = np.zeros(k, np.int64)
    for v in range(k - 2, -1, -1):
        s_of[v] = s_of[v + 1] + steps[v]
    centre = np.int64(0)
    for v in range(k):
        centre += counts[v] * s_of[v]
    order = np.arange(k)
    score = np.empty(k)
    gray = np.uint64(0)
    best = np.full(k + 1, -np.inf)
    best[0] = 0.0
    signs = np.zeros(k + 1, np.uint64)
    one = np.uint64(1)
    for step in range(np.uint64(1) << np.uint64(k - 1)):
        if step > 0:
            flip = 0
            rest = np.uint64(step)
            while not rest & one:
                rest >>= one
                flip += 1
            gray ^= one << np.uint64(flip)
            # a sign that is now -1 lowers S_v by two steps for every v up to its place
            change = -2 * steps[flip] if gray >> np.uint64(flip) & one else 2 * steps[flip]
            for v in range(flip + 1):
                s_of[v] += change
            centre += change * upto[flip]
        middle = centre / total
        for v in range(k):
            score[v] = mass[v] * ((s_of[v] - middle) * scale - t)
        for i in range(1, k):
            item = order[i]
            key = score[item]
            at = i - 1
            while at >= 0 and score[order[at]] < key:
                order[at + 1] = order[at]
                at -= 1
            order[at + 1] = item
        run = 0.0
        for j in range(k):
            run += score[order[j]]
            if run > best[j + 1]:
                best[j + 1] = run
                signs[j + 1] = gray
    return best, signs


@kernel
def ordered_worst_of_size(
    counts: NDArray[np.int64], steps: NDArray[np.int64], d: int, t: float, members: NDArray[np.int64]
) -> float:
    """Largest G(Z) - t m(Z) over the sets of `members.size` values, by trying each; `members` receives the set."""
    k = counts.size
    j = members.size
    total = counts.sum()
    mass = counts / total
    below = np.cumsum(counts) / total
    chosen = np.arange(j)
    inside = np.zeros(k, np.bool_)
    inside[:j] = True
    best = -np.inf
    while True:
        m = 0.0
        for i in range(j):
            m += mass[chosen[i]]
        run = 0.0
        gap = 0.0
        for v in range(k - 1):
            if inside[v]:
                run += mass[v]
            gap += steps[v] * abs(run - m * below[v])
        height = gap / (d - 1) - t * m
        if height > best:
            best = height
            members[:] = chosen
        at = j - 1
        while at >= 0 and chosen[at] == k - j + at:
            at -= 1
        if at < 0:
            return best
        for i in range(at, j):
            inside[chosen[i]] = False
        chosen[at] += 1
        for i in range(at + 1, j):
            chosen[i] = chosen[i - 1] + 1
        for i in range(at, j):
            inside[chosen[i]] = True
