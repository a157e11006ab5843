"""Lower bounds on the cost: label sets of different records are treated as if they were disjoint.

Overlap only makes beliefs more uneven, so what holds for a choice holds for disjoint copies of it. For those each
requirement is a covering condition that is a sum over the records: "gains reach a need".

- Diversity. With m = l - 1, the tail is the largest value over theta of sum_L min(beta_L, theta) - m theta. So (c, l)
  holds iff for some peak P >= p_1 and some theta: sum_L min(beta_L, theta) >= P / c + m theta. The gain of an option
  is its own sum of min(belief, theta). Options above the peak are not allowed. Every pair (P, theta) is a scenario.
- L2. ||beta - d alpha||^2 without its products of two records is a sum over the records.
- Earth mover. min(beta, d alpha) is at most the sum of the records' own minima.

Theta runs over a grid that contains the options' beliefs; a belief off the grid is rounded up to it, which errs on the
safe side and keeps the maximum over theta on the grid. For each scenario a table gives the least cost at which the
records i, i + 1, ... reach a gain (a knapsack by dynamic programming in whole units; gains are rounded up).
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.suppress.kernels.judge import CL, EMD

FINE, COARSE = 1.02, 1.3
UNITS = 256
ROUGH = 64
"""Units of the tables that only say which scenarios are worth a fine one."""
SLIGHT = 1e-9


class Scenarios(NamedTuple):
    """What could hold, before any fine table is made; `floor` is a lower bound on the cost of the whole group.

    `added` is what the needs of the records from i on grow by, since gains were made non-negative.
    """

    grid: np.ndarray
    gain: np.ndarray
    peak: np.ndarray
    at: np.ndarray
    top: np.ndarray
    ceiling: np.ndarray
    need: np.ndarray
    unit: np.ndarray
    floor: np.ndarray
    added: np.ndarray


class Bounds(NamedTuple):
    """grid of theta, gain[o, k] and peak[o] of every option, and per scenario: place of theta, peak, need, unit.

    Peaks within FINE share a scenario: `top` is the lowest of them, `ceiling` lies above the highest. Scenarios stand
    in the order of `root`, the least cost of the whole group. Scenario s has the table
    least[start[s] + i * width[s] + q]: the least cost for the records i, i + 1, ... to gain q units.
    """

    grid: np.ndarray
    gain: np.ndarray
    peak: np.ndarray
    at: np.ndarray
    top: np.ndarray
    ceiling: np.ndarray
    need: np.ndarray
    unit: np.ndarray
    root: np.ndarray
    start: np.ndarray
    width: np.ndarray
    least: np.ndarray
    added: np.ndarray


@kernel
def theta_grid(group, records):
    """Beliefs of options, those closer than FINE merged upwards, and gaps wider than COARSE filled."""
    runs = np.empty(group.val.size)
    n = 0
    for k in range(runs.size):
        if k == 0 or group.val[k] != group.val[k - 1]:
            runs[n] = group.val[k]
            n += 1
    order = stable_order(runs[:n])
    grid = np.empty(4096)
    grid[0] = 2.0 * records
    found = 1
    for k in range(n - 1, -1, -1):
        v = runs[order[k]]
        while grid[found - 1] / v > COARSE and found < grid.size - 1:
            grid[found] = max(v, grid[found - 1] / COARSE)
            found += 1
        if grid[found - 1] / v > FINE and found < grid.size - 1:
            grid[found] = v
            found += 1
    rising = np.empty(found)
    for k in range(found):
        rising[k] = grid[found - 1 - k]
    return rising


@kernel
def _at_least(grid, v):
    """The place of the first number of an ascending grid that is not below v."""
    low, high = 0, grid.size
    while low < high:
        middle = (low + high) // 2
        if grid[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _diverse_gains(group, grid):
    """gain[o, k] and peak[o] of every option."""
    options = group.cost.size
    gain = np.zeros((options, grid.size))
    peak = np.zeros(options)
    for o in range(options):
        k = group.at[o]
        while k < group.at[o + 1]:
            v = group.val[k]
            n = 0
            while k < group.at[o + 1] and group.val[k] == v:
                n += group.size[group.cls[k]]
                k += 1
            peak[o] = max(peak[o], v)
            up = grid[min(grid.size - 1, _at_least(grid, v * (1 - 1e-14)))]
            for j in range(grid.size):
                gain[o, j] += n * min(up, grid[j])
    return gain, peak


@kernel
def _close_gains(group, rule):
    """The gain of every option under closeness."""
    gain = np.zeros(group.cost.size)
    for o in range(gain.size):
        mass = 0.0
        k = group.at[o]
        while k < group.at[o + 1]:
            v = group.val[k]
            n = 0
            own = 0.0
            while k < group.at[o + 1] and group.val[k] == v:
                c = group.cls[k]
                n += group.size[c]
                if rule.kind == EMD:
                    own += min(v * group.size[c], rule.records * group.mass[c])
                else:
                    own -= v * (v * group.size[c] - 2 * rule.records * group.mass[c])
                k += 1
            mass += n * v
            gain[o] += own
        if rule.kind == EMD:
            gain[o] += min(max(0.0, 1 - mass), rule.records * rule.alpha_rest)
    return gain


@kernel
def _least(group, gain, column, peak, top, unit, width, out, start):
    """Fill out[start + i * width + q] from a column of gains; records that lack options gain anything for nothing."""
    d = group.first.size - 1
    last = start + d * width
    out[last] = 0.0
    for q in range(1, width):
        out[last + q] = np.inf
    cost = np.empty(group.cost.size)
    units = np.empty(group.cost.size, np.int64)
    for i in range(d - 1, -1, -1):
        here, after = start + i * width, start + (i + 1) * width
        if not group.complete[i]:
            for q in range(width):
                out[here + q] = out[after]
            continue
        n = 0
        most = -1
        for o in range(group.first[i], group.first[i + 1]):
            if peak[o] > top * (1 + 1e-12):
                continue
            u = min(width - 1, np.int64(np.ceil(gain[o, column] / unit - SLIGHT)))
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
                best = min(best, cost[k] + out[after + max(0, q - units[k])])
            out[here + q] = best


def _shifted(group, gain):
    """Gains made non-negative record by record, and the sum of what was added from record i on."""
    lowest = np.minimum.reduceat(gain, group.first[:-1])
    added = np.append(np.cumsum(-lowest[::-1])[::-1], 0.0)
    return gain - np.repeat(lowest, np.diff(group.first)), added


@kernel
def _forced(group, peak, top):
    """Least cost at which no record believes in a label above the top, whatever the tail."""
    total = 0.0
    for i in range(group.first.size - 1):
        least = np.inf if group.complete[i] else 0.0
        for o in range(group.first[i], group.first[i + 1]):
            if peak[o] <= top * (1 + 1e-12):
                least = min(least, group.cost[o])
        total += least
    return total


def scenarios(group, rule):
    """All scenarios, and a cheap lower bound on each one's cost."""
    if rule.kind == CL:
        return _diverse_scenarios(group, rule)
    gain, added = _shifted(group, _close_gains(group, rule))
    # for L2: gains >= square of alpha - bound; for the earth mover: gains >= bound
    want = rule.bound if rule.kind == EMD else rule.alpha_square * rule.records**2 - rule.bound
    want += added[0] - rule.tolerance
    need, unit = np.array([want]), np.array([max(want, 1e-9) / (8 * UNITS)])
    none, above = np.zeros(1), np.full(1, np.inf)
    peak = np.zeros(gain.size)
    return Scenarios(np.ones(1), gain[:, None], peak, np.zeros(1, np.int64), none, above, need, unit, none, added)


