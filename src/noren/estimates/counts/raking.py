"""Cross tabulations from smaller ones: margins, pairs, and tables raked to them.

A table of several columns starts from what is known better. Two columns start from their own estimates, as if they were
independent. Three and more start from the table that is raked to the estimates of all pairs, each of which was stopped
by held-out records, if held-out records prefer it to independence. In the end a table is raked to the answers of lower
order (single columns, and pairs where there are more than two), so that its margins are those that a recipient gets
by asking for them.

Classes of exact columns that are fitted apart from those with many times their records.

In EM the slots of exact columns share nothing but the start and the stop. One stop for all is wrong where they differ
much: forty nearly empty countries end it long before the one in which most people live has reached its counts. Slots of
about as many records share a stop, because a single small one has too few held-out records to choose by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from noren.ahead import side_by_side
from noren.estimates.counts.fit import Fit, Progress, Stopping, converge
from noren.estimates.counts.held_out import Course, Held, Outset, folds_of, search
from noren.estimates.counts.tuples import Tuples

Floats = NDArray[np.float64]
Margins = Mapping[tuple[int, ...], Floats]
"""Tables over some dimensions of a larger one."""
Item = TypeVar("Item")
Made = TypeVar("Made")
MANY = 100_000  # tuples from which on independent fits run side by side
ROUNDS = 50
CLOSE = 1e-7  # share of the records that a round of raking moves at most in the end
MAX_MARGIN_STEPS = 2000
RAKED_CELLS = 5_000_000  # most cells of a table that starts from its pairs
MOST_COLUMNS = 8
RARE = 1e-6  # of an even share: no value is rarer where a fit starts
NEWTON_STEPS = 5
RISING = 1e-3  # share by which EM may still raise a value where a fit starts
UNDETERMINED = 1e-10  # directions of which the records know less, beside the best known, stay as they are
NEWTON_WORK = 5_000_000  # additions that a step of Newton's may take


def rake(table: Floats, margins: Margins, rounds: int = ROUNDS) -> Floats:
    """The table with these margins that has the given one's associations; trailing dimensions beyond those that
    margins name are tables of their own."""
    if not margins:
        return table
    total = max(float(table.sum()), 1e-300)
    for _ in range(rounds):
        moved = 0.0
        for kept, wanted in margins.items():
            rest = tuple(j for j in range(table.ndim) if j not in kept and j < _named(margins))
            sums = table.sum(axis=rest, keepdims=True)
            factor = np.divide(wanted.reshape(sums.shape), sums, out=np.zeros_like(sums), where=sums > 0)
            moved = max(moved, float(np.abs(sums * (factor - 1)).sum()) / total)
            table = table * factor
        if moved <= CLOSE:
            break
    return table


def _named(margins: Margins) -> int:
    return 1 + max(j for kept in margins for j in kept)


@dataclass(frozen=True)
class Singles:
    """The estimate of every entry of the tuples alone (the slots' records are known), for all records or for folds."""

    parts: Sequence[Floats]

    @classmethod
    def of(cls, tuples: Tuples, counts: Floats, tolerance: float) -> Singles:
        """Tuple t occurs counts[t] times."""
        entries = (tuples.entries(j) for j in range(len(tuples.shape)))
        return cls.fitted(tuples, [_counted(at, counts, size) for at, size in entries], tolerance, {})

    @classmethod
    def fitted(cls, tuples: Tuples, margins: Sequence[Floats], tolerance: float, near: Mapping[int, Floats]) -> Singles:
        """Set s of entry j occurs margins[j][s] times; `near` are estimates of some from much the same records."""
        total, parts = margins[0].sum(), [margins[0]]
        weights = tuples.weights if tuples.weights is not None else [None] * len(tuples.sets)
        for j, (design, sets, weight) in enumerate(zip(tuples.designs, tuples.sets, weights, strict=True), start=1):
            one = Tuples.single(design, sets, margins[j], weight)
            start = np.full(one.shape, total / design.d)
            if j in near:
                start = nearer(one, near[j].reshape(one.shape), start, tolerance)
            found = converge(one, start, tolerance, MAX_MARGIN_STEPS).table[0]
            parts.append(found * (total / max(found.sum(), 1e-300)))
        return cls(parts)

    def product(self, kept: Sequence[int] | None = None) -> Floats:
        """The table in which they are independent; entries that are not kept have one value."""
        table = np.ones(())
        for j, part in enumerate(self.parts):
            shares = part / max(part.sum(), 1e-300)
            table = table[..., None] * (shares if kept is None or j in kept else np.ones(1))
        return np.asarray(table * self.parts[0].sum())


def each(work: Callable[[Item], Made], items: Sequence[Item], tuples: int) -> list[Made]:
    """What the work makes of every item, in their order; of many tuples side by side, the same to the last bit."""
    return side_by_side(work, items) if tuples >= MANY else [work(item) for item in items]


def _counted(place: NDArray[np.int64], counts: Floats, size: int) -> Floats:
    return np.bincount(place, counts, size).astype(np.float64)


def nearer(one: Tuples, x: Floats, flat: Floats, tolerance: float) -> Floats:
    """A start for the maximum of a single column, of which much the same records have theirs at x: a few steps of
    Newton's over the values that are not on their way to none. If they lead nowhere, even shares as ever."""
    if max(one.sets[0].size, one.shape[1] ** 2) * one.shape[1] > NEWTON_WORK:
        return flat
    least = RARE * flat
    x = np.maximum(x * (flat.sum() / max(x.sum(), 1e-300)), least)
    for _ in range(NEWTON_STEPS):
        acc, sums, _ = one.em_pass(x)
        free = np.flatnonzero((x > least) | (acc > 1))
        information = one.information(sums)[0][np.ix_(free, free)]
        move = _solved(information, acc.ravel()[free] - 1)
        if move is None:
            return flat
        after = x.ravel().copy()
        after[free] = np.maximum(after[free] + move, least.ravel()[free])
        x, before = after.reshape(x.shape), x
        if float(np.abs(x - before).max()) <= tolerance:
            break
    is_top = float(one.em_pass(x)[0].max()) < 1 + RISING  # no value, however rare, would gain by being less so
    return x if is_top else flat


def _solved(matrix: Floats, right: Floats) -> Floats | None:
    """The shortest solution of symmetric equations, None if there is none. By eigenvalues: for values that differ a
    billionfold the singular value decomposition behind `lstsq` does not always converge."""
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        return None
    kept = values > UNDETERMINED * values.max(initial=0.0)
    return np.asarray((vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ right))


@dataclass(frozen=True)
class Sought:
    """The records of a table, how they are held out, and what was found of its single columns."""

    tuples: Tuples
    held: Held
    singles: Singles
    by_fold: Sequence[Singles]
    rule: Stopping
    max_steps: int
    progress: Progress | None

    @classmethod
    def of(
        cls, tuples: Tuples, rule: Stopping, max_steps: int, progress: Progress | None, near: Mapping[int, Floats]
    ) -> Sought:
        """`near` are estimates of single columns, if there are any."""
        counts, held = tuples.counts, folds_of(tuples.counts, tuples.weighed)

        def margins(j: int) -> tuple[Floats, Floats]:
            at, size = tuples.entries(j)
            return _counted(at, counts, size), held.gathered(at, size).astype(np.float64)

        every, out = zip(*each(margins, range(len(tuples.shape)), len(tuples)), strict=True)
        singles = Singles.fitted(tuples, every, rule.tolerance, near)
        known = dict(enumerate(singles.parts))

        def without(fold: int) -> Singles:
            rest = [m - h[:, fold] for m, h in zip(every, out, strict=True)]
            return Singles.fitted(tuples, rest, rule.tolerance, known)

        by_fold = each(without, range(held.counts.shape[1]), len(tuples))
        return cls(tuples, held, singles, by_fold, rule, max_steps, progress)

    @property
    def columns(self) -> list[int]:
        """Entries of the tuples that have more than one value."""
        return [j for j, size in enumerate(self.tuples.shape) if size > 1]

    def independent(self) -> tuple[Floats, Floats]:
        """The start of all records, and those of the folds."""
        return self.singles.product(), np.stack([one.product() for one in self.by_fold], axis=-1)

    def outset(self, start: Floats, folds: Floats) -> Outset:
        return Outset.of(self.tuples, self.held, start, folds)

    def searched(self, outset: Outset) -> Course:
        """Where EM stops; slots that have many times the records of others have a stop of their own."""
        slot_of, slots_in_all = self.tuples.entries(0)
        bands = bands_of(np.bincount(slot_of, self.tuples.counts, slots_in_all).astype(np.float64))
        if len(bands) == 1:
            return search(self.tuples, self.held, outset, self.rule, self.max_steps, self.progress)
        parts = [self._of_slots(slots, outset) for slots in bands]
        table, folds = np.empty_like(outset.table), np.empty_like(outset.folds)
        for slots, part in zip(bands, parts, strict=True):
            table[slots], folds[slots] = part.table, part.folds
        ended, passes = all(part.has_ended for part in parts), max(part.passes for part in parts)
        return replace(parts[0], table=table, folds=folds, passes=passes, has_ended=ended, stops=len(parts))

    def _of_slots(self, slots: NDArray[np.int64], outset: Outset) -> Course:
        part, rows = restricted(self.tuples, slots)
        held = self.held.rows(rows)
        start = Outset.of(part, held, outset.table[slots], outset.folds[slots])
        return search(part, held, start, self.rule, self.max_steps, self.progress)

    def pair(self, kept: tuple[int, int]) -> Sought:
        """The same records, of which only two entries are looked at."""
        part, place = self.tuples.part(kept)
        held = Held.of(self.held.gathered(place, len(part)), part.counts)
        singles, by_fold = _kept(self.singles, kept), [_kept(one, kept) for one in self.by_fold]
        return replace(self, tuples=part, held=held, singles=singles, by_fold=by_fold)


def _kept(singles: Singles, kept: Sequence[int]) -> Singles:
    """Those of some entries; without the slot's, all records are in one."""
    total = singles.parts[0].sum(keepdims=True)
    parts = [singles.parts[j] for j in kept if j > 0]
    return Singles([singles.parts[0] if 0 in kept else total, *parts])


def by_held_out(
    tuples: Tuples,
    rule: Stopping,
    progress: Progress | None,
    max_steps: int,
    answers: Mapping[int, Floats] | None = None,
) -> Fit:
    """The table of several columns: from its pairs or from independence, stopped by held-out records, raked.

    `answers` are what single columns asked for alone give, where that is not their maximum.
    """
    sought = Sought.of(tuples, rule, max_steps, progress, answers or {})
    columns = sought.columns
    margins: dict[tuple[int, ...], Floats] = {
        (j,): (answers or {}).get(j, sought.singles.parts[j]) for j in columns[::-1]
    }
    facts: dict[str, object] = {"start": "independence"}
    passes, pair_steps = 0, dict[tuple[int, ...], float]()
    if not (3 <= len(columns) <= MOST_COLUMNS and prod(tuples.shape) <= RAKED_CELLS):
        outset = sought.outset(*sought.independent())
    else:
        wanted = list(reversed(list(combinations(columns, 2))))  # slots last: their records are known
        longest_first = sorted(wanted, key=lambda kept: -prod(tuples.shape[j] for j in kept))

        def begun(kept: tuple[int, ...]) -> Any:
            part = sought if len(kept) > 2 else sought.pair((kept[0], kept[1]))
            start = part.outset(*part.independent())
            return start if len(kept) > 2 else part.searched(start)

        work = [*longest_first, tuple(columns)]
        done = dict(zip(work, each(begun, work, len(tuples)), strict=True))
        outset = done[tuple(columns)]
        pairs: dict[tuple[int, ...], Floats] = {}
        of_folds: dict[tuple[int, ...], Floats] = {}
        for kept in wanted:
            found = done[kept]
            table = found.table.reshape([tuples.shape[j] for j in kept])
            of_folds[kept] = found.folds.reshape([*table.shape, found.folds.shape[-1]])
            pairs[kept] = rake(table, {(i,): margins[kept[i],] for i in (1, 0)})
            passes += found.passes
            pair_steps[kept] = found.plain_steps
        raked = sought.outset(rake(outset.table, pairs), rake(outset.folds, of_folds))
        margins = pairs
        if raked.score > outset.score:
            outset = raked
            facts["start"] = "pairs of columns"
    found = sought.searched(outset)
    facts |= {
        "stopping": "held-out likelihood",
        "folds": int(outset.folds.shape[-1]),
        "held_out": [value / max(float(sought.held.counts.sum()), 1.0) for value in found.curve],
        "held_out_steps": found.steps,
        "held_out_best": found.best,
        "plain_steps": found.plain_steps,
        "stops": found.stops,
        "pair_steps": pair_steps or ({tuple(columns): found.plain_steps} if len(columns) == 2 else {}),
        "converged": found.has_ended,
    }
    return Fit(rake(found.table, margins), passes + found.passes, facts)


FAR_FEWER = 8.0
"""A slot with so many times fewer records than the largest of a band begins the next one."""
LEAST_OF_BAND = 200
"""Records of a band."""


def bands_of(records: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """The slots of every band, in ascending order, the band of the largest slots first; records by slot."""
    order = np.argsort(-records, kind="stable")
    falling = records[order]
    total, sums = float(falling.sum()), np.cumsum(falling)
    bands, first = [], 0
    for i in range(1, len(order)):
        held, left = sums[i - 1] - (sums[first - 1] if first else 0.0), total - sums[i - 1]
        if left < LEAST_OF_BAND:
            break
        if held >= LEAST_OF_BAND and falling[i] * FAR_FEWER < falling[first]:
            bands.append(np.sort(order[first:i]))
            first = i
    return [*bands, np.sort(order[first:])]


def restricted(tuples: Tuples, slots: NDArray[np.int64]) -> tuple[Tuples, NDArray[np.int64]]:
    """The tuples of some slots, which are numbered anew, and their places among all."""
    place = tuples.order.index(0)
    number = np.full(tuples.shape[0], -1, np.int32)
    number[slots] = np.arange(len(slots), dtype=np.int32)
    rows = np.flatnonzero(number[tuples.ids[:, place]] >= 0)
    ids = tuples.ids[rows]
    ids[:, place] = number[ids[:, place]]  # ascending, so that the tuples stay sorted
    part = Tuples(len(slots), tuples.designs, tuples.sets, tuples.order, ids, tuples.counts[rows], tuples.weights)
    return part, rows
