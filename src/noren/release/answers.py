"""What a recipient's question becomes: axes over the published cells, a table, an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, Classes, Weights
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
from noren.estimates.statistics.variables import numbers_of
from noren.release.noised import Margins, raked_to_parts
from noren.release.several import SeveralRows
from noren.schema.domain import MISSING, Domain, infer_kind, sort_labels
from noren.statements import Cells, CodeCells, ExactStatement, Statement

if TYPE_CHECKING:
    from noren.estimates.counts.tabulate import Tabulation
    from noren.release.release import Release
    from noren.release.term_answers import AskedTerms

CELL_LIMIT = 20_000_000
"""Largest cross tabulation that is worked out at once."""

Progress = Callable[[int, float], None]


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
    """The columns asked for and the conditions, with the cells of the records that exact conditions leave."""

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
    """Estimate what was asked, by the estimator named or the one that fits the cells."""
    if population:
        _demand_chance(release)
    question = ask(release, by, where, weight_of(release, weighted))
    axes, several = _axes(question), SeveralRows.of(release.manifest)
    records = question.rows * release.records // max(1, release.rows)
    if question.terms is not None:
        table = _of_terms(axes, question.terms, estimator, release.suppressed, population, progress)
    elif not axes:
        return _counted(release, records, level, question.weights, population)
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
            table = _raked(release, question, table, margins, by, where, weighted)
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


def _raked(
    release: Release,
    question: Question,
    table: Tabulation,
    margins: Margins,
    by: Sequence[str],
    where: Mapping[str, Any],
    weighted: bool | None,
) -> Tabulation:
    """The table raked to what noised margins and cells together say of some of its columns."""
    if margins.whole or not margins.parts or table.method != "likelihood":
        return table
    texts = {group.column: text for group, text in zip(question.shown, by, strict=True)}
    parts = {}
    for columns in margins.parts:
        found = answer(release, [texts[name] for name in columns], where, None, 0.95, False, None, weighted)
        parts[columns] = found.counts.reshape(found.counts.shape[: len(columns)])
    return raked_to_parts(table, [group.column for group in question.shape.axes], parts)


def _demand_chance(release: Release) -> None:
    """Refuse to speak of a population where something other than chance decided what is published, and of whom."""
    coarse = not release.designs and any(statement.hides for statement in release.statements)
    if coarse or release.suppressed:
        raise QueryError(
            "there is no interval for the population here: what was coarsened or left out is not random by design.",
            hint="Leave out population; low and high are then hard bounds for the original table.",
        )


def weight_of(release: Release, weighted: bool | None) -> str | None:
    """The column of survey weights that an answer uses: the manifest's, unless records are to be counted."""
    name = release.manifest.weight
    if weighted and name is None:
        raise QueryError("this release has no survey weights.", hint="Leave out weighted.")
    if name is None or weighted is False:
        return None
    if release.rows_per_record > 1:
        raise QueryError(
            "this release has shuffled rows, and nobody knows which weight belongs to whom.",
            hint="Count records instead: weighted=False.",
        )
    return name


def weight_numbers(release: Release, statement: Statement, cells: Cells) -> NDArray[np.float64]:
    """The weight of every row; of a release that is a sample of its table, as many times more."""
    closed, found = _closed(statement, cells)
    numbers, _, _ = numbers_of(closed.name, closed.domain)
    codes = np.asarray(closed.key(found))
    share = release.manifest.sample or 1.0
    return np.full(len(codes), np.nan) if numbers is None else numbers[codes] / share