@kernel
def _diverse_scenarios(group, rule):
    """All scenarios of (c, l)-diversity.

    The bound takes the peak and the tail apart: one rough table a theta, of all options, serves every peak.
    """
    d = group.first.size - 1
    grid = theta_grid(group, rule.records)
    gain, peak = _diverse_gains(group, grid)
    tops = _thinned(peak, stable_order(peak))
    many = tops.size * grid.size
    at, top, ceiling = np.empty(many, np.int64), np.empty(many), np.empty(many)
    need, unit, floor = np.empty(many), np.empty(many), np.zeros(many)
    most = np.zeros(grid.size)
    s = 0
    for j in range(tops.size):
        above = tops[j + 1] * (1 - 1e-9) if j + 1 < tops.size else np.inf
        forced = _forced(group, peak, above)
        for k in range(grid.size):
            if tops[j] == 0:  # nothing is linked: holds
                want, step = 0.0, 1.0
            else:
                want = tops[j] / rule.c + (rule.bound - 1) * grid[k]
                if want > d + SLIGHT:
                    continue
                whole = abs(1 / grid[k] - np.rint(1 / grid[k])) < 1e-6
                step = max(grid[k], want / UNITS) if whole else want / UNITS
            at[s], top[s], ceiling[s], need[s], unit[s], floor[s] = k, tops[j], above, want, step, forced
            most[k] = max(most[k], want)
            s += 1
    rough = np.empty((d + 1) * (ROUGH + 1))
    for k in range(grid.size):
        if most[k] > 0:
            _least(group, gain, k, peak, np.inf, most[k] / ROUGH, ROUGH + 1, rough, 0)
            for q in range(s):
                if at[q] == k:
                    wide = np.int64(np.ceil(need[q] * ROUGH / most[k] - SLIGHT))
                    floor[q] = max(floor[q], rough[min(ROUGH, max(0, wide))])
    added = np.zeros(d + 1)
    return Scenarios(grid, gain, peak, at[:s], top[:s], ceiling[:s], need[:s], unit[:s], floor[:s], added)


