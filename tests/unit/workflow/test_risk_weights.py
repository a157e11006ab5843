"""Weights in `risk`: who is unique in the population by them, and whom the weight itself finds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import DataError, PolicyError
from noren.metrics.population import expected_inverse

TABLE = pl.DataFrame(
    {
        "town": ["Ulm", "Ulm", "Ulm", "Bonn", "Bonn", "Kiel"],
        "age": [30, 30, 40, 30, 30, 50],
        "wt": [10.0, 10.0, 20.0, 4.0, 5.0, 2.0],
    }
)


def test_a_unique_record_is_unique_in_the_population_by_one_over_its_weight() -> None:
    found = nr.risk(TABLE, quasi=["town", "age"], weight="wt")
    (by,) = found.population
    assert by.way == "weights"
    assert by.population == 51
    assert by.uniques == pytest.approx(1 / 20 + 1 / 2)
    assert by.share == pytest.approx((1 / 20 + 1 / 2) / 51)
    both = nr.risk(TABLE, quasi=["town", "age"], weight="wt", fraction=0.1).population
    assert [one.way for one in both][-1] == "weights"
    assert len(both) == 2


def test_the_weight_counts_as_something_that_finds_people() -> None:
    told = nr.risk(TABLE, quasi=["town", "age"], weight="wt").weights
    assert told is not None
    assert (told.distinct, told.alone, told.uniques_without, told.uniques_with) == (5, 4, 2, 4)
    w = TABLE["wt"].to_numpy()
    assert told.design_effect == pytest.approx(6 * np.square(w).sum() / w.sum() ** 2)


def test_households_go_by_the_chance_that_weights_give() -> None:
    table = TABLE.with_columns(home=pl.Series(["a", "a", "b", "c", "d", "e"]))
    roles = {"town": "quasi-identifier", "age": "quasi-identifier", "home": "identifier"}
    rules = nr.Policy(
        attributes=roles | {"wt": nr.plain(weight=True)},
        people={"household": "home"},
        require=[nr.models.KAnonymity(k=2)],
        method=nr.methods.Mondrian(),
    )
    found = nr.risk(table, rules)
    assert found.household is not None
    assert found.weights is not None
    chance = [expected_inverse(np.array([f]), f / total)[0] for f, total in ((2, 20), (1, 20), (2, 9), (1, 2))]
    people = [chance[0], chance[0], chance[1], chance[2], chance[2], chance[3]]
    assert found.household.mean_person == pytest.approx(np.mean(people), rel=0.02)  # the grid rounds chances up


def test_no_weight_is_named_without_its_cell() -> None:
    with pytest.raises(DataError, match="1 records have no weight 'wt' above 0"):
        nr.risk(TABLE.with_columns(wt=pl.Series([1.0, 2, 3, 4, 5, -6])), quasi=["town"], weight="wt")
    with pytest.raises(DataError, match="2 records have no weight 'wt' above 0"):
        nr.risk(TABLE.with_columns(wt=pl.Series([1.0, 0.5, 0.0, 4, 5, None])), quasi=["town"], weight="wt")
    with pytest.raises(DataError, match="1 records have no weight 'wt' above 0"):
        nr.risk(TABLE.with_columns(wt=pl.Series([1.0, 0.5, 0.0, 4, 5, 6])), quasi=["town"], weight="wt")
    assert nr.risk(TABLE.with_columns(wt=pl.Series([1.0, 0.5, 0.1, 4, 5, 6])), quasi=["town"], weight="wt")
    with pytest.raises(DataError, match="6 records have no weight"):
        nr.risk(TABLE.with_columns(wt=pl.Series(list("abcdef"))), quasi=["town"], weight="wt")


def test_weights_that_tell_a_secret_are_refused_like_any_column() -> None:
    rng = np.random.default_rng(4)
    ill = rng.integers(0, 6, 2_000)
    frame = pl.DataFrame({"ill": ill.astype(str), "wt": 1.0 + ill})
    rules = {"attributes": {"ill": "sensitive", "wt": nr.plain(weight=True)}}
    require = [nr.models.FrequencyLDiversity(on="ill", l=2)]
    with pytest.raises(PolicyError, match="'wt'"):
        nr.anonymize(frame, nr.Policy(**rules, require=require))
