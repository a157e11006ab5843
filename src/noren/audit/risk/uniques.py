"""Who is alone with what: combinations of columns in which nobody else has a person's values.

A *minimal sample unique* (MSU) of a row is a combination that makes its person alone while no part of it does. SUDA2
(Manning, Haglin, Keane 2008) finds them all and scores a row by them: an MSU of s of ATT columns weighs
prod_{i=s}^{M} (ATT - i) where combinations of up to M columns are looked at (Elliot et al. 2005), so that few columns
weigh most. Whoever is alone with some columns is alone with more, so a combination is asked only for the rows that no
part of it has made alone: those that are then alone are its MSUs, and no other check of minimality is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from noren.audit.risk.raw import RawTable

MOST_COLUMNS = 4
"""Columns of a combination, unless more are asked for."""
MOST_COMBINATIONS = 1_500
"""Combinations that are looked at; beyond, they are of fewer columns, and the result says so."""
ROOM = 1 << 62


@dataclass(frozen=True)
class Combination:
    """Columns, and how many people are alone with their values in them."""

    columns: tuple[str, ...]
    alone: int
    share: float
    minimal: int
    """Rows for which no part of the combination suffices."""


@dataclass(frozen=True)
class Uniques:
    """What every combination of columns gives away."""

    size: int
    """Columns of the largest combinations that were looked at."""
    combinations: tuple[Combination, ...]
    """All of them, those that most people are alone with first."""
    scores: NDArray[np.float64]
    """(n,) the SUDA score of every row; 0 for one without an MSU."""
    contributions: NDArray[np.float64]
    """Share of the sum of all scores that comes from MSUs with each column."""
    by_size: tuple[int, ...]
    """MSUs of one column, of two, ..."""


def reach(columns: int, most: int) -> int:
    """The largest size of combinations up to `most` whose number can be afforded."""
    most = min(most, columns)
    while most > 1 and sum(comb(columns, size) for size in range(1, most + 1)) > MOST_COMBINATIONS:
        most -= 1
    return most


def weight(size: int, columns: int, most: int) -> float:
    """What an MSU adds to the score of its row."""
    return float(prod(columns - i for i in range(size, min(most, columns - 1) + 1)))


def find_uniques(table: RawTable, most: int = MOST_COLUMNS) -> Uniques:
    """Every combination of up to `most` columns, from single columns on."""
    count = len(table.columns)
    most = reach(count, most)
    scores, shares = np.zeros(table.n), np.zeros(count)
    by_size: list[int] = []
    found: list[Combination] = []
    below: dict[tuple[int, ...], NDArray[np.uint8]] = {(): np.zeros((table.n + 7) // 8, np.uint8)}
    for size in range(1, most + 1):
        here: dict[tuple[int, ...], NDArray[np.uint8]] = {}
        worth, minimal = weight(size, count, most), 0
        for chosen in combinations(range(count), size):
            packed = np.bitwise_or.reduce([below[chosen[:i] + chosen[i + 1 :]] for i in range(size)])
            alone = np.unpackbits(packed, count=table.n).view(np.bool_)
            rows = np.flatnonzero(~alone)
            new = rows[_alone(table, chosen, rows)]
            alone[new] = True
            scores[new] += worth
            shares[list(chosen)] += worth * len(new)
            minimal += len(new)
            people = table.person_of(alone)
            names = tuple(table.columns[i].name for i in chosen)
            found.append(Combination(names, people, people / table.persons, len(new)))
            if size < most:
                here[chosen] = np.packbits(alone)
        below = here
        by_size.append(minimal)
    total = float(scores.sum())
    found.sort(key=lambda one: (-one.alone, len(one.columns)))
    return Uniques(most, tuple(found), scores, shares / total if total else shares, tuple(by_size))


def joined(table: RawTable, chosen: Sequence[int], rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """One number per row that is the same where all chosen columns are."""
    key, room = np.zeros(table.n if rows is None else len(rows), np.int64), 1
    for i in chosen:
        column = table.columns[i]
        codes = column.codes if rows is None else column.codes[rows]
        if room * column.d >= ROOM:
            values, key = np.unique(key, return_inverse=True)
            key, room = key.reshape(-1).astype(np.int64), len(values)
        key = key * column.d + codes
        room *= column.d
    return key


def class_sizes(table: RawTable, chosen: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many people each class has, and every row's class."""
    _, of = np.unique(joined(table, chosen), return_inverse=True)
    of = of.reshape(-1)
    if table.people is None:
        return np.bincount(of), of
    pairs = np.unique(of * np.int64(table.persons) + table.people)
    return np.bincount(pairs // table.persons), of


def _alone(table: RawTable, chosen: Sequence[int], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these rows are in a class of one person."""
    import polars as pl

    key = pl.Series("k", joined(table, chosen, rows))
    if table.people is None:
        return key.is_unique().to_numpy()
    person = pl.col("p")
    frame = pl.DataFrame({"k": key, "p": table.people[rows]})
    return frame.select(one=person.min().over("k") == person.max().over("k"))["one"].to_numpy()


def dis_scores(scores: NDArray[np.float64], sizes: NDArray[np.int64], columns: int, fraction: float) -> NDArray:
    """SUDA scores as chances that a match is right, if the table is a sample of this fraction (Elliot 2006).

    Data intrusion simulation (Skinner and Elliot 2002) gives the mean chance from the uniques and the pairs of the
    table; the scores say how it is spread over the rows, as sdcMicro does it.
    """
    out = np.zeros(len(scores))
    scored = scores > 0
    uniques, paired = int((sizes == 1).sum()), 2 * int((sizes == 2).sum())
    if not scored.any() or not uniques:
        return out
    mean = uniques * fraction / (uniques * fraction + paired * (1 - fraction))
    power = scores[scored] ** (1 + (8 - columns) / 20)
    out[scored] = 1 / (1 + uniques * (1 / mean - 1) / (power * (1 / power).sum()))
    return out
