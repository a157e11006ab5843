"""Generalised values: nodes over the base values of a domain.

A node is a label and the base values under it, kept as runs of consecutive codes: an interval is one run, a set of
categories a few. Node i of a hierarchy is base value i for i < d; the other nodes follow, level by level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.ragged import chosen, offsets_of, owners, ranges
from noren.schema.hierarchy import Hierarchy

Tight = Literal["ends", "members", "subtrees"]
"""What certainly occurs in every class under its generalised value: both ends of an interval (and a missing value that
it names), every member of a set, values of two children of a node."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes over d base values; node i covers the codes starts[r] <= code < stops[r] of runs bounds[i]..bounds[i+1]."""

    d: int
    labels: tuple[str, ...]
    bounds: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def from_runs(cls, d: int, labels: Sequence[str], runs: Iterable[Sequence[Sequence[int]]]) -> Nodes:
        """Make nodes from a list of (start, stop) pairs each; raise ValueError for empty, unsorted or outlying runs."""
        listed = [[(int(start), int(stop)) for start, stop in node] for node in runs]
        if len(listed) != len(labels):
            raise ValueError("every node has one label")
        bounds = np.cumsum([0, *(len(node) for node in listed)])
        flat = np.array([pair for node in listed for pair in node], np.int64).reshape(-1, 2)
        nodes = cls(d, tuple(labels), bounds, flat[:, 0], flat[:, 1])
        first = np.zeros(len(flat), bool)
        first[bounds[:-1][np.diff(bounds) > 0]] = True
        apart = np.concatenate([[True], nodes.starts[1:] > nodes.stops[:-1]])
        sound = (nodes.starts >= 0) & (nodes.stops <= d) & (nodes.starts < nodes.stops) & (first | apart)
        if not sound.all() or (np.diff(bounds) == 0).any():
            raise ValueError("a node covers rising runs of base values, at least one")
        return nodes

    @classmethod
    def from_members(cls, d: int, labels: Sequence[str], members: Iterable[Sequence[int]]) -> Nodes:
        """Make nodes from the codes that each covers, in any order."""
        return cls.from_runs(d, labels, [runs_of(codes) for codes in members])

    @property
    def runs(self) -> list[list[tuple[int, int]]]:
        pairs = list(zip(self.starts.tolist(), self.stops.tolist(), strict=True))
        return [pairs[a:b] for a, b in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of base values of each node."""
        total = np.concatenate([[0], np.cumsum(self.stops - self.starts)])
        return np.asarray(total[self.bounds[1:]] - total[self.bounds[:-1]])

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """Return the mean code under every node, from 0 (the first base value) to 1 (the last)."""
        sums = np.add.reduceat((self.starts + self.stops - 1) * (self.stops - self.starts) / 2, self.bounds[:-1])
        return np.asarray(sums / self.sizes / max(self.d - 1, 1))

    @cached_property
    def membership(self) -> NDArray[np.bool_]:
        """Return a (nodes, d) array: whether a node covers a base value. For small catalogues only."""
        edges = np.zeros((len(self), self.d + 1), np.int32)
        owner = owners(self.bounds)
        np.add.at(edges, (owner, self.starts), 1)
        np.add.at(edges, (owner, self.stops), -1)
        return np.cumsum(edges, axis=1)[:, : self.d] > 0

    def members(self, node: int) -> NDArray[np.int64]:
        """Return the codes under one node, ascending."""
        pairs = range(int(self.bounds[node]), int(self.bounds[node + 1]))
        return np.concatenate([np.arange(self.starts[r], self.stops[r]) for r in pairs])

    def flat_members(self, nodes: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the members of these nodes (by default all) one after the other, and the offsets."""
        bounds, starts, stops = self.bounds, self.starts, self.stops
        if nodes is not None:
            bounds, runs = chosen(self.bounds, nodes)
            starts, stops = self.starts[runs], self.stops[runs]
        return ranges(starts, stops), offsets_of(stops - starts)[bounds]

    def covers(self, nodes: NDArray, codes: NDArray) -> NDArray[np.bool_]:
        """Return whether nodes[i] covers codes[i]."""
        keys = owners(self.bounds) * np.int64(self.d + 1)
        wanted = nodes.astype(np.int64) * (self.d + 1) + codes
        place = np.searchsorted(keys + self.starts, wanted, side="right") - 1
        inside = (place >= 0) & (wanted < (keys + self.stops)[np.maximum(place, 0)])
        return np.asarray(inside)


def runs_of(codes: Sequence[int]) -> list[tuple[int, int]]:
    """Return runs of consecutive codes: 3, 4, 5, 9 is (3, 6), (9, 10)."""
    out: list[tuple[int, int]] = []
    for code in sorted(set(map(int, codes))):
        if out and out[-1][1] == code:
            out[-1] = (out[-1][0], code + 1)
        else:
            out.append((code, code + 1))
    return out


@dataclass(frozen=True)
class Tree:
    """A hierarchy as numbered nodes. at[h, v] is the node of base value v at height h (0: itself, last: the root)."""

    nodes: Nodes
    at: NDArray[np.int64]
    parent: NDArray[np.int64]
    """The parent of every node; the root is its own."""

    @property
    def height(self) -> int:
        return len(self.at) - 1

    @property
    def root(self) -> int:
        return int(self.at[-1, 0])


def tree_of(hierarchy: Hierarchy) -> Tree:
    """Number the nodes. Nodes that cover the same values have one number."""
    d = len(hierarchy.leaves)
    labels: list[str] = list(hierarchy.leaves)
    members: list[tuple[int, ...]] = [(code,) for code in range(d)]
    number = {codes: i for i, codes in enumerate(members)}
    taken = set(labels)
    at = np.empty((hierarchy.height + 1, d), np.int64)
    at[0] = np.arange(d)
    for height in range(1, hierarchy.height + 1):
        names, groups = hierarchy.groups(height)
        under = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
        for name, inside in zip(names, under, strict=True):
            codes = tuple(inside.tolist())
            if codes not in number:
                number[codes] = len(members)
                members.append(codes)
                label = name
                while label in taken:
                    label = f"{label} (level {height})"
                taken.add(label)
                labels.append(label)
            at[height, list(codes)] = number[codes]
    parent = np.arange(len(members))
    for height in range(hierarchy.height, 0, -1):
        moved = at[height - 1] != at[height]
        parent[at[height - 1][moved]] = at[height][moved]
    return Tree(Nodes.from_members(d, labels, members), at, parent)
