"""Classes at their ends: names of packed keys, missing texts, one record, people in groups, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import ModelDoesNotApply
from noren.models import MODELS, Evidence, KAnonymity, Model, Overall, TCloseness
from noren.models import classes as room
from noren.models.base import Check, Judgement
from noren.models.classes import PeopleValues, key_columns, key_layout
from noren.models.histograms import ClassTable, PeopleTable, sum_entries
from noren.ragged import ranges
from noren.schema.roles import Role
from noren.statements import CodeCells, GroupTable, OpenCells, SetCells, Statement
from noren.statements.batch import PERSON
from tests.statements import exact_column, group_column, open_column, set_column
from tests.unit.models.test_judgement import JUDGES, WORLDS

QUASI, SECRET = Role.QUASI_IDENTIFIER, Role.SENSITIVE


def verdict(columns: list[Statement], model: Model, cells: dict[str, Any], **more: Any) -> Any:
    judgement = Judgement.of({column.name: column for column in columns}, [model], **more)
    judgement.observe(cells)
    (found,) = judgement.verdicts()
    return found


def codes(d: int, *values: int) -> CodeCells:
    return CodeCells(d, np.array(values, np.int64))


# ---------------------------------------------------------------- keys


def test_classes_are_named_by_all_their_columns_whatever_is_packed() -> None:
    """A column of one value between others, and a free text: of six records three look like no other."""
    columns: list[Statement] = [
        exact_column("town", 3, role=QUASI),
        exact_column("land", 1, role=QUASI),
        open_column("street", role=QUASI),
        exact_column("sex", 2, role=QUASI),
    ]
    cells = {
        "town": codes(3, 2, 2, 1, 1, 0, 1),
        "land": codes(1, 0, 0, 0, 0, 0, 0),
        "street": OpenCells(pa.array(["u", "u", None, None, None, "v"])),
        "sex": codes(2, 1, 1, 0, 1, 1, 0),
    }
    found = verdict(columns, KAnonymity(k=2), cells, show=9)
    assert (found.achieved, found.breaches, found.records) == (1, 4, 6)
    told = [{name: str(value) for name, value in one.keys.items()} for one in found.shortfalls]
    assert [list(one) for one in told] == [["town", "land", "street", "sex"]] * 4
    assert sorted((one["town"], one["land"], one["sex"]) for one in told) == [
        ("0", "0", "1"), ("1", "0", "0"), ("1", "0", "0"), ("1", "0", "1"),
    ]  # fmt: skip
    assert sorted(one["street"] for one in told)[-1] == "v"
    assert len({one["street"] for one in told}) == 2


def test_records_without_a_text_look_alike() -> None:
    street = open_column("street", role=QUASI)
    for texts, sizes in (([None, None, "a"], [1, 2]), (["a", None], [1, 1]), ([None], [1]), ([None] * 3, [3])):
        judgement = Judgement.of({"street": street}, [KAnonymity(k=2)])
        judgement.observe({"street": OpenCells(pa.array(texts, pa.string()))})
        (check,) = judgement.checks
        assert sorted(check.parts[0].table().n.tolist()) == sizes  # type: ignore[attr-defined]


def test_different_records_have_different_keys_and_as_few_numbers_as_hold_them() -> None:
    town, sex = exact_column("town", 3), exact_column("sex", 2)
    cells = {"town": codes(3, 0, 0, 1, 1, 2, 2), "sex": codes(2, 0, 1, 0, 1, 0, 1)}
    assert [[one.name for one in part] for part in key_layout([town, sex])] == [["town", "sex"]]
    (found,) = key_columns([town, sex], cells)
    assert sorted(np.asarray(found).tolist()) == [0, 1, 2, 3, 4, 5]


def test_columns_in_sets_define_no_classes_and_groups_do() -> None:
    columns = {"s": set_column("s", 4), "g": group_column("g", 3, role=QUASI), "x": exact_column("x", 2, role=SECRET)}
    with pytest.raises(ModelDoesNotApply):
        Evidence(columns, {}).classes("x", ["s"])
    assert Evidence(columns, {}).classes("x", ["g"]).needs == ("g", "x")


@pytest.mark.parametrize("pending", [1, 3, 100])
def test_rows_may_wait_before_they_are_put_together(monkeypatch: pytest.MonkeyPatch, pending: int) -> None:
    monkeypatch.setattr(room, "PENDING", pending)
    judgement = Judgement.of({"where": exact_column("where", 4, role=QUASI)}, [KAnonymity(k=2)])
    for some in ((0, 1, 2), (0, 0, 3), (1, 2, 2), (3,), ()):
        judgement.observe({"where": codes(4, *some)})
    (check,) = judgement.checks
    assert check.parts[0].table().n.tolist() == [3, 2, 3, 2]  # type: ignore[attr-defined]


# ---------------------------------------------------------------- histograms


def test_entries_in_any_order_are_summed_by_class_and_value() -> None:
    n = np.array([2, 3, 1])
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
        owner, value = np.array([0, 0, 2, 0])[order], np.array([1, 0, 1, 1])[order]
        found = sum_entries(n, owner, value, np.array([0.5, 1.0, 1.0, 0.25])[order], 2)
        assert found.starts.tolist() == [0, 2, 2, 3]
        assert (found.value.tolist(), found.mass.tolist()) == ([0, 1, 1], [1.0, 0.75, 1.0])
    nothing = sum_entries(np.zeros(0, int), *(np.zeros(0, int),) * 2, np.zeros(0), 2)
    assert (nothing.starts.tolist(), len(nothing.mass)) == ([0], 0)


def test_ranges_stand_one_after_the_other() -> None:
    assert ranges(np.array([3, 7, 0]), np.array([5, 7, 3])).tolist() == [3, 4, 0, 1, 2]
    assert ranges(np.zeros(0, int), np.zeros(0, int)).tolist() == []


def test_the_distribution_of_one_record_is_its_value() -> None:
    one, none = np.array([1]), np.zeros(0, int)
    column = exact_column("x", 3)
    table = ClassTable(column, one, one, np.array([0, 1]), np.array([2]), one)
    assert table.shares(3).tolist() == [0, 0, 1]
    assert ClassTable(column, none, none, np.zeros(1, int), none, none).shares(3).tolist() == [0, 0, 0]
    alone = PeopleTable(
        column, one, one, np.array([0, 1]), np.array([2]), one, whose=np.array([0]), person=np.array([4])
    )
    assert alone.shares(3).tolist() == [0, 0, 1], "person 4 is the only one, whatever the number"
    assert (table.stray, alone.stray) == (0, 0)
    assert TCloseness(on="x", t=0.1).judge_histograms(next(table.histograms()), column, table.shares(3))[
        0
    ].tolist() == [0]


def test_people_count_by_the_shares_of_their_rows_unless_holders_are_asked_for() -> None:
    """One person has the first value twice and the second once, another the second."""
    table = PeopleTable(
        exact_column("x", 2), np.array([2]), np.array([2]), np.array([0, 3]), np.array([0, 1, 1]), np.array([2, 1, 1]),
        whose=np.array([0, 0, 1]), person=np.array([3, 3, 6]),
    )  # fmt: skip
    (by_rows,), (by_holders,) = table.histograms(), table.histograms(holders=True)
    assert by_rows.mass == pytest.approx([2 / 3, 4 / 3])
    assert by_holders.mass.tolist() == [1, 2]
    assert by_rows.distinct_beside.tolist() == [2], "who knows the other's value still sees two"


# ---------------------------------------------------------------- people in groups

VALUES = GroupTable(3, 4, np.array([0, 0, 2, 2]), np.array([0, 1, 2, 3]), np.array([2, 1, 1, 1]))
"""Two of the first value and one of the second in group 0; nobody in group 1."""


def grouped(groups: list[int], people: list[int], whose: list[int], values: list[int]) -> Any:
    """Rows (group, person) as they are published; (whose, value) is what people really have."""
    column = group_column("x", 4, groups=VALUES, role=SECRET)
    known = {"x": Overall(np.full(4, 0.25), "the original", people=PeopleValues.of(np.array(whose), np.array(values)))}
    cells = {"x": codes(3, *groups), PERSON: codes(9, *people)}
    return verdict(
        [column], MODELS["alpha-k-anonymity"](on="x", alpha=0.9, k=2), cells, overall=known, people=True, show=9
    )


def test_people_in_groups_are_named_by_their_group() -> None:
    """Both people of group 0 have the first value; the one of group 2 is alone."""
    found = grouped([0, 2, 0, 2, 0], [7, 3, 5, 3, 5], [7, 3, 5, 3, 5], [0, 2, 0, 3, 1])
    assert (found.achieved, found.records, found.breaches, found.basis) == (1.0, 3, 3, "the original")
    assert [(one.keys, one.records) for one in found.shortfalls] == [({"x": "group 0"}, 2), ({"x": "group 2"}, 1)]


@pytest.mark.parametrize(
    ("groups", "people", "whose", "values", "pairs"),
    [
        # 3 stands in two groups, and the table counts all his rows in the later one
        ([0, 0, 0, 2, 0], [7, 5, 5, 3, 3], [7, 5, 5, 3, 3], [0, 0, 1, 2, 3], 4),
        # 8 has rows of which the original knows nothing
        ([0, 0, 0, 2, 2, 2], [7, 5, 5, 3, 3, 8], [7, 5, 5, 3, 3], [0, 0, 1, 2, 3], 4),
        # 8 is published nowhere
        ([0, 0, 0, 2, 2], [7, 5, 5, 3, 3], [7, 5, 5, 3, 3, 8], [0, 0, 1, 2, 3, 3], 3),
        # as many values, but others than the table says
        ([0, 0, 0, 2, 2], [7, 5, 5, 3, 3], [7, 5, 5, 3, 3], [1, 0, 1, 2, 3], 3),
        ([0, 0, 0, 2, 2], [7, 5, 5, 3, 3], [7, 5, 5, 3, 3], [2, 2, 3, 0, 1], 3),
    ],
)
def test_groups_that_do_not_hold_what_people_have_prove_nothing(
    groups: list[int], people: list[int], whose: list[int], values: list[int], pairs: int
) -> None:
    found = grouped(groups, people, whose, values)
    assert (found.holds, found.records, found.breaches) == (False, pairs, pairs)
    assert "do not have as many records as their table says" in found.statement


def test_what_people_have_is_counted_by_person_and_value() -> None:
    found = PeopleValues.of(np.array([4, 1, 4, 4]), np.array([2, 0, 2, 0]))
    assert (found.person.tolist(), found.value.tolist(), found.count.tolist()) == ([1, 4, 4], [0, 0, 2], [1, 1, 2])
    nobody = PeopleValues.of(np.zeros(0, int), np.zeros(0, int))
    assert len(nobody.person) == 0


def test_groups_that_nobody_is_in_are_no_classes() -> None:
    none = np.zeros(0, np.int64)
    for table in (VALUES, GroupTable(3, 4, none, none, none)):
        column = group_column("x", 4, groups=table, role=SECRET)
        known = {"x": Overall(np.full(4, 0.25), "the original", people=PeopleValues.of(none, none))}
        model = MODELS["distinct-l-diversity"](on="x", l=2)
        cells = {"x": codes(3), PERSON: codes(9)}
        found = verdict([column], model, cells, overall=known, people=True, show=9)
        assert (found.holds, found.records, found.breaches, found.statement) == (False, 0, 0, "there are no records")


# ---------------------------------------------------------------- what models are asked


NO_PROBES = {"belief", "informed-belief", "mechanism", "m-invariance"}


@pytest.mark.parametrize("name", MODELS)
def test_a_column_is_measured_by_models_of_columns_and_a_table_by_those_of_tables(name: str) -> None:
    table = MODELS[name].probes(None)
    assert [(one.model, one.on) for one in table] == ([("k-anonymity", ())] if name == "k-anonymity" else [])
    found = 0
    for form in [form for other, form in JUDGES if other == name]:
        world = WORLDS[form](5, np.random.default_rng(0))
        asked = MODELS[name].probes(world.columns["x"])
        assert all((one.model, one.on) == (name, ("x",)) for one in asked)
        found += len(asked)
    assert (found == 0) is (name in NO_PROBES | {"k-anonymity"})


def test_evidence_knows_quasi_identifiers_and_secrets() -> None:
    columns = {
        "town": exact_column("town", 2, role=QUASI),
        "pay": exact_column("pay", 2, role=Role.SENSITIVE_QUASI_IDENTIFIER),
        "ill": exact_column("ill", 2, role=SECRET),
        "note": exact_column("note", 2),
    }
    evidence = Evidence(columns, {})
    assert evidence.quasi_identifiers() == ("town", "pay")
    assert evidence.quasi_identifiers("pay") == ("town",)
    assert [one.name for one in evidence.secrets()] == ["pay", "ill"]
    assert evidence.classes("pay").needs == ("town", "pay")
    assert evidence.classes(None).needs == ("town", "pay")
    assert evidence.classes("pay") is evidence.classes("pay"), "shared, so that batches are grouped once"
    assert evidence.classes("pay") is not evidence.classes("ill")
    assert "_classes" not in repr(evidence)
    assert evidence == Evidence(columns, {})
    with pytest.raises(TypeError):
        Evidence(columns, {}, False, {})  # type: ignore[call-arg]
    assert not evidence.people
    assert Check.show == 0


def test_requirements_stay_what_they_are() -> None:
    model = MODELS["distinct-l-diversity"](on="x", l=2)
    with pytest.raises(ValueError, match="frozen"):
        model.on = ("y",)
    assert MODELS["distinct-l-diversity"](on=("x",), l=2) == model
    for wrong in ((), ("x", "x")):
        with pytest.raises(ValueError, match="on"):
            MODELS["distinct-l-diversity"](on=wrong, l=2)


# ---------------------------------------------------------------- sets


@pytest.mark.parametrize(("size", "holds"), [(2, True), (3, True), (4, False)])
def test_sets_are_as_large_as_the_smallest(size: int, holds: bool) -> None:
    """Two batches: sets of four, and of three."""
    column = set_column("x", 6, role=SECRET)
    judgement = Judgement.of({"x": column}, [MODELS["distinct-l-diversity"](on="x", l=size)])
    for sets in (np.array([[0, 1, 2, 3], [2, 3, 4, 5]]), np.array([[1, 3, 5]])):
        judgement.observe({"x": SetCells.from_codes(6, sets)})
    (found,) = judgement.verdicts()
    assert (found.holds, found.achieved, found.records, found.breaches) == (holds, 3, 3, 0 if holds else 1)


def test_no_set_is_large_enough() -> None:
    judgement = Judgement.of({"x": set_column("x", 6, role=SECRET)}, [MODELS["distinct-l-diversity"](on="x", l=2)])
    (found,) = judgement.verdicts()
    assert (found.holds, found.achieved, found.records, found.breaches) == (False, 0, 0, 0)
