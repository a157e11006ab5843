"""Anatomy where people have several records: groups of whole people, no two of whom share a value.

A person is the set of buckets that any of their records has: sets[starts[i] : starts[i + 1]], ascending.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

TRIED = 16
"""People of one bucket who are tried for a place in a group."""
WALKED = 1024
"""Groups that a person who is left over tries before groups are joined for them."""
JOINED = 64
"""Groups that are joined for one person at most, before all who are left over share one."""


@kernel
def commonest(starts, sets, m):
    """Every person's commonest bucket, by how many people have each."""
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
    """Groups of l people whose sets are disjoint, the commonest buckets first; -1 for people who are left over.

    People come in random order. Each group takes one person from each of the fullest buckets that still fit; a person
    for whom no group can be filled is left over.
    """
    n = len(starts) - 1
    lead = commonest(starts, sets, m)
    left = np.zeros(m, np.int64)
    for b in lead:
        left[b] += 1
    first = np.zeros(m + 1, np.int64)
    first[1:] = np.cumsum(left)
    waiting = np.empty(n, np.int64)
    place = first[:-1].copy()
    for i in range(n):
        waiting[place[lead[i]]] = i
        place[lead[i]] += 1
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
def members(groups, count):
    """People group by group, and where each group begins."""
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


@kernel
def place_strictly(starts, sets, groups, count, m, l, walk):
    """Puts the people left over into groups so that no bucket has more than 1/l of a group's people; changes `groups`.

    A person joins a group that has none of their buckets, else groups are joined until it holds, tried in the order
    `walk` (a permutation of the groups). Those for whom that is not enough form one group, with as many others as it
    takes: all of them, at the worst.
    """
    rows, bounds = members(groups, count)
    extra = np.full(count, -1, np.int64)  # one person who joined, and the next in a list
    behind = np.full(len(groups), -1, np.int64)
    gone = np.zeros(count, np.bool_)  # joined with others: takes nobody more
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
            if gone[g]:
                continue
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
    rows, bounds = members(groups, count)
    held = np.zeros(m, np.int64)
    pool = np.empty(count, np.int64)
    last = 0
    for i in range(waiting):
        person = late[i]
        size, pooled = 1, 0
        for b in sets[starts[person] : starts[person + 1]]:
            held[b] += 1
        holds = False
        for _ in range(min(count, WALKED)):
            worst = np.argmax(held)
            holds = pooled > 0 and held[worst] * l <= size
            if holds or pooled == JOINED:
                break
            g = walk[cursor % count]
            cursor += 1
            if gone[g] or _has(starts, sets, rows[bounds[g] : bounds[g + 1]], worst):
                continue
            gone[g] = True
            pool[pooled] = g
            pooled += 1
            size += bounds[g + 1] - bounds[g]
            _count(starts, sets, rows[bounds[g] : bounds[g + 1]], held, 1)
        for b in sets[starts[person] : starts[person + 1]]:
            held[b] -= 1
        for g in pool[:pooled]:
            _count(starts, sets, rows[bounds[g] : bounds[g + 1]], held, -1)
        if holds:
            groups[person] = pool[0]
            for g in pool[:pooled]:
                groups[rows[bounds[g] : bounds[g + 1]]] = pool[0]
        else:
            gone[pool[:pooled]] = False
            late[last] = person
            last += 1
    if last:
        _all_together(starts, sets, groups, late[:last], count, m, l, walk)


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
    """One group of the people who are late and of groups that lack their commonest bucket, until it holds."""
    rows, bounds = members(groups, count)
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
