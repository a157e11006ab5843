"""Good first choices for the best-first search over options: read off the bounds, mended, raised until they hold.

A choice is one option per record. NODES counts the options that were looked at.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.suppress.kernels.bound import SLIGHT
from noren.methods.suppress.kernels.judge import judge, lay_out, lift, put_back

CLOSE = 1e-10
ONE_BY_ONE = 256
"""Records of the largest group that is raised step by step."""
NODES = 2
"""Which counter counts nodes."""


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
