"""The tables and columns of a release in a database.

`cells` has one row for each published row: values as they are, and numbers where a column says the same thing in many
rows: a set, a generalised value, a group. What the numbers mean stands in a table of its own, once. The view `records`
puts both together, for people: sets as arrays, intervals as range types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import ReleaseError
from noren.release.store import sides
from noren.schema.nodes import Nodes
from noren.sources.postgres import quote_name, quote_text
from noren.statements import Cells, Statement

# ---------------------------------------------------------------------- counted pairs
#
# How often the cells of two columns occur together, kept in the base where that is far shorter than the rows.
#
# Whoever has the rows can count them, so these tables publish nothing more; a question about two hidden columns then
# reads some thousand lines instead of grouping millions. `verify` counts the rows again and compares.

ROWS_PER_PAIR = 8
"""Rows for every pair that is possible, at least; below that a table of pairs saves little."""
SHARE = 2
"""All these tables together have at most so many times fewer lines than the release has rows."""
FIELDS = ("first", "second", "rows")
Pair = tuple[int, int]


def table_name(pair: Pair) -> str:
    return f"counts_{pair[0]}_{pair[1]}"


def kept_pairs(sizes: Mapping[int, int], rows: int) -> list[Pair]:
    """Return the pairs of columns that are counted together, the smallest first; `sizes` gives the number of distinct
    cells of every numbered column."""
    left, out = rows // SHARE, []
    for size, *pair in sorted((sizes[a] * sizes[b], a, b) for a, b in combinations(sorted(sizes), 2)):
        if size * ROWS_PER_PAIR > rows or size > left:
            break
        left -= size
        out.append((pair[0], pair[1]))
    return out


class PairTally:
    """Counts all kept pairs while rows are written."""

    def __init__(self, sizes: Mapping[int, int], rows: int) -> None:
        self.sizes = dict(sizes)
        self.held = {pair: np.zeros(sizes[pair[0]] * sizes[pair[1]], np.int64) for pair in kept_pairs(sizes, rows)}

    def add(self, ids: Mapping[int, NDArray]) -> None:
        """Add the numbers of some rows in every column."""
        for (first, second), held in self.held.items():
            both = ids[first].astype(np.int64) * self.sizes[second] + ids[second]
            np.add(held, np.bincount(both, minlength=len(held)), out=held)

    def tables(self) -> Iterator[tuple[Pair, Any]]:
        """Return the table of every pair: the combinations that occur."""
        import pyarrow as pa

        for pair, held in self.held.items():
            place = np.flatnonzero(held)
            numbers = [part.astype(np.int32) for part in np.divmod(place, self.sizes[pair[1]])]
            yield pair, pa.table(dict(zip(FIELDS, [*numbers, held[place]], strict=True)))


def pair_definition(schema: str, pair: Pair) -> str:
    return f"CREATE TABLE {schema}.{table_name(pair)} (first int NOT NULL, second int NOT NULL, rows int8 NOT NULL)"


def pair_constraints(schema: str, pair: Pair, lookups: Sequence[str]) -> str:
    """Return the constraints of pair tables: every pair once, and valid numbers; checked after the lines are
    inserted."""
    keys = [
        f"ADD FOREIGN KEY ({field}) REFERENCES {schema}.{quote_name(lookup)} (id)"
        for field, lookup in zip(FIELDS[:2], lookups, strict=True)
    ]
    return f"ALTER TABLE {schema}.{table_name(pair)} ADD PRIMARY KEY (first, second), {', '.join(keys)}"


def pair_reading(schema: str, pair: Pair, names: Mapping[int, str], title: str) -> str:
    """Return the query for the counts of some or all of a pair's columns, named by their positions."""
    fields = dict(zip(pair, FIELDS[:2], strict=True))
    chosen = [fields[place] for place in names]
    shown = ", ".join(f"{fields[place]} AS {quote_name(name)}" for place, name in names.items())
    if len(names) == len(pair):
        return f"SELECT {shown}, rows AS {quote_name(title)} FROM {schema}.{table_name(pair)}"
    summed = f"sum(rows)::int8 AS {quote_name(title)}"
    return f"SELECT {shown}, {summed} FROM {schema}.{table_name(pair)} GROUP BY {', '.join(chosen)}"


def pair_comparison(schema: str, cells: str, pair: Pair, columns: Sequence[str]) -> str:
    """Return the query for lines with wrong counts."""
    first, second = map(quote_name, columns)
    counted = f"SELECT {first} AS first, {second} AS second, count(*) AS n FROM {schema}.{cells} GROUP BY 1, 2"
    return (
        f"SELECT 1 FROM ({counted}) c FULL JOIN {schema}.{table_name(pair)} k USING (first, second) "
        "WHERE c.n IS DISTINCT FROM k.rows LIMIT 1"
    )


NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
WHOLE = re.compile(r"-?\d{1,18}")
INTERVAL = re.compile(r"\[(?P<low>[^,\[\]()]+), (?P<high>[^,\[\]()]+)(?P<close>[\])])")
BELOW = "below "
ABOVE = " and above"
EVERYTHING = ("*", "any")


