"""The proven best level vector: every other is tested, excluded by a tested one, or has a larger loss.

A class-wise requirement that holds at a level vector holds at every more general one, because classes only merge.
Leaving a quasi-identifier out of a table is the same as raising it to its root, so Incognito's passes over ever
larger subsets of columns (LeFevre, DeWitt, Ramakrishnan 2005) are passes over this one lattice, and a subset that
fails rules out everything below it.

With dropped records this is true only for what no part of a failing class can meet: too few records, too few values.
Every other level vector whose loss could be the least is then tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.errors import PolicyError, Problem, RequirementNotMet
from noren.methods.incognito.lattice import OF_CLASSES, Lattice, Levels
from noren.methods.requirements import Compiled
from noren.schema.nodes import Tree

SUBSETS = 2
"""Incognito's passes that are made whatever the losses are: small subsets are cheap and rule out much."""


@dataclass(frozen=True)
class FullDomain:
    """A level vector and what it publishes."""

    levels: dict[str, int]
    trees: dict[str, Tree]
    keep: NDArray[np.bool_]
    classes: int
    loss: float
    tested: int
    """How many level vectors were tested."""

    @property
    def dropped(self) -> int:
        return int(len(self.keep) - self.keep.sum())


def best_full_domain(
    table: Records,
    compiled: Compiled,
    loss: str = "granularity",
    suppression: float = 0.0,
    weights: Mapping[str, float] | None = None,
) -> FullDomain:
    """Return the level vector of smallest loss whose failing classes have at most a share `suppression` of the records.

    Raises RequirementNotMet where there is none.
    """
    limit = int(suppression * table.n + 1e-9)
    lattice = Lattice(table, compiled, loss, limit, weights or {})
    search = _Search(lattice)
    search.run()
    if search.levels is None:
        most = f" with at most {limit:,} of {table.n:,} records suppressed" if limit else ""
        raise RequirementNotMet(f"no generalisation meets the requirements{most}.", hint="Allow more suppression.")
    keep, classes = lattice.published(search.levels)
    names = dict(zip(table.quasi, search.levels, strict=True))
    trees = dict(zip(table.quasi, lattice.trees, strict=True))
    return FullDomain(names, trees, keep, classes, search.best, lattice.tested)


@dataclass(frozen=True)
class LevelVector:
    """One level per quasi-identifier, and what publishing it would cost."""

    levels: dict[str, int]
    heights: dict[str, int]
    """The highest level of every column."""
    loss: float
    classes: int
    dropped: int

    def __str__(self) -> str:
        return ", ".join(f"{name} {level} of {self.heights[name]}" for name, level in self.levels.items())


def fixed_full_domain(
    table: Records,
    compiled: Compiled,
    fixed: Mapping[str, int],
    loss: str = "granularity",
    suppression: float = 0.0,
    weights: Mapping[str, float] | None = None,
) -> FullDomain:
    """Return the level vector of smallest loss with the given levels; other columns are searched.

    Raises RequirementNotMet where none can be published, with how many records are in classes that fail.
    """
    limit = int(suppression * table.n + 1e-9)
    lattice = Lattice(table, compiled, loss, limit, weights or {})
    for name, level in fixed.items():
        height = lattice.trees[table.quasi.index(name)].height
        if level > height:
            where, message = f"method.levels.{name}", f"level {level} is above the highest, {height}."
            raise PolicyError([Problem(where, message, f"Choose a level of {name!r} from 0 to {height}.")])
    found = _ranked(lattice, table.quasi, fixed, 1)
    trees = dict(zip(table.quasi, lattice.trees, strict=True))
    if not found:
        top = tuple(fixed.get(name, tree.height) for name, tree in trees.items())
        lost = lattice.test(top).dropped
        others = "" if len(fixed) == len(trees) else ", with all others at their roots"
        text = ", ".join(f"{name} {level}" for name, level in fixed.items())
        raise RequirementNotMet(
            f"the levels {text} do not meet the requirements{others}: {lost:,} of {table.n:,} records are in "
            f"classes that fail, and {limit:,} may be suppressed.",
            hint="Raise a level, allow suppression, or list working levels with noren compare --levels.",
        )
    best = found[0]
    levels = tuple(best.levels.values())
    keep, classes = lattice.published(levels)
    return FullDomain(best.levels, trees, keep, classes, best.loss, lattice.tested)


def best_levels(
    table: Records,
    compiled: Compiled,
    loss: str = "granularity",
    suppression: float = 0.0,
    weights: Mapping[str, float] | None = None,
    count: int = 10,
) -> list[LevelVector]:
    """Return the level vectors of smallest loss that can be published."""
    limit = int(suppression * table.n + 1e-9)
    return _ranked(Lattice(table, compiled, loss, limit, weights or {}), table.quasi, {}, count)


