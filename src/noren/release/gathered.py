"""Reads the columns of a computation once: an axis for each published one, a variable for each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, Weights
from noren.estimates.counts.query import find, parse_by
from noren.estimates.statistics.noised import PlacedMargin
from noren.estimates.statistics.records import Product, Records, Variable, limits_of, numbers_of
from noren.estimates.statistics.results import EXACT, SCORES, SPREAD
from noren.release.answers import NOTHING, Reader, SeveralRows, members_of, weight_of
from noren.release.noised import noised_tables

if TYPE_CHECKING:
    from noren.release.release import Release

Values = Mapping[str, Mapping[Any, float]]
"""What the values of a column stand for, by name of the column."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """The axes over the records that meet exact conditions, the other conditions, and the requested variables."""

    axes: Sequence[Axis]
    base: Product
    variables: Mapping[str, Variable]
    """By the text that asked for each."""
    rows: int
    suppressed: int
    weights: Weights | None = None
    margins: Sequence[PlacedMargin] = ()
    several: SeveralRows = NOTHING
    records: Records = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", Records.of(self.axes, self.weights, self.several.inflation))

    def assumes(self, *, sampled: bool) -> str:
        """Return the assumption behind numbers from these columns; for `sampled` records sampling is random too."""
        drawn = any(axis.is_drawn for axis in self.axes)
        coarse = any(axis.is_coarse for axis in self.axes)
        parts = [SCORES] * drawn + [SPREAD] * coarse
        if self.suppressed:
            parts.append(f"the {self.suppressed:,} suppressed records are distributed like the others")
        if self.weights is not None:
            parts.append(self.weights.assumes)
        if self.margins and drawn:
            parts.append("noised margins, where they help, as described in the manifest")
        if self.several.told and (drawn or sampled):
            parts.append(self.several.told)
        return "; ".join(parts) or EXACT

    def assumes_table(self, assumes: str) -> str:
        """Return the assumption behind numbers from an estimated table."""
        left = f"the {self.suppressed:,} suppressed records are not counted, not even in the bounds"
        return f"{assumes}; {left}" if self.suppressed else assumes

    def notes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return notes on the numbers used for these columns."""
        told = dict.fromkeys(note for name in names if (note := self.variables[name].note))
        return tuple(note[0].upper() + note[1:] + "." for note in told)


def gather(
    release: Release,
    names: Sequence[str],
    where: Mapping[str, Any],
    values: Values | None = None,
    weighted: bool | None = None,
) -> Gathered:
    """Read the requested texts: a column, a level, a width, or "column=value" for the share of one value.

    Records are weighed where the release has survey weights, unless `weighted` is false.
    """
    if release.rows_per_record > 1:
        raise QueryError(
            "this release has shuffled rows, which do not show which belong to one person.",
            hint="Use `release.estimate`, which can count such rows.",
        )
    members = members_of(release)
    known = members.columns
    texts = list(dict.fromkeys(names))
    shares = {text: _share(text, known) for text in texts}
    columns = [parse_by(text, known)[0].name if share is None else share[0] for text, share in shares.items()]
    asked = [*columns, *(find(name, known).name for name in where)]
    needed = list(dict.fromkeys(map(members.published, asked)))
    for name in needed:
        if release.column(name).terms is not None:
            raise QueryError(f"{name!r} holds sets of terms.", hint="Use `release.estimate` or `count` for terms.")
    weight = weight_of(release, weighted)
    reader = Reader.of(release, members, asked, weight, in_order=True)
    cells = reader.cells
    keep, hidden, fixed = reader.conditions(where, release.rows)
    if not keep.any():
        raise QueryError("no record meets the conditions.", hint="Widen `where`.")
    weights = None if weight is None or reader.weights is None else Weights.scaled(weight, reader.weights[keep])
    if not keep.all():
        cells = {name: column.take(np.flatnonzero(keep)) for name, column in cells.items()}
    axes = [Axis(name, reader.statements[name], cells[name]) for name in needed]
    places = {name: place for place, name in enumerate(needed)}
    base = {places[name]: mask.astype(np.float64) for name, mask in hidden.items()}
    variables = {
        text: _variable(reader, text, shares[text], places, (values or {}).get(column))
        for text, column in zip(texts, columns, strict=True)
    }
    margins = [] if weights is not None or release.suppressed else _margins(release, places, fixed, list(hidden))
    several = SeveralRows.of(release.manifest)
    return Gathered(axes, base, variables, int(keep.sum()), release.suppressed, weights, margins, several)


def _margins(
    release: Release, places: Mapping[str, int], fixed: Mapping[str, NDArray[np.bool_]], hidden: Sequence[str]
) -> list[PlacedMargin]:
    """Return the noised margins that contain all columns with conditions."""
    out = []
    for table in noised_tables(release):
        if {*fixed, *hidden} <= set(table.names):
            masks = {table.names.index(name): mask for name, mask in fixed.items()}
            out.append(PlacedMargin(table, tuple(places.get(name) for name in table.names), masks))
    return out


def _share(text: str, known: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return column and value of "column=value"; None for another text, or a column with this name."""
    name, found, value = text.partition("=")
    while found and name not in known and "=" in value:  # a name may hold the sign itself
        more, found, value = value.partition("=")
        name = f"{name}={more}"
    return None if text in known or not found or name not in known else (name, value)


def _variable(
    reader: Reader,
    text: str,
    share: tuple[str, str] | None,
    places: Mapping[str, int],
    declared: Mapping[Any, float] | None,
) -> Variable:
    if share is not None:
        name, value = share
        admitted = reader.admit_values(name, value)
        place = places[reader.members.published(name)]
        return Variable(text, place, ("no", "yes"), admitted.astype(np.int64), np.array([0.0, 1.0]), is_share=True)
    column, mark, argument = parse_by(text, reader.members.columns)
    name, group = column.name, reader.group_values(text, column, mark, argument)
    domain, place = reader.column(name).domain, places[reader.members.published(name)]
    if group.labels != domain.values:
        return Variable(text, place, group.labels, group.groups)
    try:
        numbers, edges, note = numbers_of(name, domain, declared)
    except QueryError:
        if declared is not None:
            raise
        return Variable(text, place, group.labels, group.groups, note="")
    limits = limits_of(domain) if declared is None and numbers is not None else None
    return Variable(text, place, group.labels, group.groups, numbers, edges, note, limits)
