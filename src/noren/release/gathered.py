"""The columns that a computation needs, read once: an axis for each published one, a variable for each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, Weights
from noren.estimates.counts.query import Grouping, Members, allowed_values, find, grouping, parse_by
from noren.estimates.statistics.noised import PlacedMargin
from noren.estimates.statistics.records import Product, Records
from noren.estimates.statistics.results import EXACT, SCORES, SPREAD
from noren.estimates.statistics.variables import Variable, numbers_of
from noren.release.answers import _closed, weight_numbers, weight_of
from noren.release.noised import noised_tables
from noren.release.several import NOTHING, SeveralRows
from noren.schema.domain import Domain
from noren.statements import Cells, Statement

if TYPE_CHECKING:
    from noren.release.release import Release

Values = Mapping[str, Mapping[Any, float]]
"""What the values of a column stand for, by name of the column."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """Axes over the records that exact conditions leave, the conditions on the others, and what was asked for."""

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
        """What numbers from these columns rest on; of `sampled` records more is random than what was drawn."""
        drawn = any(axis.is_drawn for axis in self.axes)
        coarse = any(axis.is_coarse for axis in self.axes)
        parts = [SCORES] * drawn + [SPREAD] * coarse
        if self.suppressed:
            parts.append(f"the {self.suppressed:,} records left out are like the others")
        if self.weights is not None:
            parts.append(self.weights.assumes)
        if self.margins and drawn:
            parts.append("noised margins, where they help, as the manifest describes them")
        if self.several.told and (drawn or sampled):
            parts.append(self.several.told)
        return "; ".join(parts) or EXACT

    def notes(self, names: Sequence[str]) -> tuple[str, ...]:
        """What the numbers of these columns stand for, where that is not plain."""
        told = dict.fromkeys(note for name in names if (note := self.variables[name].note))
        return tuple(note[0].upper() + note[1:] + "." for note in told)


@dataclass(frozen=True, eq=False)
class _Reader:
    """The release's columns, closed, with their cells."""

    members: Members
    statements: Mapping[str, Statement]
    cells: Mapping[str, Cells]

    def domain(self, name: str) -> Domain:
        return self.members.columns[name].domain if name in self.members.owner else self.statements[name].domain

    def grouped(self, text: str) -> tuple[str, Grouping]:
        """The column that a text names, and how its values stand on the axis of the published one."""
        column, mark, argument = parse_by(text, self.members.columns)
        return column.name, self.members.grouped(grouping(text, column, mark, argument, self.domain(column.name)))


def gather(
    release: Release,
    names: Sequence[str],
    where: Mapping[str, Any],
    values: Values | None = None,
    weighted: bool | None = None,
) -> Gathered:
    """Read what these texts ask for: a column, a level, a width, or "column=value" for the share of one value.

    Records are weighed where the release has survey weights, unless `weighted` is false.
    """
    if release.rows_per_record > 1:
        raise QueryError(
            "this release has shuffled rows, and nobody knows which belong to one person.",
            hint="`release.estimate` counts such rows.",
        )
    members = Members.of({statement.name: statement.column for statement in release.statements})
    known = members.columns
    texts = list(dict.fromkeys(names))
    shares = {text: _share(text, known) for text in texts}
    columns = [parse_by(text, known)[0].name if shares[text] is None else shares[text][0] for text in texts]  # type: ignore[index]
    asked = [*columns, *(find(name, known).name for name in where)]
    needed = list(dict.fromkeys(map(members.published, asked)))
    cells = dict(release.cells(needed))
    statements: dict[str, Statement] = {}
    for name in needed:
        statements[name], cells[name] = _closed(release.column(name), cells[name])
        if statements[name].terms is not None:
            raise QueryError(
                f"{name!r} holds sets of terms.", hint="`release.estimate` and `count` answer about terms."
            )
    reader = _Reader(members, statements, cells)
    keep, masks, fixed = _conditions(reader, where, release.rows)
    weight = weight_of(release, weighted)
    weights = None
    if weight is not None:
        numbers = weight_numbers(release, release.column(weight), release.cells([weight])[weight])
        weights = Weights.scaled(weight, numbers[keep])
    if not keep.all():
        cells = {name: column.take(np.flatnonzero(keep)) for name, column in cells.items()}
    axes = [Axis(name, statements[name], cells[name]) for name in needed]
    places = {name: place for place, name in enumerate(needed)}
    base = {places[name]: mask.astype(np.float64) for name, mask in masks.items()}
    variables = {
        text: _variable(reader, text, shares[text], places, (values or {}).get(column))
        for text, column in zip(texts, columns, strict=True)
    }
    margins = [] if weights is not None or release.suppressed else _margins(release, places, fixed, list(masks))
    several = SeveralRows.of(release.manifest)
    return Gathered(axes, base, variables, int(keep.sum()), release.suppressed, weights, margins, several)


