"""Commands that help to choose: compare."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.options import PLACE, NamedOption, reads_queries
from noren.cli.render import echo_json, say, stages, table
from noren.errors import QueryError

if TYPE_CHECKING:
    from noren.workflow.compare import Candidate

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
@click.option("--suppression", type=click.FloatRange(0, 1, max_open=True), help="Share of records that may be dropped.")
@click.option("--classify", metavar="COLUMN", help="Also measure how well a column can be learned from each release.")
@click.option(
    "--grid",
    multiple=True,
    metavar="NAME=VALUES",
    help="Parameters to sweep, in place of the policy's: k=3,5,10. Repeatable: all combinations are tried.",
)
@click.option("--top", type=click.Path(path_type=Path), help="Write the chosen policy to this file.")
@click.option(
    "--choose",
    type=click.IntRange(1),
    metavar="N",
    help="The candidate to adopt, by its place in the table; default: least query error, of a grid the bend.",
)
@click.option("--levels", is_flag=True, help="List the best level vectors of incognito instead, with their costs.")
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

    With quasi-sensitive columns: the trade-off between left-out terms and general quasi-identifiers, over k.

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
        raise QueryError(f"{top} exists already.", hint="Name another file for the chosen policy.")
    swept = read_grid(grid)
    found = run(data, policy, among=only, suppression=suppression, classify=classify, grid=swept, stage=stages(as_json))
    good = [candidate for candidate in found if candidate.holds]
    chosen = found.chosen
    if choose is not None:
        if choose > len(good):
            raise QueryError(f"there is no candidate {choose}: {len(good)} hold.", hint="Name a place in the table.")
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
        say("Every candidate was verified. Figures rest on the original: keep them with the holder.")
    for candidate in found:
        if candidate.failure:
            say(f"{candidate.called}: {candidate.failure}")
    if chosen is not None and top is not None:
        say(f"\nThe policy of {chosen.called} is written to {top}")
    elif chosen is not None and swept:
        say(f"\nThe bend of the frontier is {chosen.called}. To adopt one, add --top FILE [--choose N].")
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
    """`k=3,5,10` several times into a mapping."""
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
    """What incognito could publish, the best first."""
    from noren.workflow.compare import find_levels as run
    from noren.workflow.compare import line

    found = run(data, policy, suppression=suppression, stage=stages(as_json))
    if as_json:
        echo_json(found.to_dict())
        return
    numbers = ("loss", "classes", "dropped")
    rows = [[str(one), f"{one.loss:.6g}", f"{one.classes:,}", f"{one.dropped:,}"] for one in found]
    table(f"Level vectors that meet every requirement, least {found.loss} first", ("levels", *numbers), rows, numbers)
    if found:
        say(f'To fix one, write it into the method, for example:\n\n[method]\nname = "incognito"\n{line(found[0])}')
    else:
        say("No level vector meets the requirements.")


def _show_candidates(good: Sequence[Candidate], frontier: Sequence[Candidate] = ()) -> None:
    """Risk and loss side by side; of a grid with the settings, and which of them nobody beats."""
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
    title = "Candidates that meet every requirement, fewest secrets guessed right first"
    table(title, columns, rows, ("#", *COLUMNS[1:]))
    say(
        "Right guesses: people whose secret is guessed right by an adversary who reads all published columns and has "
        "learned from the other people how they go together. Worst share: of one value in one class, or 1 over the "
        "size of a set; it is no measure between methods."
    )


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
        say(f"Published as it is, the table would raise beliefs by {mean:.3f} on average, {most:.3f} at most.")
    asked = next(iter(terms.queries.values()), None)
    if asked is not None:
        text = f"Query error: {asked.answered:,} counts with a condition on one quasi-identifier and one on terms"
        say(f"{text}; {asked.empty:,} that nobody meets were left out.")
    if any(c.terms is not None and c.terms.seconds_per_group == SECONDS_PER_GROUP for c in good):
        say(f"Candidates search {SECONDS_PER_GROUP:g} s per group at most, the policy's method as it says itself.")


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
