"""EM on several columns, stopped by held-out records and brought there in few passes.

The maximum of the likelihood of many cells fits noise, so EM starts from a simple table and goes on for as long as it
predicts records that were held out. Plain steps damp what the records tell with certainty first and the rest later, at
rates in [0, 1] (see `path`); the semi-iterative nu-method does the same to that order of directions in about the square
root of the steps, without a line search. Four folds walk side by side, one pass over the records serving all of them.
Where records are many, most steps see a sample of them only (`sampled`), and the curve is known where all were seen.

The stop is the earliest step within half a nat of the best: beyond it the curve is flat and noise decides. What all
records say there is the mean of what the folds say, and goes on as 4/3 of the records ask for. What predicts other
records best is the population, and the table's own counts differ from it by chance: the last step is a plain one.

Which records of a table are held out, by tuple and fold.

Steps of EM between looks at all records, by a sample of them.

Where millions of tuples say much the same, few passes have to see all of them. A look at the table x_0 finds what all
records say there, a_0 = a(x_0). From there on

    log a(x) ~ log a_0 + log b(x) - log b(x_0)

with b the same sum over a sample of the tuples: what is sampled is only the change since the look, so the error is a
small share of that change (about the square root of cells per sampled tuple), and the next look takes it away. How
far apart looks can be is told by each of them: it sees what the sample had said, and what is true.

A sampled tuple keeps the fold that its records are held out in: no fold sees a record that it is scored by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.fit import FOLD_SEED, FOLDS, HELD_OUT_MIX, LEAST, Progress, Stopping
from noren.estimates.counts.tuples import Tuples, Weighed


class Held(NamedTuple):
    """Which records each of four folds holds out, every record once or never."""

    counts: NDArray[np.int32] | NDArray[np.float64]
    """(tuples, folds): how many, or of weighted records what they weigh"""
    only: NDArray[np.int8]
    """The fold of a tuple that occurs once, -1 for the others."""

    @classmethod
    def of(cls, held: NDArray[np.int32] | NDArray[np.float64], counts: NDArray[np.float64]) -> Held:
        a, b, c, d = held.T
        once = (counts == 1) & (a + b + c + d == 1)
        return cls(held, np.where(once, b + 2 * c + 3 * d, -1).astype(np.int8))

    def rows(self, chosen: NDArray[np.int64]) -> Held:
        """Those of some tuples."""
        return Held(self.counts[chosen], self.only[chosen])

    def gathered(self, place: NDArray[np.int64], size: int) -> NDArray[np.int32] | NDArray[np.float64]:
        """(size, folds): how many are held out if tuple t is counted at place[t]."""
        folds, once = self.counts.shape[1], self.only >= 0
        key = np.where(once, place * folds + self.only, size * folds)
        total = np.bincount(key, minlength=size * folds + 1)[:-1].astype(self.counts.dtype)
        others = np.flatnonzero(~once)
        np.add.at(total, place[others, None] * folds + np.arange(folds), self.counts[others])
        gathered: NDArray[Any] = total.reshape(size, folds)
        return gathered


Floats = NDArray[np.float64]
SEED = 1990  # which tuples are sampled; fixed, so that an answer can be repeated
LEAST_TUPLES = 20_000  # of a sample
PER_CELL = 200  # tuples of a sample, at least, for every cell of the table
WORTH: float = 4  # a sample is taken if it has at most one in so many tuples
NEAR, FAR = 0.3, 1.0  # by what share of a step the sample is wrong at the next look: then later, or sooner
SMALLEST = 1e-300


def chosen(records: Tuples) -> NDArray[np.int64] | None:
    """Which tuples are sampled; None if all of them are soon looked at."""
    every = len(records) // max(LEAST_TUPLES, PER_CELL * prod(records.shape))
    if every < WORTH:
        return None
    return np.flatnonzero(np.random.default_rng(SEED).integers(0, every, len(records)) == 0)


class Looks:
    """The slope log a(x), by all records or by a sample, and how many steps there are from one look to the next."""

    def __init__(self, sample: Callable[[Floats], Floats] | None) -> None:
        self.sample = sample
        self.base: Floats | None = None
        self.apart = 0

    @classmethod
    def of_folds(cls, records: Tuples, held: Held) -> Looks:
        """Of four tables along the last dimension, each without its held-out records."""
        rows = chosen(records)
        if rows is None:
            return cls(None)
        part, out = records.rows(rows), held.rows(rows)
        return cls(lambda x: part.fold_pass(x, out)[0])

    @classmethod
    def of_all(cls, records: Tuples) -> Looks:
        rows = chosen(records)
        if rows is None:
            return cls(None)
        part = records.rows(rows)
        return cls(lambda x: part.em_pass(x)[0])

    def seen(self, x: Floats, acc: Floats) -> Floats:
        """The slope at x, where all records say acc."""
        slope = _log(acc)
        if self.sample is None:
            return slope
        sampled = _log(self.sample(x))
        if self.base is not None:
            wrong = float((x * np.abs(self.base + sampled - slope)).sum() / max((x * np.abs(slope)).sum(), SMALLEST))
            self.apart = 2 * self.apart + 1 if wrong < NEAR else self.apart // 2 if wrong > FAR else self.apart
        self.base = slope - sampled
        return slope

    def close(self) -> None:
        """A sample that misled is not asked again."""
        self.sample, self.apart = None, 0

    def between(self, x: Floats) -> Floats:
        """The slope at a table not far from the last that was looked at."""
        if self.sample is None or self.base is None:
            raise RuntimeError("There was no look at all records yet.")
        return self.base + _log(self.sample(x))


def _log(acc: Floats) -> Floats:
    return np.log(np.maximum(acc, SMALLEST))


NU = 3.0  # order of the method: larger damps more like plain steps and takes longer
ROOM = 0.5  # nats below the best held-out likelihood that count as the best
PATIENCE = 3  # passes without a new best
WINDOW = 3  # steps over which the curve's gains are compared
KEPT = 20_000_000  # cells of earlier tables that are kept for going back
SPARSE = 0.34  # share of the steps so far that may follow before the score is looked at again


@dataclass(frozen=True)
class Outset:
    """A table to start from, those of the folds, and what a first pass over the records says of them."""

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
    """What makes each fold's table one of probabilities, apart from the share that the floor has."""
    return np.asarray((1 - HELD_OUT_MIX) / folds.sum(axis=tuple(range(folds.ndim - 1))))


