"""The paper's synthetic knowledge: 3,000 labels with about 20 terms each, every term in about 100 of them.

A record's terms are drawn from one label. Drawn independently, three terms fit some label in one record of ten and nine
in none (`linked_share` measures it): a group of such records reveals nothing and needs no removal.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.methods.suppress.beliefs import TermRequirement, estimated_prior, measure_groups
from noren.methods.suppress.search import GroupResult, Search, search_group, search_groups
from noren.schema.knowledge import Knowledge
from noren_papers.base import Bench
from noren_papers.datasets import Used

Array = NDArray[np.int64]

LABELS, PER_LABEL, OCCURRENCES = 3000, 20, 100
RECORDS = 3000
MOST_TERMS = 13
"""The longest records of the figures; all records come from labels that have so many terms, so that sets are nested."""
TERMS, TUPLES = 9, 5
"""The paper's defaults n and d."""
APART = 20
"""Group g starts at record 20 g: groups of one setting never share a record, and larger ones contain smaller ones."""

SERIES = {"adaptive": "adaptive", "depth-first": "depth-first", "best": "best (ours)"}
"""Searches of the library by the names of their lines."""
OURS = SERIES["best"]


def make_knowledge(rng: np.random.Generator, labels: int = LABELS) -> Knowledge:
    """Poisson numbers of terms a label; terms chosen without replacement, in proportion to Poisson occurrences."""
    terms = labels * PER_LABEL // OCCURRENCES
    weight = np.maximum(1, rng.poisson(OCCURRENCES, terms)).astype(float)
    size = np.clip(rng.poisson(PER_LABEL, labels), 1, terms)
    ranks = np.argsort(-(np.log(weight) + rng.gumbel(size=(labels, terms))), axis=1)
    sets = [row[:n].tolist() for row, n in zip(ranks, size, strict=True)]
    return Knowledge.from_sets(sets, terms=[f"term {i + 1}" for i in range(terms)])


def draw_terms(rng: np.random.Generator, knowledge: Knowledge, records: int, most: int = MOST_TERMS) -> Array:
    """(records, most) term codes in random order, each row from one label; the first n columns are a record of n."""
    rich = np.flatnonzero(np.diff(knowledge.bounds) >= most)
    label = rng.choice(rich, records)
    size = knowledge.bounds[label + 1] - knowledge.bounds[label]
    keys = rng.random((records, int(size.max())))
    keys[np.arange(keys.shape[1]) >= size[:, None]] = 2.0
    return np.asarray(knowledge.codes[knowledge.bounds[label][:, None] + np.argsort(keys, axis=1)[:, :most]])


@dataclass(frozen=True)
class People:
    """Records with n terms each, and the prior that their whole table gives."""

    bounds: Array
    codes: Array
    alpha: NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """What a search did to the groups of one setting."""

    cost: NDArray[np.float64]
    removed: NDArray[np.int64]
    optimal: NDArray[np.bool_]
    holds: NDArray[np.bool_]
    solved: NDArray[np.bool_]


