"""A table shaped like Census-Income (KDD) in the columns that the experiments use: half of the people do not work.

Of those who do, one in nine names an hourly wage, which grows with schooling, age and the income class, and likes round
figures. Nothing is copied from a record.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from noren_papers.standins.draws import as_text
from noren_papers.standins.occupations import MARRIAGES, SCHOOLS, draw

WORKING = 0.495
NAMED = 0.114


def make(name: str = "census income", rows: int = 299_285) -> pl.DataFrame:
    """The table, all columns as text. The same rows every time."""
    rng = np.random.default_rng(1995)
    people = draw(rng, rows)
    works = rng.random(rows) < WORKING
    level = np.searchsorted(np.arange(len(SCHOOLS)), _place(people["education"]))
    age = people["age"]
    wage = np.exp(
        6.55 + 0.05 * (level - 8) + 0.012 * np.clip(age - 22, -7, 25) + 0.12 * (people["sex"] == "Male")
        + 0.45 * (people["income_class"] == "50000+") + rng.normal(0, 0.38, rows)
    )  # fmt: skip
    cents = np.where(rng.random(rows) < 0.45, np.round(wage / 50) * 50, np.round(wage / 5) * 5)
    names = works & (rng.random(rows) < NAMED)
    unknown = rng.random(rows) < 0.02
    at_home = np.array(("Not in universe", "Not in universe"))
    columns = {
        "age": np.where(works, age, np.where(rng.random(rows) < 0.55, rng.integers(0, 16, rows), age)),
        "class_of_worker": np.where(works, people["workclass"], at_home[0]),
        "detailed_occupation_recode": np.where(works, people["occupation_code"], 0),
        "education": people["education"],
        "wage_per_hour": np.where(names, np.clip(cents, 20, 9999), 0).astype(int),
        "marital_stat": np.where(works, people["marital_status"], MARRIAGES[0]),
        "major_occupation_code": np.where(works, people["occupation_group"], at_home[1]),
        "race": people["race"],
        "sex": people["sex"],
        "country_of_birth_self": np.where(unknown, "?", people["birthplace"]),
        "weeks_worked_in_year": np.where(works, np.where(rng.random(rows) < 0.7, 52, rng.integers(1, 53, rows)), 0),
        "income_class": np.where(works, people["income_class"], "-50000"),
    }
    return as_text(columns)


def _place(schools: np.ndarray) -> np.ndarray:
    """Each school's rank."""
    order = {school: rank for rank, school in enumerate(SCHOOLS)}
    found, back = np.unique(schools, return_inverse=True)
    return np.array([order[school] for school in found])[back.ravel()]
