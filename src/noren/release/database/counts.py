"""How often the cells of two columns occur together, kept in the base where that is far shorter than the rows.

Whoever has the rows can count them, so these tables publish nothing more; a question about two hidden columns then
reads some thousand lines instead of grouping millions. `verify` counts the rows again and compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.sources.postgres import quoted

ROWS_PER_PAIR = 8
"""Rows for every pair that is possible, at least; below that a table of pairs saves little."""
SHARE = 2
"""All these tables together have at most so many times fewer lines than the release has rows."""
FIELDS = ("first", "second", "rows")
Pair = tuple[int, int]


def table_name(pair: Pair) -> str:
    return f"counts_{pair[0]}_{pair[1]}"


def kept_pairs(sizes: Mapping[int, int], rows: int) -> list[Pair]:
    """Which columns are counted together, the pairs with the fewest lines first; `sizes` has the different cells of
    every column that is kept as numbers, by the column's place."""
    left, out = rows // SHARE, []
    for size, *pair in sorted((sizes[a] * sizes[b], a, b) for a, b in combinations(sorted(sizes), 2)):
        if size * ROWS_PER_PAIR > rows or size > left:
            break
        left -= size
        out.append((pair[0], pair[1]))
    return out


class PairTally:
    """The counts of all kept pairs, while rows go by."""

    def __init__(self, sizes: Mapping[int, int], rows: int) -> None:
        self.sizes = dict(sizes)
        self.held = {pair: np.zeros(sizes[pair[0]] * sizes[pair[1]], np.int64) for pair in kept_pairs(sizes, rows)}

    def add(self, ids: Mapping[int, NDArray]) -> None:
        """Take in the numbers that some rows have in every column."""
        for (first, second), held in self.held.items():
            both = ids[first].astype(np.int64) * self.sizes[second] + ids[second]
            np.add(held, np.bincount(both, minlength=len(held)), out=held)

    def tables(self) -> Iterator[tuple[Pair, Any]]:
        """What is written of every pair: the combinations that occur."""
        import pyarrow as pa

        for pair, held in self.held.items():
            place = np.flatnonzero(held)
            numbers = [part.astype(np.int32) for part in np.divmod(place, self.sizes[pair[1]])]
            yield pair, pa.table(dict(zip(FIELDS, [*numbers, held[place]], strict=True)))


def definition(schema: str, pair: Pair) -> str:
    return f"CREATE TABLE {schema}.{table_name(pair)} (first int NOT NULL, second int NOT NULL, rows int8 NOT NULL)"


def constraints(schema: str, pair: Pair, lookups: Sequence[str]) -> str:
    """Every pair once, and of numbers that mean something; checked at once, after the lines are there."""
    keys = [
        f"ADD FOREIGN KEY ({field}) REFERENCES {schema}.{quoted(lookup)} (id)"
        for field, lookup in zip(FIELDS[:2], lookups, strict=True)
    ]
    return f"ALTER TABLE {schema}.{table_name(pair)} ADD PRIMARY KEY (first, second), {', '.join(keys)}"


def reading(schema: str, pair: Pair, names: Mapping[int, str], title: str) -> str:
    """The query for the counts of some or all of a pair's columns, which are named by their places."""
    fields = dict(zip(pair, FIELDS[:2], strict=True))
    chosen = [fields[place] for place in names]
    shown = ", ".join(f"{fields[place]} AS {quoted(name)}" for place, name in names.items())
    if len(names) == len(pair):
        return f"SELECT {shown}, rows AS {quoted(title)} FROM {schema}.{table_name(pair)}"
    summed = f"sum(rows)::int8 AS {quoted(title)}"
    return f"SELECT {shown}, {summed} FROM {schema}.{table_name(pair)} GROUP BY {', '.join(chosen)}"


def comparison(schema: str, cells: str, pair: Pair, columns: Sequence[str]) -> str:
    """The query for lines that do not say how many rows there are."""
    first, second = map(quoted, columns)
    counted = f"SELECT {first} AS first, {second} AS second, count(*) AS n FROM {schema}.{cells} GROUP BY 1, 2"
    return (
        f"SELECT 1 FROM ({counted}) c FULL JOIN {schema}.{table_name(pair)} k USING (first, second) "
        "WHERE c.n IS DISTINCT FROM k.rows LIMIT 1"
    )
