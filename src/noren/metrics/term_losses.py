"""The cost of suppressed quasi-sensitive terms, and the remaining beliefs of an adversary (paper 001).

Cost is the inverse weighted cost of groups (equation 2), beliefs are those of equation 1, and queries are those of
section 4.3: conditions on quasi-identifiers together with one on a set-valued column. All figures rest on the
original, so they never leave the holder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.metrics.general import GeneralTable
from noren.metrics.queries import BLOCK, Workload, _counts, random_workload
from noren.models.kernels import PEAK, RISE, group_beliefs
from noren.schema.knowledge import Knowledge
from noren.statements import TermCells

_Part = Callable[[slice], NDArray[np.float64]]
"""A table of figures, one row for each of some queries."""


@dataclass(frozen=True)
class TermLoss:
    """The cost of suppressed terms, group by group."""

    cost: NDArray[np.float64]
    """Inverse weighted cost of every group (equation 2), 0 to 1."""
    records: NDArray[np.int64]
    """Records of every group."""
    dropped: int
    """Records that are in no group because they are not published."""
    entries: int
    """Terms of all records before."""
    removed: int
    """How many of them are not published, those of dropped records among them."""

    @property
    def mean_over_groups(self) -> float:
        return float(self.cost.mean()) if len(self.cost) else 0.0

    @property
    def mean_over_records(self) -> float:
        """Return the mean cost over records: that of the record's group, and 1 for a dropped record."""
        n = int(self.records.sum()) + self.dropped
        return float(((self.cost * self.records).sum() + self.dropped) / n) if n else 0.0

    @property
    def share(self) -> float:
        """Return the share of all terms that is not published."""
        return self.removed / self.entries if self.entries else 0.0

    @property
    def average_group_size(self) -> float:
        return float(self.records.mean()) if len(self.records) else 0.0


def term_loss(had: TermCells, published: TermCells, group: NDArray[np.int64]) -> TermLoss:
    """Return the cost of suppressing terms, from all sets before and after and the group of every record (-1: dropped).

    A removal from a record with m terms costs 1/m, the next 1/(m - 1), and so on; a group's cost is that sum over the
    one that removing everything would cost. A group without terms costs nothing.
    """
    if not len(had) == len(published) == len(group):
        raise ValueError("the sets before, the sets after and the groups differ in their number of records")
    shown = group >= 0
    groups = int(group.max(initial=-1)) + 1
    before, after = had.sizes, np.where(shown, published.sizes, 0)
    if (after > before).any():
        raise ValueError("a record has more terms after suppression than before")
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, int(before.max(initial=0)) + 1))))
    place = group[shown]
    most = np.bincount(place, harmonic[before[shown]], minlength=groups)
    lost = np.bincount(place, (harmonic[before] - harmonic[after])[shown], minlength=groups)
    return TermLoss(
        cost=np.divide(lost, most, out=np.zeros(groups), where=most > 0),
        records=np.bincount(place, minlength=groups).astype(np.int64),
        dropped=int((~shown).sum()),
        entries=int(before.sum()),
        removed=int(before.sum() - after.sum()),
    )


@dataclass(frozen=True)
class BeliefChange:
    """The beliefs of an adversary with the knowledge table, group by group."""

    rise: NDArray[np.float64]
    """The largest difference beta - alpha over all labels (equation 1)."""
    peak: NDArray[np.float64]
    """The largest beta."""
    records: NDArray[np.int64]

    @property
    def mean_over_groups(self) -> float:
        return float(self.rise.mean()) if len(self.rise) else 0.0

    @property
    def mean_over_records(self) -> float:
        n = int(self.records.sum())
        return float((self.rise * self.records).sum() / n) if n else 0.0

    @property
    def highest(self) -> float:
        return float(self.rise.max()) if len(self.rise) else 0.0

    @property
    def highest_belief(self) -> float:
        return float(self.peak.max(initial=0.0))


def belief_change(
    cells: TermCells,
    group: NDArray[np.int64],
    knowledge: Knowledge,
    alpha: NDArray[np.float64],
    unlinked: Literal["ignore", "prior"] = "ignore",
) -> BeliefChange:
    """Return posterior less prior in every group (records of group -1 are not published).

    Codes of `cells` are those of the knowledge; codes beyond its terms are unknown, and such a record is linked to
    nothing. With raw quasi-identifiers and all terms this is what the table reveals before anything is done to it.
    """
    order = np.argsort(group, kind="stable")
    groups = int(group.max(initial=-1)) + 1
    bounds = np.searchsorted(group[order], np.arange(groups + 1)).astype(np.int64)
    codes = np.where(cells.data < len(knowledge.terms), cells.data, -1).astype(np.int32)
    prior = np.asarray(alpha, np.float64)
    found = group_beliefs(order, bounds, cells.offsets, codes, *knowledge.links, prior, unlinked == "prior", 1)
    return BeliefChange(found[:, RISE], found[:, PEAK], np.diff(bounds))


def joint_terms(parts: Sequence[TermCells], known: int) -> TermCells:
    """Return the terms of columns with a common knowledge table, each once.

    The first `known` codes mean the same term in all columns. Codes beyond are unknown terms of one column each; they
    get places of their own.
    """
    if len(parts) == 1:
        return parts[0]
    d, records, codes = known, [], []
    for part in parts:
        records.append(part.owner)
        codes.append(np.where(part.data < known, part.data, part.data.astype(np.int64) - known + d))
        d += part.d - known
    return TermCells.from_entries(d, len(parts[0]), np.concatenate(records), np.concatenate(codes))


