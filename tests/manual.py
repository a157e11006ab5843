"""What a page of the manual shows, run in the order of the page.

In a fence `sh` every line is a command of Noren; `> FILE` keeps its output, and a comment `# exit code 1` says how it
ends. In a fence without a language, lines that begin with `$ noren` are commands and what follows is their output, of
which the heads of tables are compared. A fence `python` is executed, all fences of a page in one namespace. A fence
`toml` whose first line is a comment with a file name becomes that file; all others must be TOML. A fence `console` is
for what a test cannot run (make, pip, a server).
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow.csv as pv
from click.testing import CliRunner

import noren
from noren.cli.demo import POLICY_TOML, disease_hierarchy_csv, hospital_table
from noren.cli.main import main

ROOT = Path(noren.__file__).parents[2]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w.-]+\.toml)\n")
CODE = re.compile(r"# exit code (\d)")
NEEDS_A_SERVER = {"databases.md": "postgres", "scale.md": "spark"}
"""Pages that other folders of tests run, because their commands need a server."""
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if page.name not in NEEDS_A_SERVER and re.search(r"^```(sh|python|toml)|^\$ noren", page.read_text("utf-8"), re.M)
]


def demo_folder(folder: Path, records: int) -> Path:
    """The folder that `noren demo` makes, without its charts and with as many patients as are asked for."""
    folder.mkdir()
    pv.write_csv(hospital_table(records), folder / "patients.csv")
    (folder / "disease.csv").write_text(disease_hierarchy_csv(), encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY_TOML, encoding="utf-8")
    noren.anonymize(folder / "patients.csv", noren.Policy.load(folder / "policy.toml"), to=folder / "release")
    return folder


def run_page(page: Path, change: Callable[[str], str] = str) -> None:
    """Run the examples of a page in the current folder; `change` puts the address of a server in its place."""
    names: dict[str, object] = {"pl": pl}
    for language, text in FENCE.findall(change(page.read_text(encoding="utf-8"))):
        if language == "toml":
            tomllib.loads(text)
            if named := FILE.match(text):
                Path(named[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, page.name, "exec"), names)  # our own page
        elif language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                run_command(line)
        elif not language:
            for command, output in re.findall(r"^\$ (noren .*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                demand_heads(output, run_command(command))


def run_command(line: str) -> str:
    """What one shown command prints."""
    words = shlex.split(line, comments=True)
    if not words:
        return ""
    assert words[0] == "noren", line
    kept = words[words.index(">") + 1] if ">" in words else None
    words = words[1 : words.index(">")] if kept else words[1:]
    found = CliRunner().invoke(main, words)
    code = int(said[1]) if (said := CODE.search(line)) else 0
    assert found.exit_code == code, f"{line}\n{found.output}"
    if kept:
        Path(kept).write_text(found.stdout, encoding="utf-8")
    return found.output


def demand_heads(shown: str, found: str) -> None:
    """The head of a table that a page shows is one that the command prints."""
    heads = [cells(line) for line in shown.splitlines() if len(cells(line)) > 3]
    assert not heads or heads[0] in [cells(line) for line in found.splitlines()], heads[0]


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())
