"""Questions of recipients: columns, their grouping, and conditions.

`"job"` asks for a column, `"zip@2"` for level 2 of its hierarchy (0 is the value itself), `"age/10"` for intervals of
width 10. A condition names a column and the values that count; a label of a higher hierarchy level stands for all
values under it; `{">=": 30, "<": 40}` asks for a range of numbers, dates (`{">=": "1987-05"}`) or other ordered
values. On a column of terms a list asks for records with at least one of them, `{"all": [...]}` for records
with all of them, `{"any": [...], "all": [...]}` for both at once.

Ranges of ordered values: at least 30, before 1987-05. A missing cell lies in none.

Columns that were hidden together, asked for singly: a member's values are groups of the composite's tuples.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from fractions import Fraction
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError, list_columns
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.extents import after, kind_of, place_text
from noren.schema.hierarchy import exact, span, value_text
from noren.schema.kinds import CALENDAR, NUMERIC, as_number
from noren.schema.tuples import TupleDomain
from noren.statements import TermCells

MODES = ("any", "all")
"""How several terms of one condition are meant."""
COMPARED = 20_000
"""Most values among which near matches of a misspelt one are looked for."""


@dataclass(frozen=True)
class Grouping:
    """A column of the answer: its title, its labels, and for every base value the label it belongs to."""

    column: str
    title: str
    labels: tuple[str, ...]
    groups: NDArray[np.int64]

    @property
    def is_identity(self) -> bool:
        return len(self.labels) == len(self.groups) and bool((self.groups == np.arange(len(self.groups))).all())


def find(name: str, columns: Mapping[str, Column]) -> Column:
    if name not in columns:
        raise QueryError(f"the release has no column {name!r}.", hint=f"It has {list_columns(columns)}.")
    return columns[name]


def parse_by(text: str, columns: Mapping[str, Column]) -> tuple[Column, str, str]:
    """Return column, kind of grouping ("", "@" or "/") and its argument. A column whose name contains a mark takes
    precedence."""
    if text in columns:
        return columns[text], "", ""
    for mark in "@/":
        name, found, argument = text.rpartition(mark)
        if found and name in columns:
            return columns[name], mark, argument
    named = find(text.partition("@")[0].partition("/")[0], columns)
    hint = f"For example {named.name + '@1'!r} for a hierarchy level, {named.name + '/10'!r} for intervals."
    raise QueryError(f"{text!r} is not a column, a level or a width.", hint=hint)


def grouping(text: str, column: Column, mark: str, argument: str, domain: Domain) -> Grouping:
    """Return how the base values of a column are reported."""
    if mark == "@":
        return _level(text, column, argument, domain)
    if mark == "/":
        return _width(text, column, argument, domain)
    return Grouping(column.name, text, domain.values, np.arange(len(domain)))


def _level(text: str, column: Column, argument: str, domain: Domain) -> Grouping:
    if column.tree is None:
        raise QueryError(f"{column.name!r} was published without a hierarchy, so {text!r} cannot be answered.")
    height = column.tree.height
    if not argument.isdecimal() or int(argument) > height:
        raise QueryError(
            f"{text!r}: level {argument!r} is not one of 0..{height}.", hint="Level 0 is the value itself."
        )
    labels, groups = column.tree.restrict_to(domain.values).groups(int(argument))
    return Grouping(column.name, text, labels, groups)


def _width(text: str, column: Column, argument: str, domain: Domain) -> Grouping:
    try:
        width = exact(float(argument))
    except ValueError:
        width = Fraction(0)
    if width <= 0:
        raise QueryError(f"{text!r}: {argument!r} is not a positive width.", hint="For example 'age/10'.")
    if domain.measure is not None and kind_of(domain.measure) not in NUMERIC:
        raise QueryError(f"{text!r}: {column.name!r} does not hold numbers.")
    spans: list[tuple[Fraction, str] | None] = []
    for code, value in enumerate(domain.values):
        if value in (MISSING, OTHER):
            spans.append(None)
            continue
        if domain.edges is not None:
            low, high = domain.edges[code], domain.edges[code + 1]
            spans.append(found := span(low, width))
            if exact(high) > found[0] + width:
                raise QueryError(
                    f"{text!r}: the published bin {value} does not fit into intervals of width {argument}.",
                    hint=f"{column.name!r} was published in bins; ask for {column.name!r} itself.",
                )
            continue
        try:
            spans.append(span(float(value), width))
        except ValueError:
            raise QueryError(f"{text!r}: {column.name!r} does not hold numbers.") from None
    order = [label for _, label in sorted({found for found in spans if found is not None})]
    labels = [found[1] if found is not None else value for found, value in zip(spans, domain.values, strict=True)]
    order += [special for special in (OTHER, MISSING) if special in labels]
    places = {label: i for i, label in enumerate(order)}
    return Grouping(column.name, text, tuple(order), np.array([places[label] for label in labels], np.int64))


def allowed_values(column: Column, wanted: object, domain: Domain) -> NDArray[np.bool_]:
    """Return which base values a condition admits."""
    if isinstance(wanted, Mapping):
        if wanted and all(sign in SIGNS for sign in wanted):
            return in_range(column, wanted, domain)
        raise QueryError(
            f"{column.name!r} has one value per record, so its condition must be a value or a list of values.",
            hint=(
                f"{' and '.join(map(repr, MODES))} apply to columns of terms; ranges use {', '.join(map(repr, SIGNS))}."
            ),
        )
    values: Sequence[object] = list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
    if not values:
        raise QueryError(f"no value meets the condition on {column.name!r}.", hint="Give at least one.")
    hierarchy = column.tree.restrict_to(domain.values) if column.tree is not None else None
    out = np.zeros(len(domain), bool)
    for value in values:
        label = MISSING if value is None else value_text(value)
        if label in domain.index:
            out[domain.index[label]] = True
            continue
        under = np.zeros(len(domain), bool)
        if hierarchy is not None:
            for level in hierarchy.levels[1:]:
                under |= np.array([node == label for node in level])
        if not under.any():
            raise QueryError(f"{column.name!r} has no value {label!r}.", hint=_nearest(label, domain))
        out |= under
    return out


def _nearest(label: str, domain: Domain) -> str:
    """Return a hint that names the values most similar to an unknown one, or the first few."""
    near = get_close_matches(label, domain.values) if len(domain) <= COMPARED else []
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"It has {', '.join(domain.values[:12])}{', ...' if len(domain) > 12 else ''}."


# ---------------------------------------------------------------------- columns of terms


@dataclass(frozen=True)
class TermCondition:
    """A condition on a record's terms: one of `some`, all of `every`, or both; None is no condition."""

    some: NDArray[np.bool_] | None
    every: NDArray[np.bool_] | None

    def met(self, cells: TermCells) -> NDArray[np.bool_]:
        """Return which records meet the condition with their published terms; more terms never break it."""
        out = np.ones(len(cells), bool)
        if self.some is not None:
            out &= cells.has(self.some)
        if self.every is not None:
            out &= cells.has(self.every, every=True)
        return out


