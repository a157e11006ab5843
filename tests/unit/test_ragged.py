"""Lists of different lengths in one array, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.ragged import chosen, offsets_of, owners, ranges, row_numbers, runs

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


def test_rows_without_columns_are_all_alike() -> None:
    assert row_numbers([], [], 3).tolist() == [0, 0, 0]
    assert row_numbers([], [], 0).tolist() == []
