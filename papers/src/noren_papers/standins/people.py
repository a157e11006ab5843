"""Tables shaped like Adult, Census-Income (KDD) and its extract on occupations: columns, domain sizes and skew.

Age shapes marriage, schooling the occupation and the income, sex the relationship and the occupation, origin the race
and the place of birth. Shares are rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren_papers.standins.draws import Column, as_text, draw, gamma, of_shares, stream, tail

# leans: age, schooling, being a man, origin
SCHOOLS = [
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
]  # fmt: skip
SCHOOL_SHARES = (2, 5, 10, 18, 15, 27, 36, 13, 327, 219, 43, 33, 167, 56, 17, 12)
MARRIAGES = {
    "Never-married": 323, "Separated": 31, "Married-spouse-absent": 12, "Divorced": 139, "Married-civ-spouse": 466,
    "Married-AF-spouse": 0.7, "Widowed": 28,
}  # fmt: skip
JOBS = {
    "Priv-house-serv": 5, "Other-service": 106, "Handlers-cleaners": 45, "Machine-op-inspct": 66, "Farming-fishing": 33,
    "Transport-moving": 51, "Craft-repair": 133, "Armed-Forces": 0.3, "Adm-clerical": 123, "Sales": 120,
    "Protective-serv": 22, "Tech-support": 31, "Exec-managerial": 132, "Prof-specialty": 133,
}  # fmt: skip
"""From little schooling to much."""
RACES = {"White": 860, "Black": 93, "Amer-Indian-Eskimo": 10, "Other": 8, "Asian-Pac-Islander": 29}
WORK = {
    "Without-pay": 0.5, "Private": 737, "Local-gov": 69, "State-gov": 43, "Federal-gov": 31, "Self-emp-not-inc": 84,
    "Self-emp-inc": 36,
}  # fmt: skip
RELATIONS = {
    "Own-child": 148, "Other-relative": 30, "Unmarried": 106, "Wife": 46, "Not-in-family": 258, "Husband": 412,
}  # fmt: skip
COUNTRIES = [
    "United-States", "Mexico", "Philippines", "Germany", "Puerto-Rico", "Canada", "India", "El-Salvador", "Cuba",
    "England", "China", "Jamaica", "South", "Italy", "Dominican-Republic", "Japan", "Guatemala", "Vietnam",
    "Columbia", "Poland", "Haiti", "Portugal", "Iran", "Taiwan", "Greece", "Nicaragua", "Peru", "Ecuador", "France",
    "Ireland", "Thailand", "Hong", "Cambodia", "Trinadad&Tobago", "Yugoslavia", "Outlying-US(Guam-USVI-etc)",
    "Laos", "Scotland", "Honduras", "Hungary", "Holand-Netherlands",
]  # fmt: skip
HOURS = np.exp(-(((np.arange(1, 100) - 41) / 13) ** 2) / 2) + np.isin(np.arange(1, 100), (20, 30, 35, 45, 50, 60)) * 2.0
BORN = (91, *(9 * tail(41) / tail(41).sum()))
ADULT = {
    "age": Column(gamma(2.3, 9.5, 17, 90), leans=(1,)),
    "workclass": of_shares(WORK, 0.2, 0.3),
    "fnlwgt": Column(gamma(3.2, 59_000, 13_492, 1_490_400)),
    "education": Column(SCHOOLS, SCHOOL_SHARES, (0, 1)),
    "education-num": Column(range(1, 17), SCHOOL_SHARES, (0, 1)),
    "marital-status": of_shares(MARRIAGES, 0.7),
    "occupation": of_shares(JOBS, 0, 0.6, -0.3),
    "relationship": of_shares(RELATIONS, 0.5, 0, 0.6),
    "race": of_shares(RACES, 0, 0, 0, 0.7),
    "sex": of_shares({"Female": 325, "Male": 675}, 0, 0, 1),
    "capital-gain": Column([0, *range(114, 114 + 271 * 120, 271)], (91.6, *(8.4 * tail(120) / tail(120).sum()))),
    "capital-loss": Column([0, *range(155, 155 + 44 * 96, 44)], (95.3, *(4.7 * tail(96) / tail(96).sum()))),
    "hours-per-week": Column(range(1, 100), np.where(np.arange(1, 100) == 40, HOURS.sum(), HOURS), (0.2, 0.1, 0.3)),
    "native-country": Column(COUNTRIES, (91, *(9 * tail(40) / tail(40).sum())), (0, 0, 0, 0.6)),
    "salary-class": of_shares({"<=50K": 752, ">50K": 248}, 0.4, 0.5, 0.2),
}
GROUPS = (
    "Private household services", "Other service", "Handlers equip cleaners etc",
    "Machine operators assmblrs & inspctrs", "Farming forestry and fishing", "Transportation and material moving",
    "Precision production craft & repair", "Adm support including clerical", "Sales", "Protective services",
    "Technicians and related support", "Executive admin and managerial", "Professional specialty", "Armed Forces",
)  # fmt: skip
GROUP_OF = np.repeat(np.arange(14), (1, 5, 2, 3, 1, 2, 3, 6, 5, 2, 3, 3, 9, 1))
"""The group of every occupation, from little schooling to much."""
CENSUS = {
    "age": Column(gamma(4.0, 6.0, 15, 90), leans=(1,)),
    "sex": of_shares({"Female": 474, "Male": 526}, 0, 0, 1),
    "marital_status": of_shares(
        {
            "Never married": 293, "Separated": 30, "Married-spouse absent": 9, "Divorced": 130,
            "Married-civilian spouse present": 510, "Married-A F spouse present": 4, "Widowed": 24,
        }, 0.7,
    ),
    "race": of_shares(
        {
            "White": 864, "Black": 85, "Amer Indian Aleut or Eskimo": 10, "Other": 15,
            "Asian or Pacific Islander": 26,
        }, 0, 0, 0, 0.7,
    ),
    "birthplace": Column(["United-States", *(f"Country-{i:02}" for i in range(1, 42))], BORN, (0, 0, 0, 0.6)),
    "education": Column(
        (
            "Less than 1st grade", "1st 2nd 3rd or 4th grade", "5th or 6th grade", "7th and 8th grade", "9th grade",
            "10th grade", "11th grade", "12th grade no diploma", "High school graduate", "Some college but no degree",
            "Associates degree-occup /vocational", "Associates degree-academic program",
            "Bachelors degree(BA AB BS)", "Masters degree(MA MS MEng MEd MSW MBA)",
            "Prof school degree (MD DDS DVM LLB JD)", "Doctorate degree(PhD EdD)",
        ), SCHOOL_SHARES, (0, 1),
    ),
    "workclass": of_shares(
        {
            "Without pay": 1.6, "Private": 729, "Local government": 79, "State government": 43,
            "Federal government": 29, "Self-employed-not incorporated": 86, "Self-employed-incorporated": 33,
        }, 0.2, 0.3,
    ),
    "occupation_code": Column(
        range(1, 47), [*(1 / (5.0 + stream("occupations").permutation(45))), 0.0003], (0, 0.6, -0.3)
    ),
    "income_class": of_shares({"-50000": 88, "50000+": 12}, 0.4, 0.5, 0.2),
}  # fmt: skip
WAGE = Column(lambda places: np.exp(6.6 + 0.45 * np.log(places / (1 - places)) / 1.7), leans=(0.3, 0.5, 0.2))
"""Cents an hour."""


def make(name: str, rows: int) -> pl.DataFrame:
    """A table by its name, all columns as text."""
    if name == "adult":
        return as_text(draw(name, ADULT, rows))
    return as_text(_occupations(rows) if name == "occupations" else _incomes(rows))


def _occupations(rows: int) -> dict[str, NDArray[Any]]:
    """Working people, under the names of the file."""
    out = draw("occupations", CENSUS, rows)
    group = np.array(GROUPS)[GROUP_OF[out["occupation_code"] - 1]]
    return {
        **{key: out[key] for key in list(CENSUS)[:-1]},
        "occupation_group": group,
        "income_class": out["income_class"],
    }


def _incomes(rows: int) -> dict[str, NDArray[Any]]:
    """Half of the people do not work; of those who do one in nine names a wage, and likes round figures."""
    rng = stream("census income")
    out = draw("census income", CENSUS | {"wage": WAGE}, rows)
    works, step = rng.random(rows) < 0.495, np.where(rng.random(rows) < 0.45, 50, 5)
    names = works & (rng.random(rows) < 0.114)
    group = np.array(GROUPS)[GROUP_OF[out["occupation_code"] - 1]]
    return {
        "age": np.where(works | (rng.random(rows) < 0.45), out["age"], rng.integers(0, 16, rows)),
        "class_of_worker": np.where(works, out["workclass"], "Not in universe"),
        "detailed_occupation_recode": np.where(works, out["occupation_code"], 0),
        "education": out["education"],
        "wage_per_hour": np.where(names, np.clip(np.round(out["wage"] / step) * step, 20, 9999), 0).astype(int),
        "marital_stat": np.where(works, out["marital_status"], "Never married"),
        "major_occupation_code": np.where(works, group, "Not in universe"),
        "race": out["race"],
        "sex": out["sex"],
        "country_of_birth_self": np.where(rng.random(rows) < 0.02, "?", out["birthplace"]),
        "weeks_worked_in_year": np.where(works, np.where(rng.random(rows) < 0.7, 52, rng.integers(1, 53, rows)), 0),
        "income_class": np.where(works, out["income_class"], "-50000"),
    }


def hierarchy(column: str) -> list[list[str]]:
    """A generalisation hierarchy of a column of Adult, leaf first, root last; as high as the published ones."""
    if column == "age":
        return [[str(a), *(f"{a // w * w}-{a // w * w + w - 1}" for w in (5, 10, 20)), "*"] for a in range(1, 101)]
    if column == "education":
        steps = (8, "Primary education"), (9, "Secondary education"), (16, "Higher education")
        fine = (
            (4, "Primary school"), (8, "High School"), (9, "Graduated school"), (13, "Undergraduate"),
            (16, "Graduate"),
        )  # fmt: skip
        return [[s, _level(i, fine), _level(i, steps), "*"] for i, s in enumerate(SCHOOLS)]
    groups = {
        "marital-status": (MARRIAGES, ("spouse not present", "spouse present")),
        "native-country": (COUNTRIES, ("North America", "Asia", "Europe", "South America")),
        "occupation": (JOBS, ("Technical", "Nontechnical", "Other")),
        "workclass": (WORK, ("Private sector", "Government", "Self-employed")),
    }
    if column in groups:
        values, inner = groups[column]
        return [[value, inner[i % len(inner)], "*"] for i, value in enumerate(values)]
    flat = {"race": list(RACES), "sex": ["Female", "Male"], "salary-class": ["<=50K", ">50K"]}
    return [[value, "*"] for value in flat[column]]


def _level(place: int, steps: Sequence[tuple[int, str]]) -> str:
    return next(label for end, label in steps if place < end)
