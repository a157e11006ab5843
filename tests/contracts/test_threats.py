"""Every promise of the threat model names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    """The cells of the threat model's table."""
    part = PAGE.split("## The threat model")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def named(text: str) -> list[Path]:
    """Tests that a text names, the later ones without their folder."""
    out: list[Path] = []
    for name in re.findall(r"`(tests/[\w/]+(?:\.py)?|test_\w+\.py)`", text):
        out.append(ROOT / name if name.startswith("tests/") else out[-1].parent / name)
    return out


def test_every_promise_names_tests_that_exist() -> None:
    assert len(rows()) >= 13
    for adversary, *_, tests in rows():
        found = named(tests)
        assert found, adversary
        assert all(path.exists() for path in found), (adversary, found)


def test_every_test_that_the_page_names_exists() -> None:
    assert all(path.exists() for path in named(PAGE))
