"""The selection of the records that SWEEP takes out of a group: the dominant base value loses one record at a time.

The functions fill tally.swept, may change tally.count, and return how many records are swept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel

TOLERANCE = 1e-9
ZERO = np.int64(0)
"""A zero with a type: Numba would compile a function that is called with a literal 0 once more for it."""


class Sensitive(NamedTuple):
    """The sensitive columns, with base values and nodes numbered consecutively."""

    first: Any
    """Column j has the base values first[j]..first[j+1]-1."""
    chain: Any
    share: Any
    """(base values, heights): the nodes above a base value (itself first, -1 behind the root), and what a record of
    that node gives to it."""
    members: Any
    member_start: Any
    """The base values under node g are members[member_start[g]:member_start[g+1]]."""
    psi: Any
    """(columns, k): bounds of the k + 1 largest induced frequencies together."""
    least: Any
    """Per column: how many base values a class must hold."""


class Tally(NamedTuple):
    """The records of a group, by combination of sensitive values."""

    count: Any
    swept: Any
    """Per combination: its records, and how many of them are swept."""
    touched: Any
    """The combinations that occur come first."""


class Room(NamedTuple):
    """Working memory."""

    f: Any
    """Per base value: its induced frequency; zero between calls."""
    leaves: Any
    ranked: Any
    """Base values, and frequencies in ascending order."""
    node_count: Any
    """Per node: its records; zero between calls."""


class OpenEntries(NamedTuple):
    """The open entries: those of item i are start[i]..start[i+1]-1; each has a combination and a number of open
    records."""

    start: Any
    code: Any
    left: Any


class Queue(NamedTuple):
    """The entries of every combination, in order of priority."""

    heads: Any
    """(3, combinations): the first, the last, and how many records of the first are swept."""
    follower: Any
    """Per entry: the one after it."""


@kernel
def select_base(tally, found, size, psi, ranked):
    """Sweep a group of base values, with at least as many as psi requires.

    A full round lowers all values above a cap by one, and a lower cap makes every F(k) smaller. So the largest cap
    that meets psi is found by bisection, and the records of the round before it one by one.
    """
    count, swept, touched = tally
    for x in range(found):
        ranked[x] = count[touched[x]]
    _sort(ranked, found)
    if _capped(ranked, found, size, ranked[found - 1], ZERO, psi):
        return 0
    low, high = ZERO + 1, ranked[found - 1]
    while high - low > 1:
        middle = (low + high) // 2
        if _capped(ranked, found, size, middle, ZERO, psi):
            low = middle
        else:
            high = middle
    above = 0
    while above < found and ranked[found - 1 - above] > low:
        above += 1
    lowered = ZERO + 1
    while lowered < above and not _capped(ranked, found, size, low + 1, lowered, psi):
        lowered += 1
    _sort(touched, found)
    gone = ZERO
    for x in range(found):
        c = count[touched[x]]
        if c > low:
            swept[touched[x]] = c - low - (0 if lowered > 0 else 1)
            lowered -= 1
            gone += swept[touched[x]]
    return gone


@kernel
def _sort(values, n):
    """Sort in place by Shell's sort: the lists are short, and NumPy's sort takes long to compile."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for x in range(gap, n):
            value = values[x]
            y = x - gap
            while y >= 0 and values[y] > value:
                values[y + gap] = values[y]
                y -= gap
            values[y + gap] = value
        gap //= 3


@kernel
def _capped(ranked, found, size, cap, lowered, psi):
    """Return whether ascending counts meet psi when they are capped and `lowered` of the capped ones are one less."""
    above = 0
    total = size - lowered
    while above < found and ranked[found - 1 - above] >= cap:
        total -= ranked[found - 1 - above] - cap
        above += 1
    summed = 0
    for k in range(min(found, len(psi))):
        summed += ranked[found - 1 - k] if k >= above else (cap if k < above - lowered else cap - 1)
        if summed > (psi[k] + TOLERANCE) * total:
            return False
    return True


