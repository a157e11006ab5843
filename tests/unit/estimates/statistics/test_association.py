"""Tests of association: their statistic on exact columns, what they find, what they keep their size on."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency

import noren as nr
from noren.errors import QueryError
from tests.unit.estimates.statistics.worlds import drawn, exact, general, people


def test_on_exact_columns_independence_is_pearsons_chi_square() -> None:
    frame, found = people(), exact().test("trade", "sex", permutations=99)
    table = frame.group_by("trade", "sex").len().pivot("sex", index="trade", values="len").drop("trade").to_numpy()
    pearson = chi2_contingency(table, correction=False)
    assert found.statistic == pytest.approx(pearson.statistic * (len(frame) - 1) / len(frame))
    assert found.df == pearson.dof


def test_relations_are_found_and_the_kind_follows_from_the_columns() -> None:
    for one, two, kind in (("trade", "sex", "independence"), ("sex", "pay", "difference"), ("pay", "age", "trend")):
        found = drawn().test(one, two, permutations=199)
        assert (found.kind, found.p_value) == (kind, 1 / 200)
        assert found.reference == "permutation"
    assert drawn().test("pay", "sex").of == ("pay", "sex")


def test_the_p_value_is_uniform_where_nothing_is_related() -> None:
    """Two hundred tests of size 10%: more than 50 rejections happen less than once in ten million."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"a": rng.choice(list("uvwxyz"), 150, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])})
    require = [nr.models.FrequencyLDiversity(on="a", l=3)]
    roles = {"a": "sensitive"} | {f"s{k}": "plain" for k in range(200)}
    frame = frame.with_columns(**{f"s{k}": pl.Series(rng.choice(["F", "M"], 150)) for k in range(200)})
    release = nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))
    values = [release.test("a", f"s{k}", permutations=99, seed=k).p_value for k in range(200)]
    assert sum(value <= 0.1 for value in values) <= 50
    assert sum(value > 0.5 for value in values) >= 50


def test_many_records_are_referred_to_chi_square(monkeypatch: pytest.MonkeyPatch) -> None:
    import noren.estimates.statistics.association as module

    monkeypatch.setattr(module, "WORK", 1.0)
    found = drawn().test("trade", "sex")
    assert (found.reference, found.permutations) == ("chi-square", 0)
    assert found.p_value < 1e-4


def test_a_test_can_be_repeated() -> None:
    first, second = (drawn().test("trade", "age", permutations=199, seed=5) for _ in range(2))
    assert first == second


def test_a_general_column_is_tested_against_one_that_is_not() -> None:
    found = general().test("age", "pay", permutations=199)
    assert found.p_value == 1 / 200
    assert "formed independently" in found.assumes


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(QueryError, match="no test of"):
        drawn().test("pay", "sex", "romance")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="hidden column does not select"):
        drawn().test("pay", "sex", where={"trade": "nurse"})
    with pytest.raises(QueryError, match="same for all"):
        drawn().test("pay", "sex", where={"sex": "F"})
    with pytest.raises(QueryError, match="are too few"):
        drawn().test("pay", "sex", permutations=9)


def test_a_result_says_what_it_is() -> None:
    found = drawn().test("trade", "sex", permutations=99)
    assert str(found).startswith("independence of trade and sex: statistic ")
    assert found.frame.columns == ["kind", "statistic", "df", "p_value", "reference", "records"]
    assert found.to_dict()["permutations"] == 99
    assert repr(found).startswith("<TestResult of independence, trade and sex: p = 0.01")


@pytest.mark.parametrize(("one", "two"), [("gone", "job"), ("job", "gone"), ("odd", "even"), ("gone", "odd")])
def test_columns_that_nobody_has_both_of_are_refused(one: str, two: str) -> None:
    odd = [1, None, 2, None] * 10
    table = pl.DataFrame({"gone": [None] * 40, "odd": odd, "even": [*odd[1:], 1], "job": list("abcd") * 10})
    policy = nr.Policy(
        attributes={"gone": "plain", "odd": "plain", "even": "plain", "job": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on="job", l=2)],
        dependence={"most": 1.0},
    )
    release = nr.anonymize(table, policy)
    with pytest.raises(QueryError, match="no record has a value of both"):
        release.test(one, two)
    with pytest.raises(QueryError, match="against itself"):
        release.test(two, two)
