"""Commands of the auditor: verify, measure, report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.render import (
    CELLS,
    PLACE,
    RELEASE,
    VERDICT_COLUMNS,
    NamedOption,
    echo_json,
    name_place,
    on_disk,
    runs_anywhere,
    say,
    stages,
    table,
    verdict_rows,
)
from noren.errors import DataError

if TYPE_CHECKING:
    from noren.models.verdict import Verdict
    from noren.release.release import Release
    from noren.secret import PublicKey


SHOWN = 5
UNDECIDED = 3
"""Exit code where nothing fails and something cannot be decided."""
MARK = "The text that another tool writes into all quasi-identifiers of a suppressed record."


@click.command(epilog="Example: noren verify release --policy policy.toml --original patients.csv")
@click.argument("release", type=RELEASE)
@click.option(
    "--policy", type=click.Path(path_type=Path), help="Check these requirements instead of those the release claims."
)
@click.option(
    "--original",
    type=PLACE,
    help="The original table: also check exact closeness, and that sets contain the true values.",
)
@click.option(
    "--show",
    is_flag=False,
    flag_value=SHOWN,
    type=click.IntRange(0),
    default=0,
    metavar="[N]",
    help=f"List the largest classes that break a requirement, N per requirement ({SHOWN} by default).",
)
@click.option(
    "--signer", type=click.Path(path_type=Path), help="Public key of the signer: the release must have its signature."
)
@click.option("--suppressed", default="*", show_default=True, help=MARK)
@CELLS
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
    cells: tuple[tuple[str, str], ...],
    engine: Any,
    as_json: bool,
) -> None:
    """Recompute every requirement on the cells of RELEASE. Exit code 1 if one does not hold, 3 if one is undecided.

    Anything in the directory that the manifest does not describe is refused by name, with exit code 2.

    RELEASE is a release directory or schema (postgresql://host/base?schema=name), or with --policy any table that
    another tool made: CSV, Parquet, Arrow, postgresql://host/base?table=schema.name.
    """
    left_out, signed, read = 0, None, list[str]()
    from noren.release.release import is_address, is_release, open_release

    if is_release(release) or not (is_address(release) or Path(release).exists()):
        from noren.workflow.verify import verify as check

        opened = open_release(release)
        with stages(as_json)("Verifying", opened.rows) as meter:
            verdicts = check(opened, policy, original=original, signer=signer, engine=engine, meter=meter, show=show)
        signed = opened.signer
        records, words = opened.records, f"{_looked_at(opened)}, {signature_words(signed, signer)}"
    else:
        from noren.workflow.foreign import describe_cells, verify_table

        if policy is None:
            raise click.UsageError("Add --policy to check a table that is not a release.")
        if signer is not None:
            raise click.UsageError("--signer applies to releases only.")
        with stages(as_json)("Verifying", None):
            forms: Any = dict(cells)
            options: Any = {"original": original, "suppressed": suppressed, "show": show}
            foreign, verdicts = verify_table(release, policy, **options, cells=forms)
        records, left_out, read = foreign.records, foreign.suppressed, describe_cells(foreign)
        words = f"{_many(left_out, 'suppressed row')} judged as a class" if left_out else "no suppressed rows"
    failed = [verdict for verdict in verdicts if verdict.holds is False]
    undecided = verdicts.open
    left = sum(verdict.by_holder for verdict in verdicts)
    if as_json:
        holds = False if failed else None if undecided or left else True
        told: dict[str, Any] = {
            "release": name_place(release),
            "holds": holds,
            "records": records,
            "suppressed": left_out,
        }
        told["signer"] = None if signed is None else signed.fingerprint
        told["unconfirmed"] = list(verdicts.unconfirmed)
        told |= {"cells": read} if read else {}
        echo_json(told | {"verdicts": [verdict.to_dict() for verdict in verdicts]})
    else:
        say(f"{name_place(release)}: {records:,} records, {words}")
        for line in read:
            say(line)
        table("Verdicts", VERDICT_COLUMNS, verdict_rows(verdicts), ("asked", "found"))
        for verdict in verdicts:
            if verdict.holds is not True and not verdict.by_holder:
                say(shortfall_line(verdict))
        parts = [f"{len(failed)} of {len(verdicts)} do not hold"] if failed else []
        parts += [f"{len(undecided)} of {len(verdicts)} cannot be decided from the release"] if undecided else []
        parts += [f"{len(verdicts) - left} of {len(verdicts)} hold"] if left and not parts else []
        fine = "Every requirement holds." if verdicts else "Nothing is required."
        say(f"Requirements: {', '.join(parts)}." if parts else fine)
        for unconfirmed in verdicts.unconfirmed:
            say(f"Not confirmed: {unconfirmed}.")
        _show_classes(failed)
    ctx.exit(1 if failed else UNDECIDED if undecided else 0)


def _looked_at(release: Release) -> str:
    return "checksums match" if release.path is not None else "tables and columns are as described"


def signature_words(found: PublicKey | None, asked: Path | None) -> str:
    """Describe who signed the release, if that is known."""
    if found is None:
        return "not signed"
    how = "as asked for" if asked is not None else "to verify it, give --signer with the holder's public key"
    return f"signed by {found.fingerprint} ({how})"


def shortfall_line(verdict: Verdict) -> str:
    """Describe the found and the required value, and how many records break the requirement."""
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
            title = f"{verdict.model} on {verdict.column}: classes that break the requirement, largest first"
            table(title, (*names, "records", "found"), rows, ("records", "found"))


@click.command(epilog="Example: noren measure arx.csv --quasi age,sex,zip --sensitive disease")
@click.argument("data", type=PLACE)
@click.option("--policy", type=click.Path(path_type=Path), help="Roles, hierarchies and orders of the columns.")
@click.option("--quasi", multiple=True, help="Quasi-identifiers: age,sex,zip. Repeatable; instead of a policy.")
@click.option("--sensitive", multiple=True, help="Sensitive columns. Repeatable; instead of a policy.")
@click.option("--suppressed", default="*", show_default=True, help=MARK)
@CELLS
@runs_anywhere
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
def measure(
    data: str,
    policy: Path | None,
    quasi: tuple[str, ...],
    sensitive: tuple[str, ...],
    suppressed: str,
    cells: tuple[tuple[str, str], ...],
    engine: Any,
    as_json: bool,
) -> None:
    """Show the parameter that DATA reaches in every privacy model: k, alpha, l, t, (tau, l), beta, delta and so on.

    DATA is a release directory, or any table with --policy or with --quasi and --sensitive.
    """
    from noren.cli.render import split_by
    from noren.models.class_check import OF_ROWS
    from noren.workflow.measure import measure as run

    with stages(as_json)("Measuring", None):
        asked: dict[str, Any] = {"quasi": split_by(quasi), "sensitive": split_by(sensitive), "cells": dict(cells)}
        found = run(data, policy, **asked, suppressed=suppressed, engine=engine)
    if as_json:
        echo_json(found.to_dict())
        return
    left_out = f", {found.suppressed:,} suppressed" if found.suppressed else ""
    say(f"{found.name}: {found.records:,} records{left_out}; found by {', '.join(found.quasi) or 'nothing'}")
    for line in found.cells:
        say(line)
    if found.counted == "rows":
        say(f"Figures about classes count rows, not people: {OF_ROWS}.")
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
@click.option("--policy", type=click.Path(path_type=Path), help="Check this policy instead of what the release claims.")
@click.option("--original", type=PLACE, help="The original table: adds figures that only the holder may see.")
@click.option(
    "--attack",
    "attacks",
    cls=NamedOption,
    registry="noren.audit:ATTACKS",
    multiple=True,
    metavar="NAME",
    help="Run this attack; by default all that apply.",
)
@click.option("--to", type=click.Path(path_type=Path), help="File to write: .html, or .json for the figures only.")
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
    """Write a report about RELEASE: published columns, requirements, attacks and losses.

    One file that opens without a network and can be printed. Without the original it is for anybody; with it, for the
    holder only. Exit code 1: the report was written, and it says that a requirement does not hold; 3: that one is
    undecided.
    """
    from noren.files import refuse_target
    from noren.report.page import make_report

    if to is None and not as_json:
        raise click.UsageError("Give --to FILE, or --json.")
    if original is not None and policy is None:
        raise click.UsageError("--original needs --policy, which describes how to read the original.")
    if to is not None:
        if to.suffix.lower() not in (".html", ".htm", ".json"):
            raise DataError(
                f"{to}: a report is written as HTML or JSON.", hint="Choose a name that ends in .html or .json."
            )
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
            say(f"{len(failed)} of {len(page.content['verdicts'])} checks fail; the report lists them.", err=True)
    undecided = any(one["holds"] is None and not one.get("by_holder") for one in page.content["verdicts"])
    ctx.exit(1 if failed else UNDECIDED if undecided else 0)
