"""Figure 7: age by occupation, reconstructed at l = 5 through the whole pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren import Policy, anonymize
from noren.methods import Decoys
from noren.metrics.distances import hellinger_loss, l1_loss, l2_loss
from noren.models import FrequencyLDiversity
from noren.schema.column import sensitive_quasi_identifier
from noren_papers import draw
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import ALMOST, Below, answer, judged
from noren_papers.sensitive_qids import errors, methods, tables
from noren_papers.sensitive_qids.errors import OURS, PROPOSAL, RATING, VALUE_ADDING
from noren_papers.sensitive_qids.tables import Coded

PAIR = ("age", "occupation")
LEVEL = 5
ORIGINAL = "original"
CLAIMS = {
    "sum": "The reconstructed values of every method add up to the number of records.",
    "biased": "ValueAdding and Rating give far too little in cells above the average and far too much in cells below.",
    "perfect": "The proposal reconstructs the distribution almost perfectly.",
}
ESTIMATORS = {PROPOSAL: "bayes", VALUE_ADDING: "value-adding", OURS: "likelihood"}


def figure_7(bench: Bench) -> Result:
    rows = bench.pick(None, 8_000)
    frame, table = tables.adult_frame(bench, rows).select(PAIR), tables.adult(bench, rows)
    bench.plan(len(ESTIMATORS) + 2)
    policy = Policy(
        dependence={"most": 1.0},
        attributes={name: sensitive_quasi_identifier() for name in PAIR},
        require=[FrequencyLDiversity(l=LEVEL, on=list(PAIR))],
        method=Decoys(),
    )
    release = anonymize(frame, policy)
    bench.step("released")
    found = {}
    for series, estimator in ESTIMATORS.items():
        found[series] = _laid_out(table, release.estimate(PAIR, estimator=estimator).frame)
        bench.step(series)
    found[RATING] = methods.spread([methods.rated(table, name, LEVEL) for name in PAIR])
    bench.step(RATING)
    truth = table.truth(PAIR)
    sheet = _sheet(table, {ORIGINAL: truth, **found})
    facts = _facts(truth, found)
    return Result(
        {"": sheet, "facts": facts},
        {"": _picture(table, sheet)},
        _answers(table.n, truth, found),
        (OURS,),
        {"l": LEVEL, "attributes": list(PAIR), "cells": truth.size, "classes of age": "five years each"},
        (
            "The paper draws towers; here they are tiles. Ages are in classes of five years (the paper cut its "
            "numbers too and does not say where).",
            "Decoys are one release of the whole pipeline (anonymize, then release.estimate); Rating's groups "
            "are made on codes and counted as ValueAdding's sets.",
            errors.STOPPING,
        ),
        _gains(facts),
    )


def _laid_out(table: Coded, frame: pl.DataFrame) -> NDArray[np.float64]:
    """An estimate as an array in the order of the codes."""
    out = np.zeros([table.sizes[name] for name in PAIR])
    places = [np.array([table.values[name].index(value) for value in frame[name]]) for name in PAIR]
    out[tuple(places)] = frame["count"].to_numpy()
    return out


def _sheet(table: Coded, found: dict[str, NDArray[np.float64]]) -> pl.DataFrame:
    ages, jobs = (table.values[name] for name in PAIR)
    rows: list[dict[str, Any]] = [
        {"series": series, "age": age, "occupation": job, "records": float(counts[i, j])}
        for series, counts in found.items()
        for i, age in enumerate(ages)
        for j, job in enumerate(jobs)
    ]
    return pl.DataFrame(rows)


def _facts(truth: NDArray[np.float64], found: dict[str, NDArray[np.float64]]) -> pl.DataFrame:
    large, small = truth > truth.mean(), truth < truth.mean()
    return pl.DataFrame(
        [
            {
                "series": series,
                "sum": float(counts.sum()),
                "L1": l1_loss(counts, truth, True),
                "L2": l2_loss(counts, truth, True),
                "Hellinger": hellinger_loss(counts, truth, True),
                "correlation": float(np.corrcoef(counts.ravel(), truth.ravel())[0, 1]),
                "cells above average": float(counts[large].sum() / truth[large].sum()),
                "cells below average": float(counts[small].sum() / truth[small].sum()),
            }
            for series, counts in found.items()
        ]
    )


def _answers(n: int, truth: NDArray[np.float64], found: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
    facts = {row["series"]: row for row in _facts(truth, found).to_dicts()}
    large, small = truth > truth.mean(), truth < truth.mean()
    sums = {series: row["sum"] for series, row in facts.items()}
    pairs, shares = [], []
    for series in (VALUE_ADDING, RATING):
        less, more = float((found[series] < truth)[large].mean()), float((found[series] > truth)[small].mean())
        pairs += [(facts[series]["cells above average"], 1.0), (1.0, facts[series]["cells below average"])]
        shares.append(
            f"{series}: cells above the average hold {facts[series]['cells above average']:.2f} times their records "
            f"({less:.0%} of them too few), cells below {facts[series]['cells below average']:.2f} times ({more:.0%} "
            "too many)"
        )
    proposal = facts[PROPOSAL]
    return {
        "sum": judged(
            [abs(value - n) <= 0.5 for value in sums.values()],
            f"The sums for {n:,} records: " + ", ".join(f"{series} {value:,.1f}" for series, value in sums.items()),
        ),
        "biased": answer("; ".join(shares) + " (far: at most half, at least twice)", Below(pairs, much=True)),
        "perfect": judged(
            [proposal["L1"] / 2 <= ALMOST, proposal["correlation"] >= 1 - ALMOST],
            f"The proposal misplaces {proposal['L1'] / 2:.1%} of the records (half of its L1 distance "
            f"{proposal['L1']:.3f}) and its correlation with the original is {proposal['correlation']:.4f} (almost: 5% "
            f"misplaced, correlation 0.95); ours {facts[OURS]['L1'] / 2:.1%} and {facts[OURS]['correlation']:.4f}, "
            f"ValueAdding {facts[VALUE_ADDING]['L1'] / 2:.1%}, Rating {facts[RATING]['L1'] / 2:.1%}",
        ),
    }


def _gains(facts: pl.DataFrame) -> tuple[Gain, ...]:
    rows = {row["series"]: row for row in facts.to_dicts()}
    ratios = {name: rows[OURS][name] / rows[PROPOSAL][name] for name in ("L1", "L2", "Hellinger")}
    return Gain.of("three distances, age by occupation", ratios, errors.LOSES)


def _picture(table: Coded, sheet: pl.DataFrame) -> Any:
    order = [ORIGINAL, PROPOSAL, OURS, VALUE_ADDING, RATING]
    return draw.tiles(
        sheet, x="age", y="occupation", value="records", panel="series", panels=order, columns=3, labels=False,
        title=f"Figure 7. Age by occupation, original and reconstructed at l = {LEVEL}", cell=(17, 15), y_title="",
        note=f"Adult, {table.n:,} records. Darker cells hold more.",
    )  # fmt: skip


FIGURE_7 = Figure("7", "Age by occupation on Adult, reconstructed", CLAIMS, figure_7, ("adult",))
