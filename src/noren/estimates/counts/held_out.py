"""EM on several columns, stopped by held-out records, with few passes.

The maximum of the likelihood of many cells fits noise, so EM starts from a simple table and goes on for as long as it
predicts records that were held out. Plain steps damp what the records tell with certainty first and the rest later, at
rates in [0, 1] (see `bayes`); the semi-iterative nu-method does the same to that order of directions in about the
square root of the steps, without a line search. Four folds walk side by side, one pass over the records serving all of
them. No fold sees a record that it is scored by.

The stop is the earliest step within half a nat of the best: beyond it the curve is flat and noise decides. What all
records say there is the mean of what the folds say, and goes on as 4/3 of the records ask for. What predicts other
records best is the population, and the table's own counts differ from it by chance: the last step is a plain one.

Cross tabulations from smaller ones: margins, pairs, and tables raked to them.

A table of several columns starts from what is known better. Two columns start from their own estimates, as if they were
independent. Three and more start from the table that is raked to the estimates of all pairs, each of which was stopped
by held-out records, if held-out records prefer it to independence. In the end a table is raked to the answers of lower
order (single columns, and pairs where there are more than two), so that its margins are those that a recipient gets
by asking for them. Tables with coarse columns start from their own estimates and are not raked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from noren.ahead import side_by_side
from noren.estimates.counts.tuples import LOWEST, Fit, Floats, Progress, Tuples, Weighed, converge

FOLDS = 4
HELD_OUT_MIX = 0.01  # share of the start mixed in when held-out records are scored: an empty cell is not impossible
FOLD_SEED = 20180  # which records are held out together; fixed, so that an answer can be repeated


@dataclass(frozen=True)
class Stopping:
    """When EM stops. The rule is the same for all tables; these parameters were measured on each kind of table."""

    tolerance: float
    """Records: one attribute stops when no cell moves by more."""
    still: float = 0.01
    """Records: several attributes also stop when no cell moves by more in any fold."""
    together: NDArray[np.int64] | None = None
    """Tuples of one number are held out together: records of a class tell of each other."""
    is_even: bool = False
    """Hold out every fourth record in the order of the tuples, so that the folds are alike; otherwise random ones."""


DRAWN = Stopping(tolerance=0.1)
"""Where sets are drawn."""
COARSE = Stopping(tolerance=0.01, is_even=True)
"""Where all that is hidden is coarse."""


class Held(NamedTuple):
    """Which records each of four folds holds out; every record once or never."""

    counts: NDArray[np.int32] | NDArray[np.float64]
    """(tuples, folds): how many, or of weighted records what they weigh"""

    def gathered(self, place: NDArray[np.int64], size: int) -> NDArray[np.int32] | NDArray[np.float64]:
        """Return a (size, folds) array: the held-out records if tuple t is counted at place[t]."""
        sums = np.stack([np.bincount(place, fold, size) for fold in self.counts.T], axis=1)
        return sums.astype(np.int32) if self.counts.dtype == np.int32 else sums.astype(np.float64)


SMALLEST = 1e-300
NU = 3.0  # order of the method: larger damps more like plain steps and takes longer
ROOM = 0.5  # nats below the best held-out likelihood that count as the best
PATIENCE = 3  # passes without a new best
WINDOW = 3  # steps over which the curve's gains are compared
KEPT = 20_000_000  # cells of earlier tables that are kept for going back


@dataclass(frozen=True)
class Outset:
    """A start table, those of the folds, and the result of a first pass over the records."""

    table: Floats
    folds: Floats
    """Along the last dimension."""
    floor: Floats
    """What is added to the likelihood of every tuple: with little weight, anything is possible."""
    acc: Floats
    score: float
    """Log likelihood of the held-out records before any step."""

    @classmethod
    def of(cls, records: Tuples, held: Held, table: Floats, folds: Floats) -> Outset:
        floor = records.em_pass(table)[1] * (HELD_OUT_MIX / table.sum())
        return cls(table, folds, floor, *records.fold_pass(folds, held, floor, scales(folds)))


def scales(folds: Floats) -> Floats:
    """Return the factors that turn each fold's table into probabilities, apart from the floor."""
    return np.asarray((1 - HELD_OUT_MIX) / folds.sum(axis=tuple(range(folds.ndim - 1))))


