"""`noren publish`: a release into a schema of a base."""

from __future__ import annotations

from pathlib import Path

import click

from noren.cli.options import RELEASE
from noren.cli.render import echo_json, say, stages


@click.command(epilog='Example: noren publish release "postgresql://localhost/base?schema=patients" --grant analysts')
@click.argument("release", type=RELEASE)
@click.argument("address")
@click.option("--grant", multiple=True, metavar="ROLE", help="This role may read it. Repeatable; else only the owner.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def publish(release: Path | str, address: str, grant: tuple[str, ...], as_json: bool) -> None:
    """Write RELEASE into the schema of a PostgreSQL base that ADDRESS names.

    One transaction: whatever stops it, nothing is left. A schema that exists is refused. The view `records` shows sets
    as arrays and intervals as ranges; `cells` holds the same with numbers. A signature stays with the directory.
    """
    from noren.release.database.publish import publish as run
    from noren.release.release import open_release

    opened = open_release(release)
    with stages(as_json)("Publishing", opened.rows) as meter:
        place = run(opened, address, grant=grant, meter=meter)
    if as_json:
        echo_json({"release": place, "records": opened.records, "granted": list(grant)})
        return
    whom = ", ".join(grant) or "nobody but its owner"
    say(f"{place}: {opened.records:,} records published, readable by {whom}.")
