"""Results about one or two columns, with error bars and assumptions.

Points with intervals, in the house style of the charts of counts.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from noren.errors import QueryError
from noren.estimates.counts.plots import FONT, INK, PALETTE, RULE, SOFT
from noren.results import Shown, make_frame, plain

if TYPE_CHECKING:
    import polars as pl


MOST = 200


def interval_chart(
    labels: Sequence[str], frame: pl.DataFrame, measure: str, title: str, subtitle: str, zero: float | None
) -> Any:
    """Draw one line per label: a point at the number, a rule from low to high, and a line at `zero` if it is given."""
    import altair as alt

    if len(labels) > MOST:
        raise QueryError(f"a chart of {len(labels):,} lines cannot be read.", hint="Choose fewer groups.")
    rows = [
        {"label": label, "value": row[measure], "low": row["low"], "high": row["high"]}
        for label, row in zip(labels, frame.iter_rows(named=True), strict=True)
        if row[measure] is not None
    ]
    if not rows:
        raise QueryError("there is no number to draw.", hint="Widen the question.")
    ends = [row[name] for row in rows for name in ("value", "low", "high")]
    known = [end for end in ends if end is not None and isfinite(end)]
    for row in rows:  # a rule without an end is drawn to the edge of the others, and has no figure there
        row |= {"from": min(known) if row["low"] == -inf else row["low"]}
        row |= {"to": max(known) if row["high"] == inf else row["high"]}
        row |= {name: None for name in ("low", "high") if row[name] is not None and not isfinite(row[name])}
    order = [row["label"] for row in rows]
    axis = alt.Axis(gridColor=RULE, domain=False, ticks=False)
    place = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=320))
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=place).properties(width=440, height=alt.Step(22))
    bars = base.mark_rule(color=INK, strokeWidth=1.3).encode(x=alt.X("from:Q", title=measure, axis=axis), x2="to:Q")
    figures = [alt.Tooltip(f"{name}:Q", format=",.4g") for name in ("value", "low", "high")]
    points = base.mark_point(filled=True, size=60, color=PALETTE[0], opacity=1).encode(
        x=alt.X("value:Q", scale=alt.Scale(zero=False), title=measure, axis=axis),
        tooltip=[alt.Tooltip("label:N"), *figures],
    )
    layers: list[Any] = [bars, points]
    if zero is not None:
        once = alt.Chart(alt.InlineData(values=[{}]))
        layers.insert(0, once.mark_rule(color=SOFT, strokeDash=[4, 3]).encode(x=alt.datum(zero)))
    text = alt.TitleParams(text=textwrap.wrap(title, 64), subtitle=textwrap.wrap(subtitle, 92))
    return (
        alt.layer(*layers)
        .properties(title=text, padding=14)
        .configure(font=FONT, background="white")
        .configure_view(stroke=None)
        .configure_title(anchor="start", frame="bounds", fontSize=15, color=INK, subtitleColor=SOFT, offset=14)
        .configure_axis(labelColor=INK, titleColor=SOFT, labelFontSize=11, titleFontWeight="normal")
    )


SCORES = "cells drawn by the published design, independently for every person and column"
EXACT = "nothing: all requested columns are published exactly"
SPREAD = "generalised cells and groups were formed independently of the other column"


@dataclass(frozen=True, repr=False, eq=False)
class Statistic(Shown, Sequence[dict[str, Any]]):
    """A number for every group, as a sequence of rows by name.

    `frame` has the columns asked for, then the number (named `measure`), std_error, low, high and records, the
    estimated size of the group. With generalised values or groups, low and high are hard bounds without assumptions,
    and std_error is null. A number that cannot be computed (an empty group) is null.
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
        """Return the meaning of low and high."""
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
        """Return the number, if there is one group."""
        if len(self) != 1:
            raise TypeError(f"{len(self)} groups have {len(self)} numbers: take one row")
        return float(self.frame[self.measure][0])

    def plot(self, *, title: str | None = None) -> Any:
        """Return an Altair chart with a point and an interval for every group."""

        labels = [" / ".join(map(str, row[: len(self.by)])) or self.of[0] for row in self.frame.iter_rows()]
        return interval_chart(labels, self.frame, self.measure, title or self._subject(), self.error_bars, None)

    def save_plot(self, path: str | Path) -> None:
        """Write the chart as .html (opens without network), .png or .svg."""
        from noren.estimates.counts.plots import save_chart

        save_chart(self.plot(), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        told = {name: getattr(self, name) for name in ("measure", "of", "by", "where", "level", "population")}
        told |= {"records": self.records, "assumes": self.assumes, "notes": self.notes, "rows": self.frame.to_dicts()}
        told |= {} if self.design_effect is None else {"design_effect": self.design_effect}
        return dict(plain(told))

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
    """The result of a test of columns or coefficients: statistic, degrees of freedom and p-value."""

    kind: str
    of: tuple[str, ...]
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
            f"{self.kind} of {' and '.join(self.of)}: statistic {self.statistic:.2f} on {self.df} df, "
            f"p = {self.p_value:.4g} ({self._how})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return dict(plain(vars(self)))

    def _subject(self) -> str:
        return f"{self.kind}, {' and '.join(self.of)}"

    def _headline(self) -> str:
        found = f"p = {self.p_value:.4g}, statistic {self.statistic:.2f} on {self.df} df"
        return f"{found}, {self._how}, {self.records:,} records"

    def _notes(self) -> tuple[str, ...]:
        return (f"Assumes {self.assumes}.", *self.notes)
