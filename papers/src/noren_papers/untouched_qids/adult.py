"""Figures 4 and 5: Adult with every attribute as the sensitive one, and a histogram to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import ALMOST, Claims, answer, count_below, error_of, judged
from noren_papers.relations import Check, Compare
from noren_papers.untouched_qids.groups import G, S
from noren_papers.untouched_qids.methods import (
    EACH,
    LEAST_LOSS,
    LOSES,
    METHODS_NOTE,
    OTHERS,
    OURS,
    OURS_NOTE,
    PAPERS,
    PROPOSAL,
    codes_of,
    from_sets,
    gains,
    histograms,
    measured,
    published,
)
from noren_papers.untouched_qids.tables import (
    ADULT_COLUMNS,
    HISTOGRAM_NOTE,
    LATE_NOTE,
    WEIGHT_WIDTH,
    Source,
    adult,
    adult_with,
)
from noren_papers.untouched_qids.workload import Coded, Question, questions, truths

LEVELS = tuple(range(2, 11))
COMPARED = (OURS, *PAPERS)
"""The series of figure 4: the paper's methods, and ours from the same sets."""
OVER = {"mse": "settings that it can do", "mse_common": "settings that all can do"}
SETTING = ("data", "l")
SAID_4 = Claims()
SAID_4(
    "Mondrian, TP and Anatomy sometimes cannot be run because the eligibility requirement does not hold.",
    Check(
        pl.col("possible") < pl.col("settings"), ("series",), ("possible", "settings"),
        where=pl.col("series").is_in(OTHERS),
    ),
    Check(
        pl.col("refused, eligible") == 0, ("series",), ("refused, eligible",), where=pl.col("series") == PROPOSAL,
        note="settings refused though no sensitive value has more than 1/l of the records",
    ),
)  # fmt: skip
SAID_4(
    "The proposal needs no eligibility: it cannot be run only where l exceeds the number of sensitive values.",
    Check(
        pl.col("possible") == (pl.col("l") <= pl.col("values")), SETTING, where=pl.col("series") == PROPOSAL,
        note="where l is the number of values, every set is the whole domain and says nothing",
    ),
    of="sheet",
)  # fmt: skip
SAID_4(
    "The proposal can be run in a larger share of the settings than the other methods.",
    Compare(PROPOSAL, "above", OTHERS, "share", ()),
)
SAID_4(
    "Averaged over all settings, the proposal has the smallest MSE.",
    Compare(PROPOSAL, "below", OTHERS, "mse_common", (), note="over the settings that all four can do"),
    Compare(PROPOSAL, "below", OTHERS, "mse", (), note="each over its own settings"),
)
CLAIMS_5 = {
    "follows": "The proposal recovers the distribution of relationship for men and for women at l = 2.",
    "closest": "Of the four methods the proposal's histogram is the one most like the original.",
}
FORMS = "Adult's attributes are taken as they are; fnlwgt as the sensitive one is cut into classes of width {width:,}."


def figure_4(bench: Bench) -> Result:
    frame = adult(bench)
    levels = bench.pick(LEVELS, (2, 10))
    count = bench.pick(10, 3)
    sheets = []
    for place in bench.each(range(1, len(ADULT_COLUMNS) + 1), lambda one: ADULT_COLUMNS[one - 1]):
        source = adult_with(frame, place)
        table = codes_of(bench, source)
        rng = np.random.default_rng([2015, place])
        asked, _ = questions(table, source.quasi, G, S, count, rng)
        for level in levels:
            keys = {
                "data": source.name, "sensitive": source.secret, "values": table.sizes[source.secret],
                "commonest": float(np.bincount(table.codes[source.secret]).max() / table.records), "l": level,
            }  # fmt: skip
            sheets.append(measured(bench, source, level, asked, keys, COMPARED, keep=False))
    sheet = pl.concat(sheets).with_columns(pl.col("mse").is_not_null().alias("possible"))
    overview = _overview(sheet)
    eligible = pl.col("commonest") * pl.col("l") <= 1 + 1e-12
    refused = pl.lit(sheet.filter(pl.col("series").is_in(OTHERS) & ~pl.col("possible") & eligible).height).alias(
        "refused, eligible"
    )
    shares = draw.bars(
        overview.with_columns(pl.lit(f"l = {levels[0]} to {levels[-1]}").alias("what")),
        x="what", y="share", series="series", ours=[OURS], order=COMPARED,
        title="Figure 4. Adult: what can be anonymised", x_title="", y_title="share of settings", step=44,
    )  # fmt: skip
    errors = draw.bars(
        pl.concat(
            overview.select("series", pl.lit(over).alias("over"), value=mean, error=f"{mean}_error")
            for mean, over in OVER.items()
        ),
        x="over", y="value", series="series", log_y=True, ours=[OURS], order=COMPARED, error="error",
        title="Figure 4. Adult: mean MSE", x_title="", y_title="mean MSE", step=30,
    )  # fmt: skip
    return Result(
        sheets={"": overview, "settings": sheet.drop(EACH)},
        pictures={"": shares, "mse": errors},
        answers=SAID_4.answered(frame=overview.with_columns(refused), sheet=sheet),
        gains=gains(sheet.filter(pl.col("l") < pl.col("values")), ("data", "l")),
        ours_series=(OURS,),
        parameters={"l": list(levels), "g": G, "s": S, "questions per setting": count},
        notes=(
            FORMS.format(width=WEIGHT_WIDTH) + " As a quasi-identifier it nearly names the record.",
            "At l = |S| every set is the whole domain: the method runs, as the paper counts it, and publishes nothing "
            "about the attribute; the library refuses this unless told (eta = |S|), as is done here.",
            "The paper does not say over which settings its mean MSE goes. Each method's own settings differ, so the "
            "mean over those that all four can do is given beside it; both are compared.",
            HISTOGRAM_NOTE,
            LATE_NOTE,
            METHODS_NOTE,
            OURS_NOTE,
            f"The paper asks 1,000 questions a setting, here {count}.",
        ),
    )


