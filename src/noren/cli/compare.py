"""Commands that help to choose: compare, risk."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.render import PLACE, NamedOption, echo_json, reads_queries, say, split_by, stages, table
from noren.errors import QueryError

if TYPE_CHECKING:
    from noren.audit.risk import Risk
    from noren.workflow.comparison import Candidate

COLUMNS = (
    "method",
    "right guesses",
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
@click.option(
    "--suppression", type=click.FloatRange(0, 1, max_open=True), help="Largest share of records that may be suppressed."
)
@click.option(
    "--classify", metavar="COLUMN", help="Also measure how well a classifier predicts this column from each release."
)
@click.option(
    "--grid",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values to try instead of the policy's, such as k=3,5,10. Repeatable: all combinations are tried.",
)
@click.option("--top", type=click.Path(path_type=Path), help="Write the chosen policy to this file.")
@click.option(
    "--choose",
    type=click.IntRange(1),
    metavar="N",
    help=(
        "The candidate to adopt, by its number in the table. Default: the smallest query error; with --grid, the bend "
        "of the curve."
    ),
)
@click.option(
    "--levels",
    is_flag=True,
    help="List instead the best combinations of hierarchy levels for incognito, with their loss.",
)
@click.option("--plot", type=click.Path(path_type=Path), help="Write a map of risk and loss: .html, .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@click.pass_context
@reads_queries
def compare(
    ctx: click.Context,
    data: str,
    policy: Path,
    only: tuple[str, ...],
    suppression: float | None,
    classify: str | None,
    grid: tuple[str, ...],
    top: Path | None,
    choose: int | None,
    levels: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Try the methods that can meet POLICY on DATA and show risk and loss of each. Nothing is published.

    With quasi-sensitive columns: the trade-off between suppressed terms and generalised quasi-identifiers, over k.

    Exit code 1 if no method meets the requirements.
    """
    from noren.workflow.compare import compare as run

    if levels:
        _show_levels(data, policy, suppression, as_json)
        return
    if plot is not None:
        from noren.estimates.counts.plots import chart_suffix

        chart_suffix(plot)
    if top is not None and top.exists():
        raise QueryError(f"{top} exists already.", hint="Choose another file for the chosen policy.")
    swept = read_grid(grid)
    found = run(data, policy, among=only, suppression=suppression, classify=classify, grid=swept, stage=stages(as_json))
    good = [candidate for candidate in found if candidate.holds]
    chosen = found.chosen
    if choose is not None:
        if choose > len(good):
            raise QueryError(
                f"there is no candidate {choose}: only {len(good)} meet the requirements.",
                hint="Give the number of a candidate in the table.",
            )
        chosen = good[choose - 1]
    if top is not None and chosen is not None and chosen.policy is not None:
        from noren.files import write_whole
        from noren.policy.toml import text_for

        write_whole(top, text_for(chosen.policy, top.parent).encode())
    if plot is not None and good:
        from noren.estimates.counts.plots import save_chart

        save_chart(found.chart(), plot)
    if as_json:
        more: dict[str, Any] = {"plot": str(plot) if plot else None}
        if swept:
            more |= {"frontier": [one.called for one in found.frontier], "chosen": chosen and chosen.called}
        echo_json(found.to_dict() | more)
        ctx.exit(0 if good else 1)
    if good:
        if good[0].terms is None:
            _show_candidates(good, found.frontier if swept else ())
        else:
            _show_curve(good)
        if classify is not None:
            _show_classification(classify, good)
        say("Every candidate was verified. The figures are computed from the original: do not publish them.")
        say("To see how precise the answers for recipients will be: noren anonymize DATA POLICY --preview")
    for candidate in found:
        if candidate.failure:
            say(f"{candidate.called}: {candidate.failure}")
    if chosen is not None and top is not None:
        say(f"\nThe policy of {chosen.called} is written to {top}")
    elif chosen is not None and swept:
        say(
            f"\n{chosen.called} lies at the bend of the curve of risk and loss. To adopt a candidate, add --top FILE "
            "[--choose N]."
        )
    elif chosen is not None:
        which = "the first" if chosen is good[0] else f"{chosen.title} (least query error)"
        which = chosen.title if choose is not None else which
        say(f"\nTo adopt {which}, write into {policy}:\n\n{chosen.snippet}")
    else:
        say("No method meets the requirements.")
    if plot is not None and good:
        say(f"\nWritten: {plot}")
    ctx.exit(0 if good else 1)


def read_grid(grid: Sequence[str]) -> dict[str, list[float]]:
    """Parse repeated options such as `k=3,5,10` into a mapping."""
    out: dict[str, list[float]] = {}
    for item in grid:
        name, _, values = item.partition("=")
        try:
            found = [float(text) for text in values.split(",") if text.strip()]
        except ValueError:
            found = []
        if not name.strip() or not found:
            raise QueryError(f"{item!r} is not NAME=VALUES.", hint="For example --grid k=3,5,10 --grid l=2,3.")
        out[name.strip()] = [int(value) if value.is_integer() else value for value in found]
    return out


