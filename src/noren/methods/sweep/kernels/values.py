"""Generalise sensitive values until a class meets (tau,l): one record at a time, one level up."""

from __future__ import annotations

import numpy as np

from noren.kernel import kernel
from noren.methods.sweep.kernels.select import dominant_value, induced


@kernel
def raise_values(node, bounds, sensitive, parent):
    """Change node[i] of the records of every class (bounds[c]..bounds[c+1]-1, in order of priority) in place.

    The record that covers the dominant base value by the least general node goes up, the first of equal ones, until
    the class meets its bounds. Returns how many classes stay short of them with nothing left to generalise.
    """
    first, chain, share, members, member_start, psi, least = sensitive
    nodes = len(parent)
    values = first[1]
    leaves = np.empty(values, np.int64)
    for a in range(values):
        leaves[a] = a
    f = np.zeros(values, np.float64)
    count = np.zeros(nodes, np.int64)
    room = np.empty(nodes + 1, np.int64)
    heap = np.empty(0, np.int32)
    short = 0
    for c in range(len(bounds) - 1):
        lo, hi = bounds[c], bounds[c + 1]
        count[:] = 0
        for i in range(lo, hi):
            count[node[i]] += 1
        for a in range(values):
            f[a] = induced(a, count, chain, share)
        ready = False
        while hi > lo:
            a, violated = dominant_value(f, leaves, first[0], values, hi - lo, psi[0], least[0])
            if not violated:
                break
            if not ready:
                heap = _fill(node, lo, hi, parent, room, heap)
                ready = True
            h = 0
            while count[chain[a, h]] == 0:
                h += 1
            g = chain[a, h]
            above = parent[g]
            if above == g:
                short += 1
                break
            i = _pop(heap, room[g], count[g])
            _push(heap, room[above], count[above], i)
            count[g] -= 1
            count[above] += 1
            node[i] = above
            for y in range(member_start[above], member_start[above + 1]):
                f[members[y]] = induced(members[y], count, chain, share)
    return short


@kernel
def _fill(node, lo, hi, parent, room, heap):
    """A heap of records for every node, with room for all that can get there: they begin at room[node]."""
    room[:] = 0
    for i in range(lo, hi):
        g = node[i]
        room[g + 1] += 1
        while parent[g] != g:
            g = parent[g]
            room[g + 1] += 1
    for g in range(len(parent)):
        room[g + 1] += room[g]
    if room[-1] > len(heap):
        heap = np.empty(room[-1], np.int32)
    filled = room.copy()
    for i in range(lo, hi):
        heap[filled[node[i]]] = i
        filled[node[i]] += 1
    return heap


@kernel
def _pop(heap, base, size):
    top = heap[base]
    last = heap[base + size - 1]
    size -= 1
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[base + child + 1] < heap[base + child]:
            child += 1
        if heap[base + child] >= last:
            break
        heap[base + place] = heap[base + child]
        place = child
    heap[base + place] = last
    return top


@kernel
def _push(heap, base, size, value):
    place = size
    while place > 0 and heap[base + (place - 1) // 2] > value:
        heap[base + place] = heap[base + (place - 1) // 2]
        place = (place - 1) // 2
    heap[base + place] = value
