"""General values that are intervals, as the range types of PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

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
