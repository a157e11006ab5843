"""What the texts of a column write down: numbers, dates, yes and no, or nothing but text.

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
DATES = (DAY, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y")
MOMENTS = (MOMENT, "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S")
TRUE, FALSE = "true", "false"


@dataclass(frozen=True)
class Format:
    """How a column writes its values, where that is not how a release does."""

    decimal: str = "."
    thousands: str = ""
    pattern: str = ""
    """Of dates and moments, as strftime has it; ISO if empty."""


@dataclass(frozen=True)
class Sniffed:
    """A kind, how it is written, and why it is believed."""

    kind: Kind
    format: Format
    why: str


def is_whole(value: float) -> bool:
    """Whether a number is a whole one that its text names exactly."""
    return float(value).is_integer() and abs(value) < 2**53


def number_text(value: float) -> str:
    """A number as a person writes it: 18 rather than 18.0."""
    return str(int(value)) if is_whole(value) else repr(float(value))


def is_code(labels: Sequence[str]) -> bool:
    """Whether all texts are digits of one width, one of them with a leading zero: a code, and no number."""
    widths = {len(label) for label in labels}
    digits = len(widths) == 1 and max(widths) > 1 and all(map(str.isdecimal, labels))
    return digits and any(label.startswith("0") for label in labels)


def sniff(labels: Iterable[str], decimal: str | None = None) -> Sniffed:
    """The narrowest kind that all texts are written in."""
    plain = list(labels)
    if not plain:
        return Sniffed("string", Format(), "no values")
    if is_code(plain):
        return Sniffed("string", Format(), "digits of one width with leading zeros: a code, in its order")
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
        if fits and not (len(fits) > 1 and {"%d/%m/%Y", "%m/%d/%Y"} <= set(fits)):
            return Sniffed(kind, Format(pattern=fits[0]), f"{kind}s written {fits[0]}")  # type: ignore[arg-type]
        if fits:
            return Sniffed("string", Format(), "dates, but day and month cannot be told apart: say format")
    return Sniffed("string", Format(), "texts")


def _number_formats(labels: Sequence[str], decimal: str | None) -> list[Format]:
    """Ways to write numbers that are worth a try, with marks that the texts have. 1,234 alone is a thousand."""
    if decimal == ",":
        return [Format(","), Format(",", "."), Format(",", " ")]
    commas = any("," in label for label in labels)
    if decimal == "." or not commas:
        return [Format(), Format(".", ",")] if commas else [Format()]
    return [Format(), Format(".", ","), Format(","), Format(",", "."), Format(",", " ")]


def _parted(digits: str, mark: str) -> bool:
    """Whether whole digits are parted by a mark into groups of three, or not at all."""
    head, *groups = digits.split(mark)
    threes = all(len(group) == 3 and group.isdecimal() for group in groups)
    return not groups or (head.isdecimal() and len(head) <= 3 and not head.startswith("0") and threes)


def _numbers(labels: Sequence[str], marks: Format) -> list[float] | None:
    """All numbers, or None at the first text that is none."""
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
        if marks.thousands in rest or not _parted(whole.lstrip("+-"), marks.thousands):
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
    """What a text writes down. Frames and Parquet files keep fractions of a second also where all of them are zero."""
    text = label.strip()
    if pattern.endswith("%S"):
        whole, point, fraction = text.partition(".")
        text = whole if point and fraction and not fraction.strip("0") else text
    try:
        found = datetime.strptime(text, pattern)
    except ValueError:
        return None
    return found if 1 <= found.year <= 9999 else None


def reader(kind: Kind, written: Format) -> Callable[[str], str | None]:
    """What turns a text into the text that a release would write; None where it is not of the kind."""
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
    """The value that a canonical text writes down."""
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
    """Where a canonical text stands on a line: a number itself, a date by its day, a moment by its second."""
    if kind == "date":
        return float(date.fromisoformat(label).toordinal())
    if kind == "datetime":
        return (datetime.strptime(label, MOMENT) - datetime(1970, 1, 1)).total_seconds()
    return float(label)
