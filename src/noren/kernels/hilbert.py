"""Positions along a Hilbert curve: points that follow one another on the curve are close in every dimension.

Skilling's transformation turns the coordinates into the bits of the index, which are then interleaved.
"""

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

WORD = 64


def hilbert_bits(sizes):
    """Bits per axis: enough for the largest domain, as far as all axes together fit into one word."""
    wanted = max(1, int(max(sizes) - 1).bit_length())
    return max(1, min(wanted, WORD // len(sizes)))


def stretched(ranks, size, bits):
    """Ranks 0..size-1 spread evenly over 0..2^bits - 1. Needs size * 2^bits below 2^63."""
    return ((ranks.astype(np.int64) << bits) // size).astype(np.uint64)


@kernel
def hilbert_index(axes, bits):
    """The index of every row of axes (n, dims), each coordinate below 2^bits.

    An index has dims * bits bits; axes that do not fit into 64 bits any more are left out.
    """
    n, dims = axes.shape
    dims = min(dims, WORD // bits)
    out = np.zeros(n, np.uint64)
    x = np.empty(dims, np.uint64)
    one = np.uint64(1)
    for i in range(n):
        for j in range(dims):
            x[j] = axes[i, j]
        q = one << np.uint64(bits - 1)
        while q > one:
            low = q - one
            for j in range(dims):
                if x[j] & q:
                    x[0] ^= low
                else:
                    t = (x[0] ^ x[j]) & low
                    x[0] ^= t
                    x[j] ^= t
            q >>= one
        for j in range(1, dims):
            x[j] ^= x[j - 1]
        t = np.uint64(0)
        q = one << np.uint64(bits - 1)
        while q > one:
            if x[dims - 1] & q:
                t ^= q - one
            q >>= one
        index = np.uint64(0)
        for b in range(bits - 1, -1, -1):
            for j in range(dims):
                index = (index << one) | (((x[j] ^ t) >> np.uint64(b)) & one)
        out[i] = index
    return out
