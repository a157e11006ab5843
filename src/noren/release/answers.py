"""What a recipient's question becomes: axes over the published cells, the estimator that fits the layout, an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.analysis.axes import Axis
from noren.analysis.estimate import ASSUMES
from noren.analysis.query import Grouping, allowed_values, find, grouping, listed_terms, parse_by, wanted_terms
from noren.cells import Cells, GroupCells, NodeCells, OpenCells, SetCells, TermCells, ValueCells
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.release.manifest import ColumnEntry
from noren.schema.domain import MISSING, Domain, infer_kind, sort_labels

if TYPE_CHECKING:
    from noren.analysis.coarse import CoarseAxis
    from noren.analysis.estimators import Tabulation
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
    cells: Mapping[str, Cells]
    domains: Mapping[str, Domain]
    rows: int
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
) -> Answer:
    """Estimate what was asked, by the estimator named or the one that fits the release."""
    question = ask(release, by, where)
    if release.manifest.layout == "general":
        return _general(release, question, estimator or "likelihood", population, progress)
    axes = _axes(release, question)
    records = question.rows * release.records // max(1, release.rows)
    if not axes:
        return _exact(question, records, level)
    chosen = estimator or ("likelihood" if release.manifest.layout == "sets" else "linear")
    options: dict[str, Any] = {"level": level, "population": population, "progress": progress}
    table = _tabulated(release, question, axes, chosen, options)
    return Answer(
        question.shown,
        table.counts,
        table.std_error,
        table.low,
        table.high,
        records,
        chosen,
        level,
        ASSUMES,
        table.diagnostics | {"iterations": table.iterations},
    )


def ask(release: Release, by: Sequence[str], where: Mapping[str, Any]) -> Question:
    """Read the cells that a question needs. Conditions on exact columns are applied here."""
    meanings = release.meanings()
    parsed = [(text, *parse_by(text, meanings)) for text in by]
    if len({meaning.name for _, meaning, _, _ in parsed}) != len(parsed):
        raise QueryError("a column is asked for twice.", hint="Name every column once, at one level.")
    sets = [entry.name for entry in release.manifest.columns if entry.form == "terms"]
    listed = listed_terms([(meaning.name, mark) for _, meaning, mark, _ in parsed], sets)
    needed = list(dict.fromkeys([m.name for _, m, _, _ in parsed] + [find(n, meanings).name for n in where]))
    cells = release.cells(needed)
    domains: dict[str, Domain] = {}
    for name in needed:
        cells[name], domains[name] = _closed(release.manifest.column(name), cells[name])
    keep, sure = np.ones(release.rows, bool), np.ones(release.rows, bool)
    allowed: dict[str, NDArray[np.bool_]] = {}
    for name, wanted in where.items():
        column = cells[name]
        if isinstance(column, TermCells):
            sure &= wanted_terms(meanings[name], wanted, domains[name]).met(column)
            continue
        admitted = allowed_values(meanings[name], wanted, domains[name])
        if isinstance(column, ValueCells) and name not in release.designs:
            keep &= admitted[column.data]
        else:
            allowed[name] = admitted
    asked = _asked_terms(cells, sure, listed)
    if not keep.all():
        rows = np.flatnonzero(keep)
        cells = {name: column.take(rows) for name, column in cells.items()}
        asked = None if asked is None else asked.take(rows)
    shown = [grouping(text, m, mark, argument, domains[m.name]) for text, m, mark, argument in parsed]
    return Question(shown, allowed, cells, domains, int(keep.sum()), asked)


def _asked_terms(cells: Mapping[str, Cells], sure: NDArray[np.bool_], listed: str | None) -> AskedTerms | None:
    """What is asked about terms, if anything is."""
    from noren.release.term_answers import AskedTerms

    if not any(isinstance(column, TermCells) for column in cells.values()):
        return None
    column = None if listed is None else cells[listed]
    assert column is None or isinstance(column, TermCells)
    return AskedTerms(sure, column)


def _closed(entry: ColumnEntry, cells: Cells) -> tuple[Cells, Domain]:
    """Cells with a domain; an open column gets one from what it holds."""
    if not isinstance(cells, OpenCells):
        return cells, entry.domain
    from noren.engines.encode import encode_labels, label_counts

    labels, _, missing = label_counts(cells.data, entry.name)
    labels = [*labels, MISSING] if missing else labels
    kind = infer_kind(labels)
    domain = Domain(tuple(sort_labels(labels, kind)), kind)
    codes, _ = encode_labels(cells.data, entry.name, domain)
    return ValueCells(len(domain), codes), domain


def _exact(question: Question, records: int, level: float) -> Answer:
    """Nothing hidden is involved: the rows that are left are the answer."""
    count = np.full(1, float(records))
    texts = ("exact", level, "no decoys are involved", {"iterations": None})
    return Answer(question.shown, count, np.zeros(1), count, count, records, *texts)


def _limit(size: float) -> None:
    if size > CELL_LIMIT:
        raise QueryError(
            f"the cross tabulation would have {int(size):,} cells, more than {CELL_LIMIT:,}.",
            hint="Ask for fewer columns, a hierarchy level (zip@1) or intervals (age/10).",
        )


# ---------------------------------------------------------------------- decoys


def _axes(release: Release, question: Question) -> list[Axis]:
    """Axes for the columns asked for, then for conditions on decoy columns."""
    hidden = dict(question.allowed)
    axes = [_axis(release, group, question.cells[group.column], hidden.pop(group.column, None))
            for group in question.shown]  # fmt: skip
    for name, admitted in hidden.items():
        groups = np.where(admitted, 0, -1).astype(np.int64)
        axes.append(Axis(name, _sets(release, name, question.cells[name]), release.designs[name], groups, 1))
    _limit(float(np.prod([float(axis.cells.d) for axis in axes])))
    return axes


def _axis(release: Release, group: Grouping, column: Cells, allowed: NDArray[np.bool_] | None) -> Axis:
    if isinstance(column, ValueCells) and group.column not in release.designs:
        codes = group.groups[column.data]
        return Axis(group.title, ValueCells(len(group.labels), codes), DecoyDesign.exact(len(group.labels)))
    design = release.designs[group.column]
    sets = _sets(release, group.column, column)
    groups = group.groups if allowed is None else np.where(allowed, group.groups, -1)
    if allowed is None and group.is_identity:
        return Axis(group.title, sets, design)
    return Axis(group.title, sets, design, groups.astype(np.int64), len(group.labels))


def _sets(release: Release, name: str, column: Cells) -> SetCells:
    """The sets of a decoy column; none where its members are shuffled, because nobody knows them."""
    if isinstance(column, SetCells):
        return column
    design = release.designs[name]
    return SetCells.from_codes(design.d, np.zeros((0, design.eta), np.int64))


def _tabulated(
    release: Release, question: Question, axes: Sequence[Axis], estimator: str, options: Mapping[str, Any]
) -> Tabulation:
    """The table that was asked for, whatever the layout of the rows."""
    from noren.analysis.estimators import tabulate

    if release.manifest.layout == "sets":
        return tabulate(axes, estimator, **options)
    members = [cells for name, cells in question.cells.items() if release.manifest.column(name).form == "member"]
    if not members:
        return _scaled(tabulate(axes, **options), release.records / release.rows)
    from noren.analysis.semantic import tabulate_records

    place = next(i for i, axis in enumerate(axes) if not isinstance(axis.design, DecoyDesign))
    axis, others = axes[place], [other for i, other in enumerate(axes) if i != place]
    assert not isinstance(axis.design, DecoyDesign)
    assert isinstance(members[0], ValueCells)
    table = tabulate_records(
        others,
        members[0],
        axis.design,
        name=axis.name,
        axis_groups=axis.groups,
        n_groups=axis.n_groups,
        estimator=estimator,
        **options,
    )
    return _moved(table, place)


def _moved(table: Tabulation, place: int) -> Tabulation:
    """The same table with its last dimension at another place."""
    arrays = ("counts", "std_error", "low", "high", "interval")
    return replace(table, **{name: np.moveaxis(getattr(table, name), -1, place) for name in arrays})


def _scaled(table: Tabulation, factor: float) -> Tabulation:
    """Counts of people from counts of rows."""
    return replace(table, **{name: getattr(table, name) * factor for name in ("counts", "std_error", "low", "high")})


# ---------------------------------------------------------------------- general values, groups and terms


def _general(
    release: Release, question: Question, estimator: str, population: bool, progress: Progress | None
) -> Answer:
    """Estimates from general values, groups and terms, with hard bounds instead of intervals."""
    from noren.analysis.coarse import tabulate_coarse

    if population:
        raise QueryError(
            "this release has no interval for the population: how it was coarsened is not random by design.",
            hint="Leave out population; low and high are then hard bounds for the original table.",
        )
    hidden = dict(question.allowed)
    axes = [
        _coarse(release, question, group, hidden.pop(group.column, None))
        for group in question.shown
        if not isinstance(question.cells[group.column], TermCells)
    ]
    for name, admitted in hidden.items():
        only = Grouping(name, name, (name,), np.zeros(len(admitted), np.int64))
        axes.append(_coarse(release, question, only, admitted))
    if not axes and question.terms is None:
        exact = _exact(question, question.rows, 1.0)
        high = exact.high + release.manifest.suppressed
        return replace(exact, high=high, std_error=np.full(1, np.nan), assumes="no general value is involved")
    _limit(float(np.prod([float(axis.n_groups) for axis in axes])))
    left = release.manifest.suppressed
    if question.terms is None:
        table = tabulate_coarse(axes, estimator, suppressed=left, progress=progress)
    else:
        from noren.release.term_answers import tabulate_terms

        table = tabulate_terms(axes, question.terms, estimator, suppressed=left, progress=progress)
    unknown = np.full_like(table.counts, np.nan)
    found = table.diagnostics | {"iterations": table.iterations, "bounds": "hard"}
    parts = (table.counts, unknown, table.least, table.most, question.rows, table.estimator, 1.0, table.assumes)
    return Answer(question.shown, *parts, found)


def _coarse(release: Release, question: Question, group: Grouping, allowed: NDArray[np.bool_] | None) -> CoarseAxis:
    from noren.analysis.coarse import CoarseAxis

    cells = question.cells[group.column]
    entry = release.manifest.column(group.column)
    groups = (group.groups if allowed is None else np.where(allowed, group.groups, -1)).astype(np.int64)
    assert isinstance(cells, NodeCells | GroupCells | ValueCells)
    return CoarseAxis(
        name=group.title,
        data=cells.data,
        d=len(question.domains[group.column]),
        nodes=entry.catalogue if isinstance(cells, NodeCells) else None,
        groups=release.tables[group.column] if isinstance(cells, GroupCells) else None,
        group_of=groups,
        n_groups=len(group.labels),
    )
