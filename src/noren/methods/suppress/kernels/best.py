"""The search over options: a first choice that meets the requirement, and then a proof that none is cheaper.

`find_choice` raises records greedily until the choice holds, and then takes back whatever was not needed.
`prove_choice` is branch and bound over the records in their order: the options of the first records with their true
overlap, and the rest bounded as if it shared no label with anything. It is exact, every cheaper choice on its way is
kept, and wherever it stops, the lowest branch that is left is a proven lower bound.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.suppress.kernels.bound import completion
from noren.methods.suppress.kernels.judge import judge, lay_out

CLOSE = 1e-10
ONE_BY_ONE = 256
"""Records of the largest group that is raised step by step."""


@kernel
def cost_of(group, choice):
    total = 0.0
    for i in range(choice.size):
        total += group.cost[choice[i]]
    return total


@kernel
def _slack_of(group, rule, desk, choice):
    lay_out(group, rule, desk, choice, choice.size, -1)
    return judge(group, rule, desk, -1)[1]


@kernel
def _take_back(group, rule, desk, choice):
    """Give every record in turn the cheapest option with which the choice still holds, until nothing changes; return
    how many options were examined."""
    looked = 0
    changed = True
    while changed:
        changed = False
        for i in range(choice.size):
            own = choice[i]
            if group.cost[own] <= group.cost[group.first[i]] + CLOSE:
                continue
            lay_out(group, rule, desk, choice, choice.size, i)
            for o in range(group.first[i], own):
                if group.cost[o] > group.cost[own] - CLOSE:
                    break
                looked += 1
                if judge(group, rule, desk, o)[1] >= -rule.tolerance:
                    choice[i], changed = o, True
                    break
    return looked


@kernel
def _raise(group, rule, desk, choice, limit):
    """From a choice that fails, take the steps with the most slack per cost, until it holds or would reach the limit;
    return whether it holds, and how many options were examined.

    One step after every look at all records; in groups of more than ONE_BY_ONE several, or it would take for ever.
    """
    d = choice.size
    slack = _slack_of(group, rule, desk, choice)
    most = max(1, d // ONE_BY_ONE)
    looked = 0
    while slack < -rule.tolerance:
        spent = cost_of(group, choice)
        ratios, options = np.zeros(d), np.empty(d, np.int64)
        for i in range(d):
            own = choice[i]
            if group.cost[group.first[i + 1] - 1] - group.cost[own] <= CLOSE:
                continue
            lay_out(group, rule, desk, choice, d, i)
            for o in range(group.first[i], group.first[i + 1]):
                step = group.cost[o] - group.cost[own]
                if step <= CLOSE or spent + step >= limit - CLOSE:
                    continue
                looked += 1
                ratio = (min(judge(group, rule, desk, o)[1], 0.0) - slack) / step
                if ratio > -ratios[i]:
                    ratios[i], options[i] = -ratio, o
        order = stable_order(ratios)
        raised = np.empty(d, np.int64)
        for i in range(d):
            raised[i] = choice[i]
        for k in range(most):
            if ratios[order[k]] < 0:
                raised[order[k]] = options[order[k]]
        reached = _slack_of(group, rule, desk, raised)
        if reached > slack and cost_of(group, raised) < limit - CLOSE:
            slack = reached
            for i in range(d):
                choice[i] = raised[i]
        elif most > 1:
            most //= 2
        else:
            return False, looked
    return True, looked


@kernel
def find_choice(group, rule, desk):
    """Return a cheap choice that holds, its cost (infinite if none was found), and how many options were examined."""
    d = group.first.size - 1
    choice, last = np.empty(d, np.int64), np.empty(d, np.int64)
    for i in range(d):
        choice[i], last[i] = group.first[i], group.first[i + 1] - 1  # nothing and everything removed
    if _slack_of(group, rule, desk, choice) >= -rule.tolerance:
        return choice, 0.0, 1
    most = cost_of(group, last) if _slack_of(group, rule, desk, last) >= -rule.tolerance else np.inf
    holds, looked = _raise(group, rule, desk, choice, most)
    if not holds:
        return last, most, 1 + looked
    looked += _take_back(group, rule, desk, choice)
    return choice, cost_of(group, choice), 1 + looked


@kernel
def prove_choice(group, rule, bounds, desk, best, cost, root, budget):
    """Search for a choice that is cheaper than `best`, until so many options were examined; `root` is an initial lower
    bound. Returns the cost of the best choice, a proven lower bound, and how many options were examined."""
    d = best.size
    most = 0
    for i in range(d):
        most = max(most, group.first[i + 1] - group.first[i])
    option, low = np.empty((d, most), np.int64), np.empty((d, most))
    many, place = np.zeros(d, np.int64), np.zeros(d, np.int64)
    choice, peaks, spent = np.empty(d, np.int64), np.zeros(d + 1), np.zeros(d + 1)
    looked = depth = 0
    parent = root
    while True:
        lay_out(group, rule, desk, choice, depth, -1)
        n = 0
        found, keys = np.empty(most, np.int64), np.empty(most)
        for o in range(group.first[depth], group.first[depth + 1]):
            least = spent[depth] + group.cost[o]
            if least >= cost - CLOSE:
                break
            looked += 1
            _, slack, peak = judge(group, rule, desk, o)
            if depth + 1 < d:
                own = max(peaks[depth], bounds.peak[o])
                rest = completion(rule, bounds, desk, depth + 1, slack, peak, own, cost - CLOSE)
                least = max(parent, least + rest)
                if least < cost - CLOSE:
                    found[n], keys[n] = o, least
                    n += 1
            elif slack >= -rule.tolerance:
                cost = least
                for i in range(depth):
                    best[i] = choice[i]
                best[depth] = o
        order = stable_order(keys[:n])
        for k in range(n):
            option[depth, k], low[depth, k] = found[order[k]], keys[order[k]]
        many[depth], place[depth] = n, 0
        while depth >= 0 and (place[depth] == many[depth] or low[depth, place[depth]] >= cost - CLOSE):
            depth -= 1
        if depth < 0:
            return cost, cost, looked
        if looked >= budget:
            break
        o, parent = option[depth, place[depth]], low[depth, place[depth]]
        place[depth] += 1
        choice[depth] = o
        depth += 1
        peaks[depth] = max(peaks[depth - 1], bounds.peak[o])
        spent[depth] = spent[depth - 1] + group.cost[o]
    lowest = cost
    for i in range(depth + 1):
        if place[i] < many[i]:
            lowest = min(lowest, low[i, place[i]])
    return cost, lowest, looked
