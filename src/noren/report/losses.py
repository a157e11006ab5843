"""What an analyst loses: how much of a column a cell leaves open, and how wrong a count may be.

Most of it follows from the release alone. With the original it is also known how wrong the estimates really are.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.told import class_keys
from noren.errors import NorenError
from noren.models.base import QUASI
from noren.ragged import rows_in_order
from noren.report.material import Material
from noren.statements import Statement
from noren.workflow.truth import tallied

MOST_VALUES = 5_000
"""Values up to which a column's distribution is estimated for the report."""


def losses_of(material: Material) -> dict[str, Any]:
    """Column by column, and for the table as a whole."""
    statements = material.release.statements
    out: dict[str, Any] = {
        "columns": [_column(material, statement) for statement in statements if not statement.is_exact],
        "exact": [statement.name for statement in statements if statement.is_exact],
    }
    if material.has_classes:
        out["classes"] = _classes(material)
    if material.losses:
        out["table"] = {"holder_only": True, "figures": dict(material.losses)}
    return out


def _column(material: Material, statement: Statement) -> dict[str, Any]:
    name, design = statement.name, statement.design
    out: dict[str, Any] = {"name": name, "form": statement.form, "holder_only": False}
    if statement.terms is not None:
        return out | _terms(material, name)
    if design is not None and design.floor > 0:
        out["note"] = "a set may lack the true value, so that it rules nothing out; what it costs is the expected error"
    else:
        out["left_open"] = _left_open(material, statement)
    if statement.d > MOST_VALUES:
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
    """Errors to expect of one estimated count, and of the distribution as a whole (mean of a normal's distance)."""
    even = records / max(1, len(counts))
    return {
        "typical_count_error": float(np.sqrt((errors**2).mean())),
        "largest_count_error": float(errors.max()),
        "mean_count": float(even),
        "expected_error": float(min(1.0, errors.sum() * sqrt(2 / pi) / 2 / records)),
    }


def _distance(counts: NDArray, truth: NDArray) -> float:
    """Total variation between the estimated and the true distribution: the share of records put in a wrong place."""
    found = np.zeros(len(truth))
    found[: len(counts)] = counts[: len(truth)]
    total = found.sum()
    return float(np.abs(found / (total if total else 1) - truth / truth.sum()).sum() / 2)


def _left_open(material: Material, statement: Statement) -> float:
    """Mean over rows of (values that the cell leaves possible - 1) / (values - 1): 0 says all, 1 says nothing."""
    total, rows = 0.0, 0
    for batch in material.release.batches([statement.name]):
        spread = statement.spread(batch[statement.name])
        total, rows = total + float(spread.sum()), rows + len(spread)
    return (total / rows - 1) / max(1, statement.d - 1) if rows else 0.0


def _terms(material: Material, name: str) -> dict[str, Any]:
    """Published terms, and with the original which share of them was left out."""
    found = tallied(material.release, [name]).get(name)
    shown = 0 if found is None else int(found.sum())
    out: dict[str, Any] = {"terms_published": shown, "terms_per_record": shown / max(1, material.release.records)}
    before = material.term_totals.get(name)
    if before:
        out |= {"terms_before": before, "terms_left_out": max(0.0, 1 - shown / before), "holder_only": True}
    return out


def _classes(material: Material) -> dict[str, Any]:
    """How many groups of records look alike in all quasi-identifiers, and how large they are."""
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
