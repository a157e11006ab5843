"""Histograms from sets of decoys: the paper's iteration, and ours.

The library's estimators answer one question at a time with intervals. Here hundreds of questions need counts alone, so
the paper's iteration runs for all of them at once, and ours is a few matrix products; tests compare both with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.statements import SetCells

Floats = NDArray[np.float64]
EPSILON = 1.0
"""The paper stops when no cell of its iteration moves by more, before it divides by l."""
MOST_STEPS = 20_000
FOLDS = 4
PATIENCE = 3
WORTH = 0.1
"""A step must raise the log likelihood of all held-out records together by this much."""
TINY = np.float32(1e-30)
LONGEST = 150
MIXED = 0.01
"""Share of the start that is mixed in when held-out records are scored: an empty value is not impossible."""


def membership(cells: SetCells, eta: int) -> NDArray[np.float32]:
    """(records, values): 1 where a record's set holds the value."""
    out = np.zeros((len(cells), cells.d), np.float32)
    np.put_along_axis(out, cells.codes(eta).astype(np.int64), np.float32(1), axis=1)
    return out


def equation_10(inclusions: Floats, size: int, epsilon: float = EPSILON) -> tuple[Floats, NDArray[np.int64]]:
    """The paper's estimate of every row of inclusion counts, and how many steps each took.

    size: values in a set. Starts at the inclusion counts and divides by the size once, at the end; what is compared
    with epsilon are changes before that.
    """
    w = np.asarray(inclusions, float)
    d = w.shape[1]
    other = (size - 1) / (d - 1) if d > 1 else 1.0
    x, steps = w.copy(), np.zeros(len(w), np.int64)
    open_rows = np.arange(len(w))
    for _ in range(MOST_STEPS):
        now, seen = x[open_rows], w[open_rows]
        expected = other * now.sum(axis=1, keepdims=True) + (1 - other) * now
        ratio = np.divide(seen, expected, out=np.zeros_like(seen), where=expected > 0)
        following = now * (other * ratio.sum(axis=1, keepdims=True) + (1 - other) * ratio)
        x[open_rows] = following
        steps[open_rows] += 1
        open_rows = open_rows[np.abs(following - now).max(axis=1) >= epsilon]
        if not len(open_rows):
            break
    return x / size, steps


def overall(sets: NDArray[np.float32], steps: int = 30) -> Floats:
    """Shares of the values among all records: linear inversion, then EM on whole sets."""
    d, share = sets.shape[1], sets.mean(axis=0, dtype=float)
    other = (share.sum() - 1) / max(1, d - 1)
    linear = (share - other) / (1 - other) if other < 1 - 1e-9 else np.full(d, 1 / d)
    x = np.maximum(linear, 0.05 / d).astype(np.float32)
    x /= x.sum()
    for _ in range(steps):
        following = x * ((1 / np.maximum(sets @ x, TINY)) @ sets) / np.float32(len(sets))
        moved = float(np.abs(following - x).max())
        x = following
        if moved * len(sets) < 1:
            break
    return np.asarray(x, float) / float(x.sum())


def held_out(sets: NDArray[np.float32], start: Floats, fold: NDArray[np.integer]) -> Floats:
    """Shares of the values among these records: EM from the shares of all records, stopped by held-out likelihood.

    The same rule by which the library tabulates a decoy column within exact ones: a small group stays near what all
    records say, a large one goes its own way, and how far is decided by records that the fit has not seen. Four fits
    without a fold each and one with all records go side by side; the last one goes 4/3 as far, because it has 4/3 of
    the records. At least one step is made: asked for are these records, not the population that they come from.
    `fold` numbers the records 0 to 3 at random.
    """
    n, d = sets.shape
    base = ((1 - MIXED) * start + MIXED / d).astype(np.float32)
    if n < 2 * FOLDS:
        return _step(sets, base)
    train = np.ones((n, FOLDS + 1), np.float32)
    train[np.arange(n), fold] = 0
    sizes = np.maximum(train.sum(axis=0), 1)
    x = np.repeat(base[:, None], FOLDS + 1, axis=1)
    floor = (sets @ base) * np.float32(MIXED)
    path, best, top = [x[:, -1]], 0, -np.inf
    rows = np.arange(n)
    for _ in range(LONGEST):
        expected = np.maximum(sets @ x, TINY)
        score = float(np.log((1 - MIXED) * expected[rows, fold] + floor).sum(dtype=float))
        if score > top + WORTH:
            best, top = len(path) - 1, score
        if len(path) - 1 - best >= PATIENCE:
            break
        x = x * (sets.T @ (train / expected)) / sizes
        path.append(x[:, -1])
    wanted = max(1, round(best * FOLDS / (FOLDS - 1)))
    last = path[min(wanted - 1, len(path) - 1)]
    for _ in range(wanted - len(path)):
        last = _step(sets, last).astype(np.float32)
    return _step(sets, last)


def _step(sets: NDArray[np.float32], x: NDArray[np.float32]) -> Floats:
    """One step of EM: what these records' sets say of their own values, if those were drawn with shares x."""
    out = np.asarray(x * (sets.T @ (1 / np.maximum(sets @ x, TINY))), float)
    return np.asarray(out / out.sum())
