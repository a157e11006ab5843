"""Commands of the holder: init, fix, schema, hierarchy, anonymize, secret, key, publish."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.render import (
    PLACE,
    RELEASE,
    VERDICT_COLUMNS,
    OneOf,
    echo_json,
    name_place,
    on_disk,
    reads_csv,
    reads_queries,
    runs_anywhere,
    say,
    say_file,
    seconds_line,
    stages,
    table,
    verdict_rows,
)
from noren.errors import PolicyError, RequirementNotMet, SecretError
from noren.secret.signing import PASSPHRASE, SigningKey, is_locked

if TYPE_CHECKING:
    from noren.engines import TermSearch


@click.command(epilog="Example: noren init patients.csv > policy.toml")
@click.argument("data", type=PLACE)
@reads_csv
@click.option("--to", type=click.Path(path_type=Path), help="Write the draft to this file instead of the terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print {policy: ...} as JSON.")
@reads_queries
def init(data: str, csv: dict[str, Any], to: Path | None, as_json: bool) -> None:
    """Draft a commented policy for DATA: kinds, distinct values, roles with reasons, what stays unprotected."""
    from noren.files import refuse_target, write_whole
    from noren.sources.source import open_source
    from noren.workflow.advice import draft

    source = open_source(data, **csv)
    text = draft(source, csv | {"missing_values": list(csv["missing_values"]) or None})
    if to is not None:
        refuse_target(to)
        write_whole(to, text.encode())
    if as_json:
        echo_json({"policy": text, "notes": list(source.notes)})
        return
    for note in source.notes:
        say(f"Note: {note}", err=True)
    if to is None:
        say_file(text)
    else:
        say(f"Draft written to {to}. Read it and correct it.")


@click.command(epilog="Example: noren fix patients.csv policy.toml --to fixed.toml")
@click.argument("data", type=PLACE)
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(path_type=Path), help="Write the policy to this file instead of the terminal.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the policy, the changes, and the alternatives with their loss of information.",
)
@reads_queries
def fix(data: str, policy: Path, to: Path | None, as_json: bool) -> None:
    """Change POLICY so that DATA can be published, with the smallest loss of information.

    Every change is tried on the table, and its price is measured: the share of the table's information that is kept.
    No requirement is lowered. Comments say what was changed and what else would help.
    """
    from noren.files import refuse_target, write_whole
    from noren.policy.toml import text_for
    from noren.workflow.fix import fix as run

    if to is not None:
        refuse_target(to)
    found = run(data, policy, stage=stages(as_json))
    assert found.policy is not None
    if to is not None:
        elsewhere = to.parent.resolve() != policy.parent.resolve()  # paths in a policy are relative to its folder
        write_whole(to, (found.note + text_for(found.policy, to.parent) if elsewhere else found.text).encode())
    if as_json:
        echo_json(found.to_dict() | {"to": to and str(to)})
        return
    for number, change in enumerate(found if to is not None else (), 1):  # else they stand in the text
        say(f"{number}. {change.problem}", err=True)
        say(f"   changed: {change.chosen.text}", err=True)
        for other in change.others[:3]:
            say(f"   instead: {other.text}", err=True)
    if not found:
        say(f"{policy} runs without changes.", err=True)
    kept = f"keeps {found.kept:.0%} of the information in the columns that {policy} publishes"
    say(f"Checked on {found.checked:,} records; the release {kept}.", err=True)
    if to is None:
        say_file(found.text)
    else:
        say(f"Written to {to}. Next: noren anonymize {data} {to} --to release", err=True)


@click.command(epilog="Example: noren anonymize patients.csv policy.toml --to release --report report.html")
@click.argument("data", type=PLACE)
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--to", type=RELEASE, help="New directory for the release, or an address in object storage (s3://...).")
@click.option(
    "--preview",
    is_flag=True,
    help="Publish nothing; show which questions recipients could ask, and how precise the answers would be.",
)
@click.option("--format", "file_format", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True)
@click.option(
    "--secret", type=click.Path(path_type=Path), help="Secret file: each person keeps the same decoys in every release."
)
@runs_anywhere
@click.option("--sign", type=click.Path(path_type=Path), help="Sign the release with this key (`noren key new`).")
@click.option(
    "--passphrase-file", type=click.Path(path_type=Path), help="A file that holds the passphrase of the signing key."
)
@click.option(
    "--report", type=click.Path(path_type=Path), help="Write an HTML report to this file, for the holder only."
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@reads_queries
def anonymize(
    data: str,
    policy: Path,
    to: Path | str | None,
    preview: bool,
    file_format: str,
    secret: Path | None,
    engine: Any,
    sign: Path | None,
    passphrase_file: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Make a verified release of DATA under POLICY. If a requirement is not met, nothing is published."""
    from noren.policy.policy import Policy
    from noren.release.guesses import warn_of_guesses
    from noren.workflow.anonymize import preview as described
    from noren.workflow.anonymize import run

    if preview:
        told = described(data, policy, engine=engine, stage=stages(as_json))
        if as_json:
            echo_json({"preview": told.splitlines()})
        else:
            say(told)
        return
    if to is None:
        raise click.UsageError("no directory for the release is given. Use --to, or --preview.")
    key = None if sign is None else load_key(sign, passphrase_file)
    if report is not None and not isinstance(engine, str):
        raise click.UsageError(
            "--report is not available with a cluster, because attacks run on one machine: run `noren report` instead."
        )
    if report is not None:
        from noren.files import refuse_target

        refuse_target(report, on_disk(to))
    asked = Policy.load(policy)
    try:
        outcome = run(
            data,
            asked,
            to=to,
            file_format=file_format,  # type: ignore[arg-type]
            secret=secret,
            engine=engine,
            sign=key,
            stage=stages(as_json),
        )
    except (PolicyError, RequirementNotMet) as error:
        error.way_out = f"noren fix {data} {policy}"
        raise
    facts = outcome.facts
    if report is not None:
        from noren.report.page import holder_page

        holder_page(outcome, policy=policy, original=data, attacks=None, stage=stages(as_json)).save(report)
    if as_json:
        echo_json(
            {
                "release": name_place(to),
                "records": facts.records,
                "dropped": facts.dropped,
                "suppressed": facts.suppressed,
                "signer": None if key is None else key.public.fingerprint,
                "losses": dict(facts.losses),
                "randomness": "memoised" if facts.memoised else "fresh",
                "designs": {
                    name: {"name": d.name, "d": d.d, "eta": d.eta, "p": d.p, "epsilon": epsilon_of(d)}
                    for name, d in facts.designs.items()
                },
                "verdicts": [verdict.to_dict() for verdict in facts.verdicts],
                "replayed": [one.to_dict() for one in facts.replays],
                "guesses": [one.to_dict() for one in outcome.release.guesses],
                "notes": list(facts.notes),
                "seconds": dict(facts.seconds),
                **({"epsilon_of_margins": outcome.release.manifest.spent} if outcome.release.manifest.margins else {}),
                **({"terms": [_left_out(part) for part in facts.terms]} if facts.terms else {}),
            }
        )
        return
    for note in facts.notes:
        say(f"Note: {note}", err=True)
    dropped = f", {facts.dropped:,} dropped for missing values" if facts.dropped else ""
    dropped += f", {facts.suppressed:,} suppressed to protect the others" if facts.suppressed else ""
    say(f"Released {facts.records:,} records{dropped} to {name_place(to)}")
    rows = [[name, d.name, d.eta, d.d, f"{d.p:.4g}", _number_text(epsilon_of(d))] for name, d in facts.designs.items()]
    numbers = ("set size", "of values", "p", "epsilon")
    if facts.designs:
        table("Decoys", ("column", "design", *numbers), rows, numbers)
    if margins := outcome.release.manifest.margins:
        listed = [[" x ".join(m.of), f"{len(m.counts):,}", f"{m.epsilon:g}", f"{m.scale:.4g}"] for m in margins]
        title, figures = (
            f"Noised margins (total epsilon {outcome.release.manifest.spent:g})",
            ("cells", "epsilon", "scale"),
        )
        table(title, ("of", *figures), listed, figures)
    if facts.losses:
        measured = [[name.replace("_", " "), f"{figure:,.4g}"] for name, figure in facts.losses.items()]
        table("Scores (higher is better) and losses (lower is better)", ("measure", "found"), measured, ("found",))
    if facts.terms:
        _show_left_out(facts.terms)
    table("Verified", VERDICT_COLUMNS, verdict_rows(facts.verdicts), ("asked", "found"))
    for one in facts.replays:
        say(one.sentence)
    for guess in outcome.release.guesses:
        say(guess.sentence)
    if warning := warn_of_guesses(outcome.release.guesses):
        say(warning, err=True)
    say(f"Time: {seconds_line(facts.seconds)}")
    if report is not None:
        say(f"Report (holder only): {report}")


