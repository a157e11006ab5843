"""What a recipient asks: which columns, grouped how, restricted to what.

`"job"` asks for a column, `"zip@2"` for level 2 of its hierarchy (0 is the value itself), `"age/10"` for intervals of
width 10. A condition names a column and the values that count; a label of a higher hierarchy level stands for all
values under it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.hierarchy import exact, span, value_text
from noren.schema.meaning import Meaning


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


def find(name: str, columns: Mapping[str, Meaning]) -> Meaning:
    if name not in columns:
        raise QueryError(f"the release has no column {name!r}.", hint=f"It has {', '.join(columns)}.")
    return columns[name]


def parse_by(text: str, columns: Mapping[str, Meaning]) -> tuple[Meaning, str, str]:
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


def grouping(text: str, meaning: Meaning, mark: str, argument: str, domain: Domain) -> Grouping:
    """How the base values of a column are reported."""
    if mark == "@":
        return _level(text, meaning, argument, domain)
    if mark == "/":
        return _width(text, meaning, argument, domain)
    return Grouping(meaning.name, text, domain.values, np.arange(len(domain)))


def _level(text: str, meaning: Meaning, argument: str, domain: Domain) -> Grouping:
    if meaning.hierarchy is None:
        raise QueryError(f"{meaning.name!r} was published without a hierarchy, so {text!r} has no meaning.")
    height = meaning.hierarchy.height
    if not argument.isdecimal() or int(argument) > height:
        raise QueryError(f"{text!r}: level {argument!r} is not one of 0..{height}.", hint="0 is the value itself.")
    labels, groups = meaning.hierarchy.restricted(domain.values).groups(int(argument))
    return Grouping(meaning.name, text, labels, groups)


def _width(text: str, meaning: Meaning, argument: str, domain: Domain) -> Grouping:
    try:
        width = exact(float(argument))
    except ValueError:
        width = Fraction(0)
    if width <= 0:
        raise QueryError(f"{text!r}: {argument!r} is not a positive width.", hint="For example 'age/10'.")
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
                    hint=f"{meaning.name!r} was published in bins; ask for {meaning.name!r} itself.",
                )
            continue
        try:
            spans.append(span(float(value), width))
        except ValueError:
            raise QueryError(f"{text!r}: {meaning.name!r} does not hold numbers.") from None
    order = [label for _, label in sorted({found for found in spans if found is not None})]
    labels = [found[1] if found is not None else value for found, value in zip(spans, domain.values, strict=True)]
    order += [special for special in (OTHER, MISSING) if special in labels]
    places = {label: i for i, label in enumerate(order)}
    return Grouping(meaning.name, text, tuple(order), np.array([places[label] for label in labels], np.int64))


def allowed_values(meaning: Meaning, wanted: object, domain: Domain) -> NDArray[np.bool_]:
    """Which base values a condition admits."""
    values: Sequence[object] = list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
    if not values:
        raise QueryError(f"the condition on {meaning.name!r} admits no value.", hint="Name at least one.")
    hierarchy = meaning.hierarchy.restricted(domain.values) if meaning.hierarchy is not None else None
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
            known = ", ".join(domain.values[:12]) + (", ..." if len(domain) > 12 else "")
            raise QueryError(f"{meaning.name!r} has no value {label!r}.", hint=f"It has {known}.")
        out |= under
    return out
