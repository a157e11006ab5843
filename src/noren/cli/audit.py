"""Command of the holder and of the auditor: audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.render import (
    PLACE,
    RELEASE,
    NamedOption,
    echo_json,
    name_place,
    on_disk,
    runs_anywhere,
    say,
    stages,
    table,
)
from noren.errors import DataError, QueryError

if TYPE_CHECKING:
    from noren.audit import AttackResult, Case

MOST = 6
"""Lines of the summary for adversaries who know equally much."""
MEASURED = 100_000
"""As `noren.audit.sample` has it, which would load too much for --help."""


@click.command(
    epilog="Example: noren audit release --original patients.csv --policy policy.toml --truth disease --plot audit.html"
)
@click.argument("release", type=RELEASE, required=False)
@click.option(
    "--attack",
    "names",
    cls=NamedOption,
    registry="noren.audit:ATTACKS",
    multiple=True,
    metavar="NAME",
    help="An attack to run. Repeatable; default: all that apply.",
)
@click.option("--list", "listed", is_flag=True, help="Show every attack with its adversary, measure and options.")
@click.option(
    "--option", "set_options", multiple=True, metavar="NAME=VALUE", help="An option of an attack; --list shows them."
)
@click.option("--original", type=PLACE, help="The original table: attacks are also measured against the truth.")
@click.option("--policy", type=click.Path(path_type=Path), help="The policy of the release, to read the original.")
@click.option(
    "--second",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A further release of the same people, for the intersection attack. Repeatable.",
)
@click.option(
    "--second-original",
    "later",
    multiple=True,
    type=PLACE,
    help="The original of the second release, to match people by key.",
)
@click.option("--truth", metavar="COLUMN", help="Column of the original with every person's true label.")
@click.option(
    "--k",
    type=click.IntRange(2),
    help="For the linking attack: k of the k-anonymous table for comparison. Default: the policy's.",
)
@click.option(
    "--l",
    "size",
    type=click.IntRange(2),
    help="For the linking attack: l of the l-diverse table for comparison. Default: the policy's.",
)
@click.option(
    "--sample",
    type=click.IntRange(0),
    default=MEASURED,
    show_default=True,
    help="Attack a random sample of at most this many people, and state the error. 0 attacks everybody.",
)
@click.option("--plot", type=click.Path(path_type=Path), help="Write a chart: .html, .png or .svg.")
@click.option("--records", type=click.Path(path_type=Path), help="Write the beliefs about each record: .csv.")
@click.option("--details", is_flag=True, help="Print every figure of every attack below the summary.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@runs_anywhere
def audit(
    release: Path | str | None,
    names: tuple[str, ...],
    listed: bool,
    set_options: tuple[str, ...],
    original: str | None,
    policy: Path | None,
    second: tuple[Path, ...],
    later: tuple[str, ...],
    truth: str | None,
    k: int | None,
    size: int | None,
    sample: int,
    plot: Path | None,
    records: Path | None,
    details: bool,
    as_json: bool,
    engine: Any,
) -> None:
    """Attack RELEASE as an adversary would, and show what is learned; with --details every figure.

    Without the original: what an outsider can compute from the release. With it, the same people are looked up in the
    raw table and in the release, and for some attacks in merely k-anonymous ones; that is for the holder only.
    With --second, what two releases of the same people tell together. With --engine spark the attacks that need no more
    than counts of different rows, without the original.
    """
    from noren.audit import Case, counting_engine
    from noren.release.release import open_release
    from noren.workflow.prepare import read_policy

    if listed:
        _list(as_json)
        return
    if release is None:
        raise click.UsageError("Give a release, or --list.")
    if (original is None) != (policy is None):
        raise click.UsageError("Give --original and --policy together.")
    given: dict[str, Any] = {"truth": truth, "k": k, "l": size}
    options: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
    if original is None and options:
        raise click.UsageError(f"--{next(iter(options))} needs --original.")
    _check_targets(on_disk(release), plot, records)
    options |= _parse_options(set_options)
    if later and (not second or original is None):
        raise click.UsageError("--second-original needs --second, --original and --policy.")
    if second:
        names = names or ("intersection",)
        options |= {"intersection.other": second, **({"intersection.later": later} if later else {})}
    there = counting_engine(engine)
    opened = open_release(release) if there is None else there.open_release(release)
    rules = None if policy is None else read_policy(policy)
    case = Case(opened, rules, original, stages(as_json), sample, counts=there is not None)
    found, skipped = _run(case, names, options, show=not as_json)
    written = _write(found, plot, records)
    if as_json:
        told = {"release": name_place(release), "results": [one.to_dict() for one in found], "written": written}
        echo_json(told | ({"skipped": skipped} if skipped else {}))
        return
    _say_most(found, details)
    for one in found if details else ():
        say("")
        _show(one)
    for name, reason in skipped.items():
        say(f"Not run: {name}: {reason}.")
    secret = " (holder only)" if any(one.holder_only for one in found) else ""
    for path in written:
        say(f"Written{secret}: {path}")


def _run(
    case: Case, names: Sequence[str], options: Mapping[str, Any], show: bool
) -> tuple[list[AttackResult], dict[str, str]]:
    """Return the results of the named attacks (or of all that apply), and why the others do not apply.

    What adversaries who know equally much gain is shown as soon as it is known.
    """
    from noren.audit import KNOWLEDGE, make_attack, order_attacks, reasons

    skipped: dict[str, str] = {}
    chosen = list(dict.fromkeys(names))
    if not chosen:
        judged = reasons(case.release)
        chosen = [name for name, reason in judged.items() if reason is None]
        skipped = {name: reason for name, reason in judged.items() if reason is not None}
    found: list[AttackResult] = []
    attacks = order_attacks([make_attack(name, own) for name, own in _share_options(chosen, options).items()])
    for knows, alike in groupby(attacks, key=lambda one: one.knows):
        results: list[AttackResult] = []
        for one in alike:
            try:
                results += one.results(case)
            except QueryError as error:
                if names:
                    raise
                skipped[one.name] = error.message.rstrip(".")
        if show and results:
            _show_gains(KNOWLEDGE[knows], results)
        found += results
    if not found:
        told = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise QueryError(f"no attack applies to this release: {told}.")
    return found, skipped


def _share_options(chosen: Sequence[str], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Read the options of the attacks. An option written as attack.option is for that attack only."""
    from noren.audit import ATTACKS

    out: dict[str, dict[str, Any]] = {name: {} for name in chosen}
    for option, value in options.items():
        only, dot, field = option.rpartition(".")
        takers = [
            name
            for name in chosen
            if name not in ATTACKS or (field in ATTACKS[name].model_fields and field != "name" and only in ("", name))
        ]
        if not takers:
            known = sorted({f for name in chosen for f in ATTACKS[name].model_fields if f != "name"})
            having = [name for name in ATTACKS if field in ATTACKS[name].model_fields and only in ("", name)]
            where = f"the attack {only!r}" if dot else "these attacks"
            hint = (
                f"Several attacks have this option ({', '.join(having)}): choose with --attack."
                if having
                else f"Options: {', '.join(known)}."
            )
            raise QueryError(f"{where}: no option {field!r}.", hint=hint)
        for name in takers:
            out[name][field] = _many(name, field, value)
    return out


