"""Excessive protection: figures 9 and 10 over the whole plane of requirements, figure 11 at representative ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import MUCH, Answer, Claims, answer, count_below, judged
from noren_papers.relations import Check, answer_from, listed
from noren_papers.tau_l.common import (
    CHUNK,
    CHUNKS,
    CLD,
    KEYS,
    MONDRIAN,
    ONE_D,
    PAPERS,
    REQUIREMENTS,
    SWEEP,
    by_requirement,
    c_grid,
    dataset,
    gain,
    grid,
    label,
    rows_of,
    sheet,
    than,
)

PLANE = (*PAPERS, CHUNKS)
LINES = (*PAPERS, CHUNKS, MONDRIAN)
SEARCH_NOTE = (
    "1DLD: Noren's Hilbert with simple l from 2 up, the first table that satisfies (tau, l); CLD: Noren's Incognito "
    "with the fewest levels of generalisation for every (c, l) of the grid; of the tables that satisfy (tau, l) the "
    "one with least excessive protection. Methods run on the coded table; the metrics judge what they publish."
)
LEAST_NOTE = (
    "The paper's excessive protection of a table is that of its least protected class, so one class at the bound makes "
    "it 0 whatever the others are. The sheet has the mean over records beside it."
)
PUBLISHED = pl.col("utility").is_not_null()
ALL_PUBLISH = (PUBLISHED & pl.col("method").is_in(PAPERS)).sum().over(KEYS) == len(PAPERS)
"""Requirements for which each of the paper's methods has a release."""


def plane(bench: Bench, name: str) -> pl.DataFrame:
    """All figures of the plane, sorted so that tiles come in order."""
    return bench.shared(("tau-l", "plane", name), lambda: sheet(bench, name, grid(bench, name), PLANE))


def representative(bench: Bench) -> pl.DataFrame:
    """All figures at the representative requirements of both data sets."""

    def make() -> pl.DataFrame:
        return pl.concat([sheet(bench, name, asked, LINES) for name, asked in REQUIREMENTS.items()])

    return bench.shared(("tau-l", "representative"), make)


def tiles(frame: pl.DataFrame, value: str, title: str, words: str, methods: tuple[str, ...]) -> Any:
    return draw.tiles(
        frame, x="l", y="tau", value=value, title=title, panel="method", panels=methods, columns=2, value_title=words,
        note="Stronger requirements to the right and downwards; no tile: no table satisfies the requirement.",
    )  # fmt: skip


def parameters(bench: Bench, *names: str) -> dict[str, Any]:
    """What is needed to repeat a figure."""
    out: dict[str, Any] = {}
    for name in names:
        data = dataset(bench, name)
        out[f"{data.title} rows"] = data.coded.n
        out[f"{data.title} quasi-identifiers"] = list(data.quasi_identifiers)
        out[f"{data.title} sensitive"] = data.sensitive
    return out | {"c of CLD": list(c_grid(bench)), "l of CLD": "2 to the number of values", "chunk": CHUNK}


def requirements_named() -> dict[str, Any]:
    return {f"{name} requirements": [label(*one) for one in asked] for name, asked in REQUIREMENTS.items()}


def _gains(frame: pl.DataFrame) -> tuple[Gain, ...]:
    """By the mean over records, which one class at the bound cannot hide."""
    reason = "chunks are swept in another order than the whole table, and classes of general secrets are smaller"
    return gain("mean excess over records, SWEEP in chunks", frame, CHUNKS, SWEEP, "mean_excess", reason)


PLANE_SAID = Claims()
PLANE_SAID(
    "Over the plane of requirements SWEEP protects much less in excess than 1DLD and CLD.",
    than(SWEEP, "much below", (ONE_D, CLD), "excess"),
)


def _plane(bench: Bench, name: str, title: str) -> Result:
    frame = plane(bench, name)
    pictures = {"": tiles(frame, "excess", title, "least excess", PLANE)}
    answers = PLANE_SAID.answered(frame=frame)
    used, notes = parameters(bench, name), (SEARCH_NOTE, LEAST_NOTE)
    more = f"{frame.height} releases were measured."
    return Result({"": frame}, pictures, answers, (CHUNKS,), used, notes, _gains(frame), more)


SAID = Claims()


@SAID("SWEEP publishes a non-empty table for every (tau, l).")
def _never_empty(frame: pl.DataFrame, planes: pl.DataFrame) -> Answer:
    both = pl.concat([frame, planes]).filter(pl.col("method") == SWEEP)
    return answer_from(both, Check(PUBLISHED, KEYS, ("utility",), note="requirements of this figure and of the planes"))


