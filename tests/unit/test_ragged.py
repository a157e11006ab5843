"""Lists of different lengths in one array, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.ragged import (
    among,
    chosen,
    different,
    distinct_of,
    first_of,
    in_order,
    offsets_of,
    owners,
    ranges,
    row_numbers,
    rows_in_order,
    runs,
)

LENGTHS = st.lists(st.integers(0, 4), max_size=8)


@given(LENGTHS)
def test_offsets_and_owners(lengths: list[int]) -> None:
    offsets = offsets_of(lengths)
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    assert owners(offsets).tolist() == [i for i, length in enumerate(lengths) for _ in range(length)]


@given(LENGTHS, st.data())
def test_ranges(lengths: list[int], data: st.DataObject) -> None:
    starts = [data.draw(st.integers(-9, 9)) for _ in lengths]
    stops = [start + length for start, length in zip(starts, lengths, strict=True)]
    expected = [x for start, stop in zip(starts, stops, strict=True) for x in range(start, stop)]
    assert ranges(np.array(starts, int), np.array(stops, int)).tolist() == expected


@given(LENGTHS, st.data())
def test_chosen_rows_keep_their_entries(lengths: list[int], data: st.DataObject) -> None:
    picked = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=6)) if lengths else []
    offsets = offsets_of(lengths)
    entries = np.arange(offsets[-1]) * 10
    mine, places = chosen(offsets, np.array(picked, int))
    lists = [entries[offsets[row] : offsets[row + 1]].tolist() for row in picked]
    assert [part.tolist() for part in np.split(entries[places], mine[1:-1])][: len(picked)] == lists
    assert mine.tolist() == offsets_of([len(part) for part in lists]).tolist()


@given(st.lists(st.integers(0, 2), max_size=9))
def test_runs(keys: list[int]) -> None:
    expected = [i for i in range(len(keys)) if i == 0 or keys[i] != keys[i - 1]] + [len(keys)]
    assert runs(np.array(keys, int)).tolist() == expected
    assert runs(np.column_stack([np.zeros(len(keys), int), np.array(keys, int)])).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 5)), max_size=12))
@pytest.mark.parametrize("factor", [1, 1 << 40])
def test_rows_are_numbered_in_lexicographic_order(factor: int, rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T * np.array([[factor], [1], [factor]])
    numbers = row_numbers(list(columns), [4 * factor, 2, 6 * factor], len(rows))
    assert numbers.tolist() == [sorted(set(rows)).index(row) for row in rows]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 1), st.integers(-2, 5)), max_size=12))
@pytest.mark.parametrize("factor", [1, 1 << 40])
def test_rows_stand_in_lexicographic_order_as_they_came(factor: int, rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T * np.array([[factor], [1], [factor]])
    order, bounds = rows_in_order(list(columns), len(rows))
    assert order.tolist() == sorted(range(len(rows)), key=rows.__getitem__)
    assert bounds.tolist() == runs(np.array(sorted(rows), np.int64).reshape(-1, 3)).tolist()


def test_many_wide_rows_stand_in_lexicographic_order() -> None:
    """Keys that neither fit a table nor one number beside their place."""
    rng = np.random.default_rng(3)
    columns = [rng.integers(-7, 8, 5_000).astype(np.int8), rng.integers(0, 1 << 40, 5_000) // (1 << 38) << 38]
    columns += [rng.integers(0, 200, 5_000).astype(np.uint8), rng.integers(0, 3, 5_000) << 20]
    order, bounds = rows_in_order(columns, 5_000)
    assert order.tolist() == np.lexsort(columns[::-1]).tolist()
    assert bounds.tolist() == runs(np.column_stack(columns)[order]).tolist()
    sizes = [15, 1 << 40, 200, 3 << 20]
    numbers = row_numbers([columns[0].astype(np.int64) + 7, *columns[1:]], sizes, 5_000)
    assert numbers[order].tolist() == owners(bounds).tolist()
    assert first_of(numbers).tolist() == order[bounds[:-1]].tolist()


def test_rows_without_columns_are_all_alike() -> None:
    assert [part.tolist() for part in rows_in_order([], 3)] == [[0, 1, 2], [0, 3]]
    assert row_numbers([], [], 3).tolist() == [0, 0, 0]
    assert row_numbers([], [], 0).tolist() == []


@pytest.mark.parametrize("many", [0, 1, 2, 999, 1_000, 5_000])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 7), (-5, 5), (-(1 << 62), 1 << 62), (0, 1 << 51), (0, 1 << 52)])
def test_the_order_of_keys_is_a_stable_one(many: int, low: int, high: int) -> None:
    """Whether place and key fit into one number or not."""
    keys = np.random.default_rng(many).integers(low, high, many)
    keys[: many // 3] = keys[many // 3 : 2 * (many // 3)]
    assert in_order(keys).tolist() == sorted(range(many), key=keys.tolist().__getitem__)
    expected = np.unique(keys, return_index=True, return_inverse=True)
    assert [part.tolist() for part in distinct_of(keys)] == [part.reshape(-1).tolist() for part in expected]


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint32, np.uint64])
def test_the_order_of_keys_of_any_kind(kind: type) -> None:
    keys = np.random.default_rng(3).integers(0, 200 if kind is np.uint8 else 30_000, 4_000).astype(kind)
    if kind is np.uint64:
        keys[:100] += np.uint64(1 << 63)
    assert in_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()
    assert distinct_of(keys)[0].dtype == kind


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5)))
def test_different_keys_and_membership(keys: list[int], wanted: list[int]) -> None:
    assert different(np.array(keys, int)).tolist() == sorted(set(keys))
    assert among(np.array(keys, int), np.array(wanted, int)).tolist() == [key in set(wanted) for key in keys]
