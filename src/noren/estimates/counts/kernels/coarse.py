"""Sums over what coarse cells stand for: products of regions, hard bounds, and the E-step of EM.

The lists of several axes are packed one after the other: the entries of code c of axis j are index[e], weight[e] with
ptr[first[j] + c] <= e < ptr[first[j] + c + 1]. sizes[j] is the number of cells of the axes from j on.
"""

import numpy as np

from noren.kernel import kernel


@kernel
def refine(bounds, index, label, classes):
    """Split classes of items until every code holds all of a class or nothing of it. Changes label; returns classes."""
    size = np.zeros(label.size + classes, np.int64)
    hit = np.zeros(label.size + classes, np.int64)
    split = np.full(label.size + classes, -1, np.int64)
    touched = np.empty(label.size + classes, np.int64)
    for item in range(label.size):
        size[label[item]] += 1
    for code in range(bounds.size - 1):
        count = 0
        for e in range(bounds[code], bounds[code + 1]):
            old = label[index[e]]
            if hit[old] == 0:
                touched[count] = old
                count += 1
            hit[old] += 1
        for i in range(count):
            old = touched[i]
            if hit[old] < size[old]:
                split[old] = classes
                size[classes] = hit[old]
                size[old] -= hit[old]
                classes += 1
            hit[old] = 0
        for e in range(bounds[code], bounds[code + 1]):
            new = split[label[index[e]]]
            if new >= 0:
                label[index[e]] = new
        for i in range(count):
            split[touched[i]] = -1
    return classes


@kernel
def condense(bounds, index, one, two, label, labels):
    """Each code's entries summed by the label of their item; -1 is left out. Sums both weights, labels in order met."""
    out_bounds = np.zeros(bounds.size, np.int64)
    place = np.full(labels, -1, np.int64)
    total = 0
    for write in range(2):
        if write == 1:
            out_index = np.empty(total, np.int64)
            out_one = np.zeros(total)
            out_two = np.zeros(total)
        total = 0
        for code in range(bounds.size - 1):
            start = total
            for e in range(bounds[code], bounds[code + 1]):
                found = label[index[e]]
                if found < 0:
                    continue
                if place[found] < start:
                    place[found] = total
                    total += 1
                if write == 1:
                    at = place[found]
                    out_index[at] = found
                    out_one[at] += one[e]
                    out_two[at] += two[e]
            out_bounds[code + 1] = total
        place[:] = -1
    return out_bounds, out_index, out_one, out_two


@kernel
def _region(ids, t, ptr, first, index, weight, sizes, offsets, weights):
    """Cells of record t's product region: how many, where, and their weights."""
    count = 1
    offsets[0] = 0
    weights[0] = 1.0
    for axis in range(ids.shape[1]):
        a = ptr[first[axis] + ids[t, axis]]
        length = ptr[first[axis] + ids[t, axis] + 1] - a
        for m in range(count - 1, -1, -1):
            base = offsets[m]
            mass = weights[m]
            for k in range(length - 1, -1, -1):
                offsets[m * length + k] = base + index[a + k] * sizes[axis + 1]
                weights[m * length + k] = mass * weight[a + k]
        count *= length
    return count


@kernel
def add_regions(ids, amounts, ptr, first, index, weight, sizes, out):
    """out_c += amounts_t * (product of the weights of c in record t's region)."""
    offsets = np.empty(sizes[0], np.int64)
    weights = np.empty(sizes[0])
    for t in range(ids.shape[0]):
        count = _region(ids, t, ptr, first, index, weight, sizes, offsets, weights)
        for m in range(count):
            out[offsets[m]] += amounts[t] * weights[m]


@kernel
def bound_counts(group, ids, amounts, ptr, first, index, sure, sizes, rows, where, room, slack, least, most):
    """Least and most records of every cell (reported value of the group axis, cell of the other axes).

    Records are ordered by group. Entry e of group g (rows[g] <= e < rows[g+1]) says that room[e] of its records have
    the reported value where[e] and slack[e] have not. `sure` says of an entry that its code means nothing else.
    """
    cells = sizes[0]
    offsets = np.empty(cells, np.int64)
    certain = np.empty(cells)
    possible = np.zeros(cells)
    known = np.zeros(cells)
    touched = np.empty(cells, np.int64)
    start = 0
    while start < group.size:
        g = group[start]
        stop = start
        count = 0
        while stop < group.size and group[stop] == g:
            region = _region(ids, stop, ptr, first, index, sure, sizes, offsets, certain)
            for m in range(region):
                c = offsets[m]
                if possible[c] == 0:
                    touched[count] = c
                    count += 1
                possible[c] += amounts[stop]
                known[c] += amounts[stop] * certain[m]
            stop += 1
        for i in range(count):
            c = touched[i]
            for e in range(rows[g], rows[g + 1]):
                most[where[e] * cells + c] += min(possible[c], room[e])
                least[where[e] * cells + c] += max(0.0, known[c] - slack[e])
            possible[c] = 0.0
            known[c] = 0.0
        start = stop


@kernel
def region_pass(slot, ids, amounts, ptr, first, index, weight, sizes, table, acc, sums):
    """sums_t = sum_c L_t(c) table_c and acc_c += amounts_t L_t(c) / sums_t, c over record t's region of its slot."""
    offsets = np.empty(sizes[0], np.int64)
    weights = np.empty(sizes[0])
    single = ids.shape[1] == 1
    for t in range(slot.size):
        at = slot[t] * sizes[0]
        total = 0.0
        if single:
            a = ptr[ids[t, 0]]
            b = ptr[ids[t, 0] + 1]
            for e in range(a, b):
                total += weight[e] * table[at + index[e]]
            if total > 0:
                share = amounts[t] / total
                for e in range(a, b):
                    acc[at + index[e]] += share * weight[e]
        else:
            count = _region(ids, t, ptr, first, index, weight, sizes, offsets, weights)
            for m in range(count):
                total += weights[m] * table[at + offsets[m]]
            if total > 0:
                share = amounts[t] / total
                for m in range(count):
                    acc[at + offsets[m]] += share * weights[m]
        sums[t] = total
