"""SWEEP: one pass over the level vectors, from the most to the least informative.

Records are counted, not listed: an item is one combination of quasi-identifier values, an entry one sensitive
combination of an item and how many of its records are still open. Items are numbered in order of priority. A vector
groups the open items; a group closes with as many records as meet the requirement, the others stay open.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from noren.kernels.sweep_select import link_entries, select_base, select_general, select_joint

ZERO = np.int64(0)
"""A zero with a type: Numba would compile a function that is called with a literal 0 once more for it."""


@njit(cache=True, nogil=True)
def sweep(
    codes, table, offset, stride, word, space, start, code, left, nodes, bits, segment, sensitive, least_size, limit
):
    """Close groups vector by vector; `left` (records of an entry that are still open) is changed in place.

    codes[p, i]: value of item i in column p, whose group at vector v is table[offset[v, p] + value]. Groups of all
    columns of word w together are numbers below space[v, w], made with the strides. start, code, left: the entries
    of item i are start[i]..start[i+1]-1. nodes[c, j]: node of combination c in sensitive column j. bits[c]: base
    values under combination c, column j in words segment[j]..segment[j+1]-1, or only how many they are in column j
    where segment is empty. A class has at least least_size records. limit < 0: records are swept until the group
    meets the requirement. limit >= 0: at most so many, and
    whatever is left closes, whether it meets the requirement or not.

    Returns for every closing its entry, class and number of records, and for every class its vector and size.
    """
    first, psi, least = sensitive[0], sensitive[5][0], sensitive[6]
    columns, items = codes.shape
    words = bits.shape[1]
    counted = len(segment) == 0
    total = left.sum()
    out_entry = np.empty(total, np.int32)
    out_class = np.empty(total, np.int32)
    out_count = np.empty(total, np.int32)
    class_vector = np.empty(total, np.int32)
    class_size = np.empty(total, np.int64)
    closings, classes = ZERO, ZERO

    mask = np.zeros((items, words), np.uint64)
    active = np.empty(items, np.int32)
    live = ZERO
    for i in range(items):
        for e in range(start[i], start[i + 1]):
            if left[e] > 0:
                _join(mask, i, bits, code[e], counted)
                if live == 0 or active[live - 1] != i:
                    active[live] = i
                    live += 1
    keys = np.empty(items, np.int64)
    group = np.empty(items, np.int32)
    group_key = np.empty(items, np.int64)
    group_mask = np.empty((items, words), np.uint64)
    bound = np.empty(items + 1, np.int32)
    member = np.empty(items, np.int32)
    slots = np.empty(_slots(items), np.int32)
    count = np.zeros(len(nodes), np.int64)
    swept = np.zeros(len(nodes), np.int64)
    touched = np.empty(len(nodes), np.int64)
    f = np.zeros(first[-1], np.float64)
    node_count = np.zeros(len(sensitive[4]) - 1, np.int64)
    ranked = np.empty(first[-1], np.float64)
    scratch = np.empty(max(len(nodes), first[-1]), np.int64)
    joint = nodes.shape[1] > 1
    heads = np.empty((3, len(nodes) if joint else 0), np.int64)
    follower = np.empty(len(code) if joint else 0, np.int64)

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
        group_mask[:groups] = 0
        for i in range(live):
            _join(group_mask, group[i], mask, active[i], counted)
        bound[: groups + 1] = 0
        some = False
        for g in range(groups):
            bound[g] = 1 if limit >= 0 or _enough(group_mask[g], segment, least) else 0
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
            gone = 0
            if size < least_size:
                gone = size
            elif joint:
                link_entries(active[member[lo:hi]], start, code, left, heads, follower)
                gone = select_joint(
                    count, swept, touched, found, size, nodes, sensitive, limit, f, node_count, scratch,
                    heads, follower, left,
                )  # fmt: skip
            elif limit < 0 and touched[:found].max() < first[-1]:
                enough = found >= least[0]
                gone = select_base(count, swept, touched, found, size, psi, scratch) if enough else size
            else:
                gone = select_general(count, swept, touched, found, size, sensitive, limit, f, scratch, ranked)
            closes = size - gone >= max(1, least_size)
            if closes:
                class_vector[classes] = v
                class_size[classes] = size - gone
                for x in range(lo, hi):
                    i = active[member[x]]
                    some = False
                    for w in range(words):
                        mask[i, w] = 0
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
                            if stay > 0:
                                some = True
                                _join(mask, i, bits, code[e], counted)
                    if not some:
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
    return (
        out_entry[:closings].copy(), out_class[:closings].copy(), out_count[:closings].copy(),
        class_vector[:classes].copy(), class_size[:classes].copy(),
    )  # fmt: skip


# ---------------------------------------------------------------- groups


@njit(cache=True, nogil=True)
def _slots(items):
    size = 64
    while size < 2 * items:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def _group(keys, n, space, group, group_key, slots):
    """Number the distinct keys in order of appearance: by a table if the keys are small, by hashing otherwise."""
    groups = 0
    size = _slots(n)
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


@njit(cache=True, nogil=True)
def _join(masks, i, others, k, counted):
    """Add the base values of row k to those of row i."""
    for w in range(masks.shape[1]):
        if counted:
            masks[i, w] += others[k, w]
        else:
            masks[i, w] |= others[k, w]


@njit(cache=True, nogil=True)
def _enough(mask, segment, least):
    """Whether the base values that are possible in a group may be enough in every sensitive column."""
    for j in range(len(least)):
        if len(segment) == 0:
            if mask[j] < least[j]:
                return False
            continue
        seen = 0
        for w in range(segment[j], segment[j + 1]):
            x = mask[w]
            while x and seen < least[j]:
                x &= x - np.uint64(1)
                seen += 1
        if seen < least[j]:
            return False
    return True


@njit(cache=True, nogil=True)
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


# ---------------------------------------------------------------- records to items and back


@njit(cache=True, nogil=True)
def number_items(codes, stride, word, space):
    """The number of every record's combination codes[:, i], in order of appearance, and how many there are."""
    columns, n = codes.shape
    keys = np.empty(n, np.int64)
    group = np.zeros(n, np.int32)
    group_key = np.empty(n, np.int64)
    slots = np.empty(_slots(n), np.int32)
    groups = ZERO + 1
    for w in range(len(space)):
        for i in range(n):
            keys[i] = np.int64(group[i]) * space[w]
        for p in range(columns):
            if word[p] == w:
                for i in range(n):
                    keys[i] += np.int64(codes[p, i]) * stride[p]
        groups = _group(keys, n, groups * space[w], group, group_key, slots)
    return group, groups


@njit(cache=True, nogil=True)
def list_entries(rows, item, code, items):
    """Runs of equal item and code among the rows: where the entries of an item start, their codes and lengths."""
    start = np.zeros(items + 1, np.int64)
    begin = np.empty(len(rows) + 1, np.int64)
    kind = np.empty(len(rows), np.int32)
    entries = 0
    for x in range(len(rows)):
        r = rows[x]
        if x == 0 or item[r] != item[rows[x - 1]] or code[r] != code[rows[x - 1]]:
            begin[entries] = x
            kind[entries] = code[r]
            start[item[r] + 1] += 1
            entries += 1
    begin[entries] = len(rows)
    for i in range(items):
        start[i + 1] += start[i]
    return start, kind[:entries].copy(), begin[: entries + 1].copy()


@njit(cache=True, nogil=True)
def classes_of_rows(rows, begin, out_entry, out_class, out_count, n):
    """The class of every record, -1 for those that are still open: the first rows of every entry."""
    end = begin[1:].copy()
    out = np.full(n, -1, np.int32)
    for x in range(len(out_entry)):
        e = out_entry[x]
        for y in range(end[e] - out_count[x], end[e]):
            out[rows[y]] = out_class[x]
        end[e] -= out_count[x]
    return out
