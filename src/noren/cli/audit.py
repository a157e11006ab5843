"""Command of the holder and of the auditor: audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.render import echo_json, stages, table
from noren.errors import DataError

if TYPE_CHECKING:
    from noren.audit import AttackResult


@click.command(
    epilog="Example: noren audit release --original patients.csv --policy policy.toml --truth disease --plot audit.html"
)
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--attack", "name", default="linking", show_default=True, help="Which attack to run.")
@click.option("--original", type=click.Path(path_type=Path), help="The original table: compare with what it tells.")
@click.option("--policy", type=click.Path(path_type=Path), help="The policy of the release, to read the original.")
@click.option("--truth", metavar="COLUMN", help="Column of the original with every person's true label.")
@click.option("--k", type=click.IntRange(2), help="k of the merely k-anonymous table. Default: the policy's.")
@click.option("--l", "size", type=click.IntRange(2), help="l of the merely l-diverse table. Default: the policy's.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write a chart: .html, .png or .svg.")
@click.option("--records", type=click.Path(path_type=Path), help="Write what is believed about each record: .csv.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
def audit(
    release: Path,
    name: str,
    original: Path | None,
    policy: Path | None,
    truth: str | None,
    k: int | None,
    size: int | None,
    plot: Path | None,
    records: Path | None,
    as_json: bool,
) -> None:
    """Attack RELEASE as an adversary would, and say how much is gained.

    Without the original: what an outsider can compute from the release. With it, the same people are looked up in the
    raw table, in a merely k-anonymous and a merely l-diverse one, and in the release; that is for the holder only.
    """
    from noren.audit import attack
    from noren.policy.policy import Policy
    from noren.release.release import open_release

    if (original is None) != (policy is None):
        raise click.UsageError("Give --original and --policy together.")
    given: dict[str, Any] = {"truth": truth, "k": k, "l": size}
    options = {option: value for option, value in given.items() if value is not None}
    if original is None and options:
        raise click.UsageError(f"--{next(iter(options))} needs --original.")
    _check_targets(release, plot, records)
    opened = open_release(release)
    rules = Policy.load(policy) if policy is not None else None
    found = attack(opened, name, original=original, policy=rules, stage=stages(as_json), **options)
    written = _write(found, plot, records)
    if as_json:
        echo_json({"release": str(release), "results": [one.to_dict() for one in found], "written": written})
        return
    for number, one in enumerate(found):
        if number:
            click.echo("")
        _show(one)
    secret = " (holder only)" if any(one.holder_only for one in found) else ""
    for path in written:
        click.echo(f"Written{secret}: {path}")


def _check_targets(release: Path, plot: Path | None, records: Path | None) -> None:
    """Refuse what cannot be written, before any work; nothing is ever added to a release."""
    from noren.analysis.plots import chart_suffix

    for path in (plot, records):
        if path is not None and release.resolve() in (path.resolve(), *path.resolve().parents):
            hint = "What an audit finds is for the holder only: put it elsewhere."
            raise DataError(f"{path} lies inside the release.", hint=hint)
    if plot is not None:
        chart_suffix(plot)
    if records is not None:
        if records.suffix.lower() != ".csv":
            raise DataError(f"{records}: records are written as CSV.", hint="Choose a name that ends in .csv.")
        if records.exists():
            raise DataError(f"{records} exists already.", hint="Choose another name, or remove it first.")


def _write(found: Sequence[AttackResult], plot: Path | None, records: Path | None) -> list[str]:
    """The chart of every result and the lines of all; the files that were written."""
    out = []
    if plot is not None:
        from noren.analysis.plots import save_chart

        for number, one in enumerate(found, 1):
            path = plot if len(found) == 1 else plot.with_stem(f"{plot.stem}-{number}")
            out.append(str(save_chart(one.chart(), path)))
    if records is not None:
        import polars as pl

        pl.concat([one.records() for one in found], how="diagonal").write_csv(records)
        out.append(str(records))
    return out


def _show(result: AttackResult) -> None:
    facts = result.facts
    click.echo(f"The {result.attack} attack on {' and '.join(result.target)}")
    click.echo(f"Adversary: {result.adversary}.")
    click.echo(f"Success: {result.success}.")
    if "prior" in facts:
        click.echo(f"Knowledge: {facts['labels']:,} labels, {facts['terms']:,} terms. Prior: {facts['prior']}.")
    rows = [["before any release", "-", *_figures(result, result.baseline)]]
    for scenario in result.shown:
        rows.append([scenario.title, f"{scenario.frame.height:,}", *_figures(result, scenario.summary)])
    people = "people" if result.shown[0].by == "person" else "rows"
    columns = ("table", people, *result.titles.values())
    table("What the adversary gains", columns, rows, columns[1:])
    for note in result.notes:
        click.echo(f"Note: {note}.")
    if result.holder_only:
        click.echo("These figures rest on the original; keep them with the holder.")


def _figures(result: AttackResult, figures: Any) -> list[str]:
    shares = {"certain", "above_half", "right"}
    return [f"{figures[name]:.1%}" if name in shares else f"{figures[name]:.3f}" for name in result.titles]