def wanted_terms(column: Column, wanted: object, domain: Domain) -> TermCondition:
    """Parse a condition on a column of terms."""
    modes = wanted if isinstance(wanted, Mapping) else {"any": wanted}
    if not modes or any(mode not in MODES for mode in modes):
        raise QueryError(
            f"the condition on the terms of {column.name!r} must be a list, 'any' or 'all'.",
            hint=f'For example {{{column.name!r}: {{"all": {list(domain.values[:2])!r}}}}}.',
        )
    masks = {mode: allowed_values(column, values, domain) for mode, values in modes.items()}
    return TermCondition(masks.get("any"), masks.get("all"))


def listed_terms(asked: Sequence[tuple[str, str]], terms: Sequence[str]) -> str | None:
    """Return the column of terms that is requested term by term, if there is one. `asked`: every column and its
    mark."""
    named = [(column, mark) for column, mark in asked if column in terms]
    if not named:
        return None
    column, mark = named[0]
    if mark:
        raise QueryError(
            f"{column!r} holds sets of terms, which have neither levels nor intervals.", hint=f"Ask for {column!r}."
        )
    if len(asked) > 1:
        other = next(name for name, _ in asked if name != column)
        raise QueryError(
            f"{column!r} cannot be tabulated with other columns, because a record may have several terms.",
            hint=f"Ask for {other!r} with a condition on the terms: where={{{column!r}: [...]}}.",
        )
    return column


SIGNS: Mapping[str, Callable[[NDArray, float], NDArray]] = {
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
}
"""How a value may stand to the end of a range."""


