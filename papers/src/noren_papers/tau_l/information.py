"""Utility by information: figures 14 and 15 over the plane of requirements, figure 16 at representative ones.

The paper's measure adds quasi-identifiers and the secret. Here the parts are shown apart, and so is a table of exact
quasi-identifiers without any secret, which the sum rewards.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from noren.methods import Mondrian
from noren.metrics.information import utility_score
from noren.models import RecursiveCLDiversity
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import MUCH, Answer, Claims, answer, cannot, count_below, judged
from noren_papers.relations import listed
from noren_papers.tau_l.common import (
    BOTH,
    CHUNKS,
    CLD,
    KEYS,
    MONDRIAN,
    ONE_D,
    PAPERS,
    REQUIREMENTS,
    SUPPRESSED,
    SWEEP,
    Row,
    by_requirement,
    dataset,
    gain,
    grid,
    made,
    mean,
    release_of,
    rows_of,
    scored,
    settings,
    sheet,
    than,
)
from noren_papers.tau_l.protection import (
    PLANE,
    SEARCH_NOTE,
    parameters,
    plane,
    representative,
    requirements_named,
    tiles,
)

LINES = (*PAPERS, SUPPRESSED, CHUNKS, MONDRIAN)
WITH_STARS = (*PLANE, SUPPRESSED)
PARTS = {"": "utility", "quasi-identifiers": "utility_quasi", "secrets": "utility_sensitive"}
WEIGHTS = (0.0, 1.0, 3.0, 7.0)
"""How much the secret counts beside each quasi-identifier."""
SUM_NOTE = (
    "The measure is a sum over columns, so exact quasi-identifiers with every secret at the root have a high utility "
    "and satisfy every requirement. That table is drawn as a series of its own, and both parts have their own picture."
)
BEST = than(SWEEP, "above", (ONE_D, CLD), "utility")
SECOND = than(ONE_D, "above", CLD, "utility")


def _title(title: str, part: str) -> str:
    return f"{title}: {part} alone" if part else title


def _gains(frame: pl.DataFrame) -> tuple[Gain, ...]:
    reason = (
        "the order in which records are swept decides, and chunks have another order than the whole table; other sizes "
        "of chunks were not tried here"
    )
    return gain("information lost, SWEEP in chunks over SWEEP", frame, CHUNKS, SWEEP, "utility", reason, lost=True)


def _name_of(bench: Bench, row: Row) -> str:
    return next(name for name in BOTH if dataset(bench, name).title == row["data"])


def _would_be_worse(bench: Bench, frame: pl.DataFrame) -> Answer:
    """The table that was taken beside the mean of the others that would do."""
    compared, texts = [], []
    for method in (ONE_D, CLD):
        taken, rest = [], []
        for row in rows_of(frame, method, empty=False):
            found = scored(bench, _name_of(bench, row), method, row["tau"], row["l"])
            others = [utility for _, utility in found if abs(utility - row["utility"]) > 1e-12]
            if others:
                compared.append((mean(others), row["utility"]))
                taken.append(row["utility"])
                rest.append(mean(others))
        texts.append(f"{method} keeps {mean(taken):.3f}, its other tables that satisfy {mean(rest):.3f} on average")
    return answer("; ".join(texts) + "; much less is at most half", count_below(compared, MUCH))


def _correlation(bench: Bench, frame: pl.DataFrame) -> Answer:
    """Rank correlation of excess and utility, over all tables of all methods that satisfy one requirement."""
    found = []
    for row in rows_of(frame, SWEEP, empty=False):
        points = [(row["excess"], row["utility"])]
        for method in (ONE_D, CLD):
            points += scored(bench, _name_of(bench, row), method, row["tau"], row["l"])
        if len(points) > 3:
            value = rank_correlation(*(np.array(side) for side in zip(*points, strict=True)))
            if np.isfinite(value):
                found.append(value)
    words = f"between {min(found):.2f} and {max(found):.2f}, {mean(found):.2f} on average" if found else "not defined"
    return judged(
        [value < 0 for value in found],
        f"Rank correlation of excess and utility over the tables that satisfy one (tau, l): {words}",
    )


def rank_correlation(x: Any, y: Any) -> float:
    """Spearman's, with mean ranks for ties; not a number where one side is constant."""
    ranks = [np.array([(side < v).sum() + (side == v).sum() / 2 for v in side.tolist()]) for side in (x, y)]
    if min(rank.std() for rank in ranks) == 0:
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


PLANE_SAID = Claims()
PLANE_SAID("Over the plane of requirements SWEEP keeps more information than 1DLD and CLD.", BEST)
PLANE_SAID("1DLD keeps more than CLD.", SECOND)


@PLANE_SAID("1DLD and CLD have no result where a requirement leaves them an empty table.")
def _no_result(frame: pl.DataFrame) -> Answer:
    empty = {method: len(rows_of(frame, method, empty=True)) for method in (ONE_D, CLD)}
    told = ", ".join(f"{method} has no table for {number}" for method, number in empty.items())
    return judged([number > 0 for number in empty.values()], f"Of {len(rows_of(frame, SWEEP))} requirements {told}")


PLANE_SAID("These are their tables with least excessive protection; their others keep much less.")(_would_be_worse)
PLANE_SAID("The more excessive protection, the less utility.")(_correlation)


def _plane(bench: Bench, name: str, title: str) -> Result:
    frame = pl.concat([plane(bench, name), sheet(bench, name, grid(bench, name), (SUPPRESSED,))])
    pictures = {part: tiles(frame, value, _title(title, part), "utility", WITH_STARS) for part, value in PARTS.items()}
    used, notes = parameters(bench, name), (SUM_NOTE, SEARCH_NOTE)
    answers = PLANE_SAID.answered(frame=frame, bench=bench)
    return Result({"": frame}, pictures, answers, (CHUNKS,), used, notes, _gains(frame))


