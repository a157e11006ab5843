"""How far a choice of options is from its requirement: all records but one are laid out once, then options are tried.

Slack is negative while the requirement does not hold; beliefs are sums over the group's d records:

- (c, l)-diversity: c (p_l + p_{l+1} + ...) - p_1, and as score the largest l' that holds;
- L2 closeness: (d t)^2 - ||beta - d alpha||^2, and as score minus the squared distance;
- earth mover's closeness (all labels equally far apart): what beta and d alpha have in common, less d (1 - t).

Classes with equal beliefs are merged while they are collected, so that a handful of values is sorted, not a hundred.
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
    """A requirement: `bound` is l, (d t)^2 or d (1 - t); alpha's square, and what alpha leaves to no label."""

    kind: int
    c: float
    bound: float
    records: float
    labels: int
    alpha_square: float
    alpha_rest: float
    tolerance: float
    diverse: Any
    """True for (c, l)-diversity, else None, so that nothing about it is compiled where closeness is asked for."""


class Desk(NamedTuple):
    """Working space: belief by class, place of a class among the merged values, and the values themselves.

    `holders` counts the laid out options that believe in a class; `saved` keeps what `lift` took away. used: touched
    classes, merged values, values of the option judged last, place of the untouched classes (-1 without an offset).
    """

    belief: np.ndarray
    place: np.ndarray
    touched: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    work: np.ndarray
    amounts: np.ndarray
    totals: np.ndarray
    used: np.ndarray
    holders: np.ndarray
    saved: np.ndarray
    saved_place: np.ndarray


def new_desk(classes):
    """Room for a group with so many classes of labels."""
    return Desk(
        np.zeros(classes),
        np.full(classes, -1, np.int64),
        np.empty(classes, np.int64),
        np.empty(2 * classes + 2),
        np.empty(2 * classes + 2, np.int64),
        np.empty(4 * classes + 6),
        np.empty(4 * classes + 6, np.int64),
        np.zeros(4),
        np.array([0, 0, 0, -1]),
        np.zeros(classes, np.int64),
        np.zeros(classes + 3),
        np.zeros(classes, np.int64),
    )


@kernel
def lay_out(group, rule, desk, choice, first, last, skip):
    """Sum the beliefs of the chosen options of records first..last-1 but one.

    Options that believe in all labels alike are only an offset. Afterwards `belief` and `place` speak of the touched
    classes, and one merged value stands for the untouched ones (if the offset is not 0).
    """
    for k in range(desk.used[0]):
        desk.belief[desk.touched[k]] = 0.0
        desk.place[desk.touched[k]] = -1
        desk.holders[desk.touched[k]] = 0
    found = 0
    offset = 0.0
    for i in range(first, last):
        o = choice[i]
        if i == skip:
            continue
        if group.flat[o] > 0:
            offset += group.flat[o]
            continue
        for k in range(group.at[o], group.at[o + 1]):
            c = group.cls[k]
            if desk.place[c] < 0:
                desk.place[c] = 0
                desk.touched[found] = c
                found += 1
            desk.belief[c] += group.val[k]
            desk.holders[c] += 1
    n = covered = 0
    square = mass = 0.0
    for k in range(found):
        c = desk.touched[k]
        b = desk.belief[c]
        if n == 0 or desk.values[n - 1] != b + offset:
            desk.values[n] = b + offset
            desk.counts[n] = 0
            n += 1
        desk.counts[n - 1] += group.size[c]
        desk.place[c] = n - 1
        covered += group.size[c]
        mass += b * group.size[c]
        square += b * (b * group.size[c] - 2 * rule.records * group.mass[c])
    if offset > 0:
        desk.values[n] = offset
        desk.counts[n] = rule.labels - covered
        n += 1
    square += rule.alpha_square * rule.records * rule.records
    desk.totals[0] = square + offset * (2 * mass + rule.labels * offset - 2 * rule.records * (1 - rule.alpha_rest))
    desk.totals[1] = _common(group, rule, desk, found, offset) if rule.kind == EMD else 0.0
    desk.totals[2] = mass + offset * rule.labels
    desk.totals[3] = offset
    desk.used[0], desk.used[1], desk.used[3] = found, n, n - 1 if offset > 0 else -1


@kernel
def lift(group, rule, desk, option):
    """Take one option out of what is laid out (not a flat one): cheaper than a new layout if it touches few classes."""
    for k in range(3):
        desk.saved[k] = desk.totals[k]
    offset = desk.totals[3]
    n = desk.used[1]
    for k in range(group.at[option], group.at[option + 1]):
        c, v, size = group.cls[k], group.val[k], group.size[group.cls[k]]
        b, p = desk.belief[c], desk.place[c]
        q = k - group.at[option]
        desk.saved[3 + q], desk.saved_place[q] = b, p
        desk.counts[p] -= size
        left = b - v if desk.holders[c] > 1 else 0.0
        own = rule.records * group.mass[c]
        desk.totals[0] -= (b - left) * ((b + left + 2 * offset) * size - 2 * own)
        if rule.kind == EMD:
            desk.totals[1] -= min((b + offset) * size, own) - min((left + offset) * size, own)
        desk.totals[2] -= (b - left) * size
        desk.belief[c] = left
        if left > 0:
            if n == desk.used[1] or desk.values[n - 1] != left + offset:
                desk.values[n], desk.counts[n] = left + offset, 0
                n += 1
            desk.counts[n - 1] += size
            desk.place[c] = n - 1
        else:
            desk.place[c] = -1
            if offset > 0:
                desk.counts[desk.used[3]] += size
    before = desk.used[1]
    desk.used[1] = n
    return before


