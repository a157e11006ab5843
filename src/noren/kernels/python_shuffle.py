"""Python's `random.shuffle` over words that its generator would have given."""

from __future__ import annotations

from noren.kernel import kernel


@kernel
def shuffle(words, rows):
    """Shuffle rows in place; the number of words that took, or -1 where there were too few of them.

    From the last row down each changes places with one of those up to it, numbered by as many bits as their count has;
    a number that is too large is drawn again.
    """
    at, shift = 0, 32
    last = rows.size - 1
    while shift > 0 and (rows.size >> (32 - shift)) > 0:
        shift -= 1
    while last > 0:
        while (last + 1) >> (31 - shift) == 0:
            shift += 1
        if at == words.size:
            return -1
        other = words[at] >> shift
        at += 1
        if other <= last:
            rows[last], rows[other] = rows[other], rows[last]
            last -= 1
    return at
