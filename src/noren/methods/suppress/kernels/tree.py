"""The paper's two searches over removed (record, term) entries: depth-first by position, and adaptive.

A node is a set of removed entries; its tail holds the entries that may still be removed below it. Adaptive search
tries every entry of the tail, ranks them by gain of score per cost (l' for diversity, the *decrease* of the squared
distance for closeness; ties by remaining slack, then position) and goes down in that order. A node whose cost is not
below the best solution is cut, and so is one that holds: whatever lies below costs more. Both searches can be stopped
after any number of nodes and resumed, and are exact when they come to their end.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.suppress.kernels.judge import judge, lay_out, lift, put_back
from noren.methods.suppress.kernels.term_sets import ONE, contains

TABLED = 12
FEW = 40
GRAIN = 1e9
CLOSE = 1e-10
DEPTH, NODES, DONE, STARTED, FOUND = 0, 1, 2, 3, 4
COST, BEST, SCORE, SLACK = 0, 1, 2, 3


class RemovalTree(NamedTuple):
    """Where the search stands. record, bit, price: of every entry (no prices: equation 2); table: option by kept terms
    for records of few terms."""

    record: np.ndarray
    bit: np.ndarray
    price: np.ndarray
    table: np.ndarray
    table_at: np.ndarray
    tail: np.ndarray
    length: np.ndarray
    next: np.ndarray
    path: np.ndarray
    kept: np.ndarray
    choice: np.ndarray
    left: np.ndarray
    removed: np.ndarray
    removed_best: np.ndarray
    numbers: np.ndarray
    counters: np.ndarray


@kernel
def _closure(group, i, kept):
    """The option with the same labels as the term set kept[i]: the smallest closed set around it."""
    for o in range(group.first[i + 1] - 1, group.first[i], -1):
        if contains(group.sets, o, kept, i):
            return o
    return group.first[i]


@kernel
def new_tree(group, bounds, prices):
    d = bounds.size - 1
    entries = bounds[d]
    words = group.sets.shape[1]
    record = np.empty(entries, np.int64)
    bit = np.empty(entries, np.int64)
    table_at = np.full(d, -1, np.int64)
    room = 0
    for i in range(d):
        for j in range(bounds[i], bounds[i + 1]):
            record[j], bit[j] = i, j - bounds[i]
        if bounds[i + 1] - bounds[i] <= TABLED:
            table_at[i] = room
            room += 1 << (bounds[i + 1] - bounds[i])
    table = np.empty(room, np.int64)
    kept = np.zeros((d, words), np.uint64)
    for i in range(d):
        if table_at[i] >= 0:
            for mask in range(1 << (bounds[i + 1] - bounds[i])):
                kept[i, 0] = np.uint64(mask)
                table[table_at[i] + mask] = _closure(group, i, kept)
        kept[i] = group.sets[group.first[i]]
    tail = np.empty((entries + 1, entries), np.int64)
    tail[0] = np.arange(entries)
    length = np.zeros(entries + 1, np.int64)
    length[0] = entries
    return RemovalTree(
        record,
        bit,
        prices,
        table,
        table_at,
        tail,
        length,
        np.zeros(entries + 1, np.int64),
        np.empty(entries, np.int64),
        kept,
        group.first[:d].copy(),
        np.diff(bounds),
        np.zeros(entries, np.bool_),
        np.zeros(entries, np.bool_),
        np.array([0.0, np.inf, 0.0, 0.0]),
        np.zeros(5, np.int64),
    )


@kernel
def _option(group, tree, i):
    if tree.table_at[i] >= 0:
        return tree.table[tree.table_at[i] + np.int64(tree.kept[i, 0])]
    return _closure(group, i, tree.kept)


@kernel
def _step(tree, e):
    """What the removal of an entry that stands costs."""
    return tree.price[e] if tree.price.size else 1.0 / tree.left[tree.record[e]]


@kernel
def _least_step(tree):
    """What any removal costs at least."""
    least = np.inf
    if tree.price.size:
        for e in range(tree.price.size):
            least = min(least, tree.price[e])
        return least
    most = 1
    for i in range(tree.left.size):
        most = max(most, tree.left[i])
    return 1.0 / most


@kernel
def _flip(group, tree, e):
    """Remove an entry that stands, or put a removed one back."""
    i = tree.record[e]
    w, b = tree.bit[e] >> 6, ONE << np.uint64(tree.bit[e] & 63)
    tree.kept[i, w] ^= b
    if tree.removed[e]:
        tree.left[i] += 1
        tree.numbers[COST] -= _step(tree, e)
    else:
        tree.numbers[COST] += _step(tree, e)
        tree.left[i] -= 1
    tree.removed[e] = not tree.removed[e]
    tree.choice[i] = _option(group, tree, i)


@kernel
def _record_best(tree, e, cost):
    tree.numbers[BEST] = cost
    tree.counters[FOUND] = 1
    tree.removed_best[:] = tree.removed
    if e >= 0:
        tree.removed_best[e] = True


@kernel
def _start(group, rule, tree, desk):
    """Look at the group as it is; returns whether it already holds."""
    lay_out(group, rule, desk, tree.choice, 0, tree.choice.size, -1)
    score, slack, _ = judge(group, rule, desk, -1)
    tree.numbers[SCORE], tree.numbers[SLACK] = score, slack
    tree.counters[STARTED] = 1
    tree.counters[NODES] += 1
    if slack >= -rule.tolerance:
        _record_best(tree, -1, 0.0)
        tree.counters[DONE] = 1
    return tree.counters[DONE] == 1


@kernel
def _lay_out_but(group, rule, tree, desk, i, state):
    """Lay out all records but i; state: record lifted from a full layout, what to restore, whether it is full."""
    if state[0] >= 0:
        put_back(group, desk, tree.choice[state[0]], state[1])
        state[0] = -1
    own = tree.choice[i]
    if group.flat[own] == 0 and group.at[own + 1] - group.at[own] <= FEW:
        if not state[2]:
            lay_out(group, rule, desk, tree.choice, 0, tree.choice.size, -1)
        state[1] = lift(group, rule, desk, own)
        state[0], state[2] = i, 1
    else:
        lay_out(group, rule, desk, tree.choice, 0, tree.choice.size, i)
        state[2] = 0


@kernel
def _expand(group, rule, tree, desk, scores, state, slacks, ratios):
    """Try every entry of the tail, keep those worth a visit, and rank them."""
    k = tree.counters[DEPTH]
    tail, record, bit, choice, numbers = tree.tail, tree.record, tree.bit, tree.choice, tree.numbers
    n = tree.length[k]
    cost, score = numbers[COST], numbers[SCORE]
    for q in range(1, n):
        e = tail[k, q]
        j = q
        while j > 0 and tail[k, j - 1] > e:
            tail[k, j] = tail[k, j - 1]
            j -= 1
        tail[k, j] = e
    kept = looked = 0
    laid = tried = state[0] = -1
    state[2] = 0
    last_new = last_slack = 0.0
    for q in range(n):
        e = tail[k, q]
        i = record[e]
        step = _step(tree, e)
        if cost + step >= numbers[BEST] - CLOSE:
            continue
        w, b = bit[e] >> 6, ONE << np.uint64(bit[e] & 63)
        tree.kept[i, w] ^= b
        option = _option(group, tree, i)
        tree.kept[i, w] ^= b
        looked += 1
        if option == choice[i]:  # the record links to the same labels as before
            new, slack = score, numbers[SLACK]
        else:
            if option != tried:
                if laid != i:
                    _lay_out_but(group, rule, tree, desk, i, state)
                    laid = i
                tried = option
                last_new, last_slack, _ = judge(group, rule, desk, option)
            new, slack = last_new, last_slack
        if slack >= -rule.tolerance:
            _record_best(tree, e, cost + step)
            continue
        scores[k, 0, e], scores[k, 1, e] = new, slack
        ratio, slack = np.rint((new - score) / step * GRAIN), np.rint(slack * GRAIN)
        j = kept
        while j > 0 and (ratios[j - 1] < ratio or (ratios[j - 1] == ratio and slacks[j - 1] < slack)):
            tail[k, j], ratios[j], slacks[j] = tail[k, j - 1], ratios[j - 1], slacks[j - 1]
            j -= 1
        tail[k, j], ratios[j], slacks[j] = e, ratio, slack
        kept += 1
    tree.counters[NODES] += looked
    tree.length[k] = kept
    tree.next[k] = 0


@kernel
def _retreat(group, tree):
    """Undo the last removal; at the root the search is over."""
    if tree.counters[DEPTH] == 0:
        tree.counters[DONE] = 1
        return
    tree.counters[DEPTH] -= 1
    _flip(group, tree, tree.path[tree.counters[DEPTH]])


@kernel
def adaptive(group, rule, tree, desk, scores, budget):
    """Run until so many nodes have been looked at in all. scores[k, :, e]: score and slack by entry e at depth k."""
    entries = tree.record.size
    slacks, ratios, state = np.empty(entries), np.empty(entries), np.empty(3, np.int64)
    if not tree.counters[STARTED] and not _start(group, rule, tree, desk):
        _expand(group, rule, tree, desk, scores, state, slacks, ratios)
    while not tree.counters[DONE] and tree.counters[NODES] < budget:
        k = tree.counters[DEPTH]
        q = tree.next[k]
        if q >= tree.length[k]:
            _retreat(group, tree)
            continue
        e = tree.tail[k, q]
        tree.next[k] += 1
        # neither this child nor, even with the cheapest next step, anything below it can be better
        if tree.numbers[COST] + _step(tree, e) + _least_step(tree) >= tree.numbers[BEST] - CLOSE:
            continue
        tree.path[k] = e
        rest = tree.length[k] - q - 1
        for j in range(rest):
            tree.tail[k + 1, j] = tree.tail[k, q + 1 + j]
        tree.length[k + 1] = rest
        _flip(group, tree, e)
        tree.counters[DEPTH] = k + 1
        tree.numbers[SCORE], tree.numbers[SLACK] = scores[k, 0, e], scores[k, 1, e]
        _expand(group, rule, tree, desk, scores, state, slacks, ratios)


@kernel
def depth_first(group, rule, tree, desk, budget):
    """The paper's baseline: entries in their order, one child at a time, until so many nodes have been looked at."""
    entries = tree.record.size
    if not tree.counters[STARTED]:
        _start(group, rule, tree, desk)
    while not tree.counters[DONE] and tree.counters[NODES] < budget:
        k = tree.counters[DEPTH]
        e = tree.next[k]
        if e >= entries:
            _retreat(group, tree)
            continue
        tree.next[k] = e + 1
        cost = tree.numbers[COST] + _step(tree, e)
        if cost >= tree.numbers[BEST] - CLOSE:
            continue
        tree.path[k] = e
        _flip(group, tree, e)
        lay_out(group, rule, desk, tree.choice, 0, tree.choice.size, -1)
        _, slack, _ = judge(group, rule, desk, -1)
        tree.counters[NODES] += 1
        if slack >= -rule.tolerance:
            _record_best(tree, -1, cost)
            _flip(group, tree, e)
        else:
            tree.counters[DEPTH] = k + 1
            tree.next[k + 1] = e + 1
