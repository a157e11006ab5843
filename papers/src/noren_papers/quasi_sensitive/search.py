"""Figures 6 and 7: what the adaptive search saves over depth-first search, over four or three parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from noren.methods.suppress.beliefs import TermRequirement
from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import Answer, Below, Trend, answer, judged, means
from noren_papers.claims import paired as as_pair
from noren_papers.quasi_sensitive.world import (
    NODES,
    OURS,
    QUICK_NODES,
    REAL_TERMS,
    SERIES,
    TERMS,
    TUPLES,
    WORLDS,
    drawing_note,
    listed,
    real_world,
    world_of,
)

Kind = Literal["cl", "t"]
C, L, T = 1.0, 30, 0.4


@dataclass(frozen=True)
class Panel:
    """One graph: what runs along x, and which way the cost is said to go."""

    key: str
    title: str
    values: tuple[float, ...]
    quick: tuple[float, ...]
    rising: bool
    real: bool = False
    """On Columbia's table instead of the synthetic ones."""


TERMS_PANEL = Panel("terms", "(a) terms a record", (5, 7, 9, 11, 13), (5, 9, 13), True)
PANELS: Mapping[Kind, tuple[Panel, ...]] = {
    "cl": (
        TERMS_PANEL,
        Panel("tuples", "(b) records a group", (2, 3, 5, 7, 10), (2, 5, 8), False),
        Panel("c", "(c) bound c", (0.25, 0.5, 1, 2, 4), (0.25, 1, 4), False),
        Panel("l", "(d) diversity l", (8, 15, 30, 60, 120), (8, 30, 120), True),
        Panel("l", "(e) diversity l, real symptoms", (4, 6, 8, 10, 15), (4, 10), True, real=True),
    ),
    "t": (
        TERMS_PANEL,
        Panel("tuples", "(b) records a group", (2, 3, 4, 5, 6), (2, 4, 6), False),
        Panel("t", "(c) closeness t", (0.1, 0.2, 0.25, 0.3, 0.4), (0.1, 0.25, 0.4), False),
        Panel("t", "(d) closeness t, real symptoms", (0.1, 0.2, 0.25, 0.3, 0.4), (0.1, 0.4), False, real=True),
    ),
}

COMMON = {
    "clearly cheaper": "In every graph the adaptive search costs clearly less than depth-first search.",
    "always better": "Within the time bound the adaptive search always finds the better solution.",
    "fewer terms": "The adaptive search removes fewer terms.",
    "guarantee": "What the adaptive search returns satisfies the requirement.",
    "terms": "The cost rises with the number of terms a record.",
    "tuples": "The cost falls with the number of records a group.",
}
CLAIMS: Mapping[Kind, Mapping[str, str]] = {
    "cl": COMMON | {"l": "The cost rises with l.", "c": "The cost falls with c."},
    "t": COMMON | {"t": "The cost falls with t, because less is required."},
}
TITLES: Mapping[Kind, str] = {
    "cl": "adaptive removal of terms against depth-first search, QS (c, l)-diversity",
    "t": "adaptive removal of terms against depth-first search, QS t-closeness",
}


def requirement(kind: Kind, panel: Panel, x: float) -> TermRequirement:
    c, l, t = C, L, T
    if panel.key == "c":
        c = x
    elif panel.key == "l":
        l = int(x)
    elif panel.key == "t":
        t = x
    return TermRequirement(kind, c=c, l=l, t=t)


def measured(bench: Bench, kind: Kind, datasets: int) -> pl.DataFrame:
    """One line for every panel, x, search and dataset: a group of each synthetic world, or groups of the real one."""
    parts = []
    for panel in PANELS[kind]:
        for x in bench.pick(panel.values, panel.quick):
            parts.append(_setting(bench, kind, panel, x, datasets))
            bench.step(f"{panel.title} = {x:g}")
    return pl.concat(parts)


