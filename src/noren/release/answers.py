"""Answers questions of recipients: axes over the published cells, a table, an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import Groups
from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, Classes, Weights
from noren.estimates.counts.estimate import SEVERAL_ROWS, UP_TO_ROWS
from noren.estimates.counts.query import (
    Grouping,
    Members,
    Shape,
    allowed_values,
    find,
    grouping,
    listed_terms,
    parse_by,
    wanted_terms,
)
from noren.estimates.statistics.records import numbers_of
from noren.release.manifest import Manifest
from noren.release.noised import Margins, raked_to_parts
from noren.schema.column import Column
from noren.schema.domain import MISSING, Domain, infer_kind, sort_labels
from noren.statements import Cells, CodeCells, ExactStatement, Statement

if TYPE_CHECKING:
    from noren.estimates.counts.tabulate import Tabulation
    from noren.release.release import Release
    from noren.release.term_answers import AskedTerms

CELL_LIMIT = 20_000_000
"""Largest cross tabulation that is worked out at once."""
JOINT_CELLS = 100_000
"""Largest table of all columns of a question, its conditions too, from which its counts are taken."""

Progress = Callable[[int, float], None]


class SeveralRows(NamedTuple):
    """The factor for variances if people have several rows, and the assumption behind an error; "" if none.

    Rows of a person share draws and are not independent, and nobody knows whose they are. Where the manifest bounds how
    many a person has, the variance of any sum over records is at most that many times what it is of independent ones:
    of m numbers the square of the sum is at most m times the sum of the squares.
    """

    inflation: int = 1
    told: str = ""

    @classmethod
    def of(cls, manifest: Manifest) -> SeveralRows:
        """Read the factor from the manifest. Without a declared bound it is 1, and the error says that it is too
        small."""
        if manifest.rows_are_people or manifest.most_rows == 1:
            return NOTHING
        if manifest.most_rows is None:
            return cls(1, SEVERAL_ROWS)
        return cls(manifest.most_rows, UP_TO_ROWS.format(manifest.most_rows))

    @property
    def after(self) -> str:
        """Append the assumption to other words."""
        return f"; {self.told}" if self.told else ""


NOTHING = SeveralRows()
"""Records are people."""


@dataclass(frozen=True)
class Answer:
    """Counts of a cross tabulation, one dimension per grouping shown, then one of size 1 per condition."""

    shown: Sequence[Grouping]
    counts: NDArray[np.float64]
    std_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    records: int
    estimator: str
    level: float
    assumes: str
    diagnostics: Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """The requested columns and conditions, with the cells of the records that meet exact conditions."""

    shown: Sequence[Grouping]
    allowed: Mapping[str, NDArray[np.bool_]]
    """Conditions on columns that are not published exactly: which base values count."""
    columns: Mapping[str, Statement]
    cells: Mapping[str, Cells]
    rows: int
    fixed: Mapping[str, NDArray[np.bool_]]
    """Conditions on columns that are published exactly, which chose the rows: which values count."""
    shape: Shape
    """Which columns asked for stand along one axis: members of one composite."""
    classes: Classes | None = None
    """The classes of the rows, where columns say what certainly occurs in them."""
    weights: Weights | None = None
    """What every row weighs."""
    terms: AskedTerms | None = None
    """Conditions on columns of terms, and the column that is asked for term by term."""


def answer(
    release: Release,
    by: Sequence[str],
    where: Mapping[str, Any],
    estimator: str | None,
    level: float,
    population: bool,
    progress: Progress | None,
    weighted: bool | None = None,
) -> Answer:
    """Estimate the answer, by the named estimator or the one that fits the cells."""
    if population:
        _demand_chance(release)
    question = ask(release, by, where, weight_of(release, weighted))
    axes, several = _axes(question), SeveralRows.of(release.manifest)
    records = question.rows * release.records // max(1, release.rows)
    if question.terms is not None:
        table = _of_terms(axes, question.terms, estimator, release.suppressed, population, progress)
    elif not axes:
        return _count_exactly(release, records, level, question.weights, population)
    else:
        from noren.estimates.counts.tabulate import tabulate, without_chance

        left = 0 if population else release.suppressed
        options: dict[str, Any] = {"level": level, "population": population, "progress": progress}
        options |= {"weights": question.weights, "among": release.rows, "rows_each": release.rows_per_record}
        options["inflation"] = several.inflation
        margins = Margins.of(release, question)
        if margins.whole:  # sampling is added when their noise was
            options["population"] = False
        table = tabulate(axes, estimator, suppressed=left, **options)
        if not table.is_hard and not release.suppressed:
            sampled = several.inflation if population else 0
            table = margins.put_into(table, level, float(release.records), sampled=sampled)
            table = _rake_to_margins(release, question, table, margins, by, where, weighted)
        table = _from_joint(release, question, table, by, where, weighted)
        if release.rows_per_record > 1 and not any(axis.is_shuffled for axis in axes):
            table = _of_people(table, release.rows_per_record)
        if not release.designs and not table.is_hard and not population:
            table = without_chance(table)
    spread = question.shape.spread
    random = not table.is_hard and (population or any(axis.is_drawn for axis in axes))
    return Answer(
        question.shown,
        spread(table.counts),
        spread(table.std_error),
        spread(table.low),
        spread(table.high),
        records,
        table.method if table.is_hard else estimator or table.diagnostics.get("asked_for", table.method),
        1.0 if table.is_hard else level,
        table.assumes + (several.after if random else ""),
        table.diagnostics | {"iterations": table.iterations},
    )


def _from_joint(
    release: Release,
    question: Question,
    table: Tabulation,
    by: Sequence[str],
    where: Mapping[str, Any],
    weighted: bool | None,
) -> Tabulation:
    """Replace the counts by those from the joint table of all requested and conditioned columns, so that `count` and
    `estimate` agree. Intervals and bounds stay those of the records that meet the conditions."""
    alike = not question.fixed and all(statement.design is not None for statement in question.columns.values())
    owners = {group.column for group in question.shown}
    conditions = [*question.fixed, *question.allowed]
    sizes = [len(group.labels) for group in question.shown if group.column not in conditions]
    sizes += [question.columns[name].d for name in conditions]
    if (
        not where
        or (alike and not release.margins)
        or table.method not in ("likelihood", "class-aware")
        or all(statement.is_exact or statement.rows_per_record > 1 for statement in question.columns.values())
        or len(owners) < len(question.shown)
        or np.prod([float(size) for size in sizes]) > JOINT_CELLS
    ):
        return table
    asked = [
        text if group.column not in conditions else group.column for text, group in zip(by, question.shown, strict=True)
    ]
    others = [name for name in conditions if name not in owners]
    found = answer(release, [*asked, *others], {}, table.method, 0.95, False, None, weighted)
    counts = found.counts
    for place, name in enumerate([group.column for group in question.shown] + others):
        admitted = question.fixed.get(name, question.allowed.get(name))
        if admitted is None:
            continue
        group = question.shown[place].groups if place < len(by) else np.zeros(len(admitted), np.int64)
        size = len(question.shown[place].labels) if place < len(by) else 1
        counts = Groups(np.where(admitted, group, -1), size).sum(counts, place)
    counts = counts.reshape(table.counts.shape)
    if table.is_hard:
        counts = np.clip(counts, table.low, table.high)
    low, high = np.minimum(table.low, counts), np.maximum(table.high, counts)
    return replace(table, counts=counts, low=low, high=high)


def _rake_to_margins(
    release: Release,
    question: Question,
    table: Tabulation,
    margins: Margins,
    by: Sequence[str],
    where: Mapping[str, Any],
    weighted: bool | None,
) -> Tabulation:
    """Rake the table to the combination of noised margins and cells."""
    if margins.whole or not margins.parts or table.method != "likelihood":
        return table
    texts = {group.column: text for group, text in zip(question.shown, by, strict=True)}
    parts = {}
    for columns in margins.parts:
        found = answer(release, [texts[name] for name in columns], where, None, 0.95, False, None, weighted)
        parts[columns] = found.counts.reshape(found.counts.shape[: len(columns)])
    return raked_to_parts(table, [group.column for group in question.shape.axes], parts)


def _demand_chance(release: Release) -> None:
    """Refuse an interval for the population if cells were not published at random by a design."""
    coarse = not release.designs and any(statement.hides for statement in release.statements)
    if coarse or release.suppressed:
        raise QueryError(
            "there is no interval for the population here, because cells were not coarsened or suppressed at "
            "random by a design.",
            hint="Ask without population; low and high are then hard bounds for the original table.",
        )


def weight_of(release: Release, weighted: bool | None) -> str | None:
    """Return the column of survey weights for an answer: the manifest's, unless records are counted."""
    name = release.manifest.weight
    if weighted and name is None:
        raise QueryError("this release has no survey weights.", hint="Leave out weighted.")
    if name is None or weighted is False:
        return None
    if release.rows_per_record > 1:
        raise QueryError(
            "this release has shuffled rows, so weights cannot be matched to people.",
            hint="Count records instead, with weighted=False.",
        )
    return name


