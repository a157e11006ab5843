"""Cells in files: the row groups they are written in, the titles they stand under, and texts behind apostrophes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noren.errors import ReleaseError
from noren.release.store import (
    CsvStore,
    MemoryStore,
    ParquetStore,
    read_side,
    rows_at_once,
    store_for,
    titles_of,
    write_data,
    write_side,
)
from noren.statements import CodeCells
from tests.statements import exact_column, group_column, term_column

A = exact_column("a", 50)


def cells(rows: int, start: int = 0) -> dict[str, CodeCells]:
    return {"a": CodeCells(50, ((np.arange(rows) + start) % 50).astype(np.uint8))}


def test_batches_are_shorter_where_rows_are_wide() -> None:
    """Eight million values at once: a column of terms has room for 32 in a row."""
    wide = term_column("t", ("x",), None)
    assert rows_at_once([A]) == 65_536
    assert rows_at_once([wide] * 4) == 65_536
    assert rows_at_once([wide] * 8) == 32_768
    assert rows_at_once([wide] * 1000) == 1024


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([1024], [1024]),
        ([1023], [1023]),
        ([1025], [1024, 1]),
        ([2048], [1024, 1024]),
        ([1000, 24, 24], [1024, 24]),
        ([1000, 1072, 3], [1024, 1024, 27]),
        ([700, 3000], [1024, 1024, 1024, 628]),
    ],
)
def test_row_groups_are_full_but_the_last(
    sizes: list[int], groups: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noren.release.store.MOST_ROWS", 1024)
    path = tmp_path / "data.parquet"
    starts = np.cumsum([0, *sizes])
    assert write_data(path, [A], [cells(n, start) for n, start in zip(sizes, starts, strict=False)]) == sum(sizes)
    found = pq.read_metadata(path)
    assert [found.row_group(number).num_rows for number in range(found.num_row_groups)] == groups
    assert pq.read_metadata(path).metadata is None  # nothing but its cells
    read = [batch["a"].data for batch in ParquetStore(path).batches([A])]  # type: ignore[attr-defined]
    assert np.concatenate(read).tolist() == cells(sum(sizes))["a"].data.tolist()


def test_row_groups_can_be_read_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.release.store.MOST_ROWS", 1024)
    paths = [tmp_path / "data-00000.parquet", tmp_path / "data-00001.parquet"]
    write_data(paths[0], [A], [cells(2000)])
    write_data(paths[1], [A], [cells(10)])
    store = store_for(paths[0], True, paths[1])
    assert isinstance(store, ParquetStore)
    assert store.parts() == [(paths[0], (0, 1)), (paths[1], (0,))]
    lengths = [len(batch["a"]) for batch in store.part(paths[0], [1], [A])]
    assert lengths == [976]
    assert [len(batch["a"]) for batch in store.batches([A])] == [1024, 976, 10]


def test_groups_are_numbers_in_a_file(tmp_path: Path) -> None:
    pay, path = group_column("pay", 3), tmp_path / "data.parquet"
    pq.write_table(pa.table({"pay": pa.array([2, 0], pa.int64())}), path)
    (batch,) = ParquetStore(path).batches([pay])
    assert pay.to_arrow(batch["pay"]).to_pylist() == [2, 0]


def test_nothing_to_write_makes_no_file(tmp_path: Path) -> None:
    assert write_data(tmp_path / "data.parquet", [A], []) == 0
    assert not (tmp_path / "data.parquet").exists()


# ---------------------------------------------------------------------- titles


def test_a_title_says_that_a_column_holds_groups_unless_it_is_taken() -> None:
    pay = group_column("pay", 3)
    titled = titles_of(Path("data.csv"), [A, pay])
    assert titled == {"a": "a", "pay": pay.csv_title}
    assert pay.csv_title != "pay"
    assert titles_of(Path("data.parquet"), [A, pay]) == {"a": "a", "pay": "pay_group"}
    taken = exact_column(pay.csv_title, 2)
    assert titles_of(Path("data.csv"), [taken, pay]) == {pay.csv_title: pay.csv_title, "pay": "pay"}
    formula = exact_column("=1+1", 2)
    assert titles_of(Path("data.csv"), [formula]) == {"=1+1": "'=1+1"}


@pytest.mark.parametrize("title", ["pay", "titled"])
def test_a_column_is_found_under_its_name_or_its_title(title: str, tmp_path: Path) -> None:
    pay, path = group_column("pay", 3), tmp_path / "data.csv"
    path.write_text(f"{pay.csv_title if title == 'titled' else title}\n2\n0\n")
    (batch,) = CsvStore(path).batches([pay])
    assert pay.to_arrow(batch["pay"]).to_pylist() == [2, 0]
    with pytest.raises(ReleaseError, match="a column that the manifest describes is missing"):
        list(CsvStore(path).batches([pay, A]))


def test_a_name_like_a_formula_is_found_behind_its_apostrophe(tmp_path: Path) -> None:
    column, path = exact_column("=a", 2, values=("+b", "x")), tmp_path / "data.csv"
    write_data(path, [column], [{"=a": CodeCells(2, np.array([1, 0, 0], np.uint8))}])
    assert path.read_text().splitlines() == ['"\'=a"', '"x"', '"\'+b"', '"\'+b"']
    (batch,) = CsvStore(path).batches([column])
    assert batch["=a"].data.tolist() == [1, 0, 0]  # type: ignore[attr-defined]
    path.write_text("=a\nx\n+b\n")  # as early versions wrote it
    (batch,) = CsvStore(path, escaped=False).batches([column])
    assert batch["=a"].data.tolist() == [1, 0]  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- tables beside


def test_tables_beside_come_back(tmp_path: Path) -> None:
    columns = {"group": pa.array([0, 1]), "value": pa.array(["=1", "'it"])}
    write_side(tmp_path / "groups-1.csv", columns)
    assert read_side(tmp_path / "groups-1.csv")["value"].to_pylist() == ["=1", "'it"]
    assert read_side(tmp_path / "groups-1.csv", False)["value"].to_pylist() == ["'=1", "''it"]
    short = columns | {"value": pa.array(["=1"])}
    write_side(tmp_path / "sets.parquet", short)
    found = read_side(tmp_path / "sets.parquet", texts=["value"])
    assert {name: column.to_pylist() for name, column in found.items()} == {"group": [0, 1], "value": ["=1", None]}
    assert pq.read_metadata(tmp_path / "sets.parquet").metadata is None  # nothing but its cells


# ------------------------------------------------------------------ in memory


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 20, 40])
def test_every_row_comes_once_in_parts_of_a_size(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.release.store.MOST_ROWS", 2)
    store = MemoryStore({"a": CodeCells(50, np.arange(rows))})
    parts = [batch["a"].data.tolist() for batch in store.batches([exact_column("a", 50)])]  # type: ignore[attr-defined]
    assert [row for part in parts for row in part] == [*range(rows)]
    assert [len(part) for part in parts[:-1]] == [8] * ((rows - 1) // 8)
