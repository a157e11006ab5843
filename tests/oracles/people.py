"""Slow, plain answers about classes of people who may have several rows (DEFINITIONS, part 7)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.oracles import classes

Rows = dict[Hashable, list[int]]
"""The values of every person's rows in a class."""
HOLDERS = {"alpha-k-anonymity", "frequency-l-diversity", "tau-l-diversity"}
"""Models that count everybody who has a value in some row."""


HIGHER = {"frequency-l-diversity", "entropy-l-diversity", "le-diversity", "m-invariance", "semantic-diversity"}
"""Models whose higher figures are safer."""


def gathered(keys: Sequence[Hashable], people: Sequence[Hashable], values: Sequence[int]) -> dict[Hashable, Rows]:
    """The people of every class of equal keys, with the values of their rows in it."""
    out: dict[Hashable, Rows] = {}
    for key, person, value in zip(keys, people, values, strict=True):
        out.setdefault(key, {}).setdefault(person, []).append(value)
    return out


def holders(rows: Rows, d: int) -> list[Fraction]:
    """h_E: the share of people who have each value in at least one of their rows."""
    return [Fraction(sum(v in own for own in rows.values()), len(rows)) for v in range(d)]


def averaged(rows: Rows, d: int) -> list[Fraction]:
    """q_E: the mean over people of the share of their rows that have each value."""
    return [sum(Fraction(own.count(v), len(own)) for own in rows.values()) / len(rows) for v in range(d)]


def pooled(rows: Rows, d: int) -> list[Fraction]:
    """The share of rows that have each value: what everybody can count who does not know whose rows are whose."""
    every = [v for own in rows.values() for v in own]
    return [Fraction(every.count(v), len(every)) for v in range(d)]


def distinct(rows: Rows) -> int:
    """The values in the class, or one more than somebody who has the fewest others' values beside their own."""
    everything = {v for own in rows.values() for v in own}
    beside = [len({v for other, own in rows.items() if other != one for v in own}) for one in rows]
    return min(len(everything), 1 + min(beside))


def judge(
    model: str, given: Mapping[str, Any], rows: Rows, whole: Rows, d: int, levels: Sequence[Sequence[str]]
) -> tuple[float, bool]:
    """The worse figure of people and of rows, and whether both satisfy the model. `whole`: all rows of everybody."""
    if model == "distinct-l-diversity":
        return distinct(rows), distinct(rows) >= given["l"]
    if model == "p-sensitive-k-anonymity":
        return distinct(rows), distinct(rows) >= given["p"] and len(rows) >= given["k"]
    if model == "k-anonymity":
        return len(rows), len(rows) >= given["k"]
    shares = holders(rows, d) if model in HOLDERS else averaged(rows, d)
    found = [classes.judge(model, given, shares, len(rows), averaged(whole, d), levels)]
    if model != "m-invariance":
        n = sum(map(len, rows.values()))
        found.append(classes.judge(model, given, pooled(rows, d), n, pooled(whole, d), levels))
    figures = [min(figure, 1.0) if model == "tau-l-diversity" else figure for figure, _ in found]
    return (min if model in HIGHER else max)(figures), all(good for _, good in found)
