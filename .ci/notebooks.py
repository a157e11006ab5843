"""Runs the notebooks of docs/notebooks in their order, in one empty folder, and writes them with their outputs.

python .ci/notebooks.py [FOLDER]      FOLDER: where to write them, otherwise over themselves
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HOME = Path(__file__).parents[1] / "docs/notebooks"
ORDER = ("holder", "recipient", "auditor")
"""The recipient and the auditor read the release that the holder makes."""


def run_notebook(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook with fresh outputs. Raises what a cell raises."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(folder)}}, store_widget_state=False).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # the times at which cells ran
    return book


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HOME
    with tempfile.TemporaryDirectory() as folder:
        for name in ORDER:
            nbformat.write(run_notebook(HOME / f"{name}.ipynb", Path(folder)), target / f"{name}.ipynb")


if __name__ == "__main__":
    main()
