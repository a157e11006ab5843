"""The line of SQL on a release's page does what the page says, whatever form the files have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import noren as nr


@pytest.mark.parametrize(("rows", "file_format"), [(24_000, "parquet"), (24_000, "csv"), (600, "parquet")])
def test_sql_reads_cells(tmp_path: Path, monkeypatch: Any, rows: int, file_format: Any) -> None:
    """Sets that are kept once, sets in a CSV file, and lists."""
    duckdb = pytest.importorskip("duckdb")
    people = pl.DataFrame({"job": ["cook", "smith", "nurse"] * (rows // 3), "town": ["Ulm", "Bonn"] * (rows // 2)})
    rules = nr.Policy(
        attributes={"job": "sensitive", "town": "plain"},
        require=[{"model": "frequency-l-diversity", "on": "job", "l": 2}],
    )
    release = nr.anonymize(people, rules)
    release.save(tmp_path / "release", file_format=file_format)
    assert (tmp_path / "release" / "sets.parquet").exists() == (rows == 24_000 and file_format == "parquet")
    monkeypatch.chdir(tmp_path / "release")
    page = Path("README.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("SQL"))
    found = duckdb.sql(line.split("`")[1].replace(" LIMIT 10;", "")).pl()["job"]
    read = found.cast(str).str.json_decode(pl.List(pl.String)) if file_format == "csv" else found
    assert sorted(read.list.join(" ")) == sorted(release.frame()["job"].list.join(" "))
