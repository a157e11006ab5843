"""The search over options: a first choice that meets the requirement, and then a proof that none is cheaper.

`find_choice` raises records greedily until the choice holds, and then takes back whatever was not needed.
`prove_choice` is branch and bound over the records in their order: the options of the first records with their true
overlap, and the rest bounded as if it shared no label with anything. It is exact, every cheaper choice on its way is
kept, and wherever it stops, the lowest branch that is left is a proven lower bound.

Lower bounds on the cost, which treat label sets of different records as disjoint.

Overlap only makes beliefs more uneven, so what holds for a choice holds for disjoint copies of it. For those each
requirement is a covering condition that is a sum over the records: "gains reach a need".

- Diversity. With m = l - 1, the tail is the largest value over theta of sum_L min(beta_L, theta) - m theta. So (c, l)
  holds iff for some peak P >= p_1 and some theta: sum_L min(beta_L, theta) >= P / c + m theta. The gain of an option
  is its own sum of min(belief, theta). Options above the peak are not allowed. Every pair (P, theta) is a scenario.
- L2. ||beta - d alpha||^2 without its products of two records is a sum over the records.
- Earth mover. min(beta, d alpha) is at most the sum of the records' own minima.

Theta runs over a grid; beliefs are rounded up to it, which errs on the safe side and keeps the maximum over theta on
the grid. For each scenario a table gives the least cost at which the records i, i + 1, ... reach a gain (a knapsack by
dynamic programming in whole units; gains are rounded up).
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.suppress.kernels.judge import CL, EMD, judge, lay_out

CLOSE = 1e-10
ONE_BY_ONE = 256
"""Records of the largest group that is raised step by step."""
FINE, FILLED, APART = 1.02, 13, 1.5
"""The grid of theta: beliefs within the first factor count as one, and no gap is wider than so many of these factors.
Peaks within the third factor share a scenario."""
UNITS, MORE_UNITS = 256, 2048
"""Units of a table: of diversity, and of closeness, which has one table only."""
SLIGHT = 1e-9


class Bounds(NamedTuple):
    """The grid of theta, the largest belief of every option, and per scenario: theta's position, the range of peaks,
    the needed units and their size, and the smallest cost of the whole group.

    least[s, i, q] is the least cost in scenario s for the records i, i + 1, ... to gain q units. `added[i]` is what the
    needs of these records grow by, since gains were made non-negative.
    """

    grid: np.ndarray
    peak: np.ndarray
    at: np.ndarray
    low: np.ndarray
    high: np.ndarray
    need: np.ndarray
    unit: np.ndarray
    root: np.ndarray
    least: np.ndarray
    added: np.ndarray


@kernel
def _belief_grid(group, records):
    """Return the ascending values of theta: the largest belief between two powers of FINE, and some of these powers up
    to above all sums."""
    step = np.log(FINE)
    last = np.int64(np.ceil(np.log(2.0 * records) / step))
    largest = np.zeros(last + 2500)  # beliefs down to 1e-18
    low = last
    v = before = 0.0
    for k in range(group.belief.size + group.flat.size):
        v = group.belief[k] if k < group.belief.size else group.flat[k - group.belief.size]
        if v != before and v > 0:
            place = np.int64(np.ceil(np.log(v) / step - SLIGHT))
            largest[last - place] = max(largest[last - place], v)
            low = min(low, place)
        before = v
    out = np.empty(last - low + 1)
    n = 0
    apart = FILLED
    for place in range(low, last + 1):
        if largest[last - place] > 0 or apart >= FILLED or place == last:
            out[n] = largest[last - place] if largest[last - place] > 0 else np.exp(place * step)
            n += 1
            apart = 0
        apart += 1
    return out[:n]


@kernel
def round_up(grid, v):
    """Return the first number of the grid that is not below a belief."""
    low, high = 0, grid.size - 1
    while low < high:
        middle = (low + high) // 2
        if grid[middle] < v * (1 - 1e-14):
            low = middle + 1
        else:
            high = middle
    return grid[low]


@kernel
def _diverse_gains(group, grid, labels):
    """Return gain[k, o] and peak[o] of every option."""
    options = group.cost.size
    gain, peak = np.zeros((grid.size, options)), group.flat.copy()
    for o in range(options):
        if group.flat[o] > 0:
            up = round_up(grid, group.flat[o])
            for j in range(grid.size):
                gain[j, o] = labels * min(up, grid[j])
        k = group.at[o]
        while k < group.at[o + 1]:
            v, n = group.belief[k], 0
            while k < group.at[o + 1] and group.belief[k] == v:
                n += 1
                k += 1
            peak[o] = max(peak[o], v)
            up = round_up(grid, v)
            for j in range(grid.size):
                gain[j, o] += n * min(up, grid[j])
    return gain, peak


@kernel
def _close_gains(group, rule):
    """Return the gain of every option under closeness."""
    d, alpha = rule.records, rule.alpha
    gain = np.zeros(group.cost.size)
    for o in range(gain.size):
        mass = 0.0
        flat = group.flat[o]
        for k in range(alpha.size if flat > 0 else group.at[o + 1] - group.at[o]):
            label = k if flat > 0 else group.label[group.at[o] + k]
            v = flat if flat > 0 else group.belief[group.at[o] + k]
            mass += v
            gain[o] += min(v, d * alpha[label]) if rule.kind == EMD else v * (2 * d * alpha[label] - v)
        if rule.kind == EMD:
            gain[o] += min(max(0.0, 1 - mass), d * rule.alpha_rest)
    return gain


@kernel
def _fill_least(group, gain, peak, high, unit, out):
    """Fill out[i, q] with the smallest cost for the records i, i + 1, ... to gain q units, by options below the
    peak."""
    d, width = out.shape[0] - 1, out.shape[1]
    out[d, 0] = 0.0
    for q in range(1, width):
        out[d, q] = np.inf
    cost, units = np.empty(group.cost.size), np.empty(group.cost.size, np.int64)
    for i in range(d - 1, -1, -1):
        n, most = 0, -1
        for o in range(group.first[i], group.first[i + 1]):
            u = min(width - 1, np.int64(np.ceil(gain[o] / unit - SLIGHT)))
            if peak[o] < high and u > most:
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
def _units(need, unit):
    return max(0, np.int64(np.ceil(need / unit - SLIGHT)))


@kernel
def cost_bounds(group, rule, limit):
    """Return tables of the scenarios that could hold at a cost below the limit."""
    d = group.first.size - 1
    added = np.zeros(d + 1)
    if rule.kind != CL:
        gain = _close_gains(group, rule)
        for i in range(d - 1, -1, -1):
            lowest = gain[group.first[i]]
            for o in range(group.first[i], group.first[i + 1]):
                lowest = min(lowest, gain[o])
            for o in range(group.first[i], group.first[i + 1]):
                gain[o] -= lowest
            added[i] = added[i + 1] - lowest
        # for L2: gains >= square of alpha - bound; for the earth mover: gains >= bound
        want = rule.bound if rule.kind == EMD else rule.alpha_square * rule.records**2 - rule.bound
        want += added[0] - rule.tolerance
        unit = max(want, 1e-9) / MORE_UNITS
        least = np.empty((1, d + 1, MORE_UNITS + 2))
        peak = np.zeros(gain.size)
        _fill_least(group, gain, peak, np.inf, unit, least[0])
        root = np.full(1, least[0, 0, _units(want, unit)])
        zero = np.zeros(1)
        units = np.full(1, unit)
        return Bounds(zero, peak, np.zeros(1, np.int64), zero, np.full(1, np.inf), zero, units, root, least, added)
    grid = _belief_grid(group, rule.records)
    gain, peak = _diverse_gains(group, grid, rule.alpha.size)
    tops = _peak_steps(peak)
    most = grid.size * tops.size
    at, low, high = np.empty(most, np.int64), np.empty(most), np.empty(most)
    need, unit, root = np.empty(most), np.empty(most), np.empty(most)
    least, rough = np.empty((8, d + 1, UNITS + 1)), np.empty((d + 1, UNITS + 1))
    s = 0
    for k in range(grid.size):
        step = rule.records / UNITS
        _fill_least(group, gain[k], peak, np.inf, step, rough)
        whole = abs(1 / grid[k] - np.rint(1 / grid[k])) < 1e-6  # then theta divides the gains of labels with it
        for j in range(tops.size):
            wanted = tops[j] / rule.c + (rule.bound - 1) * grid[k] if tops[j] > 0 else 0.0  # nothing is linked: holds
            if wanted > rule.records + SLIGHT or rough[0, min(UNITS, _units(wanted, step))] >= limit:
                continue
            if s == least.shape[0]:
                wider = np.empty((2 * s, d + 1, UNITS + 1))
                wider[:s] = least
                least = wider
            high[s] = tops[j + 1] if j + 1 < tops.size else np.inf
            unit[s] = max(wanted / UNITS, grid[k] if whole else 1e-9)
            _fill_least(group, gain[k], peak, high[s], unit[s], least[s])
            at[s], low[s], need[s] = k, tops[j], wanted
            root[s] = least[s, 0, _units(wanted, unit[s])]
            s += root[s] < limit
    return Bounds(grid, peak, at[:s], low[:s], high[:s], need[:s], unit[:s], root[:s], least[:s], added)


@kernel
def _peak_steps(peaks):
    """Return the lowest peak, the next one above APART times it, and so on."""
    out = np.empty(peaks.size)
    n = 0
    for o in stable_order(peaks):
        if n == 0 or peaks[o] > APART * out[n - 1]:
            out[n] = peaks[o]
            n += 1
    return out[:n]


@kernel
def completion(rule, bounds, desk, depth, slack, peak, own, limit):
    """Return the smallest cost of the records from `depth` on, given the state of the choice before them; infinite if
    hopeless. The desk holds the last evaluation.

    Scenarios that cost the whole group the limit or more are not looked at.
    """
    best = np.inf
    reach = np.full(bounds.grid.size, -1.0)
    for s in range(bounds.at.size):
        if bounds.root[s] >= limit or own >= bounds.high[s]:
            continue
        need = bounds.added[depth] - slack
        if rule.kind == CL:
            k = bounds.at[s]
            if reach[k] < 0:
                reach[k] = 0.0
                for q in range(desk.used[1]):
                    reach[k] += desk.count[q] * min(round_up(bounds.grid, desk.value[q]), bounds.grid[k])
            need = bounds.need[s] + max(0.0, peak - bounds.low[s]) / rule.c - reach[k]
        q = min(bounds.least.shape[2] - 1, _units(need, bounds.unit[s]))
        best = min(best, bounds.least[s, depth, q])
    return best


# ---------------------------------------------------------------- the search


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
