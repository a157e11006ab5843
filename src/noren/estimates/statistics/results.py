"""What is found about a column or two: small, frozen, with error bars and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from noren.results import Shown, make_frame, plain

if TYPE_CHECKING:
    import polars as pl

SCORES = "cells drawn by the published design, independently for every person and column"
EXACT = "nothing: all columns asked for are published exactly"
SPREAD = "general cells and groups were made without a look at the other column"


@dataclass(frozen=True, repr=False, eq=False)
class Statistic(Shown, Sequence[dict[str, Any]]):
    """A number for every group: a sequence of rows by name.

    `frame` has the columns asked for, then the number (named `measure`), std_error, low, high and records, the
    estimated size of the group. Where general values or groups take part, low and high are hard bounds, which assume
    nothing, and std_error is null. A number that cannot be told (an empty group) is null.
    """

    measure: str
    of: tuple[str, ...]
    by: tuple[str, ...]
    frame: pl.DataFrame
    level: float
    population: bool
    records: int
    assumes: str
    where: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    design_effect: float | None = None
    """Kish's, where survey weights were used: what their being unequal costs."""

    def __len__(self) -> int:
        return self.frame.height

    @property
    def error_bars(self) -> str:
        """What low and high are."""
        return "hard bounds" if self.level == 1.0 else f"{self.level:.0%} intervals"

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> Statistic: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | Statistic:
        if isinstance(place, slice):
            return replace(self, frame=self.frame[place])
        if not -len(self) <= place < len(self):
            raise IndexError(f"there is no group {place}: there are {len(self)}")
        return self.frame.row(place, named=True)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.frame.iter_rows(named=True)

    def __float__(self) -> float:
        """The number alone, where there is one group."""
        if len(self) != 1:
            raise TypeError(f"{len(self)} groups have {len(self)} numbers: take one row")
        return float(self.frame[self.measure][0])

    def plot(self, *, title: str | None = None) -> Any:
        """An Altair chart: a point and its interval for every group."""
        from noren.estimates.statistics.plots import interval_chart

        labels = [" / ".join(map(str, row[: len(self.by)])) or self.of[0] for row in self.frame.iter_rows()]
        return interval_chart(labels, self.frame, self.measure, title or self._subject(), self.error_bars, None)

    def save_plot(self, path: str | Path) -> None:
        """Write the chart as .html (opens without network), .png or .svg."""
        from noren.estimates.counts.plots import save_chart

        save_chart(self.plot(), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        told = {name: getattr(self, name) for name in ("measure", "of", "by", "where", "level", "population")}
        told |= {"records": self.records, "assumes": self.assumes, "notes": self.notes, "rows": self.frame.to_dicts()}
        told |= {} if self.design_effect is None else {"design_effect": self.design_effect}
        return plain(told)

    def _subject(self) -> str:
        by = f" by {' x '.join(self.by)}" if self.by else ""
        return f"{self.measure} of {' and '.join(self.of)}{by}"

    def _headline(self) -> str:
        rows = f"{len(self):,} group{'' if len(self) == 1 else 's'}"
        if len(self) == 1 and self.frame[self.measure][0] is not None:
            row = self[0]
            rows = f"{row[self.measure]:,.4g} ({row['low']:,.4g} to {row['high']:,.4g})"
        return f"{rows}, {self.records:,} records, {self.error_bars}"

    def _notes(self) -> tuple[str, ...]:
        return (f"Assumes {self.assumes}.", *self.notes)


@dataclass(frozen=True, repr=False, eq=False)
class TestResult(Shown):
    """Whether two columns are related: the statistic, its reference, and the p-value."""

    kind: str
    of: tuple[str, str]
    statistic: float
    df: int
    p_value: float
    reference: str
    """"permutation", "chi-square", or with survey weights "random signs"."""
    permutations: int
    records: int
    assumes: str
    notes: tuple[str, ...] = ()

    __test__ = False
    """Not a test of the test suite."""

    @property
    def frame(self) -> pl.DataFrame:
        kinds = {"kind": str, "statistic": float, "df": int, "p_value": float, "reference": str, "records": int}
        return make_frame(kinds, [vars(self)])

    @property
    def _how(self) -> str:
        if not self.permutations:
            return self.reference
        return f"{self.permutations:,} {'permutations' if self.reference == 'permutation' else self.reference}"

    def __str__(self) -> str:
        return (
            f"{self.kind} of {self.of[0]} and {self.of[1]}: statistic {self.statistic:.2f} on {self.df} df, "
            f"p = {self.p_value:.4g} ({self._how})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        return plain(vars(self))

    def _subject(self) -> str:
        return f"{self.kind}, {self.of[0]} and {self.of[1]}"

    def _headline(self) -> str:
        found = f"p = {self.p_value:.4g}, statistic {self.statistic:.2f} on {self.df} df"
        return f"{found}, {self._how}, {self.records:,} records"

    def _notes(self) -> tuple[str, ...]:
        return (f"Assumes {self.assumes}.", *self.notes)
