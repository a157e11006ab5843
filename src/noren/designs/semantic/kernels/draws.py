"""Sets of values that are far apart, from random words, and the probabilities with which they come.

Codes on a *chain* are places 0..F-1 in an order in which a set is feasible as soon as its neighbours are; `after[i]`
is the first place to the right that is compatible with place i. Every kernel that draws writes rows of codes in
ascending order. On the circle (`circle_*`) words are 32-bit and exactly uniform: kernels list the cells to redraw.
Products of weights take 53 bits for each choice.
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
def circle_duplicate(words, codes, F, step, out, rejected):
    """Duplicate-processing: each draw removes itself and the step - 1 nearest values left on each side.

    What is left after drawing index i of n values is again a circle of n - (2 step - 1) values that begins at index
    i + step. Returns how many cells must be redrawn.
    """
    l = out.shape[1]
    width = 2 * step - 1
    drawn = np.empty(l, np.int64)
    values = np.empty(l, np.int64)
    count = 0
    for i in range(codes.size):
        fine = True
        v = np.int64(codes[i])
        values[0] = v
        for k in range(1, l):
            n = np.uint64(F - k * width)
            product = np.uint64(words[i, k - 1]) * n
            low = product & LOW
            if low < n and low < (ONE << HALF) % n:
                fine = False
            drawn[k] = np.int64(product >> HALF)
            x = drawn[k]
            for t in range(k - 1, 0, -1):
                x += drawn[t] + step
                n_t = F - t * width
                while x >= n_t:
                    x -= n_t
            x += v + step
            while x >= F:
                x -= F
            values[k] = x
        if not fine:
            rejected[count] = i
            count += 1
        put_sorted(values, out[i])
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


@kernel
def table_product(words, codes, starts, sums, numbers, sets, out):
    """Sets from a list for each true value: numbers[starts[v]..starts[v+1]], with running sums of their weights."""
    for i in range(codes.size):
        v = np.int64(codes[i])
        begin, end = starts[v], starts[v + 1]
        base = sums[begin]
        x = base + _unit(words[i, 0], words[i, 1]) * (sums[end] - base)
        row = numbers[_first_above(sums, begin, end, x)]
        for k in range(out.shape[1]):
            out[i, k] = sets[row, k]
