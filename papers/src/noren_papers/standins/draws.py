"""What generated tables share: choices by weights, a long tail of them, and columns as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

Codes = NDArray[np.int64]


def drawn(rng: np.random.Generator, shares: Sequence[float] | NDArray[np.float64], rows: int) -> Codes:
    """One choice a row, by the same shares for all of them."""
    weights = np.asarray(shares, float)
    return rng.choice(len(weights), rows, p=weights / weights.sum()).astype(np.int64)


def chosen(rng: np.random.Generator, weights: NDArray[np.float64]) -> Codes:
    """One choice a row by its own weights."""
    bounds = np.cumsum(weights, axis=1)
    return np.asarray((rng.random(len(weights))[:, None] * bounds[:, -1:] > bounds).sum(axis=1), np.int64)


def tail(size: int) -> NDArray[np.float64]:
    """Weights of a few common values and many rare ones."""
    return np.asarray(1 / (1.0 + np.arange(size)))


def as_text(columns: Mapping[str, ArrayLike | Sequence[Any]]) -> pl.DataFrame:
    """A table as a file would have it: all columns as text."""
    return pl.DataFrame({name: pl.Series(np.asarray(values).astype(str)) for name, values in columns.items()})