@click.command(epilog="Example: noren secret hospital.key")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--show", is_flag=True, help="Show the register of an existing secret instead.")
@click.option("--json", "as_json", is_flag=True, help="Print path and fingerprint as JSON.")
def secret(file: Path, show: bool, as_json: bool) -> None:
    """Make a new secret in FILE and its register in FILE.register; only you can read them.

    With it and a record key in the policy, a person keeps the same decoys in every release, and a release that could
    be intersected with an earlier one is refused. Keep both as you keep the original: whoever has the secret can strip
    the decoys, and without the register nobody knows what was released.
    """
    from noren.secret import Secret

    if show:
        _show_register(file, as_json)
        return
    made = Secret.create(file)
    if as_json:
        echo_json({"secret": str(file), "fingerprint": made.fingerprint})
        return
    say(f"Secret written to {file}, its register to {file}.register. Use it in the policy:")
    say(f'\n[randomness]\nsecret = "{file.name}"\nrecord_key = "..."    # the column that names a person')
    say(f'fingerprint = "{made.fingerprint}"')


def _show_register(file: Path, as_json: bool) -> None:
    """Print the releases under a secret: columns and numbers, no people."""
    from dataclasses import asdict

    from noren.secret import Register

    register = Register.open(file)
    known = register.contents
    columns: list[dict[str, Any]] = [
        {"column": name, "published": one.entry.design, "eta": one.entry.eta, "values": len(one.entry.domain)}
        | {"p": one.entry.p, "people": int((one.marks > 0).sum())}
        for name, one in known.drawn.items()
    ]
    columns += [
        {"column": name, "published": "classes", "eta": None, "values": len(sets.values)}
        | {"p": None, "people": int((sets.which >= 0).sum())}
        for name, sets in known.classes.items()
    ]
    if as_json:
        key = None if known.key is None else asdict(known.key)
        facts = {"register": str(register.path), "bytes": register.size, "releases": known.releases}
        facts |= {"epsilon_of_margins": known.spent} if known.spent else {}
        echo_json(facts | {"people": len(known.people), "key": key, "columns": columns})
        return
    say(f"{register.path}: {known.releases:,} releases, {len(known.people):,} people, {register.size:,} bytes")
    if known.spent:
        say(f"Noised margins have spent epsilon = {known.spent:g} in total")
    if (rule := known.key) is not None:
        say(f"People are recognised by {rule.column}: unicode {rule.unicode}, spaces {rule.spaces}, case {rule.case}")
    numbers = ("set size", "of values", "p", "people")
    if columns:
        rows = [["-" if cell is None else cell for cell in one.values()] for one in columns]
        table("Released columns", ("column", "published as", *numbers), rows, numbers)


