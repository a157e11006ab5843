"""Figure 8: the cost of the best solution so far against time, for six random groups.

A search that is given a number of nodes always does the same, so its course is read off by running it with more and
more nodes. Times are processor seconds of the runs, so that a busy machine changes little, and they include the
preparation of the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import polars as pl

from noren.methods.suppress.beliefs import TermRequirement
from noren.methods.suppress.search import GroupResult, Search
from noren_papers import draw
from noren_papers.base import Answer, Bench, Result, judged
from noren_papers.quasi_sensitive.search import C, Kind, L, T
from noren_papers.quasi_sensitive.world import (
    OURS,
    SERIES,
    TERMS,
    TUPLES,
    World,
    drawing_note,
    listed,
    world_of,
)

DATASETS = 6
RATIO = 1.5
REPEATS = 5
LONGEST = 2.0
"""Seconds that our search may take to prove the optimum; it needs a few hundredths."""
SMALL = {"n": 5, "d": 3}
"""Terms and records of groups small enough for every search to come to its end."""
KINDS: Mapping[Kind, str] = {"cl": "QS (c, l)-diversity", "t": "QS t-closeness"}

TITLE = "cost against execution time of the searches"
CLAIMS = {
    "better": "In all six graphs the adaptive search ends with a better result than depth-first search.",
    "early": "Both searches find a first solution at the beginning of their run.",
    "initial": "Its first result is cheaper than that of depth-first search.",
    "completes": "It completes earlier.",
    "updates": "It updates its result less often.",
    "close": "Little is left to gain after its first result: that is nearly optimal.",
    "optimal": "Both searches would find the optimum in the end.",
    "bound": "Ten seconds, a tenth of the time watched, are a reasonable bound.",
    "closeness": "For QS t-closeness the comparison comes out alike (the paper leaves these results out).",
}


@dataclass
class Course:
    """How one search went on one group: (nodes, seconds, cost) at every rung with a solution, and when it ended.

    Removing everything is no solution here: nobody needs a search for it.
    """

    rungs: list[tuple[int, float, float]] = field(default_factory=list)
    ended: float | None = None

    @property
    def first(self) -> float:
        return self.rungs[0][2] if self.rungs else 1.0

    @property
    def last(self) -> float:
        return self.rungs[-1][2] if self.rungs else 1.0

    @property
    def updates(self) -> int:
        """Improvements that the rungs show; between two of them there may be more."""
        return len({round(cost, 10) for _, _, cost in self.rungs}) - 1 if self.rungs else 0

    def at(self, seconds: float) -> float:
        """The cost reached by then; 1, everything removed, before there is a solution."""
        return min((cost for _, spent, cost in self.rungs if spent <= seconds), default=1.0)


def followed(world: World, wanted: TermRequirement, search: Search, dataset: int, bound: float, **size: int) -> Course:
    """The course of a search until it ends or, once it has a solution, a run takes longer than the bound."""
    course = Course()
    nodes, empty = 1, 0
    spent = 0.0
    while spent < bound or not course.rungs:
        result = world.one(wanted, search, dataset, nodes, **size)
        spent = result.seconds
        solved = _solved(result)
        if not solved:
            empty = nodes
        elif not course.rungs:
            for found in _beginning(world, wanted, search, dataset, (empty, nodes), **size):
                course.rungs.append((found.nodes, found.seconds, found.cost))
        if solved:
            course.rungs.append((result.nodes, spent, result.cost))
        if result.optimal:
            course.ended = spent
            break
        nodes = int(np.ceil(nodes * RATIO)) + 1
    return course


def _solved(result: GroupResult) -> bool:
    return result.feasible and result.cost < 1 - 1e-9


def _beginning(
    world: World, wanted: TermRequirement, search: Search, dataset: int, between: tuple[int, int], **size: int
) -> list[GroupResult]:
    """The first solution: the smallest number of nodes that has one, by bisection."""
    low, high = between
    found = []
    while high - low > 1:
        middle = (low + high) // 2
        result = world.one(wanted, search, dataset, middle, **size)
        if _solved(result):
            high, found = middle, [result]
        else:
            low = middle
    return found


def wanted_of(kind: Kind) -> TermRequirement:
    return TermRequirement(kind, c=C, l=L, t=T)


Courses = dict[tuple[str, int], Course]


def courses(bench: Bench, world: World, kind: Kind, bound: float, **size: int) -> Courses:
    """The paper's searches for as long as the bound says; ours to its end, because its proof tells the optimum."""
    out = {}
    for dataset in range(DATASETS):
        for search in get_args(Search):
            limit = max(bound, LONGEST) if search == "best" else bound
            out[search, dataset] = followed(world, wanted_of(kind), search, dataset, limit, **size)
        bench.step(f"{KINDS[kind]}, dataset {dataset + 1}")
    return out


