"""Figure 13: what SWEEP publishes of data sets whose secrets are too skewed for simple l-diversity."""

from __future__ import annotations

from typing import Any

import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Figure, Result
from noren_papers.claims import Claims
from noren_papers.relations import Check, Compare
from noren_papers.tau_l.common import CHUNKS, KEYS, SUPPRESSED, SWEEP, dataset, gain, label, sheet
from noren_papers.tau_l.strength import eligible_ranges

SMALL: dict[str, tuple[tuple[float, int], ...]] = {
    "adult-salary": ((0.7, 2), (0.6, 2), (0.5, 2)),
    "car": ((0.6, 2), (0.5, 2), (0.5, 3), (0.4, 4)),
    "mushroom": ((0.51, 2), (0.5, 2)),
    "cmc": ((0.5, 2), (0.5, 3), (0.4, 3)),
}
"""Data sets with a largest simple l of 1 (of 2 for the last), and requirements up to the strictest kind."""
OTHERS = ("nursery", "chess", "abalone", "adult")
"""Further data sets, each asked for one l more than simple l-diversity allows."""
METHODS = (SWEEP, CHUNKS, SUPPRESSED)
USEFUL = "useful: more than one class, and both parts more than 0.01 above a table of stars"
OTHER_ORDER = "the order in which records are swept decides, and chunks have another order than the whole table"
PARTS = {
    "utility": "information left, all columns",
    "utility_quasi": "quasi-identifiers",
    "utility_sensitive": "secrets",
}


def figure_13(bench: Bench) -> Result:
    asked = dict(SMALL)
    for name in OTHERS:
        data = dataset(bench, name)
        l = eligible_ranges(data.counts).simple + 1
        asked[name] = ((1 / l if 1 / l >= 0.3 else round(1 / l + 0.005, 2), l),)
    frame = pl.concat([sheet(bench, name, wanted, METHODS) for name, wanted in asked.items()])
    small = frame.filter(pl.col("data").is_in([dataset(bench, name).title for name in SMALL]))
    case = pl.format("{} {}", "data", "requirement")
    long = pl.concat(
        small.with_columns(case=case, part=pl.lit(words), left=pl.col(part)) for part, words in PARTS.items()
    )
    picture = draw.bars(
        long, x="case", y="left", series="method", order=METHODS, ours=(CHUNKS,), panel="part",
        panels=tuple(PARTS.values()), columns=1, x_title="", y_title="utility", height=120, step=13, shared_y=False,
        title="Figure 13. What SWEEP leaves of data sets with hardly any simple l-diversity",
        note="The last series publishes exact quasi-identifiers and no secret: it shows how little the sum says.",
    )  # fmt: skip
    return Result(
        {"": frame},
        {"": picture},
        SAID.answered(frame=frame.with_columns(kind=_kinds(bench), tells=_tells(bench))),
        (CHUNKS,),
        _parameters(bench, asked),
        (
            "Of the paper's data sets with a largest simple l of 1, Adult with salary, Car and Mushroom are available; "
            "Contraception (contraceptive method choice) has 2. The paper prints the requirement of Adult alone.",
            "Mushroom has eight of its 22 attributes as quasi-identifiers (the lattice of all is too large to walk), "
            "Abalone sex, length, diameter and height.",
        ),
        gain("information lost, SWEEP in chunks over SWEEP", frame, CHUNKS, SWEEP, "utility", OTHER_ORDER, lost=True),
    )


def _parameters(bench: Bench, asked: dict[str, tuple[tuple[float, int], ...]]) -> dict[str, Any]:
    return {
        f"{dataset(bench, name).title} ({dataset(bench, name).coded.n:,} rows)": [label(tau, l) for tau, l in wanted]
        for name, wanted in asked.items()
    }


def _kinds(bench: Bench) -> pl.Expr:
    """Whether a data set has hardly any simple l, or is asked for one l more than it has."""
    return pl.when(pl.col("data").is_in([dataset(bench, name).title for name in SMALL])).then(0).otherwise(1)


def _tells(bench: Bench) -> pl.Expr:
    """Whether more is told than by stars, which leave 1 over the number of values of a column."""
    floors: dict[str, tuple[float, float]] = {}
    for data in (dataset(bench, name) for name in OTHERS):
        stars = {name: 1 / len(tree.leaves) for name, tree in data.hierarchies.items()}
        mean = sum(stars[name] for name in data.quasi_identifiers) / len(data.quasi_identifiers)
        floors[data.title] = mean, stars[data.sensitive]
    quasi, secret = (
        pl.col("data").replace_strict({title: floor[i] for title, floor in floors.items()}, default=None)
        for i in (0, 1)
    )
    more = (pl.col("utility_quasi") > quasi + 0.01) & (pl.col("utility_sensitive") > secret + 0.01)
    return (more & (pl.col("classes") > 1)).fill_null(value=False)


SWEPT = pl.col("method") == SWEEP
SAID = Claims()
SAID(
    "SWEEP publishes non-empty tables of data sets with a very small eligible range.",
    Check(
        pl.col("utility").is_not_null() & (pl.col("classes") > 1), KEYS, ("utility",),
        where=SWEPT & (pl.col("kind") == 0),
    ),
)  # fmt: skip
SAID(
    "Of Adult with salary as the secret it keeps 0.7 of the information at (0.5, 2).",
    Compare(
        SWEEP, "alike", 0.7, "utility", KEYS, "method",
        where=(pl.col("data") == "Adult (salary)") & (pl.col("requirement") == "(0.5, 2)"),
        note="by this sum a table without any secret may keep more (see the picture)",
    ),
)  # fmt: skip
SAID(
    "It publishes useful tables of the other data sets too.",
    Check(
        pl.col("tells"), KEYS, ("utility_quasi", "utility_sensitive"), where=SWEPT & (pl.col("kind") == 1),
        note=f"one l beyond simple l-diversity; {USEFUL}",
    ),
)  # fmt: skip
FIGURES: tuple[Figure, ...] = (
    Figure(
        "13",
        "Output of SWEEP for data sets with a largest simple l of 1",
        SAID,
        figure_13,
        data=("adult", "car", "mushroom", "cmc", "nursery", "chess", "abalone"),
    ),
)
