"""How the columns of a table stand to each other: who has several rows, which column tells another, who is alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.sources.source import Source

READ = 500_000
"""Records that are looked at."""
PAIRED = 20_000
"""Records on which pairs of columns are compared."""
TELLS = 0.95
"""Share of the records whose value another column must name, to say that it tells it."""
ALONE = 3
"""Fewest records with one value from which anything follows."""
TRIVIAL = 0.9
"""A column most of whose records have one value is told by anything."""
MOST_COLUMNS = 80
SMALL_TABLE = 1 << 15
"""Cells up to which a cross table of two columns is counted whole; beyond, only those that occur."""


@dataclass(frozen=True)
class Codes:
    """The first records of a table, every cell as the number of its value; missing is a value."""

    columns: Mapping[str, NDArray[np.int64]]
    records: int
    whole: bool
    """Whether these are all records."""
    eighths: Mapping[str, NDArray[np.int64]]
    """Amounts by which eighth of the records they fall into."""

    def numbers(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The number of every record's combination of some columns."""
        out = np.zeros(self.records, np.int64)
        for name in names:
            codes = self.columns[name]
            _, out = np.unique(out * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        return out

    def alone(self, names: Sequence[str], people: NDArray[np.int64] | None = None) -> float:
        """The share of people who are the only ones with their combination of some columns."""
        key = self.numbers(names)
        if people is None:
            return float((np.bincount(key)[key] == 1).mean()) if self.records else 0.0
        pairs = np.unique(np.stack([key, people], axis=1), axis=0)
        lonely = np.bincount(pairs[:, 0])[pairs[:, 0]] == 1
        return len(np.unique(pairs[lonely, 1])) / max(1, len(np.unique(people)))


def read_codes(source: Source, names: Sequence[str], amounts: Sequence[str] = ()) -> Codes:
    """The codes of some columns in the first records; amounts also in eighths."""
    import polars as pl

    parts: dict[str, list[Any]] = {name: [] for name in names}
    records, whole = 0, True
    for batch in source.batches(list(names)):
        if records >= READ:
            whole = False
            break
        for name in names:
            column = pl.from_arrow(batch.column(name))
            assert isinstance(column, pl.Series)
            parts[name].append(column.cast(pl.String))
        records += batch.num_rows
    columns, eighths = {}, {}
    for name, pieces in parts.items():
        joined = pl.concat(pieces) if pieces else pl.Series([], dtype=pl.String)
        columns[name] = joined.rank("dense").fill_null(0).to_numpy().astype(np.int64)
        if name in amounts:
            ranks = joined.str.replace(",", ".").cast(pl.Float64, strict=False).rank("average")
            eighths[name] = ((ranks - 0.5) * 8 / max(1, records)).floor().fill_null(-1).to_numpy().astype(np.int64) + 1
    return Codes(columns, records, whole, eighths)


class Pairing:
    """One column of the records on which pairs are compared: what a pair asks of it is counted once."""

    def __init__(self, codes: NDArray[np.int64]) -> None:
        self.codes = codes
        sizes = np.bincount(codes)
        self.width = len(sizes)
        self.trivial = not len(codes) or int(sizes.max()) > TRIVIAL * len(codes)
        self.known = np.flatnonzero(sizes[codes] >= ALONE)
        """Records about which something follows from this column."""
        self.own = codes[self.known]

    def tells(self, other: Pairing) -> bool:
        """Whether its values name those of another, for nearly all records about which anything follows."""
        if other.trivial or len(self.known) < 0.5 * len(self.codes):
            return False
        whole = len(self.known) == len(self.codes)
        pairs = self.own * other.width + (other.codes if whole else other.codes[self.known])
        if self.width * other.width <= SMALL_TABLE:
            counts = np.bincount(pairs, minlength=self.width * other.width)
            named = counts.reshape(self.width, other.width).max(axis=1).sum()
        else:
            pair, count = np.unique(pairs, return_counts=True)
            best = np.zeros(self.width, np.int64)
            np.maximum.at(best, pair // other.width, count)
            named = best.sum()
        return bool(named >= TELLS * len(self.known))


def telling(codes: Codes, names: Sequence[str]) -> dict[tuple[str, str], bool]:
    """For every ordered pair of columns whether the first tells the second; only those that do."""
    few = {name: Pairing(codes.eighths.get(name, codes.columns[name])[:PAIRED]) for name in list(names)[:MOST_COLUMNS]}
    return {(a, b): True for a, b in permutations(few, 2) if few[a].tells(few[b])}
