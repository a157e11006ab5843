"""The world of a release is closed, whatever method made it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import noren as nr
from noren.methods import METHODS
from noren.release.package import page_of, read_package
from tests.leaks.test_closed_world import mended, rewritten, with_footer
from tests.leaks.test_manifest_names import released


@pytest.mark.parametrize("method", METHODS)
def test_the_world_is_closed_whatever_method_made_it(method: str, tmp_path: Path) -> None:
    made = released(method, "none", "parquet", tmp_path)
    assert not any(verdict.holds is False for verdict in nr.verify(made))

    def refused(name: str, change: Callable[[Path], Any], why: str) -> None:
        copy = Path(shutil.copytree(made, tmp_path / name))
        change(copy)
        with pytest.raises(nr.errors.ReleaseError, match=why):
            nr.verify(copy)

    def named(table: pa.Table) -> pa.Table:
        return table.append_column("name", pa.array(["Anna"] * len(table)))

    def bolder(package: dict[str, Any]) -> None:
        package["noren"]["verdicts"][0]["required"] += 1.0

    refused("column", lambda copy: rewritten(copy, named), "it has the column 'name'")
    refused("file", lambda copy: (copy / "original.csv").write_text("Anna"), "it has 'original.csv'")
    refused("words", lambda copy: mended(copy, lambda package: package.update(remark="Anna")), "remark is not what")
    refused("footer", lambda copy: with_footer(copy, lambda foot: foot + b"Anna"), "its footer has bytes")

    def claims(copy: Path) -> None:
        mended(copy, bolder)
        manifest, _ = read_package(copy)
        (copy / "README.md").write_text(page_of(manifest, copy / "data.parquet", False), encoding="utf-8")
        mended(copy)

    refused("claims", claims, "a verdict on")
