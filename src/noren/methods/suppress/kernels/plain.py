"""The search under closeness without anything but a proof: best-first over records, bounded by one table of gains.

Exact, and in small groups done before a good first choice would pay: most groups need nothing else, and then nothing
else is compiled. A node fixes the options of the first records with their true overlap; the rest is bounded as if it
were disjoint from everything, as in `bound`. What a choice reaches is its value, which must come up to what is wanted:

- L2 closeness: ||d alpha||^2 - ||beta - d alpha||^2, wanted ||d alpha||^2 - (d t)^2;
- earth mover's closeness (labels equally far apart): what beta and d alpha have in common, wanted d (1 - t).
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernel import kernel

L2, EMD = 1, 2
UNITS = 2048
"""Steps of a table of gains."""
SLIGHT, CLOSE = 1e-9, 1e-10
BEST, LOWEST = 0, 1
LOOKED, OPEN, USED = 0, 1, 2
HEAP, PARENT, OPTION, DEPTH = 0, 1, 2, 3


class Open(NamedTuple):
    """Nodes by number, and a heap of those that are open. Nothing is judged twice, so that the search can go on."""

    bound: np.ndarray
    """Per node: what any choice below it costs at least."""
    nodes: np.ndarray
    """(nodes, 4): a place of the heap, and a node's parent, option and depth."""
    numbers: np.ndarray
    """The cost of the best choice so far (BEST), and the proven lower bound (LOWEST)."""
    counters: np.ndarray
    """How many options were LOOKED at, nodes are OPEN, and numbers of nodes are USED."""


def no_nodes(most):
    """An empty front with room for so many nodes."""
    return Open(np.empty(most), np.empty((most, 4), np.int64), np.array([np.inf, 0.0]), np.zeros(3, np.int64))


@kernel
def _effect(group, rule, belief, offset, mass, o):
    """What an option adds to the value and to the mass of beliefs that are laid out; `offset` is in all of them."""
    flat = group.flat[o]
    if flat > 0:
        more = flat * rule.labels
        return flat * (2 * rule.records * (1 - rule.alpha_rest) - 2 * mass - more), more
    value = more = 0.0
    for k in range(group.at[o], group.at[o + 1]):
        c, v = group.cls[k], group.val[k]
        size, own, b = group.size[c], rule.records * group.mass[c], belief[c] + offset
        if rule.kind == L2:
            value += v * (2 * own - (v + 2 * b) * size)
        else:
            value += min((b + v) * size, own) - min(b * size, own)
        more += v * size
    return value, more


@kernel
def _least(group, order, gain, unit, width, out):
    """out[i, q]: the least cost at which the records order[i], order[i + 1], ... gain q units."""
    cost, units = np.empty(gain.size), np.empty(gain.size, np.int64)
    for i in range(order.size - 1, -1, -1):
        n, most = 0, -1
        for o in range(group.first[order[i]], group.first[order[i] + 1]):
            u = min(width - 1, np.int64(np.ceil(gain[o] / unit - SLIGHT)))
            if u > most:
                most = u
                if n and cost[n - 1] >= group.cost[o] - 1e-12:
                    n -= 1
                cost[n], units[n] = group.cost[o], u
                n += 1
        for q in range(width):
            best = np.inf
            for k in range(n):
                if cost[k] >= best:
                    break
                best = min(best, cost[k] + out[i + 1, max(0, q - units[k])])
            out[i, q] = best


@kernel
def _before(open_, a, b):
    """Lower bound first; among equals the deeper node, then the younger."""
    if open_.bound[a] != open_.bound[b]:
        return open_.bound[a] < open_.bound[b]
    if open_.nodes[a, DEPTH] != open_.nodes[b, DEPTH]:
        return open_.nodes[a, DEPTH] > open_.nodes[b, DEPTH]
    return a > b


