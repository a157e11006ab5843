"""How far every method's cross tabulations are from the truth: the measurement behind Figures 1 to 4.

One release a setting, of every column at once; the same random choices of columns for all settings and all methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

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
from noren_papers.claims import Answer, means
from noren_papers.relations import Along, Compare, Kind
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
KEYS = ("metric", "q", "x")
EACH = "each choice"
"""Column with the distance in every choice, for comparisons; it is not written."""
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
    for setting in bench.each(settings, lambda one: f"{table.name}, {one.x:g}"):
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


def averaged(rows: pl.DataFrame) -> pl.DataFrame:
    """Means over the choices with their standard errors, and the choices themselves, by metric, q', x and series."""
    more = (pl.len().alias("choices"), pl.col("distance").alias(EACH))
    return means(rows, (*KEYS, "series"), "distance", *more)


def than(
    one: str | Sequence[str], kind: Kind, other: str | Sequence[str], keys: Sequence[str] = KEYS, **more: Any
) -> Compare:
    """Two methods in the same choices of attributes."""
    return Compare(one, kind, other, "distance", keys, each=EACH, **more)


def proposal_along(*, rising: bool, keys: Sequence[str] = KEYS[:2]) -> Along:
    """Step by step along the axis, in the same choices of attributes."""
    return Along("x", "distance", keys, rising, each=EACH, where=pl.col("series") == PROPOSAL)


def half_of_random(names: Sequence[str], *, smallest: bool) -> Compare:
    """About half of Random's distance, at the weakest protection."""
    x = pl.col("x")
    weakest = x == (x.min() if smallest else x.max()).over("metric", "q")
    return than(tuple(names), "alike", RANDOM, factor=0.5, where=weakest & pl.col("metric").is_in(["L1", "L2"]))


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
    means: pl.DataFrame

    @classmethod
    def of(
        cls, bench: Bench, letter: str, table: Coded, queries: Queries, limit: int, settings: Sequence[Setting],
        few: Sequence[float], *, decomposed: bool = False,
    ) -> Measured:  # fmt: skip
        """few: the settings at which tables of three attributes and more are measured."""
        rows = distances(bench, table, settings, queries, {3: few, 4: few}, decomposed=decomposed)
        return cls(letter, table, queries, limit, rows, averaged(rows))

    def result(
        self, number: str, series: Sequence[str], answers: Mapping[str, Answer], notes: Sequence[str], *,
        own: Sequence[str] = (), sheets: Mapping[str, pl.DataFrame] | None = None,
        pictures: Mapping[str, object] | None = None, parameters: Mapping[str, object] | None = None,
    ) -> Result:  # fmt: skip
        """The figure, with what one of the four has beyond the others."""
        own_sheets = {"": self.means.drop(EACH), "choices": self.rows}
        return Result(
            {name: sheet.rename({"x": self.letter}) for name, sheet in own_sheets.items()} | dict(sheets or {}),
            {"": self._picture(number, series)} | dict(pictures or {}),
            answers,
            (OURS, *own),
            {
                self.letter: sorted(set(self.means["x"])), "choices": named_choices(self.queries),
                "most cells of a choice": self.limit, "eps of the proposal": EPS, **(parameters or {}),
            },
            tuple(notes),
            tuple(one for m in METRICS for one in gains(f"{m} distance", self.means.filter(pl.col("metric") == m))),
        )  # fmt: skip

    def _picture(self, number: str, series: Sequence[str]) -> object:
        """Twelve panels: a metric a row, a number of attributes a column."""
        sizes = sorted(set(self.means["q"]))
        panels = [f"{metric} distance, q' = {q}" for metric in METRICS for q in sizes]
        frame = self.means.drop(EACH).with_columns(panel=pl.format("{} distance, q' = {}", "metric", "q"))
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


def gains(what: str, frame: pl.DataFrame, keys: Sequence[str] = KEYS) -> tuple[Gain, ...]:
    """Ours over the proposal, on the same releases."""
    return Gain.over(what, frame, keys, OURS, PROPOSAL, "distance", LOSES)
