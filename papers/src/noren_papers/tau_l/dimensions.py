"""Figure 20: the error of count queries against the number of dimensions."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Figure, Result
from noren_papers.claims import ALMOST, Answer, Below, Mean, Pair, answer, judged
from noren_papers.tau_l.common import CLD, ONE_D, PAPERS, SWEEP, dataset, label, release_of
from noren_papers.tau_l.queries import (
    BOTH,
    CHOSEN,
    DRAWN,
    EVEN,
    LEFT_OUT,
    LINES,
    OURS,
    compared,
    drawn_sheet,
    errors,
    gains,
    parameters,
    row_of,
    sweep_best,
    workload,
)
from noren_papers.tau_l.sides import ZERO_NOTE

DIMENSION_CLAIMS = {
    "SWEEP best": "SWEEP has less error than 1DLD and CLD for every number of dimensions above one.",
    "reason": "That is because it may generalise secrets and so generalises quasi-identifiers less than the others.",
    "one dimension": "With one dimension SWEEP is worse, because it generalises secrets and the others do not.",
    "small": "With one dimension the differences between the three are very small.",
}


def _dimensions(bench: Bench) -> Result:
    bench.plan(len(BOTH) * len(LINES))
    rows: list[dict[str, Any]] = []
    for name, (tau, l) in CHOSEN.items():
        found = {method: errors(bench, name, method, tau, l) for method in LINES}
        for method, one in found.items():
            for s in workload(bench, name).queries:
                mine, sweeps = (None if given is None else given[s] for given in (one, found[SWEEP]))
                rows.append(
                    row_of(bench, name, method, tau, l) | {"dimensions": s} | compared(mine, sweeps)
                    | {"queries": None if mine is None else len(mine)}
                )  # fmt: skip
            bench.step(f"{dataset(bench, name).title} {method}")
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        panel=pl.format("{} {}", "data", "requirement")
    )  # fmt: skip
    several = frame.filter(pl.col("dimensions") > 1).with_columns(
        requirement=pl.format("{} dimensions", "dimensions")
    )  # fmt: skip
    answers = {
        "SWEEP best": sweep_best(several),
        "reason": _reason(bench),
        "one dimension": _one_dimension(frame, small=False),
        "small": _one_dimension(frame, small=True),
    }
    picture = draw.lines(
        frame, x="dimensions", y="error", series="method", panel="panel", order=LINES, ours=OURS,
        columns=2, log_y=True, shared_y=False, size=(330, 230), x_title="dimensions (conditions)",
        title="Figure 20. Count queries: error against the number of dimensions", y_title="average relative error",
        error="error, standard error", note=ZERO_NOTE,
    )  # fmt: skip
    notes = (LEFT_OUT, DRAWN, EVEN)
    sheets = {"": frame, "queries": drawn_sheet(bench)}
    ours = _gain_by_dimension(frame)
    own = gains(frame.with_columns(pl.format("{} dimensions", "dimensions").alias("place")), "place")
    return Result(sheets, {"": picture}, answers, ours, OURS, parameters(bench), notes, own)


def _reason(bench: Bench) -> Answer:
    """Information that is left in quasi-identifiers: more in SWEEP's table than in the others."""
    outcomes, words = [], []
    for name, (tau, l) in CHOSEN.items():
        found = {method: release_of(bench, name, method, tau, l) for method in PAPERS}
        kept = {method: one.utility for method, one in found.items() if one is not None}
        for other in (ONE_D, CLD):
            if SWEEP in kept and other in kept:
                outcomes.append((kept[SWEEP].quasi or 0) > (kept[other].quasi or 0))
        if SWEEP in kept:
            outcomes.append((kept[SWEEP].sensitive or 0) < 1)
        words.append(
            f"{dataset(bench, name).title} {label(tau, l)}: "
            + ", ".join(f"{method} {one.quasi or 0:.3f} and {one.sensitive or 0:.4f}" for method, one in kept.items())
        )
    return judged(outcomes, f"Information left in quasi-identifiers and in secrets: {'; '.join(words)}")


def _one_dimension(frame: pl.DataFrame, *, small: bool) -> Answer:
    pairs: list[Pair] = []
    close: list[bool] = []
    words = []
    for (title,), part in frame.filter(pl.col("dimensions") == 1).group_by("panel", maintain_order=True):
        given = {
            row["method"]: Mean(row["error"], row["error, standard error"])
            for row in part.to_dicts()
            if row["error"] is not None and row["method"] in PAPERS
        }
        words.append(f"{title}: " + ", ".join(f"{method} {one.value:.4f}" for method, one in given.items()))
        if SWEEP in given:
            pairs += [(one, given[SWEEP]) for method, one in given.items() if method != SWEEP]
            values = [one.value for one in given.values()]
            close.append(max(values) - min(values) < ALMOST)
    if small:
        return judged(close, "; ".join(words) + f"; very small means a difference below {ALMOST:g}")
    return answer("; ".join(words), Below(pairs))


def _gain_by_dimension(frame: pl.DataFrame) -> str:
    texts = []
    for (title,), part in frame.group_by("panel", maintain_order=True):
        for other in OURS:
            given = {method: dict(part.filter(pl.col("method") == method).select("dimensions", "error").iter_rows())
                     for method in (SWEEP, other)}  # fmt: skip
            both = [
                (given[other][s], e)
                for s, e in given[SWEEP].items()
                if e is not None and given[other].get(s) is not None
            ]
            if both:
                better = sum(a < b for a, b in both)
                texts.append(
                    f"{title}: {other.removesuffix(' (ours)')} {np.mean([a for a, _ in both]):.3f} on average over the "
                    f"dimensions beside SWEEP's {np.mean([b for _, b in both]):.3f}, less in {better} of {len(both)}"
                )
    return "; ".join(texts) + "."


FIGURES = (Figure("20", "count queries against the number of dimensions", DIMENSION_CLAIMS, _dimensions, BOTH),)
