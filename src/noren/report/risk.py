"""The parts of the page that weigh: what an adversary gains, what an analyst loses, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noren.analysis.estimate import Estimate
from noren.report.attacks import attack_parts
from noren.report.charts import Bar, Group, Kind, bars, rendered
from noren.report.html import Markup, element, figure, listing, paragraph, percent, section, table

Content = Mapping[str, Any]
MOST_ROWS = 60
"""Cells of an estimate that are listed below its chart."""


def adversary(content: Content) -> Markup:
    """Before and after, for one set, for a class, and attack by attack."""
    parts: list[object] = []
    if content["beliefs"]:
        parts += _beliefs(content)
    elif content["published"]["layout"] == "general":
        parts.append(_classes(content))
    parts += attack_parts(content)
    return section("adversary", "What an adversary still learns", *parts)


def _beliefs(content: Content) -> list[object]:
    text = (
        "An adversary who knows how common the values are, and sees one person's set, ends with these probabilities. "
        "Sets of decoys (p = 1) keep the prior odds inside the set: the confidence is 1/l only for someone who thinks "
        "all values equally likely. Closeness (p < 1) bounds the gain for any prior; its epsilon is one of local "
        "differential privacy, and epsilons add over columns."
    )
    header = (
        "Column",
        "Most common value before",
        "Uniform prior, after",
        "Mean P(true value) after",
        "Worst P(a value) after",
        "Any prior",
        "Shares from",
    )
    rows = [_belief(one) for one in content["beliefs"]]
    holder = any(one["holder_only"] for one in content["beliefs"])
    drawn = [
        Group(
            one["column"],
            [
                Bar("most common value, before", one["most_common"], percent(one["most_common"]), "hollow"),
                *([_one("true value, mean after", one["mean_true"])] if one["mean_true"] is not None else []),
                *([_one("worst value, after", one["worst"])] if one["worst"] is not None else []),
                *([_one("worst value, at most", one["worst_at_most"])] if one["worst_at_most"] is not None else []),
            ],
        )
        for one in content["beliefs"]
    ]
    words = "Bars for every column; the same figures stand in the table below."
    chart = bars("beliefs", "Belief in a value before and after seeing a set", words, drawn, axis="probability")
    return [
        element("h3", "From one person's set"),
        paragraph(text),
        figure(chart, "Belief before (hollow) and after seeing one person's set (solid).", holder=holder),
        table("What one set tells someone who knows the shares", header, rows, (1, 2, 3, 4), holder=holder),
    ]


def _one(name: str, share: float) -> Bar:
    return Bar(name, share, percent(share))


def _belief(one: Mapping[str, Any]) -> list[object]:
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


def _classes(content: Content) -> Markup:
    """What the classes of a generalised release leave."""
    text = paragraph(
        "An adversary who knows a person's quasi-identifiers finds the class of records that could be the person's, "
        "and believes each of its secrets as often as it occurs there. The verdicts above bound that for every class. "
        "The bound is for someone who knows nothing else: who knows how the method works, or that some values of the "
        "class are impossible for the person, can rule records out."
    )
    figures = content["losses"].get("table", {}).get("figures", {})
    if "belief_rise_max_loss" not in figures:
        return text
    mean, most = (figures[f"belief_rise_{name}_loss"] for name in ("mean", "max"))
    more = paragraph(
        "Whoever also has the knowledge table links the published terms to labels. The belief in the label that "
        f"gains most rises by {mean:.3f} for the average record and by {most:.3f} at most, compared with what was "
        "believed before."
    )
    return Markup(text + more)


# ---------------------------------------------------------------------- losses


def losses(content: Content) -> Markup:
    told = content["losses"]
    parts: list[object] = []
    if told["exact"]:
        parts.append(paragraph(f"Exact, without loss: {', '.join(told['exact'])}."))
    if told["columns"]:
        parts += _loss_columns(told["columns"])
    classes = told.get("classes")
    if classes:
        parts.append(
            paragraph(
                f"The records fall into {classes['classes']:,} classes that look alike in {', '.join(classes['by'])}: "
                f"{classes['smallest']:,} to {classes['largest']:,} records, {classes['mean']:,.1f} on average."
            )
        )
    if "table" in told:
        rows = [[n.replace("_", " "), f"{figure:,.4g}"] for n, figure in told["table"]["figures"].items()]
        parts.append(paragraph("What it cost; scores are better when large, losses when small."))
        parts.append(table("Measures of the whole table", ("Measure", "Found"), rows, (1,), holder=True))
    return section("losses", "What an analyst loses", *parts)


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


def _loss_columns(columns: Any) -> list[object]:
    groups = []
    for one in columns:
        drawn = [
            Bar(EXPLAINED[n][0].lower(), one[n], percent(one[n]), KINDS.get(n, "solid"))
            for n in EXPLAINED
            if one.get(n) is not None
        ]
        if drawn:
            groups.append(Group(one["name"], drawn))
    used = [n for n in EXPLAINED if any(one.get(n) is not None for one in columns)]
    out: list[object] = [listing([f"{EXPLAINED[n][0]}: {EXPLAINED[n][1]}." for n in used])]
    holder = any(one["holder_only"] for one in columns)
    if groups:
        words = "Bars for every column that is not exact; the same figures stand in the table below."
        chart = bars("loss", "What an analyst loses, column by column", words, groups, axis="share")
        out.append(figure(chart, "Loss by column.", holder=holder))
    counts = any(one.get("typical_count_error") is not None for one in columns)
    header = ["Column", *(EXPLAINED[n][0] for n in used)]
    header += ["Typical error of a count", "Largest", "Mean count"] if counts else []
    rows = []
    for one in columns:
        row: list[object] = [one["name"], *(percent(one.get(n)) for n in used)]
        if counts:
            errors = ("typical_count_error", "largest_count_error", "mean_count")
            row += ["-" if one.get(n) is None else f"{one[n]:,.1f}" for n in errors]
        rows.append(row)
    out.append(table("Loss by column", header, rows, range(1, len(header)), holder=holder))
    if counts:
        out.append(
            paragraph(
                "The error of a count is its standard error in records, when the records with one value of the column "
                "are estimated from the release; about two thirds of such estimates lie within it."
            )
        )
    noted = [f"{one['name']}: {one['note']}" for one in columns if one.get("note")]
    return [*out, listing(noted)]


def left_out(content: Content) -> Markup:
    """Which terms are not published, and how sure it is that no cheaper choice exists."""
    words = paragraph(
        "Terms that a knowledge table links to labels were left out where a group would otherwise have revealed too "
        "much. Leaving a term out costs more the fewer terms its record has left: a group's cost is 0 if it keeps all "
        "terms and 1 if it loses all."
    )
    header = ("Columns", "Search", "Groups", "Searched", "Proven", "Mean cost", "Gap", "Left out", "Of terms")
    rows = [
        [
            ", ".join(part["columns"]),
            part["search"],
            f"{part['groups']:,}",
            f"{part['searched']:,}",
            f"{part['proven']:,}",
            f"{part['mean_cost']:.4f}",
            "not known" if part["gap"] is None else f"{part['gap']:.1%}",
            f"{part['removed']:,}",
            f"{part['entries']:,}",
        ]
        for part in content["left_out"]
    ]
    found = [paragraph(_left_out_words(part)) for part in content["left_out"]]
    told = table("Left-out terms by knowledge table", header, rows, range(2, 9), holder=True)
    return section("left-out", "What was left out", words, *found, told)


def _left_out_words(part: Mapping[str, Any]) -> str:
    names, groups, searched = ", ".join(part["columns"]), part["groups"], part["searched"]
    if not searched:
        return f"{names}: all {groups:,} groups met the requirement with all their terms, so nothing was left out."
    share = part["removed"] / part["entries"] if part["entries"] else 0.0
    text = (
        f"{names}: {groups - searched:,} of {groups:,} groups met the requirement with all their terms. The other "
        f"{searched:,} lost {part['removed']:,} of all {part['entries']:,} terms together ({share:.1%}). "
    )
    if part["proven"] == searched:
        return f"{text}For each of them it is proven that no cheaper removal would do."
    text += (
        f"For {part['proven']:,} of them it is proven that no cheaper removal would do; the others ran out of time. "
    )
    if part["gap"] is None:
        return f"{text}How far from the cheapest they are is not known."
    return f"{text}The mean cost of all groups is at most {part['gap']:.1%} above the least possible."


def recipient(estimate: Estimate) -> Markup:
    """An estimate from the release alone, drawn and listed."""
    frame = estimate.frame
    drawing = element(
        "div", rendered(estimate.plot()), role="img", aria_label=f"Estimated records by {' and '.join(estimate.by)}"
    )
    words = (
        f"Estimated from the release alone ({estimate.estimator}, {estimate.error_bars}; assumes {estimate.assumes})."
    )
    top = frame.sort("count", descending=True).head(MOST_ROWS) if frame.height > MOST_ROWS else frame
    rows = [
        [*(str(row[name]) for name in estimate.by), *(f"{row[name]:,.0f}" for name in ("count", "low", "high"))]
        for row in top.to_dicts()
    ]
    caption = f"Estimated records by {' and '.join(estimate.by)}"
    if frame.height > MOST_ROWS:
        caption += f"; the {MOST_ROWS} largest of {frame.height:,} cells"
    header = (*estimate.by, "Estimate", "Low", "High")
    first = len(estimate.by)
    listed = table(caption, header, rows, range(first, first + 3))
    return section(
        "recipient",
        "What a recipient can learn",
        paragraph(words),
        figure(drawing, "The same figures follow as a table."),
        listed,
    )