def epsilon_of(design: Any) -> float | None:
    """Return the local differential privacy epsilon of one set, or None if p = 1."""
    return None if design.p == 1 else float(design.epsilon)


def _left_out(part: TermSearch) -> dict[str, Any]:
    """Return the results of the term suppression, in all and group by group."""
    names = ("records", "cost", "lower_bound", "optimal", "searched")
    return {
        **part.totals,
        "nodes": part.nodes,
        "seconds": part.seconds,
        "by_group": {name: getattr(part, name).tolist() for name in names},
    }


def _show_left_out(parts: Sequence[TermSearch]) -> None:
    """Print one line per knowledge table."""
    numbers = ("groups", "searched", "proven optimal", "mean cost", "gap", "terms left out", "of all", "s")
    rows = []
    for part in parts:
        found = _left_out(part)
        gap = "not known" if isinf(part.gap) else f"{part.gap:.1%}"
        counts = [f"{found[name]:,}" for name in ("groups", "searched", "proven")]
        more = [f"{part.mean_cost:.4f}", gap, f"{part.removed:,}", f"{part.entries:,}", f"{part.seconds:.2f}"]
        rows.append([", ".join(part.columns), part.search, *counts, *more])
    table("Left-out terms", ("columns", "search", *numbers), rows, numbers)


def _number_text(number: float | None) -> str:
    return "-" if number is None else f"{number:.3g}"


@click.command(epilog="Example: noren schema --to noren.schema.json")
@click.option("--to", type=click.Path(path_type=Path), help="Write the schema to this file instead of the terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the path of the schema as JSON.")
def schema(to: Path | None, as_json: bool) -> None:
    """Write a JSON Schema of the policy file, so that editors complete and check policies.

    The first line of a drafted policy names the file noren.schema.json in the policy's own folder. VS Code reads it
    with the extension Even Better TOML.
    """
    import json

    from noren.files import refuse_target, write_whole
    from noren.policy import policy_schema

    text = json.dumps(policy_schema(), indent=1) + "\n"
    if to is None:
        say_file(text)
        return
    refuse_target(to)
    write_whole(to, text.encode())
    if as_json:
        echo_json({"to": str(to)})
    else:
        say(f"Schema written to {to}.")