SAID = Claims()
SAID("SWEEP keeps more information than 1DLD and CLD.", BEST)
SAID("1DLD keeps more than CLD.", SECOND)
SAID("Tables of 1DLD and CLD with more than the least excessive protection keep much less.")(_would_be_worse)
SAID("The more excessive protection, the less utility.")(_correlation)


@SAID("Global recoding, as in CLD, loses more than local recoding.")
def _global(bench: Bench) -> Answer:
    """CLD's own (c, l), met by local recoding instead: Mondrian beside Incognito under one requirement."""
    compared, texts, seen = [], [], set()
    for data, tau, l, _ in settings(bench):
        found = release_of(bench, data.name, CLD, tau, l)
        if found is None or (data.name, found.chosen) in seen:
            continue
        seen.add((data.name, found.chosen))
        c, size = (int(part.split("=")[1]) for part in found.chosen.split(","))
        need = RecursiveCLDiversity(on=data.sensitive, c=c, l=size)
        local = utility_score(made(bench, data, Mondrian(refinement=0), need, f"local {c} {size}")[0])
        compared.append((found.utility.total, local))
        texts.append(f"{data.title} ({found.chosen}) {local:.3f} beside {found.utility.total:.3f}")
    return answer(
        f"The same (c, l) met by local recoding (Mondrian) and by CLD: {listed(texts, 8)}", count_below(compared)
    )


@SAID("How much quasi-identifiers and secrets count plays no significant role.")
def _weights(bench: Bench, frame: pl.DataFrame) -> Answer:
    """Whether the order of the methods, and the best of all, depend on how much the secret counts."""
    order_kept, changed = [], []
    for part in frame.partition_by(KEYS, maintain_order=True):
        rows = [row for row in part.to_dicts() if row["utility"] is not None and row["method"] in (*PAPERS, SUPPRESSED)]
        columns = len(dataset(bench, _name_of(bench, part.row(0, named=True))).quasi_identifiers)
        orders = [ranked(rows, columns, weight) for weight in WEIGHTS]
        best = list(dict.fromkeys(order[0] for order in orders))
        order_kept.append(len({tuple(one for one in order if one in PAPERS) for order in orders}) == 1)
        if len(best) > 1:
            changed.append(f"{part['data'][0]} {part['requirement'][0]} ({' then '.join(best)})")
    return judged(
        order_kept,
        f"With the secret weighing {listed([f'{weight:g}' for weight in WEIGHTS])} quasi-identifiers, SWEEP, 1DLD and "
        f"CLD keep their order at {sum(order_kept)} of {len(order_kept)} requirements; with the table without secrets "
        f"among them, which the paper does not consider, the best changes at {len(changed)}: {listed(changed, 3)}",
    )


def ranked(rows: list[Row], columns: int, weight: float) -> list[str]:
    """Methods by utility, best first, where the secret counts as much as `weight` quasi-identifiers."""
    score = {row["method"]: columns * row["utility_quasi"] + weight * row["utility_sensitive"] for row in rows}
    return sorted(score, key=lambda method: -score[method])


@SAID(
    "On Nursery the total may rise with a stronger requirement, because secrets are generalised in place of "
    "quasi-identifiers."
)
def _rises(bench: Bench, frame: pl.DataFrame) -> Answer:
    """On Nursery: the strongest requirement beside the one where SWEEP keeps least."""
    title = dataset(bench, "nursery").title
    rows = [row for row in rows_of(frame, SWEEP, empty=False) if row["data"] == title]
    if len(rows) < 2:
        return cannot(f"SWEEP publishes for {len(rows)} requirements")
    low, last = min(rows[:-1], key=lambda row: row["utility"]), rows[-1]
    told = [
        f"{row['requirement']} {row['utility']:.2f} (quasi-identifiers {row['utility_quasi']:.2f}, secrets "
        f"{row['utility_sensitive']:.2f})"
        for row in (low, last)
    ]
    more = last["utility"] > low["utility"] and last["utility_sensitive"] < low["utility_sensitive"]
    return judged([more], f"{title}: SWEEP keeps {' and then '.join(told)}")


def figure_16(bench: Bench) -> Result:
    stars = [sheet(bench, name, asked, (SUPPRESSED,)) for name, asked in REQUIREMENTS.items()]
    frame = pl.concat([representative(bench), *stars])
    pictures = {
        part: by_requirement(
            frame, y=value, order=LINES, ours=(CHUNKS, MONDRIAN), y_title="utility", size=(300, 200),
            title=_title("Figure 16. Utility by information at representative (tau, l)", part),
        )
        for part, value in PARTS.items()
    }  # fmt: skip
    used = parameters(bench, *BOTH) | {"weights of the secret": list(WEIGHTS)} | requirements_named()
    answers, notes = SAID.answered(frame=frame, bench=bench), (SUM_NOTE, SEARCH_NOTE)
    return Result({"": frame}, pictures, answers, (CHUNKS, MONDRIAN), used, notes, _gains(frame))


FIGURES: tuple[Figure, ...] = (
    *(
        Figure(key, title, PLANE_SAID, partial(_plane, name=name, title=f"Figure {key}. {title}"), data=(name,))
        for name, key, title in (
            ("adult", "14", "Utility of Adult by information over (tau, l)"),
            ("nursery", "15", "Utility of Nursery by information over (tau, l)"),
        )
    ),
    Figure("16", "Utility by information at representative (tau, l)", SAID, figure_16, data=("adult", "nursery")),
)
