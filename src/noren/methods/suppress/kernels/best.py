"""The search over options: a good start from the bound's own tables, swaps that make it cheaper, a proof.

`start` reads a choice out of the knapsack tables, mends it record by record and raises it greedily until it holds.
`_improve` lowers one record, or one record at the expense of another. `_prove` is best-first over records in their
order: a node fixes the options of the first records with their true overlap, and the rest is bounded as if it were
disjoint from everything. It is exact, and whenever it stops, the lowest open node is a proven lower bound.

`step` is the one way in, for all of these: how a choice is judged is a good part of each, and is compiled once.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.suppress.kernels.bound import SLIGHT, completion, reach_of
from noren.methods.suppress.kernels.judge import CL, L2, judge, lay_out, lift, put_back

COUNT, USED, NODES, DONE, FULL = 0, 1, 2, 3, 4
"""Counters; NODES counts the options that were looked at."""
BEST, LOWEST = 0, 1
SLACK, START, IMPROVE, PROVE = 0, 1, 2, 3
"""What `step` does."""
CLOSE = 1e-10
ONE_BY_ONE = 256
"""Records of the largest group that is raised step by step."""


class Standing(NamedTuple):
    """How far the search has come."""

    choice: np.ndarray
    """Per record: its option in the best choice so far."""
    numbers: np.ndarray
    """The cost of that choice (BEST), and the proven lower bound (LOWEST)."""
    counters: np.ndarray
    """COUNT, USED, NODES, DONE, FULL."""


@kernel
def cost_of(group, choice):
    total = 0.0
    for i in range(choice.size):
        total += group.cost[choice[i]]
    return total


@kernel
def slack_of(group, rule, desk, choice):
    lay_out(group, rule, desk, choice, 0, choice.size, -1)
    return judge(group, rule, desk, -1)[1]


@kernel
def _copy(source, target):
    for i in range(source.size):
        target[i] = source[i]


@kernel
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


@kernel
def _take_out(group, rule, desk, choice, i):
    """Leave record i out of what is laid out; `_put_in` undoes it."""
    if group.flat[choice[i]] > 0:
        lay_out(group, rule, desk, choice, 0, choice.size, i)
        return -1
    return lift(group, rule, desk, choice[i])


@kernel
def _put_in(group, rule, desk, choice, own, before):
    """Lay record i out again as it was, or anew if its option has changed or could not be lifted."""
    if before < 0:
        lay_out(group, rule, desk, choice, 0, choice.size, -1)
    else:
        put_back(group, desk, own, before)


@kernel
def _mend(group, rule, desk, choice, counters):
    """Give every record in turn the option of the same or lower cost with the most slack, until nothing changes."""
    slack = slack_of(group, rule, desk, choice)
    for _ in range(6):
        changed = False
        for i in range(choice.size):
            own = choice[i]
            if group.first[i + 1] - group.first[i] == 1:
                continue
            before = _take_out(group, rule, desk, choice, i)
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
            _put_in(group, rule, desk, choice, own, before if choice[i] == own else -1)
        if not changed:
            break
        slack = slack_of(group, rule, desk, choice)
    return slack


@kernel
def _raise(group, rule, desk, choice, counters, limit):
    """From a choice that does not hold: the steps with the most slack per cost, until it holds or costs the limit.

    One step after every look at all records; in groups of more than ONE_BY_ONE several, or it would take for ever.
    """
    d = choice.size
    spent = cost_of(group, choice)
    slack = slack_of(group, rule, desk, choice)
    most = max(1, d // ONE_BY_ONE)
    ratios, falling, options, old = np.empty(d), np.empty(d), np.empty(d, np.int64), np.empty(d, np.int64)
    while slack < -rule.tolerance:
        found = 0
        for i in range(d):
            own = choice[i]
            ratios[i] = 0.0
            if group.cost[group.first[i + 1] - 1] - group.cost[own] <= CLOSE:
                continue
            before = _take_out(group, rule, desk, choice, i)
            for o in range(group.first[i], group.first[i + 1]):
                step = group.cost[o] - group.cost[own]
                if step <= CLOSE or spent + step >= limit - CLOSE:
                    continue
                counters[NODES] += 1
                ratio = (min(judge(group, rule, desk, o)[1], 0.0) - slack) / step
                if ratio > ratios[i]:
                    ratios[i], options[i] = ratio, o
            found += ratios[i] > 0
            _put_in(group, rule, desk, choice, own, before)
        if found == 0:
            return False
        for i in range(d):
            falling[i] = -ratios[i]
        order = stable_order(falling)
        _copy(choice, old)
        m = min(most, found)
        while True:
            _copy(old, choice)
            for k in range(m):
                choice[order[k]] = options[order[k]]
            reached = slack_of(group, rule, desk, choice)
            if m == 1 or (slack < reached < -rule.tolerance and cost_of(group, choice) < limit - CLOSE):
                break
            m //= 2
            most = m
        if m == 1 and reached <= slack:
            return False
        spent, slack = cost_of(group, choice), reached
    return True


@kernel
def start(group, rule, bounds, desk, s, best_choice, best, counters):
    """The choice of scenario s, mended and raised until it holds; returns the cost of the best choice so far."""
    choice = np.empty(best_choice.size, np.int64)
    _read(group, bounds, s, choice)
    _mend(group, rule, desk, choice, counters)
    if _raise(group, rule, desk, choice, counters, best):
        _mend(group, rule, desk, choice, counters)
        cost = cost_of(group, choice)
        if cost < best - CLOSE:
            _copy(choice, best_choice)
            return cost
    return best


@kernel
def _improve(group, rule, desk, choice, counters, place, budget):
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


def new_front(size):
    """Room for so many nodes."""
    return Front(
        np.empty(size, np.int64),
        np.empty(size),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
    )


def wider_front(front, size):
    """The same nodes with room for more."""
    out = new_front(size)
    n = front.bound.size
    out.heap[:n], out.bound[:n], out.parent[:n] = front.heap, front.bound, front.parent
    out.option[:n], out.depth[:n] = front.option, front.depth
    return out


def open_root(front, counters, bound):
    """The first node of an empty front."""
    node = counters[USED]
    front.bound[node], front.parent[node], front.option[node], front.depth[node] = bound, -1, -1, 0
    front.heap[0] = node
    counters[USED] += 1
    counters[COUNT] = 1


@kernel
def _before(front, a, b):
    """Lower bound first; among equals the deeper node, then the younger."""
    if front.bound[a] != front.bound[b]:
        return front.bound[a] < front.bound[b]
    if front.depth[a] != front.depth[b]:
        return front.depth[a] > front.depth[b]
    return a > b


@kernel
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


@kernel
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


@kernel
def _prove(group, rule, bounds, desk, front, standing, budget):
    """Best-first until so many nodes have been looked at in all."""
    best_choice, numbers, counters = standing
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
                    for i in range(depth):
                        best_choice[i] = choice[i]
                    best_choice[depth] = o
                continue
            if rule.kind == CL:
                reach_of(rule.diverse, desk.work, desk.amounts, desk.used[2], bounds.grid, reach)
            else:
                reach[0] = base - (rule.bound - slack) if rule.kind == L2 else slack + rule.bound
            rest = completion(rule, bounds, depth + 1, reach, peak, max(highest, bounds.peak[o]), numbers[BEST] - CLOSE)
            if cost + rest < numbers[BEST] - CLOSE:
                _push(front, counters, max(front.bound[node], cost + rest), node, o, depth + 1)


@kernel
def step(task, group, rule, bounds, desk, front, standing, place, budget):
    """The slack of the standing choice; or one part of the search.

    START tries those scenarios of place that can still be cheaper; IMPROVE and PROVE go on where they were. All of them
    until so many nodes have been looked at in all.
    """
    choice, numbers, counters = standing
    if task == SLACK:
        return slack_of(group, rule, desk, choice)
    if task == START:
        for s in place:
            if bounds.root[s] < numbers[BEST] - CLOSE and counters[NODES] < budget:
                numbers[BEST] = start(group, rule, bounds, desk, s, choice, numbers[BEST], counters)
    elif task == IMPROVE:
        _improve(group, rule, desk, choice, counters, place, budget)
    else:
        _prove(group, rule, bounds, desk, front, standing, budget)
    return 0.0
