"""SWEEP: one pass over the level vectors, from the most to the least informative.

Records are counted, not listed: an item is one combination of quasi-identifier values, an entry one sensitive
combination of an item and how many of its records are still open. Items are numbered in order of priority. A vector
groups the open items; a group closes with as many records as meet the requirement, the others stay open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.sweep.kernels.select import (
    Tally,
    dominant_value,
    induced,
    link_entries,
    select_base,
    select_general,
    select_joint,
)

FEWEST_SLOTS = 64
"""Of the table that numbers keys; else it is at least half empty."""
ZERO = np.int64(0)
"""A zero with a type: Numba would compile a function that is called with a literal 0 once more for it."""


class Vectors(NamedTuple):
    """The groups of the level vectors. Groups of all columns of one word together make one number."""

    table: Any
    offset: Any
    """(vectors, columns): the group of a value of column p at vector v is table[offset[v, p] + value]."""
    stride: Any
    """(vectors, columns): what a group of the column counts in its word; 0 where there is only one."""
    word: Any
    """Per column: its word."""
    space: Any
    """(vectors, words): the numbers of a word are below this."""


class Closings(NamedTuple):
    """The closed classes."""

    entry: Any
    number: Any
    count: Any
    """Per closing: its entry, its class, and how many records."""
    vector: Any
    size: Any
    """Per class: its vector and its records."""


@kernel
def sweep(codes, vectors, entries, nodes, sensitive, least_size, limit, room, queue):
    """Close groups vector by vector; entries.left is changed in place.

    codes[p, i]: value of item i in column p. nodes (combinations, columns): the node in every sensitive column. A
    class has at least least_size records. limit < 0: records are swept until the group meets the requirement.
    limit >= 0: at most so many, and whatever is left closes, whether it meets the requirement or not. room: None if
    there is one sensitive column, none of its values is generalised and limit < 0; queue: None if there is one
    sensitive column. What is None is not compiled for.
    """
    table, offset, stride, word, space = vectors
    start, code, left = entries
    psi, least = sensitive.psi[0], sensitive.least
    fewest = max(least_size, least[0]) if room is None else least_size  # records of a group that may close
    columns, items = codes.shape
    total = ZERO
    for e in range(len(left)):
        total += left[e]
    out_entry = np.empty(total, np.int32)
    out_class = np.empty(total, np.int32)
    out_count = np.empty(total, np.int32)
    class_vector = np.empty(total, np.int32)
    class_size = np.empty(total, np.int64)
    closings, classes = ZERO, ZERO

    waiting = np.zeros(items, np.int64)  # records of every item that are open
    active = np.empty(items, np.int32)
    live = ZERO
    for i in range(items):
        for e in range(start[i], start[i + 1]):
            if left[e] > 0:
                waiting[i] += left[e]
                if live == 0 or active[live - 1] != i:
                    active[live] = i
                    live += 1
    keys = np.empty(items, np.int64)
    group = np.empty(items, np.int32)
    group_key = np.empty(items, np.int64)
    group_size = np.empty(items, np.int64)
    bound = np.empty(items + 1, np.int32)
    member = np.empty(items, np.int32)
    slots = np.empty(4 * items + FEWEST_SLOTS, np.int32)
    count = np.zeros(len(nodes), np.int64)
    swept = np.zeros(len(nodes), np.int64)
    touched = np.empty(len(nodes), np.int64)
    ranked = np.empty(len(nodes), np.int64)
    tally = Tally(count, swept, touched)

    for v in range(len(offset)):
        if live == 0:
            break
        groups = ZERO + 1
        group[:live] = 0
        for w in range(space.shape[1]):
            for i in range(live):
                keys[i] = np.int64(group[i]) * space[v, w]
            for p in range(columns):
                if word[p] == w and stride[v, p] > 0:
                    base, step = offset[v, p], stride[v, p]
                    for i in range(live):
                        keys[i] += table[base + codes[p, active[i]]] * step
            groups = _group(keys, live, groups * space[v, w], group, group_key, slots)
        group_size[:groups] = 0
        for i in range(live):
            group_size[group[i]] += waiting[active[i]]
        bound[: groups + 1] = 0
        some = False
        for g in range(groups):
            bound[g] = 1 if limit >= 0 or group_size[g] >= fewest else 0
            some |= bound[g] == 1
        if not some:
            continue
        picked = _gather(group, live, groups, bound, group_key, member)
        changed = False
        for g in range(picked):
            lo, hi = bound[g], bound[g + 1]
            size, found = ZERO, ZERO
            for x in range(lo, hi):
                i = active[member[x]]
                for e in range(start[i], start[i + 1]):
                    if left[e] > 0:
                        if count[code[e]] == 0:
                            touched[found] = code[e]
                            found += 1
                        count[code[e]] += left[e]
                        size += left[e]
            gone = size
            if size >= least_size:
                if room is None:
                    if found >= least[0]:
                        gone = select_base(tally, found, size, psi, ranked)
                elif queue is None:
                    if limit >= 0 or not _all_base(tally, found, sensitive.first):
                        gone = select_general(tally, found, size, sensitive, limit, room)
                    elif found >= least[0]:
                        gone = select_base(tally, found, size, psi, ranked)
                else:
                    link_entries(active, member, lo, hi, entries, queue)
                    gone = select_joint(tally, found, size, nodes, sensitive, limit, room, queue, left)
            closes = size - gone >= max(1, least_size)
            if closes:
                class_vector[classes] = v
                class_size[classes] = size - gone
                for x in range(lo, hi):
                    i = active[member[x]]
                    waiting[i] = 0
                    for e in range(start[i], start[i + 1]):
                        if left[e] > 0:
                            stay = min(left[e], swept[code[e]])
                            swept[code[e]] -= stay
                            if left[e] > stay:
                                out_entry[closings] = e
                                out_class[closings] = classes
                                out_count[closings] = left[e] - stay
                                closings += 1
                                left[e] = stay
                            waiting[i] += stay
                    if not waiting[i]:
                        active[member[x]] = -1
                classes += 1
                changed = True
            for x in range(found):
                count[touched[x]] = 0
                swept[touched[x]] = 0
        if changed:
            kept = ZERO
            for i in range(live):
                if active[i] >= 0:
                    active[kept] = active[i]
                    kept += 1
            live = kept
    return Closings(
        out_entry[:closings], out_class[:closings], out_count[:closings], class_vector[:classes], class_size[:classes]
    )


# ---------------------------------------------------------------- groups


@kernel
def _all_base(tally, found, first):
    """Return whether a group of one sensitive column has only base values."""
    base = True
    for x in range(found):
        base &= tally.touched[x] < first[1]
    return base


@kernel
def _group(keys, n, space, group, group_key, slots):
    """Number the distinct keys in order of appearance: by a table if the keys are small, by hashing otherwise."""
    groups = 0
    size = FEWEST_SLOTS
    while size < 2 * n:
        size *= 2
    if space <= size:
        slots[:space] = -1
        for i in range(n):
            g = slots[keys[i]]
            if g < 0:
                g = groups
                slots[keys[i]] = g
                groups += 1
            group[i] = g
        return groups
    slots[:size] = -1
    last = np.uint64(size - 1)
    for i in range(n):
        key = keys[i]
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        place = (mixed ^ (mixed >> np.uint64(32))) & last
        while True:
            g = slots[place]
            if g < 0:
                g = groups
                slots[place] = g
                group_key[g] = key
                groups += 1
                break
            if group_key[g] == key:
                break
            place = (place + np.uint64(1)) & last
        group[i] = g
    return groups


@kernel
def _gather(group, n, groups, bound, place, member):
    """List the items of the groups g with bound[g] = 1 group by group, in their order. bound becomes the limits."""
    picked = 0
    for g in range(groups):
        place[g] = -1
        if bound[g] == 1:
            place[g] = picked
            picked += 1
    bound[: picked + 1] = 0
    for i in range(n):
        if place[group[i]] >= 0:
            bound[place[group[i]] + 1] += 1
    for g in range(picked):
        bound[g + 1] += bound[g]
    for i in range(n):
        g = place[group[i]]
        if g >= 0:
            member[bound[g]] = i
            bound[g] += 1
    for g in range(picked, 0, -1):
        bound[g] = bound[g - 1]
    bound[0] = 0
    return picked


# ---------------------------------------------------------------- sensitive values that climb


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
    """Fill a heap of records for every node, with room for all that can get there: they begin at room[node]."""
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
