"""Which tables a release has in a base, and what their columns hold.

`cells` has one row for each published row: values as they are, and numbers where a column says the same thing in many
rows: a set, a general value, a group. What the numbers mean stands in a table of its own, once. The view `records`
puts both together, for people: sets as arrays, intervals as ranges.

Intervals are stored as the range types of PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from noren.errors import ReleaseError
from noren.release.database.counts import Pair, table_name
from noren.release.sides import sides
from noren.schema.nodes import Nodes
from noren.sources.postgres import quoted, text
from noren.statements import Cells, Statement

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
WHOLE = re.compile(r"-?\d{1,18}")
INTERVAL = re.compile(r"\[(?P<low>[^,\[\]()]+), (?P<high>[^,\[\]()]+)(?P<close>[\])])")
BELOW = "below "
ABOVE = " and above"
EVERYTHING = ("*", "any")


def range_type(labels: Sequence[str]) -> tuple[str, list[str]] | None:
    """The range type that can hold all these general values, and each as its text; None where one is no interval."""
    found = [_ends(label) for label in labels]
    ends = [end for pair in found if pair is not None for end in pair[:2] if end]
    kind = _kind(ends) if ends else None
    if kind is None or None in found:
        return None
    texts = [f"{'[' if low else '('}{low},{high}{close}" for low, high, close in found if found]  # type: ignore[misc]
    return kind, texts


def _ends(label: str) -> tuple[str, str, str] | None:
    """Lower end, upper end (empty where open) and the closing bracket."""
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
    """The table of what the numbers in one column mean."""

    name: str
    cells: Cells
    """The different cells of the column, by number."""
    content: Any
    """The same as Arrow values."""
    ranges: tuple[str, list[str]] | None = None

    def definition(self, schema: str) -> list[str]:
        full = f"{schema}.{quoted(self.name)}"
        interval = "" if self.ranges is None else f", interval {self.ranges[0]} NOT NULL"
        return [f"CREATE TABLE {full} (id int PRIMARY KEY, value {sql_type(self.content.type)} NOT NULL{interval})"]


def plain(array: Any) -> Any:
    """An Arrow array without dictionaries, which PostgreSQL does not have."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_list(array.type) and pa.types.is_dictionary(array.type.value_type):
        return array.cast(pa.list_(array.type.value_type.value_type))
    return array


def sql_type(kind: Any) -> str:
    """The type in PostgreSQL of an Arrow type that releases have."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    known = {"string": "text", "int64": "int8", "int32": "int4", "uint32": "int8", "double": "float8"}
    known |= {"bool": "boolean", "date32[day]": "date", "uint64": "int8", "uint16": "int4", "uint8": "int4"}
    if str(kind) not in known:
        raise ReleaseError(f"a column of {kind} has no place in PostgreSQL.")
    return known[str(kind)]


def lookup_name(statement: Statement, number: int) -> str | None:
    """The table that a column's numbers are kept in; None where the cells stand as they are."""
    if statement.nodes is not None:
        return f"nodes_{number}"
    return f"sets_{number}" if statement.design is not None and statement.kinds is None else None


def node_ranges(nodes: Nodes | None) -> tuple[str, list[str]] | None:
    return None if nodes is None else range_type(nodes.labels)


def side_name(side: str) -> str:
    return side.replace("-", "_")


def key_table(side: str) -> str:
    """The table that numbers the groups of a side table, which has several rows for each."""
    return f"{side_name(side)}_keys"


def demand_names(columns: Sequence[Statement]) -> None:
    for column in columns:
        if column.name in SYSTEM:
            raise ReleaseError(
                f"the column {column.name!r} has a name that PostgreSQL keeps for itself.",
                hint="Rename it in the original and release again.",
            )
        if len(column.name.encode()) > LONGEST:
            raise ReleaseError(
                f"the column {column.name!r} has a name longer than PostgreSQL's {LONGEST} bytes.",
                hint="Rename it in the original and release again.",
            )


def view_query(schema: str, columns: Sequence[Statement]) -> str:
    """The query behind the view that people read, as it is published and as it must be found."""
    shown, joined = [], []
    for number, column in enumerate(columns):
        name, lookup = quoted(column.name), lookup_name(column, number + 1)
        if lookup is None:
            shown.append(f"c.{name}")
            continue
        shown.append(f"l{number}.{'value' if node_ranges(column.nodes) is None else 'interval'} AS {name}")
        joined.append(f"JOIN {schema}.{quoted(lookup)} l{number} ON l{number}.id = c.{name}")
    return f"SELECT {', '.join(shown)} FROM {schema}.{CELLS} c {' '.join(joined)}"


def comments(
    schema: str, columns: Sequence[Statement], lookups: Sequence[Lookup | None], pairs: Sequence[Pair]
) -> list[str]:
    """A sentence on every column of `records` and on every table."""
    out = [
        f"COMMENT ON VIEW {schema}.{RECORDS} IS 'A release of noren: one row for each published row.'",
        f"COMMENT ON TABLE {schema}.{CELLS} IS 'The same rows with numbers for sets, general values and groups.'",
        f"COMMENT ON TABLE {schema}.{MANIFEST} IS 'What the cells mean, and what was required and holds.'",
    ]
    for column, lookup in zip(columns, lookups, strict=True):
        told = text(str(column.field().get("description") or f"{column.words[0].upper()}{column.words[1:]}."))
        out += [f"COMMENT ON COLUMN {schema}.{table}.{quoted(column.name)} IS {told}" for table in (RECORDS, CELLS)]
        if lookup is not None:
            meant = text(f"What the numbers in column {column.name} of cells mean.")
            out.append(f"COMMENT ON TABLE {schema}.{quoted(lookup.name)} IS {meant}")
    for pair in pairs:
        first, second = (columns[place - 1].name for place in pair)
        told = text(f"How many rows of cells have each pair of numbers in {first} and {second}.")
        out.append(f"COMMENT ON TABLE {schema}.{table_name(pair)} IS {told}")
    for side, sharing in sides(columns).items():
        out.append(
            f"COMMENT ON TABLE {schema}.{quoted(side_name(side))} IS "
            f"{text(sharing[0].side_title([one.name for one in sharing]))}"
        )
    return out
