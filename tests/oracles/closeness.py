"""Closeness the slow and obvious way: every set, Bayes' rule with the design's own probabilities, in fractions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb


def distribution(counts: Sequence[int]) -> list[Fraction]:
    return [Fraction(int(count), int(sum(counts))) for count in counts]


def probability_of_set(d: int, members: Sequence[int], p: Fraction, v: int) -> Fraction:
    """P(R = members | v), straight from how a set is drawn: heads puts v in, tails does not look."""
    eta = len(members)
    heads = Fraction(1, comb(d - 1, eta - 1)) if v in members else Fraction(0)
    return p * heads + (1 - p) * Fraction(1, comb(d, eta))


def belief(counts: Sequence[int], members: Sequence[int], p: Fraction) -> list[Fraction] | None:
    """The posterior over values, or None where this set is never published."""
    joint = [a * probability_of_set(len(counts), members, p, v) for v, a in enumerate(distribution(counts))]
    return [weight / sum(joint) for weight in joint] if sum(joint) else None


def distance(a: Sequence[Fraction], b: Sequence[Fraction], kind: str) -> Fraction:
    if kind == "equal":
        return sum((abs(x - y) for x, y in zip(a, b, strict=True)), Fraction(0)) / 2
    gaps, run = Fraction(0), Fraction(0)
    for x, y in zip(a[:-1], b[:-1], strict=True):
        run += x - y
        gaps += abs(run)
    return gaps / (len(a) - 1)


def all_distances(counts: Sequence[int], eta: int, p: float, kind: str) -> Iterator[Fraction]:
    """D(A, B_Z) of every set Z of eta values that can be published."""
    a = distribution(counts)
    for members in combinations(range(len(counts)), eta):
        b = belief(counts, members, Fraction(p))
        if b is not None:
            yield distance(a, b, kind)


def worst_height(counts: Sequence[int], eta: int, t: Fraction, kind: str) -> Fraction:
    """max over Z of G(Z) - t m(Z)."""
    a = distribution(counts)
    best = None
    for members in combinations(range(len(counts)), eta):
        m = sum((a[v] for v in members), Fraction(0))
        shifted = [a[v] * ((v in members) - m) for v in range(len(a))]
        height = distance(shifted, [Fraction(0)] * len(a), kind) - t * m
        best = height if best is None else max(best, height)
    assert best is not None
    return best
