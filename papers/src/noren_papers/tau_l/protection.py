"""Excessive protection: figures 9 and 10 over the whole plane of requirements, figure 11 at representative ones."""

from __future__ import annotations

from typing import Any

import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Figure, Result
from noren_papers.claims import Answer, Below, answer, judged
from noren_papers.tau_l.common import (
    CHUNK,
    CHUNKS,
    CLD,
    MONDRIAN,
    ONE_D,
    PAPERS,
    REQUIREMENTS,
    SWEEP,
    by_requirement,
    c_grid,
    dataset,
    grid,
    label,
    sheet,
)
from noren_papers.tau_l.judging import against, all_publish, joined, mean, named, pairs, rows_of

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


def _plane_figure(name: str, key: str, title: str) -> Figure:
    claims = {"less": "Over the plane of requirements SWEEP protects much less in excess than 1DLD and CLD."}

    def compute(bench: Bench) -> Result:
        bench.plan(len(grid(bench, name)))
        frame = plane(bench, name)
        both = pairs(frame, CHUNKS, SWEEP, "excess")
        gap = [(a["mean_excess"], b["mean_excess"]) for a, b in both]
        ours = (
            f"Excess of the class of an average record, which one class at the bound cannot hide: SWEEP in chunks "
            f"{mean([a for a, _ in gap]):.3f}, SWEEP {mean([b for _, b in gap]):.3f}, "
            f"1DLD {mean([r['mean_excess'] for r in rows_of(frame, ONE_D)]):.3f}, "
            f"CLD {mean([r['mean_excess'] for r in rows_of(frame, CLD)]):.3f} (each over what it publishes); "
            f"chunks have less than SWEEP in {sum(a < b for a, b in gap)} of {len(gap)} requirements. By the paper's "
            f"minimum {_means(both, 'excess')}, at or below SWEEP in "
            f"{sum(a['excess'] <= b['excess'] + 1e-9 for a, b in both)}."
        )
        pictures = {"": tiles(frame, "excess", f"Figure {key}. {title}", "least excess", PLANE)}
        answers, notes = {"less": _much_less(frame)}, (SEARCH_NOTE, LEAST_NOTE)
        return Result({"": frame}, pictures, answers, ours, (CHUNKS,), parameters(bench, name), notes)

    return Figure(key, title, claims, compute, data=(name,))


def _much_less(frame: pl.DataFrame) -> Answer:
    return joined([against(frame, SWEEP, other, "excess", lower=True, much=True) for other in (ONE_D, CLD)])


def parameters(bench: Bench, *names: str) -> dict[str, Any]:
    """What is needed to repeat a figure."""
    out: dict[str, Any] = {}
    for name in names:
        data = dataset(bench, name)
        out[f"{data.title} rows"] = data.coded.n
        out[f"{data.title} quasi-identifiers"] = list(data.quasi_identifiers)
        out[f"{data.title} sensitive"] = data.sensitive
    return out | {"c of CLD": list(c_grid(bench)), "l of CLD": "2 to the number of values", "chunk": CHUNK}


