"""The sample of people or rows that an attack measures, with the error of its figures.

What an attack knows is always the whole release, and at the holder the whole original; a sample is only of those it is
tried on. So a share is unbiased, and the largest figure is the largest of those who were measured. No verdict rests on
a sample. Where another machine counts different rows, an attack works on these and weighs each by its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.engines.finding import Matches
from noren.ragged import chosen, distinct_of
from noren.release.published import Published
from noren.release.store import MemoryStore
from noren.statements import Statement

LEVEL = 0.95


def wilson(share: float, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's score interval for a share of independent trials."""
    if trials <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2)
    middle = share + z * z / (2 * trials)
    half = z * sqrt(max(0.0, share * (1 - share)) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def mean_bounds(mean: float, std_error: float, level: float = LEVEL) -> tuple[float, float]:
    """Return normal bounds for a mean of many independent, bounded figures."""
    z = NormalDist().inv_cdf(0.5 + level / 2)
    return mean - z * std_error, mean + z * std_error


MOST = 100_000
"""People, or rows, up to which all are measured."""


@dataclass(frozen=True)
class Sample:
    """Some of `n` people or rows, by their numbers in ascending order."""

    n: int
    lines: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def whole(self) -> bool:
        """Return whether everybody is measured."""
        return len(self.lines) == self.n

    @property
    def of(self) -> int | None:
        """Return the total number if not all are measured."""
        return None if self.whole else self.n

    def __getitem__(self, values: NDArray) -> NDArray:
        """Select the measured entries of an array about everybody."""
        return values if self.whole else values[self.lines]

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Return everybody's position in the sample; -1 for people outside it."""
        out = np.full(self.n, -1, np.int64)
        out[self.lines] = np.arange(len(self))
        return out

    def among(self, part: Matches) -> Matches:
        """Restrict matches to the sample, with only the sets that it needs."""
        if self.whole:
            return part
        at = self.place[part.people]
        mine = np.flatnonzero(at >= 0)
        sets, _, of = distinct_of(part.of[mine])
        bounds, rows = chosen(part.bounds, sets)
        return Matches(at[mine], of, part.groups[sets], part.order[rows], bounds)

    # ------------------------------------------------------------------ errors

    def bounds(self, summary: Mapping[str, float], shares: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Return bounds of shares. A figure between 0 and 1 varies at most as much as a yes/no figure with the same
        mean."""
        if self.whole:
            return {}
        return {name: wilson(summary[name], self._trials) for name in shares if 0 <= summary.get(name, -1) <= 1}

    def count(self, found: int) -> str:
        """Describe the total if `found` of the sample were counted: a number, or a number with bounds."""
        if self.whole:
            return f"{found:,}"
        low, high = wilson(found / max(1, len(self)), self._trials)
        return f"about {self.scaled(found):,} ({round(low * self.n):,} to {round(high * self.n):,})"

    def scaled(self, found: int) -> int:
        """Scale a count in the sample to everybody."""
        return found if self.whole else round(found * self.n / max(1, len(self)))

    @property
    def _trials(self) -> int:
        """Return the number of draws with replacement that give the same information."""
        return round(len(self) * (self.n - 1) / max(1, self.n - len(self)))

    @property
    def margin(self) -> float:
        """Return the largest error of a share at the level of all bounds."""
        return 0.0 if self.whole else NormalDist().inv_cdf(0.5 + LEVEL / 2) * 0.5 / sqrt(max(1, self._trials))

    def note(self, what: str = "people") -> list[str]:
        """Return the note about sampling for the reader."""
        if self.whole:
            return []
        return [
            (
                f"measured on a random sample of {len(self):,} of {self.n:,} {what}: shares are within "
                f"{self.margin:.1%} of the true ones ({LEVEL:.0%}), and the largest figure is the largest in the "
                "sample"
            )
        ]


def sample_of(n: int, most: int = MOST) -> Sample:
    """Return everybody, or a random sample of `most` people, which is the same in every audit of a table of this
    size."""
    if n <= most or most <= 0:
        return Sample(n, np.arange(n))
    lines = np.random.default_rng(0).choice(n, most, replace=False, shuffle=False)  # measuring only; nothing secret
    return Sample(n, np.sort(lines))


ROWS = "rows"
"""The column of a frame that says how many published rows a line stands for."""
Times = NDArray[np.int64] | None
"""How many rows every line stands for; None where each stands for itself."""


@dataclass(frozen=True)
class View:
    """Some columns of a release: all rows, or the distinct rows with their counts."""

    release: Published
    times: Times = None

    def repeated(self) -> Published:
        """Return all rows: each as often as it was counted."""
        if self.times is None:
            return self.release
        shown, every = self.release, np.repeat(np.arange(len(self.times)), self.times)
        cells = {name: part.take(every) for name, part in shown.cells(shown.columns).items()}
        return Published(shown.statements, MemoryStore(cells), len(every), title=shown.title)


def counted_view(release: Published, columns: Sequence[str]) -> View:
    """Return the distinct rows of these columns, counted by the store."""
    statements: list[Statement] = [release.column(name) for name in columns]
    cells, times = release.store.count_combinations(statements)  # type: ignore[attr-defined]
    if int(times.sum()) != release.rows:
        raise release.count_error(int(times.sum()))
    store = MemoryStore(cells)
    return View(Published(statements, store, len(times), suppressed=release.suppressed, title=release.title), times)


def mean(of: NDArray, times: Times = None) -> float:
    """Return the mean over all rows."""
    return float(of.mean() if times is None else np.average(of, weights=times))


def known_mean(of: NDArray, times: Times = None) -> float:
    """Return the mean over the rows that have a figure; NaN if none has."""
    there = np.isfinite(of)
    if not there.any():
        return float("nan")
    return mean(of[there], None if times is None else times[there])


def sizes(bounds: NDArray, order: NDArray, times: Times = None) -> NDArray[np.int64]:
    """Return the number of rows of every set order[bounds[i]:bounds[i + 1]]; no set is empty."""
    return np.diff(bounds) if times is None else np.add.reduceat(times[order], bounds[:-1])
