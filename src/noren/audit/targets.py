"""What the published rows that match a person disclose about one secret column, and how to find these rows.

A published cell is a belief over the column's base values: the prior times its likelihood (Bayes). What several rows
tell is the mean of their beliefs: each is the person's as likely as the others. A person is recognised by a row that is
alone with its exact columns on both sides, or by the only row whose cells cover the person's own and nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Case
from noren.audit.people import People, exact_statements, exact_texts, unique_pairs
from noren.audit.sample import Sample, Times, sample_of
from noren.audit.sample import sizes as sizes_of
from noren.engines.finding import Finder, Matches, exact_nodes
from noren.engines.records import QUASI
from noren.errors import DataError, QueryError
from noren.models.histograms import Histograms, sum_entries
from noren.ragged import chosen, distinct_of, in_order, offsets_of, owners, rows_in_order
from noren.release.published import Published
from noren.statements import Cells, CodeCells, ExactStatement, Likelihood, Statement

ENTRIES_AT_ONCE = 1 << 22
ENTRIES_KEPT = 1 << 23
"""Of who was found where."""


@dataclass(frozen=True)
class Target:
    """One secret column and the beliefs of its rows."""

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
        """Return the number of rows."""
        return len(self.kind) if self.times is None else int(self.times.sum())

    @property
    def weighed(self) -> Times:
        """Return the same target with distinct cells merged by belief; a drawn cell counts as one row."""
        return None if self.statement.design is not None else self.times

    def sizes(self, part: Matches) -> NDArray[np.int64]:
        """Return the number of rows of every set."""
        return sizes_of(part.bounds, part.order, self.weighed)

    @cached_property
    def width(self) -> int:
        """Return the largest number of entries of one cell."""
        found = likelihood(self.statement, self.cells)
        return self.d if found.floor > 0 else int(found.lengths.max(initial=1))

    def counted(self, order: NDArray, bounds: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Count the distinct cells of every set of rows: set, cell, and number of rows."""
        kinds = np.int64(len(self.cells))
        key, count = counted_keys(owners(bounds) * kinds + self.kind[order], order, self.weighed)
        return key // kinds, key % kinds, count

    def entries(self, order: NDArray, bounds: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """List set, value, belief and number of rows for every distinct cell of every set of rows."""
        owner, kind, count = self.counted(order, bounds)
        distinct, _, place = distinct_of(kind)
        found = beliefs(self.statement, self.cells.take(distinct), self.weights)
        widths, taken = np.diff(found.bounds)[place], chosen(found.bounds, place)[1]
        return np.repeat(owner, widths), found.value[taken], found.weight[taken], np.repeat(count, widths)

    def told(self, part: Matches) -> Histograms:
        """Return the distribution of base values of every set of rows, as masses that sum to its rows."""
        owner, value, mass, count = self.entries(part.order, part.bounds)
        return sum_entries(self.sizes(part), owner, value, mass * count, self.d)

    def pool(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """List the entries of the row's own classes; the cells of a group are those of its table."""
        held = self.statement.table
        if held is None:
            return self.entries(self.own.order, self.own.bounds)
        groups = self.statement.key(self.cells)[self.kind[self.own.order[self.own.bounds[:-1]]]]
        rows, bounds = held.rows(groups)
        return owners(bounds), held.value[rows], np.ones(len(rows)), held.count[rows]

    def before(self) -> Histograms:
        """Return the prior in the form of a single class."""
        value = np.flatnonzero(self.prior > 0)
        mass = self.prior[value] / max(float(self.prior.sum()), 1e-300)
        return Histograms(np.ones(1, np.int64), np.array([0, len(value)]), value, mass)


def counted_keys(keys: NDArray, rows: NDArray, times: Times) -> tuple[NDArray, NDArray]:
    """Return the distinct keys of some rows, and their counts."""
    if times is None:
        found, count = np.unique(keys, return_counts=True)
        return found, count
    found, place = np.unique(keys, return_inverse=True)
    return found, np.bincount(place.ravel(), times[rows], minlength=len(found)).astype(np.int64)


def portions(part: Matches, width: int) -> Iterator[Matches]:
    """Yield a few sets of matches at a time, so that their entries fit into memory."""
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
    """Return P(cell | value) for cells over listed values."""
    found = statement.likelihood(cells)
    assert found is not None
    return found


def beliefs(statement: Statement, cells: Cells, prior: NDArray[np.float64] | None) -> Likelihood:
    """Apply Bayes' rule: a distribution for every cell, as sparse rows without impossible values.

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
    """Return classes of rows with equal numbers in all columns."""
    order, bounds = rows_in_order(columns, rows)
    return Matches(order, owners(bounds), np.ones(len(bounds) - 1, np.int64), order, bounds)


def each_alone(kind: NDArray[np.int64]) -> Matches:
    """Match single rows to people; one row represents all rows with the same cell."""
    distinct, first, of = distinct_of(kind)
    sets = len(distinct)
    return Matches(np.arange(len(kind)), of, np.ones(sets, np.int64), first, np.arange(sets + 1))


def quasi_statements(release: Published) -> list[Statement]:
    """Return the columns by which people are found."""
    return [one for one in release.statements if one.role in QUASI]


def key_names(release: Published, apart_from: str = "") -> tuple[list[str], list[str]]:
    """Return the names of quasi-identifiers that an adversary can match, and of those that cannot be matched."""
    found = [one for one in quasi_statements(release) if one.name != apart_from]
    return [one.name for one in found if one.is_key], [one.name for one in found if not one.is_key]


def searchable(release: Published) -> list[str]:
    """Return the quasi-identifiers if people can be matched by all of them."""
    names, lost = key_names(release)
    if lost:
        raise QueryError(
            f"column {lost[0]!r} is {release.column(lost[0]).words}, so equivalence classes cannot be formed.",
            hint="The attack needs every quasi-identifier published exactly or generalised.",
        )
    return names


def class_keys(release: Published, names: Sequence[str]) -> list[NDArray]:
    """Return columns of numbers in which rows are equal if and only if their published cells are equal."""
    import polars as pl

    cells = release.cells(names) if names else {}
    found = [release.column(name).key(cells[name]) for name in names]
    return [
        key.rank("dense").fill_null(0).to_numpy().astype(np.int64) if isinstance(key, pl.Series) else key
        for key in found
    ]


def published_classes(case: Case, names: Sequence[str], release: Published | None = None) -> Matches:
    """Return classes of rows that are equal in all these published columns; of the view if rows are counted."""
    shown = case.release if release is None else release
    key = ("rows alike", tuple(names), shown.columns if case.counts else ())
    return case.remembered(key, lambda: alike(class_keys(shown, names), shown.rows))


def raw_classes(case: Case, people: People, names: Sequence[str]) -> Matches:
    """Return classes of people who are equal in all these original quasi-identifiers."""
    return case.remembered(("people alike", tuple(names)), lambda: alike(people.keys(names), people.n))


def owners_of(own: Matches) -> NDArray[np.int64]:
    """Return the class of every person."""
    out = np.empty(len(own.people), np.int64)
    out[own.people] = own.of
    return out


def finder_for(
    release: Published, names: Sequence[str], codes: Mapping[str, NDArray], rows: NDArray | None = None
) -> tuple[Finder, list[NDArray]]:
    """Return the release (or some of its rows) to search, and the codes to search for; -1 for unknown values."""
    statements = [release.column(name) for name in names]
    cells = release.cells(names) if names else {}
    for one in statements:
        if one.column.is_open:
            raise QueryError(f"column {one.name!r} has too many values to find people by.", hint="Give it bins.")
    nodes = [exact_nodes(one.d) if one.nodes is None else one.nodes for one in statements]
    data = [one.key(cells[one.name] if rows is None else cells[one.name].take(rows)) for one in statements]
    return Finder(nodes, data, release.rows if rows is None else len(rows)), [codes[name] for name in names]


def find_people(release: Published, people: People, names: Sequence[str]) -> tuple[Finder, list[NDArray]]:
    """Return the release to search, and every person's quasi-identifiers as codes of its domains."""
    strange = [name for name in names if name not in people.quasi]
    if strange:
        raise DataError(
            f"{strange[0]!r} is a quasi-identifier in the release but not in the policy.",
            hint="Give the policy that the release was made with.",
        )
    listed = [name for name in names if not release.column(name).column.is_open]
    codes = {name: people.published(release.column(name)) for name in listed}
    return finder_for(release, names, codes)


def in_release(case: Case, people: People, names: Sequence[str], some: Sample) -> Iterator[Matches]:
    """Match every measured person with the published rows that cover the person's quasi-identifiers.

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
    """Return the secret columns with listed values."""
    return [one for one in release.statements if one.role.needs_requirement and one.terms is None]


def is_attackable(statement: Statement) -> bool:
    """Return whether the cells of a person's row give beliefs over listed values."""
    return statement.rows_per_record == 1 and not statement.column.is_open


def attackable(release: Published) -> list[Statement]:
    """Return the secrets that can be attacked row by row."""
    return [one for one in secret_statements(release) if is_attackable(one)]


def why_no_secret(release: Published) -> str | None:
    """Return why no column has secrets that could be attacked, or None."""
    if release.rows_per_record > 1:
        return "the release has one shuffled row per possible value, so no row belongs to one person"
    if attackable(release):
        return None
    held = secret_statements(release)
    if not held:
        return "the release has no sensitive column"
    return f"column {held[0].name!r} is {held[0].words} without a list of its values"


def true_target(case: Case, statement: Statement, people: People) -> Target:
    """Return a secret as the raw table discloses it, with the overall distribution of the original."""
    exact = ExactStatement(statement.column)
    cells, kind = CodeCells(statement.d, people.secret(statement)).distinct()
    prior = exact.shares(np.bincount(exact.key(cells)[kind], minlength=statement.d))
    own = raw_classes(case, people, [name for name in people.quasi if name != statement.name])
    return Target(exact, cells, kind, prior, "the original", prior, own)


def published_target(case: Case, statement: Statement, prior: NDArray[np.float64] | None) -> Target:
    """A secret as the release discloses it; the default prior is the release's own distribution, or an estimate of
    it."""
    names = tuple(key_names(case.release, statement.name)[0])
    drawn = statement.design is not None
    alone = drawn or statement.is_class
    view = case.view([statement.name] if alone else [*names, statement.name])
    release, times = view.release, view.times
    cells = release.cells([statement.name])[statement.name]
    shares = statement.shares(tally(statement, cells, times))
    basis = "the original" if prior is not None else "an estimate from the release" if drawn else "the release"
    if prior is None:
        prior = case.estimate([statement.name]) if drawn else shares
    distinct, kind = cells.distinct()
    if drawn:
        own = each_alone(kind)
    elif statement.is_class:
        own = alike([kind], len(kind))
    else:
        own = published_classes(case, names, release)
    weights = prior if shares is None else shares
    if prior is None:  # every general value divided equally among those under it
        each = beliefs(statement, distinct, None)
        rows = np.bincount(kind, times, minlength=len(distinct))
        mass = np.bincount(each.value, each.weight * rows[each.owner], minlength=statement.d)
        prior = np.asarray(mass / max(1.0, float(rows.sum())))
    return Target(statement, distinct, kind, prior, basis, weights, own, times=times)


def tally(statement: Statement, cells: Cells, times: Times) -> NDArray[np.int64]:
    """Tally rows that each represent several, as `Statement.tally` does."""
    if times is None or statement.design is not None:
        return statement.tally(cells)  # of drawn cells it says nothing yet: their shares are estimated
    return np.bincount(statement.key(cells), times, minlength=statement.d).astype(np.int64)


@dataclass(frozen=True)
class Place:
    """The rows of a release that match the people of the original."""

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
    """Return the columns of listed values that can be compared with a person's values."""
    return [one for one in release.statements if one.is_key and not one.column.is_open]


def place_people(release: Published, people: People, some: Sample | None = None) -> Place:
    """Match all or the measured people with rows; whether a row is unique to a person is decided among all people."""
    keys = key_statements(release)
    measured = sample_of(people.n, 0) if some is None else some
    row = np.full(people.n, -1, np.int64)
    if all(one.is_exact for one in keys):
        exact = exact_statements(release)
        mine, found = unique_pairs(people.exact_texts(exact), exact_texts(release))
        row[mine] = found
        row = measured[row]
        return Place(measured.lines, row, row >= 0, 0, "exact columns")
    names, codes = [one.name for one in keys], {one.name: people.published(one) for one in keys}
    finder, asked = finder_for(release, names, codes)
    chance = np.random.default_rng(0).random(people.n)  # simulation only: nothing of it is published
    single = np.zeros(people.n, bool)
    for part in finder.candidates([measured[codes] for codes in asked], len(measured)):
        sizes, who = np.diff(part.bounds), measured.lines[part.people]
        at = part.bounds[part.of] + np.floor(chance[who] * sizes[part.of]).astype(np.int64)
        row[who], single[who] = part.order[at], sizes[part.of] == 1
    alone = np.unique(row[single])
    fitting = np.zeros(release.rows, np.int64)
    if len(alone):  # a row that is somebody's only one may be others' too
        finder, asked = finder_for(release, names, codes, alone)
        for part in finder.candidates(asked, people.n):
            times = np.bincount(part.of, minlength=len(part.bounds) - 1)
            np.add.at(fitting, alone[part.order], times[owners(part.bounds)])
    here = row[measured.lines]
    who = measured.lines[here >= 0]
    own = single[who] & (fitting[row[who]] == 1)
    return Place(who, row[who], own, len(measured) - len(who), "exact columns and generalised values")
