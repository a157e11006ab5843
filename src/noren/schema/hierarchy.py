"""Generalisation hierarchies: every value has one parent, up to a common root.

Level 0 holds the values themselves, the last level one root. All leaves have the same depth; a shorter branch is
padded by repeating its leaf. Ways to write one: a CSV in ARX's layout (leaf;...;root per line, no header), a nested
table, interval widths, edges or quantiles for numbers, spans of the calendar for dates, prefix lengths for codes such
as postal codes, and how common values are for everything else.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.schema.confusables import count_lookalikes
from noren.schema.domain import MISSING, OTHER
from noren.schema.edges import quantile_edges, rises
from noren.schema.kinds import number_text

ROOT = "*"
MOST_BYTES = 1 << 28
"""Size of the largest side file (hierarchy, knowledge, distances) that is read: 256 MB."""
MOST_LEVELS = 2000
SPANS = ("week", "month", "quarter", "year", "decade")


class HierarchyError(NorenError):
    """A hierarchy that is not a tree, or cannot be read."""


@dataclass(frozen=True)
class Hierarchy:
    """`levels[h][i]` is the label of leaf i at height h; `levels[0]` are the leaves."""

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
            doubled = repeated(leaves)
            raise HierarchyError(
                f"value {doubled!r} stands in more than one line.",
                hint="Give every value one line: a hierarchy is a tree, so a value has one parent.",
            )
        for height in range(len(self.levels) - 1):
            parents: dict[str, str] = {}
            for node, parent in zip(self.levels[height], self.levels[height + 1], strict=True):
                if parents.setdefault(node, parent) != parent:
                    raise HierarchyError(
                        f"node {node!r} at level {height} has two parents, {parents[node]!r} and {parent!r}.",
                        hint="A hierarchy is a tree: write the same parent in every line that contains this node.",
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
        """Values that have no leaf. The special categories hang under the root by themselves."""
        return [v for v in values if v not in self._position and v not in (MISSING, OTHER)]

    def restricted(self, values: Sequence[str]) -> Hierarchy:
        """The same tree over exactly these values, in their order."""
        rows = [
            [level[self._position[v]] for level in self.levels]
            if v in self._position
            else [v] * self.height + [self.levels[-1][0]]
            for v in values
        ]
        return Hierarchy(tuple(zip(*rows, strict=True)), self.grown)

    def above(self, value: str) -> list[str]:
        """The labels above a value, the nearest first; none for a value that is no leaf."""
        place = self._position.get(value)
        if place is None:
            return []
        found = [(level[place], height) for height, level in enumerate(self.levels) if height]
        return [name for label, height in found for name in (label, f"{label} (level {height})")]

    def groups(self, level: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Labels at a level in leaf order, and for every leaf the position of its label."""
        labels = tuple(dict.fromkeys(self.levels[level]))
        where = {label: i for i, label in enumerate(labels)}
        return labels, np.array([where[label] for label in self.levels[level]], np.int64)

    def lca_heights(self) -> NDArray[np.int64]:
        """Matrix of the heights of the lowest common ancestors of all pairs of leaves."""
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
        """The hierarchy itself, if no two names of a level look the same."""
        for height, level in enumerate(self.levels):
            if alike := count_lookalikes(tuple(dict.fromkeys(level))):
                message = f"{alike} names at level {height} look like others, or like nothing."
                raise HierarchyError(message, hint="Write every value and every node in one way.")
        return self

    @classmethod
    def read_csv(cls, path: Path) -> Hierarchy:
        """A file in ARX's layout: one line per value, from the value to the root."""
        text = read_side_file(path, HierarchyError)
        first = text.split("\n", 1)[0]
        separator = max(";,\t|", key=first.count)
        reader = csv.reader(StringIO(text, newline=None), delimiter=separator)
        lines, rows = [], []
        try:
            for row in reader:
                if row:
                    lines.append(reader.line_num)
                    rows.append([cell.strip() for cell in row])
        except csv.Error:
            message = f"{path}: line {reader.line_num} cannot be read as CSV."
            raise HierarchyError(message, hint="Is a quotation mark left open?") from None
        if not rows:
            raise HierarchyError(f"{path}: empty.", hint="One line per value: value;parent;...;root.")
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
        """A nested table: keys are inner nodes, lists hold values. A lone key "*" is the root itself."""
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
    def from_prefixes(cls, values: Sequence[str], lengths: Sequence[int]) -> Hierarchy:
        """Keep the first n characters and mask the rest, for falling n: 13021 -> 130** -> 1****."""
        if any(b >= a for a, b in itertools.pairwise(lengths)) or any(n < 0 for n in lengths):
            raise HierarchyError(f"prefix lengths {list(lengths)} do not fall.", hint="For example prefix = [3, 1].")
        rows = [
            [v, *(v if v in (MISSING, OTHER) else v[:n] + ROOT * max(0, len(v) - n) for n in lengths), ROOT]
            for v in values
        ]
        return replace(cls.from_rows(rows), grown="values")

    @classmethod
    def from_edges(cls, values: Sequence[str], levels: Sequence[Sequence[float]]) -> Hierarchy:
        """Numeric intervals: one list of edges per level, each a subset of the one before."""
        rows: list[list[str]] = []
        for value in values:
            row = [value]
            for edges in levels:
                row.append(value if value in (MISSING, OTHER) else _interval(_number(value), edges))
            rows.append([*row, ROOT])
        return replace(cls.from_rows(rows), grown="values")

    @classmethod
    def from_widths(cls, values: Sequence[str], widths: Sequence[float], start: float = 0) -> Hierarchy:
        """Numeric intervals of growing width, each a multiple of the one before."""
        if not all(0 < width < np.inf for width in widths):
            raise HierarchyError(f"widths {list(widths)} are not all positive.", hint="For example widths = [5, 10].")
        steps = [exact(width) for width in widths]
        for narrow, wide in itertools.pairwise(steps):
            if wide % narrow:
                message = f"width {number_text(float(wide))} is not a multiple of {number_text(float(narrow))}."
                raise HierarchyError(message, hint="For example widths = [5, 10, 20].")
        rows: list[list[str]] = []
        for value in values:
            special = value in (MISSING, OTHER)
            rows.append([value, *(value if special else span(_number(value), step, start)[1] for step in steps), ROOT])
        return replace(cls.from_rows(rows), grown="values")

    @classmethod
    def from_calendar(cls, values: Sequence[str], spans: Sequence[str]) -> Hierarchy:
        """Dates in growing spans: 1987-05-03 -> 1987-05 -> 1987-Q2 -> 1987 -> 1980s."""
        places = [SPANS.index(span) if span in SPANS else -1 for span in spans]
        if -1 in places or any(b <= a for a, b in itertools.pairwise(places)):
            raise HierarchyError(f"spans {list(spans)} do not grow.", hint='For example ["month", "year", "decade"].')
        if "week" in spans and len(spans) > 1:
            raise HierarchyError("weeks do not add up to months or years.", hint='Use ["week"] alone.')
        rows: list[list[str]] = []
        for value in values:
            special = value in (MISSING, OTHER)
            rows.append([value, *(value if special else _span_label(_day(value), span) for span in spans), ROOT])
        return replace(cls.from_rows(rows), grown="values")

    @classmethod
    def from_quantiles(cls, values: Sequence[str], counts: NDArray[np.int64], parts: Sequence[int]) -> Hierarchy:
        """Intervals of about as many people each, with round edges and open ends: one number of parts per level."""
        if not parts or any(b >= a for a, b in itertools.pairwise(parts)) or min(parts) < 2:
            hint = "For example quantiles = [8, 4, 2]."
            raise HierarchyError(f"numbers of quantiles {list(parts)} do not fall to 2 or more.", hint=hint)
        plain = [i for i, value in enumerate(values) if value not in (MISSING, OTHER)]
        numbers = np.array([_number(values[i]) for i in plain])
        there = np.asarray(counts)[plain]
        if not there.any():
            raise HierarchyError("there is no number to make intervals of.", hint="Give widths or intervals.")
        edges = quantile_edges(numbers[there > 0], there[there > 0], parts)
        return replace(cls.from_edges(values, edges), grown="counts")

    @classmethod
    def from_frequency(cls, values: Sequence[str], counts: NDArray[np.int64], least: Sequence[int]) -> Hierarchy:
        """Values that fewer records have are put together; common ones stay themselves up to the root."""
        if not least or any(b <= a for a, b in itertools.pairwise(least)) or min(least) < 2:
            raise HierarchyError(f"frequencies {list(least)} do not grow.", hint="For example frequency = [20, 100].")
        rows = []
        for value, count in zip(values, np.asarray(counts).tolist(), strict=True):
            kept = value in (MISSING, OTHER)
            rows.append([value, *(value if kept or count >= few else f"fewer than {few} records" for few in least)])
        return replace(cls.from_rows([[*row, ROOT] for row in rows]), grown="counts")

    def csv_text(self) -> str:
        """The hierarchy as a file in ARX's layout."""
        out = StringIO()
        csv.writer(out, delimiter=";", lineterminator="\n").writerows(zip(*self.levels, strict=True))
        return out.getvalue()


