"""The distance of a choice of options from its requirement: all records but one are summed once, then options are
tried.

Slack is negative while the requirement does not hold; beliefs are sums over the group's d records:

- (c, l)-diversity: c (p_l + p_{l+1} + ...) - p_1, and as score the largest l' that holds;
- L2 closeness: (d t)^2 - ||beta - d alpha||^2, and as score minus the squared distance;
- earth mover's closeness (all labels equally far apart): what beta and d alpha have in common, less d (1 - t).
"""

# mypy: ignore-errors
# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order

CL, L2, EMD = 0, 1, 2
SORTED_BY_HAND = 40


class Rule(NamedTuple):
    """A requirement: `bound` is l, (d t)^2 or d (1 - t); the prior, the sum of its squares, and its mass without a
    label."""

    kind: int
    c: float
    bound: float
    records: float
    alpha: np.ndarray
    alpha_square: float
    alpha_rest: float
    tolerance: float


class Desk(NamedTuple):
    """Working memory: the summed beliefs (without the common offset) and their labels, the beliefs of the tried option,
    and the values to check."""

    belief: np.ndarray
    extra: np.ndarray
    touched: np.ndarray
    value: np.ndarray
    count: np.ndarray
    totals: np.ndarray
    """The offset; under closeness what the laid out beliefs come to, and their sum."""
    used: np.ndarray
    """Laid out labels, and different values of the option judged last."""


def new_desk(labels) -> Any:
    """Allocate memory for so many labels."""
    return Desk(
        np.zeros(labels), np.zeros(labels), np.empty(labels, np.int64), np.empty(labels + 1),
        np.empty(labels + 1, np.int64), np.zeros(3), np.zeros(2, np.int64),
    )  # fmt: skip


@kernel
def lay_out(group, rule, desk, choice, records, skip):
    """Sum the beliefs of the chosen options of so many records but one."""
    for k in range(desk.used[0]):
        desk.belief[desk.touched[k]] = 0.0
    found = 0
    offset = 0.0
    for i in range(records):
        o = choice[i]
        if i == skip:
            continue
        offset += group.flat[o]
        for k in range(group.at[o], group.at[o + 1]):
            label = group.label[k]
            if desk.belief[label] == 0:
                desk.touched[found] = label
                found += 1
            desk.belief[label] += group.belief[k]
    desk.used[0], desk.totals[0] = found, offset
    if rule.kind != CL:
        desk.totals[1], desk.totals[2] = _compare(rule, desk, offset)


@kernel
def _compare(rule, desk, offset):
    """Return the squared distance of the summed beliefs, all raised by an offset, from alpha (L2), or their overlap
    with it (EMD); and their sum."""
    alpha, d = rule.alpha, rule.records
    total, mass = 0.0, offset * alpha.size
    if rule.kind == L2:  # all labels as if none were touched
        total = offset * (mass - 2 * d * (1 - rule.alpha_rest)) + d * d * rule.alpha_square
    elif offset > 0:
        for label in range(alpha.size):
            total += min(offset, d * alpha[label])
    for k in range(desk.used[0]):
        label = desk.touched[k]
        total += _change(rule, label, offset, offset + desk.belief[label])
        mass += desk.belief[label]
    return total, mass


@kernel
def _change(rule, label, before, after):
    """Return the change of this value if the belief in one label grows."""
    own = rule.records * rule.alpha[label]
    if rule.kind == L2:
        return (after - before) * (after + before - 2 * own)
    return min(after, own) - min(before, own)


@kernel
def _gather(group, desk, option, offset):
    """Gather the beliefs in all labels if the remaining record takes this option, each with its number of labels;
    return how many."""
    belief, extra, value, count = desk.belief, desk.extra, desk.value, desk.count
    first = group.at[option] if option >= 0 else 0
    last = group.at[option + 1] if option >= 0 else 0
    for k in range(first, last):
        extra[group.label[k]] = group.belief[k]
    n, covered = 0, 0
    for k in range(desk.used[0] + last - first):
        label = desk.touched[k] if k < desk.used[0] else group.label[first + k - desk.used[0]]
        v = extra[label] + offset
        if k < desk.used[0]:
            v += belief[label]
        elif extra[label] == 0:  # among the touched
            continue
        extra[label] = 0.0
        covered += 1
        if n == 0 or value[n - 1] != v:
            value[n], count[n] = v, 0
            n += 1
        count[n - 1] += 1
    if offset > 0 and covered < belief.size:
        value[n], count[n] = offset, belief.size - covered
        n += 1
    return n


@kernel
def _sort_descending(values, counts, n):
    if n <= SORTED_BY_HAND:
        for k in range(1, n):
            v, c = values[k], counts[k]
            j = k
            while j > 0 and values[j - 1] < v:
                values[j], counts[j] = values[j - 1], counts[j - 1]
                j -= 1
            values[j], counts[j] = v, c
    else:
        keys, old = np.empty(n), np.empty(n, np.int64)
        for k in range(n):
            keys[k], old[k] = -values[k], counts[k]
        order = stable_order(keys)
        for k in range(n):
            values[k], counts[k] = -keys[order[k]], old[order[k]]


@kernel
def diversity(values, counts, n, c, l, tolerance):
    """Return (largest l' that holds, slack for l, p_1) of beliefs with multiplicities; reorders them."""
    _sort_descending(values, counts, n)
    labels = 0
    for k in range(n):
        labels += counts[k]
    if labels == 0:
        return np.float64(l), 0.0, 0.0
    peak = values[0]
    left = labels - (l - 1)
    tail, total, reach = 0.0, 0.0, 0
    wanted = peak / c - tolerance
    found = False
    for k in range(n - 1, -1, -1):
        take = min(left, counts[k])
        if take > 0:
            tail += take * values[k]
            left -= take
        if not found:
            if total + counts[k] * values[k] >= wanted:
                reach += max(1, np.int64(np.ceil((wanted - total) / values[k])))
                found = True
            else:
                total += counts[k] * values[k]
                reach += counts[k]
        elif left <= 0:
            break
    return np.float64(labels - reach + 1 if found else 0), c * tail - peak, peak


@kernel
def judge(group, rule, desk, option):
    """Return (score, slack, largest belief) if the remaining record takes this option; -1 for none at all."""
    flat = group.flat[option] if option >= 0 else 0.0
    offset = desk.totals[0] + flat
    if rule.kind == CL:
        desk.used[1] = _gather(group, desk, option, offset)
        return diversity(desk.value, desk.count, desk.used[1], rule.c, np.int64(rule.bound), rule.tolerance)
    total, mass = desk.totals[1], desk.totals[2]
    if flat > 0:
        total, mass = _compare(rule, desk, offset)
    elif option >= 0:
        for k in range(group.at[option], group.at[option + 1]):
            before, more = desk.belief[group.label[k]] + offset, group.belief[k]
            total += _change(rule, group.label[k], before, before + more)
            mass += more
    if rule.kind == L2:
        return -total, rule.bound - total, 0.0
    total += min(max(0.0, rule.records - mass), rule.records * rule.alpha_rest)
    return total, total - rule.bound, 0.0
