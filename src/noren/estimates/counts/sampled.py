"""Steps of EM between looks at all records, by a sample of them.

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
from math import prod

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.folds import Held
from noren.estimates.counts.tuples import Tuples

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
