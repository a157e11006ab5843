"""Detects what the texts of a column are: numbers, dates, booleans, or text.

A kind is sniffed from the distinct texts, with the evidence for a person to read, or said in the policy. Texts that
write the same value are one value: 160.0 and 160, 1.234,50 and 1234.5, 3.5.1987 and 1987-05-03.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

import numpy as np

Kind = Literal["string", "integer", "number", "date", "datetime", "boolean"]
NUMERIC: tuple[Kind, ...] = ("integer", "number")
CALENDAR: tuple[Kind, ...] = ("date", "datetime")
DAY = "%Y-%m-%d"
MOMENT = "%Y-%m-%d %H:%M:%S"
DATES = (
    DAY,
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d-%m-%y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %b %Y",
    "%Y年%m月%d日",
)
MOMENTS = (
    *(MOMENT, "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y/%m/%d %H:%M"),
    *("%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%y %H:%M", "%m/%d/%y %H:%M"),
)
DAY_FIRST = {f"%d/%m/{year}": f"%m/%d/{year}" for year in ("%Y", "%y", "%Y %H:%M", "%y %H:%M")}
"""Patterns, each with the one that writes the month first."""
EITHER = "dates, but day and month cannot be distinguished; declare format"
CENTURY = 2030
"""Two digits stand for a year before this one."""
TRUE, FALSE = "true", "false"


@dataclass(frozen=True)
class Format:
    """How a column writes its values, if that differs from how a release does."""

    decimal: str = "."
    thousands: str = ""
    pattern: str = ""
    """Of dates and moments, as strftime has it; ISO if empty."""


@dataclass(frozen=True)
class Sniffed:
    """A detected kind, its format, and the reason."""

    kind: Kind
    format: Format
    why: str


def is_whole(value: float) -> bool:
    """Return whether a number is a whole one that its text names exactly."""
    return float(value).is_integer() and abs(value) < 2**53


def number_text(value: float) -> str:
    """Return a number as a person writes it: 18 rather than 18.0."""
    return str(int(value)) if is_whole(value) else repr(float(value))


def is_code(labels: Sequence[str]) -> bool:
    """Return whether all texts are digits of one width, one of them with a leading zero: a code, not a number."""
    widths = {len(label) for label in labels}
    digits = len(widths) == 1 and max(widths) > 1 and all(map(str.isdecimal, labels))
    return digits and any(label.startswith("0") for label in labels)


def sniff(labels: Iterable[str], decimal: str | None = None) -> Sniffed:
    """Return the narrowest kind in which all texts can be read."""
    plain = list(labels)
    if not plain:
        return Sniffed("string", Format(), "no values")
    if is_code(plain):
        return Sniffed("string", Format(), "digits of one width with leading zeros: a code, in ascending order")
    if set(plain) <= {TRUE, FALSE}:
        return Sniffed("boolean", Format(), "true and false")
    for marks in _number_formats(plain, decimal):
        found = _numbers(plain, marks)
        if found is not None:
            whole = all(map(is_whole, found))
            bare = whole and not any(marks.decimal in label for label in plain)
            why = "whole numbers" if bare else "numbers"
            if marks != Format():
                why += f", decimals after {marks.decimal!r}"
                why += f", thousands parted by {marks.thousands!r}" if marks.thousands else ""
            return Sniffed("integer" if whole else "number", marks, why)
    for kind, patterns in (("date", DATES), ("datetime", MOMENTS)):
        fits = [pattern for pattern in patterns if all(_moment(label, pattern) is not None for label in plain)]
        if fits and not any({one, other} <= set(fits) for one, other in DAY_FIRST.items()):
            return Sniffed(kind, Format(pattern=fits[0]), f"{kind}s written {fits[0]}")  # type: ignore[arg-type]
        if fits:
            return Sniffed("string", Format(), EITHER)
    return Sniffed("string", Format(), "texts")


def _number_formats(labels: Sequence[str], decimal: str | None) -> list[Format]:
    """Return number formats to try, by the marks in the texts. 1,234 without other marks is a thousand."""
    if decimal == ",":
        return [Format(","), Format(",", "."), Format(",", " ")]
    commas = any("," in label for label in labels)
    if decimal == "." or not commas:
        return [Format(), Format(".", ",")] if commas else [Format()]
    return [Format(), Format(".", ","), Format(","), Format(",", "."), Format(",", " ")]


def _is_parted(digits: str, mark: str) -> bool:
    """Return whether digits are in groups of three separated by a mark, or not separated."""
    head, *groups = digits.split(mark)
    threes = all(len(group) == 3 and group.isdecimal() for group in groups)
    return not groups or (head.isdecimal() and len(head) <= 3 and not head.startswith("0") and threes)


def _numbers(labels: Sequence[str], marks: Format) -> list[float] | None:
    """Return all numbers, or None at the first text that is none."""
    out = []
    for label in labels:
        number = _number(label, marks)
        if number is None:
            return None
        out.append(number)
    return out


def _number(label: str, marks: Format) -> float | None:
    text = label.strip()
    if marks.thousands in text and marks.thousands:
        whole, point, rest = text.partition(marks.decimal)
        if marks.thousands in rest or not _is_parted(whole.lstrip("+-"), marks.thousands):
            return None
        text = whole.replace(marks.thousands, "") + point + rest
    if marks.decimal != ".":
        if "." in text:
            return None
        text = text.replace(marks.decimal, ".")
    bare = text.lstrip("+-")
    if "_" in text or (bare[:1] == "0" and bare[1:2].isdecimal()):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    exact = abs(number) < 2**53 or not text.lstrip("+-").isdecimal()  # long digits are names: two must not become one
    return number if np.isfinite(number) and exact else None


def _moment(label: str, pattern: str) -> datetime | None:
    """Parse a date or time. Frames and Parquet files keep fractions of a second even if all are zero."""
    text = label.strip()
    if pattern.endswith("%S"):
        whole, point, fraction = text.partition(".")
        text = whole if point and fraction and not fraction.strip("0") else text
    try:
        found = datetime.strptime(text, pattern)
    except ValueError:
        return None
    if "%y" in pattern and found.year >= CENTURY:
        found = found.replace(year=found.year - 100)
    return found if 1 <= found.year <= 9999 else None


def reader(kind: Kind, written: Format) -> Callable[[str], str | None]:
    """Return a function from a text to the text that a release would write; None if it is not of the kind."""
    if kind in NUMERIC:

        def number(label: str) -> str | None:
            found = _number(label, written)
            return None if found is None or (kind == "integer" and not is_whole(found)) else number_text(found)

        return number
    if kind in CALENDAR:
        default = DAY if kind == "date" else MOMENT
        pattern = written.pattern or default

        def moment(label: str) -> str | None:
            found = _moment(label, pattern) or _moment(label, default)
            if found is None:
                return None
            return found.date().isoformat() if kind == "date" else found.isoformat(" ", "seconds")

        return moment
    return lambda label: label


def parse(label: str, kind: Kind) -> Any:
    """Parse a canonical text."""
    if kind == "integer":
        return int(label)
    if kind == "number":
        return float(label)
    if kind == "date":
        return date.fromisoformat(label)
    if kind == "datetime":
        return datetime.strptime(label, MOMENT)
    return label == TRUE if kind == "boolean" else label


def as_number(label: str, kind: Kind) -> float:
    """Return the position of a canonical text on a line: a number itself, a date by its day, a time by its second."""
    if kind == "date":
        return float(date.fromisoformat(label).toordinal())
    if kind == "datetime":
        return (datetime.strptime(label, MOMENT) - datetime(1970, 1, 1)).total_seconds()
    return float(label)
