"""Full-domain generalisation from its definition: every level vector, classes as dictionaries of records.

Slow and obvious. Nothing here comes from the package but hierarchies and roles of columns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from math import exp, log
from typing import Any

Classes = dict[tuple[str, ...], list[int]]
Test = Callable[[list[list[int]]], bool]
"""Whether one class meets a requirement, from its records' codes in every sensitive column."""


def generalised(levels: Sequence[Sequence[str]], height: int, code: int) -> tuple[int, ...]:
    """The leaves under a value's node at a height."""
    label = levels[height][code]
    return tuple(leaf for leaf, other in enumerate(levels[height]) if other == label)


def classes_at(vector: Sequence[int], hierarchies: Sequence[Any], rows: Sequence[Sequence[int]]) -> Classes:
    found: Classes = defaultdict(list)
    for record, row in enumerate(rows):
        key = tuple(h.levels[level][code] for h, level, code in zip(hierarchies, vector, row, strict=True))
        found[key].append(record)
    return dict(found)


def requirement(model: str, column: int, **given: float) -> Test:
    """One class-wise model, as its definition says."""

    def holds(members: list[list[int]]) -> bool:
        n = len(members)
        if model == "k-anonymity":
            return n >= given["k"]
        counts = sorted(Counter(values[column] for values in members).values(), reverse=True)
        if model == "distinct-l-diversity":
            return len(counts) >= given["l"]
        if model == "frequency-l-diversity":
            return counts[0] * given["l"] <= n + 1e-9
        if model == "entropy-l-diversity":
            return exp(-sum(c / n * log(c / n) for c in counts)) >= given["l"] - 1e-7
        if model == "recursive-cl-diversity":
            return counts[0] < given["c"] * sum(counts[int(given["l"]) - 1 :]) - 1e-9
        if model == "alpha-k-anonymity":
            return counts[0] <= given["alpha"] * n + 1e-9 and n >= given["k"]
        if model == "p-sensitive-k-anonymity":
            return len(counts) >= given["p"] and n >= given["k"]
        raise LookupError(model)

    return holds


def loss_at(
    loss: str,
    vector: Sequence[int],
    hierarchies: Sequence[Any],
    rows: Sequence[Sequence[int]],
    classes: Classes,
    dropped: set[int],
    weights: Sequence[float],
    numbers: Sequence[Sequence[float] | None],
) -> float:
    n = len(rows)
    kept = [records for records in classes.values() if records[0] not in dropped]
    if loss == "discernibility":
        return float(sum(len(records) ** 2 for records in kept) + n * len(dropped))
    if loss == "class-size":
        return n / len(kept)
    if loss == "height":
        total = sum(w * h.height for w, h in zip(weights, hierarchies, strict=True))
        climbed = sum(w * v for w, v in zip(weights, vector, strict=True))
        return (climbed * (n - len(dropped)) / n + total * len(dropped) / n) / total
    whole = 0.0
    for i, (h, level, weight) in enumerate(zip(hierarchies, vector, weights, strict=True)):
        d = len(h.leaves)
        counts = Counter(row[i] for row in rows)
        entropy = sum(c / n * log(n / c) for c in counts.values())
        for record, row in enumerate(rows):
            under = range(d) if record in dropped else generalised(h.levels, level, row[i])
            if loss == "entropy":
                here = log(sum(counts[leaf] for leaf in under) / counts[row[i]]) / entropy if entropy else 0.0
            elif record in dropped:
                here = 1.0
            elif loss == "ncp" and numbers[i] is not None:
                values, all_values = [numbers[i][leaf] for leaf in under], numbers[i]
                width = max(all_values) - min(all_values)
                here = (max(values) - min(values)) / width if width else 0.0
            else:
                here = (len(under) - 1) / (d - 1) if d > 1 else 0.0
            whole += weight * here
    return whole / n / sum(weights)


def best(
    loss: str,
    hierarchies: Sequence[Any],
    rows: Sequence[Sequence[int]],
    sensitive: Sequence[list[int]],
    tests: Sequence[Test],
    limit: int,
    weights: Sequence[float],
    numbers: Sequence[Sequence[float] | None],
) -> float | None:
    """The least loss over the whole lattice, or None where no level vector can be published."""
    found: float | None = None
    for vector in product(*(range(h.height + 1) for h in hierarchies)):
        classes = classes_at(vector, hierarchies, rows)
        failing = [r for r in classes.values() if not all(test([sensitive[m] for m in r]) for test in tests)]
        dropped = {record for records in failing for record in records}
        if len(dropped) > limit:
            continue
        here = loss_at(loss, vector, hierarchies, rows, classes, dropped, weights, numbers)
        found = here if found is None else min(found, here)
    return found