def weight_numbers(release: Release, statement: Statement, cells: Cells) -> NDArray[np.float64]:
    """Return the weight of every row; in a sample, divided by the sampling probability."""
    closed, found = _list_open_values(statement, cells)
    numbers, _, _ = numbers_of(closed.name, closed.domain)
    codes = np.asarray(closed.key(found))
    share = release.manifest.sample or 1.0
    return np.full(len(codes), np.nan) if numbers is None else numbers[codes] / share


class Conditions(NamedTuple):
    """The records that meet the conditions."""

    keep: NDArray[np.bool_]
    """Which rows the exact columns leave."""
    hidden: dict[str, NDArray[np.bool_]]
    """Of every other column with conditions, which base values count,"""
    fixed: dict[str, NDArray[np.bool_]]
    """and of every exact one."""


@dataclass(frozen=True, eq=False)
class Reader:
    """The columns of a question, each with a domain, and their cells."""

    members: Members
    statements: Mapping[str, Statement]
    """The published columns, by name."""
    cells: Mapping[str, Cells]
    weights: NDArray[np.float64] | None = None
    """What every row weighs, where records are weighed."""

    @classmethod
    def of(
        cls, release: Release, members: Members, names: Sequence[str], weight: str | None, *, in_order: bool = False
    ) -> Reader:
        """Read the needed columns. Rows come `in_order` of the release, otherwise in the cheapest order."""
        needed = list(dict.fromkeys(map(members.published, names)))
        asked = [*needed, *([weight] if weight is not None and weight not in needed else [])]
        found = release.cells(asked) if in_order else release.gather_cells(asked)
        closed = {name: _list_open_values(release.column(name), found[name]) for name in needed}
        weights = None if weight is None else weight_numbers(release, release.column(weight), found[weight])
        statements = {name: statement for name, (statement, _) in closed.items()}
        return cls(members, statements, {name: cells for name, (_, cells) in closed.items()}, weights)

    def column(self, name: str) -> Column:
        """Return a published column, or a member of one."""
        return self.members.columns[name] if name in self.members.owner else self.statements[name].column

    def admit_values(self, name: str, wanted: Any) -> NDArray[np.bool_]:
        """Return which values of the published column a condition on this one admits."""
        column = self.column(name)
        return self.members.of_tuples(name, allowed_values(column, wanted, column.domain))

    def group_values(self, text: str, column: Column, mark: str, argument: str) -> Grouping:
        """Return how the requested values are arranged on the axis of the published column."""
        return self.members.grouped(grouping(text, column, mark, argument, self.column(column.name).domain))

    def conditions(self, where: Mapping[str, Any], rows: int) -> Conditions:
        """Apply conditions on columns with values; those on terms are handled elsewhere."""
        out = Conditions(np.ones(rows, bool), {}, {})
        for name, wanted in where.items():
            owner = self.members.published(name)
            statement = self.statements[owner]
            if statement.terms is not None:
                continue
            admitted = self.admit_values(name, wanted)
            if statement.is_exact:
                out.keep[:] &= admitted[statement.key(self.cells[owner])]
            held = out.fixed if statement.is_exact else out.hidden
            held[owner] = admitted & held.get(owner, True)
        return out


