"""What an analysis returns: small, frozen, with error bars and the assumption they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

ASSUMES = "decoys drawn by the published design, independently for every record and column"


@dataclass(frozen=True)
class Estimate:
    """Estimated counts of a cross tabulation.

    `frame` has one row per cell: the columns asked for, then count, std_error, low, high. From general values, groups
    and terms low and high are hard bounds, and std_error is null: nothing there is random by design. Rows by terms
    overlap, because a record may have several.
    """

    by: tuple[str, ...]
    frame: pl.DataFrame
    estimator: str
    level: float
    population: bool
    records: int
    where: Mapping[str, Any] = field(default_factory=dict)
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    assumes: str = ASSUMES

    def plot(self, kind: str = "auto", *, title: str | None = None) -> Any:
        """An Altair chart with error bars: bar, grouped, heatmap, or the one that fits."""
        from noren.analysis.plots import chart

        heading = title or "Estimated records by " + " and ".join(self.by)
        return chart(
            self.frame,
            self.by,
            kind=kind,  # type: ignore[arg-type]
            title=heading,
            subtitle=f"{self.estimator}, {self.error_bars}, {self.records:,} records{self._overlap}",
            order=self.order,
        )

    @property
    def error_bars(self) -> str:
        """What low and high are."""
        return "hard bounds" if self.diagnostics.get("bounds") == "hard" else f"{self.level:.0%} intervals"

    @property
    def _overlap(self) -> str:
        return "; a record counts for each of its terms" if self.diagnostics.get("overlap") else ""

    def save_plot(self, path: str | Path, kind: str = "auto") -> None:
        """Write the chart as .html (opens without network), .png or .svg."""
        from noren.analysis.plots import save_chart

        save_chart(self.plot(kind), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        return {
            "by": list(self.by),
            "where": {name: _plain(value) for name, value in self.where.items()},
            "estimator": self.estimator,
            "level": self.level,
            "population": self.population,
            "records": self.records,
            "assumes": self.assumes,
            "diagnostics": dict(self.diagnostics),
            "cells": self.frame.to_dicts(),
        }


def _plain(condition: Any) -> Any:
    """A condition as JSON has it."""
    if isinstance(condition, Mapping):
        return {mode: _plain(values) for mode, values in condition.items()}
    return sorted(condition, key=str) if isinstance(condition, set | frozenset) else condition


@dataclass(frozen=True)
class Count:
    """One estimated number with its interval."""

    count: float
    std_error: float | None
    """None where low and high are hard bounds and nothing about the error is random by design."""
    low: float
    high: float
    level: float
    estimator: str
    records: int
    assumes: str = ASSUMES

    def __str__(self) -> str:
        what = "hard bounds" if self.std_error is None else f"{self.level:.0%} interval"
        return f"{self.count:,.1f} ({what} {self.low:,.1f} to {self.high:,.1f})"
