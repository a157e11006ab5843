"""Every command of the page about the papers' worked tables prints what the page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from noren.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers" / "tables.md"


def commands() -> Iterator[tuple[str, str, str]]:
    """The folder, the command and what it prints, for every command of the page."""
    folder = ""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            if command.startswith("cd "):
                folder = command.removeprefix("cd ")
            else:
                yield folder, command, shown


def printed(command: str) -> str:
    result = CliRunner().invoke(main, shlex.split(command.removeprefix("noren ")))
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code != 2, result.output
    return result.output


def words(text: str) -> list[list[str]]:
    """Lines that say something, whatever their spaces and rules: a terminal's width decides about these."""
    lines = (line.split() for line in re.sub(r"[─]", "", text).splitlines())
    return [line for line in lines if line]


def rounded_alike(found: str, wanted: str) -> bool:
    """Whether two words are equal, or the same decimal rounded up and down: some estimates end in exactly 0.25."""
    if "." not in wanted or not re.fullmatch(r"[\d,]+\.\d", found) or not re.fullmatch(r"[\d,]+\.\d", wanted):
        return found == wanted
    return abs(float(found.replace(",", "")) - float(wanted.replace(",", ""))) < 0.11


@pytest.mark.parametrize(("folder", "command", "shown"), list(commands()), ids=lambda text: text[:60])
def test_a_command_prints_what_the_page_shows(
    folder: str, command: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / folder)
    assert shown.strip(), command
    found, wanted = words(printed(command)), words(shown)
    assert [len(line) for line in found] == [len(line) for line in wanted]
    pairs = [pair for lines in zip(found, wanted, strict=True) for pair in zip(*lines, strict=True)]
    alike = rounded_alike if " estimate " in command else str.__eq__
    assert [pair for pair in pairs if not alike(*pair)] == []


def test_every_table_is_on_the_page() -> None:
    named = " ".join(command for _, command, _ in commands())
    files = [*(ROOT / "examples" / "papers").rglob("*.toml"), *(ROOT / "examples" / "papers").rglob("*.csv")]
    side = {"icd.csv", "disease.csv", "figure-1c.csv", "table-1.csv"}
    assert len(files) > 30
    assert [file.name for file in files if file.name not in side and file.name not in named] == []
