"""Cells at their ends: nothing, one, the last code and the one beyond, texts that stand for no value."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import DataError, ModelDoesNotApply, ReleaseError
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.roles import Role
from noren.statements import (
    CodeCells,
    ExactStatement,
    GroupTable,
    MeanStatement,
)
from noren.statements.batch import number
from noren.statements.mean import MOST_DECIMALS, mean_cells
from noren.statements.set_cells import SetCells, code_dtype, mask_dtype
from noren.statements.texts import as_dictionary, encode_bins, encode_labels, label_counts, to_numbers

ABC = Domain(("a", "b", "c"))


def column(domain: Domain | None = ABC, role: Role = Role.SENSITIVE) -> Column:
    return Column(role=role).over("ill", domain)


# ---------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("values", "codes", "bad"),
    [
        (("a", "b"), [0, 1, None, None, None], 3),
        (("a", "b", MISSING), [0, 1, 2, None, 2], 1),
        (("a", "b", OTHER), [0, 1, None, 2, None], 2),
        (("a", OTHER, "b", MISSING), [0, 2, 3, 1, 3], 0),
    ],
)
def test_texts_find_their_values_and_the_rest_is_counted(values: tuple[str, ...], codes: list[Any], bad: int) -> None:
    found, strange = encode_labels(pa.chunked_array([["a", "b", None, "z", ""]]), "x", Domain(values))
    assert strange == bad
    for got, wanted in zip(found.tolist(), codes, strict=True):
        assert wanted is None or got == wanted
    assert found.dtype == np.uint8


@pytest.mark.parametrize(
    ("values", "texts", "codes"),
    [
        (pa.array([41.0, 1e-7, -0.0, None, float("nan")]), ["41", "1e-07", "0"], [0, 1, 2, -1, -1]),
        (pa.array([True, False, None]), ["true", "false"], [0, 1, -1]),
        (pa.array(["a", "", "a", None]), ["a", ""], [0, -1, 0, -1]),
        (pa.array(["b", "a", None]).dictionary_encode(), ["b", "a"], [0, 1, -1]),
        (pa.array([], pa.string()), [], []),
    ],
)
def test_a_column_as_texts_and_numbers(values: Any, texts: list[str], codes: list[int]) -> None:
    found, positions = as_dictionary(values, "x")
    assert positions.tolist() == codes
    shown = found.to_pylist()
    assert [shown[code] for code in codes if code >= 0] == [texts[code] for code in codes if code >= 0]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}]),
        pa.array([b"x"]),
        pa.array([b"x"], pa.large_binary()),
        pa.array([b"xy"], pa.binary(2)),
    ],
)
def test_what_is_no_single_value_is_refused(values: Any) -> None:
    with pytest.raises(DataError, match=r"'x' has type .*, which is not a single value"):
        as_dictionary(values, "x")


def test_counts_of_texts() -> None:
    for missing in (0, 2):
        cells = pa.chunked_array([["b", "a", "b"] + [None] * missing])
        labels, counts, lost = label_counts(cells, "x")
        assert (dict(zip(labels, counts.tolist(), strict=True)), lost) == ({"b": 2, "a": 1}, missing)
    part = pa.array(["b", "a", "b"]).dictionary_encode().slice(0, 1)
    assert label_counts(part, "x")[0] == ["b"], "what does not occur is not named"
    assert label_counts(pa.array([], pa.string()), "x")[2] == 0


def test_bins_hold_their_lower_ends_and_the_last_its_upper_one() -> None:
    domain = Domain(("[0, 10)", "[10, 20]", MISSING), edges=(0.0, 10.0, 20.0), source="bins")
    cells = pa.chunked_array([["0", "9.99", "10", "20", None, "20.01", "-0.01", " 3 "]])
    codes, missing, outside = encode_bins(cells, "x", domain)
    assert (codes[[0, 1, 2, 3, 4, 7]].tolist(), missing, outside) == ([0, 0, 1, 1, 2, 0], 1, 2)
    with pytest.raises(DataError, match="'x' has bins but holds values that are not numbers"):
        encode_bins(pa.chunked_array([["3", "x"]]), "x", domain)
    assert to_numbers(pa.array(["x"])) is None


# ---------------------------------------------------------------- codes


@pytest.mark.parametrize(
    ("codes", "fits"), [([0, 2], True), ([3], False), ([-1, 0], False), ([-1, 3], False), ([], True)]
)
def test_codes_lie_in_the_domain(codes: list[int], fits: bool) -> None:
    statement = ExactStatement(column(role=Role.PLAIN))
    cells = CodeCells(3, np.array(codes, np.int64))
    if fits:
        assert statement.check_cells(cells).tolist() == codes
        return
    with pytest.raises(ModelDoesNotApply, match="holds a code outside its 3 values"):
        statement.check_cells(cells)


def test_other_cells_than_the_statement_says() -> None:
    for wrong in (CodeCells(4, np.zeros(1, np.int64)), SetCells(3, np.ones(1, np.uint8))):
        with pytest.raises(ModelDoesNotApply, match=r"does not hold the declared 3 values"):
            ExactStatement(column(role=Role.PLAIN)).check_cells(wrong)
    assert ExactStatement(column(role=Role.PLAIN)).label(2) == "c"
    assert ExactStatement(column(role=Role.PLAIN)).label(3) == "value 3"


@pytest.mark.parametrize("keys", [[], [0], [5, 3, 5, 0], [1 << 40, 3, 1 << 40], [(1 << 24) - 1, 1 << 24, 7]])
def test_keys_are_numbered_in_ascending_order(keys: list[int]) -> None:
    distinct, of = number(np.array(keys, np.int64))
    assert distinct.tolist() == sorted(set(keys))
    assert distinct[of].tolist() == keys


@pytest.mark.parametrize(
    ("d", "code", "mask"), [(1, 1, 1), (8, 1, 1), (9, 1, 2), (16, 1, 2), (17, 1, 4), (33, 1, 8), (64, 1, 8)]
)
def test_the_smallest_types(d: int, code: int, mask: int) -> None:
    assert (code_dtype(d).itemsize, mask_dtype(d).itemsize) == (code, mask)
    assert [code_dtype(one).itemsize for one in (256, 257, 65536, 65537)] == [1, 2, 2, 4]
    with pytest.raises(ValueError, match="65 values do not fit"):
        mask_dtype(65)


# ---------------------------------------------------------------- groups


@pytest.mark.parametrize(
    ("rows", "fits"),
    [
        ([(0, 0, 1), (0, 2, 1), (1, 0, 3)], True),
        ([], True),
        ([(-1, 0, 1)], False),
        ([(2, 0, 1)], False),
        ([(0, -1, 1)], False),
        ([(0, 3, 1)], False),
        ([(0, 0, 0)], False),
        ([(0, 0, 1), (0, 0, 1)], False),
        ([(0, 1, 1), (0, 0, 1)], False),
        ([(1, 0, 1), (0, 0, 1)], False),
    ],
)
def test_a_group_lists_every_value_once_in_order(rows: list[tuple[int, int, int]], fits: bool) -> None:
    group, value, count = np.array(rows, np.int64).reshape(-1, 3).T
    if fits:
        table = GroupTable(2, 3, group, value, count)
        assert int(table.sizes.sum()) == int(table.totals.sum()) == sum(one[2] for one in rows)
        assert (len(table.sizes), len(table.totals)) == (2, 3)
        return
    with pytest.raises(ValueError, match="a group table lists every value of a group once"):
        GroupTable(2, 3, group, value, count)


def test_rows_of_groups_one_after_the_other() -> None:
    table = GroupTable.from_codes(3, 2, np.array([0, 0, 2, 2, 2]), np.array([1, 0, 1, 1, 0]))
    rows, bounds = table.rows(np.array([2, 1, 0, 2]))
    assert [table.value[rows[a:b]].tolist() for a, b in pairwise(bounds)] == [
        [0, 1],
        [],
        [0, 1],
        [0, 1],
    ]
    assert table.count[rows[bounds[0] : bounds[1]]].tolist() == [1, 2]


# ---------------------------------------------------------------- means


@pytest.mark.parametrize(
    ("numbers", "decimals"),
    [([0.0, 10.0], 2), ([0.0, 9.99], 3), ([0.0, 1e5], 0), ([1.0, 1.0], 0), ([0.0, 1e-12], MOST_DECIMALS)],
)
def test_means_are_rounded_by_the_reach_of_the_numbers(numbers: list[float], decimals: int) -> None:
    own = column(Domain(("1", "2"), "integer"), Role.QUASI_IDENTIFIER)
    statement, _ = mean_cells(own, np.array(numbers), np.zeros(2, np.int64), np.ones(2, bool))
    assert statement.decimals == decimals


def test_means_are_of_published_records_that_have_a_number() -> None:
    own = column(Domain(("1", "2"), "integer"), Role.QUASI_IDENTIFIER)
    numbers = np.array([1.0, 2.0, np.nan, 50.0, np.nan, 7.0])
    classes = np.array([0, 0, 0, 1, 2, 3])
    keep = np.array([True, True, True, True, True, False])
    statement, cells = mean_cells(own, numbers, classes, keep)
    shown = [statement.means[code] for code in cells.data[:5]]
    assert shown == [1.5, 1.5, 1.5, 50.0, None]
    assert 7.0 not in statement.means, "a mean that nobody published shows"
    assert statement.label(cells.data[0]) == "1.50"
    assert statement.label(cells.data[4]) == "(missing)"
    there = cells.take(np.arange(5))
    assert statement.holds_truth(there, numbers[:5])
    off = numbers[:5].copy()
    off[0] += 0.03
    assert not statement.holds_truth(there, off)
    off[0] = 1.0 + 2 * 0.5 * 10.0**-statement.decimals * 0.99
    assert statement.holds_truth(there, off), "within the rounding"
    lost = numbers[:5].copy()
    lost[3] = np.nan
    assert not statement.holds_truth(there, lost), "a class with a mean has a number"
    lost = numbers[:5].copy()
    lost[4] = 3.0
    assert not statement.holds_truth(there, lost), "a class without one has none"
    some = cells.take(np.array([0, 1, 2]))
    assert statement.holds_truth(some, numbers[:3])


@pytest.mark.parametrize("decimals", [-1, MOST_DECIMALS + 1])
def test_decimals_of_means(decimals: int) -> None:
    own = column(Domain(("1", "2"), "integer"), Role.QUASI_IDENTIFIER)
    for fine in (0, MOST_DECIMALS):
        assert MeanStatement.parse(own, {"means": [1.0], "decimals": fine}, None).decimals == fine  # type: ignore[arg-type, attr-defined]
    with pytest.raises(ValueError, match=r"greater than or equal to 0|less than or equal to 12"):
        MeanStatement.parse(own, {"means": [1.0], "decimals": decimals}, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a mean is listed twice"):
        MeanStatement.parse(own, {"means": [1.0, 1.0], "decimals": 1}, None)  # type: ignore[arg-type]


def test_means_come_back_from_texts_and_numbers() -> None:
    statement = MeanStatement(column(None, Role.QUASI_IDENTIFIER), (1.5, None, 2.0), 1)
    for given in (pa.array(["1.5", "", "2"]), pa.array([1.5, None, 2.0]), pa.chunked_array([[1.5], [None, 2.0]])):
        assert statement.from_arrow(given).data.tolist() == [0, 1, 2]
    with pytest.raises(ReleaseError, match="should hold means and does not"):
        statement.from_arrow(pa.array(["x"]))
    with pytest.raises(ReleaseError, match="a mean that the manifest does not list"):
        statement.from_arrow(pa.array([1.4]))
