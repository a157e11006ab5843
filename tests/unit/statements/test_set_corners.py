"""Sets and terms at their ends: the smallest, the widest, tables of sets that are forged, records without terms."""

from __future__ import annotations

from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.designs.decoys import DecoyDesign
from noren.errors import ModelDoesNotApply, NorenError, ReleaseError
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import (
    SetStatement,
    TermCells,
    TermsStatement,
)
from noren.statements.set_cells import NumberedSets, SetCells, numberable

ABC = Domain(("a", "b", "c"))


def column(domain: Domain = ABC) -> Column:
    return Column(role=Role.SENSITIVE).over("ill", domain)


# ---------------------------------------------------------------- sets


@pytest.mark.parametrize(("d", "eta"), [(5, 2), (8, 3), (64, 2), (70, 2), (300, 3), (5, 1), (70, 1)])
def test_different_sets_are_told_apart_in_order(d: int, eta: int) -> None:
    rng = np.random.default_rng(d)
    rows = np.array([rng.choice(d, eta, replace=False) for _ in range(40)])
    cells = SetCells.from_codes(d, np.concatenate([rows, rows[:7]]))
    distinct, of = cells.distinct()
    own = [tuple(sorted(row)) for row in np.concatenate([rows, rows[:7]]).tolist()]
    shown = [tuple(row) for row in distinct.codes(eta).tolist()]
    assert len(shown) == len(set(own)) == len(set(shown))
    assert [shown[one] for one in of.tolist()] == own
    _, times = cells.count_sets()
    assert [own.count(one) for one in shown] == times.tolist()
    assert cells.sizes().tolist() == [eta] * 47
    again = cells.unpack(cells.pack())
    assert (again.data == cells.data).all()
    none = cells.take(np.zeros(0, np.int64))
    assert (len(none.distinct()[0]), len(none.count_sets()[1])) == (0, 0)
    with pytest.raises(ValueError, match=f"a code exceeds the {d} values"):
        SetCells.from_codes(d, np.array([[d] * eta]))
    if eta > 1:
        with pytest.raises(ValueError, match="a set repeats a value"):
            SetCells.from_codes(d, np.array([[1] * eta]))


def test_wide_rows_are_numbered_although_their_products_are_not() -> None:
    """Ten codes of 300 values make numbers beyond 64 bits unless they are numbered on the way."""
    rng = np.random.default_rng(3)
    rows = np.array([np.sort(rng.choice(300, 10, replace=False)) for _ in range(30)])
    cells = SetCells.from_codes(300, rows[[*range(30), 4, 4]])
    distinct, of = cells.distinct()
    assert len(distinct) == 30
    assert (distinct.data[of] == cells.data).all()
    assert sorted(map(tuple, distinct.data.tolist())) == list(map(tuple, distinct.data.tolist()))


@pytest.mark.parametrize("dimensions", [1, 2])
def test_masks_are_of_at_most_64_values(dimensions: int) -> None:
    shape = (3,) if dimensions == 1 else (3, 2)
    fits, wrong = (64, 65) if dimensions == 1 else (65, 64)
    assert SetCells(fits, np.ones(shape, np.uint64)).is_mask == (dimensions == 1)
    with pytest.raises(ValueError, match=f"need a {3 - dimensions}-dimensional array"):
        SetCells(wrong, np.ones(shape, np.uint64))


@pytest.mark.parametrize(
    ("d", "eta", "fits"),
    [(3, 0, False), (3, 4, False), (3, 3, True), (65535, 1, True), (65536, 1, False), (362, 2, True), (363, 2, False)],
)
def test_sets_are_numbered_with_two_bytes(d: int, eta: int, fits: bool) -> None:
    assert numberable(d, eta) is fits


def numbered_statement() -> tuple[SetStatement, SetCells]:
    table = SetCells.from_codes(3, np.array([[0, 1], [0, 2], [1, 2]]))
    return SetStatement(column(), DecoyDesign(d=3, eta=2)).with_table(table), table


@pytest.mark.parametrize("sets", [0, comb(3, 2) + 1, True, "3", None])
def test_a_manifest_counts_sets_that_there_can_be(sets: Any) -> None:
    own, design = column(), DecoyDesign(d=3, eta=2)
    fields = {"design": design.model_dump(mode="json")}
    for fine in (1, 3):
        found = SetStatement.parse(own, fields | {"sets": fine}, lambda *_: design)
        assert (found.side, found.manifest_fields()["sets"]) == ("sets", fine)
    assert "sets" not in SetStatement.parse(own, fields, lambda *_: design).manifest_fields()
    with pytest.raises(ValueError, match="sets"):
        SetStatement.parse(own, fields | {"sets": sets}, lambda *_: design)


def test_too_many_sets_to_be_numbered_are_refused_whatever_their_count() -> None:
    wide = Domain(tuple(map(str, range(363))))
    design = DecoyDesign(d=363, eta=2)
    with pytest.raises(ValueError, match="there are more sets than the values allow"):
        SetStatement.parse(column(wide), {"design": {}, "sets": 5}, lambda *_: design)


