"""`noren export`: a release for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from noren.cli.options import RELEASE, OneOf, named
from noren.cli.render import echo_json, say, stages


@click.command(epilog="Example: noren export release --as imputed-csv --to plausible.csv")
@click.argument("release", type=RELEASE)
@click.option("--as", "form", required=True, type=OneOf("noren.release.export:FORMS"), help="What to write.")
@click.option("--to", required=True, type=click.Path(path_type=Path), help="File to write; must not exist.")
@click.option("--tables", type=click.IntRange(1, 1000), default=20, show_default=True, help="Plausible tables to draw.")
@click.option("--seed", type=int, help="Draw the same tables every time.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def export(release: Path | str, form: str, to: Path, tables: int, seed: int | None, as_json: bool) -> None:
    """Write RELEASE for tools that do not know sets. Nothing is told that the release does not tell.

    imputed-csv, stata, spss: complete tables that the release leaves plausible, good for machine learning and for
    trying things out; intervals from them are too narrow. wide-csv: what was published, with a 0/1 column for each
    possible value.
    """
    from noren.estimates.imputation.tables import BETWEEN, BURN_IN
    from noren.release.export import export as run
    from noren.release.release import open_release

    opened = open_release(release)
    with stages(as_json)("Drawing tables", None if form == "wide-csv" else BURN_IN + tables * BETWEEN) as meter:
        good_for = run(opened, to, form, m=tables, seed=seed, progress=meter)
    if as_json:
        echo_json({"written": named(to), "form": form, "good_for": good_for})
        return
    say(f"Written: {to}")
    say(f"{form}: {good_for}.")
