"""What a recipient asks: which columns, grouped how, restricted to what.

`"job"` asks for a column, `"zip@2"` for level 2 of its hierarchy (0 is the value itself), `"age/10"` for intervals of
width 10. A condition names a column and the values that count; a label of a higher hierarchy level stands for all
values under it; `{">=": 30, "<": 40}` asks for a range of numbers, dates (`{">=": "1987-05"}`) or other ordered
values. On a column of terms a list asks for records with at least one of them, `{"all": [...]}` for records
with all of them, `{"any": [...], "all": [...]}` for both at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError, list_columns
from noren.estimates.counts.ranges import SIGNS, in_range
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.extents import kind_of
from noren.schema.hierarchy import exact, span, value_text
from noren.schema.kinds import NUMERIC
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
    """Column, kind of grouping ("", "@" or "/") and its argument. A column whose name holds a mark wins."""
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
    """How the base values of a column are reported."""
    if mark == "@":
        return _level(text, column, argument, domain)
    if mark == "/":
        return _width(text, column, argument, domain)
    return Grouping(column.name, text, domain.values, np.arange(len(domain)))


def _level(text: str, column: Column, argument: str, domain: Domain) -> Grouping:
    if column.tree is None:
        raise QueryError(f"{column.name!r} was published without a hierarchy, so {text!r} has no meaning.")
    height = column.tree.height
    if not argument.isdecimal() or int(argument) > height:
        raise QueryError(f"{text!r}: level {argument!r} is not one of 0..{height}.", hint="0 is the value itself.")
    labels, groups = column.tree.restricted(domain.values).groups(int(argument))
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
    """Which base values a condition admits."""
    if isinstance(wanted, Mapping):
        if wanted and all(sign in SIGNS for sign in wanted):
            return in_range(column, wanted, domain)
        raise QueryError(
            f"{column.name!r} holds one value a record, so its condition is a value or a list of values.",
            hint=f"{' and '.join(map(repr, MODES))} are for columns that hold sets of terms; ranges have "
            f"{', '.join(map(repr, SIGNS))}.",
        )
    values: Sequence[object] = list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
    if not values:
        raise QueryError(f"the condition on {column.name!r} admits no value.", hint="Name at least one.")
    hierarchy = column.tree.restricted(domain.values) if column.tree is not None else None
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
    """A hint that names the values most like one that does not exist, or the first few."""
    near = get_close_matches(label, domain.values) if len(domain) <= COMPARED else []
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"It has {', '.join(domain.values[:12])}{', ...' if len(domain) > 12 else ''}."


# ---------------------------------------------------------------------- columns of terms


@dataclass(frozen=True)
class TermCondition:
    """What is asked of a record's terms: one of `some`, all of `every`, or both; None asks nothing."""

    some: NDArray[np.bool_] | None
    every: NDArray[np.bool_] | None

    def met(self, cells: TermCells) -> NDArray[np.bool_]:
        """Which records meet it with the terms they have. More terms never unmeet it."""
        out = np.ones(len(cells), bool)
        if self.some is not None:
            out &= cells.has(self.some)
        if self.every is not None:
            out &= cells.has(self.every, every=True)
        return out


def wanted_terms(column: Column, wanted: object, domain: Domain) -> TermCondition:
    """A condition on a column of terms."""
    modes = wanted if isinstance(wanted, Mapping) else {"any": wanted}
    if not modes or any(mode not in MODES for mode in modes):
        raise QueryError(
            f"the condition on the terms of {column.name!r} is not a list, 'any' or 'all'.",
            hint=f'For example {{{column.name!r}: {{"all": {list(domain.values[:2])!r}}}}}.',
        )
    masks = {mode: allowed_values(column, values, domain) for mode, values in modes.items()}
    return TermCondition(masks.get("any"), masks.get("all"))


def listed_terms(asked: Sequence[tuple[str, str]], terms: Sequence[str]) -> str | None:
    """The column of terms that is asked for term by term, if one is. `asked`: every column and its mark."""
    named = [(column, mark) for column, mark in asked if column in terms]
    if not named:
        return None
    column, mark = named[0]
    if mark:
        raise QueryError(f"the terms of {column!r} have neither levels nor intervals.", hint=f"Ask for {column!r}.")
    if len(asked) > 1:
        other = next(name for name, _ in asked if name != column)
        raise QueryError(
            f"a record may have several terms of {column!r}, so it is not tabulated beside other columns.",
            hint=f"Ask for {other!r} with a condition on the terms: where={{{column!r}: [...]}}.",
        )
    return column
