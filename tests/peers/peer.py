"""Asking the peer: many tables in one process of its own interpreter."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

PYCANON = os.environ.get("NOREN_PYCANON")
DATA = os.environ.get("NOREN_DATA")
RUNNER = Path(__file__).with_name("pycanon_run.py")

needs_pycanon = pytest.mark.skipif(not PYCANON, reason="set NOREN_PYCANON to a python that has pycanon (make peers)")
needs_data = pytest.mark.skipif(not DATA, reason="set NOREN_DATA to the folder with adult.csv.gz and ARX's files")


def data(*parts: str) -> Path:
    """A file of the data folder; a test whose file is not there is skipped."""
    path = Path(DATA or "").joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not in NOREN_DATA")
    return path


def ask(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """pyCANON's answers, one per job."""
    assert PYCANON is not None
    words = json.dumps([{**job, "csv": str(job["csv"])} for job in jobs])
    done = subprocess.run([PYCANON, str(RUNNER)], input=words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
