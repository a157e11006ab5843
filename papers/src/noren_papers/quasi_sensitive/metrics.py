"""Sections 2.3 and 6: the searches under other cost metrics, to which they can be adapted as the text says.

Three metrics of one and the same groups: equation 2; every removed term costs 1, as in the work that section 6 names;
and every removed term costs what it tells, minus the binary logarithm of the share of labels that have it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.methods.suppress.beliefs import TermRequirement
from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import Claims, means
from noren_papers.quasi_sensitive import world as worlds
from noren_papers.quasi_sensitive.search import ADAPTIVE, BLIND
from noren_papers.quasi_sensitive.world import OURS, QUICK_NODES, SERIES, World
from noren_papers.relations import Check, Compare

TITLE = "removal of terms under other cost metrics"
INVERSE, COUNT, TOLD = "equation 2", "terms removed", "what terms tell"
SETTINGS: Mapping[str, tuple[TermRequirement, bool]] = {
    "(1, 30)-diversity": (TermRequirement("cl", c=1.0, l=30), False),
    "0.3-closeness": (TermRequirement("t", t=0.3), False),
    "(1, 8)-diversity, real symptoms": (TermRequirement("cl", c=1.0, l=8), True),
    "0.25-closeness, real symptoms": (TermRequirement("t", t=0.25), True),
}
KEYS = ("setting", "metric")
OTHER = pl.col("metric") != INVERSE
SAID = Claims()
SAID(
    "The adaptive search can be adapted to another cost metric and finds optimal solutions for it.",
    Check(
        pl.col("cost") <= pl.col("least") * (1 + 1e-9), (*KEYS, "group"), ("over the least",),
        where=OTHER & (pl.col("series") == ADAPTIVE) & pl.col("least is proven") & (pl.col("least") > 0),
        note="groups whose least cost is proven",
    ),
    of="every",
)  # fmt: skip
SAID(
    "Under another metric, too, the adaptive search costs less than depth-first search.",
    Compare(ADAPTIVE, "below", BLIND, "cost", KEYS, each="costs", where=OTHER),
)


def prices(world: World) -> dict[str, NDArray[np.float64] | None]:
    """What every term is worth, by metric."""
    labels, terms = len(world.knowledge.labels), len(world.knowledge.terms)
    held = np.bincount(world.knowledge.codes, minlength=terms)
    told = -np.log2(np.maximum(held, 1) / (labels + 1))
    return {INVERSE: None, COUNT: np.ones(terms), TOLD: told}


def compute(bench: Bench) -> Result:
    groups = bench.pick(worlds.WORLDS, 3)

    def searched(setting: str) -> list[dict[str, object]]:
        wanted, real = SETTINGS[setting]
        found = [worlds.real_world(bench) if real else worlds.world_of(bench, i) for i in range(groups)]
        nodes = QUICK_NODES if bench.quick else None
        return [line for i, world in enumerate(found) for line in _searched(world, wanted, i, real, nodes)]

    every = bench.sweep([{"setting": setting} for setting in SETTINGS], searched)
    for name, column in (("least", "cost"), ("least is proven", "proven")):
        ours = pl.col(column).filter(pl.col("series") == OURS).first().over(*KEYS, "group")
        every = every.with_columns(ours.alias(name))
    every = every.with_columns((pl.col("cost") / pl.col("least")).alias("over the least"))
    more = (pl.col("terms removed").mean(), pl.col("proven").sum(), pl.col("cost").alias("costs"))
    frame = means(every, (*KEYS, "series"), "cost", *more)
    mean = frame.drop("costs")
    return Result(
        sheets={"": mean, "groups": every},
        pictures={"": _picture(mean)},
        answers=SAID.answered(frame=frame, every=every),
        ours_series=(OURS,),
        parameters={
            "groups": groups,
            "nodes of a search": bench.pick(worlds.NODES, QUICK_NODES),
            "records of a group": 5,
        },
        notes=(
            "A group of each of ten synthetic worlds, and ten groups of Columbia's diseases and symptoms. Searches "
            "stop after a number of nodes, so that a run can be repeated, as many as in figures 6 and 7. "
            "Where a search finds nothing, all terms go, at cost 1. Costs are shares of what removing "
            "everything would cost.",
            "The optimum is that of the search over label sets, wherever it proves it; it holds for every metric in "
            "which a record that keeps more terms loses less.",
        ),
        gains=Gain.over(
            "cost of removed terms, three metrics", mean, KEYS, OURS, ADAPTIVE, "cost", "the same optimum was found"
        ),
    )


def _searched(world: World, wanted: TermRequirement, i: int, real: bool, nodes: int | None) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    terms, place = (worlds.REAL_TERMS, i) if real else (worlds.TERMS, 0)
    for metric, worth in prices(world).items():
        for search, name in SERIES.items():
            found = world.search(wanted, search, place, n=terms, nodes=nodes, prices=worth)  # type: ignore[arg-type]
            assert found.holds or not found.solved
            out.append(
                {
                    "metric": metric, "group": i + 1, "series": name, "cost": found.cost,
                    "terms removed": found.removed, "proven": found.optimal,
                }
            )  # fmt: skip
    return out


def _picture(mean: pl.DataFrame) -> object:
    return draw.bars(
        mean, x="metric", y="cost", series="series", panel="setting", columns=2, ours=[OURS],
        order=list(SERIES.values()),
        error="standard error", x_title="", y_title="cost, of removing everything", step=14,
        title="Section 6. Cost of removed terms under three metrics",
        note="Groups of five records, nine or seven terms each",
    )  # fmt: skip
