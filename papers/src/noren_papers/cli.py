"""Commands for researchers: reproduce, datasets, strength, violation-rate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli import echo_json, say, stages, table
from noren.cli.render import PLACE, reads_csv
from noren.errors import DataError, suggest_columns

if TYPE_CHECKING:
    from noren_papers.tau_l.strength import EligibleRanges

DATA = click.option(
    "--data", type=click.Path(path_type=Path), help="Folder with the papers' data sets; noren datasets tells which."
)


@click.command(
    epilog="Example: noren reproduce tau-l 14 16 --data papers-data --out reproduced. "
    "What there is: noren reproduce list. A first look: noren reproduce semantic --quick."
)
@click.argument("paper")
@click.argument("figures", nargs=-1)
@DATA
@click.option("--out", type=click.Path(path_type=Path), default=Path("reproduced"), show_default=True)
@click.option("--quick", is_flag=True, help="Smaller tables and few repetitions: a check in a few minutes.")
@click.option("--resume", is_flag=True, help="Keep what an earlier run into the same folder has finished.")
@click.option("--json", "as_json", is_flag=True, help="Print answers and paths as JSON.")
def reproduce(
    paper: str, figures: tuple[str, ...], data: Path | None, out: Path, quick: bool, resume: bool, as_json: bool
) -> None:
    """Rerun the experiments of a PAPER and answer what it claims, figure by figure.

    PAPER is a name that `noren reproduce list` shows, or `all`. Without FIGURES all of them run. Files that --data
    does not hold are replaced by generated tables of the same shape, and the summary says so.
    """
    from noren_papers.registry import HOMES
    from noren_papers.run import reproduce as run

    if paper == "list":
        _list(as_json)
        return
    if paper == "all" and figures:
        raise click.UsageError("`all` takes no figures.")
    told = None if as_json else say
    done = [
        run(name, figures, out=out, data=data, quick=quick, resume=resume, stage=stages(as_json), say=told)
        for name in (HOMES if paper == "all" else [paper])
    ]
    if as_json:
        echo_json([one.to_dict() for one in done] if paper == "all" else done[0].to_dict())
        return
    for one in done:
        rows = [
            [_heading(record), answer["claim"], answer["measured"], answer["verdict"]]
            for record in one.records
            for answer in record.answers
        ]
        table(one.paper.title, ("figure", "the paper says", "measured", "the claim"), rows)
        say(f"Summary: {one.folder / 'summary.html'} and summary.md, with charts and CSV beside them.\n")


def _heading(record: Any) -> str:
    return str(record.key.replace("-", " "))


def _list(as_json: bool) -> None:
    from noren_papers.registry import papers

    found = papers()
    if as_json:
        echo_json(
            [
                {
                    "paper": paper.key,
                    "title": paper.title,
                    "figures": [
                        {"figure": f.key, "title": f.title, "claims": list(f.claims.values()), "data": list(f.data)}
                        for f in paper.figures
                    ],
                }
                for paper in found
            ]
        )
        return
    for paper in found:
        rows = [
            [figure.key, figure.title, len(figure.claims), ", ".join(figure.data) or "generated"]
            for figure in paper.figures
        ]
        table(f"{paper.key}: {paper.title}", ("figure", "what it shows", "claims", "data"), rows, ("claims",))
    say("Run one: noren reproduce semantic 11 --data DIR --out reproduced")


@click.command(epilog="Example: noren datasets --data papers-data")
@DATA
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def datasets(data: Path | None, as_json: bool) -> None:
    """Which data sets the papers use, which of them a folder holds, and where their owners publish them."""
    from noren_papers.datasets import MISSING, check_folder, survey

    check_folder(data)
    found = survey(data)
    if as_json:
        echo_json(
            [
                {
                    "name": one.dataset.name, "file": one.dataset.path, "state": one.state, "rows": one.dataset.rows,
                    "columns": one.dataset.columns, "sha256": one.dataset.sha256, "publisher": one.dataset.publisher,
                    "cleaning": one.dataset.cleaning, "papers": list(one.dataset.papers),
                }
                for one in found
            ]
        )  # fmt: skip
        return
    rows = [
        [one.dataset.path, one.state, f"{one.dataset.rows:,} x {one.dataset.columns}", one.dataset.publisher,
         one.dataset.cleaning]
        for one in found
    ]  # fmt: skip
    table("Data sets of the papers", ("file", "state", "size", "published at", "then"), rows, ("size",))
    missing = sum(one.state == MISSING for one in found)
    if data is None:
        say("No folder was given: noren datasets --data DIR looks into one. Without files, stand-ins are generated.")
    else:
        say(f"{len(found) - missing} of {len(found)} files are in {data}; a packed .gz file is as good.")


@click.command(epilog="Example: noren strength --tau 0.3 --l 5 --data patients.csv --column disease")
@click.option("--tau", required=True, type=float, help="Largest permitted share of one value, from 1/l to below 1.")
@click.option(
    "--l", "size", required=True, type=click.IntRange(2, 10_000), help="Values that must share a whole class."
)
@click.option("--values", type=click.IntRange(2), help="Number of sensitive values m; or give --data and --column.")
@click.option("--data", type=PLACE, help="Table that holds the column.")
@click.option("--column", help="The sensitive column of --data.")
@reads_csv
@click.option("--plot", type=click.Path(path_type=Path), help="Chart of the bounds: .html, .png, .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def strength(
    tau: float,
    size: int,
    values: int | None,
    data: str | None,
    column: str | None,
    csv: dict[str, Any],
    plot: Path | None,
    as_json: bool,
) -> None:
    """Which simple and recursive diversity imply (tau, l)-diversity, and what a table can meet at all."""
    from noren_papers.tau_l.strength import (
        checked_requirement,
        eligibility,
        save_strength_chart,
        strength_table,
        weakest_simple,
    )

    checked_requirement(tau, size)
    if (values is None) == (data is None) or (data is None) != (column is None):
        raise click.UsageError("Give either --values, or --data with --column.")
    ranges: EligibleRanges | None = None
    notes: list[str] = []
    if data is not None and column is not None:
        ranges, notes = _ranges_of(data, column, csv)
    m = values if values is not None else ranges.values if ranges is not None else 0
    checked_requirement(tau, size, m)
    bounds = strength_table(m, tau, size)
    simple = weakest_simple(tau, size)
    verdicts = [] if ranges is None else eligibility(ranges, tau, size)
    if plot is not None:
        save_strength_chart(m, tau, size, plot)
    if as_json:
        answer: dict[str, Any] = {"tau": tau, "l": size, "values": m, "weakest_simple_l": simple}
        answer["recursive"] = [{"l": row.l, "largest_c": row.exact, "paper_c": row.paper} for row in bounds]
        if ranges is not None:
            answer["ranges"] = {
                "records": ranges.records,
                "simple_l": ranges.simple,
                "entropy_l": ranges.entropy,
                "distinct_l": ranges.values,
                "recursive_c_above": dict(zip(range(2, m + 1), ranges.recursive, strict=True)),
                "base_values_suffice": ranges.base_values_suffice(tau, size),
            }
            answer["eligible"] = [asdict(verdict) for verdict in verdicts]
        echo_json({**answer, "notes": notes, "plot": str(plot) if plot else None})
        return
    for note in notes:
        say(f"Note: {note}", err=True)
    say(f"({tau:g}, {size})-diversity over {m} values. Frequency l-diversity implies it from l = {simple} on.\n")
    head, rows = ["l", "largest c", "by theorem 23"], []
    for row in bounds:
        cells = [row.l, f"{row.exact:.4g}", "-" if row.paper is None else f"{row.paper:.4g}"]
        if ranges is not None:
            least = ranges.smallest_c(row.l)
            cells += [f"{least:.4g}", "yes" if least < row.exact else "no"]
        rows.append(cells)
    if ranges is not None:
        head += ["for this column, c must be above", "eligible"]
    table("Recursive (c, l)-diversity", head, rows, head[:4])
    if size > 2:
        say(f"It implies ({tau:g}, {size}) up to the largest c, which is below 1 for l below {size}.")
    if size == m and bounds[-1].exact <= 1:
        say(
            "No class satisfies this: all values would have to be equally frequent, and recursive diversity requires "
            "strictly less."
        )
    if ranges is not None:
        _show_eligible(ranges, tau, size, verdicts)
    if plot is not None:
        say(f"Written: {plot}")


def _show_eligible(ranges: EligibleRanges, tau: float, size: int, verdicts: list[Any]) -> None:
    rows = [
        [v.model, v.allows, v.asked, "yes" if v.eligible else "NO", "yes" if v.guarantees else "-"] for v in verdicts
    ]
    columns = ("model", "this column allows", "asked", "eligible", f"implies ({tau:g}, {size})")
    say("")
    table(f"What {ranges.records:,} records with {ranges.values} values can meet", columns, rows)
    if ranges.base_values_suffice(tau, size):
        say(f"({tau:g}, {size})-diversity needs no generalised sensitive value.")
    else:
        say(
            f"({tau:g}, {size})-diversity needs generalised sensitive values, because the column as a whole exceeds it."
        )


def _ranges_of(data: str, column: str, csv: dict[str, Any]) -> tuple[EligibleRanges, list[str]]:
    """The eligible ranges of a file's column, and what was guessed or decided on the way."""
    from noren.engines import engine_for
    from noren.engines.engine import OPEN_LIMIT, Counting
    from noren.sources.source import open_source
    from noren_papers.tau_l.strength import eligible_ranges

    source = open_source(data, **csv)
    if column not in source.columns:
        raise DataError(f"{source.name}: no column {column!r}.", hint=suggest_columns([column], source.columns))
    found = engine_for(source).profile(source, Counting([column])).columns[column]
    if found.is_open:
        raise DataError(f"{column!r} has more than {OPEN_LIMIT:,} values.", hint="Round or group them first.")
    notes = list(source.notes)
    if found.missing:
        notes.append(f"{found.missing:,} missing cells count as one more value.")
    return eligible_ranges([*found.counts.values(), found.missing]), notes


