"""Decoys and orders as a careless program draws them: the obvious code over a generator with a guessable seed.

Every recipe is run again from a supposed seed. It does not know the true values, and does not need to: which of the
*other* values are drawn, counted around the truth, depends on the generator alone. What is here is for finding such
releases, never for making one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KNOWN = (0, 1, 42, 123, 1234, 12345, 2, 7, 10, 13, 21, 100, 1337, 2023, 2024, 2025, 2026, 31337, 999, 5)
"""Seeds that people like."""
LONG = 200_000
"""Rows from which on Python's shuffle is not left to Python."""


@dataclass(frozen=True)
class Family:
    """A generator and the obvious ways to use it."""

    name: str
    start: Callable[[int], Any]
    pick: Callable[[Any, int, int], Sequence[int]]
    """(generator, among how many, how many): distinct numbers."""
    order: Callable[[Any, int], NDArray[np.int64]]
    """(generator, rows): which row stands at each place."""
    slow: bool = False


def _python_order(generator: random.Random, n: int) -> NDArray[np.int64]:
    if n >= LONG:
        return _long_python_order(generator, n)
    rows = list(range(n))
    generator.shuffle(rows)
    return np.array(rows, np.int64)


def _long_python_order(generator: random.Random, n: int) -> NDArray[np.int64]:
    """The same, and the generator left in the same state, from the words of NumPy's generator of the same kind."""
    from noren.audit import kernels as python_shuffle

    shuffle: Callable[..., int] = python_shuffle.shuffle
    version, words, gauss = generator.getstate()
    given, rows, used = n, np.arange(n), -1
    while used < 0:
        given, rows = 2 * given, np.arange(n)
        used = shuffle(_twister(words).random_raw(given), rows)
    after = _twister(words)
    after.random_raw(used, output=False)
    inside: Any = after.state["state"]
    generator.setstate((version, (*map(int, inside["key"]), int(inside["pos"])), gauss))
    return rows


def _twister(words: tuple[int, ...]) -> np.random.MT19937:
    """NumPy's Mersenne twister in the state of Python's."""
    twister = np.random.MT19937(0)
    twister.state = {"bit_generator": "MT19937", "state": {"key": np.array(words[:-1], np.uint32), "pos": words[-1]}}
    return twister


FAMILIES = (
    Family(
        "numpy.random.default_rng",
        np.random.default_rng,
        lambda rng, among, many: rng.choice(among, many, replace=False),
        lambda rng, n: np.asarray(rng.permutation(n)),
    ),
    Family(
        "numpy.random.RandomState",
        np.random.RandomState,
        lambda rng, among, many: rng.choice(among, many, replace=False),
        lambda rng, n: np.asarray(rng.permutation(n)),
    ),
    Family(
        "random.Random",
        random.Random,
        lambda rng, among, many: rng.sample(range(among), many),
        _python_order,
        slow=True,
    ),
)


def draw(family: Family, generator: Any, sizes: Sequence[tuple[int, int]], records: int) -> list[NDArray[np.int64]]:
    """Decoys record by record, within a record column by column. sizes: (values, l) of every column."""
    out = [np.empty((records, l - 1), np.int64) for _, l in sizes]  # noqa: E741
    for record in range(records):
        for (d, l), part in zip(sizes, out, strict=True):  # noqa: E741
            part[record] = family.pick(generator, d - 1, l - 1)
    for part in out:
        part.sort(axis=1)
    return out


def truths(picked: NDArray[np.int64], sets: NDArray) -> NDArray[np.bool_]:
    """(records, members): which members of a set can be the truth if these were the decoys.

    With truth t the decoys are the picked numbers, those from t on moved up by one; the set is t and they.
    """
    members = sets.astype(np.int64)
    size = members.shape[1]
    rest = np.array([[other for other in range(size) if other != place] for place in range(size)])
    moved = picked[:, None, :] + (picked[:, None, :] >= members[:, :, None])
    return np.asarray((moved == members[:, rest]).all(axis=2))


def chance(picked_among: int, picked: int) -> float:
    """At most this often a set fits decoys that have nothing to do with it: one way for each member."""
    from math import comb

    return min(1.0, (picked + 1) / comb(picked_among, picked))


def seeds(count: int, times: tuple[int, int] | None) -> Iterator[int]:
    """Seeds to try: the liked ones, then small ones, then a window of Unix times."""
    liked = [seed for seed in KNOWN if seed]
    yield from ([0] if count else [])
    yield from liked
    yield from (seed for seed in range(1, count) if seed not in set(liked))
    if times is not None:
        yield from range(times[0], times[1] + 1)
