"""Slow, plain answers about attacks on classes: exact fractions from the definitions, one person at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

Shares = list[Fraction]


def spread(members: Sequence[int], d: int, weights: Shares | None = None) -> Shares:
    """One of these values, in the proportions of the weights, or in equal ones."""
    weights = weights or [Fraction(1)] * d
    total = sum((weights[v] for v in members), Fraction(0))
    if not total:
        weights, total = [Fraction(1)] * d, Fraction(len(members))
    return [weights[v] / total if v in members else Fraction(0) for v in range(d)]


def mean(beliefs: Sequence[Shares]) -> Shares:
    return [sum(column, Fraction(0)) / len(beliefs) for column in zip(*beliefs, strict=True)]


def homogeneity(after: Shares, prior: Shares) -> dict[str, Any]:
    best = max(after)
    return {
        "belief": best,
        "value": after.index(best),
        "ties": sum(share == best for share in after),
        "values": sum(share > 0 for share in after),
        # values that are ruled out have nothing to gain
        "gain": max(a - b for a, b in zip(after, prior, strict=True) if a > 0),
        "ratio": max(a / b if b else float("inf") for a, b in zip(after, prior, strict=True) if a > 0),
    }


def guess(after: Shares, truth: int) -> dict[str, Any]:
    best = max(after)
    right = Fraction(1, sum(share == best for share in after)) if after[truth] == best else Fraction(0)
    return {"truth_belief": after[truth], "right": right}


def levels(after: Shares, tree: Sequence[Sequence[str]]) -> list[Fraction]:
    """The largest belief in one node at every level of a hierarchy but the root."""
    out = []
    for labels in tree[:-1]:
        nodes: dict[str, Fraction] = {}
        for label, share in zip(labels, after, strict=True):
            nodes[label] = nodes.get(label, Fraction(0)) + share
        out.append(max(nodes.values()))
    return out


def interval(after: Shares, width: int) -> Fraction:
    """The largest belief in a run of values of which the last is `width` ranks after the first."""
    return max(sum(after[v : v + width + 1], Fraction(0)) for v in range(len(after)))


NOTHING = Fraction(1, 10**12)
"""Beliefs from an estimate are rounded: what is less is none, and what is so near to a bound has reached it."""


def disclosure(after: Shares, prior: Shares, rho1: Fraction, rho2: Fraction) -> dict[str, Any]:
    values = range(len(after))
    low, high = rho1 + NOTHING, rho2 - NOTHING
    return {
        "positive": any(prior[v] <= low and after[v] >= high for v in values),
        "downward": any(prior[v] >= high and after[v] <= low for v in values),
        "excluded": sum(prior[v] > NOTHING and after[v] <= NOTHING for v in values),
        "excluded_mass": sum((prior[v] for v in values if after[v] <= NOTHING), Fraction(0)),
    }


def known_records(cells: Sequence[Shares], left: int) -> dict[str, Any]:
    """Every choice of the records that are left, each record of those being the person's."""
    d = len(cells[0])
    belief, certain, values, choices = Fraction(0), 0, 0, 0
    worst, fewest = Fraction(0), d
    for rest in combinations(cells, left):
        after = mean(rest)
        belief += sum((share * share for share in after), Fraction(0))
        certain += max(after) == 1
        values += sum(share > 0 for share in after)
        worst, fewest = max(worst, *after), min(fewest, sum(share > 0 for share in after))
        choices += 1
    surest = max(sum(cell[v] == 1 for cell in cells) for v in range(d))
    return {
        "belief": belief / choices,
        "certain": Fraction(certain, choices),
        "values": Fraction(values, choices),
        "worst_belief": worst,
        "worst_values": fewest,
        "needed": len(cells) - surest if surest else None,
    }