def _show_levels(data: str, policy: Path, suppression: float | None, as_json: bool) -> None:
    """Print the best combinations of levels for incognito."""
    from noren.workflow.compare import find_levels as run
    from noren.workflow.compare import line

    found = run(data, policy, suppression=suppression, stage=stages(as_json))
    if as_json:
        echo_json(found.to_dict())
        return
    numbers = ("loss", "classes", "dropped")
    rows = [[str(one), f"{one.loss:.6g}", f"{one.classes:,}", f"{one.dropped:,}"] for one in found]
    table(
        f"Combinations of levels that meet every requirement, least {found.loss} first",
        ("levels", *numbers),
        rows,
        numbers,
    )
    if found:
        say(f'To use one, write it into the method, for example:\n\n[method]\nname = "incognito"\n{line(found[0])}')
    else:
        say("No combination of levels meets the requirements.")


def _show_candidates(good: Sequence[Candidate], frontier: Sequence[Candidate] = ()) -> None:
    """Print risk and loss of all candidates; for a grid also the settings, and which ones are not dominated."""
    rows = []
    swept = any(candidate.setting for candidate in good)
    for place, candidate in enumerate(good, 1):
        losses = candidate.losses or {}
        shown = [losses.get(name) for name in ("quasi_utility_score", "sensitive_utility_score", "ncp_loss")]
        rows.append(
            [
                *([place] if swept else []),
                candidate.called,
                "-" if candidate.belief is None else f"{candidate.belief:.1%}",
                f"{candidate.smallest_class:g}",
                f"{candidate.worst_share:.3f}" if candidate.worst_share else "-",
                f"{candidate.query_loss:.3f}",
                *("-" if figure is None else f"{figure:.3f}" for figure in shown),
                candidate.suppressed,
                f"{candidate.seconds:.2f}",
                *(["yes" if candidate in frontier else ""] if swept else []),
            ]
        )
    columns = ("#", *COLUMNS, "frontier") if swept else COLUMNS
    title = "Candidates that meet every requirement, sorted by the share of right guesses"
    table(title, columns, rows, ("#", *COLUMNS[1:]))
    say(
        "Right guesses: share of people whose secret is guessed right by an adversary who reads all published "
        "columns and has learned from the other people how they are related. Worst share: the largest share of "
        "one value in a class, or 1 over the size of a set; do not compare it between methods."
    )


def _show_curve(good: Sequence[Candidate]) -> None:
    """The trade-off between suppressed terms and generalised quasi-identifiers."""
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
    title = "Candidates that meet every requirement, sorted by generalisation"
    table(title, TERM_COLUMNS, rows, TERM_COLUMNS[1:])
    terms = good[0].terms
    assert terms is not None
    if terms.before:
        mean, most = (terms.before[f"belief_rise_{name}_loss"] for name in ("mean", "max"))
        say(f"If the table were published unchanged, beliefs would rise by {mean:.3f} on average, {most:.3f} at most.")
    asked = next(iter(terms.queries.values()), None)
    if asked is not None:
        text = f"Query error: {asked.answered:,} counts with a condition on one quasi-identifier and one on terms"
        say(f"{text}; {asked.empty:,} queries that no record meets were dropped.")
    if any(c.terms is not None and c.terms.seconds_per_group == SECONDS_PER_GROUP for c in good):
        say(
            f"Candidates search at most {SECONDS_PER_GROUP:g} s per group; the policy's own method keeps its own limit."
        )


def _number(figure: float) -> str:
    return "-" if isnan(figure) else f"{figure:.3f}"


def _show_classification(target: str, candidates: Sequence[Candidate]) -> None:
    """Print the results of decision trees and rules learned from each release."""
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


# ---------------------------------------------------------------------- risk


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
    help="Largest distance at which numbers count as near, in standard deviations of the column.",
)
@click.option(
    "--fraction",
    type=click.FloatRange(0, 1, min_open=True),
    help="Share of the population that is in the table; default: 0.01, 0.1 and 0.5 are tried.",
)
@click.option(
    "--weight",
    help=(
        "Column of survey weights; default: the policy's. Weights then measure how rare a record is in the population."
    ),
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Write a chart of k and of the columns that disclose most."
)
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
    """Show what DATA discloses before a release: how many people are unique, in which columns, and how many break
    POLICY.

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
        f"{found.uniques:,} people ({found.unique_share:.1%}) are unique in all quasi-identifiers; smallest k "
        f"{found.smallest}; mean risk {found.mean_risk:.4f}"
    )
    looks = [[one.words, f"{one.people:,}", f"{one.people / found.people:.1%}"] for one in found.looks]
    table("Sizes of equivalence classes", ("k", "people", "share"), looks, ("people", "share"))
    best = [[" + ".join(one.columns), f"{one.alone:,}", f"{one.share:.1%}"] for one in found.top(SHOWN)]
    table("Columns that make most people unique", ("columns", "people", "share"), best, ("people", "share"))
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
    table("People who are unique in the population", (*numbers, "estimator"), people, numbers)
    if found.weights is not None:
        own = found.weights
        say(
            f"Weights {own.column}: {own.distinct:,} different; {own.alone:,} people have a unique weight; "
            f"unique in all quasi-identifiers and the weight: {own.uniques_with:,} instead of "
            f"{own.uniques_without:,}; design effect {own.design_effect:.2f}"
        )
    if found.near:
        near = [[" + ".join(one.columns), f"{one.alone:,}", f"{one.share:.1%}"] for one in found.near]
        title = f"Nobody else within {found.near[0].within:g} standard deviations"
        table(title, ("numeric columns", "people", "share"), near, ("people", "share"))
    home = found.household
    if home is not None:
        say(
            f"Households: {home.households:,}; {home.alone:,} have a unique member; mean risk of a person "
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
    say("The figures are computed from the original: do not publish them.")
