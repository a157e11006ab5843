"""What the published rows that could be a person's tell about one secret column.

Every published cell is a belief over the column's base values: an exact value is certain, a general value is one of
those under it, a group holds what its table lists, and a decoy set has the posterior of its published design (Bayes).
What rows tell together is the mean of their beliefs: each is the person's as likely as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.cover import Candidates, Finder, exact_nodes, sorted_groups
from noren.audit.people import People
from noren.cells import GroupCells, GroupTable, NodeCells, SetCells, ValueCells
from noren.designs.any import Design
from noren.designs.decoys import DecoyDesign
from noren.errors import DataError, QueryError
from noren.models.base import FORM_WORDS, Form
from noren.models.classes import Histograms, key_columns, ranges, summed
from noren.release.manifest import ColumnEntry
from noren.release.release import Release
from noren.schema.nodes import Nodes
from noren.schema.roles import Role

SEARCHED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
SECRET = (Role.SENSITIVE, Role.SENSITIVE_QUASI_IDENTIFIER)
ATTACKED: tuple[Form, ...] = ("value", "node", "group", "set")
"""Forms of a secret whose cells are beliefs over base values."""
ENTRIES_AT_ONCE = 1 << 22

Beliefs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Some cells: the entries of cell i are offsets[i] <= e < offsets[i + 1], each a value and what is believed in it."""


