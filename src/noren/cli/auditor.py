"""Commands of the auditor: verify, measure, report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.options import PLACE, RELEASE, NamedOption, named, on_disk, runs_anywhere
from noren.cli.render import VERDICT_COLUMNS, echo_json, say, stages, table, verdict_rows
from noren.errors import DataError

if TYPE_CHECKING:
    from noren.models.verdict import Verdict
    from noren.release.release import Release
    from noren.secret import PublicKey


SHOWN = 5
UNDECIDED = 3
"""Exit code where nothing fails and something cannot be decided."""
MARK = "What stands in all quasi-identifiers of a record that another tool dropped."


@click.command(epilog="Example: noren verify release --policy policy.toml --original patients.csv")
@click.argument("release", type=RELEASE)
@click.option("--policy", type=click.Path(path_type=Path), help="Check these requirements instead of the claimed ones.")
@click.option("--original", type=PLACE, help="The original table: exact closeness, truth in sets.")
@click.option(
    "--show",
    is_flag=False,
    flag_value=SHOWN,
    type=click.IntRange(0),
    default=0,
    metavar="[N]",
    help=f"Name the classes that fall short, N per requirement ({SHOWN} if no number is given).",
)
@click.option("--signer", type=click.Path(path_type=Path), help="Public key: the release must be signed by its owner.")
@click.option("--suppressed", default="*", show_default=True, help=MARK)
@runs_anywhere
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.pass_context
def verify(
    ctx: click.Context,
    release: Path | str,
    policy: Path | None,
    original: str | None,
    show: int,
    signer: Path | None,
    suppressed: str,
    engine: Any,
    as_json: bool,
) -> None:
    """Recompute every requirement on the cells of RELEASE. Exit code 1 if one does not hold, 3 if one is undecided.

    Anything in the directory that the manifest does not describe is refused by name, with exit code 2.

    RELEASE is a release directory or schema (postgresql://host/base?schema=name), or with --policy any table that
    another tool made: CSV, Parquet, Arrow, postgresql://host/base?table=schema.name.
    """
    left_out, signed = 0, None
    from noren.release.release import is_address, is_release, open_release

    if is_release(release) or not (is_address(release) or Path(release).exists()):
        from noren.workflow.verify import verify as check

        opened = open_release(release)
        with stages(as_json)("Verifying", opened.rows) as meter:
            verdicts = check(opened, policy, original=original, signer=signer, engine=engine, meter=meter, show=show)
        signed = opened.signer
        records, words = opened.records, f"{_looked_at(opened)}, {signature_words(signed, signer)}"
    else:
        from noren.workflow.foreign import verify_table

        if policy is None:
            raise click.UsageError("A table that is no release is checked against --policy.")
        if original is not None or signer is not None:
            raise click.UsageError("--original and --signer are for releases.")
        with stages(as_json)("Verifying", None):
            foreign, verdicts = verify_table(release, policy, suppressed=suppressed, show=show)
        records, left_out = foreign.records, foreign.suppressed
        words = f"{_many(left_out, 'suppressed row')} judged as a class" if left_out else "no suppressed rows"
    failed = [verdict for verdict in verdicts if verdict.holds is False]
    undecided = [verdict for verdict in verdicts if verdict.holds is None]
    if as_json:
        holds = False if failed else None if undecided else True
        told: dict[str, Any] = {"release": named(release), "holds": holds, "records": records, "suppressed": left_out}
        told["signer"] = None if signed is None else signed.fingerprint
        told["unconfirmed"] = list(verdicts.unconfirmed)
        echo_json(told | {"verdicts": [verdict.to_dict() for verdict in verdicts]})
    else:
        say(f"{named(release)}: {records:,} records, {words}")
        table("Verdicts", VERDICT_COLUMNS, verdict_rows(verdicts), ("asked", "found"))
        for verdict in verdicts:
            if verdict.holds is not True:
                say(shortfall_line(verdict))
        parts = [f"{len(failed)} of {len(verdicts)} do not hold"] if failed else []
        parts += [f"{len(undecided)} of {len(verdicts)} cannot be decided from the release"] if undecided else []
        fine = "Every requirement holds." if verdicts else "Nothing is required."
        say(f"Requirements: {', '.join(parts)}." if parts else fine)
        for unconfirmed in verdicts.unconfirmed:
            say(f"Not confirmed: {unconfirmed}.")
        _show_classes(failed)
    ctx.exit(1 if failed else UNDECIDED if undecided else 0)


def _looked_at(release: Release) -> str:
    return "checksums match" if release.path is not None else "tables and columns as described"


def signature_words(found: PublicKey | None, asked: Path | None) -> str:
    """Whose release it is, as far as that is known."""
    if found is None:
        return "not signed"
    how = "as asked for" if asked is not None else "compare it with the holder's key, or give --signer"
    return f"signed by {found.fingerprint} ({how})"


def shortfall_line(verdict: Verdict) -> str:
    """What was found, what was asked, and how much falls short."""
    if verdict.holds is False and verdict.short:
        classes = "1 class" if verdict.short == 1 else f"{verdict.short:,} classes"
        return (
            f"{verdict.column}: {verdict.model} {verdict.achieved:.4g}, asked {verdict.required:g}: "
            f"{classes} ({_many(verdict.breaches, 'record')}) {'falls' if verdict.short == 1 else 'fall'} short"
        )
    return f"{verdict.column}: {verdict.statement}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _show_classes(failed: Sequence[Verdict]) -> None:
    for verdict in failed:
        if verdict.shortfalls:
            names = tuple(verdict.shortfalls[0].keys)
            rows = [[*one.keys.values(), one.records, f"{one.achieved:.4g}"] for one in verdict.shortfalls]
            title = f"{verdict.model} on {verdict.column}: classes that fall short, largest first"
            table(title, (*names, "records", "found"), rows, ("records", "found"))


@click.command(epilog="Example: noren measure arx.csv --quasi age,sex,zip --sensitive disease")
@click.argument("data", type=PLACE)
@click.option("--policy", type=click.Path(path_type=Path), help="Roles, hierarchies and orders of the columns.")
@click.option("--quasi", multiple=True, help="Quasi-identifiers: age,sex,zip. Repeatable; instead of a policy.")
@click.option("--sensitive", multiple=True, help="Sensitive columns. Repeatable; instead of a policy.")
@click.option("--suppressed", default="*", show_default=True, help=MARK)
@runs_anywhere
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
def measure(
    data: str,
    policy: Path | None,
    quasi: tuple[str, ...],
    sensitive: tuple[str, ...],
    suppressed: str,
    engine: Any,
    as_json: bool,
) -> None:
    """What DATA achieves in every privacy model: k, alpha, l, t, (tau, l), beta, delta and so on.

    DATA is a release directory, or any table with --policy or with --quasi and --sensitive.
    """
    from noren.cli.render import split_by
    from noren.models.class_check import OF_ROWS
    from noren.workflow.measure import measure as run

    with stages(as_json)("Measuring", None):
        asked = {"quasi": split_by(quasi), "sensitive": split_by(sensitive)}
        found = run(data, policy, **asked, suppressed=suppressed, engine=engine)
    if as_json:
        echo_json(found.to_dict())
        return
    left_out = f", {found.suppressed:,} suppressed" if found.suppressed else ""
    say(f"{found.name}: {found.records:,} records{left_out}; found by {', '.join(found.quasi) or 'nothing'}")
    if found.counted == "rows":
        say(f"Figures about classes are of rows, and people have fewer: {OF_ROWS}.")
    rows = []
    for one in found:
        better = "more" if one.higher_is_safer else "less"
        rows.append([one.column, one.model, one.others, one.parameter, f"{one.achieved:.4g}", better, one.basis])
    columns = ("column", "model", "with", "figure", "found", "safer", "ground")
    table("What the table achieves", columns, rows, ("found",))
    for what, why in found.skipped.items():
        say(f"{what}: {why}")


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
