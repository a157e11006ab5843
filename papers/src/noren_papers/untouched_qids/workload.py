"""Questions about groups of people, and what each kind of release answers.

A question names g quasi-identifiers and for each of them b = ceil(|A| s^(1/(g+1))) values drawn at random (equation
12); asked for is the histogram of the sensitive attribute among the records that have such values in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.metrics.general import node_totals
from noren.release.release import Release
from noren.schema.domain import infer_kind, sort_labels

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """Which values count in each of the quasi-identifiers that a user looks at."""

    chosen: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Coded:
    """The original records as codes into the values that occur."""

    codes: Mapping[str, NDArray[np.int64]]
    labels: Mapping[str, Sequence[str]]

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(values) for name, values in self.labels.items()}

    @property
    def records(self) -> int:
        return len(next(iter(self.codes.values())))

    def members(self, question: Question) -> NDArray[np.bool_]:
        inside = np.ones(self.records, np.bool_)
        for name, wanted in question.chosen.items():
            inside &= wanted[self.codes[name]] > 0
        return inside


def coded(frame: pl.DataFrame, columns: Sequence[str]) -> Coded:
    """Codes in the order in which the library lists a column's values."""
    codes, labels = {}, {}
    for name in columns:
        values = frame[name].unique().to_list()
        labels[name] = sort_labels(values, infer_kind(values))
        codes[name] = _places(frame[name], labels[name])
    return Coded(codes, labels)


def _places(column: pl.Series, labels: Sequence[str]) -> NDArray[np.int64]:
    import polars as pl

    order = {label: place for place, label in enumerate(labels)}
    return column.replace_strict(order, return_dtype=pl.Int64).to_numpy()


def asked_values(size: int, g: int, s: float) -> int:
    """Equation 12: how many values of an attribute a question names."""
    return int(min(size, ceil(size * s ** (1 / (g + 1)))))


def questions(
    table: Coded, quasi: Sequence[str], g: int, s: float, count: int, rng: np.random.Generator
) -> tuple[list[Question], int]:
    """Random questions that at least one record meets, and how many others were drawn and left out."""
    out: list[Question] = []
    empty = 0
    while len(out) < count:
        chosen = {}
        for place in sorted(rng.choice(len(quasi), g, replace=False).tolist()):
            size = table.sizes[quasi[place]]
            wanted = np.zeros(size)
            wanted[rng.choice(size, asked_values(size, g, s), replace=False)] = 1.0
            chosen[quasi[place]] = wanted
        question = Question(chosen)
        if table.members(question).any():
            out.append(question)
        else:
            empty += 1
        if empty > 50 * count + 1000:
            break
    return out, empty


def truths(table: Coded, secret: str, asked: Sequence[Question]) -> NDArray[np.int64]:
    """(questions, values): the true histograms."""
    size = table.sizes[secret]
    return np.stack([np.bincount(table.codes[secret][table.members(one)], minlength=size) for one in asked])


class Published:
    """A release as the questions see it: for every record the share of it that lies in a group.

    A release of general values lists all whole numbers of a range, so values are matched by their labels.
    """

    def __init__(self, release: Release, table: Coded, quasi: Sequence[str], secret: str) -> None:
        self.release = release
        self.secret = secret
        self.size = table.sizes[secret]
        self.cells: dict[str, Any] = {}
        self.places: dict[str, NDArray[np.int64]] = {}
        frame = None
        for name, cells in release.cells([*quasi, secret]).items():
            column = release.column(name).column
            if column.is_open:  # published without a list of its values
                frame = release.frame() if frame is None else frame
                self.cells[name] = _places(frame[name].cast(str), table.labels[name])
                self.places[name] = np.arange(table.sizes[name])
            else:
                self.cells[name] = cells
                index = {label: place for place, label in enumerate(table.labels[name])}
                self.places[name] = np.array([index.get(value, -1) for value in column.domain.values], np.int64)
        if not np.array_equal(self.places[secret], np.arange(self.size)):
            raise ValueError(f"the release lists other values of {secret!r} than the table has")

    def shares(self, question: Question) -> Floats:
        """A general value counts by the share of its base values that the question names (the papers' uniform rule)."""
        out = np.ones(self.release.records)
        for name, asked in question.chosen.items():
            cells, place = self.cells[name], self.places[name]
            wanted = np.where(place >= 0, asked[place], 0.0)
            nodes = self.release.column(name).nodes
            if nodes is not None:
                out *= (node_totals(nodes, wanted) / nodes.sizes)[cells.data]
            else:
                out *= wanted[cells if isinstance(cells, np.ndarray) else cells.data]
        return out

    def spread_histogram(self, question: Question) -> Floats:
        """Expected counts of the sensitive values: as published (TP, Mondrian), or by the shares of its group."""
        weights, cells = self.shares(question), self.cells[self.secret]
        table = self.release.column(self.secret).table
        if table is None:
            return np.asarray(np.bincount(cells.data, weights, minlength=self.size), float)
        share = np.bincount(cells.data, weights, minlength=table.groups) / np.maximum(table.sizes, 1)
        counts = np.repeat(share, np.diff(table.bounds)) * table.count
        return np.asarray(np.bincount(table.value, counts, minlength=self.size), float)


def squared_errors(truth: NDArray[np.int64], estimate: Floats) -> tuple[Floats, Floats]:
    """Equation 11 for every question, read in two ways: both histograms as shares of their own totals (the second
    total is then what equation 4 counts in the published table), or both divided by the true number of records."""
    total = truth.sum(axis=1, keepdims=True)
    own = estimate.sum(axis=1, keepdims=True)
    shares = truth / total
    first = ((shares - estimate / np.where(own > 0, own, 1.0)) ** 2).mean(axis=1)
    return first, ((shares - estimate / total) ** 2).mean(axis=1)