def _setting(bench: Bench, kind: Kind, panel: Panel, x: float, datasets: int) -> pl.DataFrame:
    n = int(x) if panel.key == "terms" else REAL_TERMS if panel.real else TERMS
    d = int(x) if panel.key == "tuples" else TUPLES
    wanted = requirement(kind, panel, x)
    rows = []
    for search, name in SERIES.items():
        for i in range(datasets):
            world = real_world(bench) if panel.real else world_of(bench, i)
            group, nodes = (i if panel.real else 0), (QUICK_NODES if bench.quick else None)
            found = world.search(wanted, search, group, n=n, d=d, nodes=nodes)  # type: ignore[arg-type]
            rows.append(
                {
                    "panel": panel.title, "x": float(x), "series": name, "dataset": i + 1, "cost": found.cost,
                    "terms removed": found.removed, "proven": found.optimal, "holds": found.holds,
                    "solved": found.solved,
                }
            )  # fmt: skip
    return pl.DataFrame(rows)


def averaged(every: pl.DataFrame) -> pl.DataFrame:
    """Means over datasets."""
    return means(
        every, ("panel", "x", "series"), "cost", pl.col("terms removed").mean(),
        pl.col("proven").mean().alias("proven optimal"),
        (~pl.col("solved")).sum().alias("without a solution in time"), pl.len().alias("datasets"),
    )  # fmt: skip


def paired(every: pl.DataFrame, column: str = "cost") -> pl.DataFrame:
    """A column of the searches side by side, one line for every panel, x and dataset."""
    return every.pivot("series", index=["panel", "x", "dataset"], values=column)


def needed(pairs: pl.DataFrame) -> pl.DataFrame:
    """Without groups that satisfy the requirement as they are: there is nothing to compare in them."""
    kept = pairs.filter((pl.col("adaptive") > 0) | (pl.col("depth-first") > 0))
    return kept if kept.height else pairs


def compute(bench: Bench, kind: Kind) -> Result:
    datasets = bench.pick(WORLDS, 3)
    bench.plan(sum(len(bench.pick(panel.values, panel.quick)) for panel in PANELS[kind]))
    every = measured(bench, kind, datasets)
    mean = averaged(every)
    answers = answered(kind, every)
    number = "6" if kind == "cl" else "7"
    picture = draw.lines(
        mean, x="x", y="cost", series="series", panel="panel", columns=2, ours=[OURS], x_title="", shared_y=False,
        error="standard error",
        y_title="cost (equation 2)", order=list(SERIES.values()), title=f"Figure {number}. Cost of removed terms",
        note=f"{'QS (c, l)-diversity' if kind == 'cl' else 'QS t-closeness'}; means of one group from each of "
        f"{datasets} random worlds with two standard errors.",
    )  # fmt: skip
    return Result(
        sheets={"": mean, "datasets": every},
        pictures={"": picture},
        answers=answers,
        ours_series=(OURS,),
        parameters={
            "terms a record": TERMS, "records a group": TUPLES, "c": C, "l": L, "t": T, "datasets a setting": datasets,
            "search nodes a group": ", ".join(f"{SERIES[name]} {nodes:,}" for name, nodes in NODES.items()),
            "terms a record, real symptoms": REAL_TERMS,
            **{f"x of {panel.title}": list(bench.pick(panel.values, panel.quick)) for panel in PANELS[kind]},
        },
        notes=(
            drawing_note(world_of(bench)),
            "The paper bounds a search by 10 s of a 2.0 GHz laptop; here it is bounded by a number of nodes, so that a "
            "busy machine changes nothing. Figure 8 shows what more of them change.",
            "A dataset is one group of a world of its own (knowledge, records); settings share their groups: larger "
            "ones contain the smaller ones, longer records the shorter. The prior of closeness is estimated from 3,000 "
            "records of the same world. The last panel has ten groups of one world, whose knowledge is Columbia's "
            "table of diseases and symptoms.",
            "The adaptive search ranks removals by gain per cost, for closeness by the decrease of the squared "
            "distance (the paper's sign is a misprint), and breaks ties, of which plateaus of l' make many, by the "
            "slack that remains.",
        ),
        gains=gains(every),
    )  # fmt: skip


