"""Figure 21: how often each sensitive value occurs, counted in the release."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.metrics.general import GeneralTable
from noren_papers import draw
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import Answer, Claims, judged
from noren_papers.relations import Check, answer_from
from noren_papers.tau_l.common import (
    BOTH,
    CLD,
    KEYS,
    ONE_D,
    REQUIREMENTS,
    SWEEP,
    ZERO_NOTE,
    Row,
    dataset,
    gain,
    label,
    release_of,
    settings,
)
from noren_papers.tau_l.counts import likely_shares

LIKELY = "SWEEP by likelihood (ours)"
SMALL = 0.05
"""What counts as a very small relative error."""
CRAFT = ("Craft-repair", 6020, 5992, 0.005)
"""The paper's example at (0.5, 2): value, original count, released count, relative error."""
SAID = Claims()


def by_leaves(table: GeneralTable, name: str) -> NDArray[np.float64]:
    """Counts of the base values: a general value counts evenly for the leaves under it."""
    column = table.columns[name]
    cells = np.bincount(column.cells[table.keep], minlength=column.kinds)
    return np.asarray(column.overlap(np.eye(len(column.domain))) @ cells)


def generalised(table: GeneralTable, name: str) -> NDArray[np.float64]:
    """For every base value the share of its records that publish something more general; nan where nobody has it."""
    column = table.columns[name]
    hidden = column.spread[column.cells] > 1
    with np.errstate(invalid="ignore"):
        return np.bincount(column.truth, hidden & table.keep, minlength=len(column.domain)) / column.counts


def _compute(bench: Bench) -> Result:
    rows: list[Row] = []
    for data, tau, l, row in settings(bench):
        actual = data.counts
        order = [code for code in np.argsort(-actual, kind="stable").tolist() if actual[code] > 0]
        for method in (SWEEP, LIKELY, ONE_D, CLD):
            found = release_of(bench, data.name, SWEEP if method == LIKELY else method, tau, l)
            if found is None:
                continue
            if method == LIKELY:
                counts = likely_shares(found.table, [data.sensitive])[data.sensitive]
            else:
                counts = by_leaves(found.table, data.sensitive)
            hidden = generalised(found.table, data.sensitive)
            rows += [
                row | {
                    "method": method, "rank": rank, "value": data.coded.columns[data.sensitive].domain.values[code],
                    "original": int(actual[code]), "counted": float(counts[code]),
                    "error": float(abs(counts[code] - actual[code]) / actual[code]),
                    "generalised": float(hidden[code]),
                }
                for rank, code in enumerate(order, 1)
            ]  # fmt: skip
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Result(
        {"": frame},
        {"": _picture(frame, "error"), "generalised": _picture(frame, "generalised")},
        SAID.answered(frame=frame, bench=bench),
        (LIKELY,),
        {
            "requirements": [
                f"{dataset(bench, name).title} {', '.join(label(*one) for one in asked)}"
                for name, asked in REQUIREMENTS.items()
            ],
            "sensitive column": [dataset(bench, name).sensitive for name in BOTH],
            "records": [dataset(bench, name).coded.n for name in BOTH],
        },
        (
            "A general secret counts evenly for the leaves under it (the paper), or by the likelihood of the whole "
            "column (ours). Values stand in decreasing order of their true counts.",
            "The paper's text speaks of Adult here; Nursery is added, with a taxonomy of its classes made for "
            "this run. For a value that few records have, any share of a general secret is a large relative error.",
        ),
        _gains(frame),
    )


def _picture(frame: pl.DataFrame, what: str) -> Any:
    kept = frame.filter(pl.col("method").is_in([SWEEP, LIKELY] if what == "error" else [SWEEP]))
    panel = pl.col("data")
    if what == "error":
        panel = pl.format("{}, {}", "data", pl.col("method").replace({SWEEP: "SWEEP by leaves"}))
    titles = {
        "error": ("Figure 21. Error of counting every sensitive value", "relative error"),
        "generalised": ("Figure 21. Records whose secret SWEEP generalises", "share of the value's records"),
    }
    return draw.bars(
        kept.with_columns(panel=panel), x="value", y=what, series="requirement", panel="panel", columns=1, step=6,
        shared_y=False, log_y=what == "error", height=150, title=titles[what][0], y_title=titles[what][1],
        x_title="sensitive value, the most frequent first",
        note=f"{ZERO_NOTE} Mind the scales: they differ." if what == "error" else "",
    )  # fmt: skip


