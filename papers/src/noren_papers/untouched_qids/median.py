"""The papers' baseline Mondrian, as it was published: strict cuts at the median, the widest attribute first.

A class is cut where both halves keep the requirement; attributes are tried from the widest to the narrowest, as a share
of the whole table's range, values without numbers in the order of their list. What is published of a class is the range
that it covers in every attribute. (LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity, ICDE 2006.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren_papers.untouched_qids.workload import Coded, Question

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Classes:
    """Classes of a median-cut release: the lowest and highest code of every attribute, and the secrets inside."""

    quasi: tuple[str, ...]
    low: Ints
    high: Ints
    secrets: Ints

    def histogram(self, question: Question) -> NDArray[np.float64]:
        """Expected counts of the secrets: a class counts by the share of its range that the question names."""
        share = np.ones(len(self.low))
        for name, asked in question.chosen.items():
            j = self.quasi.index(name)
            before = np.concatenate(([0.0], np.cumsum(asked)))
            share *= (before[self.high[:, j] + 1] - before[self.low[:, j]]) / (self.high[:, j] - self.low[:, j] + 1)
        return np.asarray(share @ self.secrets, float)


def median_classes(table: Coded, quasi: Sequence[str], secret: str, l: int) -> Classes | None:
    """Classes in which no secret has more than 1/l of the records, or None where the whole table is not one."""
    codes = np.stack([table.codes[name] for name in quasi], axis=1)
    hidden, size = table.codes[secret], table.sizes[secret]
    span = np.maximum(codes.max(axis=0) - codes.min(axis=0), 1)
    if not _diverse(np.bincount(hidden, minlength=size), l):
        return None
    open_classes, done = [np.arange(len(codes))], []
    while open_classes:
        rows = open_classes.pop()
        halves = _cut(codes, hidden, size, rows, span, l)
        if halves is None:
            done.append(rows)
        else:
            open_classes += halves
    return Classes(
        tuple(quasi),
        np.stack([codes[rows].min(axis=0) for rows in done]),
        np.stack([codes[rows].max(axis=0) for rows in done]),
        np.stack([np.bincount(hidden[rows], minlength=size) for rows in done]),
    )


def _cut(codes: Ints, hidden: Ints, size: int, rows: Ints, span: Ints, l: int) -> list[Ints] | None:
    """The two halves of a class at the median of the widest attribute that can be cut, or None."""
    if len(rows) < 2 * l:
        return None
    mine = codes[rows]
    width = (mine.max(axis=0) - mine.min(axis=0)) / span
    for j in np.argsort(-width, kind="stable"):
        if width[j] == 0:
            break
        left = mine[:, j] <= np.sort(mine[:, j])[(len(rows) - 1) // 2]
        if left.all():  # the median is the highest value: nothing is above it
            left = mine[:, j] < mine[:, j].max()
        halves = [rows[left], rows[~left]]
        if all(_diverse(np.bincount(hidden[half], minlength=size), l) for half in halves):
            return halves
    return None


def _diverse(counts: Ints, l: int) -> bool:
    return int(counts.max()) * l <= int(counts.sum())
