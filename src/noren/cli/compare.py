"""Commands that help to choose: compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

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


@click.command(epilog="Example: noren compare patients.csv policy.toml --plot compare.png")
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--only", multiple=True, help="A method to try, for example mondrian. Repeatable; default: all.")
@click.option("--suppression", type=click.FloatRange(0, 1, max_open=True), help="Share of records that may be dropped.")
@click.option("--classify", metavar="COLUMN", help="Also measure how well a column can be learned from each release.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write a risk-loss chart: .html, .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@click.pass_context
def compare(
    ctx: click.Context,
    data: Path,
    policy: Path,
    only: tuple[str, ...],
    suppression: float | None,
    classify: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Try the methods that can meet POLICY on DATA and show risk and loss of each. Nothing is published.

    Exit code 1 if no method meets the requirements.
    """
    from noren.pipeline.compare import chart
    from noren.pipeline.compare import compare as run

    if plot is not None:
        from noren.analysis.plots import chart_suffix

        chart_suffix(plot)
    found = run(data, policy, among=only, suppression=suppression, classify=classify, stage=stages(as_json))
    good = [candidate for candidate in found if candidate.holds]
    if plot is not None and good:
        from noren.analysis.plots import save_chart

        save_chart(chart(found), plot)
    if as_json:
        echo_json({"candidates": [candidate.figures() for candidate in found], "plot": str(plot) if plot else None})
        ctx.exit(0 if good else 1)
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
    if good:
        table("Candidates that meet every requirement, least query error first", COLUMNS, rows, COLUMNS[1:])
        if classify is not None:
            _show_classification(classify, good)
        click.echo("Every candidate was verified. Figures rest on the original: keep them with the holder.")
    for candidate in found:
        if candidate.failure:
            click.echo(f"{candidate.title}: {candidate.failure}")
    if good:
        click.echo(f"\nTo adopt the first, write into {policy}:\n\n{good[0].snippet}")
    else:
        click.echo("No method meets the requirements.")
    if plot is not None and good:
        click.echo(f"\nWritten: {plot}")
    ctx.exit(0 if good else 1)


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
