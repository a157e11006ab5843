"""Generalisation hierarchies: every value has one parent, up to a common root.

Level 0 holds the values themselves, the last level one root. All leaves have the same depth; a shorter branch is
padded by repeating its leaf. Ways to write one: a CSV in ARX's layout (leaf;...;root per line, no header), a nested
table, interval widths, edges or quantiles for numbers, spans of the calendar for dates, prefix lengths for codes such
as postal codes, and how common values are for everything else.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from io import StringIO
from math import ceil, floor, inf, log10
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.schema.confusables import count_lookalikes
from noren.schema.domain import MISSING, OTHER
from noren.schema.kinds import number_text

ROOT = "*"
MOST_BYTES = 1 << 28
"""Size of the largest side file (hierarchy, knowledge, distances) that is read: 256 MB."""
MOST_LEVELS = 2000
SPANS = ("week", "month", "quarter", "year", "decade")

T = TypeVar("T")


class HierarchyError(NorenError):
    """The error for a hierarchy that is not a tree or cannot be read."""


@dataclass(frozen=True)
class Hierarchy:
    """A generalisation hierarchy: `levels[h][i]` is the label of leaf i at height h; `levels[0]` are the leaves."""

    levels: tuple[tuple[str, ...], ...]
    grown: str = field(default="", compare=False)
    """"values" if a rule made it from the values of a table, "counts" if from how often they occur; else declared."""

    def __post_init__(self) -> None:
        leaves = self.levels[0]
        if len(self.levels) > MOST_LEVELS:
            raise HierarchyError(f"{len(self.levels)} levels, more than {MOST_LEVELS}.", hint="Is it a hierarchy?")
        if any("" in level for level in self.levels):
            raise HierarchyError("a node has an empty label.", hint="Give every value and every node a name.")
        if len(set(leaves)) != len(leaves):
            doubled = find_repeated(leaves)
            raise HierarchyError(
                f"value {doubled!r} is in more than one line.",
                hint="Give every value exactly one line, because a value of a hierarchy has one parent.",
            )
        for height in range(len(self.levels) - 1):
            parents: dict[str, str] = {}
            for node, parent in zip(self.levels[height], self.levels[height + 1], strict=True):
                if parents.setdefault(node, parent) != parent:
                    raise HierarchyError(
                        f"node {node!r} at level {height} has two parents, {parents[node]!r} and {parent!r}.",
                        hint="Write the same parent in every line that contains this node.",
                    )
        if len(self.levels) == 1 or len(set(self.levels[-1])) > 1:
            object.__setattr__(self, "levels", (*self.levels, (ROOT,) * len(leaves)))

    @property
    def leaves(self) -> tuple[str, ...]:
        return self.levels[0]

    @property
    def height(self) -> int:
        return len(self.levels) - 1

    @cached_property
    def _position(self) -> dict[str, int]:
        return {leaf: i for i, leaf in enumerate(self.leaves)}

    def missing(self, values: Sequence[str]) -> list[str]:
        """Return the values that have no leaf; special categories such as missing cells need none."""
        return [v for v in values if v not in self._position and v not in (MISSING, OTHER)]

    def restrict_to(self, values: Sequence[str]) -> Hierarchy:
        """Return the same tree over exactly these values, in this order."""
        rows = [
            [level[self._position[v]] for level in self.levels]
            if v in self._position
            else [v] * self.height + [self.levels[-1][0]]
            for v in values
        ]
        return Hierarchy(tuple(zip(*rows, strict=True)), self.grown)

    def above(self, value: str) -> list[str]:
        """Return the labels above a value, nearest first; none for a value that is not a leaf."""
        place = self._position.get(value)
        if place is None:
            return []
        found = [(level[place], height) for height, level in enumerate(self.levels) if height]
        return [name for label, height in found for name in (label, f"{label} (level {height})")]

    def groups(self, level: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Return the labels at a level in leaf order, and for every leaf the position of its label."""
        labels = tuple(dict.fromkeys(self.levels[level]))
        where = {label: i for i, label in enumerate(labels)}
        return labels, np.array([where[label] for label in self.levels[level]], np.int64)

    def lca_heights(self) -> NDArray[np.int64]:
        """Return the matrix of the heights of the lowest common ancestors of all pairs of leaves."""
        n = len(self.leaves)
        out = np.zeros((n, n), np.int64)
        for height in range(self.height):
            _, groups = self.groups(height)
            out += groups[:, None] != groups[None, :]
        return out

    # ---------------------------------------------------------------- ways to write one

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[str]]) -> Hierarchy:
        depth = max(len(row) for row in rows)
        padded = [[row[0]] * (depth - len(row)) + list(row) for row in rows]
        return cls(tuple(tuple(column) for column in zip(*padded, strict=True)))

    def legible(self) -> Hierarchy:
        """Return the hierarchy; raise if two names of a level look the same."""
        for height, level in enumerate(self.levels):
            if alike := count_lookalikes(tuple(dict.fromkeys(level))):
                message = f"{alike} names at level {height} look the same as others, or like an empty cell."
                raise HierarchyError(message, hint="Write every value and every node in one way.")
        return self

    @classmethod
    def read_csv(cls, path: Path) -> Hierarchy:
        """Read a file in ARX's layout: one line per value, from the value to the root."""
        found = read_side_rows(path, HierarchyError)
        if not found:
            raise HierarchyError(f"{path}: empty.", hint="Write one line per value: value;parent;...;root.")
        rows, lines = [row for row, _ in found], [line for _, line in found]
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            odd = next(i for i, row in enumerate(rows) if len(row) != len(rows[0]))
            raise HierarchyError(
                f"{path}: line {lines[odd]} has {len(rows[odd])} levels, line {lines[0]} has {len(rows[0])}.",
                hint="Give every line the same number of levels; repeat a label to pad a short branch.",
            )
        return cls.from_rows(rows).legible()

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any] | Sequence[Any]) -> Hierarchy:
        """Make a hierarchy from a nested table: keys are inner nodes, lists hold values; a single key "*" is the
        root."""
        rows: list[list[str]] = []
        alone = isinstance(tree, Mapping) and list(tree) == [ROOT]
        waiting: list[tuple[Any, tuple[str, ...]]] = [(tree, () if alone else (ROOT,))]
        while waiting:
            node, above = waiting.pop()
            if len(above) > MOST_LEVELS:
                raise HierarchyError(f"the tree has more than {MOST_LEVELS} levels.", hint="Is it a hierarchy?")
            if isinstance(node, Mapping):
                waiting += [(child, (str(label), *above)) for label, child in reversed(list(node.items()))]
            elif isinstance(node, list | tuple):
                waiting += [(child, above) for child in reversed(node)]
            else:
                rows.append([value_text(node), *above])
        if not rows:
            raise HierarchyError("the tree has no values.", hint='Write tree = { Chapter = ["value", "value"] }.')
        return cls.from_rows(rows).legible()

    @classmethod
    def _from_rule(cls, values: Sequence[str], levels: Iterable[T], rule: Callable[[str, T], str]) -> Hierarchy:
        """Make a hierarchy by a rule that gives the label above a value at every level; special categories stay."""
        special = (MISSING, OTHER)
        wanted = list(levels)
        rows = [[value, *(value if value in special else rule(value, one) for one in wanted), ROOT] for value in values]
        return replace(cls.from_rows(rows), grown="values")

    @classmethod
    def from_prefixes(cls, values: Sequence[str], lengths: Sequence[int]) -> Hierarchy:
        """Make a hierarchy that keeps the first n characters and masks the rest, for descending n: 13021 -> 130** ->
        1****."""
        if any(b >= a for a, b in itertools.pairwise(lengths)) or any(n < 0 for n in lengths):
            raise HierarchyError(
                f"prefix lengths {list(lengths)} are not in descending order.", hint="For example prefix = [3, 1]."
            )
        return cls._from_rule(values, lengths, lambda value, n: value[:n] + ROOT * max(0, len(value) - n))

    @classmethod
    def from_edges(cls, values: Sequence[str], levels: Sequence[Sequence[float]]) -> Hierarchy:
        """Make numeric intervals from one list of edges per level, each a subset of the one before."""
        return cls._from_rule(values, levels, lambda value, edges: _interval(_number(value), edges))

    @classmethod
    def from_widths(cls, values: Sequence[str], widths: Sequence[float], start: float = 0) -> Hierarchy:
        """Make numeric intervals of increasing width, each a multiple of the one before."""
        if not all(0 < width < np.inf for width in widths):
            raise HierarchyError(f"widths {list(widths)} are not all positive.", hint="For example widths = [5, 10].")
        steps = [exact(width) for width in widths]
        for narrow, wide in itertools.pairwise(steps):
            if wide % narrow:
                message = f"width {number_text(float(wide))} is not a multiple of {number_text(float(narrow))}."
                raise HierarchyError(message, hint="For example widths = [5, 10, 20].")
        return cls._from_rule(values, steps, lambda value, step: span(_number(value), step, start)[1])

    @classmethod
    def from_calendar(cls, values: Sequence[str], spans: Sequence[str]) -> Hierarchy:
        """Make a hierarchy of dates in increasing spans: 1987-05-03 -> 1987-05 -> 1987-Q2 -> 1987 -> 1980s."""
        places = [SPANS.index(span) if span in SPANS else -1 for span in spans]
        if -1 in places or any(b <= a for a, b in itertools.pairwise(places)):
            raise HierarchyError(
                f"spans {list(spans)} are not in ascending order.", hint='For example ["month", "year", "decade"].'
            )
        if "week" in spans and len(spans) > 1:
            raise HierarchyError("weeks do not add up to months or years.", hint='Use ["week"] alone.')
        return cls._from_rule(values, spans, lambda value, span: _span_label(_day(value), span))

    @classmethod
    def from_quantiles(cls, values: Sequence[str], counts: NDArray[np.int64], parts: Sequence[int]) -> Hierarchy:
        """Make intervals with about equally many people, round edges and open ends; one number of intervals per
        level."""
        if not parts or any(b >= a for a, b in itertools.pairwise(parts)) or min(parts) < 2:
            hint = "For example quantiles = [8, 4, 2]."
            raise HierarchyError(
                f"numbers of quantiles {list(parts)} must be in descending order and at least 2.", hint=hint
            )
        plain = [i for i, value in enumerate(values) if value not in (MISSING, OTHER)]
        numbers = np.array([_number(values[i]) for i in plain])
        there = np.asarray(counts)[plain]
        if not there.any():
            raise HierarchyError(
                "the column has no numbers from which intervals could be made.", hint="Give widths or intervals."
            )
        edges = quantile_edges(numbers[there > 0], there[there > 0], parts)
        return replace(cls.from_edges(values, edges), grown="counts")

    @classmethod
    def from_frequency(cls, values: Sequence[str], counts: NDArray[np.int64], least: Sequence[int]) -> Hierarchy:
        """Make a hierarchy that merges values with few records; frequent values stay unchanged up to the root."""
        if not least or any(b <= a for a, b in itertools.pairwise(least)) or min(least) < 2:
            raise HierarchyError(
                f"frequencies {list(least)} are not in ascending order.", hint="For example frequency = [20, 100]."
            )
        count = dict(zip(values, np.asarray(counts).tolist(), strict=True))
        made = cls._from_rule(
            values, least, lambda value, few: value if count[value] >= few else f"fewer than {few} records"
        )
        return replace(made, grown="counts")

    def csv_text(self) -> str:
        """Return the hierarchy as text in ARX's layout."""
        out = StringIO()
        csv.writer(out, delimiter=";", lineterminator="\n").writerows(zip(*self.levels, strict=True))
        return out.getvalue()


