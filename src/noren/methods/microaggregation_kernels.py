"""MDAV: groups of at least k records that are near each other; and the best groups of one column.

Every column is a table over its values: a place on a line, and at some levels the group a value belongs to. Two records
are as far apart as their places (squared) plus, for each level at which their groups differ, that level's weight.
A centroid has a mean place and shares of the groups: the distance to it is the squared one of the same embedding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel


class Space(NamedTuple):
    """Where the values of all columns lie."""

    sizes: Any
    """Values of every column."""
    place: Any
    """(columns, values): on a line."""
    column: Any
    """Per level: its column."""
    weight: Any
    """Per level: half the squared distance between two of its groups."""
    group: Any
    """(levels, values): the group of every value."""


@kernel
def _from_centroid(space, sums, counts, n, out):
    """Squared distance of every value to the centroid of n records, column by column."""
    for j in range(len(space.sizes)):
        c = sums[j] / n
        for v in range(space.sizes[j]):
            out[j, v] = (space.place[j, v] - c) ** 2
    for level in range(len(space.column)):
        j = space.column[level]
        square = 0.0
        for g in range(space.sizes[j]):
            square += (counts[level, g] / n) ** 2
        for v in range(space.sizes[j]):
            share = counts[level, space.group[level, v]] / n
            out[j, v] += space.weight[level] * (1 - 2 * share + square)


@kernel
def _from_record(space, row, out):
    """Squared distance of every value to those of one record."""
    for j in range(len(space.sizes)):
        c = space.place[j, row[j]]
        for v in range(space.sizes[j]):
            out[j, v] = (space.place[j, v] - c) ** 2
    for level in range(len(space.column)):
        j = space.column[level]
        mine = space.group[level, row[j]]
        for v in range(space.sizes[j]):
            if space.group[level, v] != mine:
                out[j, v] += 2 * space.weight[level]


@kernel
def _distance(table, row):
    total = 0.0
    for j in range(len(row)):
        total += table[j, row[j]]
    return total


@kernel
def _nearest(codes, alive, m, taken, table, k, near, far):
    """The k nearest of the first m living rows that are not taken, into `rows`; and the farthest of them all."""
    found = 0
    farthest = -1
    most = -1.0
    for a in range(m):
        i = alive[a]
        if taken[i]:
            continue
        here = _distance(table, codes[i])
        if here > most:
            most = here
            farthest = i
        if found == k and here >= far[k - 1]:
            continue
        at = found if found < k else k - 1
        while at > 0 and far[at - 1] > here:
            far[at] = far[at - 1]
            near[at] = near[at - 1]
            at -= 1
        far[at] = here
        near[at] = i
        if found < k:
            found += 1
    return farthest


@kernel
def _take(codes, space, near, k, group, groups, taken, sums, counts):
    for a in range(k):
        i = near[a]
        groups[i] = group
        taken[i] = True
        for j in range(codes.shape[1]):
            sums[j] -= space.place[j, codes[i, j]]
        for level in range(len(space.column)):
            counts[level, space.group[level, codes[i, space.column[level]]]] -= 1


@kernel(work=lambda codes, space, k: codes.size * len(codes) // k // 10)
def mdav(codes, space, k):
    """The group of every record (Domingo-Ferrer and Mateo-Sanz 2002), and how many: all have k to 2k - 1 records.

    Ties are broken by the order of the records, which must be random.
    """
    n, q = codes.shape
    width = space.place.shape[1]
    groups = np.full(n, -1, np.int64)
    taken = np.zeros(n, np.bool_)
    alive = np.arange(n)
    m = n
    sums = np.zeros(q)
    counts = np.zeros((max(1, len(space.column)), width))
    for i in range(n):
        for j in range(q):
            sums[j] += space.place[j, codes[i, j]]
        for level in range(len(space.column)):
            counts[level, space.group[level, codes[i, space.column[level]]]] += 1
    table = np.zeros((q, width))
    near = np.empty(k, np.int64)
    far = np.empty(k)
    count = 0
    while m >= 2 * k:
        _from_centroid(space, sums, counts, m, table)
        most = -1.0
        first = alive[0]
        for a in range(m):
            here = _distance(table, codes[alive[a]])
            if here > most:
                most = here
                first = alive[a]
        left = m
        for side in range(2 if m >= 3 * k else 1):
            _from_record(space, codes[first], table)
            other = _nearest(codes, alive, m, taken, table, k, near, far)
            _take(codes, space, near, k, count, groups, taken, sums, counts)
            count += 1
            left -= k
            if side == 0:
                first = other
                if taken[first]:  # all that are left are in one place
                    for a in range(m):
                        if not taken[alive[a]]:
                            first = alive[a]
                            break
        at = 0
        for a in range(m):
            if not taken[alive[a]]:
                alive[at] = alive[a]
                at += 1
        m = left
    if m:
        for a in range(m):
            groups[alive[a]] = count
        count += 1
    return groups, count


@kernel
def nearest_centre(centres, alive, point):
    """The living centre nearest to a point."""
    best = -1
    least = np.inf
    for i in range(len(centres)):
        if not alive[i]:
            continue
        here = 0.0
        for j in range(len(point)):
            here += (centres[i, j] - point[j]) ** 2
            if here >= least:
                break
        if here < least:
            least = here
            best = i
    return best


@kernel
def best_line_groups(numbers, k):
    """Groups of k to 2k - 1 neighbours among rising numbers, of least sum of squares (Hansen and Mukherjee 2003)."""
    n = len(numbers)
    if n < 2 * k:
        return np.zeros(n, np.int64), 1
    middle = numbers.mean()
    total = np.zeros(n + 1)
    square = np.zeros(n + 1)
    for i in range(n):
        x = numbers[i] - middle
        total[i + 1] = total[i] + x
        square[i + 1] = square[i] + x * x
    best = np.full(n + 1, np.inf)
    start = np.zeros(n + 1, np.int64)
    best[0] = 0.0
    for i in range(k, n + 1):
        for j in range(max(0, i - 2 * k + 1), i - k + 1):
            if best[j] == np.inf:
                continue
            here = best[j] + square[i] - square[j] - (total[i] - total[j]) ** 2 / (i - j)
            if here < best[i]:
                best[i] = here
                start[i] = j
    groups = np.empty(n, np.int64)
    count = 0
    i = n
    while i > 0:
        groups[start[i] : i] = count
        count += 1
        i = start[i]
    return groups, count
