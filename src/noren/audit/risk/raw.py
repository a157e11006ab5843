"""The exact raw table as an adversary sees it: unique people, and people without near neighbours.

Texts that write the same value are one value (160.0 and 160); missing cells equal each other, and nothing else.

A *minimal sample unique* (MSU) of a row is a combination that makes its person alone while no part of it does. SUDA2
(Manning, Haglin, Keane 2008) scores a row by its MSUs: one of s of ATT columns weighs prod_{i=s}^{M} (ATT - i) where
combinations of up to M columns are looked at (Elliot et al. 2005). Whoever is alone with some columns is alone with
more, so a combination is asked only for the rows that no part of it has made alone: those that are then alone are its
MSUs, and no other check of minimality is needed.

Linking by distance finds people whom nobody is near: an interval reaches a share of the column's standard deviation to
both sides, in all columns at once (as sdcMicro's `dRisk`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from noren.audit.people import Texts, read_texts
from noren.errors import DataError, suggest_columns
from noren.ragged import row_numbers
from noren.schema.column import Column
from noren.schema.kinds import CALENDAR, NUMERIC, Kind, as_number, reader, sniff
from noren.sources.source import Source


@dataclass(frozen=True)
class RawColumn:
    """One column of all rows."""

    name: str
    codes: NDArray[np.int64]
    """(n,) which value; a missing cell has a code of its own."""
    d: int
    """Different values, a missing one among them."""
    missing: int
    kind: Kind
    numbers: NDArray[np.float64] | None = None
    """(n,) where the values stand on a line, not a number where they are missing; None for texts."""


@dataclass(frozen=True)
class RawTable:
    """All rows of the raw table, and their persons."""

    name: str
    n: int
    columns: tuple[RawColumn, ...]
    people: NDArray[np.int64] | None = None
    """(n,) the number of every row's person; None where every row is a different person."""
    households: NDArray[np.int64] | None = None

    @property
    def persons(self) -> int:
        """Return the number of people."""
        return self.n if self.people is None else int(self.people.max()) + 1

    def person_of(self, rows: NDArray[np.bool_]) -> int:
        """Return how many people have one of these rows."""
        return int(rows.sum()) if self.people is None else len(np.unique(self.people[rows]))


def read_raw(
    source: Source,
    names: Sequence[str],
    declared: Mapping[str, Column],
    people_key: Sequence[str] = (),
    household: str | None = None,
    decimal: str | None = None,
) -> RawTable:
    """Read some columns, the key of people and the household. All other columns stay unread."""
    wanted = list(dict.fromkeys([*names, *people_key, *([household] if household else [])]))
    absent = [name for name in wanted if name not in source.columns]
    if absent:
        raise DataError(
            f"{source.name}: there is no column {', '.join(map(repr, absent))}.",
            hint=suggest_columns(wanted, source.columns),
        )
    read = read_texts(source, wanted)
    n = len(read[wanted[0]][1]) if wanted else 0
    if not n:
        raise DataError(f"{source.name}: it has a header but no rows.", hint="Give a table with at least one record.")
    columns = tuple(_column(name, *read[name], declared.get(name), decimal) for name in names)
    return RawTable(
        source.name,
        n,
        columns,
        _numbered([read[name] for name in people_key], "person") if people_key else None,
        _numbered([read[household]], "household") if household else None,
    )


def _column(
    name: str, texts: Sequence[str], places: NDArray[np.int64], declared: Column | None, decimal: str | None
) -> RawColumn:
    mark = (declared.decimal if declared is not None else None) or decimal
    present = np.bincount(places[places >= 0], minlength=len(texts)) > 0
    seen = [text for text, there in zip(texts, present.tolist(), strict=True) if there]
    sniffed = sniff(seen, mark)
    kind = "string" if declared is not None and declared.kind == "text" else sniffed.kind
    read = reader(kind, sniffed.format)
    values: dict[str, int] = {}
    table = np.full(len(texts) + 1, -1, np.int64)
    for at, text in enumerate(texts):
        if present[at]:
            table[at] = values.setdefault(read(text) or text, len(values))
    codes = table[places]
    gone = codes < 0
    d = len(values) + bool(gone.any())
    codes[gone] = d - 1
    numbers = None
    if kind in (*NUMERIC, *CALENDAR):
        line = np.array([*(as_number(value, kind) for value in values), np.nan])
        numbers = line[np.where(gone, len(values), codes)]
    return RawColumn(name, codes, d, int(gone.sum()), kind, numbers)


def _numbered(columns: Sequence[Texts], what: str) -> NDArray[np.int64]:
    """Number every row's person or household from 0."""
    if any((places < 0).any() for _, places in columns):
        raise DataError(f"the key of a {what} is missing in some records.", hint=f"Every {what} needs one.")
    return row_numbers([places for _, places in columns], [len(texts) for texts, _ in columns], len(columns[0][1]))


MOST_COLUMNS = 4
"""Columns of a combination, unless more are asked for."""
MOST_COMBINATIONS = 1_500
"""Combinations that are looked at; beyond, they are of fewer columns, and the result says so."""


@dataclass(frozen=True)
class Combination:
    """A combination of columns, and the number of people who are unique in it."""

    columns: tuple[str, ...]
    alone: int
    share: float
    minimal: int
    """Rows for which no part of the combination suffices."""


