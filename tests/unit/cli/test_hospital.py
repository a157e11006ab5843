"""The made-up hospital: the same every time, with relationships that are really there."""

from __future__ import annotations

import tomllib

import numpy as np
import pyarrow.compute as pc
import pytest

from noren.cli.demo import POLICY_TOML, YEARS, disease_hierarchy_csv, hospital_table

TABLE = hospital_table()


def column(name: str) -> np.ndarray:
    return np.array(TABLE[name].to_pylist())


def association(a: np.ndarray, b: np.ndarray) -> tuple[float, int]:
    """Pearson's chi-square statistic and its degrees of freedom."""
    _, x = np.unique(a, return_inverse=True)
    _, y = np.unique(b, return_inverse=True)
    seen = np.zeros((x.max() + 1, y.max() + 1))
    np.add.at(seen, (x, y), 1)
    expected = seen.sum(axis=1, keepdims=True) * seen.sum(axis=0) / seen.sum()
    return float(((seen - expected) ** 2 / expected).sum()), (seen.shape[0] - 1) * (seen.shape[1] - 1)


def test_the_same_seed_gives_the_same_table() -> None:
    assert hospital_table(500, seed=7).equals(hospital_table(500, seed=7))
    assert not hospital_table(500, seed=7).equals(hospital_table(500, seed=8))


def test_columns() -> None:
    assert TABLE.column_names == ["patient_id", "name", "age", "zip", "job", "admission_year", "disease"]
    assert TABLE.num_rows == 20_000
    assert pc.count_distinct(TABLE["patient_id"]).as_py() == 20_000
    assert column("patient_id")[0] == "P000001"
    assert 0 <= column("age").min() < column("age").max() <= 99
    assert set(column("admission_year").tolist()) == set(YEARS)
    assert not any(TABLE[name].null_count for name in TABLE.column_names)
    assert any(not name.isascii() for name in column("name").tolist())
    assert len(np.unique(column("job"))) == 12


def test_zips_keep_their_zeros_and_share_prefixes() -> None:
    zips = np.unique(column("zip")).tolist()
    assert len(zips) == 40
    assert all(len(code) == 5 and code.isdigit() for code in zips)
    assert any(code.startswith("0") for code in zips)
    assert len({code[:3] for code in zips}) == 5


def test_every_disease_is_in_the_tree() -> None:
    rows = [line.split(";") for line in disease_hierarchy_csv().splitlines()]
    assert len(rows) == 24
    assert all(len(row) == 4 and row[3] == "*" for row in rows)
    assert set(column("disease").tolist()) == {row[0] for row in rows}
    chapter_of = {}
    for _, block, chapter, _ in rows:
        assert chapter_of.setdefault(block, chapter) == chapter  # a block has one parent


AGE_BAND = np.digitize(column("age"), [18, 30, 45, 60, 75])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (AGE_BAND, "job"),
        (AGE_BAND, "disease"),
        ("job", "disease"),
        ("zip", "job"),
        ("admission_year", "disease"),
    ],
)
def test_relationships_are_there(a: np.ndarray | str, b: str) -> None:
    # Under independence chi-square has mean f and variance 2f: ten standard deviations above is far beyond chance.
    statistic, freedom = association(column(a) if isinstance(a, str) else a, column(b))
    assert statistic > freedom + 10 * np.sqrt(2 * freedom)


def test_age_and_year_are_unrelated() -> None:
    statistic, freedom = association(AGE_BAND, column("admission_year"))
    assert statistic < freedom + 10 * np.sqrt(2 * freedom)


def test_the_stories_the_demo_tells() -> None:
    job, disease, year = column("job"), column("disease"), column("admission_year")
    dust = disease == "J60 Dust lung"
    assert dust[job == "Miner"].mean() > 10 * dust[job != "Miner"].mean()
    back = disease == "M54 Back pain"
    assert back[job == "Office clerk"].mean() > 1.5 * back[job != "Office clerk"].mean()
    influenza = disease == "J10 Influenza"
    assert influenza[year == 2024].mean() > 3 * influenza[year == 2016].mean()
    assert (job[column("age") < 5] == "No job").all()
    assert (job[column("age") > 80] == "Retired").mean() > 0.9


def test_the_shown_policy_names_every_column() -> None:
    policy = tomllib.loads(POLICY_TOML)
    assert list(policy["attributes"]) == TABLE.column_names
    assert policy["method"] == {"name": "decoys"}
    assert [rule["l"] for rule in policy["require"]] == [3]
    assert "dependence" not in policy, "no column of the demo gives another away"


def test_a_table_needs_a_row() -> None:
    assert hospital_table(1).num_rows == 1
    with pytest.raises(ValueError, match="at least 1"):
        hospital_table(0)
