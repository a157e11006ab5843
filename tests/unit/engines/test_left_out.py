"""People who are left out are judged as one class, by whatever each requirement is about."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.engines.left_out import LEFT_OUT, Members
from noren.workflow.prepare import prepare
from tests.unit import term_world

PEOPLE = pl.DataFrame({"who": [0, 0, 1, 2, 3, 4, 5, 6], "town": list("uuvvuuvv"), "ill": list("aabcabcd")})
ROLES = {"who": "identifier", "town": "quasi-identifier", "ill": "sensitive"}


def members(*require: Any, **more: Any) -> Members:
    policy = nr.Policy(attributes=ROLES, require=require, method="mondrian", **more)
    return Members.of(prepare(PEOPLE, policy))


def some(*rows: int) -> np.ndarray:
    out = np.zeros(len(PEOPLE), bool)
    out[list(rows)] = True
    return out


def test_nobody_is_left_out_well_and_somebody_if_they_meet_everything() -> None:
    found = members(nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="ill", l=2))
    assert found.holds(some())
    assert found.holds(some(0, 1, 2))
    assert not found.holds(some(0, 2)), "two people"
    assert not found.holds(some(0, 1, 4)), "one illness"
    fails = found.verdict(some(0, 1, 4))
    assert (fails.model, fails.holds, fails.records, fails.breaches, fails.achieved) == (LEFT_OUT, False, 3, 3, 0.5)
    assert fails.statement.startswith("the 3 suppressed people fail as one class: distinct-l-diversity on 'ill'")
    good = found.verdict(some(0, 1, 2))
    assert (good.holds, good.breaches, good.achieved) == (True, 0, 1.0)
    alone = members(nr.models.DistinctLDiversity(on="ill", l=2))
    assert alone.verdict(some(0, 1)).achieved == 0, "the only requirement falls short"


def test_people_are_counted_where_they_have_several_records() -> None:
    found = members(nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="ill", l=2), people={"key": "who"})
    assert found.count(some(0, 1, 2)) == 2
    assert not found.holds(some(0, 1, 2))
    assert found.holds(some(0, 1, 2, 3))
    turned = found.taken(np.arange(len(PEOPLE))[::-1])
    assert turned.count(some(7, 6, 5)) == 2, "the same people in another order"


def test_the_whole_table_is_as_close_to_itself_as_can_be() -> None:
    found = members(nr.models.TCloseness(on="ill", t=0.2))
    assert found.holds(some(*range(8)))
    assert not found.holds(some(0, 1, 4))


@pytest.mark.parametrize("signs", [[["fever"]], [["cough"], ["cough"], ["cough"]]])
def test_terms_are_judged_by_what_they_let_believe(signs: list[list[str]]) -> None:
    """Cough alone belongs to three diseases of six that are equally likely before: at most a third is believed."""
    frame = pl.DataFrame({"row": range(len(signs)), "age": 30, "town": "north", "ill": "a", "signs": signs})
    found = Members.of(prepare(frame, term_world.policy(require=[term_world.DIVERSE])))
    (verdict,) = found.judged(np.ones(len(signs), bool))
    assert verdict.column == "signs"
    assert verdict.holds is (signs[0] == ["cough"])
