"""Pairs of columns that may tell each other too much, found on few people: most pairs of a wide table tell nothing.

What is counted is what `dependence.py` counts, on fewer people, and never less: whoever might count does. A pair is
let go only if its share lies five standard deviations below the limit; every other one is looked at closely.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

ASKED = 1_000
"""People who are asked."""
MOST_VALUES = 64
"""Values of a domain that is screened; larger ones are looked at closely."""
COUNTED_TOGETHER = 400
"""Combinations of values up to which columns are counted as one."""
DEVIATIONS = 5.0
UNSEEN = 20.0
"""People whom a share means on average that may not show one."""
SLACK = 1e-3
"""By how much certainty and its support may fall short, for rounding."""


class Screen:
    """The cells of a few people in every column, and what everybody has, as tables."""

    def __init__(
        self,
        truth: Mapping[str, NDArray[np.int64]],
        likelihoods: Mapping[str, NDArray[np.float64]],
        *,
        certain: float,
        support: float,
        right: float,
    ) -> None:
        """`likelihoods` of a column's values under each person's cell, (values, people), for the first people."""
        self._certain = certain - SLACK
        self._support = support - SLACK
        self._right = right
        self._weights = {name: table.astype(np.float32) for name, table in likelihoods.items()}
        self._n = len(next(iter(likelihoods.values())).T) if likelihoods else 0
        self._codes = {name: truth[name].astype(np.uint8) for name in likelihoods}
        self._asked = {name: np.resize(truth[name], self._n) for name in likelihoods}
        self._mine = {name: table[self._asked[name], np.arange(self._n)] for name, table in self._weights.items()}
        self._largest = {name: table.max(axis=0) for name, table in self._weights.items()}

    def loud(self, owns: Collection[str], names: Sequence[str], most: float) -> set[tuple[str, str]]:
        """Ordered pairs (protected, other) that may exceed the limit."""
        out = {(own, other) for own in owns for other in names if own != other and not {own, other} <= {*self._weights}}
        known = [name for name in names if name in self._weights]
        asked = {name for name in known if name in owns}
        for one, other, pairs in self._pairs(known, asked):
            for own, by, table in ((one, other, pairs), (other, one, pairs.T)):
                if own in asked and self._may_exceed(self._share(own, by, table), most):
                    out.add((own, by))
        return out

    def _may_exceed(self, share: float, most: float) -> bool:
        error = max(DEVIATIONS * float(np.sqrt((share + most) / max(1, self._n))), UNSEEN / max(1, self._n))
        return share + error > most

    def _pairs(self, names: Sequence[str], owns: Collection[str]) -> Iterator[tuple[str, str, NDArray[np.float32]]]:
        """Two columns, of which one is among `owns`, and how often a value of one stands beside a value of the other.

        Columns of few values are counted together, and what two of them have in common is summed from that.
        """
        bundles = self._bundles(sorted(names, key=lambda name: name not in owns))
        keys = [self._key(bundle) for bundle in bundles]
        for at, one in enumerate(bundles):
            for beside, other in enumerate(bundles[at:], at):
                columns = one if beside == at else [*one, *other]
                if not any(name in owns for name in columns):
                    break
                sizes = [len(self._weights[name]) for name in columns]
                key = keys[at] if beside == at else keys[at] * np.uint32(prod(sizes[len(one) :])) + keys[beside]
                found = np.bincount(key, minlength=prod(sizes)).reshape(sizes)
                for i, first in enumerate(one):
                    for j in range(i + 1 if beside == at else len(one), len(columns)):
                        if first in owns or columns[j] in owns:
                            others = tuple(k for k in range(len(columns)) if k not in (i, j))
                            yield first, columns[j], found.sum(axis=others).astype(np.float32)

    def _bundles(self, names: Sequence[str]) -> list[list[str]]:
        """Neighbouring columns whose values have few combinations."""
        out: list[list[str]] = []
        room = 0
        for name in names:
            room //= len(self._weights[name])
            if room:
                out[-1].append(name)
            else:
                out.append([name])
                room = COUNTED_TOGETHER // len(self._weights[name])
        return out

    def _key(self, names: Sequence[str]) -> NDArray[np.uint32]:
        """One number for what everybody has in these columns."""
        key = self._codes[names[0]].astype(np.uint32)
        for name in names[1:]:
            key = key * np.uint32(len(self._weights[name])) + self._codes[name]
        return key

    def _share(self, own: str, by: str, pairs: NDArray[np.float32]) -> float:
        """The share of people who may be certain of the truth from their own cell and another column's, and not nearly
        so from their own."""
        row, truth = np.arange(self._n), self._asked[own]
        expected = pairs @ self._weights[by]
        expected[truth, row] -= self._mine[by]
        belief = self._weights[own] * expected
        sure = np.flatnonzero(belief.max(axis=0) >= self._certain * np.maximum(belief.sum(axis=0), 1e-30))
        if not len(sure):
            return 0.0
        best = belief[:, sure].argmax(axis=0)
        behind = expected[best, sure] / np.maximum(self._largest[by][sure], 1e-30)
        usual = self._weights[own][:, sure] * np.bincount(self._codes[own], minlength=len(expected))[:, None]
        alone = usual[best, np.arange(len(sure))] / np.maximum(usual.sum(axis=0), 1e-30)
        kept = (behind >= self._support) & (alone < self._right + SLACK)
        right = kept & (best == truth[sure])
        strength = np.floor(np.log2(np.maximum(behind, 1.0))).astype(np.int64)
        found = np.bincount(strength[kept], minlength=1)
        good = np.bincount(strength[right], minlength=len(found))
        by_chance = DEVIATIONS * np.sqrt(found * self._right * (1 - self._right))
        return float(good[good >= self._right * found - by_chance].sum() / self._n)
