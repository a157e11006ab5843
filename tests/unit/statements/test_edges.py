"""Cells and statements at their edges: both sides of every condition, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.designs import read_design
from noren.designs.decoys import DecoyDesign
from noren.designs.pram import PramDesign
from noren.errors import ReleaseError
from noren.schema.domain import MISSING, Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import Format
from noren.schema.nodes import Nodes
from noren.statements import CodeCells, GroupStatement, GroupTable, SetCells, TermCells, TermsStatement
from noren.statements.set import ChangedStatement
from noren.statements.set_cells import TABLE_BITS, NumberedSets, SetOrder
from noren.statements.statement import Likelihood
from noren.statements.terms import encode_terms, present, term_counts
from noren.statements.texts import encode_bins
from tests.statements import exact_column, group_column, meaning, node_column, open_column, set_column


def test_codes_are_compared_one_by_one() -> None:
    assert CodeCells(3, np.array([0, 1, 2])).contains(np.array([0, 2, 2])).tolist() == [True, False, True]
    assert open_column("x").label(None) == MISSING
    assert open_column("x").label("text") == "text"


# ---------------------------------------------------------------- changed values


@pytest.mark.parametrize(("keep", "covered"), [(0.5, [True, True]), (None, [True, False])])
def test_a_changed_value_covers_every_truth_unless_it_is_never_changed(keep: float | None, covered: list[bool]) -> None:
    design: Any = DecoyDesign.exact(3) if keep is None else PramDesign(d=3, keep=keep)
    statement = ChangedStatement(meaning("x", 3), design)
    assert statement.covers(CodeCells(3, np.array([0, 1])), np.array([0, 2])).tolist() == covered


def test_a_design_of_sets_publishes_no_single_values() -> None:
    column = meaning("x", 3)
    single = {"design": PramDesign(d=3, keep=0.5).model_dump()}
    assert ChangedStatement.parse(column, single, read_design).design == PramDesign(d=3, keep=0.5)
    with pytest.raises(ValueError, match="does not publish single values"):
        ChangedStatement.parse(column, {"design": DecoyDesign(d=3, eta=2).model_dump()}, read_design)


# ---------------------------------------------------------------- reading a table


def test_bins_take_their_lower_edge_and_the_last_one_both() -> None:
    bins = Domain(("low", "high"), edges=(0.0, 10.0, 20.0), source="bins")
    texts = pa.array(["0", "9.5", "10", "19", "20", "20.5", "-1", None, ""])
    codes, missing, outside = encode_bins(texts, "x", bins)
    assert codes[:5].tolist() == [0, 0, 1, 1, 1]
    assert (missing, outside) == (2, 2)
    assert codes[7:].tolist() == [0, 0], "missing ones have no place here"
    with_missing = Domain(("low", "high", MISSING), edges=(0.0, 10.0, 20.0), source="bins")
    assert encode_bins(texts, "x", with_missing)[0][7:].tolist() == [2, 2]


def test_bins_read_numbers_as_the_column_writes_them() -> None:
    bins = Domain(("low", "high"), edges=(0.0, 10.0, 2000.0), source="bins", format=Format(decimal=",", thousands="."))
    assert encode_bins(pa.array(["9,5", "1.500,5", "10"]), "x", bins)[0].tolist() == [0, 1, 1]


def test_terms_are_read_each_once_and_unknown_ones_are_left_out() -> None:
    column = pa.array([["b", "a", "b"], [], None, ["x", "a"], ["x"]])
    assert present(column, "x").tolist() == [True, True, False, True, True]
    assert present(pa.array(["a", None, "", "b"]), "x").tolist() == [True, False, False, True]
    labels, counts, missing = term_counts(column)
    assert (dict(zip(labels, counts.tolist(), strict=True)), missing) == ({"b": 1, "a": 2, "x": 2}, 1)
    cells = encode_terms(column, Domain(("a", "b")))
    assert [cells.data[a:b].tolist() for a, b in zip(cells.offsets[:-1], cells.offsets[1:], strict=True)] == [
        [0, 1], [], [], [0], [],
    ]  # fmt: skip


def test_terms_that_were_packed_are_the_same_and_a_part_of_them_too() -> None:
    cells = TermCells.from_entries(4, 3, np.array([0, 0, 1, 2]), np.array([2, 3, 1, 0]))
    for rows in (slice(0, 3), slice(1, 3)):
        back = cells.unpack(cells.pack()[rows])
        assert back.offsets.tolist() == cells.take(rows).offsets.tolist()
        assert back.data.tolist() == cells.take(rows).data.tolist()


def test_a_cell_beyond_its_dictionary_is_refused() -> None:
    texts = exact_column("x", 3, values=("a", "b", MISSING))
    for index, fine in ((1, True), (2, False)):
        column = pa.DictionaryArray.from_arrays(pa.array([0, index], pa.int8()), pa.array(["a", "b"]), safe=False)
        if fine:
            assert texts.from_arrow(column).data.tolist() == [0, 1]  # type: ignore[attr-defined]
        else:
            with pytest.raises(ReleaseError, match="its dictionary lacks entries"):
                texts.from_arrow(column)


# ---------------------------------------------------------------- exact values


def test_a_missing_text_is_an_empty_cell_and_a_missing_number_too() -> None:
    texts = exact_column("x", 2, values=("a", MISSING))
    assert texts.to_arrow(CodeCells(2, np.array([0, 1]))).to_pylist() == ["a", None]
    assert texts.texts_path == "x"
    numbers = exact_column("x", 2, values=("1", "2"), kind="integer")
    assert numbers.to_arrow(CodeCells(2, np.array([0, 1]))).to_pylist() == [1, 2]
    assert numbers.texts_path is None


# ---------------------------------------------------------------- sets


@pytest.mark.parametrize("eta", [1, 2, 3])
def test_a_set_lists_its_values_once_and_in_order(eta: int) -> None:
    statement = set_column("x", 4, DecoyDesign(d=4, eta=eta))
    good = [[str(v) for v in range(eta)], [str(v) for v in range(4 - eta, 4)]]
    cells = statement.from_arrow(pa.array(good, pa.list_(pa.string())))
    assert isinstance(cells, SetCells)
    assert cells.codes(eta).tolist() == [[*range(eta)], [*range(4 - eta, 4)]]
    assert len(statement.from_arrow(pa.array([], pa.list_(pa.string())))) == 0
    if eta > 1:
        for wrong in (good[0][::-1], [good[0][0]] * eta, [*good[0][:-2], good[0][-1], good[0][-2]]):
            with pytest.raises(ReleaseError, match="repeats a value or is not in domain order"):
                statement.from_arrow(pa.array([good[1], wrong], pa.list_(pa.string())))
    assert statement.position(cells).tolist() == [(eta - 1) / 2, (7 - eta) / 2]


def test_sets_that_are_kept_once_are_described_by_their_number() -> None:
    plain = set_column("x", 4)
    table = SetCells.from_codes(4, np.array([[0, 1], [0, 2], [1, 3]]))
    kept = plain.with_table(table)
    needed = {"minLength": 2, "maxLength": 2, "required": True}
    assert (plain.field()["type"], plain.field()["constraints"]) == ("array", needed)
    counted = {"minimum": 0, "maximum": 2, "required": True}
    assert (kept.field()["type"], kept.field()["constraints"]) == ("integer", counted)
    assert (plain.texts_path, plain.side_texts, plain.side_key, plain.side) == ("x.list.element", None, None, None)
    assert (kept.texts_path, kept.side_texts, kept.side_key) == (None, "x.list.element", "id")
    numbers = set_column("x", 4, kind="integer")
    assert (numbers.texts_path, numbers.with_table(table).side_texts) == (None, None)


@pytest.mark.parametrize(
    ("sets", "fine"),
    [
        ([[0, 1], [0, 2], [1, 3]], True),
        ([[0, 1], [0, 1]], False),
        ([[0, 2], [0, 1]], False),
        ([[1, 2], [0, 3]], False),
        ([[0, 3], [1, 2]], True),
        ([[0, 1]], True),
    ],
)
def test_sets_that_are_kept_once_stand_in_order(sets: list[list[int]], fine: bool) -> None:
    statement = set_column("x", 4).with_table(SetCells.from_codes(4, np.array(sets)))
    side = {"id": pa.array(range(len(sets))), "x": pa.array([[str(v) for v in own] for own in sets])}
    if fine:
        assert isinstance(statement.with_side(side), type(statement))
    else:
        with pytest.raises(ValueError, match="not in order, or one is listed twice"):
            statement.with_side(side)


@pytest.mark.parametrize(("d", "eta"), [(5, 2), (TABLE_BITS, 3), (TABLE_BITS + 1, 2), (70, 2)])
def test_sets_are_numbered_in_the_order_of_their_lists(d: int, eta: int) -> None:
    order = SetOrder.of(d, eta)
    lists = list(combinations(range(d), eta))
    some = np.array([0, 1, len(lists) // 2, len(lists) - 1])
    sets = SetCells.from_codes(d, np.array([lists[i] for i in some]))
    assert order.numbers(sets).tolist() == some.tolist()
    assert order.numbers(NumberedSets(sets, np.array([3, 0]))).tolist() == [len(lists) - 1, 0]
    assert order.numbers(NumberedSets(order.universe, np.array([2, 1]))).tolist() == [2, 1]
    twice = NumberedSets(sets, np.array([3, 0, 3]))
    expected = np.bincount([*lists[-1], *lists[0], *lists[-1]], minlength=d)
    assert twice.inclusions().tolist() == expected.tolist()
    assert twice.codes(eta).tolist() == [[*lists[-1]], [*lists[0]], [*lists[-1]]]
    if d <= TABLE_BITS:
        assert order.numbers(SetCells(d, np.array([1], sets.data.dtype))).tolist() == [len(lists)], "of another size"


def test_sets_of_different_sizes_are_counted_by_their_values() -> None:
    table = SetCells(4, np.array([0b0011, 0b1011], np.uint8))
    assert NumberedSets(table, np.array([0, 1, 1])).inclusions().tolist() == [3, 3, 0, 2]


# ---------------------------------------------------------------- groups and nodes


def test_a_table_of_groups_counts_what_the_records_have_and_their_counterfeits() -> None:
    table = GroupTable.from_codes(2, 3, np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 2, 2]))
    plain = group_column("x", 3, groups=table)
    groups = CodeCells(2, np.array([0, 0, 1, 1, 1]))
    assert plain.holds_truth(groups, np.array([0, 1, 2, 1, 2]))
    assert not plain.holds_truth(groups, np.array([0, 1, 2, 1, 1])), "as many, but others"
    assert not plain.holds_truth(groups, np.array([0, 2, 2, 1, 2])), "a value that the group lacks"
    assert not plain.holds_truth(groups.take(slice(0, 4)), np.array([0, 1, 2, 1])), "one too few"
    fakes = replace(plain, counterfeits={1: 1})
    assert fakes.holds_truth(groups.take(slice(0, 4)), np.array([0, 1, 2, 1]))
    assert not fakes.holds_truth(groups, np.array([0, 1, 2, 1, 2]))


def test_every_group_of_a_table_holds_somebody() -> None:
    statement = group_column("x", 3, groups=GroupTable.from_codes(2, 3, np.array([0, 1]), np.array([0, 1])))
    side = {"group": pa.array([0, 1]), "value": pa.array(["0", "1"]), "count": pa.array([1, 1])}
    assert statement.read_side(side).sizes.tolist() == [1, 1]
    with pytest.raises(ValueError, match="a group is empty"):
        statement.read_side(side | {"group": pa.array([0, 0])})
    with pytest.raises(ValueError, match="a group is empty"):
        statement.read_side({name: one.slice(0, 1) for name, one in side.items()})
    assert [one["type"] for one in statement.side_fields()] == ["integer", "any", "integer"]
    numbers = group_column("x", 3, kind="integer")
    assert [one["type"] for one in numbers.side_fields()] == ["integer", "integer", "integer"]
    for wrong in (["a"], [2], [-1]):
        with pytest.raises(ReleaseError, match="names a group that does not exist"):
            statement.from_arrow(pa.array(wrong))


def test_groups_and_terms_are_numbered_from_one_and_terms_are_texts() -> None:
    assert GroupStatement.parse(meaning("x", 3), {"groups": 1, "number": 1}, read_design).kinds == 1
    for wrong in ({"groups": 0, "number": 1}, {"groups": 1, "number": 0}, {"groups": 1, "number": 1001}):
        with pytest.raises(ValueError, match="numbers from 1 on"):
            GroupStatement.parse(meaning("x", 3), wrong, read_design)
    assert TermsStatement.parse(meaning("x", 3), {"knowledge": 1}, read_design).terms is not None
    for column in (meaning("x", 3, kind="integer"), open_column("x").column):
        with pytest.raises(ValueError, match="terms are texts"):
            TermsStatement.parse(column, {"knowledge": 1}, read_design)


def test_a_general_value_is_named_after_what_it_covers() -> None:
    tree = Hierarchy((("a", "b"), ("*", "*")))
    assert node_column("x", 2, hierarchy=tree).find_misnamed() == []
    honest = Nodes.from_members(2, ["a", "b", "*"], [(0,), (1,), (0, 1)])
    lying = Nodes.from_members(2, ["a", "b", "*"], [(0, 1), (1,), (0, 1)])
    for nodes, told in ((honest, []), (lying, ["a"])):
        column = node_column("x", 2, nodes=nodes, values=("a", "b"))
        assert [name for name in ("a", "b", "*") if any(name in one for one in column.find_misnamed())] == told
        assert [name for name in ("a", "b", "*") if any(name in one for one in column.find_misnamed(tree))] == told


def test_numbered_sets_of_one_part_stay_numbered() -> None:
    sets = NumberedSets(SetCells.from_codes(4, np.array([[0, 1], [2, 3]])), np.array([1, 0]))
    for parts in ([sets], [sets, sets]):
        found = NumberedSets.concat(parts)
        assert isinstance(found, NumberedSets)
        assert found.ids.tolist() == [1, 0] * len(parts)


# ---------------------------------------------------------------- likelihoods


@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_what_is_not_listed_has_the_floor(floor: float) -> None:
    given = Likelihood(np.array([0, 1, 3]), np.array([2, 0, 1]), np.array([0.5, 0.75, 1.0]), floor)
    expected = [[floor, floor, 0.5], [0.75, 1.0, floor]]
    assert given.dense(3).tolist() == expected
    listed = given.listed(3)
    assert listed.dense(3).tolist() == expected
    assert listed.lengths.tolist() == ([3, 3] if floor else [1, 2])
    assert (listed is given) is (floor == 0)
    assert node_column("x", 2).covers(CodeCells(3, np.array([2, 0])), np.array([1, 1])).tolist() == [True, False]