def find_repeated(names: Sequence[str]) -> str:
    """Return the first name that occurs a second time."""
    seen = set[str]()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def read_side_file(path: Path, error: type[NorenError]) -> str:
    """Return the text of a file that a policy names; refuse anything that is not UTF-8 text of a reasonable size."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError:
        reason = "cannot be read" if path.exists() else "no such file"
        raise error(f"{path}: {reason}.", hint="Check the path, which is relative to the policy file.") from None
    if len(raw) > MOST_BYTES:
        raise error(f"{path}: more than {MOST_BYTES >> 20} MB.", hint="Check that it is the right file.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise error(f"{path}: not UTF-8 at byte {failure.start}.", hint="Save it as UTF-8.") from None


def read_side_rows(
    path: Path, error: type[NorenError], separators: str = ";,\t|", comment: str = ""
) -> list[tuple[list[str], int]]:
    """Return the rows of a CSV file that a policy names, without spaces around cells, each with the number of its line.

    The separator is the most frequent one of the first line. Lines before it that begin with `comment` are skipped.
    """
    text = read_side_file(path, error)
    while comment and text.startswith(comment):
        text = text.partition("\n")[2]
    separator = max(separators, key=text.split("\n", 1)[0].count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator)
    try:
        return [([cell.strip() for cell in row], reader.line_num) for row in reader if row]
    except csv.Error:
        message = f"{path}: line {reader.line_num} cannot be read as CSV."
        raise error(message, hint="Is a quotation mark left open?") from None


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value) if isinstance(value, int | float) else str(value)


def exact(number: float) -> Fraction:
    """Return the exact number of the shortest decimal text: 0.1 is a tenth, so that tenths add up."""
    return Fraction(repr(float(number)))


def span(number: float, width: Fraction, start: float = 0) -> tuple[Fraction, str]:
    """Return the interval of this width that contains the number: its lower end and its label."""
    low = exact(start) + (exact(number) - exact(start)) // width * width
    return low, f"[{number_text(float(low))}, {number_text(float(low + width))})"


def _number(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise HierarchyError(
            "an interval hierarchy needs numbers, but the column holds other values.",
            hint="Use a CSV or tree hierarchy, or declare markers of missing values under missing_values.",
        )
    return number


def _interval(number: float, edges: Sequence[float]) -> str:
    if not rises(edges):
        raise HierarchyError(
            f"interval edges {list(edges)} are not in ascending order.", hint="For example [0, 18, 65, 120]."
        )
    slot = int(np.searchsorted(edges, number, side="right")) - 1
    if number == edges[-1]:
        slot -= 1
    if not 0 <= slot < len(edges) - 1:
        raise HierarchyError(
            f"the intervals {number_text(edges[0])}..{number_text(edges[-1])} do not cover all values.",
            hint="Widen the first or last edge.",
        )
    if edges[slot] == -np.inf and edges[slot + 1] == np.inf:
        return ROOT
    if edges[slot] == -np.inf:
        return f"below {number_text(edges[slot + 1])}"
    if edges[slot + 1] == np.inf:
        return f"{number_text(edges[slot])} and above"
    end = "]" if slot == len(edges) - 2 else ")"
    return f"[{number_text(edges[slot])}, {number_text(edges[slot + 1])}{end}"


def _day(value: str) -> date:
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        raise HierarchyError(
            "a calendar hierarchy needs dates, but the column holds other values.",
            hint='Set kind = "date" and, where dates are not written 1987-05-03, their format.',
        ) from None


def _span_label(day: date, span: str) -> str:
    if span == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    if span == "month":
        return f"{day.year:04}-{day.month:02}"
    if span == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return f"{day.year:04}" if span == "year" else f"{day.year // 10 * 10:04}s"


# ------------------------------------------------------------------ round edges

SLACK = 0.25
"""How far an edge may lie from its quantile, as a share of an interval's people."""
ENDS = 0.02
"""Share of the people beyond the last edge of intervals of one width, at either end."""
MOST_INTERVALS = 60
STEPS = (Fraction(1), Fraction(1, 2), Fraction(1, 5))