@dataclass(frozen=True)
class Secret:
    """One column, as its rows tell of it."""

    name: str
    labels: tuple[str, ...]
    prior: NDArray[np.float64]
    """What is believed about anybody before: how the whole table is distributed."""
    basis: str
    kind: NDArray[np.int64]
    """The cell of every row, as a number; rows with equal cells have equal numbers."""
    beliefs: Callable[[NDArray[np.int64]], Beliefs]
    own: Candidates
    """Every row with the rows that look like it: the classes, the groups, or for a set the row alone."""
    table: GroupTable | None = None
    width: int = 1
    """Most entries that one cell may have."""
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What an attack computed once for all classes."""

    @property
    def d(self) -> int:
        return len(self.labels)

    def counted(self, order: NDArray, bounds: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """The different cells in every set of rows: set, cell, and how many rows of the set have it."""
        owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        kinds = np.int64(self.kind.max(initial=0)) + 1
        key, count = np.unique(owner * kinds + self.kind[order], return_counts=True)
        return key // kinds, key % kinds, count

    def entries(self, order: NDArray, bounds: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Set, value, belief and number of rows for every different cell in every set of rows."""
        owner, kind, count = self.counted(order, bounds)
        distinct, place = np.unique(kind, return_inverse=True)
        offsets, value, mass = self.beliefs(distinct)
        widths = np.diff(offsets)[place]
        taken = ranges(offsets[place], offsets[place + 1])
        return np.repeat(owner, widths), value[taken], mass[taken], np.repeat(count, widths)

    def told(self, part: Candidates) -> Histograms:
        """What every set of rows tells: a distribution over base values, as masses that add up to its rows."""
        owner, value, mass, count = self.entries(part.order, part.bounds)
        return summed(np.diff(part.bounds), owner, value, mass * count, self.d)

    def pool(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """The same as `entries` for the row's own classes, with the cells of a group as its table lists them."""
        if self.table is None:
            return self.entries(self.own.order, self.own.bounds)
        rank = np.full(self.table.groups, -1, np.int64)
        first = self.kind[self.own.order[self.own.bounds[:-1]]]
        rank[first] = np.arange(len(first))
        known = rank[self.table.group] >= 0
        group, value = rank[self.table.group[known]], self.table.value[known]
        order = np.argsort(group, kind="stable")
        return group[order], value[order], np.ones(len(order)), self.table.count[known][order]

    def before(self) -> Histograms:
        """The prior as what a single class would tell."""
        value = np.flatnonzero(self.prior > 0)
        mass = self.prior[value] / max(float(self.prior.sum()), 1e-300)
        return Histograms(np.ones(1, np.int64), np.array([0, len(value)]), value, mass)


def portions(part: Candidates, width: int) -> Iterator[Candidates]:
    """Candidates a few sets at a time, so that what their cells tell fits the memory."""
    reach = part.bounds * width
    sets = len(part.bounds) - 1
    if int(reach[-1]) <= ENTRIES_AT_ONCE:
        yield part
        return
    by_set = np.argsort(part.of, kind="stable")
    people, of = part.people[by_set], part.of[by_set]
    low = 0
    while low < sets:
        high = max(low + 1, int(np.searchsorted(reach, reach[low] + ENTRIES_AT_ONCE, side="right")) - 1)
        begin, end = np.searchsorted(of, [low, high])
        rows = slice(part.bounds[low], part.bounds[high])
        bounds = part.bounds[low : high + 1] - part.bounds[low]
        yield Candidates(people[begin:end], of[begin:end] - low, part.groups[low:high], part.order[rows], bounds)
        low = high


# ---------------------------------------------------------------------- classes of rows


def alike(keys: NDArray[np.int64]) -> Candidates:
    """Rows with equal keys (rows, columns) as classes."""
    _, order, bounds = sorted_groups(keys)
    of = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return Candidates(order, of, np.ones(len(bounds) - 1, np.int64), order, bounds)


def each_alone(kind: NDArray[np.int64]) -> Candidates:
    """Rows that are known to be the person's: one row stands for all with the same cell."""
    distinct, first, of = np.unique(kind, return_index=True, return_inverse=True)
    sets = len(distinct)
    return Candidates(np.arange(len(kind)), of.reshape(-1), np.ones(sets, np.int64), first, np.arange(sets + 1))


def key_names(release: Release, apart_from: str = "") -> tuple[list[str], list[str]]:
    """Quasi-identifiers that an adversary can match, and those that are published in no such form."""
    found = [entry for entry in release.manifest.columns if entry.role in SEARCHED and entry.name != apart_from]
    names = [entry.name for entry in found if entry.form in ("value", "node", "open")]
    return names, [entry.name for entry in found if entry.name not in names]


def published_classes(release: Release, names: list[str]) -> Candidates:
    """Rows that agree in all these columns, as published."""
    import polars as pl

    if not names:
        return alike(np.empty((release.rows, 0), np.int64))
    entries = [release.manifest.column(name).published for name in names]
    keys = [
        key.rank("dense").fill_null(0).to_numpy().astype(np.int64) if isinstance(key, pl.Series) else key
        for key in key_columns(entries, release.cells(names))
    ]
    return alike(np.stack(keys, axis=1))


def exact_keys(people: People, apart_from: str = "") -> NDArray[np.int64]:
    """Every person's quasi-identifiers as they stand in the original."""
    names = [name for name in people.table.quasi if name != apart_from]
    if not names:
        return np.empty((people.table.n, 0), np.int64)
    return np.stack([people.exact[name] for name in names], axis=1).astype(np.int64)


def in_release(release: Release, people: People, names: list[str]) -> Iterator[Candidates]:
    """Every person with the published rows that cover the person's quasi-identifiers."""
    table = people.table
    strange = [name for name in names if name not in table.quasi]
    if strange:
        raise DataError(
            f"the policy does not make {strange[0]!r} a quasi-identifier, as the release does.",
            hint="Give the policy that the release was made with.",
        )
    codes = {}
    for name in names:
        entry = release.manifest.column(name)
        if entry.values is None:
            raise QueryError(f"column {name!r} has too many values to find people by.", hint="Give it bins.")
        index = entry.domain.index
        place = np.array([index.get(value, -1) for value in table.columns[name].domain.values], np.int64)
        codes[name] = place[table.codes[name]]
    finder, asked = finder_for(release, names, codes)
    yield from finder.candidates(asked, table.n)


def finder_for(release: Release, names: list[str], codes: Mapping[str, NDArray]) -> tuple[Finder, list[NDArray]]:
    """The release to search in, and what is searched: codes of its domains by column, -1 for what it lacks."""
    nodes, data = [], []
    cells = release.cells(names) if names else {}
    for name in names:
        entry, part = release.manifest.column(name), cells[name]
        assert isinstance(part, NodeCells | ValueCells)
        nodes.append(entry.catalogue if entry.form == "node" else exact_nodes(entry.d))
        data.append(part.data)
    return Finder(nodes, data, release.rows), [codes[name] for name in names]


# ---------------------------------------------------------------------- secrets


def secret_entries(release: Release) -> list[ColumnEntry]:
    """The columns that hold secrets."""
    return [entry for entry in release.manifest.columns if entry.role in SECRET]


def attackable(release: Release) -> list[ColumnEntry]:
    """Those whose cells are beliefs over listed values."""
    return [entry for entry in secret_entries(release) if entry.form in ATTACKED]


def why_no_secret(release: Release) -> str | None:
    """Why there is no column whose secrets could be attacked, or None."""
    if release.manifest.layout == "records":
        return "the release has one shuffled row per possible value, so that no row is a person's"
    if attackable(release):
        return None
    held = secret_entries(release)
    if not held:
        return "the release has no sensitive column"
    return f"column {held[0].name!r} is {FORM_WORDS[held[0].form]} without a list of its values"


def true_secret(entry: ColumnEntry, people: People) -> Secret:
    """A secret as the raw table tells it, with the overall distribution of the original."""
    truth = truths(entry, people)
    prior = np.bincount(truth[truth >= 0], minlength=entry.d) / max(1, int((truth >= 0).sum()))
    own = alike(exact_keys(people, entry.name))
    return Secret(entry.name, entry.values or (), prior, "the original", truth, certain, own)


def truths(entry: ColumnEntry, people: People) -> NDArray[np.int64]:
    """Every person's true value as a code of the published domain."""
    if entry.name not in people.table.codes:
        raise DataError(
            f"the policy does not protect column {entry.name!r}, as the release does.",
            hint="Give the policy that the release was made with.",
        )
    values = people.table.columns[entry.name].domain.values
    index = entry.domain.index
    place = np.array([index.get(value, -1) for value in values], np.int64)
    out = place[people.table.codes[entry.name]]
    if (out < 0).any():
        raise DataError(
            f"{int((out < 0).sum())} records of the original have a value of {entry.name!r} that the release lacks.",
            hint="Give the table and the policy that the release was made from.",
        )
    return np.asarray(out, np.int64)


def published_secret(release: Release, entry: ColumnEntry, prior: NDArray[np.float64] | None) -> Secret:
    """A secret as the release tells it. Without a prior the release's own distribution, or an estimate of it."""
    cells = release.cells([entry.name])[entry.name]
    labels, basis = entry.values or (), "the original" if prior is not None else "the release"
    if isinstance(cells, SetCells):
        assert entry.design is not None
        if prior is None:
            prior, basis = estimated(release, entry), "an estimate from the release"
        kind, sets = numbered(cells, entry.design.eta)
        beliefs = posteriors(sets, entry.design, prior)
        wide = entry.d if entry.design.p < 1 else entry.design.eta
        return Secret(entry.name, labels, prior, basis, kind, beliefs, each_alone(kind), width=wide)
    assert isinstance(cells, ValueCells | NodeCells | GroupCells)
    kind = cells.data.astype(np.int64)
    if isinstance(cells, GroupCells):
        table = release.tables[entry.name]
        prior = table.totals / max(1, int(table.totals.sum())) if prior is None else prior
        return Secret(entry.name, labels, prior, basis, kind, grouped(table), alike(kind[:, None]), table)
    own = published_classes(release, key_names(release, entry.name)[0])
    if isinstance(cells, ValueCells):
        prior = np.bincount(kind, minlength=entry.d) / max(1, len(kind)) if prior is None else prior
        return Secret(entry.name, labels, prior, basis, kind, certain, own)
    beliefs = below(entry.catalogue, prior)
    if prior is None:
        whole = Secret(entry.name, labels, np.zeros(entry.d), basis, kind, beliefs, own)
        _, value, mass, count = whole.entries(np.arange(len(kind)), np.array([0, len(kind)]))
        prior = np.bincount(value, mass * count, minlength=entry.d) / max(1, len(kind))
    return Secret(entry.name, labels, prior, basis, kind, beliefs, own, width=int(entry.catalogue.sizes.max()))


def estimated(release: Release, entry: ColumnEntry) -> NDArray[np.float64]:
    """The overall distribution as a recipient estimates it from sets."""
    frame = release.estimate(entry.name).frame
    found = dict(zip(frame[frame.columns[0]].to_list(), frame["count"].to_list(), strict=True))
    counts = np.maximum(0.0, np.array([found.get(label, 0.0) for label in entry.values or ()]))
    return counts / counts.sum() if counts.sum() > 0 else np.full(entry.d, 1 / max(1, entry.d))


# ---------------------------------------------------------------------- what cells tell


def certain(kinds: NDArray[np.int64]) -> Beliefs:
    """Exact values."""
    return np.arange(len(kinds) + 1), kinds, np.ones(len(kinds))


def below(nodes: Nodes, prior: NDArray[np.float64] | None) -> Callable[[NDArray[np.int64]], Beliefs]:
    """General values: one of those under the node, in the proportions of the prior, or in equal ones."""
    flat, offsets = nodes.flat_members()

    def beliefs(kinds: NDArray[np.int64]) -> Beliefs:
        starts = np.concatenate(([0], np.cumsum(offsets[kinds + 1] - offsets[kinds])))
        value = flat[ranges(offsets[kinds], offsets[kinds + 1])]
        return _normal(starts, value, np.ones(len(value)) if prior is None else prior[value])

    return beliefs


def grouped(table: GroupTable) -> Callable[[NDArray[np.int64]], Beliefs]:
    """Groups: their values, as often as the table lists them."""

    def beliefs(kinds: NDArray[np.int64]) -> Beliefs:
        first, last = table.bounds[kinds], table.bounds[kinds + 1]
        taken = ranges(first, last)
        starts = np.concatenate(([0], np.cumsum(last - first)))
        return _normal(starts, table.value[taken], table.count[taken].astype(np.float64))

    return beliefs


def posteriors(sets: NDArray, design: Design, prior: NDArray[np.float64]) -> Callable[[NDArray[np.int64]], Beliefs]:
    """Decoy sets: the posterior by the published design. sets: rows of member codes."""

    def beliefs(kinds: NDArray[np.int64]) -> Beliefs:
        members = sets[kinds].astype(np.int64)
        if isinstance(design, DecoyDesign) and design.p < 1:
            weight = np.tile(prior / design.rho, (len(kinds), 1))
            np.put_along_axis(weight, members, prior[members], axis=1)
            value = np.tile(np.arange(design.d), len(kinds))
            return _normal(np.arange(len(kinds) + 1) * design.d, value, weight.reshape(-1))
        weight = prior[members]
        if not isinstance(design, DecoyDesign):
            weight = weight * design.set_weights(members)
        return _normal(np.arange(len(kinds) + 1) * design.eta, members.reshape(-1), weight.reshape(-1))

    return beliefs


def numbered(cells: SetCells, eta: int) -> tuple[NDArray[np.int64], NDArray]:
    """The number of every row's set, and the members of the different sets."""
    if cells.is_mask:
        distinct, kind = np.unique(cells.data, return_inverse=True)
    else:
        distinct, kind = np.unique(cells.data, axis=0, return_inverse=True)
    return kind.reshape(-1).astype(np.int64), SetCells(cells.d, distinct).codes(eta)


def _normal(starts: NDArray, value: NDArray, weight: NDArray) -> Beliefs:
    """Weights of every cell as a distribution, without values that have none; all equal where none has any."""
    total = np.add.reduceat(weight, starts[:-1]) if len(starts) > 1 else np.zeros(0)
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    weight = np.where(total[owner] > 0, weight, 1.0)
    total = np.where(total > 0, total, np.diff(starts))
    stays = weight > 0
    offsets = np.concatenate(([0], np.cumsum(np.bincount(owner[stays], minlength=len(starts) - 1)))).astype(np.int64)
    return offsets, value[stays], (weight / total[owner])[stays]