def _overview(sheet: pl.DataFrame) -> pl.DataFrame:
    """Per method: the share of settings that it can do, and the mean MSE over those, and over those that all can do."""
    everyone = (
        sheet.filter(pl.col("series").is_in(PAPERS)).group_by("data", "l").agg(pl.col("possible").all().alias("common"))
    )
    joined = sheet.join(everyone, on=["data", "l"], how="left")
    rows = [
        {
            "series": name,
            "settings": mine.height,
            "possible": int(mine["possible"].sum()),
            "share": int(mine["possible"].sum()) / mine.height,
            "mse": mine["mse"].mean(),
            "mse_error": error_of(mine["mse"].drop_nulls()),
            "mse_common": mine.filter(pl.col("common"))["mse"].mean(),
            "mse_common_error": error_of(mine.filter(pl.col("common"))["mse"].drop_nulls()),
            "mse_true_total_common": mine.filter(pl.col("common"))["mse_true_total"].mean(),
            "common": int(mine["common"].sum()),
        }
        for name in COMPARED
        for mine in [joined.filter(pl.col("series") == name)]
    ]
    return pl.DataFrame(rows)


def figure_5(bench: Bench) -> Result:
    source = adult_with(adult(bench), ADULT_COLUMNS.index("relationship") + 1)
    level = 2
    table = codes_of(bench, source)
    genders = table.labels["sex"]
    asked = [Question({"sex": np.eye(len(genders))[place]}) for place in range(len(genders))]
    found = {"Original": truths(table, source.secret, asked).astype(float)}
    found |= _histograms(bench, source, table, asked, level)
    rows = [
        {"panel": name, "gender": gender, "relationship": value, "share": float(counts[i, j] / counts[i].sum())}
        for name, counts in found.items()
        for i, gender in enumerate(genders)
        for j, value in enumerate(table.labels[source.secret])
    ]
    sheet = pl.DataFrame(rows)
    off = {name: _distance(found["Original"], counts) for name, counts in found.items() if name != "Original"}
    panels = [name for name in ("Original", PROPOSAL, *OTHERS, LEAST_LOSS, OURS) if name in found]
    picture = draw.bars(
        sheet, x="relationship", y="share", series="gender", panel="panel", panels=panels, columns=3, order=genders,
        title="Figure 5. Relationship by gender at l = 2", x_title="", y_title="share", step=13, height=150,
    )  # fmt: skip
    told = ", ".join(
        f"{name} {mean:.3f} (largest {worst:.3f})" for name, (worst, mean) in off.items() if name in PAPERS
    )
    worst = off[PROPOSAL][0]
    follows = judged(
        [bool((gap <= ALMOST).all()) for gap in _gaps(found["Original"], found[PROPOSAL])],
        f"the proposal's largest error of a share is {worst:.3f}; up to {ALMOST:g} counts as recovered, for "
        "men and for women",
    )
    able = [name for name in OTHERS if name in off]
    closest = answer(
        f"mean error of a share, by method: {told}", count_below([(off[PROPOSAL][1], off[n][1]) for n in able])
    )
    missing = [name for name in OTHERS if name not in off]
    note = (
        (f"{', '.join(missing)} cannot be run: one relationship has more than half of the records.",) if missing else ()
    )
    return Result(
        sheets={"": sheet},
        pictures={"": picture},
        answers={"follows": follows, "closest": closest},
        ours_series=(OURS,),
        parameters={"l": level, "sensitive": "relationship", "asked": "sex"},
        gains=Gain.of("mean error of a share", {"relationship by sex": off[OURS][1] / off[PROPOSAL][1]}, LOSES),
        notes=(METHODS_NOTE, OURS_NOTE, *note),
    )


def _histograms(bench: Bench, source: Source, table: Coded, asked: list[Question], level: int) -> dict[str, Any]:
    """What each method says of every question; a method that cannot be run is left out."""
    out: dict[str, Any] = {}
    release = published(bench, source, level, PROPOSAL)
    if release is not None:
        out |= from_sets(release, table, source, asked, bench.rng("folds"))
    for name in (*OTHERS, LEAST_LOSS):
        counts = histograms(bench, source, level, name, asked)
        if counts is not None:
            out[name] = counts
    return out


def _gaps(truth: Any, estimate: Any) -> Any:
    """Absolute differences of shares, a row a question."""
    return np.abs(truth / truth.sum(axis=1, keepdims=True) - estimate / estimate.sum(axis=1, keepdims=True))


def _distance(truth: Any, estimate: Any) -> tuple[float, float]:
    """Largest and mean absolute difference of shares."""
    gap = _gaps(truth, estimate)
    return float(gap.max()), float(gap.mean())