# ---------------------------------------------------------------------- count queries


@dataclass(frozen=True)
class TermWorkload:
    """Random queries: conditions on quasi-identifiers, and one on a set-valued column."""

    values: Workload
    wanted: Mapping[str, NDArray[np.bool_]]
    """set-valued column -> (queries, terms): a record meets the condition if it has one of these terms."""
    asked: Mapping[str, NDArray[np.bool_]]
    """set-valued column -> (queries,): whether the query's condition is on this column."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def everything(self) -> Workload:
        """Return all conditions together."""
        return Workload({**self.values.chosen, **self.wanted}, {**self.values.asked, **self.asked})


def term_workload(
    table: GeneralTable,
    had: Mapping[str, TermCells],
    dimensions: int = 1,
    queries: int = 1000,
    selectivity: float = 0.5,
    seed: int = 0,
) -> TermWorkload:
    """Return queries with `dimensions` (the paper's qd) conditions on random quasi-identifiers and one on terms.

    Every condition asks for ceil(|A| s^(1/(qd + 1))) random values: of a quasi-identifier's domain, or of the terms
    that occur in the original (a term that nobody has would make the condition narrower without saying so). With
    several set-valued columns each query asks about one of them, at random. Equal seeds give equal queries.
    """
    quasi = _quasi_only(table)
    if not 0 < selectivity <= 1:
        raise QueryError(
            f"selectivity must be above 0 and at most 1, not {selectivity:g}.",
            hint="Give it as a share of the records, for example 0.05.",
        )
    if dimensions < 1:
        raise QueryError(
            f"the number of conditions on quasi-identifiers must be at least 1, not {dimensions}.",
            hint="Ask for at least one.",
        )
    spread = selectivity ** (dimensions / (dimensions + 1))
    values = random_workload(quasi, {}, None, dimensions, queries, spread, seed, intervals=False)
    random = np.random.default_rng([seed, 1])
    share = selectivity ** (1 / (dimensions + 1))
    names = list(had)
    column = random.integers(0, len(names), queries)
    wanted = {name: _term_sets(had[name], share, queries, random) for name in names}
    return TermWorkload(values, wanted, {name: column == i for i, name in enumerate(names)})


def true_term_counts(table: GeneralTable, had: Mapping[str, TermCells], workload: TermWorkload) -> NDArray[np.float64]:
    """Return ACT: how many original records meet each query."""
    names = list(workload.values.chosen)
    rows = {name: table.columns[name].truth for name in names}
    kinds = {name: len(table.columns[name].domain) for name in names}
    chosen = workload.values.chosen
    shares = {name: lambda part, name=name: chosen[name][part].astype(np.float64) for name in names}
    return _with_terms(rows, kinds, shares, had, workload)


def estimated_term_counts(
    table: GeneralTable, published: Mapping[str, TermCells], workload: TermWorkload
) -> NDArray[np.float64]:
    """Return EST: published records with a wanted term, by the share of their cells that meets the other conditions."""
    names = list(workload.values.chosen)
    kept = np.flatnonzero(table.keep)
    rows = {name: table.columns[name].cells[table.keep] for name in names}
    kinds = {name: table.columns[name].kinds for name in names}
    chosen = workload.values.chosen
    shares = {name: lambda part, name=name: table.columns[name].overlap(chosen[name][part]) for name in names}
    cells = {name: sets if table.keep.all() else sets.take(kept) for name, sets in published.items()}
    return _with_terms(rows, kinds, shares, cells, workload)


def _quasi_only(table: GeneralTable) -> GeneralTable:
    columns = {column.name: column for column in table.quasi_columns()}
    return GeneralTable(columns, table.keep)


def _term_sets(cells: TermCells, share: float, queries: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """Return (queries, terms): as many random terms of those that occur as the share says."""
    occurring = np.flatnonzero(cells.counts())
    out = np.zeros((queries, cells.d), bool)
    m = len(occurring)
    if not m:
        return out
    size = min(m, max(1, ceil(m * share - 1e-9)))
    step = max(1, BLOCK // m)
    for start in range(0, queries, step):
        rank = random.random((min(step, queries - start), m))
        drawn = np.argpartition(rank, size - 1, axis=1)[:, :size]
        out[np.arange(start, start + len(rank))[:, None], occurring[drawn]] = True
    return out


def _with_terms(
    rows: dict[str, NDArray],
    kinds: dict[str, int],
    shares: Mapping[str, _Part],
    cells: Mapping[str, TermCells],
    workload: TermWorkload,
) -> NDArray[np.float64]:
    """Return counts in which every record's set of terms is a separate kind of cell."""
    n = len(next(iter(cells.values())))
    every = np.arange(n)
    rows = rows | dict.fromkeys(cells, every)
    kinds = kinds | dict.fromkeys(cells, n)

    def share(name: str, part: slice) -> NDArray[np.float64]:
        if name in cells:
            return _meets(cells[name], workload.wanted[name][part])
        return shares[name](part)

    return _counts(rows, kinds, workload.everything, share)


def _meets(cells: TermCells, wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return (queries, records): 1 if a record has one of the wanted terms. A term holds its queries as bits."""
    bits = np.packbits(wanted.T, axis=1)
    found = np.zeros((len(cells), bits.shape[1]), np.uint8)
    filled = cells.sizes > 0
    if filled.any():
        found[filled] = np.bitwise_or.reduceat(bits[cells.data], cells.offsets[:-1][filled], axis=0)
    return np.ascontiguousarray(np.unpackbits(found, axis=1, count=len(wanted)).T).astype(np.float64)
