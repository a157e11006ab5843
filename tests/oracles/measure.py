"""What a table achieves, plainly: rows as dictionaries, classes by comparing keys, each figure from its definition."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from tests.oracles.classes import gathered, induced, judge

Row = Mapping[str, str | None]
LARGEST_IS_WORST = {
    "alpha-k-anonymity",
    "recursive-cl-diversity",
    "tau-l-diversity",
    "t-closeness",
    "beta-likeness",
    "delta-disclosure",
}
ASKED: dict[str, dict[str, Any]] = {
    "alpha-k-anonymity": {"alpha": 0.5, "k": 1},
    "distinct-l-diversity": {"l": 2},
    "frequency-l-diversity": {"l": 2},
    "entropy-l-diversity": {"l": 2},
    "recursive-cl-diversity": {"c": 1.0},
    "p-sensitive-k-anonymity": {"p": 2, "k": 2},
    "tau-l-diversity": {"tau": 0.5},
    "t-closeness": {"t": 0.5},
    "beta-likeness": {"beta": 1.0},
    "delta-disclosure": {"delta": 1.0},
    "le-diversity": {"l": 2},
}
"""Parameters that do not change the figure."""


def kept(rows: Sequence[Row], quasi: Sequence[str], mark: str | None) -> list[Row]:
    """The rows that were not dropped: some quasi-identifier does not hold the mark."""
    return [row for row in rows if mark is None or not quasi or any(row[name] != mark for name in quasi)]


def smallest_class(rows: Sequence[Row], quasi: Sequence[str]) -> int:
    return min(len(one) for one in gathered([tuple(row[name] for name in quasi) for row in rows], rows).values())


def achieved(
    rows: Sequence[Row],
    quasi: Sequence[str],
    column: str,
    model: str,
    given: Mapping[str, Any],
    levels: Sequence[Sequence[str]],
) -> float:
    """The worst figure over all classes of the other quasi-identifiers.

    `levels` are the column's values in their order and, from height 1 on, their ancestors. A cell may hold an ancestor:
    it then stands for each value under it. Values that are missing have to stand in the first level as None.
    """
    keys = [tuple(row[name] for name in quasi if name != column) for row in rows]
    cells = [under(row[column], levels) for row in rows]
    d = len(levels[0])
    whole = induced(cells, d)
    figures = [
        judge(model, ASKED[model] | dict(given), induced(one, d), len(one), whole, levels)[0]
        for one in gathered(keys, cells).values()
    ]
    return float(max(figures) if model in LARGEST_IS_WORST else min(figures))


def under(cell: str | None, levels: Sequence[Sequence[Any]]) -> tuple[int, ...]:
    """The positions of the values that a cell stands for."""
    level = next(level for level in levels if cell in level)
    return tuple(i for i, label in enumerate(level) if label == cell)


def largest_l(rows: Sequence[Row], quasi: Sequence[str], column: str, model: str, most: int, levels: Any) -> list[int]:
    """The l from 2 on that are reported: up to the first that no parameter reaches, and never beyond `most`."""
    out = []
    for l in range(2, min(most, len(levels[0])) + 1):
        out.append(l)
        figure = achieved(rows, quasi, column, model, {"l": l}, levels)
        if figure >= (inf if model == "recursive-cl-diversity" else 1.0):
            break
    return out
