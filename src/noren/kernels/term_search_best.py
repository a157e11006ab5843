"""The search over options: a good start from the bound's own tables, swaps that make it cheaper, a proof.

`start` reads a choice out of the knapsack tables, mends it record by record and raises it greedily until it holds.
`improve` lowers one record, or one record at the expense of another. `prove` is best-first over records in their order:
a node fixes the options of the first records with their true overlap, and the rest is bounded as if it were disjoint
from everything. It is exact, and whenever it stops, the lowest open node is a proven lower bound.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from noren.kernels.term_search import Group
from noren.kernels.term_search_bound import SLIGHT, completion, reach_of
from noren.kernels.term_search_judge import CL, L2, judge, lay_out, order_of

CLOSE = 1e-10
COUNT, USED, NODES, DONE, FULL = 0, 1, 2, 3, 4
BEST, LOWEST = 0, 1


@njit(cache=True, nogil=True)
def cost_of(group, choice):
    total = 0.0
    for i in range(choice.size):
        total += group.cost[choice[i]]
    return total


@njit(cache=True, nogil=True)
def slack_of(group, rule, desk, choice):
    lay_out(group, rule, desk, choice, 0, choice.size, -1)
    return judge(group, rule, desk, -1)[1]


@njit(cache=True, nogil=True)
def overlap_order(group, rule, desk):
    """Records by how much belief they share with others before anything is removed, most first.

    The bound sees an overlap only once both records are fixed, so those should be fixed early.
    """
    d = group.first.size - 1
    lay_out(group, rule, desk, group.first, 0, d, -1)
    shared = np.zeros(d)
    for i in range(d):
        o = group.first[i]
        for k in range(group.at[o], group.at[o + 1]):
            c = group.cls[k]
            shared[i] += group.size[c] * max(0.0, min(group.val[k], desk.belief[c] - group.val[k]))
    return order_of(-np.rint(shared * 1e9))


@njit(cache=True, nogil=True)
def reordered(group, order):
    """The same group with its records in another order."""
    d = order.size
    first = np.zeros(d + 1, np.int64)
    take = np.empty(group.cost.size, np.int64)
    n = 0
    for i in range(d):
        for o in range(group.first[order[i]], group.first[order[i] + 1]):
            take[n] = o
            n += 1
        first[i + 1] = n
    at = np.zeros(n + 1, np.int64)
    cls, val = np.empty_like(group.cls), np.empty_like(group.val)
    for q in range(n):
        a, b = group.at[take[q]], group.at[take[q] + 1]
        at[q + 1] = at[q] + b - a
        cls[at[q] : at[q + 1]] = group.cls[a:b]
        val[at[q] : at[q + 1]] = group.val[a:b]
    return Group(
        group.size,
        group.mass,
        first,
        group.cost[take],
        group.sets[take],
        at,
        cls,
        val,
        group.flat[take],
        group.complete[order],
    )


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _read(group, bounds, s, choice):
    """The choice behind a table's cheapest way to meet the need."""
    d = choice.size
    wide = bounds.width[s]
    q = wide - 1
    for i in range(d):
        ahead = bounds.start[s] + (i + 1) * wide
        want = bounds.least[bounds.start[s] + i * wide + q]
        choice[i] = -1
        most = -1
        for o in range(group.first[i], group.first[i + 1]):
            if bounds.peak[o] > bounds.ceiling[s]:
                continue
            u = np.int64(np.ceil(bounds.gain[o, bounds.at[s]] / bounds.unit[s] - SLIGHT))
            left = max(0, q - min(u, wide - 1))
            if group.cost[o] + bounds.least[ahead + left] <= want + CLOSE and u > most:
                choice[i], most = o, u
        if choice[i] < 0:
            choice[i] = group.first[i]
            most = 0
        q = max(0, q - min(most, wide - 1))


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _mend(group, rule, desk, choice, counters):
    """Give every record in turn the option of the same or lower cost with the most slack, until nothing changes."""
    slack = slack_of(group, rule, desk, choice)
    for _ in range(6):
        changed = False
        for i in range(choice.size):
            lay_out(group, rule, desk, choice, 0, choice.size, i)
            for o in range(group.first[i], group.first[i + 1]):
                if group.cost[o] > group.cost[choice[i]] + CLOSE:
                    break
                if o == choice[i] or (slack >= -rule.tolerance and group.cost[o] > group.cost[choice[i]] - CLOSE):
                    continue
                counters[NODES] += 1
                new = judge(group, rule, desk, o)[1]
                cheaper = new >= -rule.tolerance and slack >= -rule.tolerance
                if cheaper or (slack < -rule.tolerance and new > slack + 1e-12):
                    choice[i], slack, changed = o, new, True
                    if cheaper:
                        break
        if not changed:
            break
    return slack


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _raise(group, rule, desk, choice, counters, limit):
    """From a choice that does not hold: the step with the most slack per cost, until it holds or costs the limit."""
    spent = cost_of(group, choice)
    slack = slack_of(group, rule, desk, choice)
    while slack < -rule.tolerance:
        best, at, to, reached = 0.0, -1, -1, slack
        for i in range(choice.size):
            lay_out(group, rule, desk, choice, 0, choice.size, i)
            for o in range(group.first[i], group.first[i + 1]):
                step = group.cost[o] - group.cost[choice[i]]
                if step <= CLOSE or spent + step >= limit - CLOSE:
                    continue
                counters[NODES] += 1
                new = judge(group, rule, desk, o)[1]
                ratio = (min(new, 0.0) - slack) / step
                if ratio > best:
                    best, at, to, reached = ratio, i, o, new
        if at < 0:
            return False
        spent += group.cost[to] - group.cost[choice[at]]
        choice[at], slack = to, reached
    return True