@dataclass(frozen=True)
class Course:
    """The point where EM stopped: the table of all records, those of the folds, and the curve that decided."""

    table: Floats
    folds: Floats
    """Along the last dimension: what the records of each fold's training part say."""
    curve: list[float]
    """Log likelihood of all held-out records after every step."""
    best: int
    plain_steps: float
    passes: int
    has_ended: bool

    def facts(self, held: Held) -> dict[str, Any]:
        """How it was stopped."""
        return {
            "stopping": "held-out likelihood",
            "folds": int(self.folds.shape[-1]),
            "held_out": [value / max(float(held.counts.sum()), 1.0) for value in self.curve],
            "held_out_best": self.best,
            "plain_steps": self.plain_steps,
            "converged": self.has_ended,
        }


def even_folds(counts: Floats) -> Held:
    """Return four folds, each with every fourth record in the order of the tuples.

    A coarse cell says so little of its record that the chance differences between random folds outweigh it: EM then
    stops at its start, and differences between groups are lost.
    """
    total = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    held = np.stack([np.diff((total + fold) // FOLDS) for fold in range(FOLDS)], axis=1)
    held[:, held.sum(axis=0) == total[-1]] = 0
    return Held(held.astype(np.int32))


def folds_of(counts: Floats, weighed: Weighed | None = None, together: NDArray[np.int64] | None = None) -> Held:
    """Four folds by chance, independent of the rows' order; tuples of one number in `together` are in one fold.

    A fold that would hold out everything, or nothing, holds out nothing.
    """
    rng = np.random.default_rng(FOLD_SEED)
    if together is not None:
        fold = rng.integers(0, FOLDS, int(together.max(initial=0)) + 1)[together]
        whole = np.where(fold[:, None] == np.arange(FOLDS), counts[:, None], 0.0)
        whole[:, whole.sum(axis=0) >= counts.sum()] = 0
        return Held(whole)
    if weighed is not None:
        place, each = weighed
        order = np.lexsort((each, place))
        key = place[order] * FOLDS + rng.integers(0, FOLDS, len(place))
        weight = np.bincount(key, each[order], len(counts) * FOLDS).astype(np.float64).reshape(-1, FOLDS)
        weight[:, weight.sum(axis=0) >= each.sum()] = 0
        return Held(weight)
    tuple_of = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    fold = rng.integers(0, FOLDS, len(tuple_of))
    held = np.bincount(tuple_of * FOLDS + fold, minlength=len(counts) * FOLDS).reshape(-1, FOLDS)
    held[:, held.sum(axis=0) == len(fold)] = 0
    return Held(held.astype(np.int32))


def momentum(k: int) -> tuple[float, float]:
    """Return step k = 1, 2, ... of the nu-method: the momentum and the length of the new step."""
    a, b, c = k + 2 * NU - 1, 2 * k + 4 * NU - 1, 2 * k + 2 * NU
    return (k - 1) * (2 * k - 3) * (c - 1) / (a * b * (c - 3)), 4 * (c - 1) * (k + NU - 1) / (a * b)


class Walk:
    """Tables on the path: z = log x, the last two of them, and the number of plain steps that they represent.

    A table has so many dimensions, of which the first are slots; those of folds stand along one more.
    """

    def __init__(self, x: Floats, dimensions: int) -> None:
        self.inner = tuple(range(1, dimensions))
        self.k, self.time, self.before = 0, 0.0, 0.0
        self.totals = x.sum(axis=self.inner, keepdims=True)
        self.x, self.z = x, np.log(np.maximum(x, SMALLEST))
        self.last = self.z

    def advance(self, slope: Floats) -> None:
        """Take one step along log a(x); every slot (the first dimension) keeps its records."""
        self.k += 1
        again, length = momentum(self.k)
        z = self.z + again * (self.z - self.last) + length * slope
        self.last, self.z = self.z, z
        self.time, self.before = self.time + again * (self.time - self.before) + length, self.time
        self.settle()

    def settle(self) -> None:
        """Compute x from z, with the totals of the start; very small values are raised to a bound."""
        top = self.z.max(axis=self.inner, keepdims=True)
        x = np.exp(np.maximum(self.z - top, LOWEST))
        self.x = x * (self.totals / x.sum(axis=self.inner, keepdims=True))
        self.z = np.log(np.maximum(self.x, SMALLEST))

    def restart(self) -> None:
        """Go back to the table before the last step, and continue without momentum."""
        self.z, self.k, self.time = self.last, 0, self.before
        self.settle()
        self.last, self.before = self.z, self.time


def flattens(curve: list[float]) -> bool:
    """Return whether the score stopped improving, or the expected further gain is small."""
    if len(curve) <= 2 * WINDOW:
        return False
    if max(curve[-PATIENCE:]) <= max(curve[:-PATIENCE]):
        return True
    early, middle, last = curve[-1 - 2 * WINDOW], curve[-1 - WINDOW], curve[-1]
    first, second = middle - early, last - middle
    return bool(0 < second < first and second * second / (first - second) < ROOM / 4)


def search(
    records: Tuples, held: Held, outset: Outset, rule: Stopping, max_steps: int, progress: Progress | None = None
) -> Course:
    """Run EM from the start to the earliest step within half a nat of the best, then as far on all records."""
    walk, acc, score = Walk(outset.folds, len(records.shape)), outset.acc, outset.score
    curve: list[float] = []
    passed: dict[int, tuple[Floats, Floats, float, float, int]] = {}
    while True:
        if curve:
            acc, score = records.fold_pass(walk.x, held, outset.floor, scales(walk.x))
        if curve and not score > min(curve[0], curve[-1]) - (10 + 0.1 * (max(curve) - curve[0])) and walk.k > 1:
            walk.restart()
            acc, score = records.fold_pass(walk.x, held, outset.floor, scales(walk.x))
        passed[len(curve)] = walk.x, walk.last, walk.time, walk.before, walk.k
        curve.append(score)
        within = max(curve) - ROOM
        passed = {step: one for step, one in passed.items() if curve[step] >= within or step == len(curve) - 1}
        while len(passed) > max(2, KEPT // walk.x.size):
            del passed[min(passed)]
        if progress is not None:
            progress(len(curve), score)
        if flattens(curve) or len(curve) >= max_steps:
            break
        if float(np.abs(walk.x * acc - walk.x).max()) <= rule.still:
            break
        walk.advance(np.log(np.maximum(acc, SMALLEST)))
    best = min((step for step in passed if curve[step] >= within), default=len(curve) - 1)
    folds, last, time, before, k = passed[best]
    onward = Walk(outset.table, len(records.shape))
    if time > 0:
        onward.z, onward.last = (np.log(np.maximum(x.mean(axis=-1), SMALLEST)) for x in (folds, np.exp(last)))
        onward.settle()
        onward.k, onward.time, onward.before = k, time, before
    passes, time = len(curve) + 1, time * FOLDS / (FOLDS - 1)
    while onward.time < time - 1e-9:
        earlier, at = onward.z, onward.time
        onward.advance(np.log(np.maximum(records.em_pass(onward.x)[0], SMALLEST)))
        passes += 1
        if onward.time > time:
            onward.z = earlier + (time - at) / (onward.time - at) * (onward.z - earlier)
            onward.settle()
        if progress is not None:
            progress(passes - 1, score)
    if progress is not None:
        progress(passes, score)
    table = onward.x * records.em_pass(onward.x)[0]
    return Course(table, folds, curve, best, time + 1, passes, len(curve) < max_steps)


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


def rake(table: Floats, margins: Margins, rounds: int = ROUNDS) -> Floats:
    """Rake: return the table with these margins and the given table's associations; trailing dimensions are separate
    tables."""
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


def each(work: Callable[[Item], Made], items: Sequence[Item], tuples: int) -> list[Made]:
    """Apply the work to every item, in order; in parallel for many tuples, with identical results."""
    return side_by_side(work, items) if tuples >= MANY else [work(item) for item in items]


def single_columns(tuples: Tuples, held: Held, tolerance: float) -> list[Floats]:
    """Return the estimate of every entry of the tuples by itself, as (values, 1 + folds) arrays: of all records, then
    of those that each fold does not hold out."""

    def estimate(j: int) -> Floats:
        at, size = tuples.codes(j), len(tuples.rows[j])
        every = np.bincount(at, tuples.counts, size).astype(np.float64)
        counts = np.column_stack([every, every[:, None] - held.gathered(at, size)])
        return counts if j == 0 else np.stack([alone(j, one) for one in counts.T], axis=-1)

    def alone(j: int, counts: Floats) -> Floats:
        one, total = Tuples.single(tuples.rows[j], tuples.shape[j], counts), counts.sum()
        found = converge(one, np.full(one.shape, total / one.shape[1]), tolerance, MAX_MARGIN_STEPS).table[0]
        return np.asarray(found * (total / max(found.sum(), 1e-300)))

    return each(estimate, range(len(tuples.shape)), len(tuples))


def independent(singles: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the table of independent columns for all records, and those of the folds along the last dimension."""
    out = np.ones(singles[0].shape[1])
    for part in singles:
        out = out[..., None, :] * (part / np.maximum(part.sum(axis=0), 1e-300))
    out = out * singles[0].sum(axis=0)
    return np.ascontiguousarray(out[..., 0]), np.ascontiguousarray(out[..., 1:])


def by_held_out(
    tuples: Tuples,
    rule: Stopping,
    progress: Progress | None,
    max_steps: int,
    answers: Mapping[int, Floats] | None = None,
) -> Fit:
    """Estimate the table of several columns: from its pairs or from independence, stopped by held-out records, then
    raked.

    `answers` are what single columns asked for alone give, where that is not their maximum.
    """
    held = folds_of(tuples.counts, tuples.weighed)
    singles = single_columns(tuples, held, rule.tolerance)
    columns = [j for j, size in enumerate(tuples.shape) if size > 1]
    margins: dict[tuple[int, ...], Floats] = {(j,): (answers or {}).get(j, singles[j][:, 0]) for j in columns[::-1]}
    outset = Outset.of(tuples, held, *independent(singles))
    facts: dict[str, object] = {"start": "independence"}
    passes, pair_steps = 0, dict[tuple[int, ...], float]()

    def search_pair(kept: tuple[int, int]) -> Course:
        part, place = tuples.part(kept)
        out = Held(held.gathered(place, len(part)))
        slots = singles[0] if 0 in kept else singles[0].sum(axis=0, keepdims=True)
        few = [slots, *(singles[j] for j in kept if j > 0)]
        return search(part, out, Outset.of(part, out, *independent(few)), rule, max_steps, progress)

    if 3 <= len(columns) <= MOST_COLUMNS and prod(tuples.shape) <= RAKED_CELLS:
        wanted = list(reversed(list(combinations(columns, 2))))  # slots last: their records are known
        longest_first = sorted(wanted, key=lambda kept: -prod(tuples.shape[j] for j in kept))
        done = dict(zip(longest_first, each(search_pair, longest_first, len(tuples)), strict=True))
        pairs: dict[tuple[int, ...], Floats] = {}
        of_folds: dict[tuple[int, ...], Floats] = {}
        for kept in wanted:
            found = done[kept]
            table = found.table.reshape([tuples.shape[j] for j in kept])
            of_folds[kept] = found.folds.reshape([*table.shape, found.folds.shape[-1]])
            pairs[kept] = rake(table, {(i,): margins[kept[i],] for i in (1, 0)})
            passes += found.passes
            pair_steps[kept] = found.plain_steps
        raked = Outset.of(tuples, held, rake(outset.table, pairs), rake(outset.folds, of_folds))
        margins = pairs
        if raked.score > outset.score:
            outset = raked
            facts["start"] = "pairs of columns"
    found = search(tuples, held, outset, rule, max_steps, progress)
    facts |= found.facts(held)
    facts["pair_steps"] = pair_steps or dict.fromkeys(combinations(columns, 2), found.plain_steps)
    return Fit(rake(found.table, margins), passes + found.passes, facts)
