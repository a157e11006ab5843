"""The page about Spark: its commands run on a small session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.manual import ROOT, demo_folder, run_page


@pytest.mark.slow
def test_the_page_about_spark_runs(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = demo_folder(tmp_path / "noren-demo", 1_000)
    monkeypatch.chdir(folder)
    # the session was started elsewhere: its Python processes do not know this folder
    run_page(ROOT / "docs" / "scale.md", lambda text: re.sub(r"(?<= )(big|patients\.csv)\b", rf"{folder}/\1", text))
