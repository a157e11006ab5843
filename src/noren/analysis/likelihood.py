"""Maximum likelihood on whole sets: what every record's published sets say together, by EM.

    x_c <- sum_i x_c L_i(c) / sum_g x_g L_i(g),      L_i(c) = prod_j P(R_ij | c_j)

For one attribute the maximum is what we want. For several it fits noise: the cells are many and each record's sets
name a whole block of them. There EM starts from independence of the attributes and is stopped where the
likelihood of held-out records is highest, then run as long on all records. Tables of one decoy attribute
by exact ones are treated like the latter: exact columns split the records, and small slices need the others' help.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.analysis.ascent import Progress, ascend
from noren.analysis.axes import Frame
from noren.analysis.tuples import Tuples

TOLERANCE = 0.1  # records: one attribute stops when no cell moves by more
STILL = 0.01  # records: several attributes also stop when no cell moves by more in any fold
MAX_STEPS = 2000
FOLDS = 4
PATIENCE = 5
HELD_OUT_MIX = 0.01  # share of the start mixed in when held-out records are scored: an empty cell is not impossible
FOLD_SEED = 20180  # which records are held out together; fixed, so that an answer can be repeated
PLAIN_STEPS = 5  # before steps are lengthened: short fits need a fine choice of where to stop
LONGEST, SAFE = 4.0, 1.8  # step lengths; below 2 EM still converges whatever the table


@dataclass(frozen=True)
class Fit:
    """An estimated table (slot, decoys), the number of iterations, and how they were stopped."""

    table: NDArray[np.float64]
    iterations: int
    diagnostics: dict[str, Any] = field(default_factory=dict)


def fit(frame: Frame, progress: Progress | None = None) -> Fit:
    """The likelihood estimate of a frame's table, by the stopping rule that its form calls for."""
    tuples = frame.tuples
    if not frame.decoys:
        return Fit(tuples.inclusions(), 0, {"stopping": "nothing to estimate"})
    if frame.kept == 0:
        return Fit(np.zeros(frame.shape), 0, {"stopping": "no records"})
    if frame.shape[0] * len(frame.decoys) == 1:
        return converge(tuples, np.full(frame.shape, frame.kept / frame.shape[1]), progress)
    return stop_by_held_out(frame, progress)


def maximum(frame: Frame, found: Fit) -> NDArray[np.float64]:
    """Where EM would end: the table that intervals stand around, since one that was stopped early is still near its
    start.

    Only for one semantic column split by exact ones. Its sets tell distant values apart, hence little about neighbours,
    and stopping early shows; elsewhere it does not, and going on would cost more than it gives.
    """
    split = frame.shape[0] > 1 and len(frame.decoys) == 1 and frame.decoys[0].solution is not None
    if not split or frame.kept == 0:
        return found.table
    return converge(frame.tuples, np.maximum(found.table, 1e-6)).table


