"""Batches of cells: put together, taken apart and packed, they hold the same records; codes and nodes by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.designs import read_design
from noren.designs.decoys import DecoyDesign
from noren.errors import NorenError
from noren.schema.domain import MISSING, Domain
from noren.statements import CodeCells, NodeStatement, OpenCells, SetCells, SetStatement, Statement
from noren.statements.batch import batch_length, concat, number, pack_batch, record_bytes, take, unpack_batch
from noren.statements.mean import MeanStatement
from noren.statements.set_cells import NumberedSets, SetOrder
from tests.statements import exact_column, group_column, node_column, open_column, set_column, term_column


def batch(*codes: int) -> dict[str, Any]:
    return {
        "town": CodeCells(5, np.array(codes, np.uint8)),
        "note": OpenCells(pa.array([f"n{code}" for code in codes])),
        "ill": SetCells.from_codes(6, np.array([[code, 5] for code in codes])),
    }


def rows(found: Any) -> list[tuple[Any, ...]]:
    sets = found["ill"].codes(2).tolist()
    return [*zip(found["town"].data.tolist(), found["note"].data.to_pylist(), map(tuple, sets), strict=True)]


def test_batches_are_put_together_in_their_order() -> None:
    expected = [(code, f"n{code}", (code, 5)) for code in (3, 0, 4)]
    for parts in ([batch(3, 0, 4)], [batch(3), batch(0, 4)], [batch(3), batch(0), batch(4)]):
        found = concat(parts)
        assert rows(found) == expected
        assert batch_length(found) == 3
    assert rows(take(batch(3, 0, 4), np.array([2, 0, 2]))) == [expected[2], expected[0], expected[2]]
    assert rows(take(batch(3, 0, 4), slice(1, 3))) == expected[1:]
    again = unpack_batch(pa.record_batch(pack_batch(batch(3, 0, 4))), batch(1))
    assert rows(again) == expected


def test_a_record_takes_its_share_of_the_bytes_and_no_record_takes_none() -> None:
    codes = CodeCells(5, np.zeros(4, np.uint16))
    assert record_bytes({"a": codes, "b": codes}) == 4
    assert record_bytes({"a": codes.take(slice(0, 1))}) == 2
    assert record_bytes({"a": codes.take(slice(0, 0))}) == 0


@pytest.mark.parametrize("keys", [[], [0], [7, 7], [3, 0, 3, 1], [1 << 16, 5], [(1 << 24) + 1, 2, 2], [1 << 24, 1]])
def test_keys_are_numbered_however_large_they_are(keys: list[int]) -> None:
    distinct, ids = number(np.array(keys, np.int64))
    assert distinct.tolist() == sorted(set(keys))
    assert [sorted(set(keys))[at] for at in ids] == keys


def test_open_cells_are_told_apart_in_ascending_order_with_what_is_missing_among_them() -> None:
    cells, ids = OpenCells(pa.array(["b", None, "a", "b"])).distinct()
    assert [cells.data.to_pylist()[at] for at in ids] == ["b", None, "a", "b"]
    assert [text for text in cells.data.to_pylist() if text] == ["a", "b"]


def test_codes_that_a_column_does_not_have_are_refused_and_shown_as_numbers() -> None:
    town = exact_column("town", 3)
    assert town.check_cells(CodeCells(3, np.array([0, 2]))).tolist() == [0, 2]
    assert town.check_cells(CodeCells(3, np.zeros(0, int))).tolist() == []
    for wrong in ([3], [-1], [0, 3], [2, -1]):
        with pytest.raises(NorenError, match="outside its 3 values"):
            town.check_cells(CodeCells(3, np.array(wrong)))
    with pytest.raises(NorenError, match="does not hold the declared"):
        town.check_cells(CodeCells(4, np.array([0])))
    with pytest.raises(NorenError, match="does not hold the declared"):
        town.check_cells(OpenCells(pa.array(["a"])))
    assert (town.label(2), town.label(3)) == (town.domain.values[2], "value 3")


def test_a_missing_text_is_written_as_an_empty_cell() -> None:
    town = exact_column("town", 3)
    named = town.over(town.column.over("town", Domain(("Hof", "Ulm", MISSING))))
    assert named.to_arrow(CodeCells(3, np.array([1, 2, 0]))).to_pylist() == ["Ulm", None, "Hof"]
    numbers = town.over(town.column.over("town", Domain(("3", "5", "9"), "integer")))
    assert numbers.to_arrow(CodeCells(3, np.array([1, 2, 0]))).to_pylist() == [5, 9, 3]
    assert (named.texts_path, numbers.texts_path) == ("town", None)


def test_open_cells_cover_the_same_text_and_what_is_missing_in_both() -> None:
    note = open_column("note")
    shown, truth = pa.array(["a", "b", None, None]), pa.array(["a", "c", None, "d"])
    assert note.covers(OpenCells(shown), truth).tolist() == [True, False, True, False]
    assert note.position(OpenCells(pa.array([3.5, None, 1.5]))).tolist() == pytest.approx([2, np.nan, 1], nan_ok=True)
    with pytest.raises(NorenError, match="does not hold open values"):
        note.check_cells(CodeCells(3, np.array([0])))


@pytest.mark.parametrize("tight", [None, "ends", "members"])
def test_general_values_say_what_occurs_in_every_class_or_nothing(tight: str | None) -> None:
    nodes = [["low", [[0, 2]]], ["high", [[2, 3]]]]
    fields = {"nodes": nodes} | ({} if tight is None else {"tight": tight})
    found = NodeStatement.parse(exact_column("town", 3).column, fields, read_design)
    assert (found.tightness, found.manifest_fields()) == (tight, fields)
    with pytest.raises(ValueError, match="what occurs in every class"):
        NodeStatement.parse(exact_column("town", 3).column, fields | {"tight": "all"}, read_design)
    with pytest.raises(ValueError, match="two general values have one label"):
        NodeStatement.parse(exact_column("town", 3).column, {"nodes": [nodes[0], ["low", [[2, 3]]]]}, read_design)


@pytest.mark.parametrize("d", [63, 64, 65])
def test_sets_are_masks_up_to_64_values_and_the_same_sets_beyond(d: int) -> None:
    lists = [[0, d - 1], [d - 2, d - 1], [0, 1]]
    cells = SetCells.from_codes(d, np.array(lists))
    assert cells.is_mask is (d <= 64)
    assert cells.codes(2).tolist() == lists
    assert cells.contains(np.array([d - 1, 0, 1])).tolist() == [True, False, True]
    again = cells.unpack(pa.array(cells.pack()))
    assert again.codes(2).tolist() == lists


def test_sets_of_a_large_domain_are_numbered_without_a_table_of_all_masks() -> None:
    order = SetOrder.of(60, 2)
    some = [[0, 1], [0, 59], [1, 2], [58, 59]]
    assert order.numbers(SetCells.from_codes(60, np.array(some))).tolist() == [0, 58, 59, 60 * 59 // 2 - 1]
    numbered = NumberedSets(order.universe, np.array([59, 0]))
    assert order.numbers(numbered).tolist() == [59, 0]
    again = numbered.unpack(numbered.pack())
    assert again.codes(2).tolist() == [[1, 2], [0, 1]]


@pytest.mark.parametrize("d", [8, 70])
def test_a_set_names_values_of_its_domain_each_once_and_in_order(d: int) -> None:
    statement = SetStatement(exact_column("ill", d).column, DecoyDesign(d=d, eta=3))
    good = SetCells.from_codes(d, np.array([[0, 1, 2], [0, 2, d - 1]]))
    assert statement.check_cells(good) is good
    assert statement.check_cells(good.take(slice(0, 0))) is not None
    wrong: list[Any] = [CodeCells(d, np.array([0])), SetCells.from_codes(d + 1, np.array([[0, 1, 2]]))]
    if d == 70:
        rows = ([0, 1, 70], [0, 3, 3], [3, 3, 5], [5, 4, 6], [3, 5, 4])
        wrong += [SetCells(d, np.array([one], np.uint8)) for one in rows]
    else:
        wrong.append(SetCells(d, np.array([1 << 8], np.uint16)))
    for cells in wrong:
        with pytest.raises(NorenError):
            statement.check_cells(cells)


def test_a_single_value_is_one_row_of_one_value_and_nothing_of_it_is_counterfeit() -> None:
    for one in (exact_column("town", 3), open_column("note")):
        assert (one.rows_per_record, one.values_per_record) == (1, 1)
        assert (one.fake_entries, one.fakes.tolist()) == (0, [])
        assert (one.design, one.table, one.nodes, one.terms) == (None, None, None, None)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (exact_column("x", 3), {"exact", "key", "lists"}),
        (open_column("x"), {"exact", "key"}),
        (node_column("x", 3), {"key", "hides", "lists"}),
        (group_column("x", 3), {"class", "hides", "lists"}),
        (set_column("x", 3, DecoyDesign(d=3, eta=2)), {"hides", "lists"}),
        (MeanStatement(open_column("x").column, (1.5,)), {"key", "hides"}),
        (term_column("x", ("a", "b"), None), {"lists"}),
    ],
    ids=lambda one: getattr(one, "form", ""),
)
def test_what_a_form_says_of_people_and_values(statement: Statement, said: set[str]) -> None:
    """The truth itself, something to find people by, a class of its own, several values, a list of all values."""
    flags = {
        "exact": statement.is_exact,
        "key": statement.is_key,
        "class": statement.is_class,
        "hides": statement.hides,
        "lists": statement.lists_values,
    }
    assert {name for name, holds in flags.items() if holds} == said
