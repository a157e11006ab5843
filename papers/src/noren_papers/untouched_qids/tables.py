"""The tables of the experiment: stand-ins for OCC and SAL, and Adult with each attribute as the sensitive one.

OCC and SAL of the paper are 600,000 records that are not published here. OCC's place takes an extract of
Census-Income with the same attributes. SAL's takes the same people with an hourly wage: real where the file has one,
and otherwise that of a random person alike (a hot deck), in 50 classes of equal ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.base import Bench

QUASI = ("age", "sex", "marital_status", "race", "birthplace", "education", "workclass")
LOW, HIGH, CLASSES = 250, 4000, 50
"""Cents an hour: each class ends 5.7% above its beginning; the outer ones are open."""
OCC_NOTE = (
    "OCC is an extract of Census-Income (occupation codes, 46 values) instead of the paper's 600,000 records with 50: "
    "fewer records make every group smaller, and the proposal's error goes about inversely with its size. Most "
    "people have one country of birth, so a question that leaves it out asks about few; the paper has 124 places."
)
SAL_NOTE = (
    "SAL is the hourly wage of the same people in 50 classes of equal ratio from $2.50 to $40. Most records of "
    "Census-Income name no wage; theirs is drawn from people of the same income class, occupation group, sex, age "
    "group and schooling who name one. The paper's SAL has an income of 50 values."
)
HOT_DECK = (
    "On SAL 88.6% of the incomes are those of other people alike, so that a group's incomes follow from who is in it: "
    "what decides there is the table as much as the method"
)
LATE_NOTE = "Questions that no record meets have no distribution and are drawn again."
HISTOGRAM_NOTE = (
    "Equation 11 compares shares. The group's size N is counted in the published table (equation 4), so TP's and "
    "Mondrian's histograms are divided by their own totals; column mse_true_total divides all by the true size "
    "instead, which adds the error of the size itself."
)
ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "salary-class",
)  # fmt: skip
WEIGHT_WIDTH = 10_000


@dataclass(frozen=True)
class Source:
    """A table, its quasi-identifiers in the paper's order, its sensitive attribute."""

    name: str
    frame: pl.DataFrame
    quasi: tuple[str, ...]
    secret: str
    origin: str = "file"
    """Tells tables of one name apart."""

    def first(self, d: int) -> Source:
        """OCC-d, SAL-d: the first d quasi-identifiers."""
        names = self.quasi[:d]
        return Source(f"{self.name}-{d}", self.frame.select([*names, self.secret]), names, self.secret)

    def drawn(self, records: int, rng: np.random.Generator) -> Source:
        """A table of another size with the same distribution: records drawn with replacement."""
        rows = rng.integers(0, self.frame.height, records)
        return Source(self.name, self.frame[rows], self.quasi, self.secret, f"{records} drawn")


def occ(bench: Bench) -> Source:
    frame = bench.table("occupations", rows=bench.pick(None, 6_000))
    return Source("OCC", frame.select([*QUASI, "occupation_code"]), QUASI, "occupation_code")


def sal(bench: Bench) -> Source:
    raw = bench.table("census income", rows=bench.pick(None, 12_000))
    frame = bench.shared(("untouched", "sal", bench.quick), lambda: with_wages(raw, np.random.default_rng(2015)))
    return Source("SAL", frame, QUASI, "income")


def with_wages(raw: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """People with an occupation and a known country of birth, with the class of a wage for each."""
    frame = raw.filter((pl.col("detailed_occupation_recode") != "0") & (pl.col("country_of_birth_self") != "?"))
    age = frame["age"].cast(int).to_numpy()
    middle = frame["education"].str.contains("High school graduate|no degree").to_numpy()
    schooling = np.where(middle, 1, np.where(frame["education"].str.contains("degree").to_numpy(), 2, 0))
    alike = [
        _numbered(frame["income_class"]),
        _numbered(frame["sex"]),
        np.digitize(age, (22, 30, 45)),
        _numbered(frame["major_occupation_code"]),
        schooling,
    ]
    wage = hot_deck(frame["wage_per_hour"].cast(float).to_numpy(), alike, rng)
    label = np.clip(np.log(wage / LOW) / np.log(HIGH / LOW) * CLASSES, 0, CLASSES - 1).astype(int)
    names = ("age", "sex", "marital_stat", "race", "country_of_birth_self", "education", "class_of_worker")
    columns = {new: frame[old] for new, old in zip(QUASI, names, strict=True)}
    return pl.DataFrame(columns | {"income": pl.Series(label.astype(str))})


def hot_deck(values: NDArray[np.float64], alike: Sequence[NDArray], rng: np.random.Generator) -> NDArray[np.float64]:
    """Zeros replaced by the value of a random record that is alike in as many leading respects as possible."""
    out = values.copy()
    for depth in range(len(alike), -1, -1):
        empty = np.flatnonzero(out == 0)
        if not len(empty):
            break
        key = np.zeros(len(values), np.int64)
        for one in alike[:depth]:
            key = key * (int(one.max()) + 1) + one
        donors = np.flatnonzero(values > 0)
        donors = donors[np.argsort(key[donors], kind="stable")]
        low = np.searchsorted(key[donors], key[empty], side="left")
        count = np.searchsorted(key[donors], key[empty], side="right") - low
        place = low + (rng.random(len(empty)) * count).astype(np.int64)
        served = count > 0
        out[empty[served]] = values[donors[place[served]]]
    return out


def _numbered(column: pl.Series) -> NDArray[np.int64]:
    return column.rank("dense").to_numpy().astype(np.int64) - 1


def adult(bench: Bench) -> pl.DataFrame:
    frame = bench.table("adult")
    if bench.quick:
        frame = frame.head(2_000)
    return frame.select(ADULT_COLUMNS)


def adult_with(frame: pl.DataFrame, place: int) -> Source:
    """Adult(place): that attribute, counted from 1, is sensitive and the others are quasi-identifiers."""
    secret = ADULT_COLUMNS[place - 1]
    if secret == "fnlwgt":
        weight = pl.col("fnlwgt").cast(pl.Int64)
        frame = frame.with_columns((weight // WEIGHT_WIDTH * WEIGHT_WIDTH).cast(pl.String).alias("fnlwgt"))
    return Source(f"Adult({place})", frame, tuple(name for name in ADULT_COLUMNS if name != secret), secret)
