"""Intervals that a method makes by itself follow from the people who are published, and from round numbers.

Somebody with an income a hundred times as large as all others is left out. No number of the release may show it:
before, incognito's intervals were 50,000 wide because of a person who was not there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.methods import METHODS
from noren.methods.base import ClassMethod
from tests.contracts.paints import PAINTS

N = 300
RICH = 6
GENERAL = [name for name, kind in METHODS.items() if issubclass(kind, ClassMethod)]
KEEP_ALL = ("local-suppression", "microaggregation", "m-invariance")


def table(rich: bool = True) -> pl.DataFrame:
    """Incomes up to 4,900; with `rich`, a few people have a hundred times as much, each with another illness."""
    rng = np.random.default_rng(8)
    income = rng.integers(0, 4_900, N)
    ill = rng.choice(["cold", "flu", "gout", "none"], N)
    if rich:
        income[:RICH] = 480_000 + 1_000 * np.arange(RICH)
        ill[:RICH] = ["cold", "flu", "gout", "none", "flu", "gout"]
    signs = rng.choice(["gloss", "matt", "dust;matt", ""], N)
    return pl.DataFrame(
        {"row": np.arange(N), "income": income, "sex": rng.choice(["f", "m"], N), "ill": ill, "signs": signs}
    )


def policy(method: str, **more: Any) -> nr.Policy:
    require: list[dict[str, Any]] = [{"model": "frequency-l-diversity", "on": "ill", "l": 2}]
    if method not in ("anatomy", "rating"):
        require.append({"model": "k-anonymity", "k": 8 if method == "suppress" else 5})
    signs: Any = "plain"
    options: dict[str, Any] = {"name": method} | ({} if method in KEEP_ALL else {"suppression": 0.1})
    if method == "suppress":
        signs = {"role": "quasi-sensitive", "separator": ";", "knowledge": PAINTS}
        require.append({"model": "qs-diversity", "on": "signs", "c": 4.0, "l": 2})
        options |= {"nodes": 60, "generalise": "incognito"}
    if method == "auto":
        options["among"] = ["incognito", "sweep"]
    return nr.Policy(
        mechanism="ignored",
        attributes={
            "row": "plain",
            "income": "quasi-identifier",
            "sex": "quasi-identifier",
            "ill": "sensitive",
            "signs": signs,
        },
        require=require,
        method=options | more,
        dependence={"most": 1.0},
    )


def numbers(folder: Path) -> list[float]:
    """Every number in what the release says about incomes."""
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    (column,) = [one for one in package["noren"]["columns"] if one["name"] == "income"]
    cells = pl.read_csv(folder / "data.csv", infer_schema=False)["income"].unique().to_list()
    return [float(found) for found in re.findall(r"\d+(?:\.\d+)?", json.dumps(column) + " ".join(map(str, cells)))]


@pytest.mark.parametrize("method", GENERAL)
def test_nothing_shows_how_rich_the_richest_who_are_left_out_are(method, tmp_path):
    release = nr.anonymize(table(), policy(method), to=tmp_path / "release", file_format="csv")
    there = set(release.frame()["row"].to_list())
    if there & set(range(RICH)):
        return  # they are published, so that intervals may reach them
    assert max(numbers(tmp_path / "release")) <= 8_000


def test_rich_people_are_left_out_by_the_method_of_the_intervals():
    """So the test above is not empty."""
    release = nr.anonymize(table(), policy("incognito"))
    assert not set(release.frame()["row"].to_list()) & set(range(RICH))


def test_intervals_are_those_of_a_table_without_the_ones_who_are_left_out():
    """The same people, with and without the rich who do not appear: the same intervals."""
    fixed = {"levels": {"income": 1}}
    whole = nr.anonymize(table(), policy("incognito", **fixed))
    others = table().filter(pl.col("row") >= RICH)
    alone = nr.anonymize(others, policy("incognito", **fixed))
    assert set(whole.frame()["income"].to_list()) == set(alone.frame()["income"].to_list())
