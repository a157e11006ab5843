"""Descriptors are compared piece by piece, whatever stands in the place of a piece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noren.errors import ReleaseError
from noren.release.closed import (
    _demand_statistics,
    _differences,
    columns_of,
    demand_columns,
    demand_descriptor,
    demand_files,
    demand_order,
    demand_pages,
)
from noren.release.store import CsvStore, store_for


@pytest.mark.parametrize("found", [5, None, "text", ["a"], {"b": 1}, {"a": 2}, {"a": 1.0}, {"a": True}])
def test_another_kind_of_thing_is_a_difference(found: Any) -> None:
    assert _differences(found, {"a": 1}, "here", same=True)
    assert _differences({"x": found}, {"x": {"a": 1}}, "", same=True)
    assert _differences({"a": 1}, found, "here", same=True)
    assert not _differences({"a": 1}, {"a": 1}, "here", same=True)


def test_an_earlier_format_may_lack_what_came_later_and_words_nothing_otherwise() -> None:
    assert not _differences({"a": 1}, {"a": 1, "later": 2}, "", same=False)
    assert _differences({"a": 1}, {"a": 1, "later": 2}, "", same=True) == ["later"]
    for name in ("title", "description"):
        assert _differences({name: "said otherwise"}, {name: "said so"}, "", same=False) == [name]


def test_what_was_written_is_read_with_its_apostrophes_taken_off(tmp_path: Path) -> None:
    store = store_for(tmp_path / "data.csv")
    assert isinstance(store, CsvStore)
    assert store.escaped


# ------------------------------------------------------------------ files, columns and bytes


def written(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, store_schema=False, **options)
    return path


def test_a_directory_holds_its_files_alone(tmp_path: Path) -> None:
    for name in ("data.csv", "datapackage.json"):
        (tmp_path / name).touch()
    demand_files(tmp_path, ["data.csv", "datapackage.json", "README.md"])
    with pytest.raises(ReleaseError, match=r"it has 'data\.csv', which its manifest does not describe"):
        demand_files(tmp_path, ["datapackage.json"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_stand_in_their_order(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{kind}"
    if kind == "csv":
        path.write_text('a,"b"\n1,2\n')
    else:
        written(path, pa.table({"a": [1], "b": [2]}))
    demand_columns(path, ["a", "b"])
    with pytest.raises(ReleaseError, match="it has the column 'b', which its manifest does not describe"):
        demand_columns(path, ["a"])
    for titles in (["b", "a"], ["a", "b", "c"], ["a", "b", "b"]):
        with pytest.raises(ReleaseError, match="its columns differ from those of the manifest"):
            demand_columns(path, titles)


def test_an_empty_text_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "data.csv").touch()
    assert columns_of(tmp_path / "data.csv") == []


def test_remarks_in_a_file_are_refused(tmp_path: Path) -> None:
    table = pa.table({"a": [1]}).replace_schema_metadata({"who": "me"})
    path = tmp_path / "data.parquet"
    pq.write_table(table, path)
    with pytest.raises(ReleaseError, match="its metadata hold 'ARROW:schema', 'who'"):
        columns_of(path)


def test_descriptors_that_say_the_same_pass(tmp_path: Path) -> None:
    demand_descriptor(tmp_path, {"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, True)
    demand_descriptor(tmp_path, {"b": 1}, {"a": 2, "b": 1}, False)  # an earlier format lacks what came later
    for other in ({"b": 1, "a": 2}, {"c": [{"b": 1, "a": 2}]}):
        written = {"a": 2, "b": 1} if "a" in other else {"c": [{"a": 2, "b": 1}]}
        with pytest.raises(ReleaseError, match="its keys are not in the written order"):
            demand_descriptor(tmp_path, other, written, True)
    with pytest.raises(ReleaseError, match="a number is not in the written form"):
        demand_order(tmp_path, {"a": 2.0}, {"a": 2})
    with pytest.raises(ReleaseError, match=r"a\[1\]\.b is not what its manifest describes"):
        demand_descriptor(tmp_path, {"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, True)
    assert _differences([1], [1, 2], "", True) == ["it"]
    assert _differences([1, 2], [1, 2], "", True) == []
    assert _differences({"a": {"new": 1}}, {"a": {}}, "", True) == ["a.new"]


# ---------------------------------------------------------------------- bytes

TABLE = pa.table(
    {
        "number": pa.array([3, 1, 2, 2]),
        "text": pa.array(["b", "a", None, "c"]),
        "set": pa.array([[1, 2], [], None, [5]]),
        "nothing": pa.array([None] * 4, pa.int64()),
    }
)


@pytest.mark.parametrize("options", [{}, {"row_group_size": 2}, {"use_dictionary": False}, {"write_statistics": False}])
def test_what_was_written_has_no_bytes_besides(options: dict[str, Any], tmp_path: Path) -> None:
    demand_pages(written(tmp_path / "data.parquet", TABLE, **options))


def test_no_rows_have_no_pages(tmp_path: Path) -> None:
    pq.ParquetWriter(tmp_path / "data.parquet", TABLE.schema, store_schema=False).close()
    demand_pages(tmp_path / "data.parquet")
    (tmp_path / "data.csv").write_text("a\n")
    demand_pages(tmp_path / "data.csv")


def test_bytes_between_pages_and_footer_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "data.parquet", TABLE)
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    path.write_bytes(whole[:-footer] + b"secret" + whole[-footer:])
    with pytest.raises(ReleaseError, match="it holds bytes that belong to no column"):
        demand_pages(path)
    path.write_bytes(whole[:-8] + b"\0" + (footer - 7).to_bytes(4, "little") + whole[-4:])
    with pytest.raises(ReleaseError, match="its footer has bytes"):
        demand_pages(path)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("number", pa.array([3, 1, 2, 4])),
        ("number", pa.array([3, 0, 2, 2])),
        ("text", pa.array(["b", "a", None, "b"])),
        ("set", pa.array([[1, 2], [3], None, [4]])),
        ("text", pa.array([1, 2, 3, 4])),
    ],
)
def test_statistics_are_of_the_cells(name: str, cells: pa.Array, tmp_path: Path) -> None:
    """The smallest and the largest value of a column stand in the footer, for whoever reads it alone."""
    path = written(tmp_path / "data.parquet", TABLE)
    group = pq.read_metadata(path).row_group(0)
    _demand_statistics(path, group, TABLE)
    coded = TABLE.set_column(1, "text", TABLE.column("text").combine_chunks().dictionary_encode())
    _demand_statistics(path, group, coded)
    other = TABLE.set_column(TABLE.column_names.index(name), name, cells)
    with pytest.raises(ReleaseError, match="its statistics name values that its cells do not have"):
        _demand_statistics(path, group, other)
