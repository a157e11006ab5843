"""Results of analyses: estimates with error bars and their assumption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from noren.results import Shown, make_frame, plain

if TYPE_CHECKING:
    import polars as pl

COLUMNS: dict[str, type] = {
    "count": float,
    "std_error": float,
    "low": float,
    "high": float,
    "level": float,
    "estimator": str,
    "records": int,
}
ASSUMES = "decoys drawn by the published design, independently for every person and column"
SEVERAL_ROWS = (
    "people may have an unknown number of rows, which are not independent: errors, intervals and p-values are too "
    "small, errors by up to the square root of the rows per person"
)
"""What an error rests on where rows are not people."""
UP_TO_ROWS = "errors allow for up to {} rows per person, which are not independent"
"""The same where the manifest says how many rows a person has at most."""


def notes_of(diagnostics: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for each association that is probably weaker here than in the original, because EM stopped
    early; and one if an interval was extended to the shown count."""
    found: Mapping[str, float] = diagnostics.get("shrunk", {})
    out = [f"The association {pair} is probably underestimated by about {share:.0%} of its strength."
           for pair, share in found.items()]  # fmt: skip
    if outside := diagnostics.get("outside"):
        what = "1 count lies" if outside == 1 else f"{outside:,} counts lie"
        out.append(
            f"{what} outside the interval of the unbiased estimate, so the interval was extended to contain both. "
            "The shown count is shrunk towards independence and equal shares; the interval is not."
        )
    return tuple(out)


@dataclass(frozen=True, repr=False, eq=False)
class Estimate(Shown, Sequence[dict[str, Any]]):
    """Estimated counts of a cross tabulation: a sequence of cells, each a row by name.

    `frame` has one row per cell: the columns asked for, then count, std_error, low, high. For generalised values,
    groups and terms, low and high are hard bounds and std_error is null, because nothing is random by design. Rows by
    terms overlap, because a record may have several.
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

    def __len__(self) -> int:
        return self.frame.height

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> Estimate: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | Estimate:
        if isinstance(place, slice):
            return replace(self, frame=self.frame[place])
        if not -len(self) <= place < len(self):
            raise IndexError(f"there is no cell {place}: the estimate has {len(self)}")
        return self.frame.row(place, named=True)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.frame.iter_rows(named=True)

    def plot(self, kind: str = "auto", *, title: str | None = None) -> Any:
        """Return an Altair chart with error bars: bar, grouped or heatmap, by default the one that fits."""
        from noren.estimates.counts.plots import chart

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
        """Return the meaning of low and high."""
        return "hard bounds" if self.diagnostics.get("bounds") == "hard" else f"{self.level:.0%} intervals"

    @property
    def _overlap(self) -> str:
        return "; a record counts for each of its terms" if self.diagnostics.get("overlap") else ""

    def save_plot(self, path: str | Path, kind: str = "auto") -> None:
        """Write the chart as .html (opens without network), .png or .svg."""
        from noren.estimates.counts.plots import save_chart

        save_chart(self.plot(kind), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        told = {
            "by": self.by,
            "where": self.where,
            "estimator": self.estimator,
            "level": self.level,
            "population": self.population,
            "records": self.records,
            "assumes": self.assumes,
            "diagnostics": self.diagnostics,
            "cells": self.frame.to_dicts(),
        }
        return dict(plain(told))

    def _subject(self) -> str:
        return " x ".join(self.by)

    def _headline(self) -> str:
        cells = f"{len(self):,} cell{'' if len(self) == 1 else 's'}"
        return f"{cells}, {self.records:,} records, {self.estimator}, {self.error_bars}"

    def _notes(self) -> tuple[str, ...]:
        return (f"Assumes {self.assumes}{self._overlap}.", *self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return remarks on how far the counts may be from the true ones."""
        return notes_of(self.diagnostics)


@dataclass(frozen=True, repr=False)
class Count(Shown):
    """One estimated number with its interval; `float(count)` returns the number."""

    count: float
    std_error: float | None
    """None where low and high are hard bounds and nothing about the error is random by design."""
    low: float
    high: float
    level: float
    estimator: str
    records: int
    assumes: str = ASSUMES
    design_effect: float | None = None
    """Kish's, where survey weights were used."""
    notes: tuple[str, ...] = ()
    """What a reader of the count should know of its distance from the truth."""

    def __str__(self) -> str:
        what = "hard bounds" if self.std_error is None else f"{self.level:.0%} interval"
        return f"{self.count:,.1f} ({what} {self.low:,.1f} to {self.high:,.1f})"

    def __repr__(self) -> str:
        return str(self)

    def __float__(self) -> float:
        return self.count

    @property
    def frame(self) -> pl.DataFrame:
        return make_frame(COLUMNS, [vars(self)])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        return dict(plain({name: v for name, v in vars(self).items() if v or name not in ("design_effect", "notes")}))

    def _headline(self) -> str:
        return f"{self}, {self.records:,} records, {self.estimator}"

    def _notes(self) -> tuple[str, ...]:
        return (f"Assumes {self.assumes}.", *self.notes)
