"""Plans put together and placed among more records, parts of a table, orders and buckets word by word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.engines.plan import Average, Change, Draw, Drop, Omit, Pass, Plan, Recode
from noren.engines.records import Records
from noren.engines.shuffle import MOST_BUCKETS, bucket_numbers, permutation
from noren.errors import DataError
from noren.models import DistinctLDiversity, KAnonymity
from noren.schema.nodes import Nodes
from noren.statements import TermCells
from noren.workflow.prepare import prepare
from tests.unit.engines.test_left_out import PEOPLE, ROLES
from tests.unit.engines.test_table import table

DISTINCT = DistinctLDiversity(on="ill", l=2)
NODES = Nodes.from_members(2, ["0", "1", "any"], [(0,), (1,), (0, 1)])


class Words:
    """A stream whose words are known."""

    def __init__(self, *words: int) -> None:
        self.words = np.array(words, np.uint32)

    def words32(self, n: int) -> np.ndarray:
        return self.words[:n]


@pytest.mark.parametrize(("buckets", "bits"), [(1, 0), (2, 1), (4, 2), (MOST_BUCKETS, 16)])
def test_a_bucket_is_the_first_bits_of_half_a_word(buckets: int, bits: int) -> None:
    halves = [0xFFFF, 0x0000, 0x8000, 0x4001, 0xC000]
    words = [low | high << 16 for low, high in zip(halves[::2], [*halves[1::2], 0], strict=True)]
    found = bucket_numbers(5, buckets, Words(*words))  # type: ignore[arg-type]
    assert found.tolist() == [half >> (16 - bits) for half in halves]


@pytest.mark.parametrize("buckets", [0, 3, 6, MOST_BUCKETS + 1, 2 * MOST_BUCKETS])
def test_buckets_come_in_powers_of_two(buckets: int) -> None:
    with pytest.raises(ValueError, match=f"a power of two up to {MOST_BUCKETS}; got {buckets}"):
        bucket_numbers(1, buckets, Words(0))  # type: ignore[arg-type]


def test_two_rows_have_two_orders_and_too_many_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word of its last bits decides between two; of one row there is one order."""
    orders = {tuple(permutation(2, Words(word, word)).tolist()) for word in (0, (1 << 32) - 1)}  # type: ignore[arg-type]
    assert orders == {(0, 1), (1, 0)}
    assert permutation(1, Words()).tolist() == [0]  # type: ignore[arg-type]
    monkeypatch.setattr("noren.engines.shuffle.np", None)  # what is refused takes no memory
    with pytest.raises(DataError, match="Cannot shuffle 4294967296 rows at once"):
        permutation(1 << 32, Words())  # type: ignore[arg-type]


def test_plans_of_several_methods_are_one() -> None:
    records = Records(3, {}, {})
    one = Plan({"a": Drop()}, np.array([True, True, False]), ["one"], facts={"k": 2})
    two = Plan({"b": Pass()}, np.array([True, False, True]), ["two"], records=records, facts={"l": 3})
    plain = Plan({"c": Drop()})
    both = Plan.merged([plain, one, two])
    assert both.keep is not None
    assert both.keep.tolist() == [True, False, False]
    assert (sorted(both.treatments), list(both.notes), dict(both.facts)) == (
        ["a", "b", "c"], ["one", "two"], {"k": 2, "l": 3},
    )  # fmt: skip
    assert both.records is records
    alone = Plan.merged([plain])
    assert (alone.keep, alone.records) == (None, None)
    assert Plan.merged([one, plain]).keep is one.keep
    with pytest.raises(AssertionError, match="one method of classes"):
        Plan.merged([two, two])


def test_a_plan_of_some_records_is_placed_among_all() -> None:
    rows = np.array([3, 1])
    terms = TermCells.from_entries(4, 2, np.array([0, 0, 1]), np.array([2, 3, 1]))
    covered = Recode(NODES, np.array([2, 0]))
    plan = Plan({
        "general": Recode(NODES, np.array([2, 1])),
        "mean": Average(np.array([1, 0]), covered),
        "bare": Average(np.array([1, 1])),
        "terms": Omit(terms),
        "gone": Drop(),
    })  # fmt: skip
    found: Any = plan.placed(rows, 4)
    assert found.keep.tolist() == [False, True, False, True]
    made: dict[str, Any] = dict(found.treatments)
    assert made["general"].data[rows].tolist() == [2, 1]
    assert (made["mean"].data[rows].tolist(), made["mean"].covered.data[rows].tolist()) == ([1, 0], [2, 0])
    assert (made["bare"].data[rows].tolist(), made["bare"].covered) == ([1, 1], None)
    cells = made["terms"].cells
    own = [cells.data[a:b].tolist() for a, b in zip(cells.offsets[:-1], cells.offsets[1:], strict=True)]
    assert own == [[], [1], [], [2, 3]]
    assert made["gone"] == Drop()
    some = Plan({}, np.array([False, True])).placed(rows, 4)
    assert some.keep is not None
    assert some.keep.tolist() == [False, True, False, False]
    assert Plan({}).placed(np.array([1, 0]), 2).keep is None


def test_a_part_of_a_table_knows_the_whole() -> None:
    whole = table()
    asked = [KAnonymity(k=2)]
    part = whole.part(["town"], asked)
    assert (part.deciding, part.requirements, part.whole) == (("town",), tuple(asked), whole)
    assert part.part([], asked).whole is whole
    assert whole.deciding == ("town", "grade")
    assert list(whole.reading().domains) == ["town", "grade"]
    assert list(whole.reading(["grade"]).domains) == ["grade"]


def test_rows_of_one_key_are_one_person_and_people_are_numbered_from_0_on() -> None:
    found = prepare(
        PEOPLE, nr.Policy(attributes=ROLES, require=[DISTINCT], method="mondrian", people={"key": "who"})
    ).people
    assert found is not None
    assert sorted(set(found.tolist())) == list(range(7))
    assert found[0] == found[1]
    alone = nr.Policy(attributes=ROLES, require=[DISTINCT], method="mondrian", people={"key": "who"})
    assert prepare(PEOPLE[1:], alone).people is None, "everybody has one row"


def test_sets_are_published_whole_unless_their_members_are_asked_for() -> None:
    design = DecoyDesign(d=4, eta=2)
    plan = Plan({"whole": Draw(design), "members": Draw(design, members=True), "one": Change(design), "gone": Drop()})
    assert plan.exploded == ("members",)
    assert sorted(plan.designs) == ["members", "one", "whole"]