@njit(cache=True, nogil=True)
def start(group, rule, bounds, desk, s, best_choice, best, counters):
    """The choice of scenario s, mended and raised until it holds; returns the cost of the best choice so far."""
    choice = np.empty(best_choice.size, np.int64)
    _read(group, bounds, s, choice)
    _mend(group, rule, desk, choice, counters)
    if _raise(group, rule, desk, choice, counters, best):
        _mend(group, rule, desk, choice, counters)
        cost = cost_of(group, choice)
        if cost < best - CLOSE:
            best_choice[:] = choice
            return cost
    return best


@njit(cache=True, nogil=True)
def improve(group, rule, desk, choice, counters, place, budget):
    """One record cheaper at the expense of at most one other; place[0] counts (record, other) pairs since a change.

    Returns whether all pairs have been looked at without a change.
    """
    d = choice.size
    pairs = d * d
    while place[0] < pairs:
        if counters[NODES] >= budget:
            return False
        i, j = (place[1] // d) % d, place[1] % d
        place[1] = (place[1] + 1) % pairs
        place[0] += 1
        old_i = choice[i]
        done = False
        if i == j:
            lay_out(group, rule, desk, choice, 0, d, i)
            for o in range(group.first[i], old_i):
                if group.cost[o] > group.cost[old_i] - CLOSE:
                    break
                counters[NODES] += 1
                if judge(group, rule, desk, o)[1] >= -rule.tolerance:
                    choice[i], done = o, True
                    break
        else:
            old_j = choice[j]
            for o in range(group.first[i], old_i):
                saved = group.cost[old_i] - group.cost[o]
                if saved <= CLOSE:
                    break
                choice[i] = o
                lay_out(group, rule, desk, choice, 0, d, j)
                for p in range(group.first[j], group.first[j + 1]):
                    more = group.cost[p] - group.cost[old_j]
                    if more >= saved - CLOSE:
                        break
                    if more < -CLOSE:
                        continue
                    counters[NODES] += 1
                    if judge(group, rule, desk, p)[1] >= -rule.tolerance:
                        choice[j], done = p, True
                        break
                if done:
                    break
                choice[i] = old_i
        if done:
            place[0] = 0
    return True


class Front(NamedTuple):
    """Open nodes: heap of node numbers by bound; a node knows its parent, option and depth."""

    heap: np.ndarray
    bound: np.ndarray
    parent: np.ndarray
    option: np.ndarray
    depth: np.ndarray


@njit(cache=True, nogil=True)
def new_front(size):
    return Front(
        np.empty(size, np.int64),
        np.empty(size),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.int16),
    )


@njit(cache=True, nogil=True)
def wider_front(front, size):
    """The same nodes with room for more."""
    out = new_front(size)
    n = front.bound.size
    out.heap[:n], out.bound[:n], out.parent[:n] = front.heap, front.bound, front.parent
    out.option[:n], out.depth[:n] = front.option, front.depth
    return out


