"""What is installed is pinned, and every pin has its sums."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNS = re.compile(
    r"import (pickle|marshal|shelve|joblib|cloudpickle)|PickleSerializer|allow_pickle=True|yaml\.load\("
    r"|(?<![.\w])(eval|exec)\("
)
EXCEPT = {
    "compiled.py": "Numba's own cache: files of the user alone",
    "cluster.py": "answers of the run's own Spark tasks, which Spark pickles too; never a file, never a stranger's",
}
"""The files that may unpickle, and what."""


def pins(text: str) -> list[str]:
    return re.findall(r"^([\w.-]+==[\w.+-]+)", text, re.MULTILINE)


def test_hashes_are_of_the_pinned_versions() -> None:
    """`make hashes` after every change of .ci/constraints.txt."""
    hashed = (ROOT / ".ci/hashes.txt").read_text()
    assert pins(hashed) == pins((ROOT / ".ci/constraints.txt").read_text())
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", hashed)) >= len(pins(hashed))


def test_neither_file_says_where_packages_come_from() -> None:
    assert not re.search(r"https?:|file:|--index|--find", (ROOT / ".ci/hashes.txt").read_text())
    assert not re.search(r"https?:|file:|--index|--find", (ROOT / ".ci/constraints.txt").read_text())


def test_nothing_is_unpickled() -> None:
    """A pickle runs what its author wrote; files come from strangers."""
    found = [
        str(path.relative_to(ROOT))
        for room in ("src", "papers/src")
        for path in (ROOT / room).rglob("*.py")
        if RUNS.search(path.read_text()) and path.name not in EXCEPT
    ]
    assert found == []