def figure_11(bench: Bench) -> Result:
    bench.plan(sum(len(grid(bench, name)) + len(asked) for name, asked in REQUIREMENTS.items()))
    frame = representative(bench)
    planes = pl.concat([plane(bench, name) for name in REQUIREMENTS])
    swept, empties = rows_of(frame, SWEEP), {m: rows_of(frame, m, empty=True) for m in (ONE_D, CLD)}
    beyond = {method: len(rows_of(planes, method, empty=True)) for method in (ONE_D, CLD)}
    over = {m: [row["excess"] > 1e-9 for row in rows_of(frame, m, empty=False)] for m in (ONE_D, CLD)}
    shared = all_publish(frame, PAPERS)
    answers = {
        "never empty": judged(
            [row["utility"] is not None for row in [*swept, *rows_of(planes, SWEEP)]],
            f"SWEEP publishes for {len(rows_of(frame, SWEEP, empty=False))} of {len(swept)} requirements of the figure "
            f"and {len(rows_of(planes, SWEEP, empty=False))} of {len(rows_of(planes, SWEEP))} of the planes",
        ),
        "others empty": judged(
            [len(rows) > 0 for rows in empties.values()],
            "Without a table: " + "; ".join(f"{method} at {named(rows)}" for method, rows in empties.items()),
        ),
        "many more": answer(
            f"In the planes of figures 9 and 10, {len(rows_of(planes, SWEEP))} requirements, 1DLD has no table for "
            f"{beyond[ONE_D]} and CLD for {beyond[CLD]}; here it is {len(empties[ONE_D])} and {len(empties[CLD])}; "
            "many more is at least twice as many",
            Below([(float(len(empties[method])), float(beyond[method])) for method in (ONE_D, CLD)], much=True),
        ),
        "less": _much_less(shared),
        "1DLD below CLD": joined([against(shared, ONE_D, CLD, "excess", lower=True)]),
        "other tables": _other_tables(frame),
        "over-protect": judged(
            [sum(found) > len(found) / 2 for found in over.values() if found],
            "Excess above 0: " + ", ".join(f"{m} at {sum(found)} of {len(found)}" for m, found in over.items())
            + " requirements that it meets; often is more than half",
        ),
    }  # fmt: skip
    chunk, mond = pairs(frame, CHUNKS, SWEEP, "mean_excess"), pairs(frame, MONDRIAN, SWEEP, "mean_excess")
    ours = (
        f"Mean excess over records, which the paper's minimum hides: SWEEP in chunks {_means(chunk)}; Mondrian for "
        f"(tau, l) itself {_means(mond)} where it publishes ({len(mond)} of {len(swept)} requirements). By the paper's "
        f"minimum chunks are at or below SWEEP in {sum(a['excess'] <= b['excess'] + 1e-9 for a, b in chunk)} of "
        f"{len(chunk)}."
    )
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
    return Result({"": frame}, pictures, answers, ours, (CHUNKS, MONDRIAN), used, notes)


def requirements_named() -> dict[str, Any]:
    return {f"{name} requirements": [label(*one) for one in asked] for name, asked in REQUIREMENTS.items()}


def _means(both: list[tuple[Any, Any]], value: str = "mean_excess") -> str:
    return f"{mean([a[value] for a, _ in both]):.3f} against {mean([b[value] for _, b in both]):.3f}"


def _other_tables(frame: pl.DataFrame) -> Answer:
    """Whether neighbouring requirements are served by different tables, for CLD and for 1DLD."""
    outcomes, texts = [], []
    for method in (CLD, ONE_D):
        for title in frame["data"].unique(maintain_order=True):
            found = [row for row in rows_of(frame, method, empty=False) if row["data"] == title]
            if len(found) > 1:
                kinds = {(row["chosen"], row["classes"]) for row in found}
                outcomes.append(len(kinds) > 1)
                said = "; ".join(f"{row['requirement']} {row['chosen']}, {row['classes']} classes" for row in found)
                texts.append(f"{method} on {title}: {said}")
    return judged(outcomes, " | ".join(texts))


FIGURES: tuple[Figure, ...] = (
    _plane_figure("adult", "9", "Excessive protection on Adult over (tau, l)"),
    _plane_figure("nursery", "10", "Excessive protection on Nursery over (tau, l)"),
    Figure(
        "11",
        "Excessive protection at representative (tau, l)",
        {
            "never empty": "SWEEP publishes a non-empty table for every (tau, l).",
            "others empty": "1DLD and CLD have no table for some of the requirements.",
            "many more": "They have none for many more requirements than the figure shows.",
            "less": "Where all three publish, SWEEP protects much less in excess than 1DLD and CLD.",
            "1DLD below CLD": "Where all three publish, 1DLD protects less in excess than CLD.",
            "other tables": "The least excess of CLD, and of 1DLD, comes from quite different tables at different "
            "requirements, such as (c, l) = (2, 4) at (0.4, 4) and (4, 6) at (0.3, 5).",
            "over-protect": "Because simple l and (c, l) rarely match a (tau, l) exactly, 1DLD and CLD often protect "
            "more than asked.",
        },
        figure_11,
        data=("adult", "nursery"),
    ),
)
