"""Utility by information: figures 14 and 15 over the plane of requirements, figure 16 at representative ones.

The paper's measure adds quasi-identifiers and the secret. Here the parts are shown apart, and so is a table of exact
quasi-identifiers without any secret, which the sum rewards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from noren.methods import Mondrian
from noren.metrics.information import utility_score
from noren.models import RecursiveCLDiversity
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import Answer, Below, answer, cannot, judged
from noren_papers.tau_l.candidates import scored
from noren_papers.tau_l.common import (
    CHUNKS,
    CLD,
    MONDRIAN,
    ONE_D,
    PAPERS,
    REQUIREMENTS,
    SUPPRESSED,
    SWEEP,
    by_requirement,
    dataset,
    grid,
    made,
    release_of,
    settings,
    sheet,
)
from noren_papers.tau_l.judging import Row, against, joined, listed, mean, pairs, rows_of
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


def _plane_figure(name: str, key: str, title: str) -> Figure:
    claims = {
        "SWEEP best": "Over the plane of requirements SWEEP keeps more information than 1DLD and CLD.",
        "1DLD above CLD": "1DLD keeps more than CLD.",
        "no result": "1DLD and CLD have no result where a requirement leaves them an empty table.",
        "would be worse": "These are their tables with least excessive protection; their others keep much less.",
        "correlation": "The more excessive protection, the less utility.",
    }

    def compute(bench: Bench) -> Result:
        bench.plan(2 * len(grid(bench, name)))
        frame = pl.concat([plane(bench, name), sheet(bench, name, grid(bench, name), (SUPPRESSED,))])
        empty = {method: len(rows_of(frame, method, empty=True)) for method in (ONE_D, CLD)}
        answers = {
            **_common(bench, frame, (name,)),
            "no result": judged(
                [number > 0 for number in empty.values()],
                f"Of {len(rows_of(frame, SWEEP))} requirements "
                + ", ".join(f"{method} has no table for {number}" for method, number in empty.items()),
            ),
        }
        pictures = {
            part: tiles(frame, value, _title(f"Figure {key}. {title}", part), "utility", WITH_STARS)
            for part, value in PARTS.items()
        }
        used, notes = parameters(bench, name), (SUM_NOTE, SEARCH_NOTE)
        return Result({"": frame}, pictures, answers, _gain(frame), (CHUNKS,), used, notes, _gains(frame))

    return Figure(key, title, claims, compute, data=(name,))


def _title(title: str, part: str) -> str:
    return f"{title}: {part} alone" if part else title


def _common(bench: Bench, frame: pl.DataFrame, names: tuple[str, ...]) -> dict[str, Answer]:
    """What the paper says of the planes and of representative requirements alike."""
    return {
        "SWEEP best": joined([against(frame, SWEEP, other, "utility", lower=False) for other in (ONE_D, CLD)]),
        "1DLD above CLD": joined([against(frame, ONE_D, CLD, "utility", lower=False)]),
        "would be worse": _would_be_worse(bench, frame, names),
        "correlation": _correlation(bench, frame, names),
    }


def _gain(frame: pl.DataFrame) -> str:
    both = pairs(frame, CHUNKS, SWEEP, "utility")
    gains = [a["utility"] - b["utility"] for a, b in both]
    best = both[int(np.argmax(gains))]
    stars = pairs(frame, SUPPRESSED, SWEEP, "utility")
    beaten = sum(a["utility"] > b["utility"] for a, b in stars)
    sides = [
        " and ".join(f"{mean([row[value] for row in side]):.3f}" for side in zip(*both, strict=True))
        for value in PARTS.values()
    ]
    return (
        f"SWEEP in chunks and SWEEP keep {sides[0]} on average (quasi-identifiers {sides[1]}, secrets {sides[2]}); "
        f"chunks keep more in {sum(gain > 0 for gain in gains)} of {len(both)} requirements, most at {best[0]['data']} "
        f"{best[0]['requirement']}: {best[0]['utility']:.3f} instead of {best[1]['utility']:.3f}. The sum alone proves "
        f"little: a table without any secret has more than SWEEP in {beaten} of {len(stars)} requirements."
    )


def _gains(frame: pl.DataFrame) -> tuple[Gain, ...]:
    found = {
        f"{a['data']} {a['requirement']}": (1 - a["utility"]) / (1 - b["utility"])
        for a, b in pairs(frame, CHUNKS, SWEEP, "utility")
        if b["utility"] < 1
    }
    return Gain.of(
        "information lost, SWEEP in chunks over SWEEP",
        found,
        "the order in which records are swept decides, and chunks have another order than the whole table; other sizes "
        "of chunks were not tried here",
    )


def _name_of(bench: Bench, row: Row, names: tuple[str, ...]) -> str:
    return next(name for name in names if dataset(bench, name).title == row["data"])


def _would_be_worse(bench: Bench, frame: pl.DataFrame, names: tuple[str, ...]) -> Answer:
    """The table that was taken beside the mean of the others that would do."""
    compared, texts = [], []
    for method in (ONE_D, CLD):
        taken, rest = [], []
        for row in rows_of(frame, method, empty=False):
            found = scored(bench, _name_of(bench, row, names), method, row["tau"], row["l"])
            others = [utility for _, utility in found if abs(utility - row["utility"]) > 1e-12]
            if others:
                compared.append((mean(others), row["utility"]))
                taken.append(row["utility"])
                rest.append(mean(others))
        texts.append(f"{method} keeps {mean(taken):.3f}, its other tables that satisfy {mean(rest):.3f} on average")
    return answer("; ".join(texts) + "; much less is at most half", Below(compared, much=True))


def _correlation(bench: Bench, frame: pl.DataFrame, names: tuple[str, ...]) -> Answer:
    """Rank correlation of excess and utility, over all tables of all methods that satisfy one requirement."""
    outcomes, found = [], []
    for row in rows_of(frame, SWEEP, empty=False):
        name = _name_of(bench, row, names)
        points = [(row["excess"], row["utility"])]
        for method in (ONE_D, CLD):
            points += scored(bench, name, method, row["tau"], row["l"])
        if len(points) > 3:
            value = rank_correlation(*(np.array(side) for side in zip(*points, strict=True)))
            if np.isfinite(value):
                found.append(value)
                outcomes.append(value < 0)
    words = f"between {min(found):.2f} and {max(found):.2f}, {mean(found):.2f} on average" if found else "not defined"
    return judged(
        outcomes, f"Rank correlation of excess and utility over the tables that satisfy one (tau, l): {words}"
    )


def rank_correlation(x: Any, y: Any) -> float:
    """Spearman's, with mean ranks for ties; not a number where one side is constant."""
    ranks = [np.array([(side < v).sum() + (side == v).sum() / 2 for v in side.tolist()]) for side in (x, y)]
    if min(rank.std() for rank in ranks) == 0:
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def figure_16(bench: Bench) -> Result:
    bench.plan(2 * sum(map(len, REQUIREMENTS.values())))
    stars = [sheet(bench, name, asked, (SUPPRESSED,)) for name, asked in REQUIREMENTS.items()]
    frame = pl.concat([representative(bench), *stars])
    names = tuple(REQUIREMENTS)
    answers = {
        **_common(bench, frame, names),
        "global": _global(bench),
        "weights": _weights(bench, frame),
        "Nursery rises": _rises(bench, frame),
    }
    mond = pairs(frame, MONDRIAN, SWEEP, "utility")
    sides = [mean([row["utility"] for row in side]) for side in zip(*mond, strict=True)]
    ours = (
        f"{_gain(frame)} Mondrian for (tau, l) itself generalises no secret; where it publishes ({len(mond)} "
        f"requirements) it keeps {sides[0]:.3f}, SWEEP {sides[1]:.3f}."
    )
    pictures = {
        part: by_requirement(
            frame, y=value, order=LINES, ours=(CHUNKS, MONDRIAN), y_title="utility", size=(300, 200),
            title=_title("Figure 16. Utility by information at representative (tau, l)", part),
        )
        for part, value in PARTS.items()
    }  # fmt: skip
    used = parameters(bench, *names) | {"weights of the secret": list(WEIGHTS)} | requirements_named()
    own, notes = (CHUNKS, MONDRIAN), (SUM_NOTE, SEARCH_NOTE)
    return Result({"": frame}, pictures, answers, ours, own, used, notes, _gains(frame))


