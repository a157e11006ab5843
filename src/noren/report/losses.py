"""What an analyst loses: how much of a column a cell leaves open, and how wrong a count may be.

Most of it follows from the release alone. With the original it is also known how wrong the estimates really are.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.cells import GroupCells, NodeCells, SetCells, TermCells
from noren.errors import NorenError
from noren.release.manifest import ColumnEntry
from noren.report.material import HIDDEN, Material
from noren.schema.roles import Role

MOST_VALUES = 5_000
"""Values up to which a column's distribution is estimated for the report."""
QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)


def losses_of(material: Material) -> dict[str, Any]:
    """Column by column, and for the table as a whole."""
    entries = material.release.manifest.columns
    columns = [_column(material, entry) for entry in entries if entry.form in (*HIDDEN, "terms")]
    out: dict[str, Any] = {"columns": columns, "exact": [e.name for e in entries if e.form in ("value", "open")]}
    if material.release.manifest.layout == "general":
        out["classes"] = _classes(material)
    if material.losses:
        out["table"] = {"holder_only": True, "figures": dict(material.losses)}
    return out


def _column(material: Material, entry: ColumnEntry) -> dict[str, Any]:
    out: dict[str, Any] = {"name": entry.name, "form": entry.form, "holder_only": False}
    if entry.form == "terms":
        return out | _terms(material, entry)
    if entry.design is not None and entry.design.p < 1:
        out["note"] = "a set may lack the true value, so that it rules nothing out; what it costs is the expected error"
    else:
        out["left_open"] = _left_open(material, entry)
    if entry.d > MOST_VALUES:
        return out | {"note": f"its {entry.d:,} values are too many to estimate here"}
    try:
        estimate = material.release.estimate(entry.name, estimator=_estimator(material))
    except NorenError as error:
        return out | {"note": error.message}
    out["estimator"] = estimate.estimator
    counts = estimate.frame["count"].to_numpy()
    records = max(1, material.release.records)
    errors = estimate.frame["std_error"].drop_nulls().to_numpy()
    if estimate.diagnostics.get("bounds") != "hard" and len(errors):
        out |= _expected(counts, errors, records)
    truth = material.truth.get(entry.name)
    if truth is not None and truth.sum() > 0:
        out |= {"actual_error": _distance(counts, truth), "holder_only": True}
    return out


def _estimator(material: Material) -> str | None:
    """General values are spread evenly over what they cover: the most likely counts heap up on few single values."""
    return "spread" if material.release.manifest.layout == "general" else None


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


def _left_open(material: Material, entry: ColumnEntry) -> float:
    """Mean over rows of (values that the cell leaves possible - 1) / (values - 1): 0 says all, 1 says nothing."""
    whole, total, rows = max(1, entry.d - 1), 0.0, 0
    spread = None
    if entry.form == "node":
        spread = entry.catalogue.sizes
    elif entry.form == "group":
        spread = np.diff(material.release.tables[entry.name].bounds)
    if entry.form == "member" and entry.design is not None:
        return (entry.design.eta - 1) / whole
    for batch in material.release.batches([entry.name]):
        cells = batch[entry.name]
        if isinstance(cells, SetCells):
            sizes = cells.sizes()
        else:
            assert isinstance(cells, NodeCells | GroupCells)
            assert spread is not None
            sizes = spread[cells.data]
        total, rows = total + float(sizes.sum()), rows + len(sizes)
    return (total / rows - 1) / whole if rows else 0.0


def _terms(material: Material, entry: ColumnEntry) -> dict[str, Any]:
    """Published terms, and with the original which share of them was left out."""
    shown = 0
    for batch in material.release.batches([entry.name]):
        cells = batch[entry.name]
        assert isinstance(cells, TermCells)
        shown += int(cells.counts().sum())
    out: dict[str, Any] = {"terms_published": shown, "terms_per_record": shown / max(1, material.release.records)}
    before = material.term_totals.get(entry.name)
    if before:
        out |= {"terms_before": before, "terms_left_out": max(0.0, 1 - shown / before), "holder_only": True}
    return out


def _classes(material: Material) -> dict[str, Any]:
    """How many groups of records look alike in all quasi-identifiers, and how large they are."""
    import polars as pl

    names = [e.name for e in material.release.manifest.columns if e.role in QUASI]
    if not names or not material.release.records:
        return {}
    sizes = material.release.frame().group_by(names).agg(pl.len().alias("n\0"))["n\0"].to_numpy()
    return {
        "by": names,
        "classes": len(sizes),
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "mean": float(sizes.mean()),
    }