@njit(cache=True, nogil=True)
def open_root(front, counters, bound):
    _push(front, counters, bound, -1, -1, 0)


@njit(cache=True, nogil=True)
def removed_entries(bounds, kept):
    """Which (record, term) entries are missing from the kept term sets, one row a record."""
    out = np.zeros(bounds[-1] - bounds[0], np.bool_)
    for i in range(bounds.size - 1):
        for j in range(bounds[i + 1] - bounds[i]):
            out[bounds[i] - bounds[0] + j] = not (kept[i, j >> 6] >> np.uint64(j & 63)) & np.uint64(1)
    return out


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _before(front, a, b):
    """Lower bound first; among equals the deeper node, then the younger."""
    if front.bound[a] != front.bound[b]:
        return front.bound[a] < front.bound[b]
    if front.depth[a] != front.depth[b]:
        return front.depth[a] > front.depth[b]
    return a > b


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _push(front, counters, bound, parent, option, depth):
    node = counters[USED]
    counters[USED] += 1
    front.bound[node], front.parent[node] = bound, parent
    front.option[node], front.depth[node] = option, depth
    k = counters[COUNT]
    counters[COUNT] += 1
    while k > 0 and _before(front, node, front.heap[(k - 1) // 2]):
        front.heap[k] = front.heap[(k - 1) // 2]
        k = (k - 1) // 2
    front.heap[k] = node


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _pop(front, counters):
    top = front.heap[0]
    counters[COUNT] -= 1
    n = counters[COUNT]
    node = front.heap[n]
    k = 0
    while 2 * k + 1 < n:
        c = 2 * k + 1
        if c + 1 < n and _before(front, front.heap[c + 1], front.heap[c]):
            c += 1
        if not _before(front, front.heap[c], node):
            break
        front.heap[k] = front.heap[c]
        k = c
    front.heap[k] = node
    return top


@njit(cache=True, nogil=True)
def prove(group, rule, bounds, added, desk, front, best_choice, numbers, counters, budget):
    """Best-first until so many nodes have been looked at in all; numbers: best cost and proven lower bound."""
    d = best_choice.size
    choice = np.empty(d, np.int64)
    reach = np.empty(bounds.grid.size)
    base = rule.alpha_square * rule.records * rule.records
    while counters[NODES] < budget:
        if counters[COUNT] == 0:
            counters[DONE] = 1
            numbers[LOWEST] = numbers[BEST]
            return
        numbers[LOWEST] = front.bound[front.heap[0]]
        if numbers[LOWEST] >= numbers[BEST] - CLOSE:
            counters[DONE] = 1
            numbers[LOWEST] = numbers[BEST]
            return
        depth = np.int64(front.depth[front.heap[0]])
        if counters[USED] + group.first[depth + 1] - group.first[depth] > front.bound.size:
            counters[FULL] = 1
            return
        node = _pop(front, counters)
        spent, highest = 0.0, 0.0
        up = node
        for i in range(depth - 1, -1, -1):
            choice[i] = front.option[up]
            spent += group.cost[choice[i]]
            highest = max(highest, bounds.peak[choice[i]])
            up = front.parent[up]
        lay_out(group, rule, desk, choice, 0, depth, -1)
        for o in range(group.first[depth], group.first[depth + 1]):
            cost = spent + group.cost[o]
            if cost >= numbers[BEST] - CLOSE:
                break
            counters[NODES] += 1
            _, slack, peak = judge(group, rule, desk, o)
            if depth + 1 == d:
                if slack >= -rule.tolerance:
                    numbers[BEST] = cost
                    best_choice[:depth] = choice[:depth]
                    best_choice[depth] = o
                continue
            if rule.kind == CL:
                reach_of(desk.work, desk.amounts, desk.used[2], bounds.grid, reach)
            else:
                reach[0] = base - (rule.bound - slack) if rule.kind == L2 else slack + rule.bound
            rest = completion(
                rule, bounds, added, depth + 1, reach, peak, max(highest, bounds.peak[o]), numbers[BEST] - CLOSE
            )
            if cost + rest < numbers[BEST] - CLOSE:
                _push(front, counters, max(front.bound[node], cost + rest), node, o, depth + 1)
