"""The paper's synthetic knowledge: 3,000 labels with about 20 terms each, every term in about 100 of them.

There are ten such worlds, one for each of the paper's ten random data sets, and one whose knowledge is real: diseases
and symptoms of Columbia's table. A record's terms are drawn from one label, and records of "n terms" have n on average
(the text's word for it), two fewer to two more. Drawn independently, three terms fit some label in one record of ten
and nine in none (`linked_share` measures it): a group of such records reveals nothing and needs no removal.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.methods.suppress.beliefs import TermRequirement, estimated_prior, measure_groups
from noren.methods.suppress.search import GroupResult, Search, search_group
from noren.schema.knowledge import Knowledge
from noren_papers.base import Bench
from noren_papers.datasets import Used

Array = NDArray[np.int64]

LABELS, PER_LABEL, OCCURRENCES = 3000, 20, 100
RECORDS = 3000
AROUND = 2
"""Records have their n terms on average: up to so many fewer or more."""
MOST_TERMS = 13 + AROUND
"""The longest records of the figures; all records come from labels that have so many terms, so that sets are nested."""
WORLDS = 10
REAL_TERMS, REAL_MOST = 7, 9
"""Average and largest number of terms of a record from the real table, whose labels have 14 on average."""
NODES = {"adaptive": 200_000, "depth-first": 200_000, "best": 50_000}
"""Search nodes a group, as many as a quarter of a second of a free processor allows, so that a run can be repeated."""
QUICK_NODES = 4_000
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
    """Records with n terms each on average, and the prior that their whole table gives."""

    bounds: Array
    codes: Array
    alpha: NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """What a search did to the group of one setting."""

    cost: float
    removed: int
    optimal: bool
    holds: bool
    solved: bool


class World:
    """One knowledge table and the records that every setting takes its groups from."""

    def __init__(self, seed: int = 2010, knowledge: Knowledge | None = None, most: int = MOST_TERMS) -> None:
        rng = np.random.default_rng(seed)
        self.knowledge = make_knowledge(rng) if knowledge is None else knowledge
        self.most = most
        self.terms = draw_terms(rng, self.knowledge, RECORDS, most)
        self.around = rng.integers(-AROUND, AROUND + 1, RECORDS)
        self._people: dict[int, People] = {}
        self._linked: dict[int, float] = {}

    def people(self, n: int = TERMS) -> People:
        if n not in self._people:
            sizes = np.minimum(n + self.around, self.most)
            kept = np.arange(self.most) < sizes[:, None]
            codes = np.sort(np.where(kept, self.terms, len(self.knowledge.terms)), axis=1)[kept]
            bounds = np.concatenate(([0], np.cumsum(sizes)))
            self._people[n] = People(bounds, codes, estimated_prior(bounds, codes, self.knowledge))
        return self._people[n]

    def search(
        self,
        wanted: TermRequirement,
        search: Search,
        dataset: int = 0,
        *,
        n: int = TERMS,
        d: int = TUPLES,
        nodes: int | None = None,
        seconds: float | None = None,
        prices: NDArray[np.float64] | None = None,
    ) -> Found:
        """One group of d records with about n terms, searched within a number of nodes, or within some seconds.

        Where a search finds nothing in time, all terms go: that is what a publisher would have to do, at cost 1.
        """
        people = self.people(n)
        bounds, codes = self._group(people, dataset, d)
        nodes = NODES[search] if nodes is None and seconds is None else nodes
        found = self.one(wanted, search, dataset, nodes, n=n, d=d, seconds=seconds, prices=prices)
        removed = found.removed if found.feasible else np.ones(len(codes), bool)
        left = np.concatenate(([0], np.cumsum(~removed)))[bounds]
        order, whole = np.arange(d), np.array([0, d])
        measures = measure_groups(order, whole, left, codes[~removed], self.knowledge, people.alpha, l=wanted.l)
        return Found(
            cost=found.cost if found.feasible else 1.0,
            removed=int(removed.sum()),
            optimal=found.optimal and found.feasible,
            holds=bool(wanted.holds(measures).all()),
            solved=found.feasible,
        )

    def _group(self, people: People, dataset: int, d: int) -> tuple[Array, Array]:
        first = APART * dataset
        bounds = people.bounds[first : first + d + 1]
        return bounds - bounds[0], people.codes[bounds[0] : bounds[-1]]

    def one(
        self, wanted: TermRequirement, search: Search, dataset: int, nodes: int | None, *, n: int = TERMS,
        d: int = TUPLES, seconds: float | None = None, prices: NDArray[np.float64] | None = None,
    ) -> GroupResult:  # fmt: skip
        """A search of one group within a number of nodes, which is repeatable, or within seconds by the clock; the
        seconds of its result are the processor's.

        prices: what every term is worth; the paper's cost unless given.
        """
        people = self.people(n)
        bounds, codes = self._group(people, dataset, d)
        started = time.thread_time()
        found = search_group(
            bounds,
            codes,
            self.knowledge,
            wanted,
            people.alpha,
            search=search,
            seconds=seconds,
            nodes=nodes,
            prices=prices,
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
        remark = f"{RECORDS:,} records of up to {self.most} terms from it"
        return Used("knowledge table", "generated", len(self.knowledge.codes), 2, digest, remark)


def world_of(bench: Bench, number: int = 0) -> World:
    """One of the synthetic worlds."""
    world = bench.shared(("quasi-sensitive world", number), lambda: World(2010 + number))
    bench.note(replace(world.used, name=f"knowledge table {number + 1}"))
    return world


def real_world(bench: Bench) -> World:
    """Diseases and symptoms of Columbia's table as knowledge; records are drawn from diseases all equally often."""
    frame = bench.table("columbia")

    def make() -> World:
        named = frame.with_columns(pl.col("symptom").str.strip_chars()).filter(pl.col("symptom") != "")
        symptoms = sorted(set(named["symptom"]))
        place = {name: i for i, name in enumerate(symptoms)}
        sets = [
            sorted({place[name] for name in part["symptom"]})
            for part in named.partition_by("disease", maintain_order=True)
        ]
        return World(1997, Knowledge.from_sets(sets, terms=symptoms), REAL_MOST)

    world = bench.shared("quasi-sensitive real world", make)
    bench.note(replace(world.used, name="records with symptoms of Columbia's table"))
    return world


def drawing_note(world: World, sizes: Sequence[int] = (1, 2, 3, TERMS)) -> str:
    shares = ", ".join(f"{world.linked_share(n):.1%} at {n}" for n in sizes)
    return (
        "Each record's terms come from one label. Terms drawn independently, as the paper's text can be read, fit "
        f"some label in only this share of records, by terms a record: {shares}. Such records reveal nothing, and no "
        "term would have to go."
    )
