"""Anatomy (Xiao, Tao 2006): groups of l records from l different buckets."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

import numpy as np

from noren.kernel import kernel


@kernel
def _before(a, b, left, tie):
    """The larger bucket comes first; of equal ones, that of the record with the lower rank."""
    return left[a] > left[b] or (left[a] == left[b] and tie[a] < tie[b])


@kernel
def _sink(heap, size, i, left, tie):
    bucket = heap[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _before(heap[child + 1], heap[child], left, tie):
            child += 1
        if not _before(heap[child], bucket, left, tie):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = bucket


@kernel
def _rise(heap, i, left, tie):
    bucket = heap[i]
    while i and _before(bucket, heap[(i - 1) // 2], left, tie):
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = bucket


@kernel
def anatomy_groups(buckets, m, l, walk):
    """The group of every record, and how many groups there are; -1 for a record that no group can take.

    buckets: the bucket of every record, in random order. While l buckets hold records, one record of each of the l
    largest forms a group; the order of the records decides between buckets of one size. Every record left over joins
    a group that lacks its bucket, tried in the order `walk` (a permutation of at least as many numbers as there are
    groups). If no bucket holds more than 1/l of the records, every record finds a group.
    """
    n = len(buckets)
    left = np.zeros(m, np.int64)
    for b in buckets:
        left[b] += 1
    start = np.zeros(m, np.int64)
    start[1:] = np.cumsum(left)[:-1]
    place = start.copy()
    rows = np.empty(n, np.int64)
    for i in range(n):
        rows[place[buckets[i]]] = i
        place[buckets[i]] += 1
    head = start.copy()
    tie = np.zeros(m, np.int64)
    heap = np.empty(m, np.int64)
    size = 0
    for b in range(m):
        if left[b]:
            tie[b] = rows[head[b]]
            heap[size] = b
            size += 1
            _rise(heap, size - 1, left, tie)
    groups = np.full(n, -1, np.int64)
    taken = np.empty(l, np.int64)
    count = 0
    while size >= l:
        for i in range(l):
            taken[i] = heap[0]
            size -= 1
            heap[0] = heap[size]
            _sink(heap, size, 0, left, tie)
        for b in taken:
            groups[rows[head[b]]] = count
            head[b] += 1
            left[b] -= 1
            if left[b]:
                tie[b] = rows[head[b]]
                heap[size] = b
                size += 1
                _rise(heap, size - 1, left, tie)
        count += 1
    open_groups = walk[walk < count]
    holder = np.full(count, -1, np.int64)
    cursor = 0
    for b in range(m):
        if not left[b]:
            continue
        for row in rows[start[b] : head[b]]:
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
