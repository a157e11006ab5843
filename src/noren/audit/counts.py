"""A release as its different rows and how often each occurs: what an attack sees where another machine counts them.

An attack that needs no more than counts works on the different combinations of a few columns' cells as if they were the
rows, and weighs each by its number. Its figures are those of all rows, and never of a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.errors import ReleaseError
from noren.release.published import Published
from noren.release.store import MemoryStore
from noren.statements import Statement

ROWS = "rows"
"""The column of a frame that says how many published rows a line stands for."""
Times = NDArray[np.int64] | None
"""How many rows every line stands for; None where each stands for itself."""


@dataclass(frozen=True)
class View:
    """Some columns of a release: all rows, or the different ones with their numbers."""

    release: Published
    times: Times = None


def counted_view(release: Published, columns: Sequence[str]) -> View:
    """The different rows of these columns, as the store counts them."""
    statements: list[Statement] = [release.column(name) for name in columns]
    cells, times = release.store.counted(statements)  # type: ignore[attr-defined]
    if int(times.sum()) != release.rows:
        raise ReleaseError(
            f"the data hold {int(times.sum())} rows, the manifest says {release.rows}.",
            hint="Do not use it; ask the holder for it again.",
        )
    store = MemoryStore(cells)
    return View(Published(statements, store, len(times), suppressed=release.suppressed, title=release.title), times)


def mean(of: NDArray, times: Times = None) -> float:
    """The mean over all rows."""
    return float(of.mean() if times is None else np.average(of, weights=times))


def known_mean(of: NDArray, times: Times = None) -> float:
    """The same over the rows that have a figure; NaN where none has."""
    there = np.isfinite(of)
    if not there.any():
        return float("nan")
    return mean(of[there], None if times is None else times[there])


def sizes(bounds: NDArray, order: NDArray, times: Times = None) -> NDArray[np.int64]:
    """How many rows every set order[bounds[i]:bounds[i + 1]] has; none is empty."""
    return np.diff(bounds) if times is None else np.add.reduceat(times[order], bounds[:-1])