def _global(bench: Bench) -> Answer:
    """CLD's own (c, l), met by local recoding instead: Mondrian beside Incognito under one requirement."""
    compared, texts, seen = [], [], set()
    for data, tau, l, _ in settings(bench, steps=False):
        found = release_of(bench, data.name, CLD, tau, l)
        if found is None or (data.name, found.chosen) in seen:
            continue
        seen.add((data.name, found.chosen))
        c, size = (int(part.split("=")[1]) for part in found.chosen.split(","))
        need = RecursiveCLDiversity(on=data.sensitive, c=c, l=size)
        local = utility_score(made(bench, data, Mondrian(refinement=0), need, f"local {c} {size}")[0])
        compared.append((found.utility.total, local))
        texts.append(f"{data.title} ({found.chosen}) {local:.3f} beside {found.utility.total:.3f}")
    words = "The same (c, l) met by local recoding (Mondrian) and by CLD: " + listed(texts, 8)
    return answer(words, Below(compared))


def _weights(bench: Bench, frame: pl.DataFrame) -> Answer:
    """Whether the order of the methods, and the best of all, depend on how much the secret counts."""
    columns = {dataset(bench, name).title: len(dataset(bench, name).quasi_identifiers) for name in REQUIREMENTS}
    order_kept, changed = [], []
    for title, requirement in frame.select("data", "requirement").unique(maintain_order=True).rows():
        rows = [row for row in frame.to_dicts() if (row["data"], row["requirement"]) == (title, requirement)]
        rows = [row for row in rows if row["utility"] is not None and row["method"] in (*PAPERS, SUPPRESSED)]
        orders = [ranked(rows, columns[title], weight) for weight in WEIGHTS]
        best = list(dict.fromkeys(order[0] for order in orders))
        order_kept.append(len({tuple(one for one in order if one in PAPERS) for order in orders}) == 1)
        if len(best) > 1:
            changed.append(f"{title} {requirement} ({' then '.join(best)})")
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


