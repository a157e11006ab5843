"""How far every method's cross tabulations are from the truth: the measurement behind Figures 1 to 4.

One release a setting, of every column at once; the same random choices of columns for all settings and all methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import ESTIMATORS
from noren.estimates.counts.frame import prepare
from noren.metrics.distances import METRICS as MEASURES
from noren.statements import SetCells
from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import Answer, Pair, means, paired
from noren_papers.sensitive_qids import methods, tables
from noren_papers.sensitive_qids.tables import Coded
from noren_papers.standins import census68

PROPOSAL = "Proposal"
VALUE_ADDING, RATING, RANDOM = "ValueAdding", "Rating", "Random"
PRINTED = "Proposal, p as printed"
UAD = "UAD and GD"
OURS = "likelihood (ours)"
METRICS = {"L1": "l1", "L2": "l2", "Hellinger": "hellinger"}
EPS = 1.0
STOPPING = (
    "Proposal is equation 26 from w until no cell moves by one, then the one division of equation 27. The paper says "
    "only that the change should be small; its sister paper sets 1.0. The change is that of the equation, before the "
    "division. The path of these steps, up to hundreds of thousands, is followed in leaps; tests compare with plain "
    "steps."
)
DECOMPOSED = (
    f"{UAD} (Utility-Aware and Guardian Decomposition, the paper's reference 11) publish sub-tables, each by an "
    "algorithm that hides secrets from quasi-identifiers, so that all rules hold together. Here every attribute is to "
    "be hidden from all others, and no sub-table can hold two of them (claim on GD): each is published in a table of "
    "its own, in random order, as the paper says in section III. Cross tabulations are products of exact margins: one "
    "attribute is exact, several are independent whatever the data. Of reference 11 the summary was to be had, not the "
    "steps of GD; if GD ends at all, it ends here."
)
UNITS = "Distances are of relative frequencies: counts divided by the number of records, as the paper's axes show."


@dataclass(frozen=True)
class Setting:
    """One point of the x axis: its value, the designs of the release, and Rating's l where it applies.

    printed: designs of a second release that is estimated by the proposal alone.
    """

    x: float
    designs: Mapping[str, DecoyDesign]
    level: int | None = None
    printed: Mapping[str, DecoyDesign] | None = None


Queries = Mapping[int, Sequence[tuple[str, ...]]]


def choices(
    bench: Bench, sizes: Mapping[str, int], many: Mapping[int, int], cells: int
) -> dict[int, list[tuple[str, ...]]]:
    """Random choices of q' columns with at most so many cells, no choice twice."""
    out: dict[int, list[tuple[str, ...]]] = {}
    names = sorted(sizes)
    for size, wanted in many.items():
        rng = bench.rng(f"choices of {size}")
        found: dict[frozenset[str], tuple[str, ...]] = {}
        if size == 1 and wanted >= len(names):
            found = {frozenset((name,)): (name,) for name in names}
        tries = 0
        while len(found) < wanted and tries < 5000:
            tries += 1
            picked = tuple(str(name) for name in rng.choice(names, size, replace=False))
            if prod(sizes[name] for name in picked) <= cells:
                found.setdefault(frozenset(picked), picked)
        out[size] = list(found.values())
    return out


def distances(
    bench: Bench, table: Coded, settings: Sequence[Setting], queries: Queries, only: Mapping[int, Sequence[float]],
    *, decomposed: bool = False,
) -> pl.DataFrame:  # fmt: skip
    """One row a setting, choice, method and metric. `only` restricts the settings of large tables.

    decomposed: with UAD and GD, which do not depend on the setting.
    """
    rows: list[dict[str, object]] = []
    for setting in settings:
        sets = methods.published(table, setting.designs)
        second = None if setting.printed is None else methods.published(table, setting.printed)
        wanted = {size: asked for size, asked in queries.items() if setting.x in only.get(size, (setting.x,))}
        groups: dict[str, methods.Groups] = {}
        if setting.level is not None:
            named = sorted({name for asked in wanted.values() for names in asked for name in names})
            groups = {name: methods.rated(table, name, setting.level) for name in named}
        for size, asked in wanted.items():
            for number, names in enumerate(asked):
                truth = table.truth(names)
                found = estimates(sets, setting.designs, names)
                if second is not None and setting.printed is not None:
                    found[PRINTED] = estimates(second, setting.printed, names, (PROPOSAL,))[PROPOSAL]
                if groups:
                    found[RATING] = methods.spread([groups[name] for name in names])
                if decomposed:
                    found[UAD] = methods.apart(table, names)
                found[RANDOM] = methods.random_table(bench.rng(f"random {names} {setting.x}"), truth.shape, table.n)
                rows += _measured(setting.x, size, number, names, truth, found)
            bench.step(f"{table.name}, {setting.x:g}, {size} attributes")
    return pl.DataFrame(rows, infer_schema_length=None)


