"""The tables of this paper as codes: Adult with its numbers cut into classes, and a table of the Census' shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.base import Bench
from noren_papers.standins import census68

CUTS: Mapping[str, tuple[int, ...]] = {
    "age": tuple(range(20, 90, 5)),
    "fnlwgt": tuple(range(50_000, 550_000, 50_000)),
    "capital-gain": (1, 2_000, 3_000, 4_000, 5_000, 7_000, 10_000, 15_000),
    "capital-loss": (1, 1_500, 1_700, 1_900, 2_000, 2_200),
    "hours-per-week": tuple(range(10, 100, 10)),
}
"""First value of every class but the lowest. The paper cut its numbers too, without saying where."""

BINS = "; ".join(
    f"{name} cut at {', '.join(map(str, cuts[:3]))}, ..., {cuts[-1]} ({len(cuts) + 1} classes)"
    for name, cuts in CUTS.items()
)


@dataclass(frozen=True)
class Coded:
    """Columns as codes into domains of the values that occur, with what the codes stand for."""

    name: str
    n: int
    columns: Mapping[str, NDArray[np.uint8]]
    values: Mapping[str, tuple[str, ...]]

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(values) for name, values in self.values.items()}

    def counts(self, name: str) -> NDArray[np.int64]:
        return np.bincount(self.columns[name], minlength=self.sizes[name])

    def truth(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The cross tabulation of some columns."""
        shape = tuple(self.sizes[name] for name in names)
        flat = np.ravel_multi_index(tuple(self.columns[name] for name in names), shape)
        return np.bincount(flat, minlength=prod(shape)).reshape(shape).astype(np.float64)


def categorised(frame: pl.DataFrame) -> pl.DataFrame:
    """Adult with numbers replaced by the lowest value of their class, written so that text order is number order."""
    out = []
    for name in frame.columns:
        if name not in CUTS:
            out.append(frame[name])
            continue
        number = frame[name].cast(pl.Int64).to_numpy()
        lowest = np.array([0, *CUTS[name]])
        width = len(str(int(lowest[-1])))
        labels = np.array([str(low).zfill(width) + "+" for low in lowest])
        out.append(pl.Series(name, labels[np.searchsorted(CUTS[name], number, side="right")]))
    return pl.DataFrame(out)


def adult_frame(bench: Bench, rows: int | None = None) -> pl.DataFrame:
    """Adult's complete rows, categorised."""
    frame = bench.table("adult", rows=rows)
    complete = frame.filter(pl.all_horizontal(pl.all() != ""))
    return bench.shared(("sensitive-qids adult", rows), lambda: categorised(complete))


def adult(bench: Bench, rows: int | None = None) -> Coded:
    """Adult as codes."""
    frame = adult_frame(bench, rows)
    return bench.shared(("sensitive-qids adult codes", rows), lambda: _coded("Adult", frame))


def _coded(name: str, frame: pl.DataFrame) -> Coded:
    columns, values = {}, {}
    for column in frame.columns:
        found, codes = np.unique(frame[column].to_numpy().astype(str), return_inverse=True)
        columns[column] = codes.astype(np.uint8)
        values[column] = tuple(map(str, found))
    return Coded(name, frame.height, columns, values)


def census(bench: Bench, names: Sequence[str], rows: int) -> Coded:
    """Chosen columns of the Census-shaped table."""

    def build() -> tuple[Coded, object]:
        made = census68.codes(names, rows)
        values = {name: tuple(map(str, range(census68.DOMAINS[name]))) for name in names}
        note = census68.used(made, f"{len(names)} of 68 columns of a generated table in the shape of the US Census")
        return Coded("Census shape", rows, made, values), note

    table, note = bench.shared(("sensitive-qids census", tuple(names), rows), build)
    bench.note(note)  # type: ignore[arg-type]
    return table