@SAID("1DLD and CLD have no table for some of the requirements.")
def _others_empty(frame: pl.DataFrame) -> Answer:
    empty = {method: rows_of(frame, method, empty=True) for method in (ONE_D, CLD)}
    told = [
        f"{m} at {len(rows)}: {listed([' '.join(row[k] for k in KEYS) for row in rows])}" for m, rows in empty.items()
    ]
    return judged([len(rows) > 0 for rows in empty.values()], "Without a table: " + "; ".join(told))


@SAID("They have none for many more requirements than the figure shows.")
def _many_more(frame: pl.DataFrame, planes: pl.DataFrame) -> Answer:
    sides = [[float(len(rows_of(one, m, empty=True))) for one in (frame, planes)] for m in (ONE_D, CLD)]
    return answer(
        f"Requirements without a table here and in the planes of figures 9 and 10: 1DLD {sides[0][0]:g} and "
        f"{sides[0][1]:g}, CLD {sides[1][0]:g} and {sides[1][1]:g}; many more is at least twice as many",
        count_below([(here, there) for here, there in sides], MUCH),
    )


SAID(
    "Where all three publish, SWEEP protects much less in excess than 1DLD and CLD.",
    than(SWEEP, "much below", (ONE_D, CLD), "excess", where=ALL_PUBLISH),
)
SAID(
    "Where all three publish, 1DLD protects less in excess than CLD.",
    than(ONE_D, "below", CLD, "excess", where=ALL_PUBLISH),
)


@SAID(
    "The least excess of CLD, and of 1DLD, comes from quite different tables at different requirements, such as (c, l) "
    "= (2, 4) at (0.4, 4) and (4, 6) at (0.3, 5)."
)
def _other_tables(frame: pl.DataFrame) -> Answer:
    """Whether neighbouring requirements are served by different tables, for CLD and for 1DLD."""
    outcomes, texts = [], []
    for part in frame.filter(PUBLISHED, pl.col("method").is_in([CLD, ONE_D])).partition_by("method", "data"):
        if part.height > 1:
            outcomes.append(part.select("chosen", "classes").n_unique() > 1)
            said = "; ".join(
                f"{row['requirement']} {row['chosen']}, {row['classes']} classes" for row in part.to_dicts()
            )
            texts.append(f"{part['method'][0]} on {part['data'][0]}: {said}")
    return judged(outcomes, " | ".join(texts))


@SAID("Because simple l and (c, l) rarely match a (tau, l) exactly, 1DLD and CLD often protect more than asked.")
def _over_protect(frame: pl.DataFrame) -> Answer:
    over = {m: [row["excess"] > 1e-9 for row in rows_of(frame, m, empty=False)] for m in (ONE_D, CLD)}
    told = ", ".join(f"{m} at {sum(found)} of {len(found)}" for m, found in over.items())
    return judged(
        [sum(found) > len(found) / 2 for found in over.values() if found],
        f"Excess above 0: {told} requirements that it meets; often is more than half",
    )


def figure_11(bench: Bench) -> Result:
    frame = representative(bench)
    planes = pl.concat([plane(bench, name) for name in REQUIREMENTS])
    titles = {
        "excess": ("excessive protection (least class)", "Excessive protection at representative (tau, l)"),
        "mean_excess": ("excess, mean over records", "Excess of the class of an average record"),
    }
    pictures = {
        name: by_requirement(
            frame, y=y, y_title=titles[y][0], title=f"Figure 11. {titles[y][1]}", order=LINES, ours=(CHUNKS, MONDRIAN),
            size=(300, 200),
        )
        for name, y in (("", "excess"), ("mean", "mean_excess"))
    }  # fmt: skip
    notes = (
        SEARCH_NOTE,
        LEAST_NOTE,
        "The figure's axis is lost in the text; Adult's requirements are those of the other figures, Nursery's are "
        "chosen around the two that the text names.",
    )
    used = parameters(bench, *REQUIREMENTS) | requirements_named()
    answers = SAID.answered(frame=frame, planes=planes)
    more = f"Mondrian for (tau, l) itself publishes for {len(rows_of(frame, MONDRIAN, empty=False))} requirements."
    return Result({"": frame}, pictures, answers, (CHUNKS, MONDRIAN), used, notes, _gains(frame), more)


FIGURES: tuple[Figure, ...] = (
    *(
        Figure(key, title, PLANE_SAID, partial(_plane, name=name, title=f"Figure {key}. {title}"), data=(name,))
        for name, key, title in (
            ("adult", "9", "Excessive protection on Adult over (tau, l)"),
            ("nursery", "10", "Excessive protection on Nursery over (tau, l)"),
        )
    ),
    Figure("11", "Excessive protection at representative (tau, l)", SAID, figure_11, data=("adult", "nursery")),
)
