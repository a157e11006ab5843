"""What published terms reveal, in plain Python with fractions, straight from the definitions.

A world is the adversary's knowledge: the terms of every label, how common labels are, how often a label comes with a
term, and what was believed before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Belief = dict[str, Fraction]
SLACK = Fraction(1, 10**9)
"""Rounding that a release may need: the code under test computes in floating point."""


@dataclass(frozen=True)
class World:
    """Labels with their terms; labels and pairs without a weight weigh 1, labels that `priors` leaves out have none."""

    labels: Mapping[str, frozenset[str]]
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    priors: Mapping[str, Fraction] | None = None
    pair_weights: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The world as a knowledge table; a label without terms has an empty one."""
        return [(label, term) for label, held in self.labels.items() for term in sorted(held) or [""]]

    def linked(self, terms: Iterable[str]) -> list[str]:
        """K(t): the labels that have every term of the record."""
        return [label for label, held in self.labels.items() if set(terms) <= held]

    def believes(self, terms: Collection[str], unlinked: Belief | None = None) -> Belief:
        """P(L | t) of one record; what a record that no label fits tells is nothing, or given."""
        found = self.linked(terms)
        if not found:
            return dict(unlinked or {})
        scores = {label: self.weights.get(label, Fraction(1)) for label in found}
        for label in found:
            for term in set(terms):
                scores[label] *= self.pair_weights.get((label, term), Fraction(1))
        return {label: score / sum(scores.values()) for label, score in scores.items()}

    def mean(self, records: Sequence[Collection[str]], unlinked: Belief | None = None) -> Belief:
        """beta of a group, alpha of a table: the mean of the records' beliefs."""
        out = dict.fromkeys(self.labels, Fraction(0))
        for terms in records:
            for label, share in self.believes(terms, unlinked).items():
                out[label] += share / len(records)
        return out

    def alpha(self, records: Sequence[Collection[str]]) -> Belief:
        """The prior: as given, or estimated from the whole original."""
        if self.priors is not None:
            return {label: self.priors.get(label, Fraction(0)) for label in self.labels}
        return self.mean(records)


def ratio(beta: Belief, l: int) -> Fraction | None:  # noqa: E741
    """The least c of QS (c, l)-diversity: p1 over p_l + p_{l+1} + ...; None if none is enough."""
    ranked = sorted(beta.values(), reverse=True)
    tail = sum(ranked[l - 1 :], Fraction(0))
    if not ranked[0]:
        return Fraction(0)
    return ranked[0] / tail if tail else None


def squared(beta: Belief, alpha: Belief) -> Fraction:
    """The squared Euclidean distance."""
    return sum(((beta[label] - alpha[label]) ** 2 for label in alpha), Fraction(0))


def moved(beta: Belief, alpha: Belief) -> Fraction:
    """The earth mover's distance with all labels equally far apart; belief that no label has is one more value."""
    apart = sum((abs(beta[label] - alpha[label]) for label in alpha), Fraction(0))
    return (apart + abs(sum(beta.values()) - sum(alpha.values()))) / 2


@dataclass(frozen=True)
class Demand:
    """("cl", c, l), ("l2", t) or ("emd", t), and what unlinked records tell."""

    kind: str
    c: Fraction = Fraction(1)
    l: int = 2  # noqa: E741
    t: Fraction = Fraction(1)
    prior: bool = False

    def met(self, world: World, group: Sequence[Collection[str]], alpha: Belief) -> bool:
        beta = world.mean(group, alpha if self.prior else None)
        if self.kind == "cl":
            found = ratio(beta, self.l)
            return found is not None and found <= self.c + SLACK
        if self.kind == "l2":
            return squared(beta, alpha) <= self.t**2 + SLACK
        return moved(beta, alpha) <= self.t + SLACK


def groups(rows: Sequence[Mapping[str, object]], keys: Sequence[str]) -> list[list[Mapping[str, object]]]:
    """The rows that agree in all keys."""
    out: dict[tuple[object, ...], list[Mapping[str, object]]] = {}
    for row in rows:
        out.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(out.values())


def terms_of(row: Mapping[str, object], columns: Sequence[str]) -> set[str]:
    """All terms of a record in columns that are read together."""
    return {term for column in columns for term in row[column]}  # type: ignore[attr-defined]
