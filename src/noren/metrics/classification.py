"""The use of a release for machine learning (paper 004, section 5.3.2): decision trees and classification rules.

A generalised value is replaced by a base value drawn at random among those it covers (from a group: as often as its
counts say), and the learner then works as on ordinary data. Draws come from a seeded generator, so that a figure
repeats; they measure a release and are no part of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError, QueryError
from noren.metrics.general import GeneralColumn, GeneralTable
from noren.ragged import offsets_of, owners, runs


@dataclass(frozen=True)
class TreeAccuracy:
    """The accuracy of decision trees trained on the release and on the original, both tested on the original."""

    ratio: float
    """rca: mean over the rounds of released / original accuracy; higher is better, 1 if nothing was lost."""
    released: float
    original: float
    rounds: int


@dataclass(frozen=True)
class PreservedRules:
    """Classification rules of the original, and how many of them the release preserves."""

    original: int
    preserved: float
    """Mean over the rounds."""
    rounds: int

    @property
    def share(self) -> float | None:
        """Return the share of preserved rules; None if the original has none."""
        return self.preserved / self.original if self.original else None


def random_leaves(column: GeneralColumn, keep: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.int64]:
    """Draw a base code for every kept record among the possible values of its cell."""
    cells = column.cells[keep].astype(np.int64)
    if column.nodes is not None:
        flat, bounds = column.nodes.flat_members()
        return np.asarray(flat[bounds[cells] + _below(np.diff(bounds)[cells], random)])
    if column.groups is not None:
        groups = column.groups
        below = offsets_of(groups.count)
        drawn = below[groups.bounds[cells]] + _below(groups.sizes[cells], random)
        return groups.value[np.searchsorted(below, drawn, side="right") - 1]
    return cells


def tree_accuracy(table: GeneralTable, target: str, *, rounds: int = 10, seed: int = 0) -> TreeAccuracy:
    """Return the ratio of classification accuracies, averaged over `rounds` pairs of trees.

    Trees split by entropy, grow fully and see a column's codes in the order of its domain. Features are the
    quasi-identifiers. Needs scikit-learn.
    """
    learner = _learner()
    names = _features(table, target, rounds)
    truth = np.column_stack([table.columns[name].truth for name in names])
    labels = table.columns[target].truth
    random = np.random.default_rng(seed)
    released, original = np.empty(rounds), np.empty(rounds)
    for i in range(rounds):
        drawn = [random_leaves(table.columns[name], table.keep, random) for name in (*names, target)]
        for scores, x, y in ((released, np.column_stack(drawn[:-1]), drawn[-1]), (original, truth, labels)):
            tree = learner(criterion="entropy", random_state=int(random.integers(1 << 31))).fit(x, y)
            scores[i] = (tree.predict(truth) == labels).mean()
    return TreeAccuracy(float((released / original).mean()), float(released.mean()), float(original.mean()), rounds)


def preserved_rules(
    table: GeneralTable,
    target: str,
    *,
    accuracy: float = 0.7,
    support: int = 250,
    rounds: int = 10,
    seed: int = 0,
) -> PreservedRules:
    """Count the rules of one or two conditions that are found in both tables.

    A rule "column = value (and column = value) => class" is found in a table if its conditions cover at least
    `support` records and at least the share `accuracy` of them has the class.
    """
    if not 0 < accuracy <= 1 or support < 1:
        raise QueryError(
            f"accuracy {accuracy:g} or support {support} is out of range.",
            hint="Give an accuracy above 0 and at most 1, and a support of at least 1.",
        )
    names = _features(table, target, rounds)
    kinds = [len(table.columns[name].domain) for name in (*names, target)]
    everyone = [table.columns[name].truth for name in (*names, target)]
    known = _rules(everyone, kinds, accuracy, support)
    random = np.random.default_rng(seed)
    found = np.empty(rounds)
    for i in range(rounds):
        drawn = [random_leaves(table.columns[name], table.keep, random) for name in (*names, target)]
        shown = _rules(drawn, kinds, accuracy, support)
        found[i] = sum(len(np.intersect1d(a, b, assume_unique=True)) for a, b in zip(known, shown, strict=True))
    return PreservedRules(sum(map(len, known)), float(found.mean()), rounds)


def _rules(columns: Sequence[NDArray], kinds: Sequence[int], accuracy: float, support: int) -> list[NDArray[np.int64]]:
    """Return for each column and each pair of columns the rules as numbers ((value, value), class)."""
    *features, target = columns
    classes = kinds[-1]
    places = range(len(features))
    out = []
    for pair in (*((i,) for i in places), *combinations(places, 2)):
        key = np.zeros(len(target), np.int64)
        for i in pair:
            key = key * kinds[i] + features[i]
        rule, hits = np.unique(key * classes + target, return_counts=True)
        condition = rule // classes
        offsets = runs(condition)
        covered = np.add.reduceat(hits, offsets[:-1])[owners(offsets)] if len(rule) else hits
        out.append(rule[(covered >= support) & (hits >= accuracy * covered)])
    return out


def _features(table: GeneralTable, target: str, rounds: int) -> list[str]:
    table.column(target)
    names = [name for name in table.quasi if name != target]
    if not names:
        message = f"no column is left from which {target!r} could be predicted."
        raise QueryError(message, hint="Give another column the role of a quasi-identifier.")
    if rounds < 1:
        raise QueryError(f"{rounds} rounds measure nothing.", hint="Ask for at least one.")
    if table.dropped == table.n:
        raise QueryError("no record is published.", hint="Publish a release with at least one record first.")
    return names


def _below(size: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Return a uniformly random number from 0 to size - 1, for every size."""
    return random.integers(0, np.maximum(size, 1))


def _learner() -> Any:
    try:
        return import_module("sklearn.tree").DecisionTreeClassifier
    except ImportError:
        raise NorenError(
            "decision trees need scikit-learn, which is not installed.", hint="pip install 'noren[learn]'"
        ) from None