def members_of(release: Release) -> Members:
    """Return the columns that can be requested: those of a release, and members of tuples."""
    return Members.of({statement.name: statement.column for statement in release.statements})


def ask(release: Release, by: Sequence[str], where: Mapping[str, Any], weight: str | None = None) -> Question:
    """Read the cells for a question, and apply conditions on exact columns."""
    members = members_of(release)
    parsed = [(text, *parse_by(text, members.columns)) for text in by]
    if len({column.name for _, column, _, _ in parsed}) != len(parsed):
        raise QueryError("a column is listed twice.", hint="List every column once, at one level.")
    of_terms = [statement.name for statement in release.statements if statement.terms is not None]
    listed = listed_terms([(column.name, mark) for _, column, mark, _ in parsed], of_terms)
    names = [column.name for _, column, _, _ in parsed] + [find(name, members.columns).name for name in where]
    reader = Reader.of(release, members, names, weight)
    columns, cells = reader.statements, reader.cells
    sure = np.ones(release.rows, bool)
    for name, wanted in where.items():
        statement = columns[members.published(name)]
        if statement.terms is not None:
            sure &= wanted_terms(statement.column, wanted, statement.domain).met(statement.check_cells(cells[name]))
    keep, hidden, fixed = reader.conditions(where, release.rows)
    asked = _asked_terms(columns, cells, sure, listed)
    if asked is not None and weight is not None:
        raise QueryError("sets of terms are counted in records, not in weights.", hint="Ask with weighted=False.")
    weights = None if weight is None or reader.weights is None else Weights.scaled(weight, reader.weights[keep])
    classes = classes_of(release, columns, cells)
    if not keep.all():
        rows = np.flatnonzero(keep)
        classes = None if classes is None else replace(classes, of=classes.of[rows])
        cells = {name: column.take(rows) for name, column in cells.items()}
        asked = None if asked is None else asked.take(rows)
    shown = [reader.group_values(*one) for one in parsed]
    return Question(shown, hidden, columns, cells, int(keep.sum()), fixed, Shape.of(shown), classes, weights, asked)


