"""Answers from rows of numbers, in words that fit whatever was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from noren_papers.claims import Answer, Below, Claim, Mean, Number, answer

Row = dict[str, Any]
ZERO_NOTE = "An error of exactly 0 has no place on this scale and no point."


def pairs(frame: pl.DataFrame, first: str, second: str, value: str) -> list[tuple[Row, Row]]:
    """Rows of two methods for the same data and requirement, where both have a value."""
    kept = [row for row in frame.to_dicts() if row[value] is not None]
    other = {(row["data"], row["requirement"]): row for row in kept if row["method"] == second}
    return [
        (row, other[row["data"], row["requirement"]])
        for row in kept
        if row["method"] == first and (row["data"], row["requirement"]) in other
    ]


def all_publish(frame: pl.DataFrame, methods: Sequence[str]) -> pl.DataFrame:
    """The rows of requirements for which each of the methods has a release."""
    have = {name: {(row["data"], row["requirement"]) for row in rows_of(frame, name, empty=False)} for name in methods}
    kept = set.intersection(*have.values())
    return frame.filter([(row["data"], row["requirement"]) in kept for row in frame.to_dicts()])


def rows_of(frame: pl.DataFrame, method: str, *, empty: bool | None = None) -> list[Row]:
    """Rows of a method; all, those without a release, or those with one."""
    found = [row for row in frame.to_dicts() if row["method"] == method]
    return found if empty is None else [row for row in found if (row["utility"] is None) == empty]


def named(rows: Sequence[Row], most: int = 6) -> str:
    """The requirements of some rows, with the data where there are several."""
    return listed(_names(rows), most)


def listed(words: Sequence[str], most: int = 6) -> str:
    if not words:
        return "none"
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def against(
    frame: pl.DataFrame, first: str, second: str, value: str, *, lower: bool, much: bool = False, digits: int = 3
) -> tuple[Claim, str]:
    """The first method has less (or, not `lower`, more), requirement by requirement that both meet; a sentence with the
    means and the exceptions. Where the sheet has standard errors of the value, they count."""
    both = pairs(frame, first, second, value)
    if not both:
        return Below([]), f"{first} and {second} never publish for the same requirement"
    sides = [(_number(a, value), _number(b, value)) for a, b in both]
    compared = Below([(a, b) if lower else (b, a) for a, b in sides], much)
    means = [sum(row[value] for row in side) / len(both) for side in zip(*both, strict=True)]
    text = f"{first} has {means[0]:.{digits}f} on average, {second} {means[1]:.{digits}f}"
    wrong = [(a, b) for a, b in both if (a[value] > b[value]) == lower and a[value] != b[value]]
    if wrong:
        where = listed(
            [f"{name} ({a[value]:.{digits}f} beside {b[value]:.{digits}f})"
             for name, (a, b) in zip(_names([a for a, _ in wrong]), wrong, strict=True)],
            4,
        )  # fmt: skip
        text += f"; the other way round at {where}"
    return compared, text


def _number(row: Row, value: str) -> Number:
    return Mean(row[value], row.get(f"{value}, standard error") or 0.0)


def _names(rows: Sequence[Row]) -> list[str]:
    several = len({row["data"] for row in rows}) > 1
    return [f"{row['data']} {row['requirement']}" if several else str(row["requirement"]) for row in rows]


def beside(frame: pl.DataFrame, first: str, others: Sequence[str], value: str, *, lower: bool) -> Answer:
    """Is the first method's value better than every other's, wherever both publish? Means are not mixed over data."""
    parts = []
    for (title,), part in frame.group_by("data", maintain_order=True):
        for other in others:
            compared, text = against(part, first, other, value, lower=lower)
            parts.append((compared, f"{title}: {text}"))
    return joined(parts)


def joined(parts: Sequence[tuple[Claim, str]]) -> Answer:
    """Several comparisons as one answer."""
    return answer("; ".join(text for _, text in parts), *(claim for claim, _ in parts))


def mean(values: Sequence[float | None]) -> float:
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else float("nan")