def _rises(bench: Bench, frame: pl.DataFrame) -> Answer:
    """On Nursery: the strongest requirement beside the one where SWEEP keeps least."""
    title = dataset(bench, "nursery").title
    rows = [row for row in rows_of(frame, SWEEP, empty=False) if row["data"] == title]
    if len(rows) < 2:
        return cannot(f"SWEEP publishes for {len(rows)} requirements")
    low, last = min(rows[:-1], key=lambda row: row["utility"]), rows[-1]
    told = [f"{row['requirement']} {row['utility']:.2f}" for row in (low, last)]
    more = last["utility"] > low["utility"] and last["utility_sensitive"] < low["utility_sensitive"]
    return judged(
        [more],
        f"{title}: SWEEP keeps {' and then '.join(told)}; quasi-identifiers {low['utility_quasi']:.2f} and "
        f"{last['utility_quasi']:.2f}, secrets {low['utility_sensitive']:.2f} and {last['utility_sensitive']:.2f}",
    )


FIGURES: tuple[Figure, ...] = (
    _plane_figure("adult", "14", "Utility of Adult by information over (tau, l)"),
    _plane_figure("nursery", "15", "Utility of Nursery by information over (tau, l)"),
    Figure(
        "16",
        "Utility by information at representative (tau, l)",
        {
            "SWEEP best": "SWEEP keeps more information than 1DLD and CLD.",
            "1DLD above CLD": "1DLD keeps more than CLD.",
            "would be worse": "Tables of 1DLD and CLD with more than the least excessive protection keep much less.",
            "correlation": "The more excessive protection, the less utility.",
            "global": "Global recoding, as in CLD, loses more than local recoding.",
            "weights": "How much quasi-identifiers and secrets count plays no significant role.",
            "Nursery rises": "On Nursery the total may rise with a stronger requirement, because secrets are "
            "generalised in place of quasi-identifiers.",
        },
        figure_16,
        data=("adult", "nursery"),
    ),
)
