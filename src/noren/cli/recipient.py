"""Commands of the recipient: estimate, count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.options import RELEASE, OneOf, runs_anywhere
from noren.cli.render import echo_json, guarded_frame, parse_where, say, split_by, stages, table

if TYPE_CHECKING:
    from noren.release.release import Release

ESTIMATORS = OneOf("noren.estimates.counts.tabulate:ESTIMATOR_NAMES")
DEFAULT = "likelihood, or linear for shuffled records"
UNWEIGHTED = click.option(
    "--unweighted", is_flag=True, help="Count records, also where the release has survey weights."
)
WHERE = (
    "Condition column=value,value (one of them), or a range: 'age>=30', 'born<1987-05'. On a column of terms: "
    "signs=cough,fever (has one of them) or signs@all=cough,fever (has all of them). Repeatable; conditions on "
    "different columns all hold."
)


def counted_by(engine: Any, release: Path | str) -> Release:
    """The release, whose cells the engine counts."""
    from noren.release.release import open_release

    opened: Release = open_release(release) if isinstance(engine, str) else engine.open_release(release)
    return opened


@click.command(epilog="Example: noren estimate release --by job,disease --where zip=13*** --plot jobs.png")
@click.argument("release", type=RELEASE)
@click.option(
    "--by",
    multiple=True,
    required=True,
    help="Columns: job,disease; levels: zip@2; intervals: age/10; a column of terms alone: one row per term.",
)
@click.option("--where", multiple=True, help=WHERE)
@click.option("--estimator", type=ESTIMATORS, show_default=DEFAULT)
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True)
@click.option("--population", is_flag=True, help="Intervals for the population the table was sampled from.")
@UNWEIGHTED
@runs_anywhere
@click.option("--plot", type=click.Path(path_type=Path), help="Write a chart: .html (opens offline), .png or .svg.")
@click.option("--kind", type=click.Choice(["auto", "bar", "grouped", "heatmap"]), default="auto", show_default=True)
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write the cells to a CSV file.")
@click.option("--rows", type=int, default=40, show_default=True, help="Rows to show in the terminal; 0 for all.")
@click.option("--json", "as_json", is_flag=True, help="Print the estimate as JSON.")
def estimate(
    release: Path | str,
    by: tuple[str, ...],
    where: tuple[str, ...],
    estimator: str | None,
    level: float,
    population: bool,
    unweighted: bool,
    engine: Any,
    plot: Path | None,
    kind: str,
    csv_file: Path | None,
    rows: int,
    as_json: bool,
) -> None:
    """Estimate how many records of the original fall into each cell of a cross tabulation of RELEASE.

    Terms may have been left out of a release: the count is then of records that publish what is asked, and high is
    the number of records that could meet it.
    """
    from noren.estimates.counts.plots import chart_suffix
    from noren.files import keep_out, write_whole

    if plot is not None:
        chart_suffix(plot)
    if csv_file is not None:
        keep_out(csv_file)
    opened = counted_by(engine, release)
    with stages(as_json)("Estimating", None) as meter:
        result = opened.estimate(
            split_by(by),
            parse_where(where, opened.columns),
            estimator,
            level=level,
            population=population,
            weighted=False if unweighted else None,
            progress=lambda iteration, change: meter(1, note=f"Iteration {iteration}"),
        )
    if plot is not None:
        result.save_plot(plot, kind)
    if csv_file is not None:
        write_whole(csv_file, guarded_frame(result.frame).write_csv().encode())
    if as_json:
        echo_json(result.to_dict())
        return
    shown = result.frame if rows <= 0 else result.frame.head(rows)
    numbers = ("count", "std_error", "low", "high")
    width = len(result.by)
    body = [[*row[:width], *("-" if c is None else f"{c:,.1f}" for c in row[width:])] for row in shown.iter_rows()]
    what = "records" if "weights" not in result.diagnostics else "people"
    table(f"Estimated {what} by {', '.join(result.by)}", (*result.by, *numbers), body, numbers)
    if len(shown) < len(result.frame):
        say(f"... {len(result.frame) - len(shown)} more cells (--rows 0 shows all)")
    say(f"{result.estimator}, {result.error_bars}, {result.records:,} records; assumes {result.assumes}.")
    for sentence in result.shrunk:
        say(sentence)
    for path in (plot, csv_file):
        if path is not None:
            say(f"Written: {path}")


@click.command(epilog='Example: noren count release --where job=Lawyer --where "disease=J10 Influenza"')
@click.argument("release", type=RELEASE)
@click.option("--where", multiple=True, required=True, help=WHERE)
@click.option("--estimator", type=ESTIMATORS, show_default=DEFAULT)
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True)
@click.option("--population", is_flag=True, help="Interval for the population the table was sampled from.")
@UNWEIGHTED
@runs_anywhere
@click.option("--json", "as_json", is_flag=True, help="Print the count as JSON.")
def count(
    release: Path | str,
    where: tuple[str, ...],
    estimator: str | None,
    level: float,
    population: bool,
    unweighted: bool,
    engine: Any,
    as_json: bool,
) -> None:
    """Estimate how many records of RELEASE meet all conditions.

    Of a condition on terms the count is of records that publish what is asked, low and high are hard bounds.
    """
    opened = counted_by(engine, release)
    options = {"level": level, "population": population, "weighted": False if unweighted else None}
    result = opened.count(parse_where(where, opened.columns), estimator, **options)  # type: ignore[arg-type]
    if as_json:
        echo_json(result.to_dict())
    else:
        say(str(result))
