"""Random orders, exactly uniform: every permutation has the same probability."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)


@kernel
def shuffle_with(words, order, left):
    """Fisher-Yates from position left-1 down, one accepted 32-bit word per step (Lemire's rejection).

    Returns how many positions are still to be done when the words run out, or 1 when the order is complete.
    """
    for w in range(words.size):
        if left <= 1:
            break
        n = np.uint64(left)
        product = np.uint64(words[w]) * n
        low = product & LOW
        if low < n and low < (ONE << HALF) % n:  # the second test costs a division and is rarely reached
            continue
        chosen = np.int64(product >> HALF)
        left -= 1
        kept = order[left]
        order[left] = order[chosen]
        order[chosen] = kept
    return left
