"""Reading Parquet, Arrow and frames: the same table gives the same domains, and stays as it was."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.engines import engine_for
from noren.engines.engine import Counting, Profile
from noren.errors import DataError
from noren.schema.domain import MISSING, Domain, bin_labels
from noren.sources.source import open_source
from noren.statements.texts import encode_bins, encode_labels

PEOPLE = pa.table(
    {
        "job": ["Nurse", "Clerk", "Ärztin", None, "Nurse", "", "運転手", "Clerk"],
        "age": [41, 7, 19, 41, 100, 9, None, 19],
        "score": [0.5, 2.0, float("nan"), -0.25, 41.0, 2.0, None, 0.0],
        "member": [True, False, None, True, True, False, True, False],
        "zip": ["01234", "12345", "01234", "00001", "12345", "12345", "01234", "00001"],
    }
)
EXPECTED = {
    "job": ({"Nurse": 2, "Clerk": 2, "Ärztin": 1, "運転手": 1}, 2),
    "age": ({"41": 2, "7": 1, "19": 2, "100": 1, "9": 1}, 1),
    "score": ({"0.5": 1, "2": 2, "-0.25": 1, "41": 1, "0": 1}, 2),
    "member": ({"true": 4, "false": 3}, 1),
    "zip": ({"01234": 3, "12345": 3, "00001": 2}, 0),
}


def profile(data: Any, **options: Any) -> Profile:
    source = open_source(data, **options)
    found = engine_for(source).profile(source, Counting(source.columns))
    found.demand(source.name)
    return found


def seen(data: Any, **options: Any) -> dict[str, tuple[dict[str, int], int]]:
    return {name: (column.counts, column.missing) for name, column in profile(data, **options).columns.items()}


def write_ipc(table: pa.Table, path: Path, *, stream: bool) -> Path:
    opener = pa.ipc.new_stream if stream else pa.ipc.new_file
    with opener(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return path


def given_as(form: str, folder: Path, table: pa.Table = PEOPLE) -> Any:
    if form == "parquet":
        pq.write_table(table, folder / "people.parquet", row_group_size=3)
        return folder / "people.parquet"
    if form in ("arrow", "stream"):
        return write_ipc(table, folder / f"people.{'arrow' if form == 'arrow' else 'arrows'}", stream=form == "stream")
    if form == "batch":
        return pa.RecordBatch.from_pydict(table.to_pydict(), table.schema)
    if form == "reader":
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3))
    return {
        "table": table,
        "polars": pl.from_arrow(table),
        "pandas": table.to_pandas(),
        "pandas with arrow types": table.to_pandas(types_mapper=pd.ArrowDtype),
    }[form]


FORMS = ["parquet", "arrow", "stream", "reader", "table", "batch", "polars", "pandas", "pandas with arrow types"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_shows_the_same_table(form: str, tmp_path: Path) -> None:
    assert seen(given_as(form, tmp_path)) == EXPECTED


@pytest.mark.parametrize("form", FORMS)
def test_small_batches_give_the_same_profile(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.sources.arrow.BATCH_ROWS", 2)
    source = open_source(given_as(form, tmp_path))
    assert [batch.num_rows for batch in source.batches(["age"])][:1] == [2]
    assert seen(source) == EXPECTED


def test_csv_and_parquet_of_one_table_have_the_same_domains(tmp_path: Path) -> None:
    table = PEOPLE.set_column(2, "score", pa.array([0.5, 2, None, -0.25, 41, 2, None, 0]))
    pv.write_csv(table, tmp_path / "people.csv")
    pq.write_table(table, tmp_path / "people.parquet")
    policy = nr.Policy(
        attributes={name: nr.plain() for name in table.column_names} | {"job": nr.sensitive()},
        require=[nr.models.FrequencyLDiversity(on="job", l=2)],
    )
    from_csv, from_parquet = (nr.anonymize(tmp_path / f"people.{kind}", policy) for kind in ("csv", "parquet"))
    assert from_csv.manifest.model_dump() == from_parquet.manifest.model_dump()
    kinds = {statement.name: statement.domain.kind for statement in from_csv.statements}
    assert kinds == {"job": "string", "age": "integer", "score": "number", "member": "boolean", "zip": "string"}


def test_pandas_types() -> None:
    frame = pd.DataFrame(
        {
            "category": pd.Categorical(["b", None, "a"], categories=["a", "b", "unused"]),
            "number": pd.Categorical([3, 1, 3]),
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "float": [1.0, np.nan, 3.0],
            "date": [datetime.date(2024, 2, 29), None, datetime.date(2024, 2, 29)],
            "flag": [True, False, True],
        },
        index=["x", "y", "z"],
    )
    assert seen(frame) == {
        "category": ({"a": 1, "b": 1}, 1),
        "number": ({"1": 1, "3": 2}, 0),
        "whole": ({"1": 1, "3": 1}, 1),
        "float": ({"1": 1, "3": 1}, 1),
        "date": ({"2024-02-29": 2}, 1),
        "flag": ({"true": 2, "false": 1}, 0),
    }


def test_an_unnamed_pandas_index_is_no_column_and_a_named_one_is() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3]})
    assert open_source(frame[frame.a > 1]).columns == ("a",)
    assert open_source(frame.set_index(pd.Index(["x", "y", "z"], name="person"))).columns == ("a", "person")


@pytest.mark.parametrize("cells", [[3, "Hidden"], ["Hidden", 3]])
def test_a_column_of_mixed_types_is_refused_without_a_quote(cells: list) -> None:
    with pytest.raises(DataError, match="cannot be read as an Arrow table") as caught:
        profile(pd.DataFrame({"a": cells}))
    assert "Hidden" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_repeated_column_names_are_refused() -> None:
    with pytest.raises(DataError, match="columns 1 and 2 have the same name"):
        open_source(pa.table([pa.array([1]), pa.array([2])], ["a", "a"]))
    with pytest.raises(DataError, match="cannot be read as an Arrow table"):
        open_source(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_polars_categories_and_large_types() -> None:
    frame = pl.DataFrame(
        {
            "category": pl.Series(["b", None, "a"], dtype=pl.Categorical),
            "enum": pl.Series(["x", "x", None], dtype=pl.Enum(["x", "y"])),
            "small": pl.Series([1, 2, 1], dtype=pl.UInt8),
            "nothing": [None, None, None],
        }
    )
    assert seen(frame) == {
        "category": ({"a": 1, "b": 1}, 1),
        "enum": ({"x": 2}, 1),
        "small": ({"1": 2, "2": 1}, 0),
        "nothing": ({}, 3),
    }


def test_numbers_are_written_the_same_whatever_their_type() -> None:
    numbers = [1e-7, -0.0, 0.1, 1e16, 41.0]
    table = pa.table({"double": numbers, "single": pa.array(numbers, pa.float32())})
    assert set(seen(table)["double"][0]) == {"1e-07", "0", "0.1", "1e+16", "41"}
    assert seen(table)["single"] == seen(table)["double"]
    assert seen(pa.table({"a": pa.array(numbers).dictionary_encode()}))["a"] == seen(table)["double"]


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[1, 2], [3]]),
        pa.array([{"x": 1}, {"x": 2}]),
        pa.array([b"a", b"b"]),
        pa.array([b"a", b"b"], pa.large_binary()),
        pa.array([b"ab", b"cd"], pa.binary(2)),
        pa.array([b"a", b"b"]).dictionary_encode(),
        pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval()),
    ],
    ids=lambda array: str(array.type).split("<")[0],
)
def test_cells_that_are_not_single_values_are_refused(cells: pa.Array) -> None:
    with pytest.raises(DataError, match=r"column 'a' has type .*, which is not a single value"):
        profile(pa.table({"a": cells}))


@pytest.mark.parametrize("form", FORMS)
def test_declared_markers_are_missing_in_every_form(form: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "job": ["?", "Nurse", "n/a", None],
            "group": pa.array(["?", "a", "a", "b"]).dictionary_encode(),
            "age": [41, -9, 19, -9],
            "ill": [True, False, False, True],
        }
    )
    found = profile(given_as(form, tmp_path, table), missing_values=["?", "n/a", "-9", "0", "1"])
    assert {name: (c.counts, c.missing) for name, c in found.columns.items()} == {
        "job": ({"Nurse": 1}, 3),
        "group": ({"a": 2, "b": 1}, 1),
        "age": ({"41": 1, "19": 1}, 2),
        "ill": ({"true": 2, "false": 2}, 0),
    }


@pytest.mark.parametrize("name", ["people.parquet", "people.arrow"])
def test_damaged_files_are_refused(name: str, tmp_path: Path) -> None:
    whole = given_as(name.split(".")[1], tmp_path).read_bytes()
    path = tmp_path / name
    for content in (b"", b"no table", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a readable"):
            profile(path)


def test_tables_without_rows_are_refused(tmp_path: Path) -> None:
    empty = PEOPLE.slice(0, 0)
    for form in FORMS:
        with pytest.raises(DataError, match="no records: it has a header but no rows"):
            profile(given_as(form, tmp_path, empty))


@pytest.mark.parametrize("empty", [None, ""])
def test_records_with_missing_cells_can_be_dropped_however_a_cell_is_missing(empty: str | None) -> None:
    table = pa.table(
        {"job": ["Nurse", empty, "Clerk", "Cook"], "pay": [1.0, 2.0, float("nan"), 4.0], "k": list("abcd")}
    )
    policy = nr.Policy(
        attributes={"job": nr.sensitive(missing="drop"), "pay": nr.plain(missing="drop"), "k": nr.plain()},
        require=[nr.models.ExpandedK(on="job", k=2)],
        method=nr.methods.Decoys(parameters={"job": nr.methods.DecoyParameters(eta=2)}),
    )
    assert nr.anonymize(table, policy).frame().sort("k")["k"].to_list() == ["a", "d"]


def test_an_empty_text_has_no_bin_but_is_missing() -> None:
    edges = (0.0, 10.0, 20.0)
    cells = pa.array(["3", "", " 20 ", None])
    domain = Domain((*bin_labels(edges), MISSING), edges=edges)
    codes, missing, outside = encode_bins(cells, "age", domain)
    assert [codes.tolist(), missing, outside] == [[0, 2, 1, 2], 2, 0]


def test_the_text_missing_is_the_missing_category() -> None:
    codes, unknown = encode_labels(pa.array(["a", MISSING, None]), "x", Domain(("a", MISSING)))
    assert [codes.tolist(), unknown] == [[0, 1, 1], 0]


def content(data: Any) -> Any:
    """Everything that could have changed. NaN differs from itself, its text does not."""
    if isinstance(data, Path):
        return data.read_bytes(), data.stat().st_mtime_ns
    if isinstance(data, pd.DataFrame):
        return repr(data.to_dict())
    return repr(data.to_dicts() if isinstance(data, pl.DataFrame) else data.to_pydict())


@pytest.mark.parametrize("form", ["csv", *(form for form in FORMS if form != "reader")])
def test_nothing_of_the_original_is_modified(form: str, tmp_path: Path) -> None:
    if form == "csv":
        data = tmp_path / "people.csv"
        pv.write_csv(PEOPLE, data)
    else:
        data = given_as(form, tmp_path)
    before = content(data)
    policy = nr.Policy(
        attributes={name: nr.plain() for name in PEOPLE.column_names} | {"job": nr.sensitive()},
        require=[nr.models.FrequencyLDiversity(on="job", l=2)],
    )
    assert nr.anonymize(data, policy).records == 8
    assert content(data) == before


def test_nan_among_the_entries_of_a_dictionary_is_missing() -> None:
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), pa.array([1.5, float("nan"), 2.5]))
    column = profile(pa.table({"a": cells})).columns["a"]
    assert (column.counts, column.missing) == ({"1.5": 2, "2.5": 1}, 1)
