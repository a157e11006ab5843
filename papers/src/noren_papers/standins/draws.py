"""Generated tables: columns of given shares that depend on each other through a few hidden factors of a record.

A column's score is a weighted sum of the factors and noise of its own; the records with the lowest scores have its
first value, as many as its share says, and so on. Nothing is copied from a record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

FACTORS = 4
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """Values in the order of the score with their shares, or the quantiles of a number.

    leans: the weight of each factor, at most 1 in the sum of their squares; the rest is the column's own noise.
    """

    values: Sequence[Any] | Callable[[Numbers], NDArray[Any]]
    shares: Sequence[float] | Numbers = ()
    leans: Sequence[float] = ()

    def at(self, places: Numbers) -> NDArray[Any]:
        """The values at these places between 0 and 1."""
        if callable(self.values):
            return self.values(places)
        bounds = np.cumsum(np.asarray(self.shares, float))
        return np.array(list(self.values))[np.searchsorted(bounds[:-1] / bounds[-1], places)]


def of_shares(shares: Mapping[Any, float], *leans: float) -> Column:
    return Column(list(shares), list(shares.values()), leans)


def gamma(shape: float, scale: float, low: float, high: float) -> Callable[[Numbers], NDArray[np.int64]]:
    """Quantiles of whole numbers from `low` up, by a gamma distribution cut at `high`."""
    from scipy.special import gammaincinv

    return lambda places: np.clip(low + scale * gammaincinv(shape, places), low, high).astype(np.int64)


def tail(size: int) -> Numbers:
    """Weights of a few common values and many rare ones."""
    return np.asarray(1 / (1.0 + np.arange(size)))


def stream(name: str) -> np.random.Generator:
    """Random numbers that depend on a name alone."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))


def draw(name: str, columns: Mapping[str, Column], rows: int) -> dict[str, NDArray[Any]]:
    """The columns of a table, the same every time."""
    rng = stream(name)
    factors, out = rng.standard_normal((rows, FACTORS)), {}
    for title, column in columns.items():
        leans = np.zeros(FACTORS)
        leans[: len(column.leans)] = column.leans
        score = factors @ leans + np.sqrt(max(0.0, 1.0 - np.square(leans).sum())) * rng.standard_normal(rows)
        places = np.empty(rows)
        places[np.argsort(score)] = (np.arange(rows) + 0.5) / rows
        out[title] = column.at(places)
    return out


def as_text(columns: Mapping[str, ArrayLike | Sequence[Any]]) -> pl.DataFrame:
    """A table as a file would have it: all columns as text."""
    return pl.DataFrame({name: pl.Series(np.asarray(values).astype(str)) for name, values in columns.items()})
