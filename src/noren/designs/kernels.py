"""The worst set for ordered closeness, by sign vectors. Arrays in, arrays out.

Decoy sets from random words, exactly uniform: a word that would favour some sets is reported, not used.

A word r picks the index (r n) >> 32 out of n; it must be drawn again when the low half of r n lies below
2^32 mod n (Lemire). Kernels that draw masks answer only whether that happened anywhere, which is rare; the caller
then looks for the cells.
"""

# mypy: ignore-errors

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


LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)


@kernel
def subsets(k, out):
    """The first out.size masks with k < 64 bits, in ascending order."""
    mask = (ONE << np.uint64(k)) - ONE
    for i in range(out.size):
        out[i] = mask
        if mask != 0 and i + 1 < out.size:
            lowest = mask & (~mask + ONE)
            ripple = mask + lowest
            mask = (((ripple ^ mask) // lowest) >> np.uint64(2)) | ripple


@kernel
def pick(words, table, out):
    """out[i] = a uniformly chosen mask of the table, whatever the truth. True if a word must be redrawn."""
    n = np.uint64(table.size)
    threshold = (ONE << HALF) % n
    again = False
    for i in range(out.size):
        product = np.uint64(words[i]) * n
        again |= (product & LOW) < threshold
        out[i] = table[product >> HALF]
    return again


@kernel
def pick_around(words, codes, table, out):
    """out[i] = the true value's bit and a uniformly chosen mask over the others. True if a word must be redrawn."""
    n = np.uint64(table.size)
    threshold = (ONE << HALF) % n
    again = False
    for i in range(out.size):
        product = np.uint64(words[i]) * n
        again |= (product & LOW) < threshold
        others = np.uint64(table[product >> HALF])
        v = np.uint64(codes[i])
        # Make room at bit v: the bits from v upwards move by one, that is, they are added once more.
        out[i] = others + ((others >> v) << v) + (ONE << v)
    return again


@kernel
def pick_by_coin(coins, words, codes, table, n_in, heads, out):
    """As pick_around, from the table's first n_in masks, where coin < heads; else one of the rest, without the truth.

    A word is redrawn if *either* part would reject it: were it up to the coin, a redraw would tilt the coin.
    """
    n_out = np.uint64(table.size) - n_in
    low_in, low_out = (ONE << HALF) % n_in, (ONE << HALF) % n_out
    again = False
    for i in range(out.size):
        word = np.uint64(words[i])
        to_in, to_out = word * n_in, word * n_out
        again |= ((to_in & LOW) < low_in) | ((to_out & LOW) < low_out)
        inside = np.uint64(np.uint64(coins[i]) < heads)
        # Arithmetic instead of a branch: nobody, the processor included, can predict the coin.
        first, second = to_in >> HALF, n_in + (to_out >> HALF)
        others = np.uint64(table[second ^ ((first ^ second) & (np.uint64(0) - inside))])
        v = np.uint64(codes[i])
        out[i] = others + ((others >> v) << v) + (inside << v)
    return again


@kernel
def _floyd(row, v, pool, k, heads, around, bits):
    """Draw k values of the pool (k - 1 and the truth, if the coin says so) into `bits`. False: draw again.

    Floyd's algorithm: for j = pool-k .. pool-1 take a uniform t <= j, or j itself if t is taken. Drawing k - 1 is the
    same without the first step, so both outcomes of the coin use the same words and are redrawn together. With
    `around`, the pool is the values other than v.
    """
    for w in range(bits.size):
        bits[w] = 0
    inside = np.uint64(row[0]) < heads
    fine = True
    for step in range(k):
        j = pool - k + step
        n = np.uint64(j + 1)
        product = np.uint64(row[1 + step]) * n
        low = product & LOW
        if low < n and low < (ONE << HALF) % n:  # the second test costs a division and is rarely reached
            fine = False
        if inside and step == 0:
            continue
        value = np.int64(product >> HALF)
        last = j
        if around:
            value += value >= v
            last += last >= v
        if (bits[value >> 6] >> np.uint64(value & 63)) & ONE:
            value = last
        bits[value >> 6] |= ONE << np.uint64(value & 63)
    if inside:
        bits[v >> 6] |= ONE << np.uint64(v & 63)
    return fine


@kernel
def floyd_masks(words, codes, pool, k, heads, around, out, rejected):
    """Sets of k values as 64-bit masks. Writes the cells to redraw into `rejected`, returns how many."""
    bits = np.zeros(1, np.uint64)
    count = 0
    for i in range(codes.size):
        if not _floyd(words[i], np.int64(codes[i]), pool, k, heads, around, bits):
            rejected[count] = i
            count += 1
        out[i] = bits[0]
    return count


@kernel
def floyd_rows(words, codes, pool, k, heads, around, out, rejected):
    """Sets of k values as rows of ascending codes. Writes the cells to redraw into `rejected`, returns how many."""
    bits = np.zeros((pool + 64) // 64, np.uint64)
    count = 0
    for i in range(codes.size):
        if not _floyd(words[i], np.int64(codes[i]), pool, k, heads, around, bits):
            rejected[count] = i
            count += 1
        column = 0
        for w in range(bits.size):
            left = bits[w]
            value = 64 * w
            while left != 0:
                while left & np.uint64(0xFF) == 0:
                    left >>= np.uint64(8)
                    value += 8
                if left & ONE:
                    out[i, column] = value
                    column += 1
                left >>= ONE
                value += 1
    return count
