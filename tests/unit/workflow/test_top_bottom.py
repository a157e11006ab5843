"""Top and bottom coding: numbers beyond an end are one value, the others stay as they are, under every method."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from noren.errors import PolicyError
from noren.policy.policy import Policy
from noren.release.release import open_release
from noren.workflow.anonymize import run
from noren.workflow.prepare import prepare
from noren.workflow.verify import verify

CODED = {"role": "quasi-identifier", "top": 60, "bottom": 25}


def table(n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 95, n),
            "pay": np.round(rng.gamma(2, 30, n), 1),
            "sex": rng.choice(["f", "m"], n),
            "disease": rng.choice(["flu", "cold", "hiv"], n),
        }
    )


def policy(method: str = "decoys", **columns) -> Policy:
    attributes = {"age": CODED, "pay": {"role": "plain", "top": 100}, "sex": "quasi-identifier", "disease": "sensitive"}
    return Policy(
        mechanism="ignored",
        attributes=attributes | columns,
        require=[{"model": "frequency-l-diversity", "on": "disease", "l": 2}],
        method={"name": method},
    )


def test_the_domain_is_numbers_between_two_open_ends() -> None:
    domain = prepare(table(), policy("mondrian")).columns["age"].domain
    assert domain.values == ("below 25", *map(str, range(25, 60)), "60 and above")
    assert domain.is_ranked
    assert domain.numbers is not None
    assert domain.numbers[[0, 1, -2, -1]].tolist() == [25, 25, 59, 60]


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("method", ["decoys", "mondrian", "anatomy", "local-suppression", "incognito"])
def test_no_number_beyond_an_end_is_published_under_any_method(method: str, file_format, tmp_path) -> None:
    data, asked = table(), policy(method)
    run(data, asked, to=tmp_path / "r", file_format=file_format)
    release = open_release(tmp_path / "r")
    assert all(verdict.holds for verdict in verify(release, asked, original=data))
    seen = release.column("pay").domain.values
    assert seen[-1] == "100 and above"
    assert all(float(value) < 100 for value in seen[:-1])
    exact = release.estimate(["pay"]).frame
    above = float(exact.filter(pl.col("pay") == "100 and above")["count"][0])
    assert above == (data["pay"] >= 100).sum()
    low = float(release.count({"pay": [value for value in seen if value != "100 and above"]}))
    assert low == (data["pay"] < 100).sum()


def test_nothing_of_the_tail_is_in_the_files(tmp_path) -> None:
    data = table().with_columns(pay=pl.when(pl.int_range(pl.len()) == 7).then(987654.5).otherwise(pl.col("pay")))
    run(data, policy(), to=tmp_path / "r", file_format="csv")
    for file in (tmp_path / "r").iterdir():
        assert b"987654" not in file.read_bytes()


def test_what_the_ends_do_not_fit_is_refused() -> None:
    for column in ({"top": 5, "bottom": 5}, {"top": 5, "values": ["1", "2"]}, {"top": 5, "bins": [0, 10]},
                   {"top": 5, "kind": "date"}):  # fmt: skip
        with pytest.raises(PolicyError):
            policy(age={"role": "quasi-identifier", **column})
    with pytest.raises(PolicyError, match="numbers"):
        prepare(table(), policy(sex={"role": "plain", "top": 3}))


def test_more_values_than_are_listed_cannot_be_coded() -> None:
    many = pl.DataFrame({"x": np.arange(100_002) / 7, "s": ["a", "b"] * 50_001})
    asked = Policy(mechanism="ignored", attributes={"x": {"role": "plain", "top": 9000}, "s": "plain"})
    with pytest.raises(PolicyError, match="too many for top and bottom"):
        prepare(many, asked)


@pytest.mark.parametrize("method", ["mondrian", "microaggregation"])
def test_open_bins_of_a_rule_survive_classes_and_files(method: str, tmp_path) -> None:
    asked = Policy(
        attributes={"age": {"role": "quasi-identifier", "bins": "width:10", "top": 60, "bottom": 30},
                    "pay": {"role": "quasi-identifier", "top": 100}, "sex": "quasi-identifier", "disease": "plain"},
        require=[{"model": "k-anonymity", "k": 30}],
        method={"name": method},
    )  # fmt: skip
    run(table(), asked, to=tmp_path / "r")
    release = open_release(tmp_path / "r")
    assert all(verdict.holds for verdict in verify(release, asked, original=table()))
    assert release.column("age").domain.edges == (float("-inf"), 30, 40, 50, 60, float("inf"))
