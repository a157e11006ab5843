"""Means standardised over a column, and tests within its groups."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError

FAR = 6.5


@cache
def patients(n: int = 6_000) -> pl.DataFrame:
    """Illness depends on age alone, and one town is older."""
    rng = np.random.default_rng(5)
    age = rng.integers(0, 5, n)
    town = np.where(rng.random(n) < 0.2 + 0.12 * age, "Ulm", "Bonn")
    return pl.DataFrame({"age": age, "town": town, "ill": (rng.random(n) < 0.1 + 0.12 * age).astype(int)})


@cache
def release(*hidden: str) -> nr.Release:
    roles = {name: "sensitive" if name in hidden else "plain" for name in ("age", "town", "ill")}
    require = [nr.models.FrequencyLDiversity(on=list(hidden), l=2)] if hidden else []
    return nr.anonymize(patients(), nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))


def rates(weights: np.ndarray) -> dict[str, float]:
    rows = patients().group_by("town", "age").agg(pl.col("ill").mean()).iter_rows()
    out = dict.fromkeys(("Bonn", "Ulm"), 0.0)
    for town, age, ill in rows:
        out[town] += weights[age] / weights.sum() * ill
    return out


@pytest.mark.parametrize("standard", [None, {0: 3, 1: 1}])
def test_standardised_rates_of_exact_columns_are_weighted_means_of_rates(standard: dict[int, float] | None) -> None:
    weights = np.bincount(patients()["age"]).astype(float) if standard is None else np.array([3.0, 1, 0, 0, 0])
    found = release().standardize("ill", by="town", over="age", standard=standard)
    for row in found:
        assert row["mean"] == pytest.approx(rates(weights)[row["town"]])
        assert row["std_error"] == pytest.approx(0, abs=1e-9)
    assert found.notes == ("Standardised over age.",)


def test_a_hidden_column_to_standardise_over_is_corrected_for() -> None:
    truth = rates(np.bincount(patients()["age"]).astype(float))
    for row in release("age").standardize("ill", by="town", over="age"):
        assert abs(row["mean"] - truth[row["town"]]) < FAR * row["std_error"]
        assert 0 < row["std_error"] < 0.05


def test_a_standard_names_labels_of_its_column() -> None:
    with pytest.raises(QueryError, match="no label '9'"):
        release().standardize("ill", by="town", over="age", standard={9: 1})
    with pytest.raises(QueryError, match="below 0"):
        release().standardize("ill", by="town", over="age", standard={1: -1})


@pytest.mark.parametrize("hidden", [(), ("age",)])
def test_what_a_third_column_explains_is_no_relation_within_its_groups(hidden: tuple[str, ...]) -> None:
    opened = release(*hidden)
    assert opened.test("town", "ill").p_value < 0.001
    found = opened.test("town", "ill", within="age")
    assert found.statistic < 40  # of a chi-square with 1 degree of freedom: once in a thousand million draws
    assert (found.df, found.reference) == (1, "chi-square")
    assert "in every group of 'age'" in found.notes[0]


def test_within_exact_groups_the_statistic_is_that_of_cochran_mantel_and_haenszel() -> None:
    table = patients()
    top = spread = 0.0
    for _, part in table.group_by("age"):
        a, b = (part["town"] == "Ulm").to_numpy(), part["ill"].to_numpy()
        top += float(((a - a.mean()) * (b - b.mean())).sum())
        spread += float((((a - a.mean()) * (b - b.mean())) ** 2).sum())
    assert release().test("town", "ill", within="age").statistic == pytest.approx(top**2 / spread)


def test_a_relation_within_groups_is_found() -> None:
    assert release("age").test("age", "ill", within="town").p_value < 1e-6
    with pytest.raises(QueryError, match="three different columns"):
        release().test("age", "ill", within="ill")
