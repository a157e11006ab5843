"""Checks that the first line of delimited text is a header and that the separator is right. Nothing is quoted."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import islice, pairwise

from noren.errors import DataError
from noren.schema.kinds import CALENDAR, NUMERIC, is_code, sniff

MISSING = ("NA", "?")
"""What stands for a missing cell in many tables, besides what is declared."""
LOOKED_AT = 200
"""Lines that are looked at."""
FEWEST = 3
"""Records from which a column shows its kind."""
JSON = re.compile(r"\ufeff?\s*[\[{]\s*[\"{\[\]}]")
PAGE = re.compile(r"\ufeff?\s*<(?:\?xml|!|html\b)", re.IGNORECASE)
TAG = re.compile(r"\ufeff?\s*<[A-Za-z]")
"""How JSON, XML and pages begin. A name of a column may look like a tag; then what follows has as many cells."""
OTHERS = ",;\t|:^~"
SPELT = {"\t": "a tab"}


def demand_header(name: str, text: str, separator: str, missing: Sequence[str]) -> None:
    """Refuse text whose first line is probably a record, that needs another separator, or that is no table.

    Names of columns are shown in messages, so what stands in the place of names must be names.
    """
    lines = text.splitlines()
    lines = lines[:-1] if len(lines) > FEWEST and not text.endswith(("\n", "\r")) else lines
    try:
        rows = [row for row in islice(csv.reader(lines, delimiter=separator), LOOKED_AT) if row]
    except csv.Error:
        rows = []
    what = "JSON" if JSON.match(text) else "XML or HTML" if _is_markup(text, rows) else None
    if what is not None:
        raise DataError(
            f"{name}: this is {what}, not a table with a header line.",
            hint="Convert it to CSV, Parquet or Arrow; `polars.read_ndjson(file).write_parquet(...)` reads JSON lines.",
        )
    if len(rows) < 2:
        return
    _demand_separator(name, rows, separator)
    demand_names(name, rows, missing)


def demand_names(name: str, rows: Sequence[Sequence[str]], missing: Sequence[str]) -> None:
    """Refuse a table whose first row is probably a record."""
    if is_headless(rows, missing):
        raise DataError(
            f"{name}: the first line is probably a record, not a header, because its cells look like those below.",
            hint=(
                "Add a header line with the names of the columns. If the first line is a header, rename columns that "
                "look like numbers or dates."
            ),
        )


def _is_markup(text: str, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the text is XML or HTML."""
    widths = {len(row) for row in rows}
    return PAGE.match(text) is not None or (TAG.match(text) is not None and (len(widths) != 1 or 1 in widths))


def _demand_separator(name: str, rows: Sequence[Sequence[str]], separator: str) -> None:
    """Refuse a single column whose cells all contain another separator equally often."""
    if any(len(row) != 1 for row in rows):
        return
    for other in OTHERS:
        times = {row[0].count(other) for row in rows}
        if other != separator and len(times) == 1 and 0 not in times:
            shown = SPELT.get(other, repr(other))
            raise DataError(
                f"{name}: with the separator {SPELT.get(separator, repr(separator))} the table has one column, and "
                f"every line holds {shown} {times.pop()} times.",
                hint=f"Set the separator to {shown} (--separator, or separator under [data]).",
            )


def is_headless(rows: Sequence[Sequence[str]], missing: Sequence[str]) -> bool:
    """Return whether the first row is probably a record: its cells are of the kinds of the columns (numbers, dates,
    codes), or recur below."""
    first, below = rows[0], rows[1:]
    alike = other = 0
    numbers: list[str] = []
    for place, cell in enumerate(first):
        cells = [row[place] for row in below if len(row) > place and row[place].strip() not in missing]
        if len(cells) < FEWEST - 1 or cell.strip() in missing:
            continue
        kind = sniff(cells).kind
        typed = kind in (*NUMERIC, *CALENDAR) or is_code(cells)
        if not typed:
            returns = cell in cells and len(set(cells)) > 1  # a box that is ticked with its own name is none
            alike += returns
            other += cell not in cells
            continue
        both = sniff([*cells, cell]).kind
        same = is_code([*cells, cell]) if is_code(cells) else both == kind or (both in NUMERIC and kind in NUMERIC)
        if not same:
            return False
        alike += 1
        numbers.append(cell)
    return alike > 0 and (alike >= 2 or other == 0) and not _runs_on(numbers)


def _runs_on(cells: Sequence[str]) -> bool:
    """Return whether cells are years or consecutive whole numbers, which are common column names."""
    if len(cells) < 2 or not all(cell.strip().isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    steps = {b - a for a, b in pairwise(numbers)}
    years = all(1800 <= number <= 2100 for number in numbers)
    return len(steps) == 1 and steps != {0} and (years or (len(cells) > FEWEST and steps == {1}))