def _margins(
    release: Release, places: Mapping[str, int], fixed: Mapping[str, NDArray[np.bool_]], hidden: Sequence[str]
) -> list[PlacedMargin]:
    """The noised margins that know all columns with conditions."""
    out = []
    for table in noised_tables(release):
        if {*fixed, *hidden} <= set(table.names):
            masks = {table.names.index(name): mask for name, mask in fixed.items()}
            out.append(PlacedMargin(table, tuple(places.get(name) for name in table.names), masks))
    return out


def _share(text: str, known: Mapping[str, Any]) -> tuple[str, str] | None:
    """Column and value of "column=value"; None for another text, or a column that is called so."""
    name, found, value = text.partition("=")
    while found and name not in known and "=" in value:  # a name may hold the sign itself
        more, found, value = value.partition("=")
        name = f"{name}={more}"
    return None if text in known or not found or name not in known else (name, value)


def _conditions(
    reader: _Reader, where: Mapping[str, Any], rows: int
) -> tuple[NDArray[np.bool_], dict[str, NDArray[np.bool_]], dict[str, NDArray[np.bool_]]]:
    """Which rows exact columns leave, which base values of the others count, and which of the exact ones."""
    keep, masks, fixed = np.ones(rows, bool), dict[str, NDArray[np.bool_]](), dict[str, NDArray[np.bool_]]()
    for name, wanted in where.items():
        owner = reader.members.published(name)
        statement, domain = reader.statements[owner], reader.domain(name)
        column = statement.column if owner == name else reader.members.columns[name]
        admitted = reader.members.of_tuples(name, allowed_values(column, wanted, domain))
        if statement.is_exact:
            keep &= admitted[statement.key(reader.cells[owner])]
            fixed[owner] = admitted & fixed.get(owner, np.ones(len(admitted), bool))
        else:
            masks[owner] = admitted & masks.get(owner, np.ones(len(admitted), bool))
    if not keep.any():
        raise QueryError("no record meets the conditions.", hint="Widen `where`.")
    return keep, masks, fixed


def _variable(
    reader: _Reader,
    text: str,
    share: tuple[str, str] | None,
    places: Mapping[str, int],
    declared: Mapping[Any, float] | None,
) -> Variable:
    if share is not None:
        name, value = share
        column = reader.members.columns[name] if name in reader.members.owner else reader.statements[name].column
        admitted = reader.members.of_tuples(name, allowed_values(column, value, reader.domain(name)))
        place = places[reader.members.published(name)]
        return Variable(text, place, ("no", "yes"), admitted.astype(np.int64), np.array([0.0, 1.0]))
    name, group = reader.grouped(text)
    domain, place = reader.domain(name), places[reader.members.published(name)]
    if group.labels != domain.values:
        return Variable(text, place, group.labels, group.groups)
    try:
        numbers, edges, note = numbers_of(name, domain, declared)
    except QueryError:
        if declared is not None:
            raise
        return Variable(text, place, group.labels, group.groups, note="")
    return Variable(text, place, group.labels, group.groups, numbers, edges, note)
