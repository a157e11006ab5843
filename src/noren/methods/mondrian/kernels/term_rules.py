"""The beliefs from the quasi-sensitive terms of a class, checked for the cuts of `mondrian`.

A profile is one label set K(t) with its weights: records with the same terms share it. Two profiles are never written
out: EVERYTHING (no terms, every label fits) and NOTHING (no label fits). A class is judged from its members alone, by
adding their profiles label by label, so that a small class costs little however many labels and profiles there are.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel

EVERYTHING = -1
NOTHING = -2

DIVERSE = 0
NEAR_L2 = 1
NEAR_EMD = 2

TOLERANCE = 1e-12


class TermRules(NamedTuple):
    """Requirements on terms, for all linkages of a table. Labels are numbered consecutively: linkage j has those from
    starts[j] to starts[j + 1]."""

    profiles: Any
    """(records, linkages): the profile of every record."""
    bounds: Any
    labels: Any
    """Profile p fits the labels labels[bounds[p]:bounds[p + 1]]."""
    shares: Any
    """1 / (the weights of a profile's labels together)."""
    beliefs: Any
    """Where pairs have weights: the belief in each of these labels, which is not weight times share then. Or empty."""
    starts: Any
    weights: Any
    alpha: Any
    """Per label: its weight, and what was believed before."""
    totals: Any
    """Per linkage: the weights together, alpha together, and the squares of alpha together."""
    of: Any
    kinds: Any
    first: Any
    ranks: Any
    prior: Any
    """Per rule: its linkage, its kind, c or t, l, and whether a record that fits no label believes alpha."""
    members: Any
    belief: Any
    touched: Any
    """Room to work in: members of a class, sums per label (zero between calls), labels that have one."""


@kernel
def terms_hold(terms, m):
    """Return whether the class of the records terms.members[:m] meets every rule."""
    rules = len(terms.of)
    r = 0
    holds = True
    while holds and r < rules:
        j = terms.of[r]
        found, empty, unlinked = _gather(terms, j, m)
        while holds and r < rules and terms.of[r] == j:
            holds = _judge(terms, r, m, found, empty, unlinked if terms.prior[r] else 0)
            r += 1
        for i in range(found):
            terms.belief[terms.touched[i]] = 0.0
    return holds


@kernel
def _gather(terms, j, m):
    """Add the profiles of a class in linkage j: return how many labels occur, and how many records fit all or none."""
    profiles, bounds, labels, shares = terms.profiles, terms.bounds, terms.labels, terms.shares
    weights, belief, touched, paired = terms.weights, terms.belief, terms.touched, terms.beliefs.size > 0
    found = empty = unlinked = 0
    for i in range(m):
        p = profiles[terms.members[i], j]
        if p == EVERYTHING:
            empty += 1
        elif p == NOTHING:
            unlinked += 1
        else:
            share = shares[p]
            for place in range(bounds[p], bounds[p + 1]):
                label = labels[place]
                more = terms.beliefs[place] if paired else weights[label] * share
                if more == 0.0:
                    continue
                if belief[label] == 0.0:
                    touched[found] = label
                    found += 1
                belief[label] += more
    return found, empty, unlinked


@kernel
def _judge(terms, r, m, found, empty, unlinked):
    """Check one rule on the gathered sums. `unlinked` counts the records that get the prior."""
    j = terms.of[r]
    start, stop = terms.starts[j], terms.starts[j + 1]
    weights, alpha, belief, touched = terms.weights, terms.alpha, terms.belief, terms.touched
    flat = empty / terms.totals[j, 0]
    dense = empty + unlinked > 0
    kind = terms.kinds[r]
    top = np.zeros(min(terms.ranks[r] - 1, stop - start) if kind == DIVERSE else 0)
    peak = mass = square = overlap = 0.0
    for i in range(stop - start if dense else found):
        label = start + i if dense else touched[i]
        b = belief[label]
        if dense:
            b += flat * weights[label] + unlinked * alpha[label]
        b /= m
        mass += b
        if kind == DIVERSE:
            peak = max(peak, b)
            if len(top) and b > top[-1]:
                _insert(top, b)
        elif kind == NEAR_L2:
            square += b * (b - 2 * alpha[label])
        else:
            overlap += min(b, alpha[label])
    if kind == DIVERSE:
        return peak <= terms.first[r] * max(0.0, mass - top.sum()) + TOLERANCE
    if kind == NEAR_L2:
        return square + terms.totals[j, 2] <= terms.first[r] ** 2 + TOLERANCE
    rest = min(max(0.0, 1 - mass), max(0.0, 1 - terms.totals[j, 1]))
    return 1 - overlap - rest <= terms.first[r] + TOLERANCE


@kernel
def _insert(top, b):
    """Insert b into the largest values so far, which are in descending order."""
    i = len(top) - 1
    while i > 0 and top[i - 1] < b:
        top[i] = top[i - 1]
        i -= 1
    top[i] = b