@kernel
def _push(open_, bound, parent, option, depth):
    nodes, counters = open_.nodes, open_.counters
    node, k = counters[USED], counters[OPEN]
    counters[USED], counters[OPEN] = node + 1, k + 1
    open_.bound[node] = bound
    nodes[node, PARENT], nodes[node, OPTION], nodes[node, DEPTH] = parent, option, depth
    while k > 0 and _before(open_, node, nodes[(k - 1) // 2, HEAP]):
        nodes[k, HEAP] = nodes[(k - 1) // 2, HEAP]
        k = (k - 1) // 2
    nodes[k, HEAP] = node


@kernel
def _pop(open_):
    nodes, n = open_.nodes, open_.counters[OPEN] - 1
    open_.counters[OPEN] = n
    top, node = nodes[0, HEAP], nodes[n, HEAP]
    k = 0
    while 2 * k + 1 < n:
        c = 2 * k + 1
        if c + 1 < n and _before(open_, nodes[c + 1, HEAP], nodes[c, HEAP]):
            c += 1
        if not _before(open_, nodes[c, HEAP], node):
            break
        nodes[k, HEAP] = nodes[c, HEAP]
        k = c
    nodes[k, HEAP] = node
    return top


@kernel(work=lambda group, *_: group.cost.size)
def prove(group, rule, order, wanted, open_, choice, budget):
    """Whether the cheapest choice of options that has the value `wanted` is known: `choice`, per record in `order`.

    Every record must have all its options; only under L2 is one `flat`. Ends once so many options have been looked at
    in all; `open_` has room for as many nodes and for the options of a record. BEST is infinite if no choice will do.
    """
    numbers, counters, bounds, nodes = open_.numbers, open_.counters, open_.bound, open_.nodes
    d, records = order.size, rule.records
    rest = records * rule.alpha_rest if rule.kind == EMD else 0.0
    belief, gain = np.zeros(group.size.size), np.empty(group.cost.size)
    added, path = np.zeros(d + 1), np.empty(d, np.int64)
    for i in range(d - 1, -1, -1):  # gains from nothing, made non-negative record by record
        lowest = np.inf
        for turn in range(2):
            for o in range(group.first[order[i]], group.first[order[i] + 1]):
                if turn:
                    gain[o] -= lowest
                else:
                    value, mass = _effect(group, rule, belief, 0.0, 0.0, o)
                    gain[o] = value + min(max(0.0, 1 - mass), rest)
                    lowest = min(lowest, gain[o])
        added[i] = added[i + 1] - lowest
    need = wanted + added[0]
    unit = max(need, 1e-9) / UNITS
    width = UNITS + 1 if need > 0 else 1
    least = np.empty((d + 1, width))
    least[d] = np.inf
    least[d, 0] = 0.0
    _least(group, order, gain, unit, width, least)
    if counters[USED] == 0 and least[0, width - 1] < np.inf:
        _push(open_, least[0, width - 1], -1, -1, 0)
    laid = 0
    while counters[OPEN] and bounds[nodes[0, HEAP]] < numbers[BEST] - CLOSE:
        numbers[LOWEST] = bounds[nodes[0, HEAP]]
        if counters[LOOKED] >= budget:
            return False
        node = _pop(open_)
        for i in range(laid):
            if group.flat[path[i]] > 0:
                continue
            for k in range(group.at[path[i]], group.at[path[i] + 1]):
                belief[group.cls[k]] = 0.0
        laid = depth = nodes[node, DEPTH]
        up = node
        for i in range(depth - 1, -1, -1):
            path[i] = nodes[up, OPTION]
            up = nodes[up, PARENT]
        spent = value = mass = offset = 0.0
        for i in range(depth):
            o = path[i]
            more, heavier = _effect(group, rule, belief, offset, mass, o)
            spent, value, mass = spent + group.cost[o], value + more, mass + heavier
            if group.flat[o] > 0:
                offset += group.flat[o]
            else:
                for k in range(group.at[o], group.at[o + 1]):
                    belief[group.cls[k]] += group.val[k]
        for o in range(group.first[order[depth]], group.first[order[depth] + 1]):
            cost = spent + group.cost[o]
            if cost >= numbers[BEST] - CLOSE:
                break
            counters[LOOKED] += 1
            more, heavier = _effect(group, rule, belief, offset, mass, o)
            lacking = wanted - (value + more + min(max(0.0, records - mass - heavier), rest))
            if depth + 1 < d:
                q = min(width - 1, max(0, np.int64(np.ceil((lacking + added[depth + 1]) / unit - SLIGHT))))
                bound = max(bounds[node], cost + least[depth + 1, q])
                if bound < numbers[BEST] - CLOSE:
                    _push(open_, bound, node, o, depth + 1)
            elif lacking <= 0:
                numbers[BEST] = cost
                for i in range(depth):
                    choice[i] = path[i]
                choice[depth] = o
    numbers[LOWEST] = numbers[BEST]
    return True
