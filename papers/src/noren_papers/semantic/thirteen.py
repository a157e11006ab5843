"""Table 11: Adult with all 13 other attributes as quasi-identifiers, where the figures show age and gender alone.

Every attribute is asked for in turn: its histogram by schooling, from the paper's combinations and from ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Result
from noren_papers.claims import Answer, Claims
from noren_papers.relations import Check, Compare, answer_from
from noren_papers.semantic import material as tables
from noren_papers.semantic.combinations import LE, OUR_SERIES, SIMPLE, gains, measure, sheet_of
from noren_papers.semantic.material import Material, schooling_tree

QUASI = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip
"""The 14 attributes of Adult; 13 are left beside a secret."""
WIDTHS = {"age": 10, "fnlwgt": 100_000, "capital-gain": 5_000, "capital-loss": 500, "hours-per-week": 10}
"""Numbers are asked for in classes so wide."""
SECRETS = ("education", "fnlwgt")
L, D = 2, 3
PROPOSAL, EXISTING, PLAIN = SIMPLE
UNEVEN = (
    "many nearly empty classes beside a large one; classes of very different sizes stop apart, those of about one size "
    "share a stop"
)
SHOWN = (*SIMPLE, LE, *OUR_SERIES)


def table_11(bench: Bench) -> Result:
    frame = tables.adult(bench)
    asked = [name for name in QUASI if name != "education"]
    times = bench.pick((10, 3), (2, 1))
    errors = []
    for name in bench.each(asked):
        rng = bench.rng(name)
        found = measure(_by(frame, name), L, D, repetitions=times[0], ours=times[1], rng=rng)
        errors += [({"attribute": name}, point) for point in found if point.series in SHOWN]
    sheet = sheet_of(errors, status=False)
    told = pl.DataFrame(_told(frame))
    return Result(
        sheets={"": sheet, "told": told},
        pictures={
            "": draw.bars(
                sheet, x="attribute", y="mse", series="series", ours=OUR_SERIES, order=SHOWN, log_y=True,
                error="std_error", x_title="", y_title="mean squared error", step=8, height=220,
                title=f"Table 11. Schooling by each of 13 quasi-identifiers, ({L},{D})",
                note="Education-num is another name of the secret: whoever publishes it publishes schooling.",
            )
        },
        answers=SAID.answered(frame=sheet, told=told),
        ours_series=OUR_SERIES,
        parameters={
            "records": frame.height, "l": L, "d": D, "quasi-identifiers": asked, "classes": WIDTHS,
            "draws of the paper's combinations": times[0], "draws of ours": times[1],
        },
        notes=(
            "The paper uses 13 quasi-identifiers and shows histograms of two, age and gender.",
            "A secret counts as told by an attribute where all records with the same value of it have the same secret; "
            "fnlwgt is in the classes of figure 13.",
        ),
        gains=gains(sheet, ("attribute",), PROPOSAL, dict.fromkeys(OUR_SERIES, UNEVEN), ", 13 attributes"),
    )  # fmt: skip


def _by(frame: pl.DataFrame, name: str) -> Material:
    """Schooling in the classes of one other attribute."""
    tree = schooling_tree()
    values = frame[name] if name not in WIDTHS else frame[name].cast(pl.Int64) // WIDTHS[name]
    labels, slots = np.unique(values.to_numpy(), return_inverse=True)
    place = {value: code for code, value in enumerate(tree.leaves)}
    codes = np.array([place[value] for value in frame["education"]], np.int64)
    named = tuple((str(label), "") for label in labels)
    return Material(name, codes, slots.astype(np.int64), named, tree.leaves, tree.lca_heights().astype(float), tree)


def _told(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """For either secret, the share of records whose secret each other attribute tells on its own."""
    classes = frame.with_columns(fnlwgt=pl.col("fnlwgt").cast(pl.Int64) // tables.WEIGHT_STEP)
    return [
        {"secret": secret, "attribute": name, "told": told(classes, name, secret)}
        for secret in SECRETS
        for name in QUASI
        if name != secret
    ]


def told(frame: pl.DataFrame, name: str, secret: str) -> float:
    """The share of records in groups of several that agree in the attribute and have one secret between them."""
    found = frame.group_by(name).agg(pl.len().alias("records"), pl.col(secret).n_unique().alias("secrets"))
    return float(found.filter((pl.col("secrets") == 1) & (pl.col("records") > 1))["records"].sum() / frame.height)


SAID = Claims()


@SAID("With the 13 other attributes published as they are, an attacker who knows them cannot tell the secret.")
def _hidden(told: pl.DataFrame) -> Answer:
    most = told.sort("told", descending=True, maintain_order=True).unique("secret", keep="first", maintain_order=True)
    note = "the attribute that tells most of either secret; hidden would be less than half of the records"
    return answer_from(most, Check(pl.col("told") < 0.5, ("secret", "attribute"), ("told",), note=note))


SAID(
    "The proposed analysis errs less than the existing and the simple one, whatever attribute is asked.",
    Compare(PROPOSAL, "below", (EXISTING, PLAIN), "mse", ("attribute",), error="std_error"),
)