def estimates(
    sets: Mapping[str, SetCells],
    designs: Mapping[str, DecoyDesign],
    names: Sequence[str],
    wanted: Sequence[str] = (PROPOSAL, VALUE_ADDING, OURS),
) -> dict[str, NDArray[np.float64]]:
    """Tables from one release by the estimators of the decoy family; the records are grouped once for all of them."""
    frame = prepare([Axis.drawn(name, sets[name], designs[name]) for name in names])
    known = {PROPOSAL: "bayes", VALUE_ADDING: "value-adding", OURS: "likelihood", "linear": "linear"}
    return {
        series: frame.place(ESTIMATORS[known[series]](frame, progress=None, eps=EPS).table) for series in wanted
    }  # fmt: skip


def _measured(
    x: float, size: int, number: int, names: Sequence[str], truth: NDArray, found: Mapping[str, NDArray]
) -> list[dict[str, object]]:
    return [
        {
            "x": x, "q": size, "choice": number, "columns": " x ".join(names), "cells": truth.size, "series": series,
            "metric": metric, "distance": MEASURES[key](table, truth, True),
        }
        for series, table in found.items()
        for metric, key in METRICS.items()
    ]  # fmt: skip


class Means:
    """Means over the choices, by (metric, q', x, series)."""

    def __init__(self, rows: pl.DataFrame) -> None:
        keys = ["metric", "q", "x", "series"]
        self.frame = means(rows, keys, "distance", pl.len().alias("choices"))
        self._at = {tuple(row[:4]): float(row[4]) for row in self.frame.iter_rows()}
        self._each = {
            key: part.sort("choice")["distance"].to_list()
            for key, part in rows.partition_by(keys, as_dict=True, maintain_order=True).items()
        }

    def __call__(self, metric: str, q: int, x: float, series: str) -> float:
        return self._at[metric, q, x, series]

    def pair(self, metric: str, q: int, x: float, one: str, other: str) -> Pair:
        """Two series in the same choices of attributes, as one comparison with its standard error."""
        return paired(self._each[metric, q, x, one], self._each[metric, q, x, other])

    def along(self, metric: str, q: int, series: str) -> list[list[float]]:
        """A series point by point, every point's choices."""
        found = sorted(key for key in self._each if (*key[:2], key[3]) == (metric, q, series))
        return [self._each[key] for key in found]

    def points(self, metrics: Sequence[str] = tuple(METRICS)) -> list[tuple[str, int, float]]:
        """Every (metric, q', x) that was measured."""
        return list(dict.fromkeys(key[:3] for key in self._at if key[0] in metrics))

    def ends(self, metrics: Sequence[str] = tuple(METRICS)) -> list[tuple[str, int, float, float]]:
        """Every (metric, q', smallest x, largest x)."""
        out: dict[tuple[str, int], list[float]] = {}
        for metric, q, x in self.points(metrics):
            out.setdefault((metric, q), []).append(x)
        return [(metric, q, min(xs), max(xs)) for (metric, q), xs in out.items()]

    def ratio(self, metric: str, q: int, x: float, one: str, other: str) -> float:
        low = self(metric, q, x, other)
        high = self(metric, q, x, one)
        return high / low if low > 0 else float("inf") if high > 0 else float("nan")


def span(values: Sequence[float]) -> str:
    """The range of some figures, in words."""
    clean = [value for value in values if np.isfinite(value)]
    endless = " and, where the other's is 0, without limit" if np.inf in values else ""
    return f"{min(clean):.3g} to {max(clean):.3g}{endless}" if clean else "nothing"