def ask(release: Release, by: Sequence[str], where: Mapping[str, Any], weight: str | None = None) -> Question:
    """Read the cells that a question needs. Conditions on exact columns are applied here."""
    members = Members.of({statement.name: statement.column for statement in release.statements})
    known = members.columns
    parsed = [(text, *parse_by(text, known)) for text in by]
    if len({column.name for _, column, _, _ in parsed}) != len(parsed):
        raise QueryError("a column is asked for twice.", hint="Name every column once, at one level.")
    of_terms = [statement.name for statement in release.statements if statement.terms is not None]
    listed = listed_terms([(column.name, mark) for _, column, mark, _ in parsed], of_terms)
    asked_for = [column.name for _, column, _, _ in parsed] + [find(name, known).name for name in where]
    needed = list(dict.fromkeys(map(members.published, asked_for)))
    cells = release.gathered([*needed, *([weight] if weight is not None and weight not in needed else [])])
    numbers = None if weight is None else weight_numbers(release, release.column(weight), cells[weight])
    columns: dict[str, Statement] = {}
    cells = {name: cells[name] for name in needed}
    for name in needed:
        columns[name], cells[name] = _closed(release.column(name), cells[name])
    keep, sure = np.ones(release.rows, bool), np.ones(release.rows, bool)
    allowed: dict[str, NDArray[np.bool_]] = {}
    fixed: dict[str, NDArray[np.bool_]] = {}
    for name, wanted in where.items():
        owner = members.published(name)
        statement = columns[owner]
        if statement.terms is not None:
            sure &= wanted_terms(statement.column, wanted, statement.domain).met(statement.checked(cells[name]))
            continue
        column = statement.column if owner == name else known[name]
        admitted = members.of_tuples(name, allowed_values(column, wanted, column.domain))
        if statement.is_exact:
            keep &= admitted[statement.key(cells[owner])]
            fixed[owner] = admitted & fixed.get(owner, np.ones(len(admitted), bool))
        else:
            allowed[owner] = admitted & allowed.get(owner, np.ones(len(admitted), bool))
    asked = _asked_terms(columns, cells, sure, listed)
    if asked is not None and weight is not None:
        raise QueryError("sets of terms are counted by records.", hint="Ask with weighted=False.")
    weights = None if weight is None or numbers is None else Weights.scaled(weight, numbers[keep])
    classes = classes_of(release, columns, cells)
    if not keep.all():
        rows = np.flatnonzero(keep)
        classes = None if classes is None else replace(classes, of=classes.of[rows])
        cells = {name: column.take(rows) for name, column in cells.items()}
        asked = None if asked is None else asked.take(rows)
    shown = []
    for text, column, mark, argument in parsed:
        domain = column.domain if column.name in members.owner else columns[column.name].domain
        shown.append(members.grouped(grouping(text, column, mark, argument, domain)))
    return Question(shown, allowed, columns, cells, int(keep.sum()), fixed, Shape.of(shown), classes, weights, asked)


def classes_of(release: Release, columns: Mapping[str, Statement], cells: Mapping[str, Cells]) -> Classes | None:
    """Who looks alike in all columns that say what occurs in classes, where one of them is asked for."""
    if all(statement.tightness is None for statement in columns.values()):
        return None
    remembered = getattr(release.store, "remembered", None)  # they are the same whatever is asked for
    made = partial(_classes_of, release, cells)
    found: Classes = made() if remembered is None else remembered("classes", made)
    return found


def _classes_of(release: Release, cells: Mapping[str, Cells]) -> Classes:
    from noren.estimates.counts.rows import row_numbers

    tight = [statement for statement in release.statements if statement.tightness is not None]
    others = [one.name for one in tight if one.name not in cells]
    read = {**cells, **(release.cells(others) if others else {})}
    keys = [one.key(read[one.name]) for one in tight]
    of = row_numbers(keys, release.rows)
    sizes = np.bincount(of)
    first = np.zeros(len(sizes), np.int64)
    first[of] = np.arange(len(of))
    nodes = {one.name: np.asarray(key)[first] for one, key in zip(tight, keys, strict=True)}
    points = {one.name: one.nodes.centres[nodes[one.name]] for one in tight if one.nodes is not None}
    return Classes(of, sizes, nodes, points)


def _asked_terms(
    columns: Mapping[str, Statement], cells: Mapping[str, Cells], sure: NDArray[np.bool_], listed: str | None
) -> AskedTerms | None:
    """What is asked about terms, if anything is."""
    if all(statement.terms is None for statement in columns.values()):
        return None
    from noren.release.term_answers import AskedTerms

    return AskedTerms(sure, None if listed is None else columns[listed].checked(cells[listed]))


def _closed(statement: Statement, cells: Any) -> tuple[Statement, Cells]:
    """A column with a domain; an open one gets it from what it holds."""
    column = statement.column
    if not column.is_open:
        return statement, cells
    if not statement.is_exact:
        raise QueryError(
            f"column {column.name!r} is {statement.words}, from which nobody can count values.",
            hint="Ask for other columns; `release.frame()` gives the means, whose average over records is exact.",
        )
    from noren.statements.encode import encode_labels, label_counts

    labels, _, missing = label_counts(cells.data, column.name)
    labels = [*labels, MISSING] if missing else labels
    kind = infer_kind(labels)
    domain = Domain(tuple(sort_labels(labels, kind)), kind)
    codes, _ = encode_labels(cells.data, column.name, domain)
    return ExactStatement(column.met(column.name, domain)), CodeCells(len(domain), codes)


def _axes(question: Question) -> list[Axis]:
    """Axes for the columns asked for, then for conditions on columns that are not published exactly."""
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


def _counted(release: Release, records: int, level: float, weights: Weights | None, population: bool) -> Answer:
    """Nothing hidden is involved: the rows that are left are the answer, and those who were left out may be too."""
    count, most = np.full(1, float(records)), np.full(1, float(records + release.suppressed))
    facts: dict[str, Any] = {"iterations": None}
    assumes, error = "nothing hidden is involved", 0.0
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
    """Counts of people from counts of rows, of which every person has as many."""
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
            "there is no interval for the population here: how many terms were left out is not random by design.",
            hint="Leave out population; low and high are then hard bounds for the original table.",
        )
    return tabulate_terms(axes, asked, estimator or "likelihood", suppressed=suppressed, progress=progress)