def in_range(column: Column, wanted: Mapping[str, object], domain: Domain) -> NDArray[np.bool_]:
    """Return which values are inside all given ends."""
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
            hint = (
                f"Use >= or < with an edge of the bins: {', '.join(ends)}."
                if ends
                else ("Ask without a range: there is only one bin.")
            )
            raise QueryError(
                f"{column.name!r} was published in bins, and {value_text(given)} is not an edge of a bin.", hint=hint
            )
        out &= inside
    if not out.any():
        raise QueryError(f"no value lies in the range on {column.name!r}.", hint="Give a wider one.")
    return out


def _parted(
    domain: Domain, low: NDArray[np.float64], high: NDArray[np.float64], sign: str, place: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which bins are completely inside one end of a range, and which are completely outside.

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
    """Return where every value begins and ends (NaN without position), and where a text begins and ends."""
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
            hint = "List the values instead; ranges need numbers, dates or a declared order."
            raise QueryError(f"the values of {column.name!r} have no order.", hint=hint)

        def rank(text: str) -> tuple[float, float]:
            if text not in domain.index:
                raise QueryError(f"{column.name!r} has no value {text!r}.", hint="Give one of its values.")
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
    """Return the first and the last day (or second) of a year, a month, a day or a moment."""
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


@dataclass(frozen=True)
class Members:
    """The columns of a question: published columns, and members of tuples."""

    columns: Mapping[str, Column]
    """Members as columns of their own beside the published ones."""
    owner: Mapping[str, str]
    """The composite of every member."""
    codes: Mapping[str, NDArray[np.int64]]
    """The code of every member in each tuple."""

    @classmethod
    def of(cls, columns: Mapping[str, Column]) -> Members:
        known, owner, codes = dict(columns), {}, {}
        for name, column in columns.items():
            domain = None if column.is_open else column.domain
            if not isinstance(domain, TupleDomain):
                continue
            for member in domain.members:
                if member.name not in columns:
                    known[member.name] = column.over(
                        member.name, member.domain, hierarchy=member.tree, distance="equal"
                    )
                    owner[member.name] = name
                    codes[member.name] = domain.codes[member.name]
        return cls(known, owner, codes)

    def published(self, name: str) -> str:
        """Return the published column that contains this one."""
        return self.owner.get(name, name)

    def of_tuples(self, name: str, admitted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which values of the published column a condition on this one admits."""
        return admitted[self.codes[name]] if name in self.codes else admitted

    def grouped(self, group: Grouping) -> Grouping:
        """Return a grouping of this column's values as a grouping of the published column."""
        if group.column not in self.codes:
            return group
        return Grouping(self.owner[group.column], group.title, group.labels, group.groups[self.codes[group.column]])


@dataclass(frozen=True)
class Shape:
    """How requested columns are arranged along the axes of a table; members of one composite share an axis."""

    axes: Sequence[Grouping]
    _columns: Sequence[Sequence[int]]
    """The columns of every axis, by their place in the question."""
    _sizes: Sequence[int]
    _cells: Sequence[NDArray[np.int64]]
    """Where every group of an axis stands in the grid of its columns."""

    @classmethod
    def of(cls, shown: Sequence[Grouping]) -> Shape:
        places: dict[str, list[int]] = {}
        for place, group in enumerate(shown):
            places.setdefault(group.column, []).append(place)
        axes, cells = [], []
        for column, own in places.items():
            sizes = tuple(len(shown[place].labels) for place in own)
            if len(own) == 1:
                axes.append(shown[own[0]])
                cells.append(np.arange(sizes[0]))
                continue
            grid = np.ravel_multi_index(tuple(shown[place].groups for place in own), sizes)
            used, groups = np.unique(grid, return_inverse=True)
            title = ", ".join(shown[place].title for place in own)
            axes.append(Grouping(column, title, tuple(map(str, used)), groups.astype(np.int64)))
            cells.append(used)
        return cls(axes, list(places.values()), [len(group.labels) for group in shown], cells)

    def spread(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the table with one dimension for each requested column; combinations without a tuple are 0."""
        if all(len(columns) == 1 for columns in self._columns):
            return table
        rest = table.shape[len(self.axes) :]
        for axis, (columns, cells) in enumerate(zip(self._columns, self._cells, strict=True)):
            size = int(np.prod([self._sizes[place] for place in columns]))
            wide = np.zeros((*table.shape[:axis], size, *table.shape[axis + 1 :]))
            wide[(slice(None),) * axis + (cells,)] = table
            table = wide
        order = [place for columns in self._columns for place in columns]
        table = table.reshape(*(self._sizes[place] for place in order), *rest)
        back = np.argsort(order).tolist()
        return table.transpose(*back, *range(len(order), table.ndim))
