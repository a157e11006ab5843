"""Hierarchies made from data or the calendar: round edges that are nobody's value, open ends, readable labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.policy.hierarchies import RULES, make_hierarchy
from noren.schema.hierarchy import Hierarchy, HierarchyError, quantile_cuts, quantile_edges, roundest, width_edges
from noren.sources.source import open_source

N = 2000


def table() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    born = np.datetime64("1930-01-01") + rng.integers(0, 28000, N)
    return pl.DataFrame(
        {
            "age": rng.integers(0, 95, N),
            "income": rng.lognormal(10, 1, N).round(2),
            "zip": [f"{code:05}" for code in rng.integers(1000, 9999, N)],
            "born": [str(day) for day in born],
            "job": rng.choice([f"job {i}" for i in range(12)], N, p=np.arange(1, 13) / 78),
            "ill": rng.choice(list("abcdef"), N),
        }
    )


@pytest.mark.parametrize(
    ("low", "high", "near", "found"),
    [(4812, 5377, 5100, 5000), (0.113, 0.122, 0.12, 0.12), (-3, 4, 1, 0), (1234, 1236, 1235, 1235), (91, 99, 97, 95)],
)
def test_the_roundest_number(low: float, high: float, near: float, found: float) -> None:
    assert roundest(low, high, near) == pytest.approx(found)


def test_quantiles_of_a_skewed_amount_are_round_and_hold_about_as_many() -> None:
    numbers = np.random.default_rng(1).lognormal(10, 1, N).round(2)
    cuts = quantile_cuts(numbers, np.ones(N, np.int64), 8)
    assert len(cuts) == 7
    assert not set(cuts) & set(numbers.tolist())
    assert all(cut % 500 == 0 for cut in cuts)
    held, _ = np.histogram(numbers, [-np.inf, *cuts, np.inf])
    assert held.min() > 0.5 * N / 8
    assert held.max() < 1.6 * N / 8


def test_coarser_quantiles_are_some_of_the_finer_ones() -> None:
    numbers = np.random.default_rng(2).normal(170, 10, N).round(1)
    fine, middle, coarse = quantile_edges(numbers, np.ones(N, np.int64), (8, 4, 2))
    assert set(coarse) <= set(middle) <= set(fine)
    assert (fine[0], fine[-1]) == (-np.inf, np.inf)


def test_a_value_that_many_share_may_be_an_edge() -> None:
    assert quantile_cuts(np.array([0.0, 3.0, 7.0]), np.array([50, 50, 50]), 4) == [3.0, 7.0]


def test_widths_leave_the_ends_open() -> None:
    ages = np.arange(0, 95, dtype=np.float64)
    fine, coarse, *_ = width_edges(ages, np.ones(95, np.int64))
    assert np.ptp(np.diff(fine[1:-1])) == 0
    assert set(coarse) < set(fine)
    assert (fine[0], fine[-1]) == (-np.inf, np.inf)


@pytest.mark.parametrize(("column", "by"), [("age", "width"), ("income", "quantiles"), ("zip", "prefix"),
                                            ("born", "date"), ("job", "frequency")])  # fmt: skip
def test_the_rule_that_fits_is_found_and_the_file_is_a_hierarchy(column: str, by: str, tmp_path: Path) -> None:
    data = table()
    made, why = make_hierarchy(open_source(data), column)
    assert why.startswith(f"{by}: ")
    (tmp_path / "tree.csv").write_text(made.csv_text(), encoding="utf-8")
    assert Hierarchy.read_csv(tmp_path / "tree.csv") == made
    policy = nr.Policy(
        attributes={column: {"role": "quasi-identifier", "hierarchy": str(tmp_path / "tree.csv")}, "ill": "plain"},
        require=[nr.models.KAnonymity(k=5)],
        method=nr.methods.Mondrian(),
    )
    release = nr.anonymize(data.select(column, "ill"), policy)
    assert all(verdict.holds for verdict in release.verdicts)
    assert nr.verify(release, policy).hold


FITS = {"width": ("age", "income"), "quantiles": ("age", "income"), "date": ("born",)}
"""Columns that a rule can be used on, where it cannot be used on all."""


@pytest.mark.parametrize("by", RULES)
def test_every_rule_works_or_says_what_it_needs(by: str) -> None:
    source = open_source(table())
    for column in FITS.get(by, table().columns):
        made, _ = make_hierarchy(source, column, by)
        assert set(made.levels[-1]) == {"*"}
    for column in set(table().columns) - set(FITS.get(by, table().columns)):
        with pytest.raises(nr.NorenError, match=r"needs (numbers|dates)"):
            make_hierarchy(source, column, by)


def test_edges_are_not_in_the_data_and_the_ends_have_words() -> None:
    made, _ = make_hierarchy(open_source(table()), "income", "quantiles")
    assert made.levels[1][0].startswith("below ")
    assert made.levels[1][-1].endswith(" and above")


@pytest.mark.parametrize("spec", [{"quantiles": [8, 4, 2]}, {"intervals": [[-np.inf, 20, 40, np.inf]]}])
def test_a_policy_names_the_same_rules(spec: dict[str, object]) -> None:
    attributes = {"age": {"role": "quasi-identifier", "hierarchy": spec}, "ill": "sensitive"}
    require = [{"model": "k-anonymity", "k": 5}, {"model": "distinct-l-diversity", "on": "ill", "l": 2}]
    policy = nr.Policy(attributes=attributes, require=require, method={"name": "incognito"})
    assert nr.Policy.parse(policy.to_toml()).attributes == policy.attributes
    data = table().select("age", "ill")
    release = nr.anonymize(data, policy)
    assert nr.verify(release, policy, original=data).hold


def test_rare_values_are_put_together() -> None:
    made = Hierarchy.from_frequency(("a", "b", "c", "(missing)"), np.array([3, 40, 200, 2]), (20, 100))
    assert made.levels[1] == ("fewer than 20 records", "b", "c", "(missing)")
    assert made.levels[2] == ("fewer than 100 records", "fewer than 100 records", "c", "(missing)")
    with pytest.raises(HierarchyError, match="in ascending order"):
        Hierarchy.from_frequency(("a",), np.array([1]), (20, 20))
    with pytest.raises(HierarchyError, match="in descending order"):
        Hierarchy.from_quantiles(("1", "2"), np.array([1, 1]), (2, 4))


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(nr.errors.DataError, match="no column 'agee'") as caught:
        make_hierarchy(open_source(table()), "agee")
    assert "age" in (caught.value.hint or "")
