"""Microaggregation: groups against a slow twin, means that are true, and what the univariate way does not protect."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from noren.engines import Average, Records
from noren.errors import PolicyError, QueryError, ReleaseError, RequirementNotMet
from noren.methods.curve_kernels import best_line_groups
from noren.methods.microaggregation import Microaggregation, mdav, space_of
from noren.models import MODELS
from noren.policy.policy import Policy
from noren.release.manifest import read_column, write_column
from noren.release.release import open_release
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.statements import CodeCells, MeanStatement
from noren.statements.mean import mean_cells
from noren.workflow.anonymize import run
from noren.workflow.verify import verify
from tests.oracles.microaggregation import best_line, embedded
from tests.oracles.microaggregation import mdav as slow_mdav

TOWNS = Hierarchy.from_tree({"N": ["a", "b"], "S": {"K": ["c", "d"], "E": ["e", "f"]}})


def records_of(seed: int, n: int) -> Records:
    rng = np.random.default_rng(seed)
    numbers = np.unique(rng.normal(0, 100, 3 * n).round(6))[rng.permutation(n)]
    column = Column(role=Role.QUASI_IDENTIFIER)
    listed = tuple(repr(float(x)) for x in sorted(numbers))
    codes = {"x": np.argsort(np.argsort(numbers)), "c": rng.integers(0, 3, n), "t": rng.integers(0, 6, n)}
    codes["c"][:3], codes["t"][:6] = np.arange(3), np.arange(6)
    columns = {
        "x": column.over("x", Domain(listed, "number")),
        "c": column.over("c", Domain(("u", "v", "w"))),
        "t": column.over("t", Domain(TOWNS.leaves), hierarchy=TOWNS),
    }
    return Records(n, columns, codes)


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_those_of_the_definition(seed: int) -> None:
    n, k = int(np.random.default_rng(seed).integers(12, 60)), 2 + seed % 4
    table = records_of(seed, n)
    numbers = np.array([float(v) for v in table.columns["x"].domain.values])[table.codes["x"]]
    levels = [np.asarray(TOWNS.groups(h)[1])[table.codes["t"]] for h in range(TOWNS.height)]
    groups, count = mdav(list(space_of(table).values()), [table.codes[name] for name in table.quasi], k)
    found = {frozenset(np.flatnonzero(groups == g).tolist()) for g in range(count)}
    assert found == slow_mdav(embedded([numbers], [table.codes["c"]], [levels]), k)
    assert all(k <= len(group) < 2 * k for group in found)


def test_records_in_one_place_still_make_groups_of_k() -> None:
    table = records_of(1, 23)
    groups, count = mdav(list(space_of(table).values()), [np.zeros(23, np.int64)] * 3, 3)
    assert count == 7
    assert sorted(np.bincount(groups)) == [3, 3, 3, 3, 3, 3, 5]


@pytest.mark.parametrize("seed", range(20))
def test_one_column_is_cut_with_the_least_sum_of_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.choice(40, int(rng.integers(1, 14))).astype(float))
    k = int(rng.integers(1, 5))
    groups, count = best_line_groups(numbers, k)
    sizes = np.bincount(groups, minlength=count)
    assert sizes.min() >= min(k, len(numbers))
    inside = sum(float(((numbers[groups == g] - numbers[groups == g].mean()) ** 2).sum()) for g in range(count))
    least = best_line(numbers.tolist(), k) if len(numbers) >= k else inside
    assert inside == pytest.approx(least, abs=1e-9)


def test_the_worked_example_of_the_docs() -> None:
    ages = np.array([20.0, 22, 23, 40, 41, 45, 70])
    groups, count = best_line_groups(ages, 3)
    found = sorted((float(ages[groups == g].mean()), int((groups == g).sum())) for g in range(count))
    assert found == [(pytest.approx(65 / 3), 3), (49.0, 4)]
    assert best_line(ages.tolist(), 3) == pytest.approx(606.67, abs=0.01)


def table(n: int = 500) -> pl.DataFrame:
    rng = np.random.default_rng(11)
    age = rng.integers(18, 90, n)
    return pl.DataFrame(
        {
            "age": age,
            "pay": np.where(rng.random(n) < 0.05, np.nan, (age * 100 + rng.normal(0, 500, n)).round(2)),
            "born": pl.Series(np.datetime64("1950-01-01") + (90 - age) * 365).cast(pl.Date),
            "job": rng.choice(list("ABCD"), n),
            "disease": rng.choice(["flu", "cold", "hiv"], n, p=[0.4, 0.35, 0.25]),
        }
    ).with_columns(pay=pl.col("pay").fill_nan(None))


ROLES = {"age": "quasi-identifier", "pay": "quasi-identifier", "born": "quasi-identifier", "job": "quasi-identifier",
         "disease": "sensitive"}  # fmt: skip
ASKED = [{"model": "k-anonymity", "k": 4}, {"model": "frequency-l-diversity", "on": "disease", "l": 2}]


def policy(roles=ROLES, require=ASKED, **options) -> Policy:
    return Policy(attributes=roles, require=require, method={"name": "microaggregation", **options})


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_release_of_means_holds_and_its_means_are_true(file_format, tmp_path) -> None:
    data, asked = table(), policy()
    run(data, asked, to=tmp_path / "r", file_format=file_format)
    release = open_release(tmp_path / "r")
    assert all(verdict.holds for verdict in verify(release, asked, original=data))
    assert "means-are-true" in [verdict.model for verdict in verify(release, asked, original=data)]
    other = data.with_columns(age=pl.col("age") + 1)
    assert "means-are-true" in [v.model for v in verify(release, asked, original=other) if not v.holds]
    frame = release.frame()
    classes = frame.group_by(["age", "pay", "born", "job"]).agg(pl.len(), top=pl.col("disease").mode().first())
    assert classes["len"].min() >= 4
    assert frame["age"].mean() == pytest.approx(data["age"].mean(), abs=0.01)
    assert isinstance(release.column("age"), MeanStatement)
    assert float(release.count({"disease": "flu"})) == (data["disease"] == "flu").sum()
    with pytest.raises(QueryError, match="class means"):
        release.estimate(["age"])


def test_no_exact_number_is_listed(tmp_path) -> None:
    data = table().with_columns(pay=pl.when(pl.int_range(pl.len()) == 7).then(987654.25).otherwise(pl.col("pay")))
    run(data, policy(), to=tmp_path / "r", file_format="csv")
    for file in (tmp_path / "r").iterdir():
        assert b"987654" not in file.read_bytes()


def test_large_tables_are_grouped_in_blocks() -> None:
    outcome = run(table(700), policy(block=100))
    assert outcome.facts.losses["smallest_class"] >= 4


def test_one_column_at_a_time_protects_that_column_and_raises_for_all_together() -> None:
    roles = {**ROLES, "disease": "plain"}
    alone = [{"model": "k-anonymity", "k": 4, "on": "age"}, {"model": "k-anonymity", "k": 4, "on": "pay"}]
    release = run(table(), policy(roles, alone, each=True)).release
    assert all(verdict.holds for verdict in release.verdicts)
    frame = release.frame()
    assert frame["age"].value_counts()["count"].min() >= 4
    assert frame.group_by(["age", "pay"]).len()["len"].min() == 1
    with pytest.raises(RequirementNotMet, match="k-anonymity"):
        run(table(), policy(roles, [{"model": "k-anonymity", "k": 4}], each=True))


def test_what_it_cannot_do_is_said_before_any_data() -> None:
    with pytest.raises(PolicyError, match="needs k"):
        policy(require=ASKED[1:])
    with pytest.raises(PolicyError, match="suppresses no records"):
        policy(suppression=0.1)
    with pytest.raises(RequirementNotMet):
        run(table().with_columns(disease=pl.lit("flu")), policy())


# ---------------------------------------------------------------------- the form of cell


COLUMN = Column(role=Role.QUASI_IDENTIFIER).over("x", None)


def test_means_are_rounded_by_reach_and_checked_against_the_truth() -> None:
    numbers = np.array([1.0, 2.0, 4.0, np.nan, np.nan, 100.0, 101.0])
    classes = np.array([0, 0, 0, 0, 1, 2, 2])
    statement, cells = mean_cells(COLUMN, numbers, classes, np.ones(7, bool))
    assert statement.means == (2.3, 100.5, None)
    assert statement.decimals == 1
    assert statement.holds_truth(cells, numbers)
    assert statement.covers(cells, numbers).all()
    assert statement.likelihood(cells) is None
    wrong = numbers.copy()
    wrong[0] += 1
    assert not statement.holds_truth(cells, wrong)
    wrong = numbers.copy()
    wrong[4] = 7.0
    assert not statement.holds_truth(cells, wrong)


def test_people_who_are_left_out_take_no_part_in_a_mean() -> None:
    keep = np.array([True, True, False])
    statement, _ = mean_cells(COLUMN, np.array([1.0, 3.0, 1000.0]), np.zeros(3, np.int64), keep)
    assert statement.means == (2.0,)


def test_a_mean_survives_the_manifest_and_strange_ones_are_refused() -> None:
    statement = MeanStatement(COLUMN, (1.5, 2.25, None), 2)
    block = json.loads(json.dumps(write_column(statement)))
    again = read_column(block)
    assert isinstance(again, MeanStatement)
    assert again.means == statement.means
    cells = CodeCells(3, np.array([2, 0, 1]))
    assert again.from_arrow(statement.to_arrow(cells)).data.tolist() == [2, 0, 1]
    for broken in ({"means": [1.0, 1.0]}, {"decimals": -1}, {"values": ["1"]}, {"means": [float("nan")]}):
        with pytest.raises(ValueError):
            read_column(block | broken)
    with pytest.raises(ReleaseError):
        again.from_arrow(MeanStatement(COLUMN, (9.0,)).to_arrow(CodeCells(1, np.array([0]))))


def test_a_plan_averages_numbers_and_covers_the_rest() -> None:
    plan = Microaggregation().recode(records_of(3, 40), [MODELS["k-anonymity"](k=4)], np.arange)
    assert isinstance(plan.of("x"), Average)
    assert set(plan.recoded) == {"c", "t"}
