"""The notebooks run, and what the documentation shows of them is what they print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import noren

ROOT = Path(noren.__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def kinds_of_outputs(cells: list[dict[str, Any]]) -> list[list[list[str]]]:
    return [[sorted(out.get("data", {"text": ""})) for out in cell["outputs"]] for cell in cells]


@pytest.mark.slow
def test_notebooks_run_and_their_outputs_are_stored(tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="notebooks need nbclient")
    words = [sys.executable, str(ROOT / ".ci/notebooks.py"), str(tmp_path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        stored, fresh = code_cells(path), code_cells(tmp_path / path.name)
        assert [cell["source"] for cell in stored] == [cell["source"] for cell in fresh]
        assert kinds_of_outputs(stored) == kinds_of_outputs(fresh), "run `make notebooks`"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_no_errors(path: Path) -> None:
    outputs = [out for cell in code_cells(path) for out in cell["outputs"]]
    assert outputs
    assert all(out["output_type"] in ("execute_result", "stream", "display_data") for out in outputs)
    assert all(out.get("name") != "stderr" for out in outputs)
