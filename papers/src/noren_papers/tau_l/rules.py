"""Classification rules (paper 004, section 5.3.2): all conjunctions of values that tell a class well enough.

The paper names no learner. Here a rule is any set of conditions "column = value" that covers enough records, of which
a large enough share has one class. A rule is minimal if no part of its conditions is a rule for the same class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from noren.metrics.general import GeneralTable
from noren_papers.tau_l.counts import Queries, estimate

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Rules:
    """values[r, c] is the value that rule r asks for in column c, -1 for none; answer[r] is its class."""

    values: Codes
    answer: Codes
    minimal: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.answer)


def learn(features: Sequence[NDArray], target: NDArray, accuracy: float, support: int, most: int = 3) -> Rules:
    """Every rule of up to `most` conditions that covers `support` records with a share `accuracy` of one class.

    A set of columns of which some part has no group of `support` records cannot have one either and is not looked at.
    """
    label = np.asarray(target, np.int64)
    classes = int(label.max()) + 1
    frequent: set[tuple[int, ...]] = {()}
    values, answers = [], []
    for size in range(1, min(most, len(features)) + 1):
        for columns in combinations(range(len(features)), size):
            if any(part not in frequent for part in combinations(columns, size - 1)):
                continue
            radix = [int(features[column].max()) + 1 for column in columns]
            key = _keys([features[column] for column in columns], radix)
            rule, hits = np.unique(key * classes + label, return_counts=True)
            first = np.flatnonzero(np.diff(rule // classes, prepend=-1))
            covered = np.repeat(np.add.reduceat(hits, first), np.diff(first, append=len(rule)))
            if covered.max() >= support:
                frequent.add(columns)
            found = rule[(covered >= support) & (hits >= accuracy * covered - 1e-9)]
            rows = np.full((len(found), len(features)), -1, np.int64)
            condition = found // classes
            for column, kinds in zip(columns[::-1], radix[::-1], strict=True):
                rows[:, column] = condition % kinds
                condition //= kinds
            values.append(rows)
            answers.append(found % classes)
    table, answer = np.concatenate(values), np.concatenate(answers)
    return Rules(table, answer, _minimal(table, answer))


@dataclass(frozen=True)
class Shown:
    """What another table says about every rule."""

    learned: NDArray[np.bool_]
    """Some record meets the conditions, and no class is more frequent among those that do than the rule's."""
    strict: NDArray[np.bool_]
    """The rule covers enough records and is accurate enough in this table too."""


def shown(rules: Rules, features: Sequence[NDArray], target: NDArray, accuracy: float, support: int) -> Shown:
    """Look for the rules in a table of base values."""
    label = np.asarray(target, np.int64)
    classes = int(max(label.max(), rules.answer.max(initial=0))) + 1
    counts = np.zeros((len(rules), classes))
    if not len(rules):
        return Shown(np.zeros(0, bool), np.zeros(0, bool))
    shapes, shape = np.unique(rules.values >= 0, axis=0, return_inverse=True)
    for number, used in enumerate(shapes):
        columns = np.flatnonzero(used).tolist()
        which = np.flatnonzero(shape.ravel() == number)
        radix = [int(max(features[c].max(), rules.values[which, c].max())) + 1 for c in columns]
        key, wanted = (
            _keys([features[c] for c in columns], radix),
            _keys(list(rules.values[which][:, columns].T), radix),
        )
        listed, place = np.unique(wanted, return_inverse=True)
        at = np.minimum(np.searchsorted(listed, key), len(listed) - 1)
        met = listed[at] == key
        table = np.bincount(at[met] * classes + label[met], minlength=len(listed) * classes).reshape(-1, classes)
        counts[which] = table[place.ravel()]
    return _judged(rules, counts, accuracy, support)


def estimated(
    rules: Rules,
    table: GeneralTable,
    features: Sequence[str],
    target: str,
    weights: Mapping[str, NDArray[np.float64]],
    accuracy: float,
    support: int,
) -> Shown:
    """The same by estimated counts: nothing is drawn, a general value counts by the weights under it."""
    columns = (target, *features)
    members = {name: np.eye(len(table.columns[name].domain), dtype=bool) for name in columns}
    counts = np.zeros((len(rules), len(table.columns[target].domain)))
    for label in range(counts.shape[1]):
        asked = np.column_stack([np.full(len(rules), label), rules.values])
        counts[:, label] = estimate(table, members, Queries(columns, asked), weights)
    return _judged(rules, counts, accuracy, support)


def _judged(rules: Rules, counts: NDArray, accuracy: float, support: int) -> Shown:
    """From how many records of every class meet the conditions of every rule."""
    covered, hits = counts.sum(axis=1), counts[np.arange(len(rules)), rules.answer]
    strict = (covered >= support - 1e-9) & (hits >= accuracy * covered - 1e-9)
    return Shown(np.asarray((hits > 0) & (hits >= counts.max(axis=1, initial=0) - 1e-9)), np.asarray(strict))


def _keys(columns: Sequence[NDArray], radix: Sequence[int]) -> Codes:
    """The values of some columns as one number."""
    key = np.zeros(len(columns[0]), np.int64)
    for column, kinds in zip(columns, radix, strict=True):
        key = key * kinds + column
    return key


def _minimal(values: Codes, answer: Codes) -> NDArray[np.bool_]:
    """Whether no proper part of a rule's conditions is a rule for the same class."""
    sets = [
        (frozenset((c, v) for c, v in enumerate(row) if v >= 0), label)
        for row, label in zip(values.tolist(), answer.tolist(), strict=True)
    ]
    known = set(sets)
    out = [
        not any((frozenset(part), label) in known for size in range(1, len(rule)) for part in combinations(rule, size))
        for rule, label in sets
    ]
    return np.array(out, bool)
