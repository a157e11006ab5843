"""Groups of records, or of whole people, from l different buckets: Anatomy (Xiao, Tao 2006).

A person is the set of buckets that any of their records has: sets[starts[i] : starts[i + 1]], ascending.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

TRIED = 16
"""People of one bucket who are tried for a place in a group."""
WALKED = 1024
"""Groups that a person who is left over tries."""


@kernel
def by_group(groups, count):
    """Return the members of each group in order, and the offsets; records without a group are dropped."""
    bounds = np.zeros(count + 1, np.int64)
    for g in groups:
        if g >= 0:
            bounds[g + 1] += 1
    bounds = np.cumsum(bounds)
    rows = np.empty(bounds[-1], np.int64)
    place = bounds.copy()
    for i in range(len(groups)):
        if groups[i] >= 0:
            rows[place[groups[i]]] = i
            place[groups[i]] += 1
    return rows, bounds


@kernel(work=lambda buckets, m, l, walk: len(buckets) * (4 + m // 256))
def anatomy_groups(buckets, m, l, walk):
    """Return the group of every record (-1 if no group can take it), and the number of groups.

    buckets: the bucket of every record, in random order. While l buckets hold records, one record of each of the l
    largest forms a group; the order of the records decides between buckets of one size. Every record left over joins
    a group that lacks its bucket, tried in the order `walk` (a permutation of at least as many numbers as there are
    groups). If no bucket holds more than 1/l of the records, every record finds a group.
    """
    n = len(buckets)
    rows, bounds = by_group(buckets, m)
    head, left = bounds[:-1].copy(), np.diff(bounds)
    rank = np.full(m, -1, np.int64)  # of the buckets that hold records: by size, then by their first record
    size = 0
    for b in range(m):
        if left[b]:
            rank[b] = left[b] * n - rows[head[b]]
            size += 1
    groups = np.full(n, -1, np.int64)
    taken = np.empty(l, np.int64)
    count = 0
    while size >= l:
        for i in range(l):
            taken[i] = np.argmax(rank)
            rank[taken[i]] = -1
        for b in taken:
            groups[rows[head[b]]] = count
            head[b] += 1
            left[b] -= 1
            if left[b]:
                rank[b] = left[b] * n - rows[head[b]]
            else:
                size -= 1
        count += 1
    open_groups = walk[walk < count]
    holder = np.full(count, -1, np.int64)
    cursor = 0
    for b in range(m):
        if not left[b]:
            continue
        for row in rows[bounds[b] : head[b]]:
            holder[groups[row]] = b
        for row in rows[head[b] : head[b] + left[b]]:
            tried = 0
            while tried < count and holder[open_groups[cursor % count]] == b:
                tried += 1
                cursor += 1
            if tried == count:
                break  # every group holds this bucket: none of its other records finds one either
            groups[row] = open_groups[cursor % count]
            holder[groups[row]] = b
            cursor += 1
    return groups, count


@kernel
def commonest(starts, sets, m):
    """Return every person's bucket that most people have."""
    held = np.zeros(m, np.int64)
    for b in sets:
        held[b] += 1
    out = np.empty(len(starts) - 1, np.int64)
    for i in range(len(out)):
        best = sets[starts[i]]
        for b in sets[starts[i] : starts[i + 1]]:
            if held[b] > held[best]:
                best = b
        out[i] = best
    return out


@kernel
def _free(starts, sets, person, mark, stamp):
    free = True
    for b in sets[starts[person] : starts[person + 1]]:
        free = free and mark[b] != stamp
    return free


@kernel
def _stamp(starts, sets, person, mark, stamp):
    for b in sets[starts[person] : starts[person + 1]]:
        mark[b] = stamp


