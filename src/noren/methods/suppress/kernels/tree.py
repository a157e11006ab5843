"""The paper's two searches over removed (record, term) entries: depth-first by position, and adaptive.

A node is a set of removed entries; its tail holds the entries that may still be removed below it. Adaptive search
tries every entry of the tail, ranks them by gain of score per cost (l' for diversity, the *decrease* of the squared
distance for closeness; ties by remaining slack, then position) and goes down in that order. A node whose cost is not
below the best solution is cut, and so is one that holds: whatever lies below costs more. Both are exact when they come
to their end.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.suppress.kernels.judge import judge, lay_out

GRAIN = 1e9
CLOSE = 1e-10


class Entries(NamedTuple):
    """The state of the entries: record, bit and price of each (no prices: equation 2); kept, choice and left of each
    record: its remaining terms as a number, the option with the same labels, and the number of terms."""

    record: np.ndarray
    bit: np.ndarray
    price: np.ndarray
    removed: np.ndarray
    kept: np.ndarray
    choice: np.ndarray
    left: np.ndarray


def new_entries(group, bounds, prices) -> Any:
    """Return all entries of a group, none of them removed."""
    sizes = np.diff(bounds)
    record = np.repeat(np.arange(sizes.size), sizes)
    bit = np.arange(bounds[-1]) - bounds[record]
    removed = np.zeros(bounds[-1], np.bool_)
    return Entries(record, bit, prices, removed, (1 << sizes) - 1, group.first[:-1].copy(), sizes)


@kernel
def _option(group, entries, i):
    """Return the option with the same labels as what a record keeps: the smallest closed set around it."""
    kept = entries.kept[i]
    for o in range(group.first[i + 1] - 1, group.first[i], -1):
        if group.kept[o] & kept == kept:
            return o
    return group.first[i]


@kernel
def _step(entries, e):
    """Return the cost of removing a remaining entry."""
    return entries.price[e] if entries.price.size else 1.0 / entries.left[entries.record[e]]


@kernel
def _least_step(entries):
    """Return a lower bound of the cost of any removal."""
    if entries.price.size:
        return entries.price.min()
    return 1.0 / max(1, entries.left.max())


@kernel
def _flip(group, entries, e):
    """Remove an entry, or restore a removed one; return the change of the cost."""
    i = entries.record[e]
    entries.kept[i] ^= 1 << entries.bit[e]
    if entries.removed[e]:
        entries.left[i] += 1
        step = -_step(entries, e)
    else:
        step = _step(entries, e)
        entries.left[i] -= 1
    entries.removed[e] = not entries.removed[e]
    entries.choice[i] = _option(group, entries, i)
    return step


@kernel
def _rank(group, rule, entries, desk, tail, n, here, scores, best):
    """Try every entry of a tail, keep the promising ones, and rank them. `here`: cost, score and slack of the node;
    best: cost of the best solution. Returns how many are kept and examined, and the cheapest one that holds (-1: none)
    with its cost."""
    cost, score, slack = here
    ratios, slacks = np.empty(n), np.empty(n)
    for q in range(1, n):  # by position
        e, j = tail[q], q
        while j > 0 and tail[j - 1] > e:
            tail[j] = tail[j - 1]
            j -= 1
        tail[j] = e
    kept = looked = 0
    holds = laid = tried = -1
    last_new = last_slack = 0.0
    for q in range(n):
        e = tail[q]
        i = entries.record[e]
        step = _step(entries, e)
        if cost + step >= best - CLOSE:
            continue
        entries.kept[i] ^= 1 << entries.bit[e]
        option = _option(group, entries, i)
        entries.kept[i] ^= 1 << entries.bit[e]
        looked += 1
        new, left = score, slack
        if option != entries.choice[i]:  # else the record links to the same labels as before
            if option != tried:
                if laid != i:
                    lay_out(group, rule, desk, entries.choice, entries.choice.size, i)
                    laid = i
                tried = option
                last_new, last_slack, _ = judge(group, rule, desk, option)
            new, left = last_new, last_slack
        if left >= -rule.tolerance:
            holds, best = e, cost + step
            continue
        scores[0, e], scores[1, e] = new, left
        ratio, left = np.rint((new - score) / step * GRAIN), np.rint(left * GRAIN)
        j = kept
        while j > 0 and (ratios[j - 1] < ratio or (ratios[j - 1] == ratio and slacks[j - 1] < left)):
            tail[j], ratios[j], slacks[j] = tail[j - 1], ratios[j - 1], slacks[j - 1]
            j -= 1
        tail[j], ratios[j], slacks[j] = e, ratio, left
        kept += 1
    return kept, looked, holds, best


@kernel
def search_tree(group, rule, entries, desk, adaptive, budget):
    """Return the best solution found within so many nodes, its cost (infinite: none), how many nodes, and whether the
    search was completed. Depth-first search takes one child at a time, by position."""
    many = entries.record.size
    found = np.zeros(many, np.bool_)
    lay_out(group, rule, desk, entries.choice, entries.choice.size, -1)
    score, slack, _ = judge(group, rule, desk, -1)
    looked = 1
    if slack >= -rule.tolerance:
        return found, 0.0, looked, True
    levels = many + 1 if adaptive else 1
    tail, scores = np.zeros((levels, many), np.int64), np.zeros((levels, 2, many))
    length, place, path = np.zeros(many + 1, np.int64), np.zeros(many + 1, np.int64), np.zeros(many, np.int64)
    for e in range(many):
        tail[0, e] = e
    length[0] = many
    best, cost = np.inf, 0.0
    depth, new = 0, True
    while True:
        if adaptive and new:
            here = (cost, score, slack)
            n, more, holds, best = _rank(
                group, rule, entries, desk, tail[depth], length[depth], here, scores[depth], best
            )
            length[depth], place[depth] = n, 0
            looked += more
            if holds >= 0:
                found[:] = entries.removed
                found[holds] = True
        new = False
        if looked >= budget:
            return found, best, looked, False
        if place[depth] >= length[depth]:
            if depth == 0:
                return found, best, looked, True
            depth -= 1
            cost += _flip(group, entries, path[depth])
            continue
        e = tail[depth, place[depth]] if adaptive else place[depth]
        place[depth] += 1
        step = _step(entries, e)
        # for adaptive search neither this child nor, even with the cheapest next step, anything below it can be better
        if cost + step + (_least_step(entries) if adaptive else 0.0) >= best - CLOSE:
            continue
        path[depth] = e
        cost += _flip(group, entries, e)
        if adaptive:
            score, slack = scores[depth, 0, e], scores[depth, 1, e]
            rest = length[depth] - place[depth]
            for j in range(rest):
                tail[depth + 1, j] = tail[depth, place[depth] + j]
            length[depth + 1], new = rest, True
        else:
            lay_out(group, rule, desk, entries.choice, entries.choice.size, -1)
            slack = judge(group, rule, desk, -1)[1]
            looked += 1
            if slack >= -rule.tolerance:
                best = cost
                found[:] = entries.removed
                cost += _flip(group, entries, e)
                continue
            place[depth + 1], length[depth + 1] = e + 1, many
        depth += 1
