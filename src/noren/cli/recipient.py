"""Commands of the recipient: tables, counts, statistics and files for other tools from a release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.options import RELEASE, OneOf, named, runs_anywhere
from noren.cli.render import echo_json, guarded_frame, parse_where, say, split_by, stages, table

if TYPE_CHECKING:
    from noren.estimates.statistics.results import Regression, Statistic
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


Command = Callable[..., None]
NumberGiven = tuple[str, str, float]

OF_RELEASE = click.argument("release", type=RELEASE)
ASKED = click.option("--where", multiple=True, help=WHERE)
GROUPS = click.option("--by", multiple=True, help="Groups: columns sex,town; levels zip@2; intervals age/10.")
VALUE = click.option(
    "--value",
    "values",
    multiple=True,
    type=(str, str, float),
    metavar="COLUMN VALUE NUMBER",
    help="What a value stands for; every value of the column needs one. Repeatable.",
)
LEVEL = click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True
)
POPULATION = click.option("--population", is_flag=True, help="Intervals for the population the table was sampled from.")
PLOT = click.option(
    "--plot", type=click.Path(path_type=Path), help="Write a chart: .html (opens offline), .png or .svg."
)
CSV = click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write the table to a CSV file.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options in the order given."""

    def put(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return put


COMMON = _options(ASKED, VALUE, LEVEL, POPULATION, UNWEIGHTED, PLOT, CSV, JSON)


@click.command(epilog="Example: noren mean release age --by disease@2")
@OF_RELEASE
@click.argument("of")
@GROUPS
@COMMON
def mean(release: Path | str, of: str, by: tuple[str, ...], **options: Any) -> None:
    """The mean of column OF in RELEASE, for every group; "job=Nurse" is the share of one value."""
    _answer("mean", release, (of,), by, options)


@click.command(epilog="Example: noren variance release age --by job")
@OF_RELEASE
@click.argument("of")
@GROUPS
@COMMON
def variance(release: Path | str, of: str, by: tuple[str, ...], **options: Any) -> None:
    """The variance of column OF in RELEASE, for every group."""
    _answer("variance", release, (of,), by, options)


@click.command(epilog="Example: noren quantile release age --at 0.9 --by job")
@OF_RELEASE
@click.argument("of")
@click.option("--at", "q", type=float, default=0.5, show_default=True, help="The share of records below; 0.5: median.")
@GROUPS
@COMMON
def quantile(release: Path | str, of: str, q: float, by: tuple[str, ...], **options: Any) -> None:
    """The value of column OF in RELEASE below which a share of the records lies, for every group."""
    _answer("quantile", release, (of, q), by, options)


@click.command(epilog="Example: noren correlation release age admission_year")
@OF_RELEASE
@click.argument("one")
@click.argument("two")
@GROUPS
@COMMON
def correlation(release: Path | str, one: str, two: str, by: tuple[str, ...], **options: Any) -> None:
    """The correlation of columns ONE and TWO in RELEASE, for every group."""
    _answer("correlation", release, (one, two), by, options)


def _against(measure: str, words: str) -> Callable[[Command], Command]:
    """What difference and ratio have in common."""
    text = "The group that others are compared with, its labels parted by ' / '; the first unless named."
    return _options(
        click.command(
            name=measure, help=words, epilog=f"Example: noren {measure} release age --by job --against Nurse"
        ),
        OF_RELEASE,
        click.argument("of"),
        click.option("--by", multiple=True, required=True, help="Groups: columns sex,town; levels zip@2."),
        click.option("--against", help=text),
        COMMON,
    )


@_against("difference", "Every group's mean of column OF in RELEASE, less that of one group.")
def difference(release: Path | str, of: str, by: tuple[str, ...], against: str | None, **options: Any) -> None:
    _answer("difference", release, (of,), by, options, against)


@_against("ratio", "Every group's mean of column OF in RELEASE, over that of one group.")
def ratio(release: Path | str, of: str, by: tuple[str, ...], against: str | None, **options: Any) -> None:
    _answer("ratio", release, (of,), by, options, against)


@click.command(epilog='Example: noren regress release "age ~ C(job) + admission_year" --plot age.png')
@OF_RELEASE
@click.argument("formula")
@click.option(
    "--family", type=OneOf("noren.estimates.statistics.formula:FAMILIES"), default="gaussian", show_default=True
)
@click.option(
    "--estimator",
    type=click.Choice(["scores", "likelihood"]),
    show_default="scores, or likelihood for general values and groups",
    help="likelihood: a penalised fit where scores say too little.",
)
@_options(ASKED, VALUE, LEVEL, UNWEIGHTED, PLOT, CSV, JSON)
def regress(
    release: Path | str,
    formula: str,
    family: str,
    estimator: str | None,
    where: tuple[str, ...],
    values: tuple[NumberGiven, ...],
    level: float,
    unweighted: bool,
    plot: Path | None,
    csv_file: Path | None,
    as_json: bool,
) -> None:
    """Fit FORMULA to RELEASE: "income ~ age + C(education) + age:sex".

    a:b is a product, a*b both and their product, C(a) takes numbers as names, - 1 leaves out the constant. Names with
    other signs stand between back quotes; "`disease=Flu` ~ age" models one value.
    """
    opened = _opened(release, plot, csv_file)
    found = opened.regress(
        formula,
        family,
        parse_where(where, opened.columns),
        estimator=estimator,
        level=level,
        values=_numbers(values),
        weighted=False if unweighted else None,
    )
    _files(found, plot, csv_file)
    if as_json:
        echo_json(found.to_dict())
        return
    say(str(found))
    _written(plot, csv_file)


@click.command(epilog="Example: noren test release job disease@2")
@OF_RELEASE
@click.argument("one")
@click.argument("two")
@click.option(
    "--kind", type=OneOf("noren.estimates.statistics.association:KINDS"), show_default="by what the columns hold"
)
@click.option("--permutations", type=int, show_default="up to 1999, or chi-square for very many records")
@_options(ASKED, VALUE, UNWEIGHTED, JSON)
def test(
    release: Path | str,
    one: str,
    two: str,
    kind: str | None,
    permutations: int | None,
    where: tuple[str, ...],
    values: tuple[NumberGiven, ...],
    unweighted: bool,
    as_json: bool,
) -> None:
    """Whether columns ONE and TWO of RELEASE are related: independence, difference of means, or trend."""
    opened = _opened(release)
    options = {"permutations": permutations, "values": _numbers(values), "weighted": False if unweighted else None}
    found = opened.test(one, two, kind, parse_where(where, opened.columns), **options)
    if as_json:
        echo_json(found.to_dict())
        return
    say(str(found))
    say(f"{found.records:,} records; assumes {found.assumes}.")
    for note in found.notes:
        say(note)


def _opened(release: Path | str, plot: Path | None = None, csv_file: Path | None = None) -> Any:
    """The release, after a look at where files should go."""
    from noren.estimates.counts.plots import chart_suffix
    from noren.files import keep_out
    from noren.release.release import open_release

    if plot is not None:
        chart_suffix(plot)
    if csv_file is not None:
        keep_out(csv_file)
    return open_release(release)


def _numbers(given: tuple[NumberGiven, ...]) -> dict[str, dict[str, float]] | None:
    out: dict[str, dict[str, float]] = {}
    for column, value, number in given:
        out.setdefault(column, {})[value] = number
    return out or None


def _files(result: Statistic | Regression, plot: Path | None, csv_file: Path | None) -> None:
    from noren.files import write_whole

    if plot is not None:
        result.save_plot(plot)
    if csv_file is not None:
        write_whole(csv_file, guarded_frame(result.frame).write_csv().encode())


def _written(*paths: Path | None) -> None:
    for path in paths:
        if path is not None:
            say(f"Written: {path}")


def _answer(
    measure: str,
    release: Path | str,
    asked: tuple[Any, ...],
    by: tuple[str, ...],
    options: dict[str, Any],
    against: str | None = None,
) -> None:
    """Ask, write what should be written, and show a table."""
    opened = _opened(release, options["plot"], options["csv_file"])
    more = {"against": [part.strip() for part in against.split(" / ")]} if against else {}
    result: Statistic = getattr(opened, measure)(
        *asked,
        by=split_by(by),
        where=parse_where(options["where"], opened.columns),
        level=options["level"],
        population=options["population"],
        values=_numbers(options["values"]),
        weighted=False if options["unweighted"] else None,
        **more,
    )
    _files(result, options["plot"], options["csv_file"])
    if options["as_json"]:
        echo_json(result.to_dict())
        return
    width = len(result.by)
    numbers = result.frame.columns[width:]
    body = [
        [*row[:width], *("-" if x is None else _short(x, name) for x, name in zip(row[width:], numbers, strict=True))]
        for row in result.frame.iter_rows()
    ]
    table(result._subject(), result.frame.columns, body, numbers)
    say(f"{result.error_bars}, {result.records:,} records; assumes {result.assumes}.")
    for note in result.notes:
        say(note)
    _written(options["plot"], options["csv_file"])


def _short(value: float, name: str) -> str:
    return f"{value:,.0f}" if name == "records" else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


@click.command(epilog="Example: noren export release --as imputed-csv --to plausible.csv")
@click.argument("release", type=RELEASE)
@click.option("--as", "form", required=True, type=OneOf("noren.release.export:FORMS"), help="What to write.")
@click.option("--to", required=True, type=click.Path(path_type=Path), help="File to write; must not exist.")
@click.option("--tables", type=click.IntRange(1, 1000), default=20, show_default=True, help="Plausible tables to draw.")
@click.option("--seed", type=int, help="Draw the same tables every time.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def export(release: Path | str, form: str, to: Path, tables: int, seed: int | None, as_json: bool) -> None:
    """Write RELEASE for tools that do not know sets. Nothing is told that the release does not tell.

    imputed-csv, stata, spss: complete tables that the release leaves plausible, good for machine learning and for
    trying things out; intervals from them are too narrow. wide-csv: what was published, with a 0/1 column for each
    possible value.
    """
    from noren.estimates.imputation.tables import BETWEEN, BURN_IN
    from noren.release.export import export as run
    from noren.release.release import open_release

    opened = open_release(release)
    with stages(as_json)("Drawing tables", None if form == "wide-csv" else BURN_IN + tables * BETWEEN) as meter:
        good_for = run(opened, to, form, m=tables, seed=seed, progress=meter)
    if as_json:
        echo_json({"written": named(to), "form": form, "good_for": good_for})
        return
    say(f"Written: {to}")
    say(f"{form}: {good_for}.")