def answered(kind: Kind, every: pl.DataFrame) -> dict[str, Answer]:
    pairs = needed(paired(every))
    lost = needed(paired(every, "terms removed"))
    out = {
        "clearly cheaper": _clearly(pairs),
        "always better": _always(pairs, every),
        "fewer terms": _fewer(lost),
        "guarantee": _guaranteed(every),
    }
    for key in dict.fromkeys(panel.key for panel in PANELS[kind]):
        out[key] = _direction(every, [panel for panel in PANELS[kind] if panel.key == key])
    return out


def _by_setting(pairs: pl.DataFrame) -> dict[tuple[str, float], tuple[list[float], list[float]]]:
    """What the adaptive and depth-first search have in the groups of every setting."""
    return {
        (str(panel), float(x)): (part["adaptive"].to_list(), part["depth-first"].to_list())
        for (panel, x), part in pairs.group_by("panel", "x", maintain_order=True)
    }


def _clearly(pairs: pl.DataFrame) -> Answer:
    found = _by_setting(pairs)
    saved = {key: 1 - sum(a) / max(sum(d), 1e-12) for key, (a, d) in found.items()}
    panels = dict.fromkeys(panel for panel, _ in saved)
    words = ", ".join(f"{name} {np.mean([v for (p, _), v in saved.items() if p == name]):.1%}" for name in panels)
    return answer(
        f"Mean saving over depth-first search by graph: {words}; from {min(saved.values()):.1%} to "
        f"{max(saved.values()):.1%} over settings",
        Below([as_pair(a, d) for a, d in found.values()]),
    )


def _always(pairs: pl.DataFrame, every: pl.DataFrame) -> Answer:
    each = list(zip(pairs["adaptive"].to_list(), pairs["depth-first"].to_list(), strict=True))
    worse = sum(a > d + 1e-9 for a, d in each)
    return answer(
        f"Of {len(each)} groups that must lose terms the adaptive search is dearer in {worse}; it found nothing in "
        f"time in {_unsolved(every, 'adaptive')}, depth-first search in {_unsolved(every, 'depth-first')} (then "
        "everything goes)",
        Below(each),
    )


def _unsolved(every: pl.DataFrame, search: str) -> int:
    return int((~every.filter(pl.col("series") == SERIES[search])["solved"]).sum())


def _fewer(lost: pl.DataFrame) -> Answer:
    found = _by_setting(lost)
    totals = [np.mean([np.mean(pair[i]) for pair in found.values()]) for i in (0, 1)]
    return answer(
        f"On average {totals[0]:.2f} terms a group against {totals[1]:.2f} by depth-first search; by setting",
        Below([as_pair(a, d) for a, d in found.values()]),
    )


def _guaranteed(every: pl.DataFrame) -> Answer:
    own = every.filter(pl.col("series") == SERIES["adaptive"])["holds"]
    return judged(own.to_list(), "The beliefs were recomputed from the remaining terms by other code than the search's")


def _direction(every: pl.DataFrame, panels: Sequence[Panel]) -> Answer:
    """Both of the paper's searches, step by step along x, in the same groups."""
    claims, words = [], []
    for panel in panels:
        here = every.filter(pl.col("panel") == panel.title)
        for search in ("adaptive", "depth-first"):
            points = here.filter(pl.col("series") == SERIES[search]).partition_by("x", maintain_order=True)
            line = [point.sort("dataset")["cost"].to_list() for point in points]
            claims.append(Trend(line, panel.rising))
            words.append(f"{SERIES[search]} {listed([float(np.mean(one)) for one in line])}")
        words[-2] = f"{panel.title} at {listed(sorted(set(here['x'].to_list())), 'g')}: {words[-2]}"
    return answer("; ".join(words), *claims)


def gains(every: pl.DataFrame) -> tuple[Gain, ...]:
    """Our cost over the adaptive search's, by setting."""
    sums = paired(every).group_by("panel", "x", maintain_order=True).agg(pl.col(OURS, "adaptive").sum())
    found = {
        f"{panel} = {x:g}": ours / theirs for panel, x, ours, theirs in sums.iter_rows() if theirs > 0 and ours > 0
    }
    return Gain.of("cost of removed terms, best over adaptive search", found)