def roundest(low: float, high: float, near: float) -> float:
    """Return the roundest number from low to high, of equally round ones the one nearest to `near`.

    That is a multiple of the largest power of ten, or of half or a fifth of one: an edge that a person would have
    chosen, and no single record's value.
    """
    if low <= 0 <= high:
        return 0.0
    largest = max(abs(low), abs(high))
    for power in range(floor(log10(largest)) + 1, floor(log10(largest)) - 15, -1):
        for step in STEPS:
            unit = step * Fraction(10) ** power
            first, last = ceil(Fraction(low) / unit), floor(Fraction(high) / unit)
            if first <= last:
                return float(min(max(round(Fraction(near) / unit), first), last) * unit)
    return near


def quantile_cuts(numbers: NDArray[np.float64], counts: NDArray[np.int64], parts: int) -> list[float]:
    """Return ascending round numbers that divide the people into about equal parts; fewer if there are ties."""
    order = np.argsort(numbers)
    values, reach = numbers[order], np.cumsum(counts[order]) / max(1, int(counts.sum()))

    def at(share: float) -> float:
        return float(values[min(int(np.searchsorted(reach, share, side="left")), len(values) - 1)])

    found = set()
    for part in range(1, parts):
        share = part / parts
        low, near, high = at(share - SLACK / parts), at(share), at(share + SLACK / parts)
        if low == high:  # many people share this value, or there are too few to round between them
            low, high = near - abs(near) * 0.05, near + abs(near) * 0.05
            at_it = int(counts[order][np.searchsorted(values, near)])
            low, high = (near, near) if at_it >= 5 else (low, high)
        found.add(roundest(low, high, near))
    return sorted(cut for cut in found if values[0] < cut <= values[-1])