def converge(tuples: Tuples, x: NDArray[np.float64], progress: Progress | None = None) -> Fit:
    """EM until a step moves no cell by a tenth of a record."""
    none, zero = np.zeros(len(tuples), np.int32), np.zeros(len(tuples))

    def step(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        acc, sums, _ = tuples.em_pass(table, none, zero, 1.0)
        return table * acc, float(tuples.counts @ np.log(np.maximum(sums, 1e-300)))

    table, steps, change = ascend(step, x, TOLERANCE, MAX_STEPS, progress)
    return Fit(table, steps, {"stopping": "converged", "last_change": change, "converged": change <= TOLERANCE})


def independence(frame: Frame, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The table in which the attributes are independent: the product of their one-dimensional estimates.

    `counts` says how many records of each tuple are taken into account.
    """
    table = frame.tuples.margin(0, len(frame.slots), counts)
    for j, (axis, sets, weights) in enumerate(zip(frame.decoys, frame.sets, frame.weights, strict=True), start=1):
        one = Tuples.single(axis.design, sets, frame.tuples.margin(j, len(sets), counts), weights)
        margin = converge(one, np.full(one.shape, counts.sum() / axis.design.d)).table[0]
        table = table[..., None] * (margin / margin.sum())
    return table


def folds_of(counts: NDArray[np.float64]) -> NDArray[np.int32]:
    """(folds, tuples): how many of each tuple's records are held out in each fold; independent of the rows' order.

    A large table's curve is smooth: above 200,000 records two of the four folds are scored, above a million one.
    """
    rng = np.random.default_rng(FOLD_SEED)
    tuple_of = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    fold = rng.integers(0, FOLDS, len(tuple_of))
    scored = 4 if len(fold) <= 200_000 else 2 if len(fold) <= 1_000_000 else 1
    return np.stack([np.bincount(tuple_of[fold == f], minlength=len(counts)) for f in range(scored)]).astype(np.int32)


def stride(step: int, longest: float) -> float:
    """Length of a step: x acc^length, so that a step does the work of about `length` plain ones."""
    return 1.0 if step < PLAIN_STEPS else min(longest, 1.0 + 0.1 * (step - PLAIN_STEPS))


def advance(x: NDArray[np.float64], acc: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """One EM step of the given length; every slot keeps its records."""
    if length == 1.0:
        return x * acc
    inner = tuple(range(1, x.ndim))
    plain, moved = (x * acc).sum(axis=inner, keepdims=True), x * acc**length
    return np.asarray(moved * (plain / np.maximum(moved.sum(axis=inner, keepdims=True), 1e-300)))


def stop_by_held_out(frame: Frame, progress: Progress | None = None) -> Fit:
    """EM from independence, for as long as it predicts held-out records better (4 folds), on all records.

    Every fold starts from its own margins: a start that has seen the held-out records would look too good to
    leave. All records are 4/3 of a fold's, so the last fit goes 4/3 as far. Steps are lengthened on the way; if the
    score falls while they are longer than is safe, the step is taken back and they are shortened for good.

    What predicts other records best is the population, and the table's own counts differ from it by chance. They are
    expected to be what every record's sets say with that population as prior: one more step.
    """
    tuples, n = frame.tuples, frame.kept
    none, zero = np.zeros(len(tuples), np.int32), np.zeros(len(tuples))
    held = [h for h in folds_of(tuples.counts) if 0 < h.sum() < n]
    kept = [float(n - h.sum()) for h in held]
    tables = [independence(frame, tuples.counts - h) for h in held]
    floors = [tuples.em_pass(x, none, zero, 1.0)[1] * (HELD_OUT_MIX / m) for x, m in zip(tables, kept, strict=True)]
    before, accs = tables, tables
    curve: list[float] = []
    lengths: list[float] = []
    longest, best = LONGEST, 0
    while held and len(curve) < MAX_STEPS:
        passes = [
            tuples.em_pass(x, h, floor, (1 - HELD_OUT_MIX) / m)
            for x, h, floor, m in zip(tables, held, floors, kept, strict=True)
        ]
        score = sum(value for _, _, value in passes) / sum(n - m for m in kept)
        if lengths and lengths[-1] > SAFE and score < curve[-1]:
            longest = lengths[-1] = SAFE
            tables = [advance(x, acc, SAFE) for x, acc in zip(before, accs, strict=True)]
            continue
        curve.append(score)
        if score > curve[best]:
            best = len(curve) - 1
        if progress is not None:
            progress(len(curve), score)
        if len(curve) - 1 - best >= PATIENCE:
            break
        before, accs = tables, [acc for acc, _, _ in passes]
        if max(float(np.abs(x * acc - x).max()) for x, acc in zip(before, accs, strict=True)) <= STILL:
            break
        lengths.append(stride(len(lengths), longest))
        tables = [advance(x, acc, lengths[-1]) for x, acc in zip(before, accs, strict=True)]
    x, step = independence(frame, tuples.counts), 0
    togo = sum(lengths[:best]) * FOLDS / (FOLDS - 1)
    while togo > 1e-9:
        length = min(togo, lengths[step] if step < len(lengths) else stride(step, longest))
        x = advance(x, tuples.em_pass(x, none, zero, 1.0)[0], length)
        step, togo = step + 1, togo - length
        if progress is not None:
            progress(len(curve) + step, curve[best])
    x = x * tuples.em_pass(x, none, zero, 1.0)[0]
    return Fit(
        x,
        step + 1,
        {
            "stopping": "held-out likelihood",
            "folds": len(held),
            "held_out": curve,
            "held_out_best": best,
            "plain_steps": sum(lengths[:best]) * FOLDS / (FOLDS - 1) + 1,
            "converged": len(curve) < MAX_STEPS,
        },
    )
