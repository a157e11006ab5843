"""Figures that the page weighs: what one set tells, what an analyst loses, and what a recipient can learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noren.estimates.counts.estimate import Estimate
from noren.report.charts import Bar, Group, Kind, bars, rendered
from noren.report.render import Figure, Part, Table, counted, percent, worst

MOST_ROWS = 60
"""Cells of an estimate that are listed below its chart."""


def beliefs(found: Sequence[Mapping[str, Any]], wide: bool = False) -> Part | None:
    """What one published set tells someone who knows how common the values are."""
    if not found:
        return None
    rest, found = counted(found), worst(found, lambda one: one["mean_true"] or one["most_common"])
    header = (
        "Column",
        "Most common value before",
        "Uniform prior, after",
        "Mean P(true value) after",
        "Worst P(a value) after",
        "Any prior",
        "Shares from",
    )
    holder = any(one["holder_only"] for one in found)
    words = "Bars for every column; the same figures stand in the table below."
    groups = [Group(one["column"], _belief_bars(one)) for one in found]
    chart = bars("beliefs", "Belief in a value before and after seeing a set", words, groups, axis="probability")
    drawn = Figure(chart, "Belief before (hollow) and after seeing one person's set (solid).", holder)
    figure = None if wide else drawn
    caption, rows = "What one set tells someone who knows the shares", [_belief(one) for one in found]
    return Part(figure, Table(caption, header, rows, (1, 2, 3, 4), holder), notes=[rest] if rest else [])


def _belief_bars(one: Mapping[str, Any]) -> list[Bar]:
    after = {
        "true value, mean after": one["mean_true"],
        "worst value, after": one["worst"],
        "worst value, at most": one["worst_at_most"],
    }
    before = Bar("most common value, before", one["most_common"], percent(one["most_common"]), "hollow")
    return [before, *(Bar(name, share, percent(share)) for name, share in after.items() if share is not None)]


def _belief(one: Mapping[str, Any]) -> list[str]:
    uniform, worst = "-", "-"
    if one["uniform_mean"] is not None:
        uniform = f"{one['uniform_mean']:.3f}"
        if one["p"] != 1 or one["uniform_worst"] != 1 / one["set_size"] or one["uniform_mean"] != one["uniform_worst"]:
            uniform += f" (worst {one['uniform_worst']:.3f})"
    if one["worst"] is not None:
        worst = f"{one['worst']:.4f}"
    elif one["worst_at_most"] is not None:
        worst = f"{one['worst_at_most']:.4f} at most"
    bound = "no bound"
    if one["epsilon"] is not None:
        bound = f"epsilon {one['epsilon']:.3g}, total variation at most {one['total_variation']:.3g}"
    mean = "-" if one["mean_true"] is None else f"{one['mean_true']:.3f}"
    return [one["column"], f"{one['most_common']:.3f}", uniform, mean, worst, bound, one["basis"]]


EXPLAINED = {
    "left_open": (
        "Left open",
        "how many other values of the column a cell leaves possible: 0% tells the value, 100% tells nothing",
    ),
    "expected_error": (
        "Expected error",
        "share of records that an estimated distribution is expected to put in a wrong place",
    ),
    "actual_error": ("Actual error", "share of records that it does put in a wrong place, compared with the original"),
    "terms_left_out": ("Terms left out", "share of the terms that are not published"),
}
KINDS: dict[str, Kind] = {"left_open": "hollow", "expected_error": "striped"}
COUNTS = {
    "typical_count_error": "Typical error of a count",
    "largest_count_error": "Largest",
    "mean_count": "Mean count",
}


def losses(columns: Sequence[Mapping[str, Any]], wide: bool = False) -> Part | None:
    """What an analyst loses, column by column."""
    if not columns:
        return None
    rest = counted(columns)
    columns = worst(columns, lambda one: one.get("expected_error") or one.get("left_open") or 0.0)
    used = [n for n in EXPLAINED if any(one.get(n) is not None for one in columns)]
    holder = any(one["holder_only"] for one in columns)
    groups = [] if wide else [Group(one["name"], drawn) for one in columns if (drawn := _loss_bars(one))]
    figure = None
    if groups:
        words = "Bars for every column that is not exact; the same figures stand in the table below."
        chart = bars("loss", "What an analyst loses, column by column", words, groups, axis="share")
        figure = Figure(chart, "Loss by column.", holder)
    errors = COUNTS if any(one.get("typical_count_error") is not None for one in columns) else {}
    header = ["Column", *(EXPLAINED[n][0] for n in used), *errors.values()]
    rows = [
        [one["name"], *(percent(one.get(n)) for n in used), *(_count(one.get(n)) for n in errors)] for one in columns
    ]
    return Part(
        figure,
        Table("Loss by column", header, rows, range(1, len(header)), holder),
        words=[f"{EXPLAINED[n][0]}: {EXPLAINED[n][1]}." for n in used],
        notes=[*([rest] if rest else []), *(f"{one['name']}: {one['note']}" for one in columns if one.get("note"))],
    )


def _count(error: float | None) -> str:
    return "-" if error is None else f"{error:,.1f}"


def _loss_bars(one: Mapping[str, Any]) -> list[Bar]:
    return [
        Bar(title.lower(), one[n], percent(one[n]), KINDS.get(n, "solid"))
        for n, (title, _) in EXPLAINED.items()
        if one.get(n) is not None
    ]


def recipient(estimate: Estimate) -> Part:
    """An estimate from the release alone, drawn and listed."""
    frame, first = estimate.frame, len(estimate.by)
    top = frame.sort("count", descending=True).head(MOST_ROWS) if frame.height > MOST_ROWS else frame
    rows = [
        [*(str(row[name]) for name in estimate.by), *(f"{row[name]:,.0f}" for name in ("count", "low", "high"))]
        for row in top.to_dicts()
    ]
    title = f"Estimated records by {' and '.join(estimate.by)}"
    more = f"; the {MOST_ROWS} largest of {frame.height:,} cells" if frame.height > MOST_ROWS else ""
    how = f"{estimate.estimator}, {estimate.error_bars}; assumes {estimate.assumes}"
    return Part(
        Figure(rendered(estimate.plot(), title), "The same figures follow as a table."),
        Table(title + more, (*estimate.by, "Estimate", "Low", "High"), rows, range(first, first + 3)),
        words=[f"Estimated from the release alone ({how})."],
    )
