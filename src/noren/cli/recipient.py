"""Commands of the recipient: tables, counts, statistics and files for other tools from a release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.render import (
    CELLS,
    RELEASE,
    OneOf,
    echo_json,
    guarded_frame,
    name_place,
    parse_where,
    runs_anywhere,
    say,
    split_by,
    stages,
    table,
)

if TYPE_CHECKING:
    from noren.estimates.statistics.results import Statistic
    from noren.release.release import Release


ESTIMATORS = OneOf("noren.estimates.counts.tabulate:ESTIMATOR_NAMES")
DEFAULT = "likelihood, or linear for shuffled records"
POLICY = click.option(
    "--policy",
    type=click.Path(path_type=Path),
    help="Read RELEASE, a table that another tool made, as this policy describes it.",
)
UNWEIGHTED = click.option("--unweighted", is_flag=True, help="Count records even if the release has survey weights.")
WHERE = (
    "Condition column=value,value (one of them), or a range: 'age>=30', 'born<1987-05'. On a column of terms: "
    "signs=cough,fever (has one of them) or signs@all=cough,fever (has all of them). Repeatable; a record must "
    "meet all conditions."
)


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
    help="The number for a value, as VALUE=NUMBER; every value of the column needs one. Repeatable.",
)
LEVEL = click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True
)
POPULATION = click.option(
    "--population", is_flag=True, help="Give intervals for the population, not only for the table."
)
PLOT = click.option(
    "--plot", type=click.Path(path_type=Path), help="Write a chart: .html (opens offline), .png or .svg."
)
CSV = click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write the table to a CSV file.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Combine several options in the order given."""

    def put(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return put


COMMON = _options(ASKED, VALUE, LEVEL, POPULATION, UNWEIGHTED, PLOT, CSV, JSON)


def counted_by(engine: Any, release: Path | str, policy: Path | None, cells: tuple[tuple[str, str], ...]) -> Release:
    """Open the release whose cells the engine counts, or read another tool's table by a policy."""
    from noren.release.release import is_address, is_release, open_release

    if policy is not None and not is_release(release) and (is_address(release) or Path(release).exists()):
        from noren.workflow.foreign import open_published

        forms: Any = dict(cells)
        return open_published(release, policy, cells=forms)
    opened: Release = open_release(release) if isinstance(engine, str) else engine.open_release(release)
    return opened


@click.command(epilog="Example: noren estimate release --by job,disease --where zip=13*** --plot jobs.png")
@click.argument("release", type=RELEASE)
@click.option(
    "--by",
    multiple=True,
    required=True,
    help="Columns such as job,disease; levels zip@2; intervals age/10; or one column of terms (one row per term).",
)
@ASKED
@click.option("--estimator", type=ESTIMATORS, show_default=DEFAULT)
@LEVEL
@POPULATION
@UNWEIGHTED
@POLICY
@CELLS
@runs_anywhere
@PLOT
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
    policy: Path | None,
    cells: tuple[tuple[str, str], ...],
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
    _check_files(plot, csv_file)
    opened = counted_by(engine, release, policy, cells)
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
    _files(result, plot, csv_file, kind)
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
    for sentence in result.notes:
        say(sentence)
    _say_written(plot, csv_file)


@click.command(epilog="Example: noren describe release")
@click.argument("release", type=RELEASE)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def describe(release: Path | str, as_json: bool) -> None:
    """Show which questions RELEASE answers, how precisely, and which it refuses."""
    from noren.release.release import open_release

    told = open_release(release).describe()
    if as_json:
        echo_json({"describe": told.splitlines()})
    else:
        say(told)


@click.command(epilog='Example: noren count release --where job=Lawyer --where "disease=J10 Influenza"')
@click.argument("release", type=RELEASE)
@click.option("--where", multiple=True, required=True, help=WHERE)
@click.option("--estimator", type=ESTIMATORS, show_default=DEFAULT)
@LEVEL
@POPULATION
@UNWEIGHTED
@POLICY
@CELLS
@runs_anywhere
@click.option("--json", "as_json", is_flag=True, help="Print the count as JSON.")
def count(
    release: Path | str,
    where: tuple[str, ...],
    estimator: str | None,
    level: float,
    population: bool,
    unweighted: bool,
    policy: Path | None,
    cells: tuple[tuple[str, str], ...],
    engine: Any,
    as_json: bool,
) -> None:
    """Estimate how many records of RELEASE meet all conditions.

    Of a condition on terms the count is of records that publish what is asked, low and high are hard bounds.
    """
    opened = counted_by(engine, release, policy, cells)
    options = {"level": level, "population": population, "weighted": False if unweighted else None}
    result = opened.count(parse_where(where, opened.columns), estimator, **options)  # type: ignore[arg-type]
    if as_json:
        echo_json(result.to_dict())
        return
    say(str(result))
    for sentence in result.notes:
        say(sentence)


def _measure(name: str, words: str, example: str, *own: Callable[[Command], Command]) -> click.Command:
    """Make the command of a measure from its own arguments and options."""

    @click.command(name, help=words, epilog=f"Example: noren {name} release {example}")
    @_options(OF_RELEASE, *own, COMMON)
    def ask(release: Path | str, **options: Any) -> None:
        _answer(name, release, options)

    return ask


OF = click.argument("of")
CONTRAST = _options(
    OF,
    click.option("--by", multiple=True, required=True, help="Groups: columns sex,town; levels zip@2."),
    click.option(
        "--against",
        help="The group that others are compared with, its labels separated by ' / '. Default: the first group.",
    ),
)
AT = click.option(
    "--at",
    "q",
    type=float,
    default=0.5,
    show_default=True,
    help="The share of records below the quantile; 0.5 is the median.",
)
mean = _measure(
    "mean",
    'The mean of column OF in RELEASE, for every group; "job=Nurse" is the share of one value.',
    "age --by disease@2",
    OF,
    GROUPS,
    click.option("--over", help="Standardise over this column: give every group the same distribution of it."),
)
variance = _measure("variance", "The variance of column OF in RELEASE, for every group.", "age --by job", OF, GROUPS)
quantile = _measure(
    "quantile",
    "The quantile of column OF in RELEASE, for every group: a share of the records has lower values.",
    "age --at 0.9 --by job",
    OF,
    AT,
    GROUPS,
)
correlation = _measure(
    "correlation",
    "The correlation of columns ONE and TWO in RELEASE, for every group.",
    "age admission_year",
    click.argument("one"),
    click.argument("two"),
    GROUPS,
)
difference = _measure(
    "difference",
    "Estimate how much every group's mean of column OF in RELEASE differs from that of one group.",
    "age --by job --against Nurse",
    CONTRAST,
)
ratio = _measure(
    "ratio",
    "Estimate every group's mean of column OF in RELEASE, divided by that of one group.",
    "age --by job --against Nurse",
    CONTRAST,
)


@click.command(epilog='Example: noren regress release "age ~ C(job) + admission_year" --plot age.png')
@OF_RELEASE
@click.argument("formula")
@click.option(
    "--family", type=OneOf("noren.estimates.statistics.formula:FAMILIES"), default="gaussian", show_default=True
)
@click.option(
    "--estimator",
    type=click.Choice(["scores", "likelihood"]),
    show_default="scores; likelihood for generalised values and groups",
    help="scores: unbiased; likelihood: penalised, for releases where scores have no stable solution.",
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
    opened = _open_checked(release, plot, csv_file)
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
    _say_written(plot, csv_file)


@click.command(epilog="Example: noren test release job disease@2")
@OF_RELEASE
@click.argument("one")
@click.argument("two")
@click.option(
    "--kind",
    type=OneOf("noren.estimates.statistics.association:KINDS"),
    show_default="chosen by the kind of the columns",
)
@click.option("--within", help="Test within the groups of this column, hidden or not; the reference is chi-square.")
@click.option("--permutations", type=int, show_default="up to 1999; chi-square for very many records")
@_options(ASKED, VALUE, UNWEIGHTED, JSON)
def test(
    release: Path | str,
    one: str,
    two: str,
    kind: str | None,
    within: str | None,
    permutations: int | None,
    where: tuple[str, ...],
    values: tuple[NumberGiven, ...],
    unweighted: bool,
    as_json: bool,
) -> None:
    """Test whether columns ONE and TWO of RELEASE are related: independence, difference of means, or trend."""
    opened = _open_checked(release)
    options = {"permutations": permutations, "values": _numbers(values), "weighted": False if unweighted else None}
    found = opened.test(one, two, kind, parse_where(where, opened.columns), within=within, **options)
    if as_json:
        echo_json(found.to_dict())
        return
    say(str(found))
    say(f"{found.records:,} records; assumes {found.assumes}.")
    for note in found.notes:
        say(note)


def _check_files(plot: Path | None, csv_file: Path | None) -> None:
    """Refuse files that cannot be written, before any work."""
    from noren.estimates.counts.plots import chart_suffix
    from noren.files import keep_out

    if plot is not None:
        chart_suffix(plot)
    if csv_file is not None:
        keep_out(csv_file)


def _open_checked(release: Path | str, plot: Path | None = None, csv_file: Path | None = None) -> Any:
    """Check the output files, then open the release."""
    from noren.release.release import open_release

    _check_files(plot, csv_file)
    return open_release(release)


def _numbers(given: tuple[NumberGiven, ...]) -> dict[str, dict[str, float]] | None:
    out: dict[str, dict[str, float]] = {}
    for column, value, number in given:
        out.setdefault(column, {})[value] = number
    return out or None


def _files(result: Any, plot: Path | None, csv_file: Path | None, *kind: str) -> None:
    from noren.files import write_whole

    if plot is not None:
        result.save_plot(plot, *kind)
    if csv_file is not None:
        write_whole(csv_file, guarded_frame(result.frame).write_csv().encode())


def _say_written(*paths: Path | None) -> None:
    for path in paths:
        if path is not None:
            say(f"Written: {path}")


def _answer(measure: str, release: Path | str, options: dict[str, Any]) -> None:
    """Compute the answer, write files, and print a table."""
    opened = _open_checked(release, options["plot"], options["csv_file"])
    own: dict[str, Any] = {name: options[name] for name in ("of", "one", "two", "q") if name in options}
    if over := options.get("over"):
        measure, own["over"] = "standardize", over
    if against := options.get("against"):
        own["against"] = [part.strip() for part in against.split(" / ")]
    result: Statistic = getattr(opened, measure)(
        **own,
        by=split_by(options["by"]),
        where=parse_where(options["where"], opened.columns),
        level=options["level"],
        population=options["population"],
        values=_numbers(options["values"]),
        weighted=False if options["unweighted"] else None,
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
    _say_written(options["plot"], options["csv_file"])


def _short(value: float, name: str) -> str:
    return f"{value:,.0f}" if name == "records" else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


@click.command(epilog="Example: noren export release --as imputed-csv --to plausible.csv")
@click.argument("release", type=RELEASE)
@click.option("--as", "form", required=True, type=OneOf("noren.release.export:FORMS"), help="What to write.")
@click.option("--to", required=True, type=click.Path(path_type=Path), help="File to write; must not exist.")
@click.option("--tables", type=click.IntRange(1, 1000), default=20, show_default=True, help="Plausible tables to draw.")
@click.option("--seed", type=int, help="Random seed; the same seed gives the same tables.")
@click.option("--mark", is_flag=True, help="Begin CSV with a byte-order mark, so that Excel reads it as UTF-8.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def export(release: Path | str, form: str, to: Path, tables: int, seed: int | None, mark: bool, as_json: bool) -> None:
    """Write RELEASE for tools that cannot read sets. The files contain no information beyond the release.

    imputed-csv, stata, spss: complete tables that the release leaves plausible, good for machine learning and for
    trying things out; intervals from them are too narrow. wide-csv: what was published, with a 0/1 column for each
    possible value. excel: the records in one sheet, sets as texts, and in another what they are. r: a directory with
    the records, what every cell says of the truth, and an R script that estimates counts.
    """
    from noren.estimates.imputation import BETWEEN, BURN_IN
    from noren.release.export import PUBLISHED
    from noren.release.export import export as run
    from noren.release.release import open_release

    opened = open_release(release)
    with stages(as_json)("Drawing tables", None if form in PUBLISHED else BURN_IN + tables * BETWEEN) as meter:
        good_for = run(opened, to, form, m=tables, seed=seed, mark=mark, progress=meter)
    if as_json:
        echo_json({"written": name_place(to), "form": form, "good_for": good_for})
        return
    say(f"Written: {to}")
    say(f"{form}: {good_for}.")
