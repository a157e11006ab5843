"""The manual: every command, every line of Python and every policy that a page shows works."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.manual import PAGES, ROOT, demo_folder, run_page
from tests.unit.sources.test_workbook import workbook

RECORDS = {"recipient.md": 20_000}
"""Of fewer than 10,000 patients the sets would be in the cells, and not in a file of their own as the page says."""

SLOW = {"README.md", "tutorial.md", "holder.md", "ethics.md", "auditor.md"}
"""Their audits, reports and comparisons take long; the commands have tests of their own."""


@pytest.fixture(scope="session")
def demos(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    return {}


@pytest.fixture
def demo(request: pytest.FixtureRequest, demos: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demonstration's folder, made once for each number of patients."""
    records = RECORDS.get(request.param.name, 1_000)
    if records not in demos:
        demos[records] = demo_folder(tmp_path_factory.mktemp("demo") / "noren-demo", records)
    return Path(shutil.copytree(demos[records], tmp_path_factory.mktemp("page") / "noren-demo"))


def case(page: Path) -> Any:
    return pytest.param(page, page, id=page.name, marks=[pytest.mark.slow] if page.name in SLOW else [])


@pytest.mark.parametrize(("demo", "page"), [case(page) for page in PAGES], indirect=["demo"])
def test_what_the_page_shows_works(demo: Path, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)
    if page.name == "excel.md":
        rows = pl.read_csv("patients.csv", schema_overrides={"zip": pl.String})
        workbook(demo / "patients.xlsx", [rows.columns, *rows.rows()])
    run_page(page)


def test_the_recipients_page_shows_every_question() -> None:
    page = (ROOT / "docs" / "recipient.md").read_text(encoding="utf-8")
    asked = set(re.findall(r"^\$ noren (\w+)", page, re.MULTILINE))
    assert asked == {"estimate", "count", "mean", "quantile", "difference", "correlation", "regress", "test", "export"}
