"""Tables as people bring them: a survey, hospital visits, a census extract with several codings, accidents."""

from __future__ import annotations

import numpy as np
import polars as pl


def survey(n: int = 3000) -> pl.DataFrame:
    """Markers of missing cells, a decimal comma, a weight, free text."""
    rng = np.random.default_rng(1)
    income = [f"{amount:.2f}".replace(".", ",") for amount in rng.lognormal(10, 1, n)]
    return pl.DataFrame(
        {
            "respid": [f"R{i:06}" for i in range(n)],
            "age": [str(age) if age < 95 else "NA" for age in rng.integers(18, 96, n)],
            "sex": rng.choice(["1", "2"], n),
            "region": rng.choice([f"region {i}" for i in range(12)], n),
            "marital": rng.choice(["m", "s", "d", "w"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "income": ["?" if hidden else text for hidden, text in zip(rng.random(n) < 0.05, income, strict=True)],
            "trust": rng.choice(["-9", "1", "2", "3", "4", "5", "6", "7"], n),
            "vote": rng.choice(["yes", "no"], n),
            "comment": [f"what somebody said about it, at some length, {i}" for i in range(n)],
            "wt": rng.lognormal(0, 0.3, n).round(4),
        }
    )


def visits(people: int = 900) -> pl.DataFrame:
    """Several rows of one person, in any order."""
    rng = np.random.default_rng(2)
    rows = rng.integers(1, 6, people)
    who = np.repeat(np.arange(people), rows)
    n = len(who)
    born = np.datetime64("1930-01-01") + rng.integers(0, 28000, people)
    usual = np.repeat(rng.integers(0, 20, people), rows)
    codes = np.where(rng.random(n) < 0.7, usual, rng.integers(0, 20, n))
    day = np.datetime64("2020-01-01") + rng.integers(0, 1500, n)
    return pl.DataFrame(
        {
            "visit_id": np.arange(n) + 100_000,
            "patient_id": [f"P{one:05}" for one in who],
            "birth_date": [str(born[one]) for one in who],
            "sex": np.repeat(rng.choice(["f", "m"], people), rows),
            "postcode": np.repeat([f"{code:05}" for code in rng.choice(np.arange(1000, 9999, 37), people)], rows),
            "admission": [f"{str(one)[8:]}.{str(one)[5:7]}.{str(one)[:4]}" for one in day],
            "diagnosis": [f"J{code:02}" for code in codes],
        }
    ).sample(fraction=1, shuffle=True, seed=1)


def census(n: int = 4000) -> pl.DataFrame:
    """One occupation in three codings, twice; an income of which a fifth is 0."""
    rng = np.random.default_rng(3)
    job = rng.integers(0, 40, n)
    return pl.DataFrame(
        {
            "SERIALNO": np.arange(n) + 2_010_000,
            "AGEP": rng.integers(0, 95, n),
            "SEX": rng.choice([1, 2], n),
            "dx02": [f"a{code}" for code in job],
            "dx10": [f"{code * 7 % 40 * 10:04}" for code in job],
            "group10": [f"{11 + code // 4}" for code in job],
            "PINCP": np.where(rng.random(n) < 0.2, 0, rng.lognormal(10, 1, n)).round(0).astype(int),
            "PWGTP": rng.integers(1, 200, n),
        }
    )


def accidents(n: int = 3000) -> pl.DataFrame:
    """Dates with slashes, times of day, places, -1 for unknown ages."""
    rng = np.random.default_rng(4)
    days = zip(rng.integers(1, 29, n), rng.integers(1, 13, n), strict=True)
    clock = zip(rng.integers(0, 24, n), rng.integers(0, 60, n), strict=True)
    return pl.DataFrame(
        {
            "accident_ref": [f"2020{i:07}" for i in range(n)],
            "date": [f"{day:02}/{month:02}/2020" for day, month in days],
            "time": [f"{hour:02}:{minute:02}" for hour, minute in clock],
            "longitude": rng.normal(0, 1, n).round(6),
            "severity": rng.choice(["fatal", "serious", "slight"], n, p=[0.1, 0.3, 0.6]),
            "age_of_driver": np.where(rng.random(n) < 0.1, -1, rng.integers(17, 95, n)),
            "sex_of_driver": rng.choice([1, 2, 3], n, p=[0.6, 0.35, 0.05]),
            "weather": rng.choice(list("12345678"), n),
        }
    )


TABLES = {"survey": survey, "visits": visits, "census": census, "accidents": accidents}
