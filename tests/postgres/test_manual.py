"""The page about databases: its commands run on a server, with the demonstration's patients in the table it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from tests.manual import ROOT, demo_folder, run_page


def test_the_page_about_databases_runs(
    server: str,
    sql: Callable[..., object],
    loaded: Callable[[str, pa.Table], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql("DROP SCHEMA IF EXISTS patients_2026 CASCADE", "DROP ROLE IF EXISTS analysts", "CREATE ROLE analysts")
    monkeypatch.chdir(demo_folder(tmp_path / "noren-demo", 1_000))
    loaded("visits", pl.read_csv("patients.csv", schema_overrides={"zip": pl.String}).to_arrow())

    def change(text: str) -> str:
        place = "postgresql://localhost/hospital"
        return text.replace(f"{place}?", f"{server}&").replace(place, server)

    run_page(ROOT / "docs" / "databases.md", change)
    sql("DROP SCHEMA patients_2026 CASCADE", "DROP ROLE analysts")
