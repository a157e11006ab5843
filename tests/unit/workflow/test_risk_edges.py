"""The raw table's risk at the ends of its ranges: limits, shares, fractions, weights of people, what is listed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.audit.risk import Risk, _looks, weight_risk
from noren.audit.risk.raw import Combination, RawColumn, RawTable, class_sizes, dis_scores, lonely
from noren.errors import DataError, QueryError
from noren.metrics.population import expected_inverse
from tests.unit.workflow.test_risk import QUASI, SURVEY


def rules(people: dict[str, str] | None = None, require: list[Any] | None = None, **roles: Any) -> nr.Policy:
    asked = [nr.models.KAnonymity(k=2)] if require is None else require
    return nr.Policy(attributes=roles, require=asked, method="mondrian", people=people or {})


# ---------------------------------------------------------------- what is asked


@pytest.mark.parametrize("fraction", [-0.5, 1.01, 1.5, 2.0])
def test_no_share_of_a_population_is_refused(fraction: float) -> None:
    with pytest.raises(QueryError, match="is not a share between 0 and 1"):
        nr.risk(SURVEY, quasi=QUASI, fraction=fraction)


def test_three_fractions_are_tried_where_none_is_given_and_else_that_one() -> None:
    found = nr.risk(SURVEY, quasi=QUASI)
    assert [one.fraction for one in found.population] == [0.01, 0.1, 0.5]
    assert [one.fraction for one in nr.risk(SURVEY, quasi=QUASI, fraction=0.25).population] == [0.25]
    assert found.notes == [], "nothing was cut, nothing is missing"


def test_scores_of_matches_go_by_the_fraction_that_is_given() -> None:
    """Two people alone with one score, two alike: mean chance 2 f / (2 f + 2 (1 - f)) = f."""
    table = pl.DataFrame({"a": ["x", "y", "z", "z"]})
    assert nr.risk(table, quasi=["a"], fraction=0.25).special.dis_highest == pytest.approx(0.25)
    assert nr.risk(table, quasi=["a"]).special.dis_highest == pytest.approx(0.01)


def test_matches_are_sure_where_everybody_is_alone_and_impossible_where_nobody_is() -> None:
    assert dis_scores(np.array([3.0, 3.0]), np.array([1, 1]), 8, 0.5).tolist() == [1, 1]
    assert dis_scores(np.array([3.0, 3.0]), np.array([2]), 8, 0.5).tolist() == [0, 0]


def test_the_roles_of_a_policy_say_who_is_found_and_what_is_secret() -> None:
    roles = {"region": "plain", "sex": "quasi-identifier", "age": "sensitive-quasi-identifier", "job": "sensitive"}
    policy = nr.Policy(attributes=roles, require=[nr.models.FrequencyLDiversity(on=["age", "job"], l=2)])
    found = nr.risk(SURVEY, policy)
    assert (found.quasi, found.sensitive) == (("sex", "age"), ("age", "job"))
    named = nr.risk(SURVEY, policy, quasi=["job"], sensitive=["region"])
    assert (named.quasi, named.sensitive) == (("job",), ("region",))
    assert nr.risk(SURVEY, quasi=["sex"]).sensitive == ()


def test_without_requirements_nothing_is_broken() -> None:
    rows = pl.DataFrame({"pid": [1, 1, 2], "sex": ["f", "f", "m"]})
    found = nr.risk(rows, rules({"key": "pid"}, [], pid="identifier", sex="quasi-identifier"))
    assert (list(found.verdicts), dict(found.skipped), found.notes) == ([], {}, [])
    assert (found.rows, found.people) == (3, 2)


def test_four_columns_at_once_unless_more_are_asked_for() -> None:
    table = pl.DataFrame({f"c{i}": [0, 1] for i in range(6)})
    assert nr.risk(table, quasi=table.columns).special.size == 4
    assert nr.risk(table, quasi=table.columns, size=6).special.size == 6


def test_rows_are_numbered_from_one_on_and_a_score_of_one_counts() -> None:
    """Of two columns, nobody is alone with one, and two with both: scores of 1, in rows 2 and 3."""
    found = nr.risk(pl.DataFrame({"a": list("xxyyxy"), "b": list("uvuvuv")}), quasi=["a", "b"])
    assert found.records["row"].to_list() == [1, 2, 3, 4, 5, 6]
    assert found.records["suda"].to_list() == [0, 1, 1, 0, 0, 0]
    assert (found.special.rows, found.special.mean, found.special.highest) == (2, 1, 1)
    assert "household_risk" not in found.records.columns


# ---------------------------------------------------------------- how many look alike, households


def sized(*sizes: int) -> list[int]:
    """Values of which each occurs so often."""
    return [value for value, size in enumerate(sizes) for _ in range(size)]


def test_households_are_counted_below_two_three_five_and_ten() -> None:
    """Everybody a household of their own, in groups of 1, 2, 3, 4, 5, 9 and 10 people who look alike."""
    kind = sized(1, 2, 3, 4, 5, 9, 10)
    table = pl.DataFrame({"home": range(len(kind)), "kind": [f"k{x}" for x in kind]})
    found = nr.risk(table, rules({"household": "home"}, home="identifier", kind="quasi-identifier")).household
    assert found is not None
    assert found.below == ((2, 1), (3, 3), (5, 10), (10, 24))
    assert (found.households, found.alone) == (34, 1)


def test_people_are_counted_once_by_the_smallest_group_they_are_in() -> None:
    """Person 1 is alone in two rows, person 2 shares one and is alone in another, person 3 shares one."""
    table = pl.DataFrame({"pid": [1, 1, 2, 2, 3], "kind": list("abcdc")})
    found = nr.risk(table, rules({"key": "pid"}, pid="identifier", kind="quasi-identifier"))
    assert (found.people, found.uniques, found.smallest) == (3, 2, 1)
    assert found.mean_risk == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert [one.people for one in found.looks[:3]] == [2, 1, 0]


def test_people_by_how_many_look_like_them_in_words() -> None:
    looks = _looks(np.array([1, 60]))
    assert [one.words for one in looks] == ["1", "2", "3 to 4", "5 to 9", "10 to 19", "20 to 49", "50 or more"]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_fraction_comes_before_weights_and_both_before_the_table_itself(weighted: bool) -> None:
    """Households of one: two people who look alike, and one who is alone."""
    table = pl.DataFrame({"home": [1, 2, 3], "kind": ["a", "a", "b"], "wt": [4.0, 4.0, 10.0]})
    roles: dict[str, Any] = {"home": "identifier", "kind": "quasi-identifier"}
    policy = rules({"household": "home"}, **roles | {"wt": nr.plain(weight=True) if weighted else "plain"})

    def chances(**more: Any) -> Any:
        return pytest.approx(nr.risk(table, policy, **more).records["household_risk"].to_list(), rel=0.02)

    half = expected_inverse(np.array([2, 2, 1]), 0.5).tolist()
    by_weight = [*expected_inverse(np.array([2, 2]), 2 / 8), *expected_inverse(np.array([1]), 1 / 10)]
    assert chances() == (by_weight if weighted else [0.5, 0.5, 1])
    assert chances(fraction=0.5) == half
    assert chances(weight="wt") == by_weight
    assert chances(weight="wt", fraction=0.5) == half


# ---------------------------------------------------------------- weights


def weighed(codes: list[int], weights: list[float], people: list[int] | None = None) -> Any:
    kind = RawColumn("kind", np.array(codes), max(codes) + 1, 0, "string")
    numbers, code = np.unique(weights, return_inverse=True)
    column = RawColumn("wt", code, len(numbers), 0, "number", np.array(weights))
    table = RawTable("t", len(codes), (kind,), None if people is None else np.array(people))
    return weight_risk(table, column, *class_sizes(table, [0]))


def test_a_class_that_stands_for_itself_alone_is_all_of_its_kind() -> None:
    """Weights of 1: two people are two of two, whatever others stand for."""
    found = weighed([0, 0, 1, 2], [1.0, 1.0, 100.0, 100.0])
    assert found.chance[:2].tolist() == [0.5, 0.5]
    assert found.chance[2] == pytest.approx(expected_inverse(np.array([1]), 0.01)[0], rel=0.02)
    assert found.population.uniques == pytest.approx(2 / 100)
    assert (found.told.uniques_without, found.told.uniques_with) == (2, 2)


def test_the_weight_of_a_person_counts_once_however_many_rows_there_are() -> None:
    """Persons 0 and 1 look alike and stand for 4 and 6; person 2 is alone and stands for 5, of 15 people in all."""
    found = weighed([0, 0, 0, 1], [4.0, 4.0, 6.0, 5.0], [0, 0, 1, 2])
    assert (found.population.population, found.population.fraction) == (15, 3 / 15)
    assert found.population.uniques == pytest.approx(1 / 5)
    assert found.told.design_effect == pytest.approx(3 * (16 + 36 + 25) / 15**2)
    assert (found.told.alone, found.told.uniques_without, found.told.uniques_with) == (3, 1, 3)
    assert found.chance[:3] == pytest.approx(expected_inverse(np.array([2] * 3), 2 / 10), rel=0.02)


def test_a_person_is_as_easily_found_as_in_the_worst_of_the_rows() -> None:
    """Person 1 has a row that is shared and one alone: the household goes by the second."""
    table = pl.DataFrame({"pid": [1, 1, 2], "home": [1, 1, 2], "kind": ["b", "a", "b"], "wt": [2.0, 2.0, 2.0]})
    roles: dict[str, Any] = {"pid": "identifier", "home": "identifier", "kind": "quasi-identifier"}
    roles["wt"] = nr.plain(weight=True)
    found = nr.risk(table, rules({"key": "pid", "household": "home"}, **roles))
    alone, shared = expected_inverse(np.array([1, 2]), 0.5).tolist()
    assert alone > shared
    assert found.records["household_risk"].to_list() == pytest.approx([alone, alone, shared], rel=0.02)


# ---------------------------------------------------------------- nearness, raw columns


def line(*values: float, people: list[int]) -> list[bool]:
    numbers, codes = np.unique(values, return_inverse=True)
    column = RawColumn("x", codes, len(numbers), 0, "number", np.array(values))
    return lonely(RawTable("t", len(values), (column,), np.array(people)), [0], 0.01).tolist()


def test_somebody_else_is_near_even_where_the_own_row_stands_there_first() -> None:
    """Person 0 is at 10 and, together with person 1, at 11; person 2 is far away."""
    assert line(11, 10, 11, 1000, people=[0, 0, 1, 2]) == [False, False, False, True]
    assert line(11, 10, 11.5, 1000, people=[0, 0, 0, 2]) == [True, True, True, True]


def test_a_column_of_one_value_says_nothing_of_who_is_near() -> None:
    table = pl.DataFrame({"x": [0.5, 1.5, 300.5], "same": [7.5] * 3, "y": [0.5, 0.5, 0.5]})
    found = {one.columns: one.alone for one in nr.risk(table, quasi=["x", "same", "y"], within=0.1).near}
    assert found == {
        ("x",): 1, ("same",): 0, ("y",): 0, ("x", "same"): 1, ("x", "y"): 1, ("same", "y"): 0, ("x", "same", "y"): 1,
    }  # fmt: skip


def test_days_stand_on_a_line() -> None:
    days = ["2020-01-01", "2020-01-02", "2021-01-01", None]
    found = nr.risk(pl.DataFrame({"day": days}).with_columns(pl.col("day").str.to_date()), quasi=["day"], within=0.05)
    assert [(one.columns, one.alone) for one in found.near] == [(("day",), 1)]


def test_texts_that_nobody_has_make_no_value() -> None:
    """A dictionary may list more than the rows hold: numbers stay numbers beside a text that is not there."""
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, 2]), pa.array(["1", "1.0", "2", "unknown"]))
    found = nr.risk(pa.table({"x": codes}), quasi=["x"])
    assert (found.columns[0].distinct, found.uniques, found.smallest) == (2, 1, 1)


def test_a_person_without_a_key_is_nobody() -> None:
    rows = pl.DataFrame({"pid": ["a", None, "b"], "sex": ["f", "f", "m"]})
    with pytest.raises(DataError, match="the key of a person is missing in some records"):
        nr.risk(rows, rules({"key": "pid"}, pid="identifier", sex="quasi-identifier"))


def test_a_table_of_nobody_is_refused() -> None:
    with pytest.raises(DataError, match="it has a header but no rows"):
        nr.risk(pl.DataFrame({"x": pl.Series([], dtype=pl.Int64)}), quasi=["x"])


# ---------------------------------------------------------------- what is shown


@pytest.fixture(scope="module")
def survey() -> Risk:
    return nr.risk(SURVEY, quasi=QUASI)


def test_one_person_who_is_alone_is_everybody(survey: Risk) -> None:
    assert nr.risk(SURVEY[:1], quasi=QUASI).unique_share == 1.0
    assert replace(survey, people=0, uniques=0).unique_share == 0.0


def test_combinations_that_find_few_more_than_a_part_of_them_are_not_listed(survey: Risk) -> None:
    """Of 100 people more than one must be alone with another column."""

    def one(alone: int, *columns: str) -> Combination:
        return Combination(columns, alone, alone / 100, 0)

    some = (one(1, "a"), one(2, "b"), one(3, "a", "b"), one(4, "b", "d"), one(30, "c"), one(31, "a", "c"))
    found = replace(survey, people=100, combinations=some)
    assert {kept.columns for kept in found.top()} == {("c",), ("b", "d"), ("b",)}
    assert [kept.columns for kept in found.top(1)] == [("c",)]


def test_plain_data_has_households_and_weights_where_there_are_some(survey: Risk) -> None:
    assert (survey.to_dict()["household"], survey.to_dict()["weights"]) == (None, None)
    table = pl.DataFrame({"home": [1, 1, 2], "kind": ["a", "a", "b"], "wt": [4.0, 4.0, 10.0]})
    policy = rules({"household": "home"}, home="identifier", kind="quasi-identifier", wt=nr.plain(weight=True))
    told = nr.risk(table, policy).to_dict()
    assert (told["household"]["households"], told["weights"]["column"]) == (2, "wt")


def test_bars_begin_at_nothing_and_their_names_stand_upright(survey: Risk) -> None:
    alike, telling = survey.chart().to_dict()["vconcat"]
    assert telling["encoding"]["x"]["scale"]["domainMin"] == 0
    assert alike["encoding"]["x"]["axis"]["labelAngle"] == 0