def classes_of(release: Release, columns: Mapping[str, Statement], cells: Mapping[str, Cells]) -> Classes | None:
    """Return the classes of rows if a requested column states which values occur in classes."""
    if all(statement.tightness is None for statement in columns.values()):
        return None
    remember = getattr(release.store, "remember", None)  # they are the same whatever is asked for
    made = partial(_classes_of, release, cells)
    found: Classes = made() if remember is None else remember("classes", made)
    return found


def _classes_of(release: Release, cells: Mapping[str, Cells]) -> Classes:
    from noren.estimates.counts.rows import row_numbers

    tight = [statement for statement in release.statements if statement.tightness is not None]
    others = [one.name for one in tight if one.name not in cells]
    read = {**cells, **(release.cells(others) if others else {})}
    keys = [one.key(read[one.name]) for one in tight]
    of = row_numbers(keys, release.rows)
    return Classes(of, np.bincount(of))


def _asked_terms(
    columns: Mapping[str, Statement], cells: Mapping[str, Cells], sure: NDArray[np.bool_], listed: str | None
) -> AskedTerms | None:
    """Return the condition on terms, if there is one."""
    if all(statement.terms is None for statement in columns.values()):
        return None
    from noren.release.term_answers import AskedTerms

    return AskedTerms(sure, None if listed is None else columns[listed].check_cells(cells[listed]))


