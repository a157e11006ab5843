"""Closeness beyond Figures 3 and 4: distances by rank and by a given matrix, and what is lost without inference.

Section II defines the earth mover's distance for any distances between values; Figures 3 and 4 do not say which they
used. Section VII.C tells closeness with inference from closeness without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren_papers import draw
from noren_papers.base import Bench, Figure, Result
from noren_papers.claims import Answer, Claims, judged
from noren_papers.relations import span
from noren_papers.sensitive_qids import errors, ground_distances, methods, tables
from noren_papers.sensitive_qids.errors import OURS, PRINTED, PROPOSAL, RANDOM, proposal_along, than
from noren_papers.sensitive_qids.search import search
from noren_papers.sensitive_qids.tables import Coded
from noren_papers.standins import census68

RANKED = tuple(tables.CUTS)
RELATED = ("education", "marital-status", "native-country", "occupation", "workclass")
BY_RANK, BY_MATRIX = "by rank", "by matrix"
EQUAL = "Proposal, equal distances"
TS = (0.1, 0.2, 0.3, 0.4, 0.5)
MOST_CELLS = 700
Grounds = Mapping[str, NDArray[np.float64] | None]
"""By attribute a matrix of distances, or nothing where values are as far apart as their ranks."""
Moved = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def closeness(bench: Bench) -> Result:
    adult = tables.adult(bench, bench.pick(None, 5_000))
    ts, pairs = bench.pick(TS, (0.1, 0.5)), bench.pick(4, 1)
    ranked = sorted(str(name) for name in bench.rng("ranked").choice(list(census68.DOMAINS), 6, replace=False))
    census = tables.census(bench, ranked, bench.pick(100_000, 10_000))
    matrices = {name: _matrix(bench, adult, name) for name in RELATED}
    parts: list[tuple[str, Coded, Grounds]] = [
        (f"Adult {BY_RANK}", _part(adult, RANKED), dict.fromkeys(RANKED, None)),
        (f"Adult {BY_MATRIX}", _part(adult, RELATED), matrices),
        (f"Census shape {BY_RANK}", census, dict.fromkeys(ranked, None)),
    ]
    rows, audits = [], []
    for place, table, grounds in parts:
        settings = [_setting(table, grounds, t) for t in ts]
        many = {1: len(table.columns), 2: pairs}
        measured = errors.distances(bench, table, settings, errors.choices(bench, table.sizes, many, MOST_CELLS), {})
        rows.append(measured.with_columns(pl.lit(place).alias("place")))
        audits += [{"place": place, **row} for setting in settings for row in _audited(table, setting, grounds)]
    kept = pl.concat(rows).filter(pl.col("series").is_in([PROPOSAL, OURS, PRINTED, RANDOM]))
    sheet = kept.with_columns(pl.col("series").replace({PRINTED: EQUAL}))
    frame = pl.concat(
        errors.averaged(sheet.filter(pl.col("place") == place)).with_columns(pl.lit(place).alias("place"))
        for place, _, _ in parts
    )
    shown = frame.drop(errors.EACH).rename({"x": "t"})
    audit, full = pl.DataFrame(audits), whole_domains(adult)
    return Result(
        {"": shown, "choices": sheet.rename({"x": "t"}), "sets": audit, "whole-domain": full},
        {"": _picture(shown)},
        SAID.answered(frame=frame, audit=audit, full=full),
        (OURS,),
        {
            "t": list(ts),
            "by rank": {"Adult": list(RANKED), "Census shape": ranked},
            "by matrix": list(RELATED),
            "most cells of a choice": MOST_CELLS,
        },
        (
            "By rank: neighbours are 1 / (d - 1) apart, of numbers cut into classes. By matrix: values are as far "
            "apart as the height of their lowest common ancestor in Adult's hierarchies, over the height of the tree. "
            "Where sets are too many to look at each, the largest distance is bounded by that for equal distances, "
            "which is safe.",
            "Every distance between values is at most 1, so that for one set size no p is smaller than in Figures 3 "
            "and 4; the price is that belief may move more between neighbours or relatives.",
            "Without inference a set is taken to mean that each of its values is equally likely.",
            errors.STOPPING,
            errors.UNITS,
        ),
        errors.gains("three distances, by rank and by matrix", frame, KEYS),
    )  # fmt: skip


def _part(table: Coded, names: Sequence[str]) -> Coded:
    return Coded(table.name, table.n, {n: table.columns[n] for n in names}, {n: table.values[n] for n in names})


def _matrix(bench: Bench, table: Coded, name: str) -> NDArray[np.float64]:
    """Height of the lowest common ancestor over the height of the tree, for every two values that occur."""
    paths = {row[0]: row for row in bench.hierarchy_rows(name)}
    rows = [paths[value] for value in table.values[name]]
    height = len(rows[0]) - 1
    return np.array([[next(k for k in range(height + 1) if a[k:] == b[k:]) / height for b in rows] for a in rows])


def _setting(table: Coded, grounds: Grounds, t: float) -> errors.Setting:
    designs = {}
    for name in table.columns:
        counts, matrix = table.counts(name), grounds[name]
        designs[name] = (
            search(counts, t, "ordered").design if matrix is None else ground_distances.search(counts, t, matrix)
        )
    return errors.Setting(t, designs, printed=methods.close_designs(table, t))


def _audited(table: Coded, setting: errors.Setting, grounds: Grounds) -> list[dict[str, Any]]:
    """How far the published sets themselves move a belief, by Bayes' theorem on every different one."""
    sets = methods.published(table, setting.designs)
    rows = []
    for name, design in setting.designs.items():
        matrix = grounds[name]
        move: Moved = ground_distances.by_rank if matrix is None else partial(ground_distances.by_matrix, matrix=matrix)
        seen = np.unique(sets[name].codes(design.eta).astype(np.int64), axis=0)
        shift = ground_distances.shifts(table.counts(name), design, seen)
        rows.append(
            {
                "t": setting.x, "attribute": name, "values": design.d, "eta": design.eta, "p": design.p,
                "p, equal distances": (setting.printed or {})[name].p, "worst published set": float(move(shift).max()),
                "as equal distances": float(np.abs(shift).sum(axis=1).max() / 2),
            }
        )  # fmt: skip
    return rows


