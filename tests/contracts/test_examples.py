"""What documentation shows works: examples in docstrings run, and names in code blocks exist."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import noren

SOURCE = Path(noren.__file__).parent
ROOT = SOURCE.parents[1]
WITH_EXAMPLES = sorted(
    ".".join(["noren", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
VERBS = ("anonymize", "verify", "measure", "compare", "collect", "foreign")
MUST_SHOW = (
    *(f"noren.workflow.{verb}" for verb in VERBS),
    "noren.audit",
    "noren.audit.risk",
    "noren.policy.policy",
    "noren.release.release",
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_run(name: str) -> None:
    found = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0


def test_the_verbs_show_how_they_are_used() -> None:
    assert {*MUST_SHOW} <= {*WITH_EXAMPLES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_in_the_documentation_uses_names_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        compile(block, str(page), "exec")
    for path in {*re.findall(r"\bnr\.([\w.]*\w)", text)}:
        found: object = noren
        for part in path.split("."):
            assert hasattr(found, part), f"nr.{path}"
            found = getattr(found, part)