@kernel
def select_general(tally, found, size, sensitive, limit, room):
    """Sweep the record that contributes most to the dominant base value, until psi is met or `limit` records are
    swept."""
    count, swept, touched = tally
    f, leaves, ranked = room.f, room.leaves, room.ranked
    first, chain, share, members, member_start, psi, least = sensitive
    for x in range(found):
        g = touched[x]
        for y in range(member_start[g], member_start[g + 1]):
            f[members[y]] = induced(members[y], count, chain, share)
    covered = ZERO
    for a in range(first[1]):
        if f[a] > 0:
            leaves[covered] = a
            covered += 1
    gone = ZERO
    while gone < size and gone != limit:
        needed = _count_needed(f, leaves, covered, size - gone, psi[0], least[0], ranked)
        if needed == 0:
            break
        until = min(size, gone + needed)
        if limit >= 0:
            until = min(until, limit)
        elif until == size:
            gone = size
            break
        if until - gone > 2 * covered:
            gone += _pour(tally, room, covered, until - gone - covered, sensitive)
        while gone < until:
            a, top = leaves[0], -1.0
            for x in range(covered):
                if f[leaves[x]] > top + TOLERANCE:
                    a, top = leaves[x], f[leaves[x]]
            h = 0
            while count[chain[a, h]] == 0:
                h += 1
            g = chain[a, h]
            count[g] -= 1
            swept[g] += 1
            gone += 1
            for y in range(member_start[g], member_start[g + 1]):
                f[members[y]] = induced(members[y], count, chain, share)
    for x in range(covered):
        f[leaves[x]] = 0.0
    return gone


@kernel
def _count_needed(f, leaves, covered, total, psi, least, ranked):
    """Return how many records must be swept at least; 0 only if psi is met.

    What is not among the k top values now makes up at least 1 - psi(k) of any part of the group that meets psi.
    """
    present = 0
    for x in range(covered):
        ranked[x] = f[leaves[x]]
        present += ranked[x] > 0
    _sort(ranked, covered)
    if present < least:
        return total
    met = True
    largest = 1.0 * total
    summed = 0.0
    for k in range(min(covered, len(psi))):
        summed += ranked[covered - 1 - k]
        if summed > (psi[k] + TOLERANCE) * total:
            met = False
        if psi[k] + TOLERANCE < 1:
            largest = min(largest, (total - summed) / (1 - psi[k] - TOLERANCE))
    return 0 if met else max(1, int(total - largest - 1e-6))


@kernel
def _pour(tally, room, covered, most, sensitive):
    """Sweep up to `most` records at once, all of base values that stay dominant; ranked are the ascending frequencies.

    The dominant values sink together to one level, which stays above what general nodes give to any value.
    """
    count, swept = tally.count, tally.swept
    f, leaves, ranked = room.f, room.leaves, room.ranked
    level, summed = 0.0, 0.0
    for x in range(covered):
        level = max(level, f[leaves[x]] - count[leaves[x]])
    for x in range(covered):
        summed += ranked[covered - 1 - x]
        poured = (summed - most) / (x + 1)
        if x + 1 == covered or poured >= ranked[covered - 2 - x]:
            level = max(level, poured)
            break
    gone = ZERO
    for x in range(covered):
        a = leaves[x]
        less = min(count[a], int(max(0.0, f[a] - level)))
        count[a] -= less
        swept[a] += less
        gone += less
        f[a] = induced(a, count, sensitive.chain, sensitive.share)
    return gone


@kernel
def induced(a, node_count, chain, share):
    """Return the records that count for base value a, from the records of the nodes above it."""
    total = 0.0
    for h in range(chain.shape[1]):
        if chain[a, h] >= 0:
            total += node_count[chain[a, h]] * share[a, h]
    return total


