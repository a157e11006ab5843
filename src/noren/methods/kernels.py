"""Checks of classes by their histograms: the methods' side of every model.

The verification never uses this file. A requirement is a kind and two numbers; the tables that some kinds need (the
overall distribution, the levels of a hierarchy) come per sensitive column.

Sorting within kernels: one small function, because NumPy's takes a second to compile.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel

K_ANONYMITY = 0
DISTINCT = 1
FREQUENCY = 2
ALPHA_K = 3
P_SENSITIVE = 4
ENTROPY = 5
RECURSIVE = 6
CLOSE_EQUAL = 7
CLOSE_ORDERED = 8
CLOSE_TREE = 9
TAU_L = 10
BETA_BASIC = 11
BETA_ENHANCED = 12
DELTA = 13
SUBTREES = 14

RARE = ENTROPY
"""From here on, kinds that fewer policies ask for."""

TOLERANCE = 1e-9


class Rules(NamedTuple):
    """All requirements on the classes of a table, and their data."""

    kinds: Any
    columns: Any
    first: Any
    second: Any
    """Per requirement: its kind, its sensitive column (-1: none), and its two numbers."""
    values: Any
    """Per sensitive column: the size of its domain."""
    reference: Any
    """(columns, values): the share of every value in the whole table."""
    levels: Any
    """(columns, heights, values): the group of every value at every height."""
    heights: Any
    """Per sensitive column: the height of its tree."""
    rare: Any
    """True if any kind is RARE, else None, so that nothing about these is compiled where there are none."""


@kernel
def class_holds(rules, hists, n):
    """Return whether one class of n records meets all requirements; hists[j, v] records have value v in sensitive
    column j."""
    if n <= 0:
        return False
    kinds, columns, first, second, values, reference, levels, heights, rare = rules
    for r in range(len(kinds)):
        kind, j, a, b = kinds[r], columns[r], first[r], second[r]
        m = values[j] if j >= 0 else 0
        if kind >= RARE:
            if not _rare(rare, kind, a, b, j, m, reference, levels, heights, hists, n):
                return False
            continue
        seen, top = 0, 0.0
        for v in range(m):
            if hists[j, v] > 0:
                seen += 1
                top = max(top, hists[j, v])
        if kind == K_ANONYMITY:
            holds = n >= a
        elif kind == FREQUENCY:
            holds = top * a <= n * (1 + TOLERANCE)
        elif kind == ALPHA_K:
            holds = top <= a * n * (1 + TOLERANCE) and n >= b
        else:
            holds = seen >= a and (kind == DISTINCT or n >= b)
        if not holds:
            return False
    return True


@kernel
def failing_classes(bounds, columns, values, weights, sizes, most, rules):
    """Return which classes of records fail; empty classes do not. Stops after more than `most` failing records.

    Class c has weights[p] records with value values[p] of sensitive column columns[p], bounds[c] <= p < bounds[c + 1].
    """
    hists = np.zeros(rules.reference.shape, np.float64)
    out = np.zeros(len(sizes), np.bool_)
    for c in range(len(sizes)):
        if sizes[c] == 0:
            continue
        for p in range(bounds[c], bounds[c + 1]):
            hists[columns[p], values[p]] += weights[p]
        if not class_holds(rules, hists, sizes[c]):
            out[c] = True
            most -= sizes[c]
            if most < 0:
                break
        for p in range(bounds[c], bounds[c + 1]):
            hists[columns[p], values[p]] = 0.0
    return out


@kernel
def _rare(rare, kind, a, b, j, m, reference, levels, heights, hists, n):
    """Check one rarely used requirement with the numbers a and b on sensitive column j, which has m values.

    It takes single fields of `Rules`: handing on the whole tuple for every requirement is measurably slower.
    """
    if rare is None:
        return False
    return _rare_holds(kind, a, b, j, m, reference, levels, heights, hists, n)


@kernel
def _rare_holds(kind, a, b, j, m, reference, levels, heights, hists, n):
    """Check the rarely used requirements in a separate function, which is compiled only if needed."""
    if kind == ENTROPY:
        total = 0.0
        for v in range(m):
            if hists[j, v] > 0:
                p = hists[j, v] / n
                total -= p * np.log(p)
        return total >= np.log(a) - TOLERANCE
    if kind in (RECURSIVE, TAU_L):
        counts, ranked = np.empty(m), np.empty(m)
        for v in range(m):
            counts[v] = hists[j, v]
        order = stable_order(counts)
        for i in range(m):
            ranked[i] = counts[order[m - 1 - i]]
        if kind == RECURSIVE:
            rest = 0.0
            for i in range(int(b) - 1, m):
                rest += ranked[i]
            return ranked[0] < a * rest * (1 - 1e-12)
        total = 0.0
        for k in range(1, min(m, int(b) - 1) + 1):
            total += ranked[k - 1]
            if total / n > a + (1 - a) * (k - 1) / (b - 1) + TOLERANCE:
                return False
        return m >= b
    if kind == CLOSE_EQUAL:
        moved = 0.0
        for v in range(m):
            moved += abs(hists[j, v] / n - reference[j, v])
        return moved / 2 <= a + TOLERANCE
    if kind == CLOSE_ORDERED:
        moved = 0.0
        ahead = 0.0
        for v in range(m - 1):
            ahead += hists[j, v] / n - reference[j, v]
            moved += abs(ahead)
        return m < 2 or moved / (m - 1) <= a + TOLERANCE
    if kind == CLOSE_TREE:
        moved = 0.0
        height = heights[j]
        extra = np.empty(m, np.float64)
        for h in range(height):
            extra[:] = 0.0
            for v in range(m):
                extra[levels[j, h, v]] += hists[j, v] / n - reference[j, v]
            for g in range(m):
                moved += abs(extra[g])
        return moved / (2 * height) <= a + TOLERANCE
    if kind in (BETA_BASIC, BETA_ENHANCED):
        for v in range(m):
            q = reference[j, v]
            gain = hists[j, v] / n - q
            if gain <= 0:
                continue
            bound = a
            if kind == BETA_ENHANCED and q > 0:
                bound = min(a, -np.log(q))
            if gain > bound * q + TOLERANCE * q:
                return False
        return True
    if kind == DELTA:
        for v in range(m):
            q = reference[j, v]
            if q > 0 and (hists[j, v] <= 0 or abs(np.log(hists[j, v] / n / q)) >= a):
                return False
        return True
    if kind == SUBTREES:
        h = heights[j] - int(b)
        count = np.zeros(m, np.float64)
        top = 0.0
        for v in range(m):
            g = levels[j, h, v]
            count[g] += hists[j, v]
            top = max(top, count[g])
        return top * a <= n * (1 + TOLERANCE)
    return False


SHORT = 16
"""Runs of so many keys are sorted by insertion before they are merged."""


@kernel
def stable_order(keys):
    """Return the stable ascending order of the keys, which are numbers."""
    n = len(keys)
    order, other = np.empty(n, np.int64), np.empty(n, np.int64)
    for start in range(0, n, SHORT):
        for i in range(start, min(start + SHORT, n)):
            key = keys[i]
            j = i
            while j > start and key < keys[order[j - 1]]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
    width = SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if i < middle and (j >= stop or not keys[order[j]] < keys[order[i]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order
