"""What a person sees in a terminal: tables, progress, JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from noren.errors import QueryError
from noren.kernel import compiling
from noren.progress import Meter, Stage, silent
from noren.results import plain, visible

if TYPE_CHECKING:
    import polars as pl


def echo_json(data: Any) -> None:
    """Plain JSON; a number that JSON cannot write, such as an infinite bound, becomes null."""
    text = json.dumps(plain(data), ensure_ascii=False, indent=1)
    click.echo(ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


ACTING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON may hold as it is and a terminal would obey, or no encoding can write."""


def say(text: object = "", *, err: bool = False) -> None:
    """A line for a person. Labels come from files that others made: what would steer the terminal is written out."""
    click.echo(visible(text), err=err)


def say_file(text: str) -> None:
    """A file on standard output: as it is in a pipe, harmless on a terminal."""
    click.echo(visible(text) if sys.stdout.isatty() else text, nl=False)


def guarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """A table for CSV: texts and titles that a spreadsheet would run as formulas stand behind an apostrophe."""
    import polars as pl

    from noren.statements.texts import guarded, guarded_text

    texts = [
        pl.Series(c.name, guarded(c.to_arrow().cast("large_string")), pl.String) for c in frame if c.dtype == pl.String
    ]
    return frame.with_columns(texts).rename({name: guarded_text(name) for name in frame.columns})


def stages(quiet: bool) -> Stage:
    """A progress bar per stage on a terminal; silence in pipes and with --json."""

    @contextmanager
    def show(name: str, total: int | None) -> Iterator[Meter]:
        if quiet or not sys.stderr.isatty():
            yield silent
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(name, total=total)

            def compiles(name: str) -> None:
                progress.update(task, description=f"Compiling {name}, once per installation")

            def advance(done: int, *, note: str = "", total: int | None = None) -> None:
                if total is not None:
                    progress.update(task, total=total)
                progress.update(task, advance=done, description=note or name)

            compiling.append(compiles)
            try:
                yield advance
            finally:
                compiling.remove(compiles)

    return show


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[str] = ()) -> None:
    """A plain table that stays readable in a pipe."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=False)
    out = Table(title=Text(visible(title)), box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for name in columns:
        out.add_column(Text(visible(name)), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        out.add_row(*(Text(visible(cell)) for cell in row))
    console.print(out)


def verdict_rows(verdicts: Sequence[Any]) -> list[list[str]]:
    words = {True: "holds", False: "FAILS", None: "undecided"}
    return [
        [
            verdict.column,
            verdict.model,
            f"{verdict.required:g}",
            "-" if verdict.achieved is None else f"{verdict.achieved:.4g}",
            words[verdict.holds],
            verdict.basis,
        ]
        for verdict in verdicts
    ]


VERDICT_COLUMNS = ("column", "requirement", "asked", "found", "verdict", "ground")


def parse_where(conditions: Sequence[str], columns: Collection[str] = ()) -> dict[str, Any]:
    """`job=Lawyer,Artist` several times into a mapping; a comma inside a value is written as a double comma.

    `signs@all=cough,fever` asks for records with all of these terms, `signs@any=...` and `signs=...` for one of them;
    a column whose own name ends that way wins. `age>=30` and `age<40` together ask for a range.
    """
    out: dict[str, dict[str, list[str]]] = {}
    ranges: dict[str, dict[str, str]] = {}
    for condition in conditions:
        if (ranged := _range(condition, columns)) is not None:
            column, sign, end = ranged
            if sign in ranges.setdefault(column, {}):
                raise QueryError(f"{column!r} has two conditions with {sign}.", hint="Keep the narrower one.")
            ranges[column][sign] = end
            continue
        name, found, values = condition.partition("=")
        name = name.strip()
        if not found or not name:
            hint = 'For example job=Lawyer,Artist, or "age>=30".'
            raise QueryError(f"condition {condition!r} is not column=value.", hint=hint)
        column, _, mode = name.rpartition("@")
        if name in columns or column not in columns or mode not in ("any", "all"):
            column, mode = name, ""
        parts = [part.replace("\0", ",") for part in values.replace(",,", "\0").split(",")]
        out.setdefault(column, {}).setdefault(mode, []).extend(part.strip() for part in parts)
    both = next((name for name in ranges if name in out), None)
    if both is not None:
        raise QueryError(f"{both!r} has values and a range.", hint="Give one of them.")
    return ranges | {name: modes[""] if [*modes] == [""] else _by_mode(modes) for name, modes in out.items()}


RANGE = re.compile(r"([^=<>]+?)\s*(>=|<=|>|<)\s*(.+)")


def _range(condition: str, columns: Collection[str]) -> tuple[str, str, str] | None:
    """Column, sign and end of a range; None for another condition, or where a column's own name holds the sign."""
    found = RANGE.fullmatch(condition.strip())
    if found is None or condition.partition("=")[0].strip() in columns:
        return None
    return found[1].strip(), found[2], found[3].strip()


def _by_mode(modes: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The terms of a condition by how they are meant; unmarked ones are alternatives, as everywhere."""
    some = [*modes.get("", []), *modes.get("any", [])]
    return ({"any": some} if some else {}) | ({"all": modes["all"]} if "all" in modes else {})


def split_by(by: Sequence[str]) -> list[str]:
    return [part.strip() for item in by for part in item.split(",") if part.strip()]


def seconds_line(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
