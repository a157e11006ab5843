"""EM over likelihood rows, whatever the cells say: how it starts, when it stops.

    x_c <- sum_i x_c L_i(c) / sum_g x_g L_i(g),      L_i(c) = prod_j P(cell_ij | c_j)

P(cell | value) is the design's for a drawn cell, 1 for a general value that covers the value (coarsening at random),
c_g(v) / N_v for a group. One attribute is brought to its maximum. Several together have many cells, and their maximum
fits noise: EM starts from independence of the attributes and goes on for as long as it predicts records that were held
out, then as far on all records. Tables of one hidden attribute by exact ones are treated like the latter: exact columns
split the records, and small slices need the others' help.

Tables of exact and drawn columns have a quicker way to that stop, and better starts: `held_out` and `raking`.

Two kernels stand behind it, and nobody here knows which one it is. `Frame` (exact and drawn columns) shares sums
between sets of one size; `Grid` (any columns) takes rows of any length. On drawn columns both find tables of the same
error, but `Grid` takes up to six times as long (300,000 records, 18 x 16 x 7 cells).

EM that takes long steps: every third one extrapolates the path (SQUAREM, on logarithms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Progress = Callable[[int, float], None]
Step = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], float]]
"""One EM step: the following table, and the log likelihood of the one given."""
LONGEST = 1e4
LEAST = -575.0
"""Logarithm of the smallest cell a long step may leave, beside the largest: a denormal one would overflow the next."""


def ascend(
    step: Step, x: NDArray[np.float64], tolerance: float, max_steps: int, progress: Progress | None = None
) -> tuple[NDArray[np.float64], int, float]:
    """EM until a step moves no cell by more than `tolerance`. Returns the table, the steps and the last change.

    An extrapolation that lowers the likelihood is taken back.
    """
    total = x.sum()
    best, fallback, change, steps = -np.inf, x, np.inf, 0
    path: list[NDArray[np.float64]] = []
    while steps < max_steps:
        following, value = step(x)
        steps += 1
        if value < best - 1e-9 * abs(best):
            x, path, best = fallback, [], -np.inf
            continue
        best, change = value, float(np.abs(following - x).max())
        path.append(np.log(np.maximum(x, 1e-300)))
        x = following
        if progress is not None:
            progress(steps, change)
        if change <= tolerance:
            break
        if len(path) == 3:
            first, second = path[1] - path[0], path[2] - path[1]
            weight = np.sqrt(x)  # cells on their way to zero move fastest on this scale and matter least
            bend = float(np.linalg.norm(weight * (second - first)))
            length = min(LONGEST, float(np.linalg.norm(weight * first)) / max(bend, 1e-300))
            fallback = x
            if length > 1:
                x = path[0] + 2 * length * first + length**2 * (second - first)
                x = np.exp(np.maximum(x - x.max(), LEAST))
                x *= total / x.sum()
            path = []
    return x, steps, change


MAX_STEPS = 2000
FOLDS = 4
PATIENCE = 5
HELD_OUT_MIX = 0.01  # share of the start mixed in when held-out records are scored: an empty cell is not impossible
FOLD_SEED = 20180  # which records are held out together; fixed, so that an answer can be repeated
PLAIN_STEPS = 5  # before steps are lengthened: short fits need a fine choice of where to stop
SAFE = 1.8  # step length; below 2 EM still converges whatever the table


@dataclass(frozen=True)
class Fit:
    """An estimated table, the number of iterations, and how they were stopped."""

    table: NDArray[np.float64]
    iterations: int
    diagnostics: dict[str, Any] = field(default_factory=dict)
    maximum: NDArray[np.float64] | None = None
    """Where the likelihood is largest, if the table was drawn away from there on purpose."""


@dataclass(frozen=True)
class Stopping:
    """When EM stops. The rule is one; what is set here was measured on each kind of table."""

    tolerance: float
    """Records: one attribute stops when no cell moves by more."""
    still: float = 0.01
    """Records: several attributes also stop when no cell moves by more in any fold."""
    gain: float = 0.0
    """Log likelihood of all held-out records: less within PATIENCE steps is nothing."""
    longest: float = 1.0
    """Length of the longest step."""
    is_shuffled: bool = True
    """Hold out random records; otherwise every fourth in the order of the table."""
    is_whole: bool = False
    """Take a whole number of steps in all."""
    together: NDArray[np.int64] | None = None
    """Tuples of one number are held out together: records of a class tell of each other."""

    def folds(self, counts: NDArray[np.float64]) -> NDArray[np.int32]:
        """(folds, tuples): how many of each tuple's records are held out; independent of the rows' order."""
        if self.together is not None:
            return whole_folds(counts, self.together)
        return shuffled_folds(counts) if self.is_shuffled else regular_folds(counts)


DRAWN = Stopping(tolerance=0.1, longest=4.0)
"""Where sets are drawn: many steps, which may be long."""
COARSE = Stopping(tolerance=0.01, gain=0.1, is_shuffled=False, is_whole=True)
"""Where all that is hidden is coarse."""


class Passes(Protocol):
    """Records over which EM can take a step."""

    @property
    def counts(self) -> NDArray[np.float64]:
        """How often each distinct tuple of cells occurs."""

    def em_pass(
        self,
        x: NDArray[np.float64],
        held: NDArray[np.int32] | None = None,
        floor: NDArray[np.float64] | None = None,
        scale: float = 1.0,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """sum_i L_i(c) / (L_i . x) over the records not held out; every tuple's L . x; and the log likelihood of
        the held ones, sum of log(scale L_i . x + floor_i)."""


class Evidence(Passes, Protocol):
    """What EM needs to know of the records to estimate a table."""

    @property
    def stopping(self) -> Stopping:
        """When to stop."""

    def known(self) -> Fit | None:
        """The table, if nothing of it has to be estimated."""

    @property
    def is_single(self) -> bool:
        """One hidden attribute, and nothing splits the records."""

    def alone(self, rule: Stopping, max_steps: int, progress: Progress | None) -> Fit:
        """The maximum of the likelihood of a single attribute."""

    def start(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The table in which the attributes are independent, if tuple t occurs counts[t] times."""


