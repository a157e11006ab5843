"""Figure 8: the cost of the best solution so far against time, for a random group of each of six worlds.

A search that is given a number of nodes always does the same, so its course is read off by running it with more and
more nodes. What is said of time is judged in nodes, which no busy machine changes; the picture shows the processor
seconds of the runs, with the preparation of the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from noren.methods.suppress.beliefs import TermRequirement
from noren.methods.suppress.search import GroupResult, Search
from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import ALMOST, Answer, Below, answer, judged
from noren_papers.quasi_sensitive.search import C, L, T
from noren_papers.quasi_sensitive.world import (
    OURS,
    REAL_TERMS,
    SERIES,
    TERMS,
    TUPLES,
    World,
    drawing_note,
    listed,
    real_world,
    world_of,
)

DATASETS = 6
RATIO = 1.5
OPTIMUM = 100_000
"""Nodes that our search may take to prove the optimum; it needs some hundreds."""
BEGINNING = 10
"""The first solution comes at the beginning if it is found in the first tenth of the nodes."""
SMALL: Mapping[str, Any] = {"n": 5, "d": 3}
"""Terms and records of groups small enough for every search to come to its end."""
REAL_L = 10
"""l for the real table, which has 133 labels and not 3,000."""
Setting = Literal["cl", "t", "real"]
SETTINGS: Mapping[Setting, str] = {
    "cl": "QS (c, l)-diversity",
    "t": "QS t-closeness",
    "real": "QS (c, l)-diversity, real symptoms",
}

TITLE = "cost against execution time of the searches"
CLAIMS = {
    "better": "In all six graphs the adaptive search ends with a better result than depth-first search.",
    "early": "Both searches find a first solution at the beginning of their run.",
    "initial": "Its first result is cheaper than that of depth-first search.",
    "completes": "It completes earlier.",
    "updates": "It updates its result less often.",
    "close": "Little is left to gain after its first result: that is nearly optimal.",
    "optimal": "Both searches end with the optimum if they are left to complete.",
    "bound": "Ten seconds, a tenth of the time watched, are a reasonable bound.",
    "closeness": "For QS t-closeness the comparison comes out alike (the paper leaves these results out).",
}


@dataclass
class Course:
    """How one search went on one group: (nodes, seconds, cost) at every rung with a solution, and when it ended.

    Removing everything is no solution here: nobody needs a search for it.
    """

    rungs: list[tuple[int, float, float]] = field(default_factory=list)
    ended: int | None = None

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

    def at(self, nodes: float) -> float:
        """The cost reached by then; 1, everything removed, before there is a solution."""
        return min((cost for visited, _, cost in self.rungs if visited <= nodes), default=1.0)


def followed(world: World, wanted: TermRequirement, search: Search, dataset: int, limit: int, **size: Any) -> Course:
    """The course of a search until it ends or, once it has a solution, has visited so many nodes."""
    course = Course()
    nodes, empty = 1, 0
    while nodes < limit or not course.rungs:
        result = world.one(wanted, search, dataset, nodes, **size)
        solved = _solved(result)
        if not solved:
            empty = nodes
        elif not course.rungs:
            for found in _beginning(world, wanted, search, dataset, (empty, nodes), **size):
                course.rungs.append((found.nodes, found.seconds, found.cost))
        if solved:
            course.rungs.append((result.nodes, result.seconds, result.cost))
        if result.optimal:
            course.ended = result.nodes
            break
        nodes = int(np.ceil(nodes * RATIO)) + 1
    return course


def _solved(result: GroupResult) -> bool:
    return result.feasible and result.cost < 1 - 1e-9


def _beginning(
    world: World, wanted: TermRequirement, search: Search, dataset: int, between: tuple[int, int], **size: Any
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


def wanted_of(kind: Setting) -> TermRequirement:
    if kind == "real":
        return TermRequirement("cl", c=C, l=REAL_L)
    return TermRequirement(kind, c=C, l=L, t=T)


Courses = dict[tuple[str, int], Course]


def group_of(bench: Bench, kind: Setting, dataset: int) -> tuple[World, int, dict[str, int]]:
    """The world, the number of the group in it and the number of terms of one data set."""
    if kind == "real":
        return real_world(bench), dataset, {"n": REAL_TERMS}
    return world_of(bench, dataset), 0, {}


def courses(bench: Bench, kind: Setting, limit: int) -> Courses:
    """The paper's searches for as long as the limit says; ours to its end, because its proof tells the optimum."""
    out = {}
    for dataset in range(DATASETS):
        world, group, size = group_of(bench, kind, dataset)
        for search in get_args(Search):
            most = OPTIMUM if search == "best" else limit
            out[search, dataset] = followed(world, wanted_of(kind), search, group, most, **size)
        bench.step(f"{SETTINGS[kind]}, dataset {dataset + 1}")
    return out