@dataclass(frozen=True)
class Course:
    """Where EM stopped: the table of all records, those of the folds, and the curve that decided."""

    table: Floats
    folds: Floats
    """Along the last dimension: what the records of each fold's training part say."""
    curve: list[float]
    """Log likelihood of all held-out records wherever they were looked at."""
    steps: list[int]
    """At which steps that was."""
    best: int
    plain_steps: float
    passes: int
    has_ended: bool
    stops: int = 1
    """Of how many bands of slots each has a stop of its own; curve, best and steps are then those of the largest."""


def folds_of(counts: Floats, weighed: Weighed | None = None) -> Held:
    """Four folds by chance, independent of the rows' order.

    A fold that would hold out everything, or nothing, holds out nothing.
    """
    rng = np.random.default_rng(FOLD_SEED)
    if weighed is not None:
        place, each = weighed
        order = np.lexsort((each, place))
        key = place[order] * FOLDS + rng.integers(0, FOLDS, len(place))
        weight = np.bincount(key, each[order], len(counts) * FOLDS).astype(np.float64).reshape(-1, FOLDS)
        weight[:, weight.sum(axis=0) >= each.sum()] = 0
        return Held.of(weight, counts)
    tuple_of = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    fold = rng.integers(0, FOLDS, len(tuple_of))
    held = np.bincount(tuple_of * FOLDS + fold, minlength=len(counts) * FOLDS).reshape(-1, FOLDS)
    held[:, held.sum(axis=0) == len(fold)] = 0
    return Held.of(held.astype(np.int32), counts)


def momentum(k: int) -> tuple[float, float]:
    """Step k = 1, 2, ... of the nu-method: how much of the last move is repeated, and the length of the new one."""
    a, b, c = k + 2 * NU - 1, 2 * k + 4 * NU - 1, 2 * k + 2 * NU
    return (k - 1) * (2 * k - 3) * (c - 1) / (a * b * (c - 3)), 4 * (c - 1) * (k + NU - 1) / (a * b)


