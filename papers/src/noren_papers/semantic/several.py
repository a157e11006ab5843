"""Section 7.4: several sensitive attributes, which the paper leaves to future work and believes that it can treat.

Schooling and weekly hours of Adult, both secret, in the paper's form: one shuffled record for every combination of
possible values. What is published goes through the whole pipeline, verification included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren import Policy, anonymize, verify
from noren.methods import Decoys
from noren.models import SemanticDiversity
from noren.schema.column import sensitive
from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import Claims, means
from noren_papers.relations import Check, Compare
from noren_papers.semantic import material as tables

TITLE = "Two secrets in shuffled records"
HOURS = 10
"""Weekly hours are in classes so wide."""
SETTINGS = ((2, 2), (2, 3), (3, 2))
"""(l, d) of both secrets: what trees of depth four and ten classes in a row can meet together."""
PROPOSAL, APART, OURS = "records + inversion", "each secret alone", "sets + likelihood (ours)"
SAID = Claims()
SAID(
    "Combined with the earlier work the algorithms can treat several sensitive attributes.",
    Check(
        pl.col("holds"), ("requirement", "draw"),
        note="releases, each secret judged among records that agree in the other",
    ),
    of="held",
)  # fmt: skip
SAID(
    "The histogram of both is nearer to the truth than what the histograms of each alone tell.",
    Compare(PROPOSAL, "below", APART, "mse", ("requirement",), each="each"),
)


def section_74(bench: Bench) -> Result:
    people = _secrets(tables.adult(bench))
    truth, times = _table(people), bench.pick(5, 2)
    rows: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []
    for l, d in bench.each(SETTINGS):
        for draw_number in range(times):
            found, verdicts = _released(people, l, d)
            held += [{"requirement": f"({l},{d})", "draw": draw_number + 1, "holds": one} for one in verdicts]
            found[APART] = np.outer(found[PROPOSAL].sum(axis=1), found[PROPOSAL].sum(axis=0)) / people.height
            rows += [
                {"requirement": f"({l},{d})", "draw": draw_number + 1, "series": series, "mse": _mse(table, truth)}
                for series, table in found.items()
            ]
    every = pl.DataFrame(rows)
    compared = means(every, ("requirement", "series"), "mse", pl.col("mse").alias("each"))
    sheet = compared.drop("each")
    return Result(
        sheets={"": sheet, "draws": every},
        pictures={
            "": draw.bars(
                sheet, x="requirement", y="mse", series="series", ours=[OURS], order=[OURS, PROPOSAL, APART],
                log_y=True, error="standard error", x_title="(l,d) of both secrets", y_title="mean squared error",
                title="Section 7.4. Schooling by weekly hours, both secret", step=16, height=210,
                note=f"Adult, {people.height:,} records, {truth.size} cells",
            )
        },
        answers=SAID.answered(frame=compared, held=pl.DataFrame(held)),
        ours_series=(OURS,),
        parameters={"records": people.height, "draws": times, "(l,d)": [list(one) for one in SETTINGS]},
        notes=(
            f"'{PROPOSAL}' publishes a record for every combination of possible values, N times l times l of them, and "
            "solves for the true histogram by the inclusion probabilities of the simple design; negative counts are "
            f"then moved to the nearest possible table. '{OURS}' publishes the flat design's sets, one record a "
            f"person. '{APART}' is the product of what the records tell of each secret.",
            "Distances: schooling by its tree, hours by rank of their class.",
        ),
        gains=Gain.over("mean squared error, two secrets", sheet, ("requirement",), OURS, PROPOSAL, "mse"),
    )  # fmt: skip


def _secrets(frame: pl.DataFrame) -> pl.DataFrame:
    hours = (frame["hours-per-week"].cast(pl.Int64) // HOURS).cast(pl.String)
    return pl.DataFrame({"schooling": frame["education"], "hours": hours})


def _table(frame: pl.DataFrame) -> NDArray[np.float64]:
    """The true counts, schooling by hours."""
    leaves = {value: i for i, value in enumerate(tables.schooling_tree().leaves)}
    out = np.zeros((len(leaves), 10))
    for school, hours, many in frame.group_by("schooling", "hours").len().iter_rows():
        out[leaves[school], int(hours)] = many
    return out


def _policy(l: int, d: int, form: str) -> Policy:
    tree = tables.schooling_tree()
    return Policy(
        dependence={"most": 1.0},
        people={"rows": "independent"},
        attributes={
            "schooling": sensitive(values=tree.leaves, hierarchy=tree, distance="tree"),
            "hours": sensitive(values=[str(i) for i in range(10)], distance="ordinal"),
        },
        require=[SemanticDiversity(on=("schooling", "hours"), l=l, d=d, most=1.0)],
        method=Decoys(design="simple" if form == "records" else "flat", form=form),
    )


def _released(frame: pl.DataFrame, l: int, d: int) -> tuple[dict[str, NDArray[np.float64]], list[bool]]:
    """Estimates from a release in either form, and whether the records hold what was asked, column by column."""
    out, verdicts = {}, []
    for series, form, estimator in ((PROPOSAL, "records", "linear"), (OURS, "sets", "likelihood")):
        release = anonymize(frame, _policy(l, d, form))
        if form == "records":
            assert release.rows == frame.height * l * l
            verdicts = [bool(verdict.holds) for verdict in verify(release)]
        counts = release.estimate(["schooling", "hours"], estimator=estimator).frame["count"].to_numpy()
        out[series] = counts.reshape(-1, 10)
    return out, verdicts


def _mse(table: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.square((table - truth) / truth.sum()).mean())