def repeated(names: Sequence[str]) -> str:
    """The first name that stands a second time."""
    seen = set[str]()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def read_side_file(path: Path, error: type[NorenError]) -> str:
    """The text of a file that a policy names; anything that is not UTF-8 text of a sane size is refused."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError:
        reason = "cannot be read" if path.exists() else "no such file"
        raise error(f"{path}: {reason}.", hint="Paths are relative to the policy file.") from None
    if len(raw) > MOST_BYTES:
        raise error(f"{path}: more than {MOST_BYTES >> 20} MB.", hint="Is it the right file?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise error(f"{path}: not UTF-8 at byte {failure.start}.", hint="Save it as UTF-8.") from None


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value) if isinstance(value, int | float) else str(value)


def exact(number: float) -> Fraction:
    """The number that the shortest decimal text stands for: 0.1 is a tenth, so that tenths add up."""
    return Fraction(repr(float(number)))


def span(number: float, width: Fraction, start: float = 0) -> tuple[Fraction, str]:
    """The interval of this width that holds the number: its lower end and its label."""
    low = exact(start) + (exact(number) - exact(start)) // width * width
    return low, f"[{number_text(float(low))}, {number_text(float(low + width))})"


def _number(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise HierarchyError(
            "an interval hierarchy needs numbers, and the column holds something else.",
            hint="Use a CSV or tree hierarchy, or declare missing_values so that markers are not read as values.",
        )
    return number


def _interval(number: float, edges: Sequence[float]) -> str:
    if not rises(edges):
        raise HierarchyError(f"interval edges {list(edges)} do not rise.", hint="For example [0, 18, 65, 120].")
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
            "a calendar hierarchy needs dates, and the column holds something else.",
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