def completed(bench: Bench, world: World) -> pl.DataFrame:
    """How long every search takes to its end in small groups: the quickest of several runs."""
    rows = []
    for dataset in range(DATASETS):
        for search in get_args(Search):
            runs = [world.one(wanted_of("cl"), search, dataset, 1 << 40, **SMALL) for _ in range(REPEATS)]
            seconds = min(run.seconds for run in runs)
            rows.append(
                {
                    "panel": f"dataset {dataset + 1}", "series": SERIES[search], "x": seconds, "cost": runs[0].cost,
                    "nodes": runs[0].nodes, "complete": runs[0].optimal,
                }
            )  # fmt: skip
        bench.step(f"small groups, dataset {dataset + 1}")
    return pl.DataFrame(rows)


def sheet(found: Courses) -> pl.DataFrame:
    """One line a rung; times never run backwards, though single runs may be disturbed."""
    rows = []
    for (search, dataset), course in found.items():
        latest = 0.0
        for nodes, seconds, cost in course.rungs:
            latest = max(latest, seconds)
            rows.append(
                {
                    "panel": f"dataset {dataset + 1}", "series": SERIES[search], "x": latest, "cost": cost,
                    "nodes": nodes, "complete": course.ended is not None,
                }
            )  # fmt: skip
    return pl.DataFrame(rows)


def compute(bench: Bench) -> Result:
    world = world_of(bench)
    bound = bench.pick(1.0, 0.05)
    bench.plan(3 * DATASETS)
    large = {kind: courses(bench, world, kind, bound) for kind in KINDS}
    small = completed(bench, world)
    sheets = {"": sheet(large["cl"]), "t": sheet(large["t"]), "small": small}
    parts: tuple[tuple[str, Kind], ...] = (("", "cl"), ("t", "t"))
    pictures = {
        name: draw.lines(
            sheets[name], x="x", y="cost", series="series", panel="panel", columns=3, log_x=True, ours=[OURS],
            order=list(SERIES.values()), x_title="processor seconds", y_title="cost (equation 2)", size=(210, 150),
            title="Figure 8. Cost of the best solution so far against time",
            note=f"{KINDS[kind]}, six random groups of {TUPLES} records. A line that ends early belongs to a search "
            "that came to its end; one that ended at its first solution is a point.",
        )
        for name, kind in parts
    }  # fmt: skip
    answers = answered(large["cl"], bound) | {"completes": _completes(large["cl"], small, bound)}
    answers["closeness"] = _alike(large["t"], bound)
    return Result(
        sheets=sheets,
        pictures=pictures,
        answers=answers,
        ours=_gain(large, bound),
        ours_series=(OURS,),
        parameters={
            "terms a record": TERMS, "records a group": TUPLES, "c": C, "l": L, "t": T, "datasets": DATASETS,
            "seconds watched": bound, "nodes grow by": RATIO,
            "small groups": f"{SMALL['d']} records of {SMALL['n']} terms",
        },
        notes=(
            drawing_note(world),
            f"The paper watches 100 s on another machine, this run {bound:g} s of compiled code. Each point is a run "
            "of its own that was stopped after a number of nodes.",
            "Where no search comes to its end in time, completion is compared on smaller groups.",
        ),
    )  # fmt: skip


def _of(found: Courses, search: Search) -> list[Course]:
    return [found[search, dataset] for dataset in range(DATASETS)]


