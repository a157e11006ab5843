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
from noren_papers.claims import Answer, Below, answer, judged, means, paired
from noren_papers.quasi_sensitive import world as worlds
from noren_papers.quasi_sensitive.world import OURS, QUICK_NODES, SERIES, World

TITLE = "removal of terms under other cost metrics"
INVERSE, COUNT, TOLD = "equation 2", "terms removed", "what terms tell"
SETTINGS: Mapping[str, tuple[TermRequirement, bool]] = {
    "(1, 30)-diversity": (TermRequirement("cl", c=1.0, l=30), False),
    "0.3-closeness": (TermRequirement("t", t=0.3), False),
    "(1, 8)-diversity, real symptoms": (TermRequirement("cl", c=1.0, l=8), True),
    "0.25-closeness, real symptoms": (TermRequirement("t", t=0.25), True),
}
CLAIMS = {
    "optimal": "The adaptive search can be adapted to another cost metric and finds optimal solutions for it.",
    "cheaper": "Under another metric, too, the adaptive search costs less than depth-first search.",
}
ADAPTIVE, BLIND = SERIES["adaptive"], SERIES["depth-first"]


def prices(world: World) -> dict[str, NDArray[np.float64] | None]:
    """What every term is worth, by metric."""
    labels, terms = len(world.knowledge.labels), len(world.knowledge.terms)
    held = np.bincount(world.knowledge.codes, minlength=terms)
    told = -np.log2(np.maximum(held, 1) / (labels + 1))
    return {INVERSE: None, COUNT: np.ones(terms), TOLD: told}


def compute(bench: Bench) -> Result:
    groups = bench.pick(worlds.WORLDS, 3)
    bench.plan(len(SETTINGS))
    rows = []
    for setting, (wanted, real) in SETTINGS.items():
        for i in range(groups):
            world = worlds.real_world(bench) if real else worlds.world_of(bench, i)
            rows += _searched(world, setting, wanted, i, real, QUICK_NODES if bench.quick else None)
        bench.step(setting)
    every = pl.DataFrame(rows)
    mean = means(every, ("setting", "metric", "series"), "cost", pl.col("terms removed").mean(), pl.col("proven").sum())
    return Result(
        sheets={"": mean, "groups": every},
        pictures={"": _picture(mean)},
        answers={"optimal": _optimal(every), "cheaper": _cheaper(every)},
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
        gains=Gain.of("cost of removed terms, three metrics", _ratios(every), "the same optimum was found"),
    )


def _searched(
    world: World, setting: str, wanted: TermRequirement, i: int, real: bool, nodes: int | None
) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    terms, place = (worlds.REAL_TERMS, i) if real else (worlds.TERMS, 0)
    for metric, worth in prices(world).items():
        for search, name in SERIES.items():
            found = world.search(wanted, search, place, n=terms, nodes=nodes, prices=worth)  # type: ignore[arg-type]
            assert found.holds or not found.solved
            out.append(
                {
                    "setting": setting, "metric": metric, "group": i + 1, "series": name, "cost": found.cost,
                    "terms removed": found.removed, "proven": found.optimal,
                }
            )  # fmt: skip
    return out


def _wide(every: pl.DataFrame) -> pl.DataFrame:
    """One line a group and metric, with what each search paid, and whether ours is proven to pay the least."""
    keys = ["setting", "metric", "group"]
    proven = every.filter(pl.col("series") == OURS).select(*keys, "proven")
    return every.pivot(on="series", index=keys, values="cost", maintain_order=True).join(proven, on=keys)


def _optimal(every: pl.DataFrame) -> Answer:
    wide = _wide(every).filter((pl.col("metric") != INVERSE) & pl.col("proven") & (pl.col(OURS) > 0))
    reached = (wide[ADAPTIVE] <= wide[OURS] * (1 + 1e-9)).to_list()
    over = (wide[ADAPTIVE] / wide[OURS]).to_list()
    return judged(
        reached,
        f"Of {len(reached)} groups whose least cost is proven the adaptive search ends at it in {sum(reached)}; it "
        f"pays {np.mean(over):.2f} times the least on average, {max(over):.2f} times at most",
    )


def _cheaper(every: pl.DataFrame) -> Answer:
    wide = _wide(every).filter(pl.col("metric") != INVERSE)
    parts = wide.partition_by("setting", "metric", maintain_order=True)
    ratios = [sum(part[ADAPTIVE].to_list()) / sum(part[BLIND].to_list()) for part in parts]
    return answer(
        "Mean cost of the adaptive search over that of depth-first, by requirement and metric: "
        f"{worlds.listed(ratios)}",
        Below([paired(part[ADAPTIVE].to_list(), part[BLIND].to_list()) for part in parts]),
    )


def _ratios(every: pl.DataFrame) -> dict[str, float]:
    parts = _wide(every).partition_by("setting", "metric", maintain_order=True)
    return {f"{p['setting'][0]}, {p['metric'][0]}": sum(p[OURS].to_list()) / sum(p[ADAPTIVE].to_list()) for p in parts}


def _picture(mean: pl.DataFrame) -> object:
    return draw.bars(
        mean, x="metric", y="cost", series="series", panel="setting", columns=2, ours=[OURS],
        order=list(SERIES.values()),
        error="standard error", x_title="", y_title="cost, of removing everything", step=14,
        title="Section 6. Cost of removed terms under three metrics",
        note="Groups of five records, nine or seven terms each",
    )  # fmt: skip
