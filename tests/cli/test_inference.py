"""The recipient's commands beyond counts, on the hospital: age and job in sets of two, disease in sets of three."""

from __future__ import annotations

import polars as pl
import pytest

from tests.cli.conftest import strict

ROW = {"std_error", "low", "high", "records"}


def test_mean_shows_a_table_with_intervals_and_what_it_rests_on(release, run):
    result = run("mean", release, "age", "--by", "admission_year")
    assert "mean of age by admission_year" in result.output
    assert "95% intervals, 800 records; assumes cells drawn by the published design" in result.output
    assert "An interval of 'age' counts as its midpoint." in result.output


@pytest.mark.parametrize(
    ("words", "measure"),
    [
        (("mean", "age"), "mean"),
        (("mean", "job=Nurse"), "mean"),
        (("variance", "age"), "variance"),
        (("quantile", "age", "--at", "0.9"), "quantile"),
        (("correlation", "age", "admission_year"), "correlation"),
        (("difference", "age", "--by", "admission_year", "--against", "2020"), "difference"),
        (("ratio", "age", "--by", "admission_year"), "ratio"),
    ],
)
def test_every_measure_as_json(words, measure, release, run):
    answer = strict(run(words[0], release, *words[1:], "--json").output)
    assert answer["measure"] == measure
    assert answer["records"] == 800
    assert {measure, *ROW} <= answer["rows"][0].keys()


def test_conditions_levels_files_and_charts(release, tmp_path, run):
    table, chart = tmp_path / "ages.csv", tmp_path / "ages.svg"
    words = ("--by", "disease@2", "--where", "admission_year>=2020", "--level", "0.9", "--csv", table, "--plot", chart)
    assert "90% intervals" in run("mean", release, "age", *words).output
    assert pl.read_csv(table).columns == ["disease@2", "mean", "std_error", "low", "high", "records"]
    assert b"<svg" in chart.read_bytes()


def test_values_may_be_given(release, run):
    plain = strict(run("mean", release, "admission_year", "--json").output)["rows"][0]["mean"]
    years = strict(run("estimate", release, "--by", "admission_year", "--json").output)["cells"]
    given = [word for row in years for word in ("--value", "admission_year", row["admission_year"], 0)]
    assert plain > 2000
    assert strict(run("mean", release, "admission_year", *given, "--json").output)["rows"][0]["mean"] == 0


def test_regress_prints_a_table(release, tmp_path, run):
    chart = tmp_path / "age.svg"
    result = run("regress", release, "age ~ admission_year", "--plot", chart)
    assert result.output.startswith("age ~ admission_year\ngaussian (identity), scores, 800 records, 95% intervals")
    assert "(constant)" in result.output
    assert b"<svg" in chart.read_bytes()
    answer = strict(run("regress", release, "age ~ admission_year", "--json").output)
    assert [row["term"] for row in answer["coefficients"]] == ["(constant)", "admission_year"]


def test_test_says_what_it_asks(release, run):
    result = run("test", release, "age", "admission_year", "--permutations", "199")
    assert result.output.startswith("trend of age and admission_year: statistic ")
    assert "Null hypothesis: the two columns are uncorrelated." in result.output
    answer = strict(run("test", release, "age", "zip", "--kind", "difference", "--permutations", "99", "--json").output)
    assert (answer["kind"], answer["permutations"]) == ("difference", 99)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mean", "job"), "holds no numbers"),
        (("mean", "wage"), "no column 'wage'"),
        (("regress", "age ~"), "is not a formula"),
        (("regress", "age ~ wage"), "no column 'wage'"),
        (("quantile", "age", "--at", "2"), "not a share"),
        (("test", "age", "wage"), "no column 'wage'"),
    ],
)
def test_wrong_questions_are_exit_code_2(words, told, release, run):
    result = run(words[0], release, *words[1:], code=2)
    assert told in result.output
