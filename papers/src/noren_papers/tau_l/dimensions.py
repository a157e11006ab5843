"""Figure 20: the error of count queries against the number of dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Figure, Result
from noren_papers.claims import ALMOST, Answer, Below, Claims, Mean, answer, judged
from noren_papers.tau_l.common import BOTH, CLD, ONE_D, PAPERS, SWEEP, dataset, label, release_of
from noren_papers.tau_l.judging import ZERO_NOTE
from noren_papers.tau_l.queries import (
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

SAID = Claims()


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
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(panel=pl.format("{} {}", "data", "requirement"))
    places = pl.format("{} dimensions", "dimensions")
    several = frame.filter(pl.col("dimensions") > 1).with_columns(requirement=places)
    picture = draw.lines(
        frame, x="dimensions", y="error", series="method", panel="panel", order=LINES, ours=OURS,
        columns=2, log_y=True, shared_y=False, size=(330, 230), x_title="dimensions (conditions)",
        title="Figure 20. Count queries: error against the number of dimensions", y_title="average relative error",
        error="error, standard error", note=ZERO_NOTE,
    )  # fmt: skip
    notes = (LEFT_OUT, DRAWN, EVEN)
    sheets = {"": frame, "queries": drawn_sheet(bench)}
    answers = SAID.answered(frame=frame, several=several, bench=bench)
    own = gains(frame.with_columns(place=places), "place")
    return Result(sheets, {"": picture}, answers, _gain_by_dimension(frame), OURS, parameters(bench), notes, own)


@SAID("SWEEP has less error than 1DLD and CLD for every number of dimensions above one.")
def _best(several: pl.DataFrame) -> Answer:
    return sweep_best(several)


@SAID("That is because it may generalise secrets and so generalises quasi-identifiers less than the others.")
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


def _at_one(frame: pl.DataFrame) -> dict[str, dict[str, Mean]]:
    """By panel and method of the paper: the error of queries of one dimension."""
    kept = frame.filter((pl.col("dimensions") == 1) & pl.col("error").is_not_null() & pl.col("method").is_in(PAPERS))
    out: dict[str, dict[str, Mean]] = {str(title): {} for title in frame["panel"].unique(maintain_order=True)}
    for row in kept.to_dicts():
        out[row["panel"]][row["method"]] = Mean(row["error"], row["error, standard error"])
    return out


def _told(given: dict[str, dict[str, Mean]]) -> str:
    return "; ".join(
        f"{title}: " + ", ".join(f"{method} {one.value:.4f}" for method, one in at.items())
        for title, at in given.items()
    )


@SAID("With one dimension SWEEP is worse, because it generalises secrets and the others do not.")
def _worse(frame: pl.DataFrame) -> Answer:
    given = _at_one(frame)
    swept = [at for at in given.values() if SWEEP in at]
    return answer(_told(given), Below([(one, at[SWEEP]) for at in swept for name, one in at.items() if name != SWEEP]))


@SAID("With one dimension the differences between the three are very small.")
def _small(frame: pl.DataFrame) -> Answer:
    given = _at_one(frame)
    spans = [[one.value for one in at.values()] for at in given.values() if SWEEP in at]
    text = f"{_told(given)}; very small means a difference below {ALMOST:g}"
    return judged([max(values) - min(values) < ALMOST for values in spans], text)


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


FIGURES = (Figure("20", "count queries against the number of dimensions", SAID, _dimensions, BOTH),)