def test_numbers_are_written_of_cells_numbered_by_the_same_table() -> None:
    statement, table = numbered_statement()
    assert statement.to_parquet(NumberedSets(table, np.array([2, 0]))).to_pylist() == [2, 0]
    for wrong in (table, NumberedSets(SetCells(3, table.data.copy()), np.array([0]))):
        with pytest.raises(ModelDoesNotApply, match="holds sets that are not numbered by its table"):
            statement.to_parquet(wrong)
    assert statement.written_out().to_parquet(table).to_pylist() == [["a", "b"], ["a", "c"], ["b", "c"]]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (pa.array([3], pa.uint8()), "names a set that does not exist"),
        (pa.array([0, None], pa.uint8()), "should hold numbers of sets"),
        (pa.array([0], pa.int64()), "should hold numbers of sets"),
    ],
)
def test_numbers_that_stand_for_no_set(ids: Any, said: str) -> None:
    statement, table = numbered_statement()
    assert (statement.from_parquet(pa.array([2, 0], pa.uint8())).data == table.data[[2, 0]]).all()
    assert len(statement.from_parquet(pa.array([], pa.uint8()))) == 0
    with pytest.raises(ReleaseError, match=said):
        statement.from_parquet(ids)


@pytest.mark.parametrize(
    ("ids", "lists", "said"),
    [
        ([0, 1, 2], [["a", "b"], ["a", "c"], ["b", "c"]], None),
        ([0, 1, 3], [["a", "b"], ["a", "c"], ["b", "c"]], "not numbered from 0 on"),
        ([1, 0, 2], [["a", "b"], ["a", "c"], ["b", "c"]], "not numbered from 0 on"),
        ([0, 1, 2], [["a", "c"], ["a", "b"], ["b", "c"]], "not in order, or one is listed twice"),
        ([0, 1, 2], [["a", "b"], ["a", "b"], ["b", "c"]], "not in order, or one is listed twice"),
        ([0, 1, 2], [["a", "b"], ["a", "c"], ["a", "c"]], "not in order, or one is listed twice"),
        ([0, 1, 2], [["a", "b"], ["a", "c"], ["b"]], "a set is none of the column"),
        ([0, 1], [["a", "b"], ["a", "c"]], "more sets than the manifest says"),
        ([0, 1, 2, 3], [["a", "b"], ["a", "c"], ["b", "c"], None], None),
        ([0, 1, 2, 3], [["a", "b"], ["a", "c"], ["b", "c"], ["b", "c"]], "more sets than the manifest says"),
    ],
)
def test_a_table_of_sets_is_in_order_and_whole(ids: list[int], lists: Any, said: str | None) -> None:
    statement, table = numbered_statement()
    bare = SetStatement.parse(column(), {"design": {}, "sets": 3}, lambda *_: DecoyDesign(d=3, eta=2))
    found = {"set": pa.array(ids, pa.int64()), "ill": pa.array(lists, pa.list_(pa.string()))}
    found = {next(iter(statement.side_columns())): found["set"], "ill": found["ill"]}
    if said is None:
        assert (bare.with_side(found).held.data == table.data).all()  # type: ignore[attr-defined]
        return
    with pytest.raises(ValueError, match=said):
        bare.with_side(found)


# ---------------------------------------------------------------- terms


def test_records_without_terms() -> None:
    statement = TermsStatement(Column(role=Role.QUASI_SENSITIVE, knowledge="signs.csv").over("signs", ABC))
    for lists in ([[], []], [["a"], []], [[], ["a", "c"]], []):
        cells = statement.from_arrow(pa.array(lists, pa.list_(pa.string())))
        assert isinstance(cells, TermCells)
        assert cells.counts().tolist() == [sum(t in own for own in lists) for t in "abc"]
        assert (len(cells), len(cells.data)) == (len(lists), sum(map(len, lists)))
        assert statement.to_arrow(cells).to_pylist() == lists
    for wrong in ([["b", "a"]], [["a", "a"]], [["a", None]], [None]):
        with pytest.raises(NorenError):
            statement.from_arrow(pa.array(wrong, pa.list_(pa.string())))


def test_which_records_have_terms() -> None:
    cells = TermCells.from_entries(3, 4, np.array([0, 0, 1, 3, 3, 3]), np.array([0, 2, 1, 0, 1, 2]))
    wanted = np.array([True, False, True])
    assert cells.has(wanted).tolist() == [True, False, False, True]
    assert cells.has(wanted, every=True).tolist() == [True, False, False, True]
    assert cells.has(np.array([True, True, False]), every=True).tolist() == [False, False, False, True]
    assert cells.has(np.array([True, True, False])).tolist() == [True, True, False, True]
    assert cells.has(np.zeros(3, bool)).tolist() == [False] * 4
    less = cells.keep(cells.data != 0)
    assert [less.data[a:b].tolist() for a, b in pairwise(less.offsets)] == [
        [2],
        [1],
        [],
        [1, 2],
    ]
    assert cells.take(slice(1, 3)).sizes.tolist() == [1, 0]
    assert cells.take(slice(3, 1)).sizes.tolist() == []
    assert cells.take(np.array([3, 0])).data.tolist() == [0, 1, 2, 0, 2]
    distinct, of = TermCells.concat([cells, cells]).distinct()
    assert len(distinct) == 4
    assert of.tolist() == [*of[:4].tolist(), *of[:4].tolist()]
