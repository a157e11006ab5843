"""Sums over product sets, shared between records: the inner loops of counting, EM and Fisher information.

A record is a tuple of set numbers, one per axis. Records come sorted, so those that agree on the first `depth` axes
stand together: the sum over those axes is formed once for all of them (a small table per level), and each record
touches only the product of its remaining sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel


class Products(NamedTuple):
    """The sets of every axis, one axis after the other."""

    codes: Any
    code_start: Any
    widths: Any
    """Set s of an axis has the cells codes[at:at + widths[axis]] with at = code_start[axis] + s * widths[axis]."""
    coefs: Any
    coef_rows: Any
    """(axes, 2): where the weights of an axis' first set begin, and the step to the next (0: one row serves all)."""
    sizes: Any
    """sizes[i]: the number of cells of the axes i, i+1, ..."""
    depth: Any
    """How many axes are shared."""


class Seen(NamedTuple):
    """Per tuple: how many records have it, how many of these are held out, and what is added to their likelihood."""

    counts: Any
    held: Any
    floor: Any


@kernel
def _level_starts(depth, sizes):
    """Where the table of each level 1..depth starts in one buffer; the last entry is the buffer's length."""
    starts = np.zeros(depth + 2, np.int64)
    for level in range(1, depth + 1):
        starts[level + 1] = starts[level] + sizes[level]
    return starts


@kernel
def _gather(source, target, codes, first, coefs, size):
    """target = the weighted sum of the source's rows named by one set."""
    for j in range(size):
        target[j] = 0.0
    for k in range(coefs.size):
        row = source[codes[first + k] * size : codes[first + k] * size + size]
        c = coefs[k]
        for j in range(size):
            target[j] += c * row[j]


@kernel
def _scatter(source, target, codes, first, coefs, size):
    """Add the source, weighted, to the target's rows named by one set, and empty the source."""
    for k in range(coefs.size):
        row = target[codes[first + k] * size : codes[first + k] * size + size]
        c = coefs[k]
        for j in range(size):
            row[j] += c * source[j]
    for j in range(size):
        source[j] = 0.0


@kernel
def _first_change(ids, t, start, depth):
    """The first shared axis on which record t differs from the one before it; `depth` if none does."""
    if t == start:
        return 0
    for level in range(depth):
        if ids[t, level] != ids[t - 1, level]:
            return level
    return depth


@kernel
def _leaf(ids, t, products, offsets, weights):
    """List the cells of record t's remaining product set and their weights; returns how many there are."""
    codes, code_start, widths, coefs, coef_rows, sizes, depth = products
    offsets[0] = 0
    weights[0] = 1.0
    count = 1
    for axis in range(depth, widths.size):
        width = widths[axis]
        first = code_start[axis] + np.int64(ids[t, axis]) * width
        at = coef_rows[axis, 0] + np.int64(ids[t, axis]) * coef_rows[axis, 1]
        size = sizes[axis + 1]
        for k in range(width - 1, -1, -1):
            step = codes[first + k] * size
            c = coefs[at + k]
            for m in range(count):
                offsets[k * count + m] = offsets[m] + step
                weights[k * count + m] = weights[m] * c
        count *= width
    return count


@kernel
def em_pass(ids, start, stop, products, seen, scale, x, acc, sums):
    """One EM pass over records start..stop-1.

    sums[t] = L_t . x; acc_c += (counts_t - held_t) L_t(c) / sums[t]. Returns the log likelihood of the held
    records, sum of held_t log(scale sums[t] + floor[t]).
    """
    codes, code_start, widths, coefs, coef_rows, sizes, depth = products
    counts, held, floor = seen
    starts = _level_starts(depth, sizes)
    tables = np.zeros(starts[depth + 1])
    accs = np.zeros(starts[depth + 1])
    leaf_cells = 1
    for axis in range(depth, widths.size):
        leaf_cells *= widths[axis]
    offsets = np.empty(leaf_cells, np.int64)
    weights = np.empty(leaf_cells)
    single = depth == widths.size - 1
    last = widths.size - 1
    log_likelihood = 0.0
    table = x
    store = acc
    if depth > 0:
        table = tables[starts[depth] : starts[depth + 1]]
        store = accs[starts[depth] : starts[depth + 1]]
    for t in range(start, stop):
        change = _first_change(ids, t, start, depth)
        if change < depth:
            if t > start:
                _close(ids, t - 1, change, products, starts, acc, accs)
            for level in range(change, depth):
                source = x if level == 0 else tables[starts[level] : starts[level + 1]]
                first = code_start[level] + np.int64(ids[t, level]) * widths[level]
                at = coef_rows[level, 0] + np.int64(ids[t, level]) * coef_rows[level, 1]
                weight = coefs[at : at + widths[level]]
                _gather(source, tables[starts[level + 1] : starts[level + 2]], codes, first, weight, sizes[level + 1])
        total = 0.0
        n = counts[t] - held[t]
        if single:
            first = code_start[last] + np.int64(ids[t, last]) * widths[last]
            at = coef_rows[last, 0] + np.int64(ids[t, last]) * coef_rows[last, 1]
            for k in range(widths[last]):
                total += coefs[at + k] * table[codes[first + k]]
            if n > 0 and total > 0:
                r = n / total
                for k in range(widths[last]):
                    store[codes[first + k]] += r * coefs[at + k]
        else:
            count = _leaf(ids, t, products, offsets, weights)
            for m in range(count):
                total += weights[m] * table[offsets[m]]
            if n > 0 and total > 0:
                r = n / total
                for m in range(count):
                    store[offsets[m]] += r * weights[m]
        sums[t] = total
        if held[t] > 0:
            log_likelihood += held[t] * np.log(max(scale * total + floor[t], 1e-300))
    if stop > start and depth > 0:
        _close(ids, stop - 1, 0, products, starts, acc, accs)
    return log_likelihood


@kernel
def _close(ids, t, change, products, starts, acc, accs):
    """Record t was the last of its shared sets from axis `change` on: push what they gathered one level up."""
    codes, code_start, widths, coefs, coef_rows, sizes, depth = products
    for level in range(depth - 1, change - 1, -1):
        target = acc if level == 0 else accs[starts[level] : starts[level + 1]]
        first = code_start[level] + np.int64(ids[t, level]) * widths[level]
        at = coef_rows[level, 0] + np.int64(ids[t, level]) * coef_rows[level, 1]
        weight = coefs[at : at + widths[level]]
        _scatter(accs[starts[level + 1] : starts[level + 2]], target, codes, first, weight, sizes[level + 1])


@kernel
def add_products(ids, start, stop, products, amounts, acc):
    """acc_c += amounts_t * (weight of c in record t's product set), for records start..stop-1."""
    widths, sizes, depth = products.widths, products.sizes, products.depth
    starts = _level_starts(depth, sizes)
    accs = np.zeros(starts[depth + 1])
    leaf_cells = 1
    for axis in range(depth, widths.size):
        leaf_cells *= widths[axis]
    offsets = np.empty(leaf_cells, np.int64)
    weights = np.empty(leaf_cells)
    store = acc
    if depth > 0:
        store = accs[starts[depth] : starts[depth + 1]]
    for t in range(start, stop):
        change = _first_change(ids, t, start, depth)
        if change < depth and t > start:
            _close(ids, t - 1, change, products, starts, acc, accs)
        count = _leaf(ids, t, products, offsets, weights)
        for m in range(count):
            store[offsets[m]] += amounts[t] * weights[m]
    if stop > start and depth > 0:
        _close(ids, stop - 1, 0, products, starts, acc, accs)
