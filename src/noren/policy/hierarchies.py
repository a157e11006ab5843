"""Draft a hierarchy for a column, from its values or the calendar, for a person to edit.

Edges are round numbers, never one record's value, and the first and the last interval are open: the least and the
largest value belong to somebody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from noren.engines import engine_for
from noren.engines.engine import Counting, ValueCounts
from noren.errors import DataError, PolicyError, Problem, suggest_columns
from noren.schema.column import HierarchySpec
from noren.schema.domain import MISSING, sort_labels
from noren.schema.hierarchy import Hierarchy, roundest, width_edges
from noren.schema.kinds import CALENDAR, NUMERIC, Sniffed, as_number, is_code, reader, sniff
from noren.sources.source import Source

CLOCK = re.compile(r"\d\d:\d\d(:\d\d)?")
LONGEST_RANGE = 10_000
"""Whole numbers that a hierarchy lists at most, whether they occur or not."""
SIDE_BY_SIDE = 20
"""Categories that are published as sets of values rather than by a hierarchy of common and rare ones."""
SPREAD = 0.5
"""Share of the people in one interval of equal widths beyond which quantiles are the better rule."""


@dataclass(frozen=True)
class Counts:
    """The values of a column as a release would write them, their counts, and their kind."""

    values: tuple[str, ...]
    counts: np.ndarray
    written: Sniffed

    @classmethod
    def of(cls, column: ValueCounts) -> Counts:
        """Make the counts from the texts of a table."""
        written = sniff(column.counts)
        read = reader(written.kind, written.format)
        known: dict[str, int] = {}
        for label, count in column.counts.items():
            value = read(label) or label
            known[value] = known.get(value, 0) + count
        values = sort_labels(list(known), written.kind)
        return cls(tuple(values), np.array([known[value] for value in values], np.int64), written)

    @property
    def numbers(self) -> np.ndarray:
        return np.array([as_number(value, self.written.kind) for value in self.values])

    def whole_range(self) -> Counts:
        """Return all whole numbers between the smallest and the largest, if they are not too many, so that the values
        do not disclose who is there."""
        if self.written.kind != "integer" or not self.values:
            return self
        low, high = int(self.values[0]), int(self.values[-1])
        if high - low >= min(LONGEST_RANGE, 50 * len(self.values)):
            return self
        known = dict(zip(self.values, self.counts.tolist(), strict=True))
        values = tuple(map(str, range(low, high + 1)))
        return Counts(values, np.array([known.get(value, 0) for value in values], np.int64), self.written)


Rule = Callable[[Counts], tuple[Hierarchy, str]]
"""Makes a hierarchy, and says what it did."""


def by_width(found: Counts) -> tuple[Hierarchy, str]:
    """Return intervals of one width, then of two and four times this width."""
    levels = width_edges(found.numbers[found.counts > 0], found.counts[found.counts > 0])
    return Hierarchy.from_edges(found.values, levels), f"intervals with round edges, {len(levels)} levels, open ends"


def by_quantiles(found: Counts) -> tuple[Hierarchy, str]:
    """Return intervals with about equally many people."""
    made = Hierarchy.from_quantiles(found.values, found.counts, (8, 4, 2))
    return made, "8, 4 and 2 intervals of about equally many people, round edges, open ends"


def by_prefix(found: Counts) -> tuple[Hierarchy, str]:
    """Return prefixes of codes."""
    lengths = prefix_lengths(found.values)
    return Hierarchy.from_prefixes(found.values, lengths), f"the first {' and '.join(map(str, lengths))} characters"


def by_date(found: Counts) -> tuple[Hierarchy, str]:
    """Return spans of the calendar."""
    return Hierarchy.from_calendar(found.values, ("month", "quarter", "year", "decade")), "month, quarter, year, decade"


def by_frequency(found: Counts) -> tuple[Hierarchy, str]:
    """Return a hierarchy that merges rare values."""
    least = frequencies(found.counts)
    made = Hierarchy.from_frequency(found.values, found.counts, least)
    return made, f"values with fewer than {' and '.join(map(str, least))} records merged"


RULES: dict[str, Rule] = {
    "width": by_width,
    "quantiles": by_quantiles,
    "prefix": by_prefix,
    "date": by_date,
    "frequency": by_frequency,
}
"""Ways to make a hierarchy from the values of a column."""


def make_hierarchy(source: Source, column: str, by: str | None = None) -> tuple[Hierarchy, str]:
    """Return a hierarchy of a column of a table, and how it was made. Without a rule, the one for its kind is used."""
    if column not in source.columns:
        raise DataError(f"{source.name} has no column {column!r}.", hint=suggest_columns([column], source.columns))
    profile = engine_for(source).profile(source, Counting([column]))
    profile.demand(source.name)
    counted = profile.columns[column]
    if counted.is_open or not counted.counts:
        what = "has too many different values" if counted.is_open else "is empty"
        raise DataError(f"column {column!r} {what} for a hierarchy.", hint="Give it bins in the policy, or drop it.")
    found = Counts.of(counted)
    rule = by or fitting(found)
    if rule in ("width", "quantiles") and found.written.kind not in NUMERIC:
        raise _unfit(column, rule, "numbers", found)
    if rule == "date" and found.written.kind not in CALENDAR:
        raise _unfit(column, rule, "dates", found)
    made, why = RULES[rule](found.whole_range())
    return made, f"{rule}: {why}; {found.written.why}"


def fitting(found: Counts) -> str:
    """Return the rule for the kind of a column."""
    if found.written.kind in CALENDAR:
        return "date"
    if found.written.kind in NUMERIC:
        return "quantiles" if is_skewed(found) else "width"
    fixed = len({len(value) for value in found.values}) == 1 and len(found.values[0]) > 2
    digits = is_code(found.values) or (fixed and any(map(str.isdecimal, "".join(found.values[:50]))))
    return "prefix" if digits else "frequency"


def is_skewed(found: Counts) -> bool:
    """Return whether one of eight intervals of equal width would contain most people."""
    numbers, counts = found.numbers, found.counts
    held, _ = np.histogram(numbers, bins=8, weights=counts)
    return bool(held.max() > SPREAD * counts.sum())


def prefix_lengths(values: tuple[str, ...]) -> tuple[int, ...]:
    """Return how many characters of codes to keep, in descending order: 3, 2, 1 of five."""
    longest = max(map(len, values))
    if all(CLOCK.fullmatch(value) for value in values):
        return (2,)
    if longest < 3:
        return (1,)
    return tuple(range(min(longest - 1, max(2, ceil(longest * 0.6))), 0, -1))[:4]


def frequencies(counts: np.ndarray) -> tuple[int, ...]:
    """Return a hundredth and a twentieth of the records, as round numbers."""
    total = int(counts.sum())
    few = [max(5, floor(roundest(total * share * 0.7, total * share * 1.4, total * share))) for share in (0.01, 0.05)]
    return (few[0], few[1]) if few[1] > few[0] else (few[0],)


def drafted_spec(column: ValueCounts) -> HierarchySpec | None:
    """Return the rule in a drafted policy for a quasi-identifier; None if it needs none."""
    found = Counts.of(column)
    few = 8 if found.written.kind in (*NUMERIC, *CALENDAR) or is_code(found.values) else SIDE_BY_SIDE
    if len(found.values) <= few or found.written.kind == "number":
        return None  # few enough to be published side by side; numbers become intervals by themselves
    rule = fitting(found)
    if found.written.kind == "integer":
        steps = whole_widths(found)
        return HierarchySpec(widths=steps) if steps else None
    if rule == "date":
        return HierarchySpec(calendar=("month", "year", "decade"))
    if rule == "prefix":
        return HierarchySpec(prefix=prefix_lengths(found.values))
    return HierarchySpec(frequency=frequencies(found.counts))


def whole_widths(found: Counts) -> tuple[float, ...] | None:
    """Return widths of intervals for whole numbers of a short range: 5, 10, 20, 40 for ages."""
    spread = found.numbers.max() - found.numbers.min()
    if spread >= min(LONGEST_RANGE, 50 * len(found.values)) or is_skewed(found):
        return None
    step = max(1, int(roundest(spread / 25, spread / 12, spread / 16))) if spread > 24 else 2
    return tuple(float(step * 2**level) for level in range(4))


def _unfit(column: str, rule: str, wanted: str, found: Counts) -> PolicyError:
    message = f"{rule!r} needs {wanted}, and {column!r} holds {found.written.why}."
    hint = f"Use --by {fitting(found)}, or declare markers of missing values with --missing."
    return PolicyError([Problem(f"hierarchy.{column}", message, hint)], source="hierarchy")


def without(column: ValueCounts, markers: Mapping[str, int]) -> ValueCounts:
    """Return the counts without texts that mean missing."""
    left = {label: count for label, count in column.counts.items() if label not in markers and label != MISSING}
    return ValueCounts(column.name, left, column.missing + sum(markers.values()), is_open=column.is_open)
