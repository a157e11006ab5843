"""The measured errors of one table, by setting and combination, for the answers to the claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.claims import Mean, Pair
from noren_papers.semantic.combinations import PAPER_SERIES, Point
from noren_papers.semantic.material import Material

Setting = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """Points by (l, d) and series, and the panels they are drawn in."""

    table: Material
    panels: Mapping[str, Sequence[Setting]]
    points: Mapping[Setting, Mapping[str, Point]]

    def mse(self, setting: Setting, series: str) -> float | None:
        return self.points[setting][series].mse

    def mean(self, setting: Setting, series: str) -> Mean:
        """An error that is there, with its standard error."""
        point = self.points[setting][series]
        assert point.mse is not None
        return Mean(point.mse, point.std_error or 0.0)

    def pairs(self, one: str, other: str, settings: Iterable[Setting] | None = None) -> list[Pair]:
        """Two combinations side by side, at all settings that both have or at some."""
        kept = {setting for setting, _, _ in self.both(one, other)}
        return [
            (self.mean(setting, one), self.mean(setting, other))
            for setting in (self.points if settings is None else settings)
            if setting in kept
        ]

    def both(self, one: str, other: str) -> list[tuple[Setting, float, float]]:
        """Settings at which two combinations have an error, with these."""
        out = []
        for setting in self.points:
            a, b = self.mse(setting, one), self.mse(setting, other)
            if a is not None and b is not None:
                out.append((setting, a, b))
        return out

    def line(self, panel: str, series: str) -> list[tuple[Setting, float]]:
        """A panel's line, without its gaps."""
        return [(s, value) for s in self.panels[panel] if (value := self.mse(s, series)) is not None]

    def against_best(self, series: str) -> tuple[NDArray[np.float64], list[Setting]]:
        """Its error over the smallest of the paper's combinations, and the settings."""
        ratios, settings = [], []
        for setting in self.points:
            own = self.mse(setting, series)
            rivals = [value for name in PAPER_SERIES if (value := self.mse(setting, name)) is not None]
            if own is not None and rivals:
                ratios.append(own / min(rivals))
                settings.append(setting)
        return np.array(ratios), settings


def side_by_side(points: Mapping[str, Mapping[str, Point]], one: str, other: str) -> list[Pair]:
    """Two combinations at every place at which both have an error, with their standard errors."""
    return [
        (Mean(a.mse, a.std_error or 0.0), Mean(b.mse, b.std_error or 0.0))
        for a, b in ((at[one], at[other]) for at in points.values())
        if a.mse is not None and b.mse is not None
    ]


def ratios(points: Mapping[str, Mapping[str, Point]], one: str, other: str) -> dict[str, float]:
    """One combination's error over another's, by place."""
    return {
        place: a.mse / b.mse
        for place, a, b in ((place, at[one], at[other]) for place, at in points.items())
        if a.mse is not None and b.mse is not None
    }


def sheet_of(rows: Iterable[tuple[Mapping[str, Any], Point]], *, status: bool = True) -> pl.DataFrame:
    """Errors as a sheet: a line for every combination, after what tells its place."""
    out = [
        {**place, "series": p.series, "mse": p.mse, "std_error": p.std_error, "repetitions": p.repetitions}
        | ({"status": p.status} if status else {})
        for place, p in rows
    ]
    return pl.DataFrame(out, schema_overrides={"mse": pl.Float64, "std_error": pl.Float64}, infer_schema_length=None)


def named(setting: Setting) -> str:
    return f"(l,d) = ({setting[0]},{setting[1]})"