def _list_open_values(statement: Statement, cells: Any) -> tuple[Statement, Cells]:
    """Return a column with a domain; an open column gets it from its cells."""
    column = statement.column
    if not column.is_open:
        return statement, cells
    if not statement.is_exact:
        raise QueryError(
            f"column {column.name!r} is {statement.words}, so its values cannot be counted.",
            hint="Ask for other columns; `release.frame()` gives the means, whose average over records is exact.",
        )
    from noren.statements.texts import encode_labels, label_counts

    labels, _, missing = label_counts(cells.data, column.name)
    labels = [*labels, MISSING] if missing else labels
    kind = infer_kind(labels)
    domain = Domain(tuple(sort_labels(labels, kind)), kind)
    codes, _ = encode_labels(cells.data, column.name, domain)
    return ExactStatement(column.over(column.name, domain)), CodeCells(len(domain), codes)


def _axes(question: Question) -> list[Axis]:
    """Return axes for the requested columns, then for conditions on columns that are not published exactly."""
    hidden = dict(question.allowed)
    axes = [
        _axis(question, group, hidden.pop(group.column, None))
        for group in question.shape.axes
        if question.columns[group.column].terms is None
    ]
    for name, admitted in hidden.items():
        only = Grouping(name, name, (name,), np.zeros(len(admitted), np.int64))
        axes.append(_axis(question, only, admitted))
    size = float(np.prod([float(axis.d if axis.is_drawn else axis.size) for axis in axes]))
    size = max(size, float(np.prod([float(len(group.labels)) for group in question.shown])))
    if size > CELL_LIMIT:
        raise QueryError(
            f"the cross tabulation would have {int(size):,} cells, more than {CELL_LIMIT:,}.",
            hint="Ask for fewer columns, a hierarchy level (zip@1) or intervals (age/10).",
        )
    return axes


def _axis(question: Question, group: Grouping, allowed: NDArray[np.bool_] | None) -> Axis:
    statement, cells = question.columns[group.column], question.cells[group.column]
    if allowed is None and group.is_identity:
        return Axis(group.title, statement, cells, classes=question.classes)
    groups = group.groups if allowed is None else np.where(allowed, group.groups, -1)
    return Axis(group.title, statement, cells, groups.astype(np.int64), len(group.labels), classes=question.classes)


def _count_exactly(release: Release, records: int, level: float, weights: Weights | None, population: bool) -> Answer:
    """Count rows exactly if nothing is hidden; suppressed people may be in any cell."""
    count, most = np.full(1, float(records)), np.full(1, float(records + release.suppressed))
    facts: dict[str, Any] = {"iterations": None}
    assumes, error = "all columns of the question are published exactly", 0.0
    if weights is not None:
        count = most = count * weights.unit
        facts |= {"weights": weights.name, "design_effect": weights.design_effect}
        assumes = weights.assumes_without(release.suppressed)
    if population:  # a record's part of the count is its weight, or 1, and 0 for those that the conditions leave out
        n, squares = max(release.records, 1), records * (1.0 if weights is None else weights.design_effect)
        several = SeveralRows.of(release.manifest)
        error = sqrt(several.inflation * max(squares - records**2 / n, 0.0)) * (
            1.0 if weights is None else weights.unit
        )
        reach = NormalDist().inv_cdf((1 + level) / 2) * error
        low, most = np.maximum(count - reach, 0.0), count + reach
        assumes += several.after
        return Answer((), count, np.full(1, error), low, most, records, "exact", level, assumes, facts)
    if release.suppressed or not release.designs:
        facts, error, level = facts | {"bounds": "hard"}, np.nan, 1.0
    return Answer((), count, np.full(1, error), count, most, records, "exact", level, assumes, facts)


def _of_people(table: Tabulation, rows: int) -> Tabulation:
    """Return counts of people from counts of rows, if every person has equally many."""
    return replace(table, **{name: getattr(table, name) / rows for name in ("counts", "std_error", "low", "high")})


def _of_terms(
    axes: Sequence[Axis],
    asked: AskedTerms,
    estimator: str | None,
    suppressed: int,
    population: bool,
    progress: Progress | None,
) -> Tabulation:
    from noren.release.term_answers import tabulate_terms

    if population:
        raise QueryError(
            "there is no interval for the population here, because terms were not suppressed at random by a design.",
            hint="Ask without population; low and high are then hard bounds for the original table.",
        )
    return tabulate_terms(axes, asked, estimator or "likelihood", suppressed=suppressed, progress=progress)
