"""Rules of methods by hand: who left a group, which cut was refused, and what stays open."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.methods.mechanism.moves import Moves
from noren.methods.mechanism.rule import Beliefs, Rule, Silent
from noren.methods.mechanism.sight import Sight
from noren.models import FrequencyLDiversity
from noren.pipeline.prepare import prepare
from noren.release.published import Published

ROLES = {"age": "quasi-identifier", "ill": "sensitive"}


def sight(people: pl.DataFrame, rows: pl.DataFrame, l: int = 2) -> Sight:  # noqa: E741
    """A release made by hand, in which an age is exact or covers everything."""
    from noren.cells import CodeCells, ExactStatement, NodeStatement
    from noren.release.store import MemoryStore
    from noren.schema.nodes import Nodes

    model = FrequencyLDiversity(on="ill", l=l)
    table = prepare(people, nr.Policy(attributes=ROLES, require=[model], method="mondrian")).records
    age, ill = table.columns["age"], table.columns["ill"]
    nodes = Nodes.from_runs(age.d, [*age.domain.values, "*"], [*([(v, v + 1)] for v in range(age.d)), [(0, age.d)]])
    shown = NodeStatement(age.met("age", age.domain, hierarchy=None), nodes)
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