@click.command(epilog="Example: noren hierarchy patients.csv zip --by prefix --to zip.csv")
@click.argument("data", type=PLACE)
@click.argument("column")
@click.option(
    "--by", type=OneOf("noren.policy.hierarchies:RULES"), help="The rule; by default the one that fits the column."
)
@reads_csv
@click.option("--to", type=click.Path(path_type=Path), help="Write the hierarchy to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print {made, levels} as JSON.")
@reads_queries
def hierarchy(data: str, column: str, by: str | None, csv: dict[str, Any], to: Path | None, as_json: bool) -> None:
    """Write a hierarchy of COLUMN of DATA in ARX's layout: value;...;root, one line per value.

    Edges are round numbers with open ends and no record's own values. Edit the file, then name it in the policy:
    hierarchy = "zip.csv". It lists values of your table: it is a holder's file.
    """
    from noren.files import refuse_target, write_whole
    from noren.policy.hierarchies import make_hierarchy
    from noren.sources.source import open_source

    source = open_source(data, **csv)
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
        say(f"{len(made.leaves):,} values in {made.height + 1} levels written to {to}. Read it and correct it.")


SIGNING_KEY = "noren-signing.key"
PASSPHRASE_FILE = "A file whose first line is the passphrase."


@click.group(epilog=f"Example: noren key new {SIGNING_KEY} (with --json, the outcome as JSON)")
def key() -> None:
    """Manage keys that sign releases."""


@key.command("new", epilog=f"Example: noren key new {SIGNING_KEY}; noren anonymize ... --sign {SIGNING_KEY}")
@click.argument("file", type=click.Path(path_type=Path), default=SIGNING_KEY)
@click.option(
    "--passphrase", "ask", is_flag=True, help=f"Lock the key with a passphrase, from {PASSPHRASE} or typed in."
)
@click.option("--passphrase-file", type=click.Path(path_type=Path), help=PASSPHRASE_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def new(file: Path, ask: bool, passphrase_file: Path | None, as_json: bool) -> None:
    """Make a signing key FILE (private) and FILE.pub (for everybody who checks your releases)."""
    word = None
    if passphrase_file is not None:
        word = read_passphrase(passphrase_file)
    elif ask:
        word = os.environ.get(PASSPHRASE) or click.prompt("Passphrase", hide_input=True, confirmation_prompt=True)
    made = SigningKey.create(file, word)
    if as_json:
        echo_json({"key": str(file), "public": f"{file}.pub", "fingerprint": made.public.fingerprint})
        return
    say(f"Signing key: {file} (keep it, and a copy in a safe place)")
    say(f"Public key: {file}.pub (give it to recipients and auditors)")
    say(f"Fingerprint: {made.public.fingerprint} (publish it in a place that others cannot change)")


def read_passphrase(path: Path) -> str:
    """Read the first line of a file."""
    try:
        with path.open(encoding="utf-8") as file:
            word = file.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise SecretError(
            f"{path}: cannot be read as a passphrase.", hint="Give a file with one line of UTF-8 text."
        ) from None
    if not word:
        raise SecretError(f"{path}: its first line is empty.", hint="Write the passphrase into the first line.")
    return word


def load_key(path: Path, passphrase_file: Path | None) -> SigningKey:
    """Load the signing key of a command; the passphrase comes from a file, the environment or the user."""
    if passphrase_file is not None:
        return SigningKey.load(path, read_passphrase(passphrase_file))
    locked = path.is_file() and is_locked(path.read_bytes())
    if locked and not os.environ.get(PASSPHRASE) and os.isatty(0):
        return SigningKey.load(path, click.prompt(f"Passphrase of {path}", hide_input=True))
    return SigningKey.load(path)


@click.command(epilog='Example: noren publish release "postgresql://localhost/base?schema=patients" --grant analysts')
@click.argument("release", type=RELEASE)
@click.argument("address")
@click.option(
    "--grant",
    multiple=True,
    metavar="ROLE",
    help="A database role that may read it. Repeatable; default: only the owner.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def publish(release: Path | str, address: str, grant: tuple[str, ...], as_json: bool) -> None:
    """Write RELEASE into the schema of a PostgreSQL database that ADDRESS names.

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