def whole_domains(table: Coded) -> pl.DataFrame:
    """Every attribute published as its whole domain: how far belief moves, and how far off even shares are."""
    rows = []
    for name, d in table.sizes.items():
        counts = table.counts(name)
        shift = ground_distances.shifts(counts, DecoyDesign(d=d, eta=d), np.arange(d)[None, :])
        even = np.abs(counts / counts.sum() - 1 / d).sum() / 2
        rows.append(
            {
                "attribute": name, "values": d, "with inference": float(np.abs(shift).sum() / 2),
                "without inference": float(even),
            }
        )  # fmt: skip
    return pl.DataFrame(rows)


KEYS = ("place", *errors.KEYS)
SAID = Claims()


@SAID("Parameters for the largest distance over all sets keep t by rank and by a given matrix too (Theorem 4).")
def _keeps(audit: pl.DataFrame) -> Answer:
    return judged(
        (audit["worst published set"] <= audit["t"] + 1e-6).to_list(),
        f"p is {span((audit['p'] / audit['p, equal distances']).to_list())} times that for equal distances; the "
        f"worst published set is at {span((audit['worst published set'] / audit['t']).to_list())} of t. Taken as "
        f"equally far apart, values move by up to {(audit['as equal distances'] / audit['t']).to_numpy().max():.2f} "
        "times t",
    )


SAID(
    "The proposal's distances fall as t grows, by rank and by a given matrix too.",
    proposal_along(rising=False, keys=KEYS[:3]),
)
SAID(
    "The proposal's distances are small even at t = 0.1, by rank and by a given matrix too.",
    than(PROPOSAL, "much below", RANDOM, KEYS, where=pl.col("x") == pl.col("x").min().over(KEYS[:3])),
)


@SAID("Sets of the whole domain, which tell nothing, are 0-close with inference and not without (VII.C).")
def _inference(full: pl.DataFrame) -> Answer:
    without, within = full["without inference"].to_list(), full["with inference"].to_list()
    return judged(
        [a <= 1e-12 < b for a, b in zip(within, without, strict=True)],
        f"Published as whole domains, Adult's attributes are at {max(within):.2g} from the overall distribution "
        f"with inference and at {span(without)} without. Smaller sets come no closer without inference: t = 0.5 "
        f"could be kept for {sum(value <= 0.5 for value in without)} of {len(without)} attributes, t = 0.1 for "
        f"{sum(value <= 0.1 for value in without)}",
    )


def _picture(frame: pl.DataFrame) -> Any:
    shown = frame.filter(pl.col("metric") == "L1").with_columns(
        (pl.col("place") + ", q' = " + pl.col("q").cast(pl.String)).alias("panel")
    )
    return draw.lines(
        shown, x="t", y="distance", series="series", panel="panel", columns=2, ours=[OURS],
        order=(OURS, PROPOSAL, EQUAL, RANDOM), log_y=True, error="standard error", y_title="L1 distance",
        title="Closeness by rank and by a given matrix of distances: L1 distance against t", size=(250, 150),
        note="'Proposal' and ours with p for the distance named above each panel.",
    )  # fmt: skip


CLOSENESS = Figure(
    "closeness", "Closeness by rank, by a given matrix, and without inference", SAID, closeness, ("adult",)
)