@kernel
def put_back(group, desk, option, before):
    """Undo `lift`, given what it returned."""
    for k in range(3):
        desk.totals[k] = desk.saved[k]
    offset = desk.totals[3]
    for k in range(group.at[option], group.at[option + 1]):
        c, q = group.cls[k], k - group.at[option]
        if desk.place[c] < 0 and offset > 0:
            desk.counts[desk.used[3]] -= group.size[c]
        desk.belief[c], desk.place[c] = desk.saved[3 + q], desk.saved_place[q]
        desk.counts[desk.place[c]] += group.size[c]
    desk.used[1] = before


@kernel
def _common(group, rule, desk, found, offset):
    """What the laid out beliefs, raised by an offset, and alpha have in common."""
    common = 0.0
    if offset > 0:
        for c in range(group.size.size):
            common += min((desk.belief[c] + offset) * group.size[c], rule.records * group.mass[c])
    else:
        for k in range(found):
            c = desk.touched[k]
            common += min(desk.belief[c] * group.size[c], rule.records * group.mass[c])
    return common


@kernel
def _descending(values, counts, n):
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
    """(largest l' that holds, slack for l, p_1) of beliefs with multiplicities; reorders them."""
    _descending(values, counts, n)
    labels = 0
    for k in range(n):
        labels += counts[k]
    if labels == 0:
        return l, 0.0, 0.0
    peak = values[0]
    left = labels - (l - 1)
    tail, sum_, reach = 0.0, 0.0, 0
    wanted = peak / c - tolerance
    found = False
    for k in range(n - 1, -1, -1):
        take = min(left, counts[k])
        if take > 0:
            tail += take * values[k]
            left -= take
        if not found:
            if sum_ + counts[k] * values[k] >= wanted:
                reach += max(1, np.int64(np.ceil((wanted - sum_) / values[k])))
                found = True
            else:
                sum_ += counts[k] * values[k]
                reach += counts[k]
        elif left <= 0:
            break
    return (labels - reach + 1 if found else 0), c * tail - peak, peak


@kernel
def _collect(group, desk, option):
    """The merged values if the record left out takes this option, into `work` and `amounts`; returns how many."""
    n = desk.used[1]
    work, amounts = desk.work, desk.amounts
    offset = desk.totals[3]
    for k in range(n):
        work[k], amounts[k] = desk.values[k], desk.counts[k]
    rest = desk.used[3]
    alone = -1
    for k in range(group.at[option], group.at[option + 1]):
        c = group.cls[k]
        v = group.val[k]
        p = desk.place[c] if desk.place[c] >= 0 else rest
        if p < 0:
            if alone < 0 or work[alone] != v:
                alone = n
                work[n], amounts[n] = v, 0
                n += 1
            amounts[alone] += group.size[c]
        else:
            amounts[p] -= group.size[c]
            v += desk.belief[c] + offset
            if n == desk.used[1] or work[n - 1] != v:
                work[n], amounts[n] = v, 0
                n += 1
            amounts[n - 1] += group.size[c]
    m = 0
    for k in range(n):
        if amounts[k] > 0:
            work[m], amounts[m] = work[k], amounts[k]
            m += 1
    return m


@kernel
def _collect_flat(rule, desk, v):
    """The same if that option raises the belief in every label by v."""
    n = covered = 0
    for k in range(desk.used[1]):
        if desk.counts[k] > 0:
            desk.work[n], desk.amounts[n] = desk.values[k] + v, desk.counts[k]
            covered += desk.counts[k]
            n += 1
    if v > 0 and covered < rule.labels:
        desk.work[n], desk.amounts[n] = v, rule.labels - covered
        n += 1
    return n


@kernel
def _judge_diversity(diverse, group, rule, desk, option, flat, plain):
    """`judge` for (c, l)-diversity."""
    if diverse is None:
        return 0.0, 0.0, 0.0
    n = _collect_flat(rule, desk, flat) if plain else _collect(group, desk, option)
    desk.used[2] = n
    score, slack, peak = diversity(desk.work, desk.amounts, n, rule.c, np.int64(rule.bound), rule.tolerance)
    return np.float64(score), slack, peak


@kernel
def judge(group, rule, desk, option):
    """(score, slack, largest belief) if the record left out takes this option; -1 for none at all."""
    flat = group.flat[option] if option >= 0 else 0.0
    plain = option < 0 or flat > 0
    if rule.kind == CL:
        return _judge_diversity(rule.diverse, group, rule, desk, option, flat, plain)
    first = 0 if plain else group.at[option]
    last = 0 if plain else group.at[option + 1]
    offset = desk.totals[3]
    if rule.kind == L2:
        square = desk.totals[0]
        square += flat * (2 * desk.totals[2] + rule.labels * flat - 2 * rule.records * (1 - rule.alpha_rest))
        for k in range(first, last):
            c, v = group.cls[k], group.val[k]
            square += v * ((v + 2 * (desk.belief[c] + offset)) * group.size[c] - 2 * rule.records * group.mass[c])
        return -square, rule.bound - square, 0.0
    common, mass = desk.totals[1], desk.totals[2] + flat * rule.labels
    if flat > 0:
        common = _common(group, rule, desk, desk.used[0], offset + flat)
    for k in range(first, last):
        c, v = group.cls[k], group.val[k]
        own = rule.records * group.mass[c]
        before = desk.belief[c] + offset
        mass += v * group.size[c]
        common += min((before + v) * group.size[c], own) - min(before * group.size[c], own)
    common += min(max(0.0, rule.records - mass), rule.records * rule.alpha_rest)
    return common, common - rule.bound, 0.0
