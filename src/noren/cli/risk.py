"""The first command on a new table: risk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from noren.cli.options import PLACE, reads_queries
from noren.cli.render import echo_json, say, split_by, stages, table

if TYPE_CHECKING:
    from noren.audit.risk.result import Risk

SHOWN = 10


@click.command(epilog="Example: noren risk patients.csv --quasi age,sex,zip --plot risk.png")
@click.argument("data", type=PLACE)
@click.argument("policy", type=click.Path(path_type=Path), required=False)
@click.option("--quasi", multiple=True, help="Quasi-identifiers: age,sex,zip. Repeatable; else the policy's.")
@click.option("--sensitive", multiple=True, help="Sensitive columns. Repeatable; else the policy's.")
@click.option("--size", type=click.IntRange(1), default=4, show_default=True, help="Largest combination of columns.")
@click.option(
    "--within",
    type=click.FloatRange(0, min_open=True),
    default=0.05,
    show_default=True,
    help="How near is near for numbers, in standard deviations of the column.",
)
@click.option(
    "--fraction",
    type=click.FloatRange(0, 1, min_open=True),
    help="Share of the population that the table holds; default: 0.01, 0.1 and 0.5 are tried.",
)
@click.option(
    "--weight", help="Column of survey weights; else the policy's. Then every record's weight says how rare it is."
)
@click.option("--plot", type=click.Path(path_type=Path), help="Write a chart of k and of the most telling columns.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@reads_queries
def risk(
    data: str,
    policy: Path | None,
    quasi: tuple[str, ...],
    sensitive: tuple[str, ...],
    size: int,
    within: float,
    fraction: float | None,
    weight: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """What DATA gives away as it is: who is alone, with which columns, and what breaks POLICY now.

    Columns are those of POLICY, or those named; without both, as `noren init` would draft them. Nothing is published.
    """
    from noren.audit.risk import risk as run

    if plot is not None:
        from noren.estimates.counts.plots import chart_suffix

        chart_suffix(plot)
    found = run(
        data,
        policy,
        split_by(quasi),
        split_by(sensitive),
        size=size,
        within=within,
        fraction=fraction,
        weight=weight,
        stage=stages(as_json),
    )
    if plot is not None:
        from noren.estimates.counts.plots import save_chart

        save_chart(found.chart(), plot)
    if as_json:
        echo_json(found.to_dict() | {"plot": str(plot) if plot else None})
        return
    _show(found)
    if plot is not None:
        say(f"Written: {plot}")


def _show(found: Risk) -> None:
    rows = "" if found.rows == found.people else f" in {found.rows:,} rows"
    say(f"{found.name}: {found.people:,} people{rows}; found by {', '.join(found.quasi)}")
    say(
        f"{found.uniques:,} people ({found.unique_share:.1%}) are alone with all quasi-identifiers; "
        f"smallest k {found.smallest}; mean risk {found.mean_risk:.4f}"
    )
    looks = [[one.words, f"{one.people:,}", f"{one.people / found.people:.1%}"] for one in found.looks]
    table("How many look alike", ("k", "people", "share"), looks, ("people", "share"))
    best = [[" + ".join(one.columns), f"{one.alone:,}", f"{one.share:.1%}"] for one in found.top(SHOWN)]
    table("Columns that most people are alone with", ("columns", "people", "share"), best, ("people", "share"))
    names = ("distinct", "missing", "alone", "SUDA share", "alone without it")
    columns = [
        [c.column, f"{c.distinct:,}", c.missing, f"{c.alone:.1%}", f"{c.contribution:.1%}", f"{c.uniques_without:,}"]
        for c in sorted(found.columns, key=lambda c: -c.contribution)
    ]
    table("What each column adds", ("column", *names), columns, names)
    special = found.special
    sizes = ", ".join(f"{count:,} of {size}" for size, count in enumerate(special.by_size, 1))
    say(
        f"Special uniques (SUDA2, up to {special.size} columns): {special.rows:,} rows; minimal uniques by number of "
        f"columns: {sizes}; highest score {special.highest:g}, mean {special.mean:.4g}, highest DIS-SUDA "
        f"{special.dis_highest:.3f}"
    )
    people = [
        [f"{one.fraction:g}", f"{one.population:,}", f"{one.uniques:,.0f}", f"{one.share:.2%}", one.way]
        for one in found.population
    ]
    numbers = ("fraction", "population", "unique people", "share")
    table("Unique in the population the table was sampled from", (*numbers, "estimator"), people, numbers)
    if found.weights is not None:
        own = found.weights
        say(
            f"Weights {own.column}: {own.distinct:,} different; {own.alone:,} people are alone with theirs; alone with "
            f"all quasi-identifiers and the weight: {own.uniques_with:,} instead of {own.uniques_without:,}; design "
            f"effect {own.design_effect:.2f}"
        )
    if found.near:
        near = [[" + ".join(one.columns), f"{one.alone:,}", f"{one.share:.1%}"] for one in found.near]
        title = f"Nobody else within {found.near[0].within:g} standard deviations"
        table(title, ("numeric columns", "people", "share"), near, ("people", "share"))
    home = found.household
    if home is not None:
        say(
            f"Households: {home.households:,}; {home.alone:,} have a member who is alone; mean risk of a person "
            f"{home.mean_person:.4f}, of a person's household {home.mean_household:.4f}"
        )
        below = ", ".join(f"{count:,} below {k}" for k, count in home.below)
        say(f"Households by the smallest k of their members: {below}")
    if found.verdicts:
        lines = [
            [
                v.column,
                v.model,
                f"{v.required:g}",
                f"{v.achieved:.4g}",
                f"{v.breaches:,}",
                f"{v.breaches / max(1, v.records):.1%}",
            ]
            for v in found.verdicts
        ]
        columns_ = ("column", "requirement", "asked", "found", "people in classes that fail", "share")
        table("What the raw table breaks", columns_, lines, columns_[2:])
    for what, why in found.skipped.items():
        say(f"{what}: {why}")
    for note in found.notes:
        say(f"Note: {note}")
    say("Figures rest on the original: keep them with the holder.")
