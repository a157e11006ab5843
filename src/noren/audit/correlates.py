"""Which other columns tell most about a decoy column, by what is published alone.

For every pair of values the number of records whose cells hold both is compared with what independence would give;
the sum of squared deviations in standard units, less what chance contributes on average, ranks the columns. It needs
no estimate of the joint distribution, so that only the best columns are worth one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noren.audit.sets import Sets

ROWS = 1 << 16
"""Rows that are looked at for the choice."""
MOST_VALUES = 256
MOST_CELLS = 12_000
"""Cells of a joint distribution that is worth estimating."""
CLEARLY = 6.0
"""Standard deviations of chance, at least, before two columns have something to do with each other."""
LEAST_RECORDS = 25
"""Records that a combination of exact values should have on average."""


@dataclass
class Correlates:
    """The columns of a release as indicators of values."""

    sets: Mapping[str, Sets]
    keys: Mapping[str, NDArray[np.int64]]
    """The codes of columns that are published exactly, or as general values."""
    sizes: Mapping[str, int]
    """How many different codes every one of them may have."""
    widths: Mapping[str, int]
    """How many values it takes in a joint distribution."""
    _made: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return min(ROWS, len(next(iter(self.sets.values()))))

    def _indicators(self, name: str) -> NDArray[np.float32]:
        """(rows, values): membership in standard units, so that sums of products are too."""
        if name not in self._made:
            one = self.sets[name]
            self._made[name] = _standard(members(one.codes[: self.records], one.design.d))
        return self._made[name]

    def with_sets(self, column: str, other: str) -> float:
        """How much more two decoy columns have to do with each other than chance explains, per record."""
        mine, theirs = self._indicators(column), self._indicators(other)
        live = int(mine.any(axis=0).sum()) * int(theirs.any(axis=0).sum())
        return self._excess(mine.T @ theirs, live)

    def with_key(self, column: str, codes: NDArray[np.int64], size: int) -> float:
        """The same for a column of codes, one for every record."""
        mine, n = self._indicators(column), self.records
        share = np.bincount(codes, minlength=size) / n
        spread = np.sqrt(share * (1 - share))
        scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
        together = np.stack([np.bincount(codes, one, minlength=size) for one in mine.T]) * scale
        return self._excess(together, int(mine.any(axis=0).sum()) * int((scale > 0).sum()))

    def _excess(self, together: NDArray, live: int) -> float:
        """0 unless the sum of squares is clearly more than the number of cells, which chance gives on average."""
        found = float((together.astype(np.float64) ** 2).sum()) / self.records - live
        return found / self.records if found > CLEARLY * (2 * live) ** 0.5 else 0.0

    def beside(self, column: str) -> str | None:
        """The decoy column that tells most about another; none if chance explains all."""
        d = self.sets[column].design.d
        fit = [n for n, one in self.sets.items() if n != column and one.design.d * d <= MOST_CELLS and _tells(one)]
        if d > MOST_VALUES:
            return None
        found = {name: self.with_sets(column, name) for name in fit}
        best = max(found, key=lambda name: found[name], default=None)
        return best if best is not None and found[best] > 0 else None

    def given(self, column: str) -> tuple[str, ...]:
        """One column of codes, or two, that tell most about a decoy column."""
        d = self.sets[column].design.d
        if d > MOST_VALUES:
            return ()
        n = len(self.sets[column])
        fit = [m for m, size in self.sizes.items() if 1 < size <= min(MOST_VALUES, n / LEAST_RECORDS)]
        fit = [name for name in fit if self.widths[name] * d <= MOST_CELLS]
        heads = {name: self.keys[name][: self.records] for name in fit}
        alone = {name: self.with_key(column, heads[name], self.sizes[name]) for name in fit}
        first = max(alone, key=lambda name: alone[name], default=None)
        if first is None or alone[first] <= 0:
            return ()
        best: tuple[str, ...] = (first,)
        gain = alone[first]
        for other in fit:
            cells = self.sizes[first] * self.sizes[other]
            many = self.widths[first] * self.widths[other] * d
            if other == first or many > MOST_CELLS or cells > n / LEAST_RECORDS:
                continue
            found = self.with_key(column, heads[first] * self.sizes[other] + heads[other], cells)
            if found > gain:
                best, gain = (first, other), found
        return best


def _tells(one: Sets) -> bool:
    """Whether the sets of a column say anything at all."""
    return one.design.eta < one.design.d and one.design.p > 0


def members(codes: NDArray, d: int) -> NDArray[np.float32]:
    """(rows, values): 1 where a row of codes holds a value."""
    out = np.zeros((len(codes), d), np.float32)
    np.put_along_axis(out, codes.astype(np.int64), np.float32(1), axis=1)
    return out


def _standard(indicators: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean 0 and variance 1 for every value that some and not all rows hold, 0 for the others."""
    share = indicators.mean(axis=0, dtype=np.float64)
    spread = np.sqrt(share * (1 - share))
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    return ((indicators - share) * scale).astype(np.float32)
