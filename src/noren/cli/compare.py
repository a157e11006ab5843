"""Commands that help to choose: compare."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from noren.cli.options import PLACE, NamedOption
from noren.cli.render import echo_json, stages, table

if TYPE_CHECKING:
    from noren.pipeline.compare import Candidate

COLUMNS = (
    "method",
    "smallest class",
    "worst share",
    "query error",
    "utility qi",
    "utility sens.",
    "ncp",
    "dropped",
    "s",
)
TERM_COLUMNS = (
    "method",
    "mean group",
    "smallest",
    "ncp",
    "term cost",
    "terms lost",
    "mean rise",
    "max rise",
    "query error",
    "dropped",
    "s",
)


@click.command(epilog="Example: noren compare patients.csv policy.toml --plot compare.png")
@click.argument("data", type=PLACE)
@click.argument("policy", type=click.Path(path_type=Path))
@click.option(
    "--only",
    cls=NamedOption,
    registry="noren.methods:METHODS",
    multiple=True,
    metavar="METHOD",
    help='A method to try, or two together: "mondrian + decoys". Repeatable; default: all.',
)
@click.option("--suppression", type=click.FloatRange(0, 1, max_open=True), help="Share of records that may be dropped.")
@click.option("--classify", metavar="COLUMN", help="Also measure how well a column can be learned from each release.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write a chart of risk and loss: .html, .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@click.pass_context
def compare(
    ctx: click.Context,
    data: str,
    policy: Path,
    only: tuple[str, ...],
    suppression: float | None,
    classify: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Try the methods that can meet POLICY on DATA and show risk and loss of each. Nothing is published.

    With quasi-sensitive columns: the trade-off between left-out terms and general quasi-identifiers, over k.

    Exit code 1 if no method meets the requirements.
    """
    from noren.pipeline.compare import compare as run

    if plot is not None:
        from noren.analysis.plots import chart_suffix

        chart_suffix(plot)
    found = run(data, policy, among=only, suppression=suppression, classify=classify, stage=stages(as_json))
    good = [candidate for candidate in found if candidate.holds]
    if plot is not None and good:
        from noren.analysis.plots import save_chart

        save_chart(found.chart(), plot)
    if as_json:
        echo_json(found.to_dict() | {"plot": str(plot) if plot else None})
        ctx.exit(0 if good else 1)
    first = found.best
    if good:
        (_show_candidates if good[0].terms is None else _show_curve)(good)
        if classify is not None:
            _show_classification(classify, good)
        click.echo("Every candidate was verified. Figures rest on the original: keep them with the holder.")
    for candidate in found:
        if candidate.failure:
            click.echo(f"{candidate.title}: {candidate.failure}")
    if first is not None:
        which = "the first" if first is good[0] else f"{first.title} (least query error)"
        click.echo(f"\nTo adopt {which}, write into {policy}:\n\n{first.snippet}")
    else:
        click.echo("No method meets the requirements.")
    if plot is not None and good:
        click.echo(f"\nWritten: {plot}")
    ctx.exit(0 if good else 1)


def _show_candidates(good: Sequence[Candidate]) -> None:
    """Risk and loss side by side."""
    rows = []
    for candidate in good:
        losses = candidate.losses or {}
        shown = [losses.get(name) for name in ("quasi_utility_score", "sensitive_utility_score", "ncp_loss")]
        rows.append(
            [
                candidate.title,
                f"{candidate.smallest_class:g}",
                f"{candidate.worst_share:.3f}" if candidate.worst_share else "-",
                f"{candidate.query_loss:.3f}",
                *("-" if figure is None else f"{figure:.3f}" for figure in shown),
                candidate.suppressed,
                f"{candidate.seconds:.2f}",
            ]
        )
    table("Candidates that meet every requirement, least query error first", COLUMNS, rows, COLUMNS[1:])


def _show_curve(good: Sequence[Candidate]) -> None:
    """The trade-off between left-out terms and general quasi-identifiers."""
    from noren.methods.candidates import SECONDS_PER_GROUP

    rows = []
    for candidate in good:
        losses, terms = candidate.losses or {}, candidate.terms
        assert terms is not None
        names = ("ncp_loss", "term_cost_loss", "term_share_loss", "belief_rise_mean_loss", "belief_rise_max_loss")
        ncp, cost, share, mean, most = (losses[name] for name in names)
        rows.append(
            [
                candidate.title + (" (the policy's)" if terms.own else ""),
                f"{terms.average_group:.1f}",
                f"{candidate.smallest_class:g}",
                f"{ncp:.3f}",
                f"{cost:.4f}",
                f"{share:.1%}",
                f"{mean:.3f}",
                f"{most:.3f}",
                _number(candidate.query_loss),
                candidate.suppressed,
                f"{candidate.seconds:.2f}",
            ]
        )
    title = "Candidates that meet every requirement, least generalisation first"
    table(title, TERM_COLUMNS, rows, TERM_COLUMNS[1:])
    terms = good[0].terms
    assert terms is not None
    if terms.before:
        mean, most = (terms.before[f"belief_rise_{name}_loss"] for name in ("mean", "max"))
        click.echo(f"Published as it is, the table would raise beliefs by {mean:.3f} on average, {most:.3f} at most.")
    asked = next(iter(terms.queries.values()), None)
    if asked is not None:
        text = f"Query error: {asked.answered:,} counts with a condition on one quasi-identifier and one on terms"
        click.echo(f"{text}; {asked.empty:,} that nobody meets were left out.")
    if any(c.terms is not None and c.terms.seconds_per_group == SECONDS_PER_GROUP for c in good):
        click.echo(
            f"Candidates search {SECONDS_PER_GROUP:g} s per group at most, the policy's method as it says itself."
        )


def _number(figure: float) -> str:
    return "-" if isnan(figure) else f"{figure:.3f}"


def _show_classification(target: str, candidates: Sequence[Candidate]) -> None:
    """Decision trees and rules learned from each release."""
    columns = ("accuracy ratio", "tree on release", "tree on original", "rules kept", "of rules")
    rows = []
    for candidate in candidates:
        found = candidate.classification
        if found is not None:
            ratio, released, original = (found[f"accuracy_{n}"] for n in ("ratio_score", "released", "original"))
            rules = (found["rules_preserved"], found["rules_original"])
            rows.append(
                [candidate.title, *(f"{x:.3f}" for x in (ratio, released, original)), *(f"{x:g}" for x in rules)]
            )
    table(f"Predicting {target} from the other columns", ("method", *columns), rows, columns)