def answered(found: Courses, bound: float) -> dict[str, Answer]:
    ours, theirs, best = (_of(found, search) for search in ("adaptive", "depth-first", "best"))
    zipped = list(zip(ours, theirs, best, strict=True))
    optimum = [b.last for b in best if b.ended is not None]
    known = [(a, d, b) for a, d, b in zipped if b.ended is not None]
    at_end = [a.last <= b.last + 1e-9 for a, _, b in known] + [d.last <= b.last + 1e-9 for _, d, b in known]
    return {
        "better": judged(
            [a.last < d.last - 1e-9 for a, d, _ in zipped],
            f"Costs at the end, adaptive {listed([a.last for a in ours])}; depth-first "
            f"{listed([d.last for d in theirs])}",
        ),
        "early": judged(
            [c.rungs[0][1] <= bound / 10 for c in (*ours, *theirs)],
            f"First solutions after at most {1e3 * max(c.rungs[0][1] for c in ours):.1f} ms (adaptive) and "
            f"{1e3 * max(c.rungs[0][1] for c in theirs):.1f} ms (depth-first) of {bound:g} s; the beginning is the "
            "first tenth",
        ),
        "initial": judged(
            [a.first < d.first - 1e-9 for a, d, _ in zipped],
            f"First results, adaptive {listed([a.first for a in ours])}; depth-first "
            f"{listed([d.first for d in theirs])}",
        ),
        "updates": judged(
            [a.updates < d.updates for a, d, _ in zipped],
            f"Improvements after the first result, adaptive {listed([a.updates for a in ours], 'd')}; depth-first "
            f"{listed([d.updates for d in theirs], 'd')}",
        ),
        "close": judged(
            [a.first <= 1.05 * b.last + 1e-9 for a, _, b in known] or [False],
            f"First results of the adaptive search over the proven optimum of {len(optimum)} groups: "
            f"{listed([a.first / max(b.last, 1e-12) for a, _, b in known], '.2f')} times; close means within 5%",
        ),
        "optimal": judged(
            at_end or [False],
            f"The optimum, proven by our search in {len(optimum)} of {DATASETS} groups, was reached within {bound:g} s "
            f"by the adaptive search in {sum(at_end[: len(known)])} and by depth-first search in "
            f"{sum(at_end[len(known) :])}",
        ),
        "bound": judged(
            [a.at(bound / 10) <= 1.01 * a.last + 1e-9 for a in ours],
            f"After a tenth of the time the adaptive search is at "
            f"{listed([a.at(bound / 10) / max(a.last, 1e-12) for a in ours], '.3f')} times its last cost; within 1% "
            "counts as reasonable",
        ),
    }  # fmt: skip


def _completes(large: Courses, small: pl.DataFrame, bound: float) -> Answer:
    ended = {search: sum(c.ended is not None for c in _of(large, search)) for search in get_args(Search)}
    times = {s: small.filter(pl.col("series") == SERIES[s])["x"].to_list() for s in get_args(Search)}
    visited = {s: small.filter(pl.col("series") == SERIES[s])["nodes"].to_list() for s in get_args(Search)}
    pairs = [
        (a.ended, d.ended)
        for a, d in zip(_of(large, "adaptive"), _of(large, "depth-first"), strict=True)
        if a.ended is not None or d.ended is not None
    ]
    decided = [(a or np.inf) < (d or np.inf) for a, d in pairs]
    decided = decided or [a < d for a, d in zip(times["adaptive"], times["depth-first"], strict=True)]
    where = "in the groups of the figure" if pairs else "in small groups"
    return judged(
        decided,
        f"Of {DATASETS} groups the adaptive search completed {ended['adaptive']} within {bound:g} s, depth-first "
        f"search {ended['depth-first']}, ours {ended['best']}. In groups of {SMALL['d']} records with {SMALL['n']} "
        f"terms they took {listed([1e3 * np.median(times[s]) for s in ('adaptive', 'depth-first', 'best')], '.1f')} "
        f"ms (adaptive, depth-first, ours; medians of the quickest of {REPEATS} runs) and visited "
        f"{listed([np.median(visited[s]) for s in ('adaptive', 'depth-first', 'best')], ',.0f')} nodes. "
        f"Times are compared {where}",
    )


def _alike(found: Courses, bound: float) -> Answer:
    ours, theirs, best = (_of(found, search) for search in ("adaptive", "depth-first", "best"))
    zipped = list(zip(ours, theirs, strict=True))
    outcomes = [a.last < d.last - 1e-9 for a, d in zipped] + [a.first < d.first - 1e-9 for a, d in zipped]
    outcomes += [a.updates < d.updates for a, d in zipped]
    return judged(
        outcomes,
        f"Costs after {bound:g} s, adaptive {listed([a.last for a in ours])}; depth-first "
        f"{listed([d.last for d in theirs])}; first results {listed([a.first for a in ours])} and "
        f"{listed([d.first for d in theirs])}; improvements {listed([a.updates for a in ours], 'd')} and "
        f"{listed([d.updates for d in theirs], 'd')}; ours {listed([b.last for b in best])}. Better at the end, better "
        "at first, fewer updates",
    )


def _gain(large: Mapping[Kind, Courses], bound: float) -> str:
    words = []
    for kind, found in large.items():
        ours, theirs = _of(found, "best"), _of(found, "adaptive")
        ended = [c.ended for c in ours if c.ended is not None]
        late = f", at the latest after {max(ended):.3f} s" if ended else ""
        ratio = [a.last / b.last for a, b in zip(theirs, ours, strict=True) if b.last > 0]
        words.append(
            f"{KINDS[kind]}: our search proved the optimum in {len(ended)} of {DATASETS} groups{late}, the adaptive "
            f"search ended with {listed(ratio or [1.0], '.2f')} times our cost after {bound:g} s."
        )
    return " ".join(words)
