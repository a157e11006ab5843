"""The studio's work on a base: a table is opened by its address, a release is handed over to a schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import noren as nr
from noren.cli import hospital_table
from noren.progress import quiet
from noren_studio.work.opening import open_table
from noren_studio.work.releasing import make_release, save_release


def test_a_table_of_a_base_is_opened_released_and_handed_over_to_a_schema(
    server: str, loaded: Callable[[str, pa.Table], str], tmp_path: Path
) -> None:
    address = loaded("studio_people", hospital_table(400))
    found = open_table(quiet, address, str(tmp_path))
    assert found["rows"] == 400
    assert [column["name"] for column in found["columns"]] == hospital_table(1).column_names
    assert "studio_people" in found["name"]
    made = make_release(quiet, address, found["policy"], str(tmp_path), str(tmp_path / "release"))
    assert all(one["holds"] for one in made["verdicts"])
    joined = "&" if "?" in server else "?"
    target = f"{server}{joined}schema=studio_released"
    saved = save_release(quiet, made["path"], target, "parquet", "", None, False)
    assert saved["signer"] is None
    again = nr.open_release(target)
    assert again.records == made["records"]
    assert all(verdict.holds is True for verdict in nr.verify(target))
