"""Classes of whole people: one row each decides, all rows are covered, and a replay sees what the method saw."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.engines import Records
from noren.methods.hilbert import Hilbert
from noren.methods.mechanism.judge import Replay, published_of
from noren.methods.mondrian import Mondrian
from noren.methods.whole_people import by_number_of_rows, one_row_each
from noren.models import FrequencyLDiversity, KAnonymity, Mechanism
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.workflow.anonymize import run

QUASI, SECRET = Role.QUASI_IDENTIFIER, Role.SENSITIVE


def column(name: str, values: list[str], role: Role, ranked: bool) -> Column:
    return Column(role=role).over(name, Domain(tuple(values), "integer" if ranked else "string"))


def records(people: list[int], age: list[int], town: list[int]) -> Records:
    columns = {
        "age": column("age", [str(20 + i) for i in range(10)], QUASI, True),
        "town": column("town", ["Bonn", "Köln", "Ulm"], QUASI, False),
    }
    return Records(len(age), columns, {"age": np.array(age), "town": np.array(town)}, people=np.array(people))


def test_everybody_has_the_middle_number_and_the_commonest_value() -> None:
    found = one_row_each(records([1, 0, 1, 0, 1, 0, 2], [9, 3, 1, 4, 5, 8, 7], [0, 2, 1, 2, 1, 0, 0]))
    assert found.n == 3
    assert found.people is None
    assert found.codes["age"].tolist() == [4, 5, 7]
    assert found.codes["town"].tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("enough", "sets"), [(1, [[3], [2], [1, 1], [0]]), (2, [[3, 2], [1, 1, 0]]), (3, [[3, 2, 1, 1, 0]]), (6, [])]
)
def test_sets_that_are_too_small_are_put_together_with_the_next(enough: int, sets: list[list[int]]) -> None:
    rows = np.array([1, 3, 0, 2, 1])

    def attempt(some: Any) -> list[int] | None:
        return rows[some].tolist() if len(some) >= enough else None

    assert [made for _, made in by_number_of_rows(rows, attempt)] == sets


def test_all_rows_of_a_person_publish_the_same_and_cover_them() -> None:
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(200), rng.integers(1, 4, 200))
    data = pl.DataFrame(
        {"who": who, "age": 20 + who % 40 + rng.integers(0, 3, len(who)), "ill": [f"i{x % 5}" for x in who]}
    )
    attributes: Any = {"who": "identifier", "age": "quasi-identifier", "ill": "sensitive"}
    asked = [KAnonymity(k=4), FrequencyLDiversity(on="ill", l=2)]
    policy = nr.Policy(attributes=attributes, require=asked, method=Mondrian(), people={"key": "who"})
    facts = run(data, policy).facts
    age = facts.plan.recoded["age"]
    assert all(len(set(age.data[who == one].tolist())) == 1 for one in range(200))


@pytest.mark.parametrize("method", [Mondrian(), Mondrian(blind=True), Hilbert()])
def test_whoever_replays_a_method_of_people_concludes_what_one_row_each_tells(method: Any) -> None:
    """Three equal rows of everybody are replayed like one."""
    rng = np.random.default_rng(3)
    n = 60
    columns = {
        "age": column("age", [str(20 + i) for i in range(40)], QUASI, True),
        "ill": column("ill", ["a", "b", "c"], SECRET, False),
    }
    codes = {"age": rng.integers(0, 40, n), "ill": rng.choice(3, n, p=[0.45, 0.35, 0.2])}
    asked = [KAnonymity(k=3), FrequencyLDiversity(on="ill", l=2)]
    once = Records(n, columns, codes)
    plan = method.recode(once, asked, np.arange)
    thrice = once.taken(np.repeat(np.arange(n), 3))
    several = Records(3 * n, columns, thrice.codes, people=np.repeat(np.arange(n), 3))
    more = plan.placed(np.arange(n), n)
    spread = {name: type(one)(one.nodes, np.repeat(one.data, 3), one.tight) for name, one in more.treatments.items()}
    limit = Mechanism(on="ill", most=0.5)
    rule = method.mechanism()
    first = Replay(published_of(once, plan), once, asked, rule)
    second = Replay(published_of(several, type(plan)(spread)), several, asked, rule)
    assert second.table.n == n
    assert second.verdict(limit, "ill").achieved == pytest.approx(first.verdict(limit, "ill").achieved)
    assert second.verdict(limit, "ill").breaches == first.verdict(limit, "ill").breaches
