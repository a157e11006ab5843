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
from noren_papers.claims import ALMOST, Claims
from noren_papers.relations import Check, Compare
from noren_papers.sensitive_qids import errors, methods, tables
from noren_papers.sensitive_qids.errors import OURS, PROPOSAL, RATING, VALUE_ADDING
from noren_papers.sensitive_qids.tables import Coded

PAIR = ("age", "occupation")
LEVEL = 5
ORIGINAL = "original"
BIASED = (VALUE_ADDING, RATING)
OWN = pl.col("series") == PROPOSAL
SAID = Claims()
SAID(
    "The reconstructed values of every method add up to the number of records.",
    Check((pl.col("sum") - pl.col("records")).abs() <= 0.5, ("series",), ("sum", "records")),
)
SAID(
    "ValueAdding and Rating give far too little in cells above the average and far too much in cells below.",
    Compare(BIASED, "much below", 1.0, "cells above average", ()),
    Compare(BIASED, "much above", 1.0, "cells below average", ()),
)
SAID(
    "The proposal reconstructs the distribution almost perfectly.",
    Check(
        pl.col("misplaced") <= ALMOST, ("series",), ("misplaced",), where=OWN,
        note="half of the L1 distance, as a share of the records; almost: 5%",
    ),
    Check(pl.col("correlation") >= 1 - ALMOST, ("series",), ("correlation",), where=OWN, note="almost: 0.95"),
)  # fmt: skip
ESTIMATORS = {PROPOSAL: "bayes", VALUE_ADDING: "value-adding", OURS: "likelihood"}


def figure_7(bench: Bench) -> Result:
    rows = bench.pick(None, 8_000)
    frame, table = tables.adult_frame(bench, rows).select(PAIR), tables.adult(bench, rows)
    policy = Policy(
        dependence={"most": 1.0},
        attributes={name: sensitive_quasi_identifier() for name in PAIR},
        require=[FrequencyLDiversity(l=LEVEL, on=list(PAIR))],
        method=Decoys(),
    )
    release = anonymize(frame, policy)
    found = {
        series: _laid_out(table, release.estimate(PAIR, estimator=ESTIMATORS[series]).frame)
        for series in bench.each(ESTIMATORS)
    }
    found[RATING] = methods.spread([methods.rated(table, name, LEVEL) for name in PAIR])
    truth = table.truth(PAIR)
    sheet = _sheet(table, {ORIGINAL: truth, **found})
    facts = _facts(truth, found)
    judged = facts.with_columns(records=pl.lit(float(table.n)), misplaced=pl.col("L1") / 2)
    return Result(
        {"": sheet, "facts": facts},
        {"": _picture(table, sheet)},
        SAID.answered(frame=judged),
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


FIGURE_7 = Figure("7", "Age by occupation on Adult, reconstructed", SAID, figure_7, ("adult",))
