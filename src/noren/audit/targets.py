"""What the published rows that could be a person's tell about one secret column.

Every published cell is a belief over the column's base values: the prior times the likelihood that the column's
statement gives it (Bayes). What rows tell together is the mean of their beliefs: each is the person's as likely as
the others.

Which published row may be a person's, by everything but the secrets.

Where all columns besides the sets are published exactly, a person is recognised by a row that is alone with them on
both sides. Beside general values the person's row is one of those whose cells cover the person's own: one of them
stands for it, and where there is a single one that covers nobody else, the person is recognised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Case
from noren.audit.people import People, exact_codes, exact_statements, unique_pairs
from noren.audit.sample import Sample, Times, View, sample_of
from noren.audit.sample import sizes as sizes_of
from noren.audit.sets import estimated
from noren.engines.finding import Finder, Matches, exact_nodes
from noren.engines.records import QUASI
from noren.errors import DataError, QueryError
from noren.models.histograms import Histograms, summed
from noren.ragged import chosen, distinct_of, in_order, offsets_of, owners, rows_in_order
from noren.release.published import Published
from noren.release.store import MemoryStore
from noren.statements import Cells, CodeCells, ExactStatement, Likelihood, Statement

ENTRIES_AT_ONCE = 1 << 22
ENTRIES_KEPT = 1 << 23
"""Of who was found where."""


@dataclass(frozen=True)
class Target:
    """One secret column, as its rows tell of it."""

    statement: Statement
    cells: Cells
    """The different cells."""
    kind: NDArray[np.int64]
    """The cell of every row, as a number."""
    prior: NDArray[np.float64]
    """What is believed about anybody before: how the whole table is distributed."""
    basis: str
    weights: NDArray[np.float64] | None
    """In which proportions the values are expected that a cell leaves open; None for equal ones."""
    own: Matches
    """Every row with the rows that look like it: the classes, the groups, or for a set the row alone."""
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What an attack computed once for all classes."""
    times: Times = None
    """How many published rows each of these stands for, where they are counted."""

    @property
    def name(self) -> str:
        return self.statement.name

    @property
    def labels(self) -> tuple[str, ...]:
        return self.statement.domain.values

    @property
    def d(self) -> int:
        return self.statement.d

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return len(self.kind) if self.times is None else int(self.times.sum())

    @property
    def weighed(self) -> Times:
        """The same in what is believed. Whose row a drawn cell stands in is known: it is one, however many look so."""
        return None if self.statement.design is not None else self.times

    def sizes(self, part: Matches) -> NDArray[np.int64]:
        """The rows of every set."""
        return sizes_of(part.bounds, part.order, self.weighed)

    @cached_property
    def width(self) -> int:
        """Most entries that one cell may have."""
        found = likelihood(self.statement, self.cells)
        return self.d if found.floor > 0 else int(found.lengths.max(initial=1))

    def counted(self, order: NDArray, bounds: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """The different cells in every set of rows: set, cell, and how many rows of the set have it."""
        kinds = np.int64(len(self.cells))
        key, count = counted_keys(owners(bounds) * kinds + self.kind[order], order, self.weighed)
        return key // kinds, key % kinds, count

    def entries(self, order: NDArray, bounds: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Set, value, belief and number of rows for every different cell in every set of rows."""
        owner, kind, count = self.counted(order, bounds)
        distinct, _, place = distinct_of(kind)
        found = beliefs(self.statement, self.cells.take(distinct), self.weights)
        widths, taken = np.diff(found.bounds)[place], chosen(found.bounds, place)[1]
        return np.repeat(owner, widths), found.value[taken], found.weight[taken], np.repeat(count, widths)

    def told(self, part: Matches) -> Histograms:
        """What every set of rows tells: a distribution over base values, as masses that add up to its rows."""
        owner, value, mass, count = self.entries(part.order, part.bounds)
        return summed(self.sizes(part), owner, value, mass * count, self.d)

    def pool(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """The same as `entries` for the row's own classes, with the cells of a group as its table lists them."""
        held = self.statement.table
        if held is None:
            return self.entries(self.own.order, self.own.bounds)
        groups = self.statement.key(self.cells)[self.kind[self.own.order[self.own.bounds[:-1]]]]
        rows, bounds = held.rows(groups)
        return owners(bounds), held.value[rows], np.ones(len(rows)), held.count[rows]

    def before(self) -> Histograms:
        """The prior as what a single class would tell."""
        value = np.flatnonzero(self.prior > 0)
        mass = self.prior[value] / max(float(self.prior.sum()), 1e-300)
        return Histograms(np.ones(1, np.int64), np.array([0, len(value)]), value, mass)


def counted_keys(keys: NDArray, rows: NDArray, times: Times) -> tuple[NDArray, NDArray]:
    """The different keys of some rows, and how many rows have each."""
    if times is None:
        found, count = np.unique(keys, return_counts=True)
        return found, count
    found, place = np.unique(keys, return_inverse=True)
    return found, np.bincount(place.ravel(), times[rows], minlength=len(found)).astype(np.int64)


def portions(part: Matches, width: int) -> Iterator[Matches]:
    """Matches a few sets at a time, so that what their cells tell fits the memory."""
    reach = part.bounds * width
    sets = len(part.bounds) - 1
    if int(reach[-1]) <= ENTRIES_AT_ONCE:
        yield part
        return
    by_set = in_order(part.of)
    people, of = part.people[by_set], part.of[by_set]
    low = 0
    while low < sets:
        high = max(low + 1, int(np.searchsorted(reach, reach[low] + ENTRIES_AT_ONCE, side="right")) - 1)
        begin, end = np.searchsorted(of, [low, high])
        rows = slice(part.bounds[low], part.bounds[high])
        bounds = part.bounds[low : high + 1] - part.bounds[low]
        yield Matches(people[begin:end], of[begin:end] - low, part.groups[low:high], part.order[rows], bounds)
        low = high


# ---------------------------------------------------------------------- what cells tell


def likelihood(statement: Statement, cells: Cells) -> Likelihood:
    """P(cell | value) of cells that speak of listed values."""
    found = statement.likelihood(cells)
    assert found is not None
    return found


def beliefs(statement: Statement, cells: Cells, prior: NDArray[np.float64] | None) -> Likelihood:
    """Bayes' rule: a distribution for every cell, as sparse rows without values that have no chance.

    Without a prior all values are alike. A cell that is impossible under the prior leaves its values equally likely.
    """
    rows = likelihood(statement, cells).listed(statement.d)
    weight = rows.weight if prior is None else rows.weight * prior[rows.value]
    owner = rows.owner
    total = np.bincount(owner, weight, minlength=len(rows))
    weight = np.where(total[owner] > 0, weight, 1.0)
    total = np.where(total > 0, total, rows.lengths)
    stays = weight > 0
    return Likelihood(offsets_of(stays)[rows.bounds], rows.value[stays], (weight / total[owner])[stays])


# ---------------------------------------------------------------------- classes of rows


def alike(columns: Sequence[NDArray], rows: int) -> Matches:
    """Rows that have equal numbers in all columns as classes."""
    order, bounds = rows_in_order(columns, rows)
    return Matches(order, owners(bounds), np.ones(len(bounds) - 1, np.int64), order, bounds)


def each_alone(kind: NDArray[np.int64]) -> Matches:
    """Rows that are known to be the person's: one row stands for all with the same cell."""
    distinct, first, of = distinct_of(kind)
    sets = len(distinct)
    return Matches(np.arange(len(kind)), of, np.ones(sets, np.int64), first, np.arange(sets + 1))


def quasi_statements(release: Published) -> list[Statement]:
    """The columns by which people are known."""
    return [one for one in release.statements if one.role in QUASI]


def key_names(release: Published, apart_from: str = "") -> tuple[list[str], list[str]]:
    """Quasi-identifiers that an adversary can match, and those that are published in no such form."""
    found = [one for one in quasi_statements(release) if one.name != apart_from]
    return [one.name for one in found if one.is_key], [one.name for one in found if not one.is_key]


def searchable(release: Published) -> list[str]:
    """The quasi-identifiers, where people can be matched by all of them."""
    names, lost = key_names(release)
    if lost:
        raise QueryError(
            f"column {lost[0]!r} is {release.column(lost[0]).words}, so nobody can say which records look alike.",
            hint="The attack needs every quasi-identifier published exactly or generalised.",
        )
    return names


def class_keys(release: Published, names: Sequence[str]) -> list[NDArray]:
    """Columns of numbers, one for every row: rows agree in all these columns as published where they have the same."""
    import polars as pl

    cells = release.cells(names) if names else {}
    found = [release.column(name).key(cells[name]) for name in names]
    return [
        key.rank("dense").fill_null(0).to_numpy().astype(np.int64) if isinstance(key, pl.Series) else key
        for key in found
    ]


def sorted_rows(release: Published) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All rows class by class, and where each class begins: rows that agree in every quasi-identifier."""
    return rows_in_order(class_keys(release, searchable(release)), release.rows)


def published_classes(release: Published, names: Sequence[str]) -> Matches:
    """Rows that agree in all these columns, as published."""
    return alike(class_keys(release, names), release.rows)


def finder_for(
    release: Published, names: Sequence[str], codes: Mapping[str, NDArray], rows: NDArray | None = None
) -> tuple[Finder, list[NDArray]]:
    """The release (or some rows of it) to search in, and what is searched: codes of its domains, -1 for others."""
    statements = [release.column(name) for name in names]
    cells = release.cells(names) if names else {}
    for one in statements:
        if one.column.is_open:
            raise QueryError(f"column {one.name!r} has too many values to find people by.", hint="Give it bins.")
    nodes = [exact_nodes(one.d) if one.nodes is None else one.nodes for one in statements]
    data = [one.key(cells[one.name] if rows is None else cells[one.name].take(rows)) for one in statements]
    return Finder(nodes, data, release.rows if rows is None else len(rows)), [codes[name] for name in names]


def find_people(release: Published, people: People, names: Sequence[str]) -> tuple[Finder, list[NDArray]]:
    """The release to search in, and every person's quasi-identifiers as codes of its domains."""
    strange = [name for name in names if name not in people.quasi]
    if strange:
        raise DataError(
            f"the policy does not make {strange[0]!r} a quasi-identifier, as the release does.",
            hint="Give the policy that the release was made with.",
        )
    listed = [name for name in names if not release.column(name).column.is_open]
    codes = {name: people.published(release.column(name)) for name in listed}
    return finder_for(release, names, codes)


def in_release(case: Case, people: People, names: Sequence[str], some: Sample) -> Iterator[Matches]:
    """Every person who is measured, with the published rows that cover the person's quasi-identifiers.

    What is found is kept for the next attack, unless it is large.
    """

    def found() -> tuple[Finder, list[NDArray]]:
        finder, asked = find_people(case.release, people, names)
        return finder, [some[codes] for codes in asked]

    key = ("in release", tuple(names))
    if key in case.memory:
        yield from case.memory[key]
        return
    finder, asked = case.remembered(("finder", tuple(names)), found)
    parts: list[Matches] = []
    entries = 0
    for part in finder.candidates(asked, len(some)):
        entries += len(part.people) + len(part.of) + len(part.order) + len(part.bounds)
        if entries <= ENTRIES_KEPT:
            parts.append(part)
        yield part
    if entries <= ENTRIES_KEPT:
        case.memory[key] = parts


# ---------------------------------------------------------------------- secrets


def secret_statements(release: Published) -> list[Statement]:
    """The columns that hold secrets of listed values."""
    return [one for one in release.statements if one.role.needs_requirement and one.terms is None]


def is_attackable(statement: Statement) -> bool:
    """Whether the cells of a person's row are beliefs over listed values."""
    return statement.rows_per_record == 1 and not statement.column.is_open


def attackable(release: Published) -> list[Statement]:
    """The secrets that can be attacked row by row."""
    return [one for one in secret_statements(release) if is_attackable(one)]


def why_no_secret(release: Published) -> str | None:
    """Why there is no column whose secrets could be attacked, or None."""
    if release.rows_per_record > 1:
        return "the release has one shuffled row per possible value, so that no row is a person's"
    if attackable(release):
        return None
    held = secret_statements(release)
    if not held:
        return "the release has no sensitive column"
    return f"column {held[0].name!r} is {held[0].words} without a list of its values"


def true_target(case: Case, statement: Statement, people: People) -> Target:
    """A secret as the raw table tells it, with the overall distribution of the original."""
    return case.remembered(("raw", statement.name), lambda: _true_target(case, statement, people))


def _true_target(case: Case, statement: Statement, people: People) -> Target:
    exact = ExactStatement(statement.column)
    cells, kind = CodeCells(statement.d, people.secret(statement)).distinct()
    prior = exact.shares(np.bincount(exact.key(cells)[kind], minlength=statement.d))
    names = tuple(name for name in people.quasi if name != statement.name)
    own = case.remembered(("people alike", names), lambda: alike(people.keys(names), people.n))
    return Target(exact, cells, kind, prior, "the original", prior, own)


def published_target(case: Case, statement: Statement, prior: NDArray[np.float64] | None) -> Target:
    """A secret as the release tells it. Without a prior the release's own distribution, or an estimate of it."""
    return case.remembered(("published", statement.name), lambda: _published_target(case, statement, prior))


def _published_target(case: Case, statement: Statement, prior: NDArray[np.float64] | None) -> Target:
    names = tuple(key_names(case.release, statement.name)[0])
    drawn = statement.design is not None
    alone = drawn or statement.is_class
    view = case.view([statement.name] if alone else [*names, statement.name])
    release, times = view.release, view.times
    cells = release.cells([statement.name])[statement.name]
    shares = statement.shares(_tally(statement, cells, times))
    basis = "the original" if prior is not None else "an estimate from the release" if drawn else "the release"
    if prior is None:
        prior = _estimated(case, view, statement.name) if drawn else shares
    distinct, kind = cells.distinct()
    if drawn:
        own = each_alone(kind)
    elif statement.is_class:
        own = alike([kind], len(kind))
    else:
        key = ("rows alike", names, release.columns if case.counts else ())
        own = case.remembered(key, lambda: published_classes(release, names))
    weights = prior if shares is None else shares
    if prior is None:  # every general value divided equally among those under it
        found = beliefs(statement, distinct, None)
        rows = np.bincount(kind, times, minlength=len(distinct))
        mass = np.bincount(found.value, found.weight * rows[found.owner], minlength=statement.d)
        prior = np.asarray(mass / max(1.0, float(rows.sum())))
    return Target(statement, distinct, kind, prior, basis, weights, own, times=times)


def _tally(statement: Statement, cells: Cells, times: Times) -> NDArray[np.int64]:
    """What `Statement.tally` counts, of rows that each stand for several."""
    if times is None or statement.design is not None:
        return statement.tally(cells)  # of drawn cells it says nothing yet: their shares are estimated
    return np.bincount(statement.key(cells), times, minlength=statement.d).astype(np.int64)


def _estimated(case: Case, view: View, name: str) -> NDArray[np.float64]:
    """The distribution of a drawn column, from all rows of a view."""
    if view.times is None:
        return case.estimate([name])
    shown, every = view.release, np.repeat(np.arange(len(view.times)), view.times)
    cells = {name: part.take(every) for name, part in shown.cells(shown.columns).items()}
    return estimated(Published(shown.statements, MemoryStore(cells), len(every), title=shown.title), [name])


@dataclass(frozen=True)
class Place:
    """Where the people of the original stand in a release."""

    who: NDArray[np.int64]
    """The people who fit some row, by their number in the original."""
    row: NDArray[np.int64]
    """A row that each of them fits; -1 where all is exact and the row is not recognised."""
    recognised: NDArray[np.bool_]
    """Whether it is the person's own."""
    lost: int
    """People who fit no row: they were left out."""
    by: str
    """The columns by which rows are recognised, in words."""


def key_statements(release: Published) -> list[Statement]:
    """The columns of listed values whose cells can be compared with what a person has."""
    return [one for one in release.statements if one.is_key and not one.column.is_open]


def place_people(release: Published, people: People, some: Sample | None = None) -> Place:
    """Where everybody stands, or all who are measured; whether a row is a person's own is seen among all people."""
    keys = key_statements(release)
    measured = sample_of(people.n, 0) if some is None else some
    row = np.full(people.n, -1, np.int64)
    if all(one.is_exact for one in keys):
        exact = exact_statements(release)
        mine, found = unique_pairs(people.exact_codes(exact), exact_codes(release))
        row[mine] = found
        row = measured[row]
        return Place(measured.lines, row, row >= 0, 0, "exact columns")
    finder, asked = finder_for(release, [one.name for one in keys], {one.name: people.published(one) for one in keys})
    chance = np.random.default_rng(0).random(people.n)  # simulation only: nothing of it is published
    single = np.zeros(people.n, bool)
    for part in finder.candidates([measured[codes] for codes in asked], len(measured)):
        sizes, who = np.diff(part.bounds), measured.lines[part.people]
        at = part.bounds[part.of] + np.floor(chance[who] * sizes[part.of]).astype(np.int64)
        row[who], single[who] = part.order[at], sizes[part.of] == 1
    alone = np.unique(row[single])
    fitting = np.zeros(release.rows, np.int64)
    if len(alone):  # a row that is somebody's only one may be others' too
        names, codes = [one.name for one in keys], {one.name: people.published(one) for one in keys}
        finder, asked = finder_for(release, names, codes, alone)
        for part in finder.candidates(asked, people.n):
            np.add.at(
                fitting, alone[part.order], np.bincount(part.of, minlength=len(part.bounds) - 1)[owners(part.bounds)]
            )
    here = row[measured.lines]
    who = measured.lines[here >= 0]
    own = single[who] & (fitting[row[who]] == 1)
    return Place(who, row[who], own, len(measured) - len(who), "exact columns and general values")