@dataclass(frozen=True)
class Uniques:
    """The unique people in every combination of columns."""

    size: int
    """Columns of the largest combinations that were looked at."""
    combinations: tuple[Combination, ...]
    """All of them, those that most people are unique with first."""
    scores: NDArray[np.float64]
    """(n,) the SUDA score of every row; 0 for one without an MSU."""
    contributions: NDArray[np.float64]
    """Share of the sum of all scores that comes from MSUs with each column."""
    by_size: tuple[int, ...]
    """MSUs of one column, of two, ..."""


def reach(columns: int, most: int) -> int:
    """Return the largest size of combinations, up to `most`, that can be computed."""
    most = min(most, columns)
    while most > 1 and sum(comb(columns, size) for size in range(1, most + 1)) > MOST_COMBINATIONS:
        most -= 1
    return most


def weight(size: int, columns: int, most: int) -> float:
    """Return the SUDA score that a minimal sample unique adds to its row."""
    return float(prod(columns - i for i in range(size, min(most, columns - 1) + 1)))


def find_uniques(table: RawTable, most: int = MOST_COLUMNS) -> Uniques:
    """Count the unique people in every combination of up to `most` columns, beginning with single columns."""
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
    """Number rows so that equal rows in the chosen columns have the same number."""
    columns = [table.columns[i] for i in chosen]
    codes = [column.codes if rows is None else column.codes[rows] for column in columns]
    return row_numbers(codes, [column.d for column in columns], table.n if rows is None else len(rows))


def class_sizes(table: RawTable, chosen: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of people of each class, and every row's class."""
    of = joined(table, chosen)
    if table.people is None:
        return np.bincount(of), of
    pairs = np.unique(of * np.int64(table.persons) + table.people)
    return np.bincount(pairs // table.persons), of


def _alone(table: RawTable, chosen: Sequence[int], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of these rows are in a class of one person."""
    import polars as pl

    key = pl.Series("k", joined(table, chosen, rows))
    if table.people is None:
        return key.is_unique().to_numpy()
    person = pl.col("p")
    frame = pl.DataFrame({"k": key, "p": table.people[rows]})
    return frame.select(one=person.min().over("k") == person.max().over("k"))["one"].to_numpy()


def dis_scores(scores: NDArray[np.float64], sizes: NDArray[np.int64], columns: int, fraction: float) -> NDArray:
    """Turn SUDA scores into probabilities that a match is right, for a sampling fraction (Elliot 2006).

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


WITHIN = 0.05
"""Half the interval, in standard deviations."""
FEW = 20
"""Whole numbers of so few different values have no distance."""
FIRST = 4
"""Neighbours that are looked at first, where a person may have several rows."""


@dataclass(frozen=True)
class Near:
    """Numeric columns, and the number of people without a near neighbour in them."""

    columns: tuple[str, ...]
    within: float
    alone: int
    share: float


def near(table: RawTable, within: float = WITHIN) -> list[Near]:
    """Count people without near neighbours in every numeric column, every pair, and all together. A person with a
    missing number is not counted."""
    numeric = [i for i, column in enumerate(table.columns) if column.numbers is not None and not _is_code(column)]
    asked: list[tuple[int, ...]] = [(i,) for i in numeric]
    if len(numeric) > 2:
        asked += [pair for pair in combinations(numeric, 2) if len(numeric) <= 5]
    if len(numeric) > 1:
        asked.append(tuple(numeric))
    out = []
    for chosen in asked:
        people = table.person_of(lonely(table, chosen, within))
        names = tuple(table.columns[i].name for i in chosen)
        out.append(Near(names, within, people, people / table.persons))
    return out


def _is_code(column: RawColumn) -> bool:
    """Return whether a column of whole numbers has so few values that they are probably categories."""
    return column.kind == "integer" and column.d <= FEW


def lonely(table: RawTable, chosen: Sequence[int], within: float) -> NDArray[np.bool_]:
    """Return the rows that have nobody else's row in the interval around them."""
    from scipy.spatial import cKDTree

    out = np.zeros(table.n, np.bool_)
    numbers = [table.columns[i].numbers for i in chosen]
    points = np.stack([part for part in numbers if part is not None], axis=1)
    complete = np.asarray(np.isfinite(points).all(axis=1))
    spread = np.nanstd(points, axis=0)
    sizes, of = class_sizes(table, chosen)
    single = np.flatnonzero((sizes[of] == 1) & complete)
    if not len(single):
        return out
    reach = np.where(spread * within > 0, spread * within, 1.0)
    _, first = np.unique(of, return_index=True)
    first = first[complete[first]]
    places = points[first] / reach
    tree = cKDTree(places)
    whose = np.arange(table.n) if table.people is None else table.people
    asked = first[sizes[of[first]] == 1]
    wanted = 2 if table.people is None else FIRST
    while len(asked):
        wanted = min(wanted, len(first))
        distance, neighbour = tree.query(points[asked] / reach, k=wanted, p=np.inf, distance_upper_bound=1 + 1e-9)
        distance, neighbour = distance.reshape(len(asked), -1), neighbour.reshape(len(asked), -1)
        close = np.isfinite(distance)
        other = close & (whose[first[np.where(close, neighbour, 0)]] != whose[asked][:, None])
        shared = sizes[of[first]][np.where(close, neighbour, 0)] > 1
        met = (other | (close & shared)).any(axis=1)
        full = close.all(axis=1) & ~met & (wanted < len(first))
        settled = asked[~met & ~full]
        out |= np.isin(of, of[settled])
        asked = asked[full]
        wanted *= 4
    return out & complete
