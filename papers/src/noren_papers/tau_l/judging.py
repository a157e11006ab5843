"""How this paper's sheets are compared: a line for every data set, requirement and method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from noren_papers.base import Gain
from noren_papers.relations import Compare, Kind

Row = dict[str, Any]
KEYS = ("data", "requirement")
ZERO_NOTE = "An error of exactly 0 has no place on this scale and no point."


def than(
    one: str, kind: Kind, other: str | Sequence[str], value: str, *, error: str | None = None, **more: Any
) -> Compare:
    """One method against others at every requirement that both meet. Means are not mixed over data sets."""
    return Compare(
        one, kind, other, value, **{"keys": KEYS, "series": "method", "apart": ("data",)} | more, error=error
    )


def rows_of(frame: pl.DataFrame, method: str, *, empty: bool | None = None) -> list[Row]:
    """Rows of a method; all, those without a release, or those with one."""
    found = [row for row in frame.to_dicts() if row["method"] == method]
    return found if empty is None else [row for row in found if (row["utility"] is None) == empty]


def pairs(frame: pl.DataFrame, first: str, second: str, value: str) -> list[tuple[Row, Row]]:
    """Rows of two methods for the same data and requirement, where both have a value."""
    kept = [row for row in frame.to_dicts() if row[value] is not None]
    other = {(row["data"], row["requirement"]): row for row in kept if row["method"] == second}
    return [
        (row, other[row["data"], row["requirement"]])
        for row in kept
        if row["method"] == first and (row["data"], row["requirement"]) in other
    ]


def gain(
    what: str, frame: pl.DataFrame, ours: str, theirs: str, value: str, reason: str = "", *, lost: bool = False
) -> tuple[Gain, ...]:
    """Ours over theirs, requirement by requirement. lost: what is missing from 1 is compared."""
    found = {
        f"{a['data']} {a['requirement']}": (1 - a[value]) / (1 - b[value]) if lost else a[value] / b[value]
        for a, b in pairs(frame, ours, theirs, value)
        if (b[value] < 1 if lost else b[value] > 0)
    }
    return Gain.of(what, found, reason)


def mean(values: Sequence[float | None]) -> float:
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else float("nan")
