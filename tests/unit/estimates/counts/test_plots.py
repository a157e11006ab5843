"""Charts of estimates: what they show, in which order, and that the files open anywhere."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from noren.errors import QueryError
from noren.estimates.counts.plots import chart, save_chart

JOBS = ["Student", "Nurse", "Bergführerin", "運転手", "Retired"]
AGES = ["young", "middle", "old"]


def frame(**columns: list) -> pl.DataFrame:
    rows = list(product(*columns.values()))
    counts = [10.0 * (i + 1) for i in range(len(rows))]
    data: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(columns)}
    return pl.DataFrame(
        {**data, "count": counts, "std_error": [8.0] * len(rows), "low": [c - 16 for c in counts],
         "high": [c + 16 for c in counts]}
    )  # fmt: skip


def marks(spec: dict) -> list[str]:
    inner = spec.get("spec", spec)
    return [layer["mark"]["type"] for layer in inner["layer"]]


def cells(spec: dict) -> list[dict]:
    return spec["datasets"][spec["data"]["name"]]


def test_one_column_gives_bars_with_whiskers_in_the_given_order() -> None:
    spec = chart(frame(job=JOBS), ["job"], order={"job": JOBS[::-1]}).to_dict()
    assert marks(spec) == ["bar", "rule", "tick", "tick"]
    assert spec["layer"][0]["encoding"]["y"]["sort"] == JOBS[::-1]
    rule = spec["layer"][1]["encoding"]
    assert (rule["x"]["field"], rule["x2"]["field"]) == ("low", "high")
    assert [cell["a"] for cell in cells(spec)] == JOBS


def test_without_an_order_values_stand_as_they_first_appear() -> None:
    spec = chart(frame(age=AGES), ["age"]).to_dict()
    assert spec["layer"][0]["encoding"]["y"]["sort"] == AGES


def test_two_small_columns_are_grouped_with_the_smaller_as_colour() -> None:
    spec = chart(frame(age=AGES, job=JOBS), ["age", "job"]).to_dict()
    encoding = spec["layer"][0]["encoding"]
    assert encoding["y"]["title"] == "job"
    assert encoding["color"]["scale"]["domain"] == AGES
    assert "yOffset" in spec["layer"][1]["encoding"]


def test_two_large_columns_give_a_heat_map() -> None:
    many = [f"value {i}" for i in range(30)]
    spec = chart(frame(a=many, b=many), ["a", "b"]).to_dict()
    assert marks(spec) == ["rect", "text"]  # too many cells for numbers; crosses only
    spec = chart(frame(a=many[:12], b=JOBS), ["a", "b"]).to_dict()
    assert marks(spec) == ["rect", "text", "text"]


def test_a_heat_map_marks_cells_that_may_be_empty_and_says_so() -> None:
    spec = chart(frame(age=AGES, job=JOBS), ["age", "job"], kind="heatmap", subtitle="Made up").to_dict()
    assert [cell["unsure"] for cell in cells(spec)] == [True] + [False] * 14
    assert spec["title"]["subtitle"][0] == "Made up"
    assert spec["title"]["subtitle"][1].startswith("×")
    sure = frame(age=AGES, job=JOBS).with_columns(low=pl.col("count"))
    assert "subtitle" not in chart(sure, ["age", "job"], kind="heatmap").to_dict()["title"]


def test_a_third_column_becomes_panels() -> None:
    spec = chart(frame(age=AGES, job=JOBS, year=[2020, 2021]), ["age", "job", "year"]).to_dict()
    assert spec["facet"]["sort"] == ["2020", "2021"]
    with pytest.raises(QueryError, match="at most 6"):
        chart(frame(age=AGES, job=JOBS, year=list(range(7))), ["age", "job", "year"])


def test_more_than_five_thousand_cells_are_drawn_and_named() -> None:
    many = [f"v{i}" for i in range(80)]
    picture = chart(frame(a=many, b=many), ["a", "b"])
    spec = picture.to_dict()  # Altair refuses this many rows of a DataFrame
    assert len(cells(spec)) == 6400
    assert spec["title"]["subtitle"][-1].startswith("6,400 cells")


def test_odd_column_names_and_missing_figures_do_no_harm(tmp_path: Path) -> None:
    data = frame(**{"a.b[0]: 'x'": ["p", None], "count of": [1, 2]})
    data = data.with_columns(low=pl.lit(float("nan")), high=pl.lit(None, pl.Float64))
    spec = chart(data, ["a.b[0]: 'x'", "count of"]).to_dict()
    assert [cell["a"] for cell in cells(spec)] == ["p", "p", "(missing)", "(missing)"]
    assert json.dumps(spec, allow_nan=False)
    assert save_chart(chart(data, ["count of"]), tmp_path / "odd.svg").exists()


@pytest.mark.parametrize(
    ("by", "kind", "message"),
    [
        (["height"], "auto", "no column 'height'"),
        ([], "auto", "one, two or three"),
        (["age", "age"], "auto", "one, two or three"),
        (["age"], "pie", "no chart of kind 'pie'"),
        (["age"], "heatmap", "two or three columns"),
        (["age", "job"], "bar", "one column"),
    ],
)
def test_what_cannot_be_drawn_is_refused(by: list[str], kind: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        chart(frame(age=AGES, job=JOBS), by, kind=kind)


def test_an_empty_estimate_is_refused() -> None:
    with pytest.raises(QueryError, match="no cells"):
        chart(frame(age=AGES).clear(), ["age"])


def test_files(tmp_path: Path) -> None:
    picture = chart(frame(job=JOBS), ["job"], title="A long title " * 12)
    page = save_chart(picture, tmp_path / "chart.html").read_text()
    assert "運転手" in page or "\\u904b" in page
    assert 'src="http' not in page  # every script is inside: opens without a network
    assert save_chart(picture, tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    assert save_chart(picture, str(tmp_path / "chart.svg")).read_text().startswith("<svg")
    assert json.loads(save_chart(picture, tmp_path / "chart.JSON").read_text())["title"]["text"]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".JSON", ".html", ".png", ".svg"]


@pytest.mark.parametrize("name", ["chart.pdf", "chart"])
def test_other_suffixes_are_refused_with_a_hint(tmp_path: Path, name: str) -> None:
    with pytest.raises(QueryError, match=r"\.html, \.png, \.svg, \.json"):
        save_chart(chart(frame(job=JOBS), ["job"]), tmp_path / name)
    assert not list(tmp_path.iterdir())
