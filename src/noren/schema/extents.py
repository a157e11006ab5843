"""Where the label of a generalised number or date begins and ends, and how ends are written.

A published interval says its edges itself: "[20, 30)", "below 18", "1987-Q2", "*". So a release of numbers or dates
lists no value at all: its base values are what lies between the edges that its cells show.

A measure says what stands on the line: whole numbers, numbers of so many decimals, days, seconds, codes of so many
digits. One step of it is the narrowest interval there is, and is written as the value itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from math import ceil, inf, isfinite, nextafter

from noren.schema.kinds import CALENDAR, MOMENT, Kind, as_number, number_text

MEASURE = r"^(integer|date|datetime|decimal-[0-9]{1,3}|code-([1-9]|1[0-5]))$"
ANYTHING = ("*", "any", "any number", "(suppressed)")
"""Labels that leave everything open."""
_NUMBERED = re.compile(r" \((?:level )?\d+\)$")
_MONTH = re.compile(r"(\d{4})-(\d\d)")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")
_WEEK = re.compile(r"(\d{4})-W(\d\d)")
_YEAR = re.compile(r"(\d{4})(s?)")
MOST_DECIMALS = 330


@dataclass(frozen=True)
class Ends:
    """The smallest and the largest number under a label; `closed` if the largest itself is included."""

    low: float
    high: float
    closed: bool = False


def strip_number(label: str) -> str:
    """Return a label without the number that distinguishes it from another of the same name."""
    return _NUMBERED.sub("", label)


def ends_of(label: str, kind: Kind) -> Ends | None:
    """Return the range of a label of numbers, dates or codes; None for other labels."""
    try:
        return _ends(strip_number(label), kind)
    except (ValueError, OverflowError):
        return None


def _ends(label: str, kind: Kind) -> Ends:
    if label in ANYTHING:
        return Ends(-inf, inf)
    if label.startswith("below "):
        return Ends(-inf, _point(label.removeprefix("below "), kind))
    if label.endswith(" and above"):
        return Ends(_point(label.removesuffix(" and above"), kind), inf)
    if label[:1] == "[" and label[-1:] in "])":
        low, high = label[1:-1].split(", ")
        last = _ends(high, kind)
        found = Ends(
            _ends(low, kind).low, last.high if label[-1] == "]" else last.low, label[-1] == "]" and last.closed
        )
        if not found.low <= found.high:
            raise ValueError("an interval rises")
        return found
    span = _span(label) if kind in CALENDAR else None
    if span is not None:
        return Ends(_day(span[0], kind), inf if span[1] is None else _day(span[1], kind))
    place = _point(label, kind)
    return Ends(place, place, closed=True)


def _point(text: str, kind: Kind) -> float:
    if kind in CALENDAR and len(text) == 10:
        return _day(date.fromisoformat(text), kind)
    if kind == "string" and not text.isdecimal():
        raise ValueError("a code is digits")
    found = as_number(text, kind)
    if not isfinite(found):
        raise ValueError("a number is finite")
    return found


def _day(day: date, kind: Kind) -> float:
    return (
        float(day.toordinal()) if kind == "date" else (datetime(day.year, day.month, day.day) - EPOCH).total_seconds()
    )


EPOCH = datetime(1970, 1, 1)
LAST = {
    "date": float(date.max.toordinal()),
    "datetime": (datetime.max.replace(microsecond=0) - EPOCH).total_seconds(),
}
"""Where the calendar ends on a measure."""


def _span(label: str) -> tuple[date, date | None] | None:
    """Return the first day of a span of the calendar, and the first day after it; None at the end of the calendar."""
    if found := _WEEK.fullmatch(label):
        first = date.fromisocalendar(int(found[1]), int(found[2]), 1)
        return first, first + timedelta(days=7) if first <= date.max - timedelta(days=7) else None
    if found := _QUARTER.fullmatch(label):
        year, month = int(found[1]), 3 * int(found[2]) - 2
        return date(year, month, 1), _first(year + month // 10, (month + 2) % 12 + 1)
    if found := _MONTH.fullmatch(label):
        year, month = int(found[1]), int(found[2])
        return date(year, month, 1), _first(year + month // 12, month % 12 + 1)
    if found := _YEAR.fullmatch(label):
        year = int(found[1])
        return date(year, 1, 1), _first(year + (10 if found[2] else 1), 1)
    return None


def _first(year: int, month: int) -> date | None:
    """Return the first day of a month; None beyond the calendar, whose last day often means "until further notice"."""
    return date(year, month, 1) if year <= date.max.year else None


# ---------------------------------------------------------------------- measures


def measure_for(kind: Kind, ends: Iterable[Ends], digits: int = 0) -> str:
    """Return the measure on which all these ends can be placed."""
    if kind == "string":
        return f"code-{digits}"
    if kind != "number":
        return kind
    shown = {end for one in ends for end in (one.low, one.high) if isfinite(end)}
    return f"decimal-{min(MOST_DECIMALS, max((_decimals(end) for end in shown), default=0))}"


def _decimals(number: float) -> int:
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def kind_of(measure: str) -> Kind:
    """Return the kind of the values on a measure."""
    name = measure.partition("-")[0]
    kinds: dict[str, Kind] = {"integer": "integer", "date": "date", "datetime": "datetime", "decimal": "number"}
    return kinds.get(name, "string")


def after(place: float, measure: str) -> float:
    """Return the next position on a measure; infinite after the last day."""
    if not measure.startswith("decimal-"):
        return inf if place >= LAST.get(measure, inf) else place + 1
    step = Decimal(1).scaleb(-int(measure.partition("-")[2]))
    return max(float(Decimal(repr(place)) + step), nextafter(place, inf))


def bounds_on(ends: Ends, measure: str) -> tuple[float, float]:
    """Return the first position under a label, and the first one after it."""
    low, high = ends.low, ends.high
    if not measure.startswith("decimal-"):
        low, high = (float(ceil(end)) if isfinite(end) and end != int(end) else end for end in (low, high))
        if ends.closed and high > ends.high:  # a closed end between two steps: the last step before it
            return low, high
    return low, after(high, measure) if ends.closed and isfinite(high) else high


def place_text(place: float, measure: str) -> str:
    """Return a position on a measure as a release writes it."""
    name, _, argument = measure.partition("-")
    if name == "date":
        return date.fromordinal(int(place)).isoformat()
    if name == "datetime":
        return (EPOCH + timedelta(seconds=place)).strftime(MOMENT)
    return f"{int(place):0{argument}}" if name == "code" else number_text(place)


def span_labels(edges: tuple[float, ...], measure: str) -> tuple[str, ...]:
    """Return labels between neighbouring edges: one step is the value itself, more is an interval without its end."""
    out = []
    for low, high in pairwise(edges):
        if low == -inf:
            out.append("any" if high == inf else f"below {place_text(high, measure)}")
        elif high == after(low, measure):
            out.append(place_text(low, measure))
        elif high == inf:
            out.append(f"{place_text(low, measure)} and above")
        else:
            out.append(f"[{place_text(low, measure)}, {place_text(high, measure)})")
    return tuple(out)
