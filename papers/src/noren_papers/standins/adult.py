"""A table shaped like Adult: its columns, domain sizes and skew, and relations of the same kind.

Age shapes marriage, schooling shapes the occupation and the income, sex shapes relationship and occupation. Shares are
rounded; nothing is copied from a record. Figures made with it say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.standins.draws import Codes, as_text, chosen, drawn, tail

SCHOOLS = [
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
]  # fmt: skip
_SCHOOL_SHARES = (2, 5, 10, 18, 15, 27, 36, 13, 327, 219, 43, 33, 167, 56, 17, 12)
MARRIAGES = [
    "Never-married", "Married-civ-spouse", "Divorced", "Separated", "Widowed", "Married-spouse-absent",
    "Married-AF-spouse",
]  # fmt: skip
# occupation: (share, how it grows with schooling, how it leans to men)
JOBS = {
    "Craft-repair": (133, -0.35, 1.6),
    "Prof-specialty": (133, 1.3, -0.1),
    "Exec-managerial": (132, 0.7, 0.2),
    "Adm-clerical": (123, 0.0, -1.2),
    "Sales": (120, 0.2, 0.0),
    "Other-service": (106, -0.5, -0.7),
    "Machine-op-inspct": (66, -0.6, 0.4),
    "Transport-moving": (51, -0.5, 1.9),
    "Handlers-cleaners": (45, -0.6, 1.3),
    "Farming-fishing": (33, -0.5, 1.8),
    "Tech-support": (31, 0.4, -0.1),
    "Protective-serv": (22, 0.1, 1.3),
    "Priv-house-serv": (5, -0.9, -2.0),
    "Armed-Forces": (0.3, 0.1, 2.0),
}
RACES = {"White": 860, "Black": 93, "Asian-Pac-Islander": 29, "Amer-Indian-Eskimo": 10, "Other": 8}
WORK = {
    "Private": 737, "Self-emp-not-inc": 84, "Local-gov": 69, "State-gov": 43, "Self-emp-inc": 36, "Federal-gov": 31,
    "Without-pay": 0.5,
}  # fmt: skip
COUNTRIES = [
    "United-States", "Mexico", "Philippines", "Germany", "Puerto-Rico", "Canada", "India", "El-Salvador", "Cuba",
    "England", "China", "Jamaica", "South", "Italy", "Dominican-Republic", "Japan", "Guatemala", "Vietnam",
    "Columbia", "Poland", "Haiti", "Portugal", "Iran", "Taiwan", "Greece", "Nicaragua", "Peru", "Ecuador", "France",
    "Ireland", "Thailand", "Hong", "Cambodia", "Trinadad&Tobago", "Yugoslavia", "Outlying-US(Guam-USVI-etc)",
    "Laos", "Scotland", "Honduras", "Hungary", "Holand-Netherlands",
]  # fmt: skip
HOURS = (40, 50, 45, 60, 35, 20, 30, 55, 25, 48, 38, 15, 70, 32, 65, 10)


def make(name: str = "adult", rows: int = 45_222) -> pl.DataFrame:
    """The table, all columns as text, in the order of the file. The same rows every time."""
    rng = np.random.default_rng(20_260)
    age = np.clip(17 + rng.gamma(2.3, 9.5, rows), 17, 90).astype(int)
    male = rng.random(rows) < 0.675
    school = drawn(rng, _SCHOOL_SHARES, rows)
    school = np.where((age < 19) & (school > 9), 6, np.where((age < 22) & (school > 11), 9, school))
    learned = (school - 9) / 3.0
    married = _marriage(rng, age, male)
    job = _job(rng, learned, male)
    work = _work(rng, job)
    race = drawn(rng, tuple(RACES.values()), rows)
    far = (race == 2) | (race == 4)
    country = np.where(rng.random(rows) < np.where(far, 0.25, 0.94), 0, 1 + drawn(rng, tail(40), rows))
    hours = np.where(rng.random(rows) < 0.47, 40, np.clip(rng.normal(41 + 3 * male, 13, rows), 1, 99)).astype(int)
    hours = np.where(rng.random(rows) < 0.4, np.array(HOURS)[drawn(rng, tail(len(HOURS)), rows)], hours)
    gain = np.where(rng.random(rows) < 0.916, 0, 114 + 271 * drawn(rng, tail(120), rows))
    loss = np.where(rng.random(rows) < 0.953, 0, 155 + 44 * drawn(rng, tail(96), rows))
    weight = np.clip(rng.gamma(3.2, 59_000, rows), 13_492, 1_490_400).astype(int)
    rich = -2.4 + 0.85 * learned + 1.6 * (married == 1) + 0.35 * male + 0.02 * (hours - 40) + (gain > 5000) * 3
    rich += 0.03 * np.clip(age - 38, -20, 15) + np.isin(job, (1, 2)) * 0.6
    paid = rng.random(rows) < 1 / (1 + np.exp(-rich))
    columns: Mapping[str, NDArray[Any]] = {
        "age": age,
        "workclass": np.array(list(WORK))[work],
        "fnlwgt": weight,
        "education": np.array(SCHOOLS)[school],
        "education-num": school + 1,
        "marital-status": np.array(MARRIAGES)[married],
        "occupation": np.array(list(JOBS))[job],
        "relationship": _relation(rng, married, male, age),
        "race": np.array(list(RACES))[race],
        "sex": np.where(male, "Male", "Female"),
        "capital-gain": gain,
        "capital-loss": loss,
        "hours-per-week": hours,
        "native-country": np.array(COUNTRIES)[country],
        "salary-class": np.where(paid, ">50K", "<=50K"),
    }
    return as_text(columns)


def hierarchy(column: str) -> list[list[str]]:
    """A generalisation hierarchy of a column, leaf first, root last; as high as the published ones."""
    if column == "age":
        return [[str(a), *(f"{a // w * w}-{a // w * w + w - 1}" for w in (5, 10, 20)), "*"] for a in range(1, 101)]
    if column == "education":
        steps = (8, "Primary education"), (9, "Secondary education"), (16, "Higher education")
        fine = (
            (4, "Primary school"), (8, "High School"), (9, "Graduated school"), (13, "Undergraduate"),
            (16, "Graduate"),
        )  # fmt: skip
        return [[s, _level(i, fine), _level(i, steps), "*"] for i, s in enumerate(SCHOOLS)]
    if column == "marital-status":
        spouse = {"Married-civ-spouse", "Married-AF-spouse"}
        return [[m, "spouse present" if m in spouse else "spouse not present", "*"] for m in MARRIAGES]
    if column == "native-country":
        return [[c, ("North America", "Asia", "Europe", "South America")[i % 4], "*"] for i, c in enumerate(COUNTRIES)]
    if column == "occupation":
        groups = ("Technical", "Nontechnical", "Other")
        return [[j, groups[i % 3], "*"] for i, j in enumerate(JOBS)]
    if column == "workclass":
        kinds = {"P": "Private sector", "S": "Self-employed", "L": "Government", "F": "Government", "W": "No pay"}
        return [[w, "Government" if "gov" in w else kinds[w[0]], "*"] for w in WORK]
    flat = {"race": list(RACES), "sex": ["Female", "Male"], "salary-class": ["<=50K", ">50K"]}
    return [[value, "*"] for value in flat[column]]


def _level(place: int, steps: Sequence[tuple[int, str]]) -> str:
    return next(label for end, label in steps if place < end)


def _marriage(rng: np.random.Generator, age: Codes, male: NDArray[np.bool_]) -> Codes:
    grown = 1 / (1 + np.exp(-(age - 27) / 4.0))
    weights = np.column_stack(
        [
            (1 - grown) * 1.2 + 0.06,
            grown * np.where(male, 0.72, 0.4),
            grown * np.where(male, 0.12, 0.3),
            grown * np.where(male, 0.025, 0.065),
            grown * np.where(male, 0.01, 0.07) * np.exp((age - 50) / 12.0),
            np.full(len(age), 0.013),
            np.full(len(age), 0.001),
        ]
    )
    return chosen(rng, weights)


def _job(rng: np.random.Generator, learned: NDArray[np.float64], male: NDArray[np.bool_]) -> Codes:
    figures = np.array(list(JOBS.values()), float)
    lean = np.outer(np.where(male, 0.32, -0.68), figures[:, 2])
    return chosen(rng, figures[:, 0] * np.exp(np.outer(learned, figures[:, 1]) + lean))


def _work(rng: np.random.Generator, job: Codes) -> Codes:
    weights = np.tile(np.array(list(WORK.values()), float), (len(job), 1))
    names = list(JOBS)
    weights[job == names.index("Farming-fishing"), 1] *= 6
    weights[job == names.index("Protective-serv"), 2] *= 9
    weights[job == names.index("Prof-specialty"), 2:4] *= 3
    weights[job == names.index("Armed-Forces"), 5] *= 10_000
    return chosen(rng, weights)


def _relation(rng: np.random.Generator, married: Codes, male: NDArray[np.bool_], age: Codes) -> NDArray[np.str_]:
    alone = rng.random(len(age))
    young = age < 26
    single = np.where(
        young & (alone < 0.6), "Own-child",
        np.where(alone < 0.66, "Not-in-family", np.where(alone < 0.92, "Unmarried", "Other-relative")),
    )  # fmt: skip
    return np.where(np.isin(married, (1, 6)), np.where(male, "Husband", "Wife"), single)