def completed(bench: Bench) -> pl.DataFrame:
    """How many nodes every search visits to its end in small groups."""
    rows = []
    for dataset in range(DATASETS):
        for search in get_args(Search):
            run = world_of(bench, dataset).one(wanted_of("cl"), search, 0, 1 << 40, **SMALL)
            rows.append(
                {
                    "panel": f"dataset {dataset + 1}", "series": SERIES[search], "x": run.seconds, "cost": run.cost,
                    "nodes": run.nodes, "complete": run.optimal,
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
    limit = bench.pick(300_000, 2_000)
    bench.plan((len(SETTINGS) + 1) * DATASETS)
    for search in get_args(Search):  # what is loaded on first use must not be timed
        for kind in ("cl", "t"):
            world_of(bench).one(wanted_of(kind), search, 0, 1)
    large = {kind: courses(bench, kind, limit) for kind in SETTINGS}
    small = completed(bench)
    sheets = {"" if kind == "cl" else kind: sheet(found) for kind, found in large.items()}
    pictures = {
        name: draw.lines(
            one, x="x", y="cost", series="series", panel="panel", columns=3, log_x=True, ours=[OURS],
            order=list(SERIES.values()), x_title="processor seconds", y_title="cost (equation 2)", size=(210, 150),
            title="Figure 8. Cost of the best solution so far against time",
            note=f"{SETTINGS[name or 'cl']}, six random groups of {TUPLES} records. A line that ends early belongs "  # type: ignore[index]
            "to a search that came to its end; one that ended at its first solution is a point.",
        )
        for name, one in sheets.items()
    }  # fmt: skip
    synthetic = [large["cl"], large["real"]]
    answers = answered(synthetic, small, limit)
    answers["closeness"] = _alike(large["t"])
    return Result(
        sheets=sheets | {"small": small},
        pictures=pictures,
        answers=answers,
        ours_series=(OURS,),
        parameters={
            "terms a record": TERMS, "records a group": TUPLES, "c": C, "l": L, "t": T, "datasets": DATASETS,
            "nodes watched": limit, "nodes grow by": RATIO, "l, real symptoms": REAL_L,
            "terms a record, real symptoms": REAL_TERMS,
            "small groups": f"{SMALL['d']} records of {SMALL['n']} terms",
        },
        notes=(
            drawing_note(world_of(bench)),
            f"The paper watches 100 s on another machine, this run {limit:,} nodes of compiled code. Each point is a "
            "run of its own that was stopped after a number of nodes.",
            "Every data set is a group of a world of its own; those with real symptoms are six groups of one world, "
            "whose knowledge is Columbia's table.",
            "Where no search comes to its end in time, completion is compared on smaller groups.",
        ),
        gains=Gain.of(
            "cost at the end, best over adaptive search",
            {
                f"{SETTINGS[kind]}, dataset {i + 1}": b.last / a.last
                for kind, found in large.items()
                for i, (a, b) in enumerate(zip(_of(found, "adaptive"), _of(found, "best"), strict=True))
                if a.last > 0
            },
        ),
    )  # fmt: skip


def _of(found: Courses, search: Search) -> list[Course]:
    return [found[search, dataset] for dataset in range(DATASETS)]


def _joined(settings: Sequence[Courses], search: Search) -> list[Course]:
    return [course for found in settings for course in _of(found, search)]


def answered(settings: Sequence[Courses], small: pl.DataFrame, limit: int) -> dict[str, Answer]:
    """Over the synthetic and the real groups of diversity, in this order."""
    ours, theirs, best = (_joined(settings, search) for search in ("adaptive", "depth-first", "best"))
    pairs = list(zip(ours, theirs, strict=True))
    known = [(a, b) for a, b in zip(ours, best, strict=True) if b.ended is not None]
    tenth = limit / BEGINNING
    ends = {s: small.filter(pl.col("series") == SERIES[s]) for s in get_args(Search)}
    return {
        "better": answer(
            f"Costs at the end, adaptive {listed([a.last for a in ours])}; depth-first "
            f"{listed([d.last for d in theirs])} (six synthetic groups, then six with real symptoms)",
            Below([(a.last, d.last) for a, d in pairs]),
        ),
        "early": judged(
            [c.rungs[0][0] <= tenth for c in (*ours, *theirs)],
            f"First solutions after at most {max(c.rungs[0][0] for c in ours):,} nodes (adaptive) and "
            f"{max(c.rungs[0][0] for c in theirs):,} (depth-first) of {limit:,}; the beginning is the first tenth",
        ),
        "initial": answer(
            f"First results, adaptive {listed([a.first for a in ours])}; depth-first "
            f"{listed([d.first for d in theirs])}",
            Below([(a.first, d.first) for a, d in pairs]),
        ),
        "completes": _completes(settings, small, limit),
        "updates": answer(
            f"Improvements after the first result, adaptive {listed([a.updates for a in ours], 'd')}; depth-first "
            f"{listed([d.updates for d in theirs], 'd')}",
            Below([(a.updates, d.updates) for a, d in pairs]),
        ),
        "close": judged(
            [a.first <= (1 + ALMOST) * b.last + 1e-9 for a, b in known],
            f"First results of the adaptive search over the proven optimum of {len(known)} groups: "
            f"{listed([a.first / max(b.last, 1e-12) for a, b in known], '.2f')} times; nearly: within 5%",
        ),
        "optimal": judged(
            [
                bool(done) and abs(cost - least) <= 1e-9
                for s in ("adaptive", "depth-first")
                for cost, done, least in zip(ends[s]["cost"], ends[s]["complete"], ends["best"]["cost"], strict=True)
            ],
            f"In the groups of {SMALL['d']} records with {SMALL['n']} terms that both searches complete, their cost is "
            f"compared with the optimum that our search proves; in the large ones, after {limit:,} nodes, the adaptive "
            f"search has reached it in {sum(a.last <= b.last + 1e-9 for a, b in known)} of {len(known)}",
        ),
        "bound": judged(
            [a.at(tenth) <= (1 + ALMOST) * a.last + 1e-9 for a in ours],
            "After a tenth of the nodes the adaptive search is at "
            f"{listed([a.at(tenth) / max(a.last, 1e-12) for a in ours], '.3f')} times its last cost; reasonable: "
            "within 5%",
        ),
    }  # fmt: skip


def _completes(settings: Sequence[Courses], small: pl.DataFrame, limit: int) -> Answer:
    ended = {search: sum(c.ended is not None for c in _joined(settings, search)) for search in get_args(Search)}
    visited = {s: small.filter(pl.col("series") == SERIES[s])["nodes"].to_list() for s in get_args(Search)}
    pairs = [
        (float(a.ended or np.inf), float(d.ended or np.inf))
        for a, d in zip(_joined(settings, "adaptive"), _joined(settings, "depth-first"), strict=True)
        if a.ended is not None or d.ended is not None
    ]
    small_pairs = list(zip(map(float, visited["adaptive"]), map(float, visited["depth-first"]), strict=True))
    return answer(
        f"Of {len(settings) * DATASETS} groups the adaptive search completed {ended['adaptive']} within {limit:,} "
        f"nodes, depth-first search {ended['depth-first']}, ours {ended['best']} within {OPTIMUM:,}. In groups of "
        f"{SMALL['d']} records with {SMALL['n']} terms, which all complete, they visited "
        f"{listed([np.median(visited[s]) for s in ('adaptive', 'depth-first', 'best')], ',.0f')} nodes (medians of "
        "adaptive, depth-first, ours). Compared are the nodes to completion in all of these groups",
        Below([*pairs, *small_pairs]),
    )


def _alike(found: Courses) -> Answer:
    ours, theirs, best = (_of(found, search) for search in ("adaptive", "depth-first", "best"))
    pairs = list(zip(ours, theirs, strict=True))
    return answer(
        f"Costs at the end, adaptive {listed([a.last for a in ours])}; depth-first "
        f"{listed([d.last for d in theirs])}; first results {listed([a.first for a in ours])} and "
        f"{listed([d.first for d in theirs])}; improvements {listed([a.updates for a in ours], 'd')} and "
        f"{listed([d.updates for d in theirs], 'd')}; ours {listed([b.last for b in best])}. Better at the end, better "
        "at first, fewer updates",
        *(Below([(of(a), of(d)) for a, d in pairs]) for of in map(attrgetter, ("last", "first", "updates"))),
    )