class Walk:
    """Tables on their way: z = log x, the last two of them, and how many plain steps they stand for."""

    def __init__(self, x: Floats) -> None:
        self.inner = tuple(range(1, x.ndim)) if x.ndim > 1 else ()
        self.k, self.time, self.before = 0, 0.0, 0.0
        self.totals = x.sum(axis=self.inner, keepdims=True)
        self.x, self.z = x, np.log(np.maximum(x, SMALLEST))
        self.last = self.z

    @classmethod
    def of_folds(cls, x: Floats) -> Walk:
        """Tables side by side along the last dimension, each slot of each keeping its records."""
        walk = cls(x)
        walk.inner = tuple(range(1, x.ndim - 1))
        walk.totals = x.sum(axis=walk.inner, keepdims=True)
        return walk

    def advance(self, slope: Floats) -> None:
        """One step; every slot (the first dimension) keeps its records."""
        self.k += 1
        again, length = momentum(self.k)
        z = self.z + again * (self.z - self.last) + length * slope
        self.last, self.z = self.z, z
        self.time, self.before = self.time + again * (self.time - self.before) + length, self.time
        self.settle()

    def settle(self) -> None:
        """x of z, neither too large nor too small to go on with."""
        top = self.z.max(axis=self.inner, keepdims=True)
        x = np.exp(np.maximum(self.z - top, LEAST))
        self.x = x * (self.totals / x.sum(axis=self.inner, keepdims=True))
        self.z = np.log(np.maximum(self.x, SMALLEST))

    def restart(self) -> None:
        """Back to the table before the last step, and on from there without momentum."""
        self.back(self.last, self.before)

    def back(self, z: Floats, time: float) -> None:
        """To an earlier table, and on from there without momentum."""
        self.z, self.k, self.time = z, 0, time
        self.settle()
        self.last, self.before = self.z, self.time


def flattens(curve: list[float], steps: list[int] | None = None) -> bool:
    """No better for some steps, or what is still to be gained, going on as now, is little beside the room there is.

    `steps` says at which steps the curve is known, if not at all of them.
    """
    at = np.array(steps if steps is not None else range(len(curve)))
    if at[-1] < 2 * WINDOW:
        return False
    apart = int(at[-1] - at[-2])
    recent = at > at[-1] - max(PATIENCE, apart)
    known = np.array(curve)
    if known[recent].max() <= known[~recent].max():
        return True
    window = max(WINDOW, apart)
    last, middle, early = np.interp([at[-1], at[-1] - window, at[-1] - 2 * window], at, known)
    first, second = middle - early, last - middle
    return bool(0 < second < first and second * second / (first - second) < ROOM / 4)