def place(point: Sequence[object], letter: str) -> str:
    """Where a comparison was made, in words: metric, number of attributes, setting."""
    metric, q, x = point[:3]
    return f"{metric} at q' = {q}, {letter} = {x:g}"


def on_census(bench: Bench, many: Mapping[int, int], limit: int, rows: int) -> tuple[Queries, Coded]:
    """Random choices of columns of the Census shape, and a table of these columns."""
    queries = choices(bench, census68.DOMAINS, many, limit)
    names = sorted({name for asked in queries.values() for chosen in asked for name in chosen})
    return queries, tables.census(bench, names, rows)


def named_choices(queries: Queries) -> dict[str, list[str]]:
    return {f"q' = {size}": [" x ".join(names) for names in asked] for size, asked in queries.items()}


@dataclass(frozen=True)
class Measured:
    """What figures 1 to 4 are drawn from: distances of every method against l or t, in random choices of attributes."""

    letter: str
    table: Coded
    queries: Queries
    limit: int
    rows: pl.DataFrame
    means: Means

    @classmethod
    def of(
        cls, bench: Bench, letter: str, table: Coded, queries: Queries, limit: int, settings: Sequence[Setting],
        few: Sequence[float], *, more: int = 0, decomposed: bool = False,
    ) -> Measured:  # fmt: skip
        """few: the settings at which tables of three attributes and more are measured. more: steps that follow."""
        bench.plan(sum(len(few) if size > 2 else len(settings) for size in queries) + more)
        rows = distances(bench, table, settings, queries, {3: few, 4: few}, decomposed=decomposed)
        return cls(letter, table, queries, limit, rows, Means(rows))

    def result(
        self, number: str, series: Sequence[str], answers: Mapping[str, Answer], notes: Sequence[str], *,
        own: Sequence[str] = (), sheets: Mapping[str, pl.DataFrame] | None = None,
        pictures: Mapping[str, object] | None = None, parameters: Mapping[str, object] | None = None,
    ) -> Result:  # fmt: skip
        """The figure, with what one of the four has beyond the others."""
        own_sheets = {"": self.means.frame, "choices": self.rows}
        return Result(
            {name: sheet.rename({"x": self.letter}) for name, sheet in own_sheets.items()} | dict(sheets or {}),
            {"": self._picture(number, series)} | dict(pictures or {}),
            answers,
            (OURS, *own),
            {
                self.letter: sorted({x for _, _, x in self.means.points()}), "choices": named_choices(self.queries),
                "most cells of a choice": self.limit, "eps of the proposal": EPS, **(parameters or {}),
            },
            tuple(notes),
            gains(self.means, self.letter),
        )  # fmt: skip

    def _picture(self, number: str, series: Sequence[str]) -> object:
        """Twelve panels: a metric a row, a number of attributes a column."""
        sizes = sorted({q for _, q, _ in self.means.points()})
        panels = [f"{metric} distance, q' = {q}" for metric in METRICS for q in sizes]
        frame = self.means.frame.with_columns(panel=pl.format("{} distance, q' = {}", "metric", "q"))
        return draw.lines(
            frame.rename({"x": self.letter}), x=self.letter, y="distance", series="series", ours=[OURS], order=series,
            panel="panel", panels=panels, columns=len(sizes), y_title="", log_y=True, size=(185, 140),
            title=f"Figure {number}. L1, L2 and Hellinger distance against {self.letter}", error="standard error",
            note=f"{self.table.name}, {self.table.n:,} records; mean over the same random choices of attributes for "
            "all methods.",
        )  # fmt: skip


LOSES = (
    "with one attribute the maximum of the likelihood follows the decoys' noise, which the proposal's stop leaves out; "
    "with several, few held-out records choose the stop. In use: a prior towards even shares, at low signal the mean "
    "with the proposal's estimate, four folds and the mean of their stops. The best step that somebody who knows the "
    "truth could take has 0.68 (Adult) and 0.77 (Census shape) times the proposal's distances"
)


def gains(means: Means, letter: str) -> tuple[Gain, ...]:
    """Ours over the proposal, by metric."""
    return tuple(
        one
        for metric in METRICS
        for one in Gain.of(
            f"{metric} distance",
            {place(point, letter): means.ratio(*point, OURS, PROPOSAL) for point in means.points((metric,))},
            LOSES,
        )
    )