@runtime_checkable
class Searched(Protocol):
    """Evidence that has a way of its own to the held-out optimum."""

    def searched(self, rule: Stopping, max_steps: int, progress: Progress | None) -> Fit:
        """The table of several attributes."""


def fit(
    evidence: Evidence,
    progress: Progress | None = None,
    *,
    tolerance: float | None = None,
    max_steps: int = MAX_STEPS,
) -> Fit:
    """The likelihood estimate, by the stopping rule that the table's form calls for."""
    rule = evidence.stopping
    if tolerance is not None:
        rule = replace(rule, tolerance=tolerance, still=tolerance)
    found = evidence.known()
    if found is not None:
        return found
    if evidence.is_single:
        return evidence.alone(rule, max_steps, progress)
    if isinstance(evidence, Searched):
        return evidence.searched(rule, max_steps, progress)
    return stop_by_held_out(evidence, rule, progress, max_steps)


def converge(
    records: Passes, x: NDArray[np.float64], tolerance: float, max_steps: int, progress: Progress | None = None
) -> Fit:
    """EM until a step moves no cell by more than `tolerance` records."""

    def step(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        acc, sums, _ = records.em_pass(table)
        return table * acc, float((records.counts * np.log(np.maximum(sums, 1e-300))).sum())

    table, steps, change = ascend(step, x, tolerance, max_steps, progress)
    return Fit(table, steps, {"stopping": "converged", "last_change": change, "converged": change <= tolerance})


def shuffled_folds(counts: NDArray[np.float64]) -> NDArray[np.int32]:
    """Every record is held out in one fold, by chance.

    A large table's curve is smooth: above 200,000 records two of the four folds are scored, above a million one.
    """
    rng = np.random.default_rng(FOLD_SEED)
    tuple_of = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    fold = rng.integers(0, FOLDS, len(tuple_of))
    scored = 4 if len(fold) <= 200_000 else 2 if len(fold) <= 1_000_000 else 1
    return np.stack([np.bincount(tuple_of[fold == f], minlength=len(counts)) for f in range(scored)]).astype(np.int32)


def regular_folds(counts: NDArray[np.float64]) -> NDArray[np.int32]:
    """Every fourth record in the order of the tuples is held out; above 200,000 records one fold is scored."""
    total = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    scored = FOLDS if total[-1] <= 200_000 else 1
    return np.stack([np.diff((total + f) // FOLDS) for f in range(scored)]).astype(np.int32)


def whole_folds(counts: NDArray[np.float64], together: NDArray[np.int64]) -> NDArray[np.int32]:
    """All records of the tuples that belong together are held out in one fold, by chance; above 200,000 records one
    fold is scored."""
    rng = np.random.default_rng(FOLD_SEED)
    fold = rng.integers(0, FOLDS, int(together.max(initial=0)) + 1)[together]
    scored = FOLDS if counts.sum() <= 200_000 else 1
    return np.stack([np.where(fold == f, counts, 0.0) for f in range(scored)]).astype(np.int32)


def stride(step: int, longest: float) -> float:
    """Length of a step: x acc^length, so that a step does the work of about `length` plain ones."""
    return 1.0 if step < PLAIN_STEPS else min(longest, 1.0 + 0.1 * (step - PLAIN_STEPS))


def advance(x: NDArray[np.float64], acc: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """One EM step of the given length; every slot (the table's first dimension) keeps its records."""
    if length == 1.0:
        return x * acc
    inner = tuple(range(1, x.ndim))
    plain, moved = (x * acc).sum(axis=inner, keepdims=True), x * acc**length
    return np.asarray(moved * (plain / np.maximum(moved.sum(axis=inner, keepdims=True), 1e-300)))


def stop_by_held_out(
    evidence: Evidence, rule: Stopping, progress: Progress | None = None, max_steps: int = MAX_STEPS
) -> Fit:
    """EM from independence, for as long as it predicts held-out records better (4 folds), on all records.

    All records are 4/3 of a fold's, so the last fit goes 4/3 as far. Steps may be lengthened on the way; if the score
    falls while they are longer than is safe, the step is taken back and they are shortened for good.

    What predicts other records best is the population, and the table's own counts differ from it by chance. They are
    expected to be what every record's cells say with that population as prior: the last step, a plain one.
    """
    counts = evidence.counts
    n = float(counts.sum())
    held = [h for h in rule.folds(counts) if 0 < h.sum() < n]
    tables = [evidence.start(counts - h) for h in held]
    floors = [evidence.em_pass(x)[1] * (HELD_OUT_MIX / x.sum()) for x in tables]
    scored = sum(float(h.sum()) for h in held)
    before, accs = tables, tables
    curve: list[float] = []
    lengths: list[float] = []
    longest, best = rule.longest, 0
    while held and len(curve) < max_steps:
        passes = [
            evidence.em_pass(x, h, floor, (1 - HELD_OUT_MIX) / x.sum())
            for x, h, floor in zip(tables, held, floors, strict=True)
        ]
        score = sum(value for _, _, value in passes) / scored
        if lengths and lengths[-1] > SAFE and score < curve[-1]:
            longest = lengths[-1] = SAFE
            tables = [advance(x, acc, SAFE) for x, acc in zip(before, accs, strict=True)]
            continue
        curve.append(score)
        best = len(curve) - 1 if score > curve[best] else best
        if progress is not None:
            progress(len(curve), score)
        if len(curve) > PATIENCE and max(curve[-PATIENCE:]) <= max(curve[:-PATIENCE]) + rule.gain / scored:
            break
        before, accs = tables, [acc for acc, _, _ in passes]
        if max(float(np.abs(x * acc - x).max()) for x, acc in zip(before, accs, strict=True)) <= rule.still:
            break
        lengths.append(stride(len(lengths), longest))
        tables = [advance(x, acc, lengths[-1]) for x, acc in zip(before, accs, strict=True)]
    togo = sum(lengths[:best]) * FOLDS / (FOLDS - 1)
    togo = max(1.0, float(round(togo))) - 1 if rule.is_whole else togo
    x, step, distance = evidence.start(counts), 0, togo + 1
    while togo > 1e-9:
        length = min(togo, lengths[step] if step < len(lengths) else stride(step, longest))
        x = advance(x, evidence.em_pass(x)[0], length)
        step, togo = step + 1, togo - length
        if progress is not None:
            progress(len(curve) + step, curve[best])
    x = x * evidence.em_pass(x)[0]
    return Fit(
        x,
        step + 1,
        {
            "stopping": "held-out likelihood",
            "folds": len(held),
            "held_out": curve,
            "held_out_best": best,
            "plain_steps": distance,
            "converged": len(curve) < max_steps,
        },
    )
