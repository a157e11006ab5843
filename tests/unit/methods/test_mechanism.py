"""Rules of methods by hand: who left a group, which cut was refused, and what stays open."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.methods.mechanism.moves import Moves
from noren.methods.mechanism.refusals import OVERLOOKED, Stays
from noren.methods.mechanism.rule import Beliefs, Rule, Silent
from noren.methods.mechanism.sight import Sight
from noren.methods.mondrian import Mondrian
from noren.models import FrequencyLDiversity, TCloseness
from noren.models.class_check import ClassModel
from noren.release.published import Published
from noren.workflow.prepare import prepare

ROLES = {"age": "quasi-identifier", "ill": "sensitive"}


def sight(people: pl.DataFrame, rows: pl.DataFrame, l: int = 2, t: float | None = None) -> Sight:  # noqa: E741
    """A release made by hand, in which an age is exact or covers everything."""
    from noren.release.store import MemoryStore
    from noren.schema.nodes import Nodes
    from noren.statements import CodeCells, ExactStatement, NodeStatement

    model: ClassModel = FrequencyLDiversity(on="ill", l=l) if t is None else TCloseness(on="ill", t=t)
    table = prepare(people, nr.Policy(attributes=ROLES, require=[model], method="mondrian")).records
    age, ill = table.columns["age"], table.columns["ill"]
    nodes = Nodes.from_runs(age.d, [*age.domain.values, "*"], [*([(v, v + 1)] for v in range(age.d)), [(0, age.d)]])
    shown = NodeStatement(age.over("age", age.domain, hierarchy=None), nodes)
    place = [age.domain.index.get(value, age.d) for value in rows["age"]]
    cells = {
        "age": CodeCells(len(nodes), np.array(place)),
        "ill": CodeCells(ill.d, np.array([ill.domain.index[value] for value in rows["ill"]])),
    }
    secret = ExactStatement(ill)
    published = Published([shown, secret], MemoryStore(cells), rows.height)
    return Sight.of(published, table, secret, [model], 2)


def by_age(seen: Sight, found: Beliefs, age: str, ill: str) -> float:
    (code,) = (seen.table.columns["age"].domain.index[age],)
    item = seen.item[np.flatnonzero(seen.table.codes["age"] == code)[0]]
    return float(found.after[item, seen.table.columns["ill"].domain.index[ill]])


PEOPLE = pl.DataFrame({"age": [30] * 6 + [40] * 2, "ill": ["flu"] * 4 + ["cold", "gout"] + ["cold", "gout"]})
ROWS = pl.DataFrame(
    {
        "age": ["30", "30", "30", "30", "*", "*", "*", "*"],
        "ill": ["flu", "flu", "cold", "gout", "flu", "flu", "cold", "gout"],
    }
)


@pytest.mark.parametrize("rule", [Moves("moved"), Moves("swept", nested=True)], ids=["three-phase", "sweep"])
def test_the_two_who_left_six_people_had_what_was_too_common(rule: Rule) -> None:
    """Of six people of 30 four stay, two of them with flu; a fifth could only have flu. So four of six have it."""
    seen = sight(PEOPLE, ROWS)
    found = rule.beliefs(seen)
    assert by_age(seen, found, "30", "flu") == pytest.approx(4 / 6)
    assert by_age(seen, found, "40", "flu") < 0.25, "flu in the rest is theirs who left the other group"
    assert by_age(seen, found, "40", "cold") == pytest.approx(by_age(seen, found, "40", "gout"), abs=0.05)
    truth = seen.table.codes["ill"].astype(int)
    assert found.leavers(truth) == (2, 2)


def test_a_group_that_nobody_left_tells_what_its_class_says() -> None:
    people = pl.DataFrame({"age": [30] * 4, "ill": ["flu", "flu", "cold", "gout"]})
    rows = pl.DataFrame({"age": ["30"] * 4, "ill": ["flu", "flu", "cold", "gout"]})
    seen = sight(people, rows)
    found = Moves("moved").beliefs(seen)
    assert found.after == pytest.approx(found.before)
    assert found.leavers(seen.table.codes["ill"].astype(int)) == (0, 0)


def test_no_rule_looks_at_a_secret() -> None:
    """The same release of people whose secrets are exchanged leads to the same beliefs."""
    other = PEOPLE.with_columns(ill=pl.col("ill").reverse())
    for rule in (Moves("moved"), Moves("swept", nested=True), Silent("nothing")):
        assert rule.beliefs(sight(PEOPLE, ROWS)).after.tolist() == rule.beliefs(sight(other, ROWS)).after.tolist()


def test_who_stayed_behind_has_what_the_narrow_class_could_not_take_or_the_wide_one_not_spare() -> None:
    """The class of 30 could take any secret and the wide one spare a flu alone: its flu are rather those of 40."""
    rule = Mondrian().mechanism()
    assert isinstance(rule, Stays)
    seen = sight(PEOPLE, ROWS, t=0.2)
    found = rule.beliefs(seen)
    flu, other = 2 / 6 + OVERLOOKED * 2 / 8, 1 / 6 + 1 / 8
    assert by_age(seen, found, "30", "flu") == pytest.approx(flu / (flu + 2 * other))
    assert by_age(seen, found, "40", "flu") == pytest.approx(0.5), "only the wide class covers them"
    assert np.allclose(found.after.sum(axis=1), 1)
    assert found.facts["people_of_overlapping_classes"] == 6


@pytest.mark.parametrize(("t", "exchange"), [(0.1, True), (0.2, False)])
def test_nothing_follows_where_no_record_could_move_or_none_is_left_behind(t: float, exchange: bool) -> None:
    seen = sight(PEOPLE, ROWS, t=t)
    found = Mondrian(exchange=exchange).mechanism().beliefs(seen)
    assert not found.told.any()
    assert by_age(seen, found, "30", "flu") == pytest.approx(0.5)


def test_diversity_is_not_asked_who_stayed() -> None:
    found = Mondrian().mechanism().beliefs(sight(PEOPLE, ROWS))
    assert "people_of_overlapping_classes" not in found.facts
