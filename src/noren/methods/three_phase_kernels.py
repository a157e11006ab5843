"""The three-phase algorithm TP (Xiao, Yi, Tao 2010): which records of groups with equal values must be moved out.

A group's pillars are its commonest sensitive values. A group is fat if it holds more than l times its pillars'
height, thin if exactly l times. The residue is what was moved out.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel


class Stock(NamedTuple):
    """What the groups still hold: entries bounds[g] <= e < bounds[g + 1] of group g say that left[e] of its records
    have value values[e]. size[g] is all of them, high[g] the height of its pillars."""

    bounds: Any
    values: Any
    left: Any
    size: Any
    high: Any


class Listed(NamedTuple):
    """The entries of value v, in the order in which they are tried: walk[starts[v]:starts[v + 1]]."""

    walk: Any
    starts: Any
    owner: Any
    """Per entry: its group."""


@kernel
def later_phases(stock, listed, residue, sizes, l, group_walk):
    """The second and the third phase, until the residue is eligible; how many rounds of the third it took.

    sizes: how many records are in the residue after each phase, of which the first is given.
    """
    groups, m = len(stock.size), len(residue)
    pillars, chosen = np.empty(m, np.bool_), np.empty(m, np.int64)
    total = sizes[0]
    rounds, spent = 0, 0
    stirred = True
    while True:
        if stirred:
            total = _second_phase(stock, listed, residue, total, l)
        if rounds == 0:
            sizes[1] = total
        top = _most(residue)
        if total >= l * top:
            break
        for v in range(m):
            pillars[v] = residue[v] == top
        while spent < groups and stock.size[group_walk[spent]] == 0:
            spent += 1
        taken = _third_phase(stock, pillars, group_walk, spent, chosen)
        if not taken:
            break
        for i in range(taken):
            total += _take_pillars(chosen[i], stock, residue)
        rounds += 1
        raised = _most(residue)
        stirred = False  # untouched groups are still dead unless a pillar of the residue has ceased to be one
        for v in range(m):
            stirred |= pillars[v] and residue[v] < raised
        for i in range(taken):
            stirred |= not _dead(chosen[i], stock, residue, raised, l)
    sizes[2] = total
    return rounds


@kernel
def _most(numbers):
    """The largest of some numbers, none of which is negative."""
    most = 0
    for i in range(len(numbers)):
        most = max(most, numbers[i])
    return most


@kernel
def _take_pillars(g, stock, residue):
    """Move one record of every pillar of a group to the residue; returns how many."""
    bounds, values, left, size, high = stock
    moved = 0
    for e in range(bounds[g], bounds[g + 1]):
        if left[e] == high[g]:
            left[e] -= 1
            residue[values[e]] += 1
            moved += 1
    size[g] -= moved
    high[g] -= 1
    return moved


@kernel
def _dead(g, stock, residue, top, l):
    """Whether a group can give nothing without raising the residue's pillars: thin, and sharing one of them."""
    bounds, values, left, size, high = stock
    if size[g] > l * high[g]:
        return False
    for e in range(bounds[g], bounds[g + 1]):
        if left[e] == high[g] and residue[values[e]] == top:
            return True
    return size[g] == 0


@kernel
def _play(tree, i, residue):
    """The rarer of two values wins; -1 is no value."""
    a, b = tree[2 * i], tree[2 * i + 1]
    tree[i] = a if b < 0 or (a >= 0 and residue[a] <= residue[b]) else b


@kernel
def _replay(tree, leaf, value, residue):
    i = len(tree) // 2 + leaf
    tree[i] = value
    i //= 2
    while i:
        _play(tree, i, residue)
        i //= 2


@kernel
def _second_phase(stock, listed, residue, total, l):
    """Feed the residue with its rarest values until it is eligible or no group can give; returns its size.

    The height of the residue stays. Its pillars only grow more numerous, so a dead group stays dead and every list of
    entries is walked once.
    """
    bounds, values, left, size, high = stock
    walk, starts, owner = listed
    m = len(residue)
    leaves = 1
    while leaves < m:
        leaves *= 2
    top = _most(residue)
    at = np.empty(m, np.int64)
    tree = np.empty(2 * leaves, np.int64)
    tree[:] = -1
    for v in range(m):
        at[v] = starts[v]
        if starts[v + 1] > starts[v]:
            tree[leaves + v] = v
    for i in range(leaves - 1, 0, -1):
        _play(tree, i, residue)
    while total < l * top and tree[1] >= 0:
        v = tree[1]
        while at[v] < starts[v + 1]:
            e = walk[at[v]]
            g = owner[e]
            if left[e] > 0 and not _dead(g, stock, residue, top, l):
                break
            at[v] += 1
        if at[v] == starts[v + 1]:
            _replay(tree, v, -1, residue)
            continue
        if size[g] > l * high[g]:
            pillar = left[e] == high[g]
            left[e] -= 1
            size[g] -= 1
            residue[v] += 1
            total += 1
            if pillar:
                high[g] = 0
                for other in range(bounds[g], bounds[g + 1]):
                    high[g] = max(high[g], left[other])
            _replay(tree, v, v, residue)
        else:
            height = high[g]
            total += _take_pillars(g, stock, residue)
            for other in range(bounds[g], bounds[g + 1]):
                u = values[other]
                if left[other] == height - 1 and tree[leaves + u] >= 0:
                    _replay(tree, u, u, residue)
    return total


@kernel
def _third_phase(stock, pillars, group_walk, spent, chosen):
    """All groups are dead: choose, greedily, groups that have no pillar of the residue in common; how many.

    One record of each of their pillars raises the residue by less than the number of groups. None is found only if
    the whole table is not eligible. Groups before place `spent` of the walk are empty.
    """
    bounds, values, left, size, high = stock
    common = pillars.copy()
    wanted = 0
    for v in range(len(pillars)):
        wanted += pillars[v]
    taken = 0
    while wanted:
        best = -1
        fewest = wanted
        least = 1 if taken == 0 else 0
        for i in range(spent, len(group_walk)):
            g = group_walk[i]
            if size[g] == 0:
                continue
            shared = 0
            for e in range(bounds[g], bounds[g + 1]):
                if left[e] == high[g] and common[values[e]]:
                    shared += 1
            if shared < fewest:
                best = g
                fewest = shared
                if shared <= least:
                    break
        if best < 0:
            return 0
        chosen[taken] = best
        taken += 1
        kept = np.zeros(len(common), np.bool_)
        for e in range(bounds[best], bounds[best + 1]):
            if left[e] == high[best]:
                kept[values[e]] = common[values[e]]
        common = kept
        wanted = fewest
    return taken