def range_type(labels: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the range type for all these generalised values, and each as text; None if one is no interval."""
    found = [_ends(label) for label in labels]
    ends = [end for pair in found if pair is not None for end in pair[:2] if end]
    kind = _kind(ends) if ends else None
    if kind is None or None in found:
        return None
    texts = [f"{'[' if low else '('}{low},{high}{close}" for low, high, close in found if found]  # type: ignore[misc]
    return kind, texts


def _ends(label: str) -> tuple[str, str, str] | None:
    """Return the lower end, the upper end (empty if open) and the closing bracket."""
    if label in EVERYTHING:
        return "", "", ")"
    if match := INTERVAL.fullmatch(label):
        return match["low"], match["high"], match["close"]
    if label.startswith(BELOW):
        return "", label.removeprefix(BELOW), ")"
    if label.endswith(ABOVE):
        return label.removesuffix(ABOVE), "", ")"
    return label, label, "]"


def _kind(ends: Sequence[str]) -> str | None:
    if all(WHOLE.fullmatch(end) for end in ends):
        return "int8range"
    if all(NUMBER.fullmatch(end) for end in ends):
        return "numrange"
    return "daterange" if all(_is_date(end) for end in ends) else None


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


CELLS, RECORDS, MANIFEST = "cells", "records", "manifest"
SYSTEM = ("ctid", "tableoid", "xmin", "cmin", "xmax", "cmax")
"""Names that every table of PostgreSQL has already."""
LONGEST = 63
"""Bytes of a name in PostgreSQL; longer ones would be cut."""


@dataclass(frozen=True)
class Lookup:
    """The table with the meaning of the numbers in one column."""

    name: str
    cells: Cells
    """The different cells of the column, by number."""
    content: Any
    """The same as Arrow values."""
    ranges: tuple[str, list[str]] | None = None

    def definition(self, schema: str) -> list[str]:
        full = f"{schema}.{quote_name(self.name)}"
        interval = "" if self.ranges is None else f", interval {self.ranges[0]} NOT NULL"
        return [f"CREATE TABLE {full} (id int PRIMARY KEY, value {sql_type(self.content.type)} NOT NULL{interval})"]


def plain(array: Any) -> Any:
    """Return an Arrow array without dictionaries, which PostgreSQL does not support."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_list(array.type) and pa.types.is_dictionary(array.type.value_type):
        return array.cast(pa.list_(array.type.value_type.value_type))
    return array


def sql_type(kind: Any) -> str:
    """Return the PostgreSQL type of an Arrow type."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    known = {"string": "text", "int64": "int8", "int32": "int4", "uint32": "int8", "double": "float8"}
    known |= {"bool": "boolean", "date32[day]": "date", "uint64": "int8", "uint16": "int4", "uint8": "int4"}
    if str(kind) not in known:
        raise ReleaseError(f"a column of {kind} cannot be stored in PostgreSQL.")
    return known[str(kind)]


def lookup_name(statement: Statement, number: int) -> str | None:
    """Return the table with the meaning of a column's numbers; None if cells are stored directly."""
    if statement.nodes is not None:
        return f"nodes_{number}"
    return f"sets_{number}" if statement.design is not None and statement.kinds is None else None


def node_ranges(nodes: Nodes | None) -> tuple[str, list[str]] | None:
    return None if nodes is None else range_type(nodes.labels)


def side_name(side: str) -> str:
    return side.replace("-", "_")


def key_table(side: str) -> str:
    """Return the table that numbers the groups of a side table, which has several rows for each."""
    return f"{side_name(side)}_keys"


def demand_names(columns: Sequence[Statement]) -> None:
    for column in columns:
        if column.name in SYSTEM:
            raise ReleaseError(
                f"the name of column {column.name!r} is reserved by PostgreSQL.",
                hint="Rename it in the original and release again.",
            )
        if len(column.name.encode()) > LONGEST:
            raise ReleaseError(
                f"the column {column.name!r} has a name longer than PostgreSQL's {LONGEST} bytes.",
                hint="Rename it in the original and release again.",
            )


def view_query(schema: str, columns: Sequence[Statement]) -> str:
    """Return the query of the view for people, for publishing and for comparison."""
    shown, joined = [], []
    for number, column in enumerate(columns):
        name, lookup = quote_name(column.name), lookup_name(column, number + 1)
        if lookup is None:
            shown.append(f"c.{name}")
            continue
        shown.append(f"l{number}.{'value' if node_ranges(column.nodes) is None else 'interval'} AS {name}")
        joined.append(f"JOIN {schema}.{quote_name(lookup)} l{number} ON l{number}.id = c.{name}")
    return f"SELECT {', '.join(shown)} FROM {schema}.{CELLS} c {' '.join(joined)}"


def comments(
    schema: str, columns: Sequence[Statement], lookups: Sequence[Lookup | None], pairs: Sequence[Pair]
) -> list[str]:
    """Return a comment on every column of `records` and on every table."""
    out = [
        f"COMMENT ON VIEW {schema}.{RECORDS} IS 'A release of noren: one row for each published row.'",
        f"COMMENT ON TABLE {schema}.{CELLS} IS 'The same rows with numbers for sets, general values and groups.'",
        f"COMMENT ON TABLE {schema}.{MANIFEST} IS 'What the cells mean, and what was required and holds.'",
    ]
    for column, lookup in zip(columns, lookups, strict=True):
        told = quote_text(str(column.field().get("description") or f"{column.words[0].upper()}{column.words[1:]}."))
        out += [f"COMMENT ON COLUMN {schema}.{table}.{quote_name(column.name)} IS {told}" for table in (RECORDS, CELLS)]
        if lookup is not None:
            meant = quote_text(f"What the numbers in column {column.name} of cells mean.")
            out.append(f"COMMENT ON TABLE {schema}.{quote_name(lookup.name)} IS {meant}")
    for pair in pairs:
        first, second = (columns[place - 1].name for place in pair)
        told = quote_text(f"How many rows of cells have each pair of numbers in {first} and {second}.")
        out.append(f"COMMENT ON TABLE {schema}.{table_name(pair)} IS {told}")
    for side, sharing in sides(columns).items():
        out.append(
            f"COMMENT ON TABLE {schema}.{quote_name(side_name(side))} IS "
            f"{quote_text(sharing[0].side_title([one.name for one in sharing]))}"
        )
    return out