def _ranked(lattice: Lattice, names: Sequence[str], fixed: Mapping[str, int], count: int) -> list[LevelVector]:
    """Test vectors in the order of a lower bound of their losses, until the best `count` are known.

    A loss of classes has no bound that is known beforehand: then all vectors are tested that no failure rules out.
    """
    shape, of_classes = lattice.shape, lattice.loss in OF_CLASSES
    ruled_out = np.zeros(shape, np.bool_)
    for axis, name in enumerate(names):
        if name in fixed:
            others = np.ones(shape[axis], np.bool_)
            others[fixed[name]] = False
            ruled_out[(slice(None),) * axis + (others,)] = True
    top = tuple(fixed.get(name, size - 1) for name, size in zip(names, shape, strict=True))
    if lattice.monotone and lattice.test(top).dropped > lattice.limit:
        return []
    if not fixed:  # the search for the best one learns cheaply what fails
        search = _Search(lattice)
        search.run()
        ruled_out |= search.failed
    bound = np.zeros(shape) if of_classes else lattice.means
    height = np.indices(shape, np.int16).sum(axis=0)
    found: list[tuple[float, Levels]] = []
    for place in np.lexsort((height.ravel(), bound.ravel())):
        levels: Levels = tuple(int(level) for level in np.unravel_index(place, shape))
        if ruled_out[levels]:
            continue
        if len(found) >= count and bound[levels] > found[count - 1][0]:
            break
        one = lattice.test(levels)
        if one.below > lattice.limit:
            ruled_out[tuple(slice(0, level + 1) for level in levels)] = True
        if one.dropped <= lattice.limit:
            found.append((one.loss, levels))
            found.sort()
    out = []
    heights = {name: size - 1 for name, size in zip(names, shape, strict=True)}
    for loss, levels in found[:count]:
        keep, classes = lattice.published(levels)
        named = dict(zip(names, levels, strict=True))
        out.append(LevelVector(named, heights, loss, classes, int(len(keep) - keep.sum())))
    return out


class _Search:
    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.top: Levels = tuple(size - 1 for size in lattice.shape)
        self.levels: Levels | None = None
        self.best = np.inf
        self.closed = np.zeros(lattice.shape, np.bool_)
        """Tested, or ruled out by a test."""
        self.failed = np.zeros(lattice.shape, np.bool_)
        """Known to lose too many records."""
        self.harmless = np.zeros(lattice.shape, np.bool_)
        """Known to rule out nothing below."""
        self.bound = np.zeros(lattice.shape) if lattice.loss in OF_CLASSES else lattice.means

    def run(self) -> None:
        self._descend()
        if self.lattice.monotone or self.lattice.least > 1:
            for size in range(1, min(SUBSETS, len(self.top)) + 1):
                self._pass_over_subsets(size)
        self._test_the_rest()
        if self.levels is not None:
            self._settle(self.levels)

    def _test(self, levels: Levels) -> bool:
        """Test a level vector, record what follows for others, and return whether it can be published."""
        found = self.lattice.test(levels)
        limit = self.lattice.limit
        up = tuple(slice(level, None) for level in levels)
        self.closed[levels] = True
        if self.lattice.loss in OF_CLASSES:
            np.maximum(self.bound[up], found.floor, out=self.bound[up])
        if found.below > limit:
            self.closed[tuple(slice(0, level + 1) for level in levels)] = True
            self.failed[tuple(slice(0, level + 1) for level in levels)] = True
        else:
            self.harmless[up] = True
        if found.dropped > limit:
            return False
        if limit == 0:
            self.closed[up] = True
        if found.loss < self.best:
            self.best, self.levels = found.loss, levels
        return True

    def _descend(self) -> None:
        """Descend from the roots as long as the loss falls, to find a first candidate."""
        levels = self.top
        if not self._test(levels):
            return
        while levels == self.levels:
            for one in self._one_below(levels):
                if not self.closed[one] and self._test(one) and self.levels == one:
                    levels = one
                    break
            else:
                return

    def _pass_over_subsets(self, size: int) -> None:
        """Test level vectors with all but `size` columns at their roots, from the bottom up."""
        for columns in combinations(range(len(self.top)), size):
            heights = product(*(range(self.top[i]) for i in columns))
            for some in sorted(heights, key=sum):
                levels = list(self.top)
                for i, height in zip(columns, some, strict=True):
                    levels[i] = height
                one = tuple(levels)
                if not self.closed[one] and not self.harmless[one]:
                    self._test(one)

    def _test_the_rest(self) -> None:
        """Test all open vectors that could be better, those with the largest loss first, because they exclude most."""
        if self.lattice.loss in OF_CLASSES:
            order = self._by_subset()
        else:
            order = np.argsort(-self.lattice.means.ravel(), kind="stable")
        at = self._next_open(order, 0)
        while at < len(order):
            self._test(tuple(int(level) for level in np.unravel_index(order[at], self.closed.shape)))
            at = self._next_open(order, at + 1)

    def _next_open(self, order: NDArray[np.int64], start: int) -> int:
        """Return the first position from `start` whose vector is open and could be better than the best."""
        closed, bound, step = self.closed.reshape(-1), self.bound.reshape(-1), 64
        while start < len(order):
            part = order[start : start + step]
            found = np.flatnonzero(~closed[part] & (bound[part] < self.best))
            if len(found):
                return start + int(found[0])
            start, step = start + step, 2 * step
        return len(order)

    def _settle(self, levels: Levels) -> None:
        """Lower columns whose level does not change the loss."""
        lattice = self.lattice
        for one in self._one_below(levels):
            if lattice.loss in OF_CLASSES or lattice.means[one] >= lattice.means[levels] * (1 - 1e-12):
                found = lattice.test(one)
                if found.dropped <= lattice.limit and found.loss <= self.best:
                    self.levels = one
                    return self._settle(one)

    def _one_below(self, levels: Levels) -> list[Levels]:
        """Return the level vectors directly below, the smallest loss first."""
        below = [(*levels[:i], h - 1, *levels[i + 1 :]) for i, h in enumerate(levels) if h > 0]
        return sorted(below, key=lambda one: float(self.lattice.means[one]))

    def _by_subset(self) -> NDArray[np.int64]:
        """Return Incognito's order: by number of columns below their roots, then by height."""
        grid = np.indices(self.closed.shape, np.int16).reshape(len(self.top), -1)
        below = (grid < np.array(self.top)[:, None]).sum(axis=0)
        return np.lexsort((grid.sum(axis=0), below))
