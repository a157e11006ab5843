"""Columns that disclose each other: constructed tables whose answer is known, and what is refused."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.workflow import dependence
from noren.workflow.dependence import Told, told
from noren.workflow.prepare import prepare
from noren.workflow.settling import decide_plan, draft_plan

D, L, N = 40, 3, 6000
RNG = np.random.default_rng(11)
CODE = RNG.integers(0, D, N)
TABLE = pl.DataFrame(
    {
        "a": [f"a{x:02}" for x in CODE],
        "same": [f"b{x * 7 % D:02}" for x in CODE],
        "pairs": [f"c{x // 2:02}" for x in CODE],
        "half": [f"h{x:02}" if i % 2 else "unknown" for i, x in enumerate(CODE)],
        "other": [f"o{x}" for x in RNG.integers(0, 12, N)],
    }
)


def measured(table: pl.DataFrame, protected: list[str], **more: Any) -> dict[tuple[str, str], Told]:
    """What every column tells about every protected one."""
    policy = nr.Policy(
        attributes={
            name: "identifier" if name == "who" else "sensitive" if name in protected else "plain"
            for name in table.columns
        },
        require=[nr.models.FrequencyLDiversity(on=protected, l=L)],
        **more,
    )
    found = prepare(table, policy)
    return {(one.protected, one.by): one for one in told(draft_plan(found, decide_plan(found, policy), policy))}


def near(share: float, n: int = N) -> Any:
    """Within six standard deviations of a share of n people."""
    return pytest.approx(share, abs=6 * np.sqrt(share * (1 - share) / n) + 2 / n)


def test_an_exact_copy_tells_everybody() -> None:
    found = measured(TABLE.select("a", "same"), ["a"])
    assert found["a", "same"].share == 1.0
    assert found["a", "same"].alone == 0.0


def test_two_sets_of_one_secret_tell_where_their_decoys_do_not_meet() -> None:
    found = measured(TABLE.select("a", "same"), ["a", "same"])
    apart = comb(D - L, L - 1) / comb(D - 1, L - 1)
    assert found["a", "same"].share == near(apart)
    assert found["same", "a"].share == near(apart)


def test_a_group_tells_where_no_decoy_is_in_it() -> None:
    found = measured(TABLE.select("a", "pairs"), ["a"])
    assert found["a", "pairs"].share == near(comb(D - 2, L - 1) / comb(D - 1, L - 1))


def test_a_column_that_tells_about_half_of_the_people() -> None:
    found = measured(TABLE.select("a", "half"), ["a"])
    assert found["a", "half"].share == near(0.5)


def test_independent_columns_tell_nothing() -> None:
    found = measured(TABLE.select("a", "other"), ["a", "other"])
    assert all(one.more <= 0.002 for one in found.values())


@pytest.mark.parametrize("people", [40, 120, 400, 1500])
@pytest.mark.parametrize("values", [4, 12, 60])
def test_what_chance_makes_in_a_small_table_is_not_refused(people: int, values: int) -> None:
    rng = np.random.default_rng(people + values)
    table = pl.DataFrame({name: [f"v{x}" for x in rng.integers(0, values, people)] for name in "abcd"})
    found = measured(table, ["a", "b"])
    assert max(one.at_most for one in found.values()) <= 0.05


def test_a_small_table_in_which_columns_are_one_is_refused() -> None:
    small = TABLE.select(a=pl.col("a").str.slice(1, 1), same=pl.col("a").str.slice(1, 1)).head(60)
    found = measured(small, ["a"])
    assert found["a", "same"].more > 0.9


def test_other_rows_of_a_person_are_nothing_that_others_show() -> None:
    people = np.repeat(np.arange(500), 6)
    secret = np.random.default_rng(2).integers(0, 8, 500)[people]
    table = pl.DataFrame(
        {"who": [f"p{i}" for i in people], "room": [f"r{i}" for i in people], "a": [f"a{x}" for x in secret]}
    )
    found = measured(table, ["a"], people={"key": "who"})
    assert found["a", "room"].share == 0.0


def test_fewer_than_four_people_are_no_table_to_learn_from() -> None:
    for people, pairs in (("wxyz", {("a", "same")}), ("wxy", set())):
        table = pl.DataFrame({"a": list(people), "same": list(people.upper())})
        wide = {"role": "sensitive", "values": [*"uvwxyz"]}
        policy = nr.Policy(
            attributes={"a": wide, "same": "plain"}, require=[nr.models.FrequencyLDiversity(on="a", l=L)]
        )
        found = prepare(table, policy)
        assert {(one.protected, one.by) for one in told(draft_plan(found, decide_plan(found, policy), policy))} == pairs


@pytest.mark.parametrize(("holders", "share"), [(2, 0.0), (3, 1.0)])
def test_nobody_is_among_the_others_who_show_the_same(holders: int, share: float) -> None:
    code = np.repeat(np.arange(20), holders)
    table = pl.DataFrame({"a": [f"a{x:02}" for x in code], "same": [f"b{x:02}" for x in code]})
    assert measured(table, ["a"])["a", "same"].share == share


@pytest.mark.parametrize(("others", "share"), [(0, 0.0), (1, 0.0), (2, 1.0), (3, 1.0)])
def test_certainty_needs_two_others_who_show_the_same(others: int, share: float) -> None:
    belief, values, truth = np.tile([1.0, 0.0], (20, 1)), np.tile([4, 7], (20, 1)), np.full(20, 4)
    behind = np.tile([float(others), 0.0], (20, 1))
    assert dependence._newly_certain(np.ones((20, 2)), belief, behind, values, truth, 20) == share
    assert dependence._certain(belief, values, truth) == 1.0
    assert dependence._certain(belief, values, np.full(20, 7)) == 0.0


def test_the_refusal_names_the_pair_and_the_ways_out() -> None:
    attributes = {"a": "sensitive", "same": "sensitive", "other": "plain"}
    require = [nr.models.FrequencyLDiversity(on=["a", "same"], l=L)]
    table = TABLE.select("a", "same", "other")
    with pytest.raises(nr.errors.PolicyError) as caught:
        nr.anonymize(table, nr.Policy(attributes=attributes, require=require))
    assert [problem.where for problem in caught.value.problems] == ["together"]
    text = str(caught.value)
    assert "'a' and 'same' disclose each other" in text
    assert "drop 'a' or 'same'" in text
    assert 'together = ["a", "same"]' in text
    assert "[dependence] most = " in text
    accepted = nr.Policy(attributes=attributes, require=require, dependence={"most": 1.0})
    assert nr.anonymize(table, accepted).records == N


def test_a_column_that_is_published_as_it_is_may_be_protected_too() -> None:
    policy = nr.Policy(
        attributes={"a": "sensitive", "same": "plain"}, require=[nr.models.FrequencyLDiversity(on="a", l=L)]
    )
    with pytest.raises(nr.errors.PolicyError, match="protect 'same' too"):
        nr.anonymize(TABLE.select("a", "same"), policy)


def test_only_some_records_of_a_large_table_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.workflow.dependence.KNOWN", 1500)
    monkeypatch.setattr("noren.workflow.dependence.ASKED", 1000)
    monkeypatch.setattr("noren.workflow.dependence.DENSE", 100)
    found = measured(TABLE.select("a", "same", "other"), ["a", "other"])
    assert {one.asked for one in found.values()} == {1000}, "at least so many"
    assert found["a", "same"].share == 1.0
    assert found["a", "other"].more <= 0.02


def test_sets_that_may_lack_the_truth_are_measured_too() -> None:
    policy = nr.Policy(
        attributes={"a": "sensitive", "same": "sensitive"},
        require=[nr.models.TCloseness(on=["a", "same"], t=0.1)],
    )
    found = prepare(TABLE.select("a", "same"), policy)
    assert all(one.share < 0.01 for one in told(draft_plan(found, decide_plan(found, policy), policy)))


def test_compare_refuses_what_anonymize_refuses() -> None:
    policy = nr.Policy(
        attributes={"a": "sensitive", "same": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on=["a", "same"], l=L)],
    )
    (alone,) = nr.compare(TABLE.select("a", "same"), policy, among=["decoys"])
    assert "disclose each other" in alone.failure
    together = nr.Policy(**(dict(policy) | {"together": ["a", "same"]}))
    (both,) = nr.compare(TABLE.select("a", "same"), together, among=["decoys"])
    assert both.holds


def test_the_limit_is_what_the_policy_says() -> None:
    table = TABLE.select("a", "half")
    attributes, require = {"a": "sensitive", "half": "plain"}, [nr.models.FrequencyLDiversity(on="a", l=L)]
    with pytest.raises(nr.errors.PolicyError, match="'a' is certain for 50% of the people if 'half' is known"):
        nr.anonymize(table, nr.Policy(attributes=attributes, require=require, dependence={"most": 0.4}))
    assert nr.anonymize(table, nr.Policy(attributes=attributes, require=require, dependence={"most": 0.6})).records == N