class Trail:
    """The tables on a walk, and the score of held-out records wherever these were looked at."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.steps: list[int] = []
        self.curve: list[float] = []
        self.passed: dict[int, tuple[Floats, Floats, float, float, int]] = {}

    def note(self, step: int, walk: Walk) -> None:
        self.passed[step] = walk.x, walk.last, walk.time, walk.before, walk.k
        while len(self.passed) > self.room:
            del self.passed[min(self.passed)]

    def score(self, step: int, value: float) -> None:
        """Tables before the last look that is too far below the best are of no more use."""
        self.steps.append(step)
        self.curve.append(value)
        within = max(self.curve) - ROOM
        first = next(i for i, one in enumerate(self.curve) if one >= within)
        least = self.steps[max(first - 1, 0)]
        self.passed = {i: one for i, one in self.passed.items() if i >= least}

    def retreat(self, walk: Walk) -> int:
        """Back to the last look, as if it had not been; its step."""
        step = self.steps.pop()
        self.curve.pop()
        x, _, time, _, _ = self.passed[step]
        walk.back(np.log(np.maximum(x, SMALLEST)), time)
        self.passed = {i: one for i, one in self.passed.items() if i <= step}
        return step

    def best(self) -> int:
        """The earliest step within half a nat of the best."""
        among = sorted(self.passed)
        scores = np.maximum(smooth(np.array(among), self.steps, self.curve), min(self.curve))
        within = np.flatnonzero(scores >= max(float(scores.max()), *self.curve) - ROOM)
        return among[int(within[0])] if within.size else among[-1]


def smooth(at: NDArray[np.int64], steps: list[int], curve: list[float]) -> Floats:
    """A curve that is known at some steps, at any between the first and the last: cubic, and as steep at every known
    step as the parabola through its neighbours."""
    if len(steps) < 3:
        return np.interp(at, steps, curve)
    known, value = np.array(steps, np.float64), np.array(curve)
    steep = np.gradient(value, known, edge_order=2)
    right = np.clip(np.searchsorted(known, at), 1, len(known) - 1)
    width = known[right] - known[right - 1]
    t = (at - known[right - 1]) / width
    low, high = value[right - 1], value[right]
    bend = t * (1 - t) * width * ((1 - t) * steep[right - 1] - t * steep[right])
    return np.asarray(low + (high - low) * t * t * (3 - 2 * t) + bend)


def search(
    records: Tuples,
    held: Held,
    outset: Outset,
    rule: Stopping,
    max_steps: int,
    progress: Progress | None = None,
) -> Course:
    """EM from the outset to the stop."""
    start, folds, floor = outset.table, outset.folds, outset.floor
    acc, score = outset.acc, outset.score
    walk = Walk.of_folds(folds)
    looks = Looks.of_folds(records, held)
    trail = Trail(max(2, KEPT // folds.size))
    curve, step = trail.curve, 0
    while True:
        if curve:
            acc, score = records.fold_pass(walk.x, held, floor, scales(walk.x))
        if curve and not score > min(curve[0], curve[-1]) - (10 + 0.1 * (max(curve) - curve[0])) and walk.k > 1:
            if step - trail.steps[-1] > 1:
                step = trail.retreat(walk)
                looks.close()
            else:
                walk.restart()
            acc, score = records.fold_pass(walk.x, held, floor, scales(walk.x))
        trail.note(step, walk)
        trail.score(step, score)
        if progress is not None:
            progress(len(curve), score)
        if flattens(curve, trail.steps) or step + 1 >= max_steps:
            break
        if float(np.abs(walk.x * acc - walk.x).max()) <= rule.still:
            break
        walk.advance(looks.seen(walk.x, acc))
        step += 1
        for _ in range(min(looks.apart, int(step * SPARSE), trail.room - 2, max_steps - 1 - step)):
            trail.note(step, walk)
            walk.advance(looks.between(walk.x))
            step += 1
    best = trail.best()
    x, last, time, before, k = trail.passed[best]
    onward = Walk(start if k == 0 else x.mean(axis=-1) * (start.sum() / x.mean(axis=-1).sum()))
    onward.totals = start.sum(axis=onward.inner, keepdims=True)
    onward.settle()
    onward.k, onward.time, onward.before = k, time, before
    onward.last = onward.z if k == 0 else np.log(np.maximum(np.exp(last).mean(axis=-1), SMALLEST))
    table, passes = _as_far(records, onward, time * FOLDS / (FOLDS - 1), progress, len(curve), score)
    distance = time * FOLDS / (FOLDS - 1) + 1
    return Course(table, x, curve, trail.steps, best, distance, len(curve) + passes, step + 1 < max_steps)


def _as_far(
    records: Tuples, walk: Walk, time: float, progress: Progress | None, told: int, score: float
) -> tuple[Floats, int]:
    """All records from where the folds stopped to a later time, then one plain step; and the passes that took."""
    passes, looks, left = 0, Looks.of_all(records), 0
    while walk.time < time - 1e-9:
        earlier, at = walk.z, walk.time
        if left == 0:
            walk.advance(looks.seen(walk.x, records.em_pass(walk.x)[0]))
            passes, left = passes + 1, looks.apart
        else:
            walk.advance(looks.between(walk.x))
            left -= 1
        if walk.time > time:
            walk.z = earlier + (time - at) / (walk.time - at) * (walk.z - earlier)
            walk.time = time
            walk.settle()
        if progress is not None:
            progress(told + passes, score)
    if progress is not None:
        progress(told + passes + 1, score)
    return walk.x * records.em_pass(walk.x)[0], passes + 1
