"""Random orders, exactly uniform: every permutation has the same probability."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)
WORDS = 1 << 22
"""Groups are compared with a person 64 at once, as bits of a word; so many words are held for all values together."""


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


@kernel
def covering_pairs(nodes, bounds, starts, stops, values, people):
    """All pairs (person, group) where every published node of the group covers the person's value.

    nodes: (groups, columns), numbered through all columns like the runs of values under them and like `people`'s
    (people, columns) values, where -1 is a value that no node covers. Pairs come block by block of groups. What the
    first columns of a person leave possible is kept for the next one, so equal beginnings should stand together; of
    that only words with some group left are kept, so groups that begin alike should stand together too.
    """
    groups, width = nodes.shape
    n = people.shape[0]
    step = min((groups + 63) // 64, max(64, WORDS // max(1, values)))
    bits = np.zeros((values, step), np.uint64)
    left = np.zeros((width + 1, step), np.uint64)
    at = np.zeros((width + 1, step), np.int64)
    many = np.zeros(width + 1, np.int64)
    who = np.empty(n + 16, np.int64)
    whom = np.empty(n + 16, np.int64)
    found = 0
    for begin in range(0, groups, 64 * step):
        end = min(groups, begin + 64 * step)
        bits[:] = 0
        many[0] = (end - begin + 63) // 64
        for word in range(many[0]):
            at[0, word] = word
            left[0, word] = ~np.uint64(0)
        for g in range(begin, end):
            word, bit = (g - begin) // 64, np.uint64(1) << np.uint64((g - begin) % 64)
            for c in range(width):
                for run in range(bounds[nodes[g, c]], bounds[nodes[g, c] + 1]):
                    for value in range(starts[run], stops[run]):
                        bits[value, word] |= bit
        dead = width  # the first column after which nothing is left of the last person
        for person in range(n):
            c = 0
            if person:
                while c < width and people[person, c] == people[person - 1, c]:
                    c += 1
            if c > dead:
                continue
            dead = width
            while c < width:
                value = people[person, c]
                some = 0
                if value >= 0:
                    for i in range(many[c]):
                        word = at[c, i]
                        both = left[c, i] & bits[value, word]
                        at[c + 1, some] = word
                        left[c + 1, some] = both
                        some += both != 0
                many[c + 1] = some
                if some == 0:
                    dead = c
                    break
                c += 1
            if dead < width:
                continue
            for i in range(many[width]):
                common = left[width, i]
                place = begin + at[width, i] * 64
                while common:
                    if common & np.uint64(1):
                        if found == who.size:
                            who = np.concatenate((who, np.empty(who.size, np.int64)))
                            whom = np.concatenate((whom, np.empty(whom.size, np.int64)))
                        who[found] = person
                        whom[found] = place
                        found += 1
                    common >>= np.uint64(1)
                    place += 1
    return who[:found], whom[:found]
