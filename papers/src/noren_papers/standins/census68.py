"""A table shaped like the US Census of 1990 as data miners use it: 2,458,285 records, 68 columns of 2 to 18 values.

Columns are coarse and skewed and depend on each other through a few hidden factors of a record, so that cross
tabulations are not products of their margins. Every column is seeded by its own name: any choice of columns can be made
without the others, and a shorter table is the beginning of a longer one. Nothing is copied from a record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.datasets import Used

ROWS = 2_458_285
FACTORS = 5
_SIZES = (
    18, 16, 14, 14, 14, 13, 13, 13, 12, 12, 11, 10, 10, 9, 9, 8, 8, 7, 7, 7, 7, 6, 6, 6, 6, 6, 5, 5, 5, 5, 5, 5, 5, 5,
    4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
)  # fmt: skip
DOMAINS: Mapping[str, int] = {f"c{number:02d}": size for number, size in enumerate(_SIZES, 1)}
"""Every column's number of values."""


def codes(names: Sequence[str], rows: int = ROWS) -> dict[str, NDArray[np.uint8]]:
    """The chosen columns as codes 0..d-1. The same values every time, whatever else is chosen."""
    out = {name: np.zeros(rows, np.float32) for name in names}
    for number in range(FACTORS):
        factor = _stream(f"factor {number}").standard_normal(rows, np.float32)
        for name in names:
            out[name] += np.float32(_loadings(name)[number]) * factor
    return {name: _cut(name, score, rows) for name, score in out.items()}


def make(name: str = "census68", rows: int = ROWS) -> pl.DataFrame:
    """The whole table, all columns as text."""
    import polars as pl

    return pl.DataFrame({key: pl.Series(value).cast(pl.String) for key, value in codes(list(DOMAINS), rows).items()})


def shares(name: str) -> NDArray[np.float64]:
    """How often each value is expected: a few common ones and a tail; the order of the codes says nothing."""
    rng = _stream(f"shares {name}")
    size = DOMAINS[name]
    weights = (1.0 + np.arange(size)) ** -rng.uniform(0.6, 1.8) * rng.uniform(0.5, 1.5, size)
    return np.asarray(rng.permutation(weights / weights.sum()))


def used(columns: Mapping[str, NDArray[np.uint8]], remark: str) -> Used:
    """The note of generated columns; the checksum is of their codes, column by column."""
    digest = hashlib.sha256()
    for name, column in columns.items():
        digest.update(name.encode())
        digest.update(column.tobytes())
    rows = len(next(iter(columns.values())))
    return Used("census68", "generated", rows, len(columns), digest.hexdigest(), remark)


def _loadings(name: str) -> NDArray[np.float64]:
    """How a column leans on the factors: one leads; together they explain 35 to 80 percent of its score."""
    rng = _stream(f"loadings {name}")
    weights = rng.normal(0, 0.35, FACTORS)
    weights[rng.integers(FACTORS)] += rng.choice((-1.0, 1.0))
    return np.asarray(weights / np.linalg.norm(weights) * np.sqrt(rng.uniform(0.35, 0.8)))


def _cut(name: str, score: NDArray[np.float32], rows: int) -> NDArray[np.uint8]:
    """Codes from the factors' part of a score: own noise makes it a standard normal, cut at the shares' quantiles."""
    own = np.sqrt(1.0 - float(np.square(_loadings(name)).sum()))
    score = score + np.float32(own) * _stream(f"noise {name}").standard_normal(rows, np.float32)
    bounds = np.cumsum(shares(name))[:-1]
    cuts = np.array([NormalDist().inv_cdf(min(float(bound), 1 - 1e-12)) for bound in bounds], np.float32)
    return np.searchsorted(cuts, score).astype(np.uint8)


def _stream(name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"census68/{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))