def _many(name: str, field: str, value: Any) -> Any:
    """Split a text into a list if the option takes several values."""
    from noren.audit import ATTACKS

    if name not in ATTACKS or not isinstance(value, str):
        return value
    listed = str(ATTACKS[name].model_fields[field].annotation).startswith(("tuple", "list"))
    return [part.strip() for part in value.split(",")] if listed else value


def _parse_options(pairs: Sequence[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for pair in pairs:
        name, found, value = pair.partition("=")
        if not found or not name.strip():
            raise click.UsageError(f"--option {pair!r} is not NAME=VALUE.")
        out[name.strip()] = value.strip()
    return out


def _list(as_json: bool) -> None:
    """List every attack with its adversary, measure and options."""
    from noren.audit import ATTACKS

    found: list[dict[str, Any]] = []
    for name, kind in ATTACKS.items():
        fields = {option: field for option, field in kind.model_fields.items() if option != "name"}
        options = [
            {
                "name": option,
                "default": None if field.is_required() else field.default,
                "means": field.description or "",
            }
            for option, field in fields.items()
        ]
        found.append({"attack": name, "adversary": kind.adversary, "success": kind.success, "options": options})
    if as_json:
        echo_json({"attacks": found})
        return
    for number, one in enumerate(found):
        if number:
            say("")
        say(f"{one['attack']}")
        say(f"  Adversary: {one['adversary']}.")
        say(f"  Success: {one['success']}.")
        for option in one["options"]:
            default = "" if option["default"] is None else f" Default: {option['default']}."
            say(f"  {option['name']}: {option['means']}{default}")


def _check_targets(release: Path | None, plot: Path | None, records: Path | None) -> None:
    """Refuse files that cannot be written, before any work; nothing is ever added to a release."""
    from noren.estimates.counts.plots import chart_suffix
    from noren.files import refuse_target

    for path in (plot, records):
        if path is not None:
            refuse_target(path, release)
    if plot is not None:
        chart_suffix(plot)
    if records is not None and records.suffix.lower() != ".csv":
        raise DataError(f"{records}: records are written as CSV.", hint="Choose a name that ends in .csv.")


def _write(found: Sequence[AttackResult], plot: Path | None, records: Path | None) -> list[str]:
    """Write the charts and the lines of all results; return the written files."""
    out = []
    if plot is not None:
        from noren.estimates.counts.plots import save_chart

        for number, one in enumerate(found, 1):
            path = plot if len(found) == 1 else plot.with_stem(f"{plot.stem}-{number}")
            written = save_chart(one.chart(), path)
            if one.holder_only:
                written.chmod(0o600)
            out.append(str(written))
    if records is not None:
        import polars as pl

        from noren.cli.render import guarded_frame
        from noren.report.page import write_page

        lines = pl.concat([one.records() for one in found], how="diagonal_relaxed")
        write_page(records, guarded_frame(lines).write_csv(), private=any(one.holder_only for one in found))
        out.append(str(records))
    return out


def _gain(result: AttackResult) -> tuple[float, list[str]]:
    """Return the gain of the main figure of a result, and its line in the summary."""
    from noren.report.attacks import attack_content, final, headline
    from noren.report.render import percent

    told = attack_content(result)
    name, last = headline(told), final(told)
    head = [result.attack, _targets(result)]
    if name is None:
        return -2.0, [*head, "-", "-", "-", last["title"]]
    before, after = told["baseline"].get(name), last["summary"][name]
    title = str(told["titles"].get(name, name.replace("_", " ")))
    gain = after - before if before is not None else -1.0
    return gain, [*head, title, percent(before), percent(after), last["title"]]


def _show_gains(knowledge: str, results: Sequence[AttackResult]) -> None:
    """Print one line per attack and target for adversaries with equal knowledge, largest gain first."""
    rows = [row for _, row in sorted(map(_gain, results), key=lambda line: -line[0])]
    columns = ("attack", "on", "figure", "before", "after", "after means")
    table(f"An adversary who {knowledge}", columns, rows[:MOST], ("before", "after"))
    if len(rows) > MOST:
        say(f"{len(rows) - MOST} more gain less.")


def _say_most(results: Sequence[AttackResult], details: bool) -> None:
    """Print the adversary who learns most, and the basis of the figures."""
    likely = [one for one in results if one.knows != "everybody else"] or results
    gain, first = max(((_gain(one)[0], one) for one in likely), key=lambda line: line[0])
    if gain > 0:
        say(f"The strongest adversary {first.adversary}.")
    for one in [result for result in results if result.attack == "bayes"][:1]:
        say(f"About {_targets(one)}: {one.notes[0]}.")
    for note in dict.fromkeys(note for one in results for note in one.notes if note.startswith("measured on")):
        say(f"{note[0].upper()}{note[1:]}.")
    if any(one.holder_only for one in results) and not details:
        say("These figures are computed from the original; do not publish them.")
    if not details:
        say("Use --details to see every figure and the knowledge of each adversary.")


def _targets(result: AttackResult) -> str:
    names = result.target
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def _show(result: AttackResult) -> None:
    facts = result.facts
    targets = ", ".join(result.target[:-1]) + (" and " if result.target[1:] else "") + "".join(result.target[-1:])
    say(f"The {result.attack} attack on {targets}")
    say(f"Adversary: {result.adversary}.")
    say(f"Success: {result.success}.")
    if {"labels", "terms", "prior"} <= facts.keys():
        say(f"Knowledge: {facts['labels']:,} labels, {facts['terms']:,} terms. Prior: {facts['prior']}.")
    elif "prior_from" in facts:
        say(f"Prior: how the values are distributed in {facts['prior_from']}.")
    rows = [["before any release", "-", *_figures(result, result.baseline)]]
    for scenario in result.shown:
        figures = _figures(result, scenario.summary, scenario.bounds)
        of = "" if scenario.of is None else f" of {scenario.of:,}"
        rows.append([scenario.title, f"{scenario.lines:,}{of}", *figures])
    people = "people" if result.shown[0].by == "person" else "rows"
    columns = ("table", people, *result.titles.values())
    table("What the adversary gains", columns, rows, columns[1:])
    for note in result.notes:
        say(f"Note: {note}.")
    if result.holder_only:
        say("These figures are computed from the original; do not publish them.")


def _figures(
    result: AttackResult, figures: Mapping[str, float], bounds: Mapping[str, tuple[float, float]] | None = None
) -> list[str]:
    out = []
    for name in result.titles:
        share = name in result.shares
        text = _figure(figures.get(name), share)
        if bounds and name in bounds:
            low, high = bounds[name]
            text += f" ({_figure(low, share)} to {_figure(high, share)})"
        out.append(text)
    return out


def _figure(value: float | None, share: bool) -> str:
    if value is None or isnan(value):
        return "-"
    if share:
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 or isinstance(value, int) else f"{value:.3f}"
