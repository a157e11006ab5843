"""Ranges of ordered values: at least 30, before 1987-05. A missing cell lies in none."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, datetime
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.extents import after, kind_of, place_text
from noren.schema.hierarchy import value_text
from noren.schema.kinds import CALENDAR, as_number

SIGNS: Mapping[str, Callable[[NDArray, float], NDArray]] = {
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
}
"""How a value may stand to the end of a range."""


def in_range(column: Column, wanted: Mapping[str, object], domain: Domain) -> NDArray[np.bool_]:
    """Which values lie inside all given ends."""
    low, high, end = _places(column, domain)
    out = ~np.isnan(low)
    for sign, given in wanted.items():
        first, last = end(value_text(given))
        place = first if sign in (">=", "<") else last
        if domain.edges is None:
            out &= SIGNS[sign](low, place)
            continue
        inside, outside = _parted(domain, low, high, sign, place)
        if (out & ~inside & ~outside).any():
            ends = [_edge_text(edge, domain.measure) for edge in domain.edges if isfinite(edge)]
            hint = f"Bins end at {', '.join(ends)}: ask with >= or < one of these." if ends else "There is one bin."
            raise QueryError(
                f"{column.name!r} was published in bins, and {value_text(given)} lies inside one of them.", hint=hint
            )
        out &= inside
    if not out.any():
        raise QueryError(f"the range on {column.name!r} admits no value.", hint="Give a wider one.")
    return out


def _parted(
    domain: Domain, low: NDArray[np.float64], high: NDArray[np.float64], sign: str, place: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which bins lie wholly inside one end of a range, and which wholly outside.

    A bin holds its lower edge and not its upper one, but the last of declared bins, which holds both. Where bins are of
    a measure, what is beyond a place begins one step after it.
    """
    if domain.measure is not None and sign in ("<=", ">"):
        sign, place = {"<=": "<", ">": ">="}[sign], after(place, domain.measure)
    closed = np.zeros(len(low), bool)
    if domain.measure is None and domain.edges is not None:
        closed[len(domain.edges) - 2] = isfinite(domain.edges[-1])
    below = (high < place) | ((high == place) & ~closed)
    if sign == ">=":
        return low >= place, below
    if sign == "<":
        return below, low >= place
    return (low > place, high <= place) if sign == ">" else (high <= place, low > place)


def _edge_text(edge: float, measure: str | None) -> str:
    return f"{edge:g}" if measure is None else place_text(edge, measure)


def _places(
    column: Column, domain: Domain
) -> tuple[NDArray[np.float64], NDArray[np.float64], Callable[[str], tuple[float, float]]]:
    """Where every value begins and ends, NaN for what has no place, and where a text begins and ends."""
    special = np.array([value in (MISSING, OTHER) for value in domain.values])

    def number(text: str) -> tuple[float, float]:
        try:
            return float(text), float(text)
        except ValueError:
            raise QueryError(f"{text!r} is not a number.", hint=f"{column.name!r} holds numbers.") from None

    if domain.edges is not None:
        low, high = np.full(len(domain), np.nan), np.full(len(domain), np.nan)
        count = len(domain.edges) - 1
        low[:count], high[:count] = domain.edges[:-1], domain.edges[1:]
        if domain.measure is not None and (kind := kind_of(domain.measure)) in CALENDAR:
            return low, high, lambda text: _moments(column, text, kind == "datetime")
        return low, high, number
    if domain.kind == "string":
        if not domain.is_ordered:
            hint = "Ranges are for numbers, dates and declared orders: name the values."
            raise QueryError(f"the values of {column.name!r} have no order.", hint=hint)

        def rank(text: str) -> tuple[float, float]:
            if text not in domain.index:
                raise QueryError(f"{column.name!r} has no value {text!r}.", hint="Name one of its values.")
            return float(domain.index[text]), float(domain.index[text])

        ranks = np.where(special, np.nan, np.arange(len(domain), dtype=np.float64))
        return ranks, ranks, rank
    at = np.array(
        [np.nan if gone else as_number(v, domain.kind) for v, gone in zip(domain.values, special, strict=True)]
    )
    if domain.kind in CALENDAR:
        return at, at, lambda text: _moments(column, text, domain.kind == "datetime")
    return at, at, number


def _moments(column: Column, text: str, seconds: bool) -> tuple[float, float]:
    """The first and the last day (or second) of a year, a month, a day or a moment."""
    try:
        if seconds and len(text) > 10:
            moment = (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()
            return moment, moment
        parts = [int(part) for part in text.split("-")]
        first = date(*[*parts, 1, 1][:3])
        month = 12 if len(parts) == 1 else first.month
        last = first if len(parts) > 2 else date(first.year, month, monthrange(first.year, month)[1])
    except (ValueError, TypeError, OverflowError):
        hint = "Write 1987, 1987-05 or 1987-05-03."
        raise QueryError(f"{text!r} is not a date, and {column.name!r} holds dates.", hint=hint) from None
    if not seconds:
        return float(first.toordinal()), float(last.toordinal())
    start = date(1970, 1, 1)
    return (first - start).days * 86400.0, (last - start).days * 86400.0 + 86399
