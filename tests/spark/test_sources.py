"""The cluster counts the records that one machine counts, whatever the file or the table is like."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyarrow import feather

import noren as nr
from noren.cli.main import main
from noren.engines.engine import Counting
from noren.engines.local import LocalEngine
from noren.errors import NorenError
from noren.sources.source import Writing
from tests.contracts.test_sources import CASES, COLUMNS, TABLE, Case, Records, demand_case
from tests.s3 import running

pytestmark = pytest.mark.slow  # at every change tests/contracts/test_sources.py reads what tasks read


def counted(engine: Any, data: Any, writing: Writing, columns: Any = None) -> Mapping[str, Any]:
    """How often every value occurs, and how many cells are missing, by column."""
    source = engine.opened(data, writing)
    found = engine.profile(source, Counting(list(columns or source.columns)))
    values = {name: (dict(sorted(one.counts.items())), one.missing) for name, one in found.columns.items()}
    return {"records": found.records, **values}


def tallied(rows: Records) -> Mapping[str, Any]:
    out: dict[str, Any] = {"records": len(rows)}
    for name, cells in zip(COLUMNS, zip(*rows, strict=True), strict=True):
        there = [cell for cell in cells if cell is not None]
        out[name] = ({cell: there.count(cell) for cell in sorted(set(there))}, len(cells) - len(there))
    return out


@pytest.mark.parametrize("name", CASES)
def test_files_have_the_same_records_on_the_cluster(name: str, engine: Any, tmp_path: Path) -> None:
    case = CASES[name]
    writing = Writing(**case.options)
    asked = Case(case.files, None if case.records is None else tallied(case.records), case.options)  # type: ignore[arg-type]
    demand_case(asked, lambda place, _: counted(engine, place, writing, COLUMNS), tmp_path / "t")  # type: ignore[arg-type, return-value]


MOMENT = dt.datetime(2020, 3, 29, 2, 30, 0, 1)
TYPES = {
    "wide": pa.array([9007199254740993, -9223372036854775808, None]),
    "unsigned": pa.array([18446744073709551615, 0, None], pa.uint64()),
    "small": pa.array([255, 0, None], pa.uint8()),
    "decimal": pa.array([Decimal("12345678901234567890.10"), Decimal("-0.50"), None]),
    "float": pa.array([0.1, 1e300, float("nan")]),
    "single": pa.array(np.array([0.1, 3e38, np.nan], np.float32)),
    "half": pa.array(np.array([0.5, 2, np.nan], np.float16)),
    "whole": pa.array([41.0, -0.0, None]),
    "day": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "old day": pa.array([dt.date(1582, 10, 4), dt.date(1582, 10, 15), None]),
    "moment": pa.array([MOMENT, dt.datetime(1850, 1, 1), None]),
    "second": pa.array([MOMENT.replace(microsecond=0), None, None], pa.timestamp("s")),
    "zoned": pa.array([MOMENT, dt.datetime(2020, 10, 25, 2, 30), None], pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([dt.time(1, 2, 3), None, None]),
    "boolean": pa.array([True, False, None]),
    "text": pa.array(["", " a ", None]),
    "large": pa.array(["ö", "b\nc", None], pa.large_string()),
    "view": pa.array(["ö", "a text that is too long to stand in a view", None], pa.string_view()),
    "labels": pa.array(["a", "b", None]).dictionary_encode(),
    "nothing": pa.nulls(3),
}


@pytest.mark.parametrize("how", ["memory", ".parquet", ".arrow"])
@pytest.mark.parametrize("kind", TYPES)
def test_types_are_written_alike_or_refused(kind: str, how: str, engine: Any, tmp_path: Path) -> None:
    """A type that Spark does not have may be refused, and is never read as something else."""
    table = pa.table({"a": TYPES[kind], "b": ["x", "y", "z"]})
    data: Any = table
    if how != "memory":
        data = tmp_path / f"t{how}"
        try:
            (pq.write_table if how == ".parquet" else feather.write_feather)(table, data)
        except pa.ArrowException:
            pytest.skip("this kind of file has no such type")
    try:
        here: Any = counted(LocalEngine(), data, Writing())
    except NorenError as refused:
        here = type(refused)
    try:
        assert counted(engine, data, Writing()) == here
    except NorenError:
        assert how != ".parquet" or isinstance(here, type), "a file is read by the same reader"


POLICY = """
[attributes]
name = "identifier"
region = "quasi-identifier"
ill = "sensitive"
[[require]]
model = "k-anonymity"
k = 5
[[require]]
model = "distinct-l-diversity"
on = "ill"
l = 2
[method]
name = "mondrian"
"""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_no_name_is_published_as_a_region(kind: str, session: Any, tmp_path: Path) -> None:
    """Two files with their columns in another order."""
    folder = tmp_path / "table"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for file, order in (("a", ["name", "region", "ill"]), ("b", ["region", "name", "ill"])):
        table = pa.table({"name": [f"Person{file}{i}" for i in range(300)], "region": rng.choice(["R1", "R2"], 300),
                          "ill": rng.choice(["flu", "gout", "burn"], 300)}).select(order)  # fmt: skip
        (pv.write_csv if kind == "csv" else pq.write_table)(table, folder / f"{file}.{kind}")
    (tmp_path / "policy.toml").write_text(POLICY)
    words = ["anonymize", str(folder), str(tmp_path / "policy.toml"), "--to"]
    for more in ([], ["--engine", "spark"]):
        done = CliRunner().invoke(main, [*words, str(tmp_path / f"release{len(more)}"), *more])
        assert done.exit_code == 0, done.output
        frame = nr.open_release(tmp_path / f"release{len(more)}").frame()
        assert frame.height == 600
        assert set(frame["region"].cast(str).to_list()) <= {"R1", "R2", "*"}


def test_text_in_a_store_is_read_by_the_same_reader(engine: Any) -> None:
    with running() as store:
        for name in ("columns in another order", "quoted line breaks"):
            case = CASES[name]
            store.objects.clear()
            for file, content in case.files.items():
                store.objects[f"bucket/table/{file}"] = content
            assert case.records is not None
            assert counted(engine, store.address("table"), Writing(), COLUMNS) == tallied(case.records)


def test_what_spark_reads_itself_is_compared_file_by_file(engine: Any, tmp_path: Path) -> None:
    """Folders whose names hold a column are left to Spark, which would fill up columns that a file lacks."""
    for year, table in (("2025", TABLE), ("2026", TABLE.select(["ill", "name", "region"]))):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(table, tmp_path / f"year={year}" / "a.parquet")
    found = counted(engine, tmp_path, Writing())
    assert found["records"] == 4
    assert found["year"] == ({"2025": 2, "2026": 2}, 0)
    assert found["region"] == ({"Bonn": 2, "Ulm": 2}, 0)
    for other in (TABLE.drop_columns("ill"), TABLE.append_column("Xq7", pa.array([1, 2]))):
        pq.write_table(other, tmp_path / "year=2026" / "b.parquet")
        with pytest.raises(nr.errors.DataError, match=r"b\.parquet: its columns are not") as refused:
            counted(engine, tmp_path, Writing())
        assert "Xq7" not in str(refused.value)