def _sweep(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("method") == SWEEP)


PLACES = ("data", "requirement", "method", "value")


@SAID("1DLD and CLD count single secrets without any error.")
def _others(frame: pl.DataFrame) -> Answer:
    part = frame.filter(pl.col("method").is_in([ONE_D, CLD]))
    worst = part.group_by(PLACES[:-1], maintain_order=True).agg(pl.col("error").max())
    return answer_from(worst, Check(pl.col("error") < 1e-9, PLACES[:-1], ("error",)))


SAID(
    "SWEEP's relative error of single secrets is very small.",
    Check(
        pl.col("error") < SMALL, PLACES, ("error",), where=pl.col("method") == SWEEP,
        note=f"very small means below {SMALL:g}",
    ),
)  # fmt: skip


@SAID("On Adult at (0.5, 2) Craft-repair is counted 5,992 times instead of 6,020, an error of 0.005.")
def _craft(frame: pl.DataFrame, bench: Bench) -> Answer:
    """The original count as in the paper, and an error of less than twice its own."""
    value, original, _, error = CRAFT
    tau, l = REQUIREMENTS["adult"][0]
    rows = _sweep(frame).filter((pl.col("data") == "Adult") & (pl.col("requirement") == label(tau, l)))
    found = rows.filter(pl.col("value") == value).to_dicts()
    if not found:
        return judged([], f"No record has {value}")
    row = found[0]
    outcomes = [row["original"] == original, row["error"] < 2 * error]
    if dataset(bench, "adult").coded.n != 45_222:
        outcomes = outcomes[1:]
    return judged(
        outcomes,
        f"{value} occurs {row['original']:,} times and is counted {row['counted']:,.1f} times at {label(tau, l)}, "
        f"an error of {row['error']:.4f} (the error should be below {2 * error:g})",
    )


@SAID("The more frequent a value is, the more it gets generalised as the requirement gets stronger.")
def _frequent(frame: pl.DataFrame) -> Answer:
    """Per step: frequent values (the upper half) are generalised more than before, and more than rare ones."""
    outcomes, words = [], []
    for (title,), part in _sweep(frame).group_by("data", maintain_order=True):
        half = max(part["rank"]) / 2
        shares = []
        for (requirement,), rows in part.group_by("requirement", maintain_order=True):
            often, rare = (
                rows.filter(which)["generalised"].to_list() for which in (pl.col("rank") <= half, pl.col("rank") > half)
            )
            shares.append((requirement, float(np.mean(often)), float(np.mean(rare))))
        outcomes += [b[1] >= a[1] for a, b in pairwise(shares)]
        outcomes += [often > rare for _, often, rare in shares if often or rare]
        texts = [f"{requirement} {often:.1%} and {rare:.1%}" for requirement, often, rare in shares]
        words.append(f"{title}: {', '.join(texts)}")
    return judged(
        outcomes,
        f"Share of the records of a value that are generalised, mean over the more and the less frequent half of the "
        f"values: {'; '.join(words)}",
    )


def _gains(frame: pl.DataFrame) -> tuple[Gain, ...]:
    """Mean error of single secrets, by likelihood over leaves that count alike."""
    mean = frame.group_by(*KEYS, "method", maintain_order=True).agg(pl.col("error").mean())
    reason = "not explained; hardly any secret is generalised there"
    return gain("error of counting single secrets", mean, LIKELY, SWEEP, "error", reason)


FIGURES = (Figure("21", "counts of single sensitive values", SAID, _compute, BOTH),)
