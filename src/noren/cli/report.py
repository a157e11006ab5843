"""Command of the auditor and of the holder: report."""

from __future__ import annotations

from pathlib import Path

import click

from noren.cli.auditor import UNDECIDED
from noren.cli.options import PLACE, RELEASE, NamedOption, on_disk
from noren.cli.render import echo_json, say, stages
from noren.errors import DataError


@click.command(epilog="Example: noren report release --policy policy.toml --original patients.csv --to report.html")
@click.argument("release", type=RELEASE)
@click.option("--policy", type=click.Path(path_type=Path), help="Check this policy instead of the release's claims.")
@click.option("--original", type=PLACE, help="The original table: the report is holder-only.")
@click.option(
    "--attack",
    "attacks",
    cls=NamedOption,
    registry="noren.audit:ATTACKS",
    multiple=True,
    metavar="NAME",
    help="Run this attack; by default all that apply.",
)
@click.option("--to", type=click.Path(path_type=Path), help="File to write: .html, or .json for the figures alone.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@click.pass_context
def report(
    ctx: click.Context,
    release: Path | str,
    policy: Path | None,
    original: str | None,
    attacks: tuple[str, ...],
    to: Path | None,
    as_json: bool,
) -> None:
    """Write a page about RELEASE for people: what was published, what holds, what is learned and lost.

    One file that opens without a network and can be printed. Without the original it is for anybody; with it, for the
    holder only. Exit code 1: the report was written, and it says that a requirement does not hold; 3: that one is
    undecided.
    """
    from noren.files import refuse_target
    from noren.report.page import make_report

    if to is None and not as_json:
        raise click.UsageError("Give --to FILE, or --json.")
    if original is not None and policy is None:
        raise click.UsageError("--original needs --policy, to read it.")
    if to is not None:
        if to.suffix.lower() not in (".html", ".htm", ".json"):
            raise DataError(f"{to}: a report is a page or JSON.", hint="Choose a name that ends in .html or .json.")
        refuse_target(to, on_disk(release))
    page = make_report(release, policy, original=original, attacks=attacks or None, stage=stages(as_json))
    if to is not None:
        page.save(to)
    failed = [verdict for verdict in page.content["verdicts"] if verdict["holds"] is False]
    if as_json:
        echo_json(page.content | {"written": None if to is None else str(to)})
    else:
        whom = "holder only" if page.holder_only else "for anybody"
        say(f"Report ({whom}): {to}")
        if failed:
            say(f"{len(failed)} of {len(page.content['verdicts'])} checks fail; the report says which.", err=True)
    undecided = any(verdict["holds"] is None for verdict in page.content["verdicts"])
    ctx.exit(1 if failed else UNDECIDED if undecided else 0)
