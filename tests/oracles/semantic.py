"""Slow, obvious twins of the semantic designs: every set and every order, in exact fractions, from the definitions."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

from tests.oracles import draw

Law = dict[tuple[int, ...], Fraction]


def feasible_sets(compatible: list[list[bool]], l: int) -> list[tuple[int, ...]]:
    """All sets of l values that are pairwise compatible, ascending."""
    F = len(compatible)
    return [s for s in combinations(range(F), l) if all(compatible[a][b] for a, b in combinations(s, 2))]


def simple(compatible: list[list[bool]], l: int, v: int) -> Law:
    """Algorithm 1 with a perfect look-ahead: uniform among the values that some feasible set shares with all so far."""
    sets = [set(s) for s in feasible_sets(compatible, l)]
    law: Law = {}

    def go(drawn: frozenset[int], chance: Fraction) -> None:
        if len(drawn) == l:
            key = tuple(sorted(drawn))
            law[key] = law.get(key, Fraction(0)) + chance
            return
        options = set().union(*(s for s in sets if drawn <= s)) - drawn
        for u in options:
            go(drawn | {u}, chance / len(options))

    go(frozenset([v]), Fraction(1))
    return law


def after_removal(available: list[int], drawn: int, d: int) -> list[int]:
    """What duplicate-processing leaves: without the drawn value and its d - 1 nearest on each side of the circle."""
    at = available.index(drawn)
    gone = {available[(at + shift) % len(available)] for shift in range(-(d - 1), d)}
    return [u for u in available if u not in gone]


def duplicate(F: int, l: int, d: int, v: int) -> Law:
    law: Law = {}

    def go(drawn: tuple[int, ...], available: list[int], chance: Fraction) -> None:
        if len(drawn) == l:
            key = tuple(sorted(drawn))
            law[key] = law.get(key, Fraction(0)) + chance
            return
        for u in available:
            go((*drawn, u), after_removal(available, u, d), chance / len(available))

    go((v,), after_removal(list(range(F)), v, d), Fraction(1))
    return law


def product_law(compatible: list[list[bool]], l: int, v: int, weights: list[Fraction]) -> Law:
    """Proportional to the product of the weights of a set, over the feasible sets around v."""
    masses: Law = {}
    for s in feasible_sets(compatible, l):
        if v in s:
            masses[s] = Fraction(1)
            for u in s:
                masses[s] *= weights[u]
    total = sum(masses.values())
    return {s: mass / total for s, mass in masses.items()}


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    for split in product(range(total + 1), repeat=parts):
        if sum(split) == total:
            yield split


def circular(F: int, l: int, d: int, v: int) -> Law:
    """Gaps d + a_i with (a_i) uniform among the compositions of F - l d; the first point is v."""
    law: Law = {}
    ways = list(compositions(F - l * d, l))
    for extra in ways:
        points, at = [v], v
        for a in extra[:-1]:
            at += d + a
            points.append(at % F)
        key = tuple(sorted(points))
        law[key] = law.get(key, Fraction(0)) + Fraction(1, len(ways))
    return law


def inclusion(laws: list[Law]) -> list[list[float]]:
    F = len(laws)
    return [[float(sum(p for s, p in law.items() if u in s)) for u in range(F)] for law in laws]


def second_moment(laws: list[Law], scores: list[float]) -> list[float]:
    return [sum(float(p) * sum(scores[u] for u in s) ** 2 for s, p in law.items()) for law in laws]


def equation_2(compatible: list[list[bool]], l: int) -> list[list[float]]:
    """The paper's inclusion probabilities: (l - 1) / (number of values compatible with v)."""
    F = len(compatible)
    return [[1.0 if u == v else (l - 1) / sum(compatible[v]) * compatible[v][u] for u in range(F)] for v in range(F)]


# ---------------------------------------------------------------- from words, as the memoised mode has them


def flat_from_words(words: list[int], F: int, l: int, d: int, v: int) -> set[int] | None:
    """Bars by Floyd's algorithm, one word each; None where a word must be redrawn."""
    spots, bars = F - l * d + l - 1, []
    for k in range(l - 1):
        j = spots - (l - 1) + k
        t = draw.index(words[k], j + 1)
        if t is None:
            return None
        bars.append(j if t in bars else t)
    return {v} | {(v + (k + 1) * d + bar - k) % F for k, bar in enumerate(sorted(bars))}


def duplicate_from_words(words: list[int], F: int, l: int, d: int, v: int) -> set[int] | None:
    """Index i of what is left, counted around the circle from d places after the last draw."""
    drawn, available = [v], list(range(F))
    for k in range(l - 1):
        at = available.index(drawn[-1])
        around = available[at:] + available[:at]
        available = around[d : len(around) - (d - 1)]
        i = draw.index(words[k], len(available))
        if i is None:
            return None
        drawn.append(available[i])
    return set(drawn)


def simple_from_words(words: list[int], order: list[int], compatible: list[list[bool]], l: int, v: int) -> set[int]:
    """Two words a step, as one 64-bit fraction of the number of candidates; candidates in the given order."""
    sets = [set(s) for s in feasible_sets(compatible, l)]
    drawn = {v}
    for k in range(l - 1):
        options = set().union(*(s for s in sets if drawn <= s)) - drawn
        ranked = [u for u in order if u in options]
        drawn.add(ranked[((words[2 * k] << 32 | words[2 * k + 1]) * len(ranked)) >> 64])
    return drawn