@kernel
def dominant_value(f, leaves, lo, hi, total, psi, least):
    """Return the base value of the largest induced frequency (the first of equal ones), and whether psi is violated."""
    best, top, present = leaves[lo], 0.0, 0
    for x in range(lo, hi):
        a = leaves[x]
        if f[a] > 0:
            present += 1
            if f[a] > top + TOLERANCE:
                best, top = a, f[a]
    if present < least or top > (psi[0] + TOLERANCE) * total:
        return best, True
    summed = 0.0
    previous, place = np.inf, -1
    for k in range(min(len(psi), hi - lo)):
        value, where = -1.0, -1
        for x in range(lo, hi):
            y = f[leaves[x]]
            if y > value and (y < previous or (y == previous and x > place)):
                value, where = y, x
        previous, place = value, where
        summed += value
        if summed > (psi[k] + TOLERANCE) * total:
            return best, True
    return best, False


# ---------------------------------------------------------------- several sensitive columns


@kernel
def link_entries(active, member, lo, hi, entries, queue):
    """Chain the entries of every combination of the items active[member[lo:hi]]."""
    start, code, left = entries
    heads, follower = queue
    for x in range(lo, hi):
        i = active[member[x]]
        for e in range(start[i], start[i + 1]):
            heads[0, code[e]] = -1
    for x in range(lo, hi):
        i = active[member[x]]
        for e in range(start[i], start[i + 1]):
            if left[e] > 0:
                c = code[e]
                if heads[0, c] < 0:
                    heads[0, c] = e
                    heads[2, c] = 0
                else:
                    follower[heads[1, c]] = e
                heads[1, c] = e
                follower[e] = -1


@kernel
def select_joint(tally, found, size, nodes, sensitive, limit, room, queue, left):
    """Sweep records that contribute more to the dominant value of every violated column than its frequency.

    Of several such records the one that gives most, of equal ones the first. If there is none, all are swept.
    """
    count, swept, touched = tally
    f, leaves, node_count = room.f, room.leaves, room.node_count
    heads, follower = queue
    first, chain, share, members, member_start, psi, least = sensitive
    columns = nodes.shape[1]
    for x in range(found):
        for j in range(columns):
            node_count[nodes[touched[x], j]] += count[touched[x]]
    for a in range(first[-1]):
        leaves[a] = a
        f[a] = induced(a, node_count, chain, share)
    dominant = np.empty(columns, np.int64)
    violated = np.empty(columns, np.bool_)
    gone = ZERO
    while gone < size and gone != limit:
        for j in range(columns):
            dominant[j], violated[j] = dominant_value(f, leaves, first[j], first[j + 1], size - gone, psi[j], least[j])
        if not violated.any():
            break
        best, most = -1, 0.0
        for x in range(found):
            c = touched[x]
            given = 0.0 if count[c] > 0 else -1.0
            for j in range(columns):
                if violated[j] and given >= 0:
                    part = _share_given(dominant[j], nodes[c, j], chain, share)
                    exceeds = part * (size - gone) > f[dominant[j]] + TOLERANCE
                    given = given + part if exceeds else -1.0
            ahead = best < 0 or given > most + TOLERANCE
            if given >= 0 and (ahead or (given > most - TOLERANCE and heads[0, c] < heads[0, best])):
                best, most = c, given
        if best < 0:
            gone = size if limit < 0 else gone
            break
        count[best] -= 1
        swept[best] += 1
        gone += 1
        heads[2, best] += 1
        if heads[2, best] == left[heads[0, best]]:
            heads[0, best] = follower[heads[0, best]]
            heads[2, best] = 0
        for j in range(columns):
            g = nodes[best, j]
            node_count[g] -= 1
            for y in range(member_start[g], member_start[g + 1]):
                f[members[y]] = induced(members[y], node_count, chain, share)
    for x in range(found):
        for j in range(columns):
            node_count[nodes[touched[x], j]] = 0
    f[:] = 0.0
    return gone


@kernel
def _share_given(a, g, chain, share):
    """Return the contribution of a record of node g to base value a; 0 if a is not below it."""
    for h in range(chain.shape[1]):
        if chain[a, h] == g:
            return share[a, h]
    return 0.0
