"""Plausible tables: possible in every cell, near the truth where a random member is not, pooled by Rubin's rules."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.estimates import pool
from noren.estimates.imputation import Axis
from noren.estimates.mixture import Mixture, run

HIDDEN = ("a", "b")


def people(n: int = 3000, seed: int = 3) -> pl.DataFrame:
    """Two columns that go together, and one that is known."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    a = np.where(rng.random(n) < 0.8, kind, rng.integers(0, 4, n))
    b = np.where(rng.random(n) < 0.8, 2 - kind, rng.integers(0, 5, n))
    return pl.DataFrame(
        {"a": [f"a{v}" for v in a], "b": [f"b{v}" for v in b], "x": kind.astype(np.int64), "id": np.arange(n)}
    )


def released(table: pl.DataFrame, method: str = "decoys") -> nr.Release:
    roles = {"a": "sensitive", "b": "sensitive", "x": "plain", "id": "identifier"}
    diverse = nr.models.FrequencyLDiversity(on=["a", "b"], l=2)
    policy = nr.Policy(attributes=roles, require=[diverse], method=method, dependence={"most": 1.0})
    return nr.anonymize(table, policy)


def l1(table: pl.DataFrame, other: pl.DataFrame) -> float:
    counts = [frame.group_by(HIDDEN).len() for frame in (table, other)]
    both = counts[0].join(counts[1], on=HIDDEN, how="full", coalesce=True).fill_null(0)
    return float((both["len"].cast(pl.Float64) - both["len_right"].cast(pl.Float64)).abs().sum() / table.height)


def test_every_drawn_value_is_possible_and_the_tables_are_near_the_truth():
    table = people()
    release = released(table)
    made = release.impute(m=3, seed=1)
    published = release.frame()
    for one in made:
        for name in HIDDEN:
            inside = pl.DataFrame({"cell": published[name], "value": one[name]})
            assert inside.select(pl.col("cell").list.contains(pl.col("value")).all()).item()
        assert one["x"].equals(published["x"])
    places = np.random.default_rng(2).integers(0, 2, (2, table.height))
    member = published.with_columns(
        pl.col(name).list.get(pl.Series(place)) for name, place in zip(HIDDEN, places, strict=True)
    )
    assert l1(table, made[0]) < 0.3 * l1(table, member)


def test_general_values_are_filled_too():
    roles = {"age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"}
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {"age": rng.integers(20, 60, 300), "town": rng.choice(list("abc"), 300), "ill": rng.choice(list("uvw"), 300)}
    )
    asked = [nr.models.KAnonymity(k=5), nr.models.DistinctLDiversity(on="ill", l=2)]
    release = nr.anonymize(table, nr.Policy(attributes=roles, require=asked, method="mondrian"))
    (one,) = release.impute(m=1, seed=2)
    low, high = release.frame()["age"].str.strip_chars("[]").str.split(", ").list.first().cast(int), one["age"]
    assert (low <= high).all()
    assert one.columns == ["age", "town", "ill"]


def test_what_cannot_be_does_not_happen():
    rule = {"a": "a0", "b": "b4"}
    table = people().filter(~((pl.col("a") == "a0") & (pl.col("b") == "b4")))
    made = released(table).impute(m=2, seed=1, impossible=[rule])
    for one in made:
        assert one.filter((pl.col("a") == "a0") & (pl.col("b") == "b4")).height == 0


def test_the_same_seed_gives_the_same_tables():
    release = released(people(400))
    first, again, other = (release.impute(m=2, seed=seed).frame for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first["table"].unique().sort().to_list() == [1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"m": 0}, "too small"),
        ({"impossible": [{"z": "1"}]}, "no column 'z'"),
        ({"impossible": [{"a": "zz"}]}, "does not have the value"),
        ({"impossible": [{}]}, "has no column"),
    ],
)
def test_bad_questions_are_said(options, said):
    with pytest.raises(QueryError, match=said):
        released(people(100)).impute(**options)


def test_nothing_hidden_is_said():
    release = nr.anonymize(people(50).select("x"), nr.Policy(attributes={"x": "plain"}))
    with pytest.raises(QueryError, match="complete already"):
        release.impute()


def test_a_chain_with_known_classes_has_the_posterior_of_its_counts():
    """One column, cells that tell nothing: the drawn shares are those of the prior; cells that tell all stay."""
    rng = np.random.default_rng(5)
    cell = np.zeros(2000, np.int64)
    blind = Axis("x", 2, cell, np.array([[0, 1]]), np.array([[3.0, 1.0]]))
    known = Axis("y", 2, np.arange(2000) % 2, np.array([[0], [1]]), np.ones((2, 1)))
    mixture = Mixture([blind, known], 2, rng)
    values = run(mixture, 5, 2, 2)
    assert np.array_equal(values[0][1], np.arange(2000) % 2)
    assert set(np.unique(values[0][0])) <= {0, 1}
    assert mixture.shares[1].sum(axis=1) == pytest.approx(1.0)
    assert mixture.weights.sum() == pytest.approx(1.0)


def test_rubins_rules_by_hand():
    estimates, variances = np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]), np.array([[0.5, 1.0]] * 3)
    pooled = pool(zip(estimates, variances, strict=True), names=["slope", "level"])
    assert pooled.estimate.tolist() == [2.0, 5.0]
    assert pooled.std_error**2 == pytest.approx([0.5 + 4 / 3 * 1.0, 1.0])
    assert pooled.missing == pytest.approx([4 / 3 / (0.5 + 4 / 3), 0.0])
    assert pooled.degrees[0] == pytest.approx(2 / pooled.missing[0] ** 2)
    assert pooled.frame["term"].to_list() == ["slope", "level"]
    assert "not for inference" in repr(pooled)
    small = pool(zip(estimates, variances, strict=True), complete=10)
    assert small.degrees[0] < pooled.degrees[0]


@pytest.mark.parametrize(
    ("answers", "said"),
    [([(1.0, 0.1)], "two tables"), ([1.0, 2.0], "not a pair"), ([(1.0, -0.1)] * 2, "do not fit"),
     ([(1.0, 0.1), ([1.0, 2.0], [0.1, 0.1])], "same terms")],
)  # fmt: skip
def test_answers_that_cannot_be_pooled(answers, said):
    with pytest.raises(QueryError, match=said):
        pool(answers)


def test_the_diagnostic_page(tmp_path):
    made = released(people(200)).impute(m=2, seed=1)
    made.save_plot(tmp_path / "page.html")
    assert "not for inference" in (tmp_path / "page.html").read_text()
    assert made.margins.group_by("column").agg(pl.col("imputed").sum())["imputed"].to_list() == pytest.approx(
        [1.0, 1.0]
    )
    assert made.to_dict()["tables"] == 2
