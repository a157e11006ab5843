"""What is found about a column or two: small, frozen, with error bars and what they rest on.

Points with intervals, in the house style of the charts of counts.

Regression from a release: a formula, a family, coefficients with honest errors.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.plots import FONT, INK, PALETTE, RULE, SOFT
from noren.estimates.statistics.formula import FAMILIES, Coding, Formula, model_matrix
from noren.results import Shown, make_frame, plain

if TYPE_CHECKING:
    import polars as pl


MOST = 200


def interval_chart(
    labels: Sequence[str], frame: pl.DataFrame, measure: str, title: str, subtitle: str, zero: float | None
) -> Any:
    """One line per label: a point at the number, a rule from low to high, and a line at `zero` if it is given."""
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
    order = [row["label"] for row in rows]
    axis = alt.Axis(gridColor=RULE, domain=False, ticks=False)
    place = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=320))
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=place).properties(width=440, height=alt.Step(22))
    bars = base.mark_rule(color=INK, strokeWidth=1.3).encode(x=alt.X("low:Q", title=measure, axis=axis), x2="high:Q")
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


@dataclass(frozen=True, repr=False, eq=False)
class Regression(Shown):
    """Coefficients of a model with standard errors, as if of a sample from a population.

    `frame` has one row per coefficient: class (multinomial only), term, coef, std_error, z, p_value, low, high. Printed
    it is the table that other tools print. `predict` gives means for new values with intervals.
    """

    formula: Formula
    family: str
    titles: tuple[str, ...]
    classes: tuple[str, ...]
    """The classes that have coefficients; one empty text unless multinomial."""
    base: str
    """The class that others are compared with, or what a binomial response counts as no."""
    theta: NDArray[np.float64]
    cov: NDArray[np.float64]
    codings: Mapping[str, Coding]
    estimator: str
    level: float
    records: int
    assumes: str
    notes: tuple[str, ...] = ()
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def frame(self) -> pl.DataFrame:
        import polars as pl
        from scipy.stats import norm

        coef, error = self.theta.ravel(), np.sqrt(np.maximum(np.diag(self.cov), 0.0))
        z = np.divide(coef, error, out=np.full(len(coef), np.nan), where=error > 0)
        reach = NormalDist().inv_cdf((1 + self.level) / 2) * error
        columns: dict[str, Any] = {}
        if self.family == "multinomial":
            columns["class"] = [name for name in self.classes for _ in self.titles]
        columns |= {"term": [*self.titles] * len(self.classes), "coef": coef, "std_error": error, "z": z}
        columns |= {"p_value": 2 * norm.sf(np.abs(z)), "low": coef - reach, "high": coef + reach}
        return pl.DataFrame(columns)

    @property
    def coef(self) -> dict[str, float]:
        """The coefficients by term; of a multinomial by "class: term"."""
        heads = [f"{name}: " if name and self.family == "multinomial" else "" for name in self.classes]
        names = [head + title for head in heads for title in self.titles]
        return dict(zip(names, map(float, self.theta.ravel()), strict=True))

    def predict(self, at: Mapping[str, Any] | Sequence[Mapping[str, Any]] | pl.DataFrame) -> pl.DataFrame:
        """The mean response for new values: one row each with mean, std_error, low, high (class by class).

        `at` is one or several mappings of column to value, or a frame; the response is not needed.
        """
        import polars as pl

        frame = at if isinstance(at, pl.DataFrame) else pl.DataFrame([at] if isinstance(at, Mapping) else list(at))
        values = {name: self._coded(name, coding, frame) for name, coding in self.codings.items()}
        _, x = model_matrix(self.formula, self.codings, values, (frame.height,))
        family, q = FAMILIES[self.family], len(self.theta)
        eta = x @ self.theta.T
        mean = family.mean(eta)
        slope = family.slope(mean)
        jacobian = np.einsum("nab,np->nabp", slope, x).reshape(frame.height, q, -1)
        error = np.sqrt(np.maximum(np.einsum("nai,ij,naj->na", jacobian, self.cov, jacobian), 0.0))
        reach = NormalDist().inv_cdf((1 + self.level) / 2)
        if q == 1 and self.family != "gaussian":  # symmetric on the scale of the predictor, and within what is possible
            spread = reach * np.sqrt(np.maximum(np.einsum("np,pk,nk->n", x, self.cov, x), 0.0))[:, None]
            low, high = family.mean(eta - spread), family.mean(eta + spread)
        else:
            low, high = mean - reach * error, mean + reach * error
        if self.family == "multinomial":
            low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
        out = [
            frame.with_columns(
                *([pl.lit(name).alias("class")] if self.family == "multinomial" else []),
                pl.Series("mean", mean[:, k]),
                pl.Series("std_error", error[:, k]),
                pl.Series("low", low[:, k]),
                pl.Series("high", high[:, k]),
            )
            for k, name in enumerate(self.classes)
        ]
        return pl.concat(out)

    def _coded(self, name: str, coding: Coding, frame: pl.DataFrame) -> NDArray:
        from noren.schema.hierarchy import value_text

        if name not in frame.columns:
            raise QueryError(f"{name!r} is needed for a prediction.", hint=f"Give {', '.join(self.codings)}.")
        given = frame[name].to_list()
        if coding.levels is None:
            try:
                return np.array([float(value) for value in given])
            except (TypeError, ValueError):
                raise QueryError(f"{name!r} is a number in this model.", hint="Give numbers.") from None
        texts = [value_text(value) for value in given]
        if unknown := [text for text in texts if text not in coding.levels]:
            raise QueryError(
                f"{name!r} has no level {unknown[0]!r} in this model.", hint=f"It has {', '.join(coding.levels[:12])}."
            )
        return np.array([coding.levels.index(text) for text in texts])

    def plot(self, *, title: str | None = None) -> Any:
        """An Altair chart: every coefficient with its interval, and a line at zero. The constant is left out."""
        from noren.estimates.statistics.formula import CONSTANT

        frame = self.frame
        kept = frame.filter(frame["term"] != CONSTANT) if len(self.titles) > 1 else frame
        labels = kept["term"].to_list()
        if self.family == "multinomial":
            labels = [f"{name}: {term}" for name, term in zip(kept["class"], labels, strict=True)]
        small = f"{self.family}, {self.estimator}, {self.level:.0%} intervals, {self.records:,} records"
        return interval_chart(labels, kept, "coef", title or self.formula.text, small, 0.0)

    def save_plot(self, path: str | Path) -> None:
        """Write the chart as .html (opens without network), .png or .svg."""
        from noren.estimates.counts.plots import save_chart

        save_chart(self.plot(), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        told = {name: getattr(self, name) for name in ("family", "estimator", "level", "records", "assumes", "notes")}
        told |= {"formula": self.formula.text, "base": self.base, "diagnostics": self.diagnostics}
        return plain(told | {"coefficients": self.frame.to_dicts()})

    def __str__(self) -> str:
        link = FAMILIES[self.family].link
        head = [
            f"{self.formula.text}",
            f"{self.family} ({link}), {self.estimator}, {self.records:,} records, {self.level:.0%} intervals",
        ]
        if self.base:
            head.append(f"Compared with {self.base!r}." if self.family == "multinomial" else f"Against {self.base!r}.")
        rows = self.frame.rows()
        names = self.frame.columns
        body = [[value if isinstance(value, str) else _short(value) for value in row] for row in rows]
        wide = [max(len(name), *(len(row[k]) for row in body)) for k, name in enumerate(names)]
        texts = [isinstance(value, str) for value in rows[0]]
        lines = [
            "  ".join(cell.ljust(w) if text else cell.rjust(w) for cell, w, text in zip(row, wide, texts, strict=True))
            for row in [names, *body]
        ]
        rule = "-" * max(len(line) for line in lines)
        return "\n".join([*head, rule, lines[0], rule, *lines[1:], rule, *self._notes()])

    def _subject(self) -> str:
        return self.formula.text

    def _headline(self) -> str:
        return f"{self.family}, {self.theta.size} coefficients, {self.records:,} records, {self.estimator}"

    def _notes(self) -> tuple[str, ...]:
        return (f"Assumes {self.assumes}.", *self.notes)


def _short(value: float | None) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.4g}"
