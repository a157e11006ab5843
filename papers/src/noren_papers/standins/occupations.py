"""A table shaped like the census extract on occupations: its columns, domain sizes and skew, relations of that kind.

Schooling and sex shape the occupation, age shapes marriage, origin goes with race. Nothing is copied from a record.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.standins.draws import Codes, as_text, chosen, drawn, tail

MARRIAGES = (
    "Never married", "Married-civilian spouse present", "Divorced", "Separated", "Widowed", "Married-spouse absent",
    "Married-A F spouse present",
)  # fmt: skip
RACES = ("White", "Black", "Asian or Pacific Islander", "Other", "Amer Indian Aleut or Eskimo")
SCHOOLS = (
    "Less than 1st grade", "1st 2nd 3rd or 4th grade", "5th or 6th grade", "7th and 8th grade", "9th grade",
    "10th grade", "11th grade", "12th grade no diploma", "High school graduate", "Some college but no degree",
    "Associates degree-occup /vocational", "Associates degree-academic program", "Bachelors degree(BA AB BS)",
    "Masters degree(MA MS MEng MEd MSW MBA)", "Prof school degree (MD DDS DVM LLB JD)", "Doctorate degree(PhD EdD)",
)  # fmt: skip
_SCHOOL_SHARES = (2, 7, 14, 22, 15, 33, 35, 12, 329, 204, 44, 38, 161, 54, 15, 10)
WORK = (
    "Private", "Self-employed-not incorporated", "Local government", "State government", "Self-employed-incorporated",
    "Federal government", "Without pay",
)  # fmt: skip
_WORK_SHARES = (729, 86, 79, 43, 33, 29, 1.6)
GROUPS = (
    "Executive admin and managerial", "Professional specialty", "Technicians and related support", "Sales",
    "Adm support including clerical", "Private household services", "Protective services", "Other service",
    "Precision production craft & repair", "Machine operators assmblrs & inspctrs",
    "Transportation and material moving", "Handlers equip cleaners etc", "Farming forestry and fishing", "Armed Forces",
)  # fmt: skip
JOBS = 46
_GROUP_OF = np.array(
    [0, 0, 0] + [1] * 9 + [2] * 3 + [3] * 5 + [4] * 6 + [5] + [6, 6] + [7] * 5 + [8] * 3 + [9] * 3 + [10] * 2
    + [11] * 2 + [12] * 1 + [13]
)  # fmt: skip
_LEARNED = np.array([0.7, 1.4, 0.5, 0.1, 0.0, -0.9, 0.1, -0.5, -0.35, -0.7, -0.5, -0.6, -0.6, 0.1])
_MALE = np.array([0.2, -0.2, 0.0, 0.0, -1.4, -2.4, 1.3, -0.8, 2.2, 0.4, 2.2, 1.0, 1.6, 2.0])


def make(name: str = "occupations", rows: int = 145_487) -> pl.DataFrame:
    """The table, all columns as text, in the order of the file. The same rows every time."""
    return as_text(draw(np.random.default_rng(1994), rows))


def draw(rng: np.random.Generator, rows: int) -> dict[str, NDArray]:
    """Working people, column by column under the names of the file."""
    age = np.clip(15 + rng.gamma(4.0, 6.0, rows), 15, 90).astype(int)
    male = rng.random(rows) < 0.526
    school = drawn(rng, _SCHOOL_SHARES, rows)
    school = np.where((age < 19) & (school > 8), 6, np.where((age < 22) & (school > 11), 9, school))
    learned = (school - 9) / 3.0
    race = drawn(rng, (864, 85, 26, 15, 10), rows)
    far = (race == 2) | (race == 3)
    abroad = rng.random(rows) >= np.where(far, 0.3, 0.91)
    birth = np.where(abroad, 1 + drawn(rng, tail(41), rows), 0)
    job = _job(rng, learned, male)
    group = _GROUP_OF[job]
    work = drawn(rng, _WORK_SHARES, rows)
    work = np.where((group == 6) & (rng.random(rows) < 0.6), 2, work)
    work = np.where((group == 12) & (rng.random(rows) < 0.4), 1, work)
    rich = -3.3 + 0.8 * learned + 0.8 * male + 0.9 * np.isin(group, (0, 1)) + 0.04 * np.clip(age - 40, -20, 12)
    paid = rng.random(rows) < 1 / (1 + np.exp(-rich))
    places = np.array(["United-States", *(f"Country-{place:02}" for place in range(1, 42))])
    return {
        "age": age,
        "sex": np.where(male, "Male", "Female"),
        "marital_status": np.array(MARRIAGES)[_marriage(rng, age)],
        "race": np.array(RACES)[race],
        "birthplace": places[birth],
        "education": np.array(SCHOOLS)[school],
        "workclass": np.array(WORK)[work],
        "occupation_code": 1 + job,
        "occupation_group": np.array(GROUPS)[group],
        "income_class": np.where(paid, "50000+", "-50000"),
    }


def _job(rng: np.random.Generator, learned: NDArray[np.float64], male: NDArray[np.bool_]) -> Codes:
    """Occupations: the commonest has about a twelfth of all people, the rarest hardly any."""
    share = 1 / (5.0 + np.argsort(np.argsort(_noise(JOBS))))
    share[-1] = 0.003
    weights = np.exp(np.outer(learned, _LEARNED[_GROUP_OF]) * 0.8 + np.outer(male - 0.5, _MALE[_GROUP_OF]) * 0.8)
    return chosen(rng, weights * share)


def _noise(size: int) -> NDArray[np.float64]:
    """A fixed order that follows no column."""
    return np.asarray((np.arange(size) * 0.6180339887) % 1.0, float)


def _marriage(rng: np.random.Generator, age: Codes) -> Codes:
    grown = 1 / (1 + np.exp(-(age - 26) / 4.0))
    shares = np.column_stack([
        (1 - grown) * 1.1 + 0.08, grown * 0.72, grown * 0.13, grown * 0.03, grown * 0.02 * np.exp((age - 50) / 12.0),
        np.full(len(age), 0.009), np.full(len(age), 0.004),
    ])  # fmt: skip
    return chosen(rng, shares)