@click.command("violation-rate", epilog="Example: noren violation-rate --values 14 --l 3 --d 3 --records 1000")
@click.option("--values", required=True, type=click.IntRange(2), help="Number of values F, in their order.")
@click.option("--l", "size", required=True, type=click.IntRange(2), help="Values in each set.")
@click.option(
    "--d", "distance", required=True, type=click.IntRange(1), help="Required difference of ranks within a set."
)
@click.option("--records", type=click.IntRange(1), default=1000, show_default=True, help="Records of the table.")
@click.option("--draws", type=click.IntRange(100), default=200_000, show_default=True, help="Simulated sets.")
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Chart over d for l and its neighbours: .html, .png, .svg."
)
@click.option("--json", "as_json", is_flag=True, help="Print the rates as JSON.")
def violation_rate(
    values: int, size: int, distance: int, records: int, draws: int, plot: Path | None, as_json: bool
) -> None:
    """How often decoys drawn without regard to meaning break (l, d)-semantic diversity."""
    from noren_papers.semantic.rates import curve, save_violation_chart, violation_of_table
    from noren_papers.semantic.rates import violation_rate as rate_of

    rate = rate_of(values, size, distance, draws)
    if plot is not None:
        save_violation_chart(curve(values, [s for s in (size - 1, size, size + 1, size + 2) if 2 <= s <= values]), plot)
    whole = rate.for_records(records)
    if as_json:
        echo_json({**asdict(rate), "records": records, "table_bound": whole, "plot": str(plot) if plot else None})
        return
    rows = [
        ["theorem 5.2, corrected (lower bound)", f"{rate.bound:.4f}", f"{whole:.6g}"],
        ["exact mean over all values", f"{rate.exact:.4f}", f"{violation_of_table(rate.exact, records):.6g}"],
        [f"simulated, {draws:,} sets", f"{rate.simulated:.4f} ± {1.96 * rate.std_error:.4f}", "-"],
        ["semantic designs", "0", "0"],
    ]
    title = f"Violations of ({size},{distance})-semantic diversity by plain decoys, {values} values"
    table(title, ("how", "per record", f"in {records:,} records"), rows, ("per record", f"in {records:,} records"))
    if plot is not None:
        say(f"Written: {plot}")
