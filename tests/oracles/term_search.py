"""Quasi-sensitive terms in plain Python, straight from the definitions: slow, obvious, one label at a time.

A group is a list of term sets (lists of term codes), the knowledge a list of sets of term codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import inf

GRAIN = 1e9
EPS = 1e-10


def labels_of(terms: Iterable[int], knowledge: Sequence[set[int]]) -> list[int]:
    """K(t): the labels whose term set contains every term of the record."""
    own = set(terms)
    return [label for label, held in enumerate(knowledge) if own <= held]


Pairs = Mapping[tuple[int, int], float]
"""(label, term) -> weight; 1 where not named."""


def belief_of(
    terms: Iterable[int],
    knowledge: Sequence[set[int]],
    weights: Sequence[float] | None,
    prior: Sequence[float] | None,
    pairs: Pairs | None = None,
) -> dict[int, float]:
    """P(L | t) of one record; `prior` is what an unlinked record believes, None for nothing."""
    linked = labels_of(terms, knowledge)
    if not linked:
        return {} if prior is None else {label: a for label, a in enumerate(prior) if a > 0}
    w = [1.0] * len(knowledge) if weights is None else list(weights)
    for label in linked:
        for term in terms:
            w[label] *= (pairs or {}).get((label, term), 1.0)
    total = sum(w[label] for label in linked)
    return {label: w[label] / total for label in linked}


def group_belief(
    group: Sequence[Iterable[int]],
    knowledge: Sequence[set[int]],
    weights: Sequence[float] | None = None,
    prior: Sequence[float] | None = None,
    pairs: Pairs | None = None,
) -> list[float]:
    """beta: the mean of the records' beliefs."""
    beta = [0.0] * len(knowledge)
    for terms in group:
        for label, p in belief_of(terms, knowledge, weights, prior, pairs).items():
            beta[label] += p / len(group)
    return beta


def tail(beta: Sequence[float], l: int) -> float:  # noqa: E741
    return sum(sorted(beta, reverse=True)[l - 1 :])


def distance(beta: Sequence[float], alpha: Sequence[float], metric: str) -> float:
    if metric == "l2":
        return sum((b - a) ** 2 for b, a in zip(beta, alpha, strict=True)) ** 0.5
    rest = abs(sum(beta) - sum(alpha))
    return (sum(abs(b - a) for b, a in zip(beta, alpha, strict=True)) + rest) / 2


@dataclass
class Rule:
    """("cl", c, l) or ("l2", t) or ("emd", t)."""

    kind: str
    c: float = 1.0
    l: int = 2  # noqa: E741
    t: float = 0.4
    alpha: Sequence[float] = field(default_factory=list)

    def slack(self, beta: Sequence[float]) -> float:
        if self.kind == "cl":
            return self.c * tail(beta, self.l) - max(beta)
        if self.kind == "l2":
            return self.t**2 - distance(beta, self.alpha, "l2") ** 2
        return self.t - distance(beta, self.alpha, "emd")

    def holds(self, beta: Sequence[float]) -> bool:
        return self.slack(beta) >= -1e-12

    def score(self, beta: Sequence[float], size: int) -> float:
        """l' for diversity, minus the squared distance for closeness; in units of the group's sum of beliefs."""
        if self.kind == "cl":
            p = sorted((b for b in beta if b > 0), reverse=True)
            if not p:
                return self.l
            total = 0.0
            for reach, value in enumerate(reversed(p), start=1):
                total += value
                if total >= p[0] / self.c - 1e-12:
                    return len(p) - reach + 1
            return 0
        if self.kind == "l2":
            return -((size * distance(beta, self.alpha, "l2")) ** 2)
        return -size * distance(beta, self.alpha, "emd")


def harmonic(n: int) -> float:
    return sum(1 / j for j in range(1, n + 1))


def cost(sizes: Sequence[int], removed: Sequence[int]) -> float:
    """Equation 2 with its inner index corrected: removing v of w terms costs 1/w + ... + 1/(w - v + 1)."""
    most = sum(harmonic(w) for w in sizes)
    lost = sum(harmonic(w) - harmonic(w - v) for w, v in zip(sizes, removed, strict=True))
    return lost / most if most else 0.0