def cost_bounds(group, listed, limit, most):
    """Tables of the scenarios that could hold at a cost below the limit, of so many with the lowest floors."""
    wanted = np.zeros(listed.floor.size, np.bool_)
    wanted[np.argsort(listed.floor, kind="stable")[:most]] = True
    root, width, start, kept, least = _tables(group, listed, wanted & (listed.floor < limit), limit)
    order = np.argsort(root, kind="stable")
    kept = kept[order]
    return Bounds(
        listed.grid,
        listed.gain,
        listed.peak,
        listed.at[kept],
        listed.top[kept],
        listed.ceiling[kept],
        listed.need[kept],
        listed.unit[kept],
        root[order],
        start[order],
        width[order],
        least,
        listed.added,
    )


def no_bounds():
    """No scenarios at all, for what looks at none."""
    none, whole = np.empty(0), np.empty(0, np.int64)
    return Bounds(none, np.empty((0, 1)), none, whole, none, none, none, none, none, whole, whole, none, none)


@kernel
def _tables(group, listed, wanted, limit):
    """For the wanted scenarios that cost less than the limit: cost, width and place of the table, and their numbers;
    and all tables one after the other."""
    d = group.first.size - 1
    many = wanted.size
    root, width = np.empty(many), np.empty(many, np.int64)
    start, kept = np.empty(many, np.int64), np.empty(many, np.int64)
    least = np.empty(0)
    n = used = 0
    for s in range(many):
        if not wanted[s]:
            continue
        wide = max(0, np.int64(np.ceil(listed.need[s] / listed.unit[s] - SLIGHT))) + 1
        room = used + (d + 1) * wide
        if room > least.size:
            longer = np.empty(2 * room)
            for k in range(used):
                longer[k] = least[k]
            least = longer
        _least(group, listed.gain, listed.at[s], listed.peak, listed.ceiling[s], listed.unit[s], wide, least, used)
        if least[used + wide - 1] < limit:
            root[n], width[n], start[n], kept[n] = least[used + wide - 1], wide, used, s
            used = room
            n += 1
    return root[:n], width[:n], start[:n], kept[:n], least[:used]


@kernel
def _thinned(peaks, order):
    """Peaks in ascending order, those within FINE of the one below left out: they count as that one."""
    out = np.empty(peaks.size)
    n = 0
    for k in range(order.size):
        p = peaks[order[k]]
        if n == 0 or p > FINE * out[n - 1]:
            out[n] = p
            n += 1
    return out[:n]


@kernel
def reach_of(diverse, values, counts, n, grid, out):
    """out[k] = sum of counts * min(value, grid[k]) for values in descending order, off-grid values rounded up.

    For (c, l)-diversity alone.
    """
    if diverse is None:
        return
    total = 0.0
    up = np.empty(n)
    k = grid.size - 1
    for q in range(n):
        while k > 0 and grid[k - 1] >= values[q] * (1 - 1e-14):
            k -= 1
        up[q] = grid[k]
        total += up[q] * counts[q]
    above = q = 0
    for k in range(grid.size - 1, -1, -1):
        while q < n and up[q] > grid[k]:
            total -= up[q] * counts[q]
            above += counts[q]
            q += 1
        out[k] = total + above * grid[k]


@kernel
def completion(rule, bounds, depth, reach, peak, chosen_peak, limit):
    """Least cost of the records from `depth` on, given what the records before them reach; infinite if hopeless.

    Scenarios that cost the whole group the limit or more are not looked at.
    """
    best = np.inf
    for s in range(bounds.at.size):
        if bounds.root[s] >= limit:
            break
        if chosen_peak > bounds.ceiling[s]:
            continue
        need = bounds.need[s] - reach[bounds.at[s]]
        if rule.kind == CL:
            need += max(0.0, peak - bounds.top[s]) / rule.c
        else:
            need += bounds.added[depth] - bounds.added[0]
        q = min(bounds.width[s] - 1, max(0, np.int64(np.ceil(need / bounds.unit[s] - SLIGHT))))
        best = min(best, bounds.least[bounds.start[s] + depth * bounds.width[s] + q])
    return best
