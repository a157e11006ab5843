"""ID3 decision trees (paper 004, section 5.3.2): entropy, one branch per value, no pruning.

All nodes of a level are split together, so that a tree of 45,222 records takes a fraction of a second. An attribute is
used at most once on a path, as ID3 has it for categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Level:
    """The nodes of one depth: what each one asks, what it answers if nothing is left to ask, where values lead."""

    asks: Codes
    """Attribute of every node; -1 for a leaf."""
    answer: Codes
    """Most frequent class of every node, the first of several."""
    keys: Codes
    """Ascending node * widest + value; entry i leads to node i of the next level."""


@dataclass(frozen=True)
class Tree:
    """A decision tree by levels. A record whose value no training record had is answered by the node it reached."""

    levels: tuple[Level, ...]
    widest: int

    @property
    def leaves(self) -> int:
        return sum(int((level.asks < 0).sum()) for level in self.levels)

    def predict(self, features: Sequence[NDArray]) -> Codes:
        """The class of every record; features as in `learn`."""
        table = np.stack([np.asarray(feature, np.int64) for feature in features])
        out = np.zeros(table.shape[1], np.int64)
        rows, node = np.arange(table.shape[1]), np.zeros(table.shape[1], np.int64)
        for level in self.levels:
            out[rows] = level.answer[node]
            asked = level.asks[node]
            go = asked >= 0
            rows, node, asked = rows[go], node[go], asked[go]
            value = table[asked, rows]
            wanted = node * self.widest + value
            place = np.searchsorted(level.keys, wanted)
            known = (place < len(level.keys)) & (value < self.widest)
            known[known] = level.keys[place[known]] == wanted[known]
            rows, node = rows[known], place[known]
            if not len(rows):
                break
        return out


def learn(features: Sequence[NDArray], target: NDArray) -> Tree:
    """Split by the attribute that leaves the least entropy (the first of several) until classes or attributes end."""
    table = np.stack([np.asarray(feature, np.int64) for feature in features])
    label = np.asarray(target, np.int64)
    widest, classes = int(table.max()) + 1, int(label.max()) + 1
    node = np.zeros(len(label), np.int64)
    used = np.zeros((1, len(table)), bool)
    levels = []
    while len(label):
        answer, pure = _majority(node, label, len(used), classes)
        left = np.full((len(used), len(table)), np.inf)
        for attribute, values in enumerate(table):
            left[:, attribute] = _entropy_left(node, values, label, len(used), widest, classes)
        left[used] = np.inf
        best = np.argmin(left, axis=1)
        asks = np.where(pure | ~np.isfinite(left.min(axis=1)), -1, best)
        go = asks[node] >= 0
        table, label, node = table[:, go], label[go], node[go]
        keys, following = np.unique(node * widest + table[asks[node], np.arange(len(node))], return_inverse=True)
        levels.append(Level(asks, answer, keys))
        parent = keys // widest
        used = used[parent]
        used[np.arange(len(keys)), asks[parent]] = True
        node = following.ravel()
    return Tree(tuple(levels), widest)


def accuracy(tree: Tree, features: Sequence[NDArray], target: NDArray) -> float:
    """Share of the records whose class the tree tells."""
    return float((tree.predict(features) == target).mean())


def _majority(node: Codes, label: Codes, nodes: int, classes: int) -> tuple[Codes, NDArray[np.bool_]]:
    """Most frequent class of every node, and whether it is the only one."""
    keys, counts = np.unique(node * classes + label, return_counts=True)
    owner = keys // classes
    order = np.lexsort((keys, -counts, owner))
    first = np.searchsorted(owner[order], np.arange(nodes))
    return keys[order][first] % classes, np.bincount(owner, minlength=nodes) == 1


def _entropy_left(
    node: Codes, values: Codes, label: Codes, nodes: int, widest: int, classes: int
) -> NDArray[np.float64]:
    """For every node: records times entropy of the classes after a split; infinite where there is but one value."""
    keys, counts = np.unique((node * widest + values) * classes + label, return_counts=True)
    branch = keys // classes
    first = np.flatnonzero(np.diff(branch, prepend=-1))
    size = np.add.reduceat(counts, first)
    owner = branch[first] // widest
    out = np.bincount(owner, size * np.log(size), minlength=nodes).astype(np.float64)
    out -= np.bincount(branch // widest, counts * np.log(counts), minlength=nodes)
    # Sums of logarithms differ in the last digits with their order: equal splits must stay equal for the tie rule.
    out = np.round(out, 9)
    out[np.bincount(owner, minlength=nodes) < 2] = np.inf
    return out
