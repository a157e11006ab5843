"""Uniform random orders and buckets from a keystream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError
from noren.secret import Keystream

WORDS_AT_ONCE = 1 << 20
MOST_BUCKETS = 1 << 16


def permutation(n: int, stream: Keystream) -> NDArray[np.int64]:
    """A uniformly random order of n rows: every one of the n! has the same probability."""
    from noren.engines.kernels import shuffle_with

    if n >= 1 << 32:
        raise DataError(f"Cannot shuffle {n} rows at once.", hint="Scatter them to buckets and shuffle each.")
    order = np.arange(n, dtype=np.int64)
    left = n
    while left > 1:
        left = shuffle_with(stream.words32(min(left, WORDS_AT_ONCE)), order, left)
    return order


def bucket_numbers(n: int, buckets: int, stream: Keystream) -> NDArray[np.uint16]:
    """A bucket for each of n rows, uniform and independent of everything else. Buckets come in powers of two."""
    if not 1 <= buckets <= MOST_BUCKETS or buckets & (buckets - 1):
        raise ValueError(f"buckets must be a power of two up to {MOST_BUCKETS}; got {buckets} instead")
    bits = buckets.bit_length() - 1
    words = stream.words32((n + 1) // 2).view(np.uint16)[:n]
    return words >> np.uint16(16 - bits) if bits else np.zeros(n, np.uint16)
