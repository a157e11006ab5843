"""The command hierarchy: a first hierarchy of a column, to be edited."""

from __future__ import annotations

from pathlib import Path

import click

from noren.cli.options import PLACE, OneOf, reads_queries
from noren.cli.render import echo_json, say, say_file


@click.command(epilog="Example: noren hierarchy patients.csv zip --by prefix --to zip.csv")
@click.argument("data", type=PLACE)
@click.argument("column")
@click.option("--by", type=OneOf("noren.policy.hierarchies:RULES"), help="The rule; without it the one that fits.")
@click.option("--separator", help="Column separator of a CSV (sniffed otherwise).")
@click.option("--encoding", help="Text encoding of a CSV (sniffed otherwise).")
@click.option("--missing", "missing", multiple=True, help="A text that means 'missing', for example '?'. Repeatable.")
@click.option("--to", type=click.Path(path_type=Path), help="Write the hierarchy to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print {made, levels} as JSON.")
@reads_queries
def hierarchy(
    data: str,
    column: str,
    by: str | None,
    separator: str | None,
    encoding: str | None,
    missing: tuple[str, ...],
    to: Path | None,
    as_json: bool,
) -> None:
    """Write a hierarchy of COLUMN of DATA in ARX's layout: value;...;root, one line per value.

    Edges are round numbers with open ends and no record's own values. Edit the file, then name it in the policy:
    hierarchy = "zip.csv". It lists values of your table: it is a holder's file.
    """
    from noren.files import refuse_target, write_whole
    from noren.policy.hierarchies import make_hierarchy
    from noren.sources.source import open_source

    source = open_source(data, separator=separator, encoding=encoding, missing_values=missing)
    made, why = make_hierarchy(source, column, by)
    if to is not None:
        refuse_target(to)
        write_whole(to, made.csv_text().encode())
    if as_json:
        echo_json({"made": why, "levels": [list(level) for level in made.levels], "to": to and str(to)})
        return
    say(f"By {why}.", err=True)
    if to is None:
        say_file(made.csv_text())
    else:
        say(f"{len(made.leaves):,} values in {made.height + 1} levels written to {to}: read it, correct it.")
