"""Terminal output: tables, progress, JSON."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from noren.errors import QueryError, mask
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
    """Print a line. Control characters in it are escaped, because labels come from other people's files."""
    click.echo(visible(text), err=err)


def say_file(text: str) -> None:
    """Write a file to standard output: unchanged in a pipe, with control characters escaped on a terminal."""
    click.echo(visible(text) if sys.stdout.isatty() else text, nl=False)


def guarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table for CSV in which texts that a spreadsheet would run as formulas begin with an apostrophe."""
    import polars as pl

    from noren.statements.texts import guard_formulas, guard_text

    texts = [
        pl.Series(c.name, guard_formulas(c.to_arrow().cast("large_string")), pl.String)
        for c in frame
        if c.dtype == pl.String
    ]
    return frame.with_columns(texts).rename({name: guard_text(name) for name in frame.columns})


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
                progress.update(task, description=f"Compiling {name} (once per installation)")

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
    """Parse repeated `job=Lawyer,Artist` into a mapping; write a comma inside a value as a double comma.

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
    """Return column, sign and end of a range; None for another condition, or if a column's name contains the sign."""
    found = RANGE.fullmatch(condition.strip())
    if found is None or condition.partition("=")[0].strip() in columns:
        return None
    return found[1].strip(), found[2], found[3].strip()


def _by_mode(modes: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Group the terms of a condition by mode; unmarked ones are alternatives."""
    some = [*modes.get("", []), *modes.get("any", [])]
    return ({"any": some} if some else {}) | ({"all": modes["all"]} if "all" in modes else {})


def split_by(by: Sequence[str]) -> list[str]:
    return [part.strip() for item in by for part in item.split(",") if part.strip()]


def seconds_line(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())


# ---------------------------------------------------------------------- options that commands share


def names_of(registry: str) -> tuple[str, ...]:
    """Return the names in a registry that is written as module:name."""
    module, _, name = registry.partition(":")
    found: Iterable[str] = getattr(import_module(module), name)
    return tuple(found)


PLACE = click.Path()
"""A table: a path or a URI, as it was written."""


class ReleasePlace(click.Path):
    """The path of a release directory, or the address of a schema."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        return found if isinstance(found, str) and "://" in found else Path(os.fsdecode(found))


RELEASE = ReleasePlace()


def on_disk(place: Any) -> Path | None:
    """The directory of a release, if it has one."""
    return place if isinstance(place, Path) else None


def name_place(place: Any) -> str:
    """Return the name of a place for output, without a password."""
    if isinstance(place, str) and "://" in place:
        from noren.sources.place import STORES, place_of
        from noren.sources.postgres import Address

        in_store = place.partition("://")[0] in (*STORES, "file")
        return str(place_of(place)) if in_store else Address.parse(place).name
    return mask(str(place))


class CellForms(click.ParamType):
    """The forms of the cells of columns, written as COLUMN=FORM."""

    name = "COLUMN=FORM"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        column, sign, form = value.rpartition("=")
        if not sign:
            self.fail("write it as COLUMN=FORM, such as disease=shuffled.", param, ctx)
        return column, form


CELLS = click.option(
    "--cells",
    multiple=True,
    type=CellForms(),
    help=(
        "Form of the cells of a sensitive column: values, sets ({a, b}, a|b, lists), or shuffled (one row for each "
        "member of a person's set). Sets are recognised without it. Repeatable."
    ),
)


def reads_csv(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of CSV files to a command; it gets them as `csv`."""

    @functools.wraps(command)
    def wrapper(*args: Any, separator: str | None, encoding: str | None, missing: tuple[str, ...], **rest: Any) -> Any:
        return command(*args, csv={"separator": separator, "encoding": encoding, "missing_values": missing}, **rest)

    for option in (
        click.option("--missing", multiple=True, help="A text that marks a missing value, such as '?'. Repeatable."),
        click.option("--encoding", help="Text encoding of a CSV; detected by default."),
        click.option("--separator", help="Column separator of a CSV; detected by default."),
    ):
        wrapper = option(wrapper)
    return wrapper


def reads_queries(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --query to a command whose DATA may be the address of a database."""

    @functools.wraps(command)
    def wrapper(*args: Any, data: str, query: str | None, **rest: Any) -> Any:
        if query is not None:
            if "://" not in data:
                raise click.UsageError(
                    "--query needs the address of a database, for example postgresql://localhost/base."
                )
            data += ("&" if "?" in data else "?") + urlencode({"query": query})
        return command(*args, data=data, **rest)

    return click.option("--query", help="Read the rows of this SQL query; DATA is then a postgresql:// address.")(
        wrapper
    )


def runs_anywhere(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of engines to a command; it gets the engine, None for this machine."""

    @functools.wraps(command)
    def wrapper(*args: Any, engine: str, master: str | None, conf: tuple[str, ...], **rest: Any) -> Any:
        if engine != "spark" and (master is not None or conf):
            raise click.UsageError("--master and --conf are for --engine spark.")
        settings = dict(one.partition("=")[::2] for one in conf)
        if not all(name and value for name, value in settings.items()):
            raise click.UsageError("--conf takes NAME=VALUE, for example spark.executor.memory=4g.")
        place: Any = engine
        if engine == "spark":
            from noren.engines.spark import SparkEngine

            place = SparkEngine(master=master, conf=settings)
        return command(*args, engine=place, **rest)

    for option in (
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark. Repeatable."),
        click.option("--master", help="The Spark cluster, for example spark://host:7077 (this machine otherwise)."),
        click.option(
            "--engine",
            type=OneOf("noren.engines:ENGINES"),
            default="local",
            show_default=True,
            help="Where the work runs.",
        ),
    ):
        wrapper = option(wrapper)
    return wrapper


class OneOf(click.Choice):
    """A parameter type: one name of a registry."""

    def __init__(self, registry: str) -> None:
        self.registry = registry
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        return names_of(self.registry)


class NamedOption(click.Option):
    """An option that the library validates; its help ends with the names of a registry."""

    def __init__(self, *args: Any, registry: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.registry = registry

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        found = super().get_help_record(ctx)
        return found and (found[0], f"{found[1]} Known: {', '.join(names_of(self.registry))}.")
