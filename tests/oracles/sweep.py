"""SWEEP, literally: records in lists, one at a time, in exact fractions. A node is the set of leaves under it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

TOLERANCE = Fraction(1, 10**9)
Node = frozenset[int]


@dataclass(frozen=True)
class Column:
    """A sensitive column: codes of the records, levels[h][leaf] labels, weights of leaves, bounds of F(1), F(2), ..."""

    codes: Sequence[int]
    levels: Sequence[Sequence[str]]
    weights: Sequence[int]
    psi: Sequence[float]
    least: int

    def above(self, leaf: int) -> list[Node]:
        """The different nodes that cover a leaf, itself first."""
        return list(dict.fromkeys(node(level, leaf) for level in self.levels))

    def share(self, general: Node, leaf: int) -> Fraction:
        total = sum(self.weights[v] for v in general)
        if leaf not in general:
            return Fraction(0)
        return Fraction(self.weights[leaf], total) if total else Fraction(1, len(general))

    def induced(self, nodes: Sequence[Node]) -> list[Fraction]:
        """Records that count for every leaf."""
        return [sum((self.share(g, a) for g in nodes), Fraction(0)) for a in range(len(self.weights))]

    def holds(self, nodes: Sequence[Node]) -> bool:
        f = self.induced(nodes)
        if sum(x > 0 for x in f) < self.least:
            return False
        ranked = sorted(f, reverse=True)
        return all(sum(ranked[:k]) <= (Fraction(bound) + TOLERANCE) * len(nodes) for k, bound in enumerate(self.psi, 1))

    def dominant(self, nodes: Sequence[Node]) -> int:
        f = self.induced(nodes)
        return f.index(max(f))


def node(level: Sequence[str], leaf: int) -> Node:
    return frozenset(i for i, label in enumerate(level) if label == level[leaf])


def ceilings(tau: float, l: int) -> list[float]:  # noqa: E741
    return [tau + (1 - tau) * (k - 1) / (l - 1) for k in range(1, l)]


def level_vectors(hierarchies: Sequence[Sequence[Sequence[str]]]) -> list[tuple[Fraction, tuple[int, ...]]]:
    """Average information and levels (0 is the root) of all vectors, in the order of the sweep."""
    out = []
    for levels in itertools.product(*(range(len(tree)) for tree in hierarchies)):
        parts = []
        for tree, level in zip(hierarchies, levels, strict=True):
            labels = tree[len(tree) - 1 - level]
            parts.append(sum(Fraction(1, labels.count(label)) for label in labels) / len(labels))
        out.append((sum(parts, Fraction(0)) / len(parts), levels))
    return sorted(out, reverse=True)


def generalise(column: Column, nodes: list[Node], members: Sequence[int]) -> None:
    """Members in order of priority: one record at a time goes one level up, until the class holds."""
    while not column.holds([nodes[r] for r in members]):
        a = column.dominant([nodes[r] for r in members])
        chain = column.above(a)
        covering = [r for r in members if a in nodes[r]]
        chosen = min(covering, key=lambda r: len(nodes[r]))
        nodes[chosen] = chain[chain.index(nodes[chosen]) + 1]


def chosen_to_sweep(columns: Sequence[Column], nodes: Sequence[list[Node]], members: Sequence[int]) -> int | None:
    """The record that goes next, or None if no record may."""
    violated = []
    for column, mine in zip(columns, nodes, strict=True):
        here = [mine[r] for r in members]
        if not column.holds(here):
            a = column.dominant(here)
            violated.append((column, mine, a, column.induced(here)[a] / len(members)))
    best, most = None, Fraction(-1)
    for r in members:
        shares = [column.share(mine[r], a) for column, mine, a, _ in violated]
        enough = len(columns) == 1 or all(s > v[3] for s, v in zip(shares, violated, strict=True))
        if enough and sum(shares) > most:
            best, most = r, sum(shares, Fraction(0))
    return best


def sweep(
    rows: Sequence[Sequence[int]],
    hierarchies: Sequence[Sequence[Sequence[str]]],
    columns: Sequence[Column],
    priority: Sequence[int],
    size: int = 1,
) -> tuple[list[tuple[Node, ...]], list[list[Node]], list[list[int]]]:
    """The published nodes of every record, its sensitive nodes per column, and the classes."""
    order = sorted(range(len(rows)), key=lambda r: priority[r])
    nodes: list[list[Node]] = [[frozenset([code]) for code in column.codes] for column in columns]
    for column, mine in zip(columns, nodes, strict=True):
        generalise(column, mine, order)
    published: list[tuple[Node, ...]] = [() for _ in rows]
    classes: list[list[int]] = []
    waiting = list(order)
    *vectors, last = [levels for _, levels in level_vectors(hierarchies)]

    def general(r: int, levels: Sequence[int]) -> tuple[Node, ...]:
        trees = zip(hierarchies, rows[r], levels, strict=True)
        return tuple(node(tree[len(tree) - 1 - level], leaf) for tree, leaf, level in trees)

    for levels in vectors:
        groups: dict[tuple[Node, ...], list[int]] = {}
        for r in waiting:
            groups.setdefault(general(r, levels), []).append(r)
        for label, members in groups.items():
            while members and not all(
                c.holds([mine[r] for r in members]) for c, mine in zip(columns, nodes, strict=True)
            ):
                gone = chosen_to_sweep(columns, nodes, members)
                members[:] = [] if gone is None else [r for r in members if r != gone]
            if members and len(members) >= size:
                classes.append(members)
                for r in members:
                    published[r] = label
        waiting = [r for r in waiting if not published[r]]
    if waiting:
        for column, mine in zip(columns, nodes, strict=True):
            generalise(column, mine, waiting)
        classes.append(waiting)
        for r in waiting:
            published[r] = general(r, last)
    return published, nodes, classes
