"""The losses of analysts (how many values a cell leaves possible, the error of counts), and the estimates of a
recipient.

Most of it follows from the release alone. With the original it is also known how wrong the estimates really are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.targets import class_keys
from noren.errors import NorenError
from noren.estimates.counts.estimate import Estimate
from noren.models.base import QUASI
from noren.ragged import rows_in_order
from noren.report.material import Material
from noren.report.render import Bar, Figure, Group, Kind, Part, Table, bars, counted, percent, rendered, worst
from noren.statements import Statement
from noren.workflow.truth import tally_cells

MOST_ROWS = 60
"""Cells of an estimate that are listed below its chart."""


MOST_COUNTED = 5_000
"""Values up to which a column's distribution is estimated for the report."""


def losses_of(material: Material) -> dict[str, Any]:
    """Return losses by column, and for the table as a whole."""
    statements = material.release.statements
    out: dict[str, Any] = {
        "columns": [_column_losses(material, statement) for statement in statements if not statement.is_exact],
        "exact": [statement.name for statement in statements if statement.is_exact],
    }
    if material.has_classes:
        out["classes"] = _class_losses(material)
    if material.losses:
        out["table"] = {"holder_only": True, "figures": dict(material.losses)}
    return out


def _column_losses(material: Material, statement: Statement) -> dict[str, Any]:
    name, design = statement.name, statement.design
    out: dict[str, Any] = {"name": name, "form": statement.form, "holder_only": False}
    if statement.terms is not None:
        return out | _term_losses(material, name)
    if design is not None and design.floor > 0:
        out["note"] = "a set may lack the true value and so rules nothing out; its loss is the expected error"
    else:
        out["left_open"] = _left_open(material, statement)
    if statement.d > MOST_COUNTED:
        return out | {"note": f"its {statement.d:,} values are too many to estimate here"}
    # General values are spread evenly over what they cover: the most likely counts heap up on few single values.
    estimator = "spread" if design is None else None
    try:
        estimate = material.release.estimate(name, estimator=estimator)
    except NorenError as error:
        return out | {"note": error.message}
    out["estimator"] = estimate.estimator
    counts = estimate.frame["count"].to_numpy()
    records = max(1, material.release.records)
    errors = estimate.frame["std_error"].drop_nulls().to_numpy()
    if estimate.diagnostics.get("bounds") != "hard" and len(errors):
        out |= _expected(counts, errors, records)
    truth = material.truth.get(name)
    if truth is not None and truth.sum() > 0:
        out |= {"actual_error": _distance(counts, truth), "holder_only": True}
    return out


def _expected(counts: NDArray, errors: NDArray, records: int) -> dict[str, float]:
    """Return the expected error of one estimated count, and of the distribution as a whole (mean of a normal's
    distance)."""
    even = records / max(1, len(counts))
    return {
        "typical_count_error": float(np.sqrt((errors**2).mean())),
        "largest_count_error": float(errors.max()),
        "mean_count": float(even),
        "expected_error": float(min(1.0, errors.sum() * sqrt(2 / pi) / 2 / records)),
    }


def _distance(counts: NDArray, truth: NDArray) -> float:
    """Return the total variation between the estimated and the true distribution: the share of records assigned to a
    wrong value."""
    found = np.zeros(len(truth))
    found[: len(counts)] = counts[: len(truth)]
    total = found.sum()
    return float(np.abs(found / (total if total else 1) - truth / truth.sum()).sum() / 2)


def _left_open(material: Material, statement: Statement) -> float:
    """Return the mean over rows of (possible values - 1) / (values - 1): 0 is exact, 1 is no information."""
    total, rows = 0.0, 0
    for batch in material.release.batches([statement.name]):
        spread = statement.count_possible(batch[statement.name])
        total, rows = total + float(spread.sum()), rows + len(spread)
    return (total / rows - 1) / max(1, statement.d - 1) if rows else 0.0


def _term_losses(material: Material, name: str) -> dict[str, Any]:
    """Return published terms, and with the original the suppressed share."""
    found = tally_cells(material.release, [name]).get(name)
    shown = 0 if found is None else int(found.sum())
    out: dict[str, Any] = {"terms_published": shown, "terms_per_record": shown / max(1, material.release.records)}
    before = material.term_totals.get(name)
    if before:
        out |= {"terms_before": before, "terms_left_out": max(0.0, 1 - shown / before), "holder_only": True}
    return out


def _class_losses(material: Material) -> dict[str, Any]:
    """Return the number of equivalence classes and their sizes."""
    names = [s.name for s in material.release.statements if s.role in QUASI and (s.is_key or s.is_class)]
    if not names or not material.release.records:
        return {}
    sizes = np.diff(rows_in_order(class_keys(material.release, names), material.release.rows)[1])
    return {
        "by": names,
        "classes": len(sizes),
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "mean": float(sizes.mean()),
    }


# ---------------------------------------------------------------------- on the page


EXPLAINED = {
    "left_open": (
        "Left open",
        (
            "share of the column's other values that a cell leaves possible: 0% gives the value, 100% gives no "
            "information"
        ),
    ),
    "expected_error": (
        "Expected error",
        "expected share of records that an estimated distribution assigns to a wrong value",
    ),
    "actual_error": ("Actual error", "actual share of records assigned to a wrong value, compared with the original"),
    "terms_left_out": ("Terms left out", "share of the terms that are not published"),
}
KINDS: dict[str, Kind] = {"left_open": "hollow", "expected_error": "striped"}
COUNTS = {
    "typical_count_error": "Typical error of a count",
    "largest_count_error": "Largest",
    "mean_count": "Mean count",
}


def losses(columns: Sequence[Mapping[str, Any]], wide: bool = False) -> Part | None:
    """Render the losses of analysts, column by column."""
    if not columns:
        return None
    rest = counted(columns)
    columns = worst(columns, lambda one: one.get("expected_error") or one.get("left_open") or 0.0)
    used = [n for n in EXPLAINED if any(one.get(n) is not None for one in columns)]
    holder = any(one["holder_only"] for one in columns)
    groups = [] if wide else [Group(one["name"], drawn) for one in columns if (drawn := _loss_bars(one))]
    figure = None
    if groups:
        words = "Bars for every column that is not exact; the table below has the same figures."
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
    """Render an estimate from the release, as chart and table."""
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