class World:
    """One knowledge table and the records that every synthetic setting takes its groups from."""

    def __init__(self, seed: int = 2010) -> None:
        rng = np.random.default_rng(seed)
        self.knowledge = make_knowledge(rng)
        self.terms = draw_terms(rng, self.knowledge, RECORDS)
        self._people: dict[int, People] = {}
        self._linked: dict[int, float] = {}

    def people(self, n: int = TERMS) -> People:
        if n not in self._people:
            bounds = np.arange(RECORDS + 1) * n
            codes = np.sort(self.terms[:, :n], axis=1).ravel()
            self._people[n] = People(bounds, codes, estimated_prior(bounds, codes, self.knowledge))
        return self._people[n]

    def search(
        self, wanted: TermRequirement, search: Search, datasets: int, *, n: int = TERMS, d: int = TUPLES, seconds: float
    ) -> Found:
        """One group of d records with n terms for each of some datasets, searched within a time bound each.

        Where a search finds nothing in time, all terms go: that is what a publisher would have to do, at cost 1.
        """
        people = self.people(n)
        order = (APART * np.arange(datasets)[:, None] + np.arange(d)).ravel()
        groups = np.arange(datasets + 1) * d
        arrays = people.bounds, people.codes
        found = search_groups(
            order, groups, *arrays, self.knowledge, wanted, people.alpha, search=search, seconds=seconds
        )
        removed = found.removed.copy()
        removed[(n * order[np.repeat(~found.feasible, d)][:, None] + np.arange(n)).ravel()] = True
        gone = np.concatenate(([0], np.cumsum(~removed)))
        left = gone[people.bounds], people.codes[~removed]
        holds = wanted.holds(measure_groups(order, groups, *left, self.knowledge, people.alpha, l=wanted.l))
        lost = np.diff(np.concatenate(([0], np.cumsum(removed)))[people.bounds])[order].reshape(datasets, d).sum(axis=1)
        cost = np.where(found.feasible, found.cost, 1.0)
        return Found(cost, lost, found.optimal & found.feasible, holds, found.feasible)

    def one(
        self, wanted: TermRequirement, search: Search, dataset: int, nodes: int, *, n: int = TERMS, d: int = TUPLES
    ) -> GroupResult:
        """The same for one group within a number of nodes, which is repeatable; its seconds are the processor's."""
        people = self.people(n)
        first = APART * dataset
        bounds = np.arange(d + 1) * n
        codes = people.codes[n * first : n * (first + d)]
        started = time.thread_time()
        found = search_group(
            bounds, codes, self.knowledge, wanted, people.alpha, search=search, seconds=None, nodes=nodes
        )
        return replace(found, seconds=time.thread_time() - started)

    def linked_share(self, n: int) -> float:
        """Share of records with n terms drawn independently of each other that fit any label."""
        if n in self._linked:
            return self._linked[n]
        rng = np.random.default_rng(n)
        drawn = np.sort(np.argsort(rng.random((RECORDS, len(self.knowledge.terms))), axis=1)[:, :n], axis=1)
        order = np.arange(RECORDS)
        found = measure_groups(order, np.arange(RECORDS + 1), np.arange(RECORDS + 1) * n, drawn.ravel(), self.knowledge)
        self._linked[n] = float((found[:, 0] > 0).mean())
        return self._linked[n]

    @cached_property
    def used(self) -> Used:
        """What the summary says of the generated tables."""
        digest = hashlib.sha256(self.knowledge.codes.tobytes() + self.terms.tobytes()).hexdigest()
        remark = f"{RECORDS:,} records of up to {MOST_TERMS} terms from it"
        return Used("knowledge table", "generated", len(self.knowledge.codes), 2, digest, remark)


def world_of(bench: Bench) -> World:
    world = bench.shared("quasi-sensitive world", World)
    bench.note(world.used)
    return world


def drawing_note(world: World, sizes: Sequence[int] = (1, 2, 3, TERMS)) -> str:
    shares = ", ".join(f"{world.linked_share(n):.1%} at {n}" for n in sizes)
    return (
        "Each record's terms come from one label. Terms drawn independently, as the paper's text can be read, fit "
        f"some label in only this share of records, by terms a record: {shares}. Such records reveal nothing, and no "
        "term would have to go."
    )


def rises(values: Sequence[float]) -> list[bool]:
    """Whether each step is upwards."""
    return [b > a + 1e-12 for a, b in pairwise(values)]


def falls(values: Sequence[float]) -> list[bool]:
    return [b < a - 1e-12 for a, b in pairwise(values)]


def listed(values: Sequence[float], form: str = ".3f") -> str:
    return ", ".join(format(value, form) for value in values)


def series_values(frame: pl.DataFrame, series: str, column: str, **where: object) -> list[float]:
    """A line of a sheet, in the order of its x."""
    kept = frame.filter(pl.col("series") == series, *(pl.col(name) == value for name, value in where.items()))
    return [float(value) for value in kept.sort("x")[column]]
