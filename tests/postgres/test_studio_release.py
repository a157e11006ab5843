"""A release in a base, as the studio's recipient opens it: by its address, of which no more than needed is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import noren as nr
from noren.cli import hospital_table
from noren.progress import quiet
from noren_studio.questions import call_of, public_place
from noren_studio.session import is_release
from noren_studio.work.answering import answer
from noren_studio.work.opening import open_table
from noren_studio.work.releases import check_release, read_release
from tests.postgres.test_publish import released


def test_a_table_in_a_base_is_opened_and_understood(loaded: Callable[[str, pa.Table], str], tmp_path: Path) -> None:
    address = loaded("studio_patients", hospital_table(300))
    found = open_table(quiet, address, str(tmp_path))
    assert (found["rows_total"] or found["rows"]) == 300
    assert {"disease", "zip"} <= set(found["policy"]["attributes"])
    assert "@" not in found["name"]


def test_a_release_in_a_base_is_opened_verified_and_asked(server: str, tmp_path: Path) -> None:
    release = released("decoys")
    address = f"{server}&schema=studio_release"
    release.publish(address)
    assert is_release(address)
    found = read_release(quiet, address)
    assert found["facts"]["records"] == release.records
    assert "@" not in found["name"]
    assert check_release(quiet, address)["holds"] is True
    call = call_of({"rows": ["ill"]})
    told = answer(quiet, address, call.to_dict(), "auto", str(tmp_path), "mark")
    assert told["rows"] == [list(row) for row in release.estimate(["ill"]).frame.rows()]
    assert nr.open_release(public_place(address)).records == release.records