def brute_force(
    group: Sequence[Sequence[int]],
    knowledge: Sequence[set[int]],
    rule: Rule,
    weights: Sequence[float] | None = None,
    prior: Sequence[float] | None = None,
    prices: Sequence[float] | None = None,
    pairs: Pairs | None = None,
) -> float | None:
    """The cheapest removal by trying all; None if nothing holds. prices: what every term is worth, by code."""
    n = len(knowledge)
    subsets = [[kept for m in range(len(own) + 1) for kept in combinations(own, m)] for own in group]
    beliefs = [[belief_of(kept, knowledge, weights, prior, pairs) for kept in sets] for sets in subsets]
    sizes = [len(own) for own in group]
    best = inf
    for pick in product(*(range(len(sets)) for sets in subsets)):
        chosen = [subsets[i][o] for i, o in enumerate(pick)]
        if prices is None:
            price = cost(sizes, [w - len(kept) for kept, w in zip(chosen, sizes, strict=True)])
        else:
            lost = [prices[t] for own, kept in zip(group, chosen, strict=True) for t in own if t not in kept]
            price = sum(lost) / (sum(prices[t] for own in group for t in own) or 1.0)
        if price >= best - EPS:
            continue
        beta = [0.0] * n
        for i, o in enumerate(pick):
            for label, p in beliefs[i][o].items():
                beta[label] += p / len(group)
        if rule.holds(beta):
            best = price
    return None if best == inf else best


@dataclass
class AdaptiveSearch:
    """The paper's adaptive search: the tail of every node ranked by gain of score per cost, ties by slack."""

    group: Sequence[Sequence[int]]
    knowledge: Sequence[set[int]]
    rule: Rule
    budget: float = inf
    nodes: int = 0
    best: float = inf
    removed: frozenset[tuple[int, int]] = frozenset()

    def run(self) -> float | None:
        """The normalised cost of the best removal within the budget of nodes."""
        holders: dict[int, set[int]] = {}
        for label, held in enumerate(self.knowledge):
            for term in held:
                holders.setdefault(term, set()).add(label)
        self.holders = holders
        self.everything = set(range(len(self.knowledge)))
        kept = [frozenset(own) for own in self.group]
        beliefs = [self.belief(own) for own in kept]
        beta = self.mean(beliefs)
        self.nodes += 1
        if self.rule.holds(beta):
            self.best = 0.0
        else:
            entries = [(i, term) for i, own in enumerate(self.group) for term in own]
            self.visit(kept, beliefs, 0.0, frozenset(), self.rule.score(beta, len(kept)), entries)
        most = sum(harmonic(len(own)) for own in self.group)
        return None if self.best == inf else self.best / most if most else 0.0

    def belief(self, kept: frozenset[int]) -> dict[int, float]:
        linked = set.intersection(*(self.holders.get(t, set()) for t in kept)) if kept else self.everything
        return {label: 1 / len(linked) for label in linked}

    def mean(self, beliefs: Sequence[dict[int, float]]) -> list[float]:
        beta: dict[int, float] = {}
        for own in beliefs:
            for label, p in own.items():
                beta[label] = beta.get(label, 0.0) + p / len(beliefs)
        if self.rule.kind == "cl":
            return list(beta.values()) or [0.0]
        return [beta.get(label, 0.0) for label in range(len(self.knowledge))]

    def visit(self, kept, beliefs, spent, removed, score, entries) -> None:  # type: ignore[no-untyped-def]
        children = []
        for place, (i, term) in enumerate(sorted(entries)):
            step = 1 / len(kept[i])
            if spent + step >= self.best - EPS:
                continue
            own = kept[i] - {term}
            belief = self.belief(own)
            beta = self.mean([*beliefs[:i], belief, *beliefs[i + 1 :]])
            self.nodes += 1
            slack = self.rule.slack(beta)
            if slack >= -1e-12:
                self.best, self.removed = spent + step, removed | {(i, term)}
                continue
            new = self.rule.score(beta, len(kept))
            # the same units as the kernels: beliefs summed over the group, so that rounding cuts at the same places
            scale = len(kept) ** 2 if self.rule.kind == "l2" else len(kept)
            key = (-round((new - score) / step * GRAIN), -round(slack * scale * GRAIN), place)
            children.append((key, i, term, own, belief, step, new))
        children.sort(key=lambda child: child[0])
        for q, (_, i, term, own, belief, step, new) in enumerate(children):
            if self.nodes >= self.budget:
                return
            if spent + step >= self.best - EPS:
                continue
            self.visit(
                [*kept[:i], own, *kept[i + 1 :]],
                [*beliefs[:i], belief, *beliefs[i + 1 :]],
                spent + step,
                removed | {(i, term)},
                new,
                [(child[1], child[2]) for child in children[q + 1 :]],
            )