def quantile_edges(numbers: NDArray[np.float64], counts: NDArray[np.int64], parts: Sequence[int]) -> list[list[float]]:
    """Return one list of edges for every number of parts, each a subset of the previous one, with open ends."""
    cuts = quantile_cuts(numbers, counts, parts[0])
    out = [[-inf, *cuts, inf]]
    for number in parts[1:]:
        inner = out[-1][1:-1]
        wanted = quantile_cuts(numbers, counts, number)
        kept = sorted({min(inner, key=lambda cut: abs(cut - one)) for one in wanted}) if inner else []
        out.append([-inf, *kept, inf])
    return out


def width_edges(
    numbers: NDArray[np.float64], counts: NDArray[np.int64], width: float | None = None, levels: int = 3
) -> list[list[float]]:
    """Return edges at multiples of a round width, of twice and four times it and so on, with open ends."""
    order = np.argsort(numbers)
    values, reach = numbers[order], np.cumsum(counts[order]) / max(1, int(counts.sum()))
    low = float(values[int(np.searchsorted(reach, ENDS))])
    high = float(values[min(int(np.searchsorted(reach, 1 - ENDS)), len(values) - 1)])
    spread = max(high - low, abs(high) * 1e-6, 1e-9)
    step = Fraction(repr(width)) if width else Fraction(str(roundest(spread / 16, spread / 8, spread / 12)))
    out: list[list[float]] = []
    for level in range(levels):
        unit = step * 2**level
        first, last = ceil(Fraction(low) / unit), floor(Fraction(high) / unit)
        if (last - first) > MOST_INTERVALS * 10:
            break
        inner = [float(unit * i) for i in range(first, last + 1)]
        if out:
            inner = [edge for edge in inner if edge in set(out[-1])]
        if not inner or (out and len(inner) < 2):
            break
        out.append([-inf, *inner, inf])
    return out or [[-inf, roundest(low, high, (low + high) / 2), inf]]


def rises(edges: Sequence[float]) -> bool:
    """Return whether there are at least two edges in ascending order."""
    return len(edges) > 1 and all(a < b for a, b in itertools.pairwise(edges))