@kernel
def disjoint_groups(starts, sets, m, l):
    """Return groups of l people whose sets are disjoint, the most frequent buckets first; -1 for people without a
    group.

    People come in random order. Each group takes one person from each of the fullest buckets that still fit; a person
    for whom no group can be filled is left over.
    """
    n = len(starts) - 1
    lead = commonest(starts, sets, m)
    waiting, first = by_group(lead, m)
    left = np.diff(first)
    groups = np.full(n, -1, np.int64)
    mark = np.full(m, -1, np.int64)
    taken = np.empty(l, np.int64)
    count = 0
    stamp = 0
    ranked = np.argsort(-left)
    since = 0
    while True:
        if since >= m:  # the order of the buckets changes slowly, a few at a time
            ranked = np.argsort(-left)
            since = 0
        since += l
        found = 0
        for b in ranked:
            if found == l:
                break
            if mark[b] == stamp and found:
                continue
            for k in range(min(left[b], TRIED)):
                at = first[b] + left[b] - 1 - k
                person = waiting[at]
                if _free(starts, sets, person, mark, stamp):
                    waiting[at] = waiting[first[b] + left[b] - 1]
                    waiting[first[b] + left[b] - 1] = person
                    left[b] -= 1
                    taken[found] = person
                    found += 1
                    _stamp(starts, sets, person, mark, stamp)
                    break
        if not found:
            return groups, count
        if found == l:
            for person in taken:
                groups[person] = count
            count += 1
        else:  # the first stays out; the others wait again
            for person in taken[1:found]:
                b = lead[person]
                waiting[first[b] + left[b]] = person
                left[b] += 1
        stamp += 1


@kernel
def place_strictly(starts, sets, groups, count, m, l, walk):
    """Add the remaining people to groups so that no bucket has more than 1/l of a group's people; changes `groups`.

    A person joins a group that has none of their buckets, tried in the order `walk` (a permutation of the groups).
    Those who find none form one group, with as many others as it takes: all of them, at the worst.
    """
    rows, bounds = by_group(groups, count)
    extra = np.full(count, -1, np.int64)  # one person who joined, and the next in a list
    behind = np.full(len(groups), -1, np.int64)
    mark = np.full(m, -1, np.int64)
    cursor = 0
    late = np.empty(len(groups), np.int64)
    waiting = 0
    for person in range(len(groups)):
        if groups[person] >= 0:
            continue
        _stamp(starts, sets, person, mark, person)
        for _ in range(min(count, WALKED)):
            g = walk[cursor % count]
            cursor += 1
            fits = True
            for other in rows[bounds[g] : bounds[g + 1]]:
                fits = fits and _free(starts, sets, other, mark, person)
            other = extra[g]
            while other >= 0 and fits:
                fits = _free(starts, sets, other, mark, person)
                other = behind[other]
            if fits:
                groups[person] = g
                behind[person] = extra[g]
                extra[g] = person
                break
        if groups[person] < 0:
            late[waiting] = person
            waiting += 1
    if waiting:
        _all_together(starts, sets, groups, late[:waiting], count, m, l, walk)


@kernel
def _has(starts, sets, people, bucket):
    for person in people:
        for b in sets[starts[person] : starts[person + 1]]:
            if b == bucket:
                return True
    return False


@kernel
def _count(starts, sets, people, held, by):
    for person in people:
        for b in sets[starts[person] : starts[person + 1]]:
            held[b] += by


@kernel
def _all_together(starts, sets, groups, late, count, m, l, walk):
    """Merge the remaining people with groups that lack their most frequent bucket, until the rule holds."""
    rows, bounds = by_group(groups, count)
    held = np.zeros(m, np.int64)
    _count(starts, sets, late, held, 1)
    size = len(late)
    into = np.zeros(count, np.bool_)
    passed = 0
    cursor = 0
    name = -1
    worst = np.argmax(held)
    while (held[worst] * l > size or name < 0) and passed < count:
        g = walk[cursor % count]
        cursor += 1
        mine = rows[bounds[g] : bounds[g + 1]]
        if into[g] or not len(mine) or _has(starts, sets, mine, worst):
            passed += 1
            continue
        passed = 0
        into[g] = True
        name = g
        size += len(mine)
        _count(starts, sets, mine, held, 1)
        worst = np.argmax(held)
    if name < 0 or held[worst] * l > size:
        into[:] = True
        name = walk[0] if count else 0
    for g in range(count):
        if into[g]:
            groups[rows[bounds[g] : bounds[g + 1]]] = name
    groups[late] = name
