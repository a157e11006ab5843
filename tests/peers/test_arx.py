"""Tables and hierarchies that ARX 3.9.2 wrote, opened as they are: our figures are ARX's own.

They need NOREN_DATA, a folder with arx_outputs/ (Adult, 30,162 rows, anonymised by ARX) and adult_hierarchies/ (the
files that ARX publishes with its examples).
"""

from __future__ import annotations

from math import floor
from pathlib import Path

import polars as pl
import pytest

import noren as nr
from noren.models.base import Evidence
from noren.release.published import Published
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.sources.source import open_source
from noren.workflow.foreign import QUASI, read_foreign, verify_table
from noren.workflow.measure import measure
from tests.peers.peer import data, needs_data

pytestmark = needs_data

KEYS = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
ROWS = 30_162
ROLES = dict.fromkeys(KEYS, Role.QUASI_IDENTIFIER) | {"occupation": Role.SENSITIVE}


def sizes(foreign: Published) -> list[int]:
    """Records of every class."""
    keys = [column.name for column in foreign.statements if column.role in QUASI]
    classes = Evidence(foreign.by_name, {}).classes(None, keys)
    for batch in foreign.batches(keys):
        classes.observe(batch)
    found: list[int] = classes.table().n.tolist()
    return found


@pytest.mark.parametrize(
    ("name", "classes", "smallest", "largest", "mean", "suppressed"),
    [
        ("adult_k5_s5", 397, 5, 1685, 72.584, 1346),
        ("adult_distinct_l3_s5", 473, 3, None, 61, 1102),
        ("adult_local_k5", None, 5, None, 8.9, 0),
    ],
)
def test_classes_are_those_of_arx(name, classes, smallest, largest, mean, suppressed) -> None:
    foreign = read_foreign(open_source(data("arx_outputs", f"{name}.csv.gz")), ROLES)
    found = sizes(foreign)
    digits = 10 ** len(str(mean).partition(".")[2])
    assert (min(found), foreign.suppressed) == (smallest, suppressed)
    assert (sum(found), foreign.records) == (ROWS - suppressed,) * 2
    assert len(found) == (classes or len(found))
    assert max(found) == (largest or max(found))
    average = sum(found) / len(found)
    assert mean in (floor(average * digits) / digits, round(average, len(str(digits)) - 1))


@pytest.mark.parametrize(("name", "k", "distinct"), [("adult_k5_s5", 5, 2), ("adult_distinct_l3_s5", 3, 3)])
def test_figures_are_those_of_arx(name: str, k: int, distinct: int) -> None:
    path = data("arx_outputs", f"{name}.csv.gz")
    found = measure(path, quasi=KEYS, sensitive=["occupation"])
    assert (found.value("k-anonymity"), found.value("distinct-l-diversity")) == (k, distinct)
    kept = measure(path, quasi=KEYS, sensitive=["occupation"], suppressed=None)
    assert kept.suppressed == 0
    assert kept.records == ROWS


def policy(folder: Path, asked: str) -> nr.Policy:
    lines = [f'"{name}" = {{ role = "quasi-identifier", hierarchy = "{_tree(folder, name)}" }}' for name in KEYS]
    lines.append(f'occupation = {{ role = "sensitive", hierarchy = "{_tree(folder, "occupation")}" }}')
    return nr.Policy.parse("[attributes]\n" + "\n".join(lines) + f'\n[method]\nname = "mondrian"\n{asked}')


def _tree(folder: Path, name: str) -> str:
    return (folder / f"adult_hierarchy_{name}.csv").as_posix()


def test_hierarchies_and_a_plain_yes_or_no() -> None:
    folder, path = data("adult_hierarchies"), data("arx_outputs", "adult_k5_s5.csv.gz")
    asked = '[[require]]\nmodel = "k-anonymity"\nk = {}\n[[require]]\nmodel = "distinct-l-diversity"\n'
    asked += 'on = "occupation"\nl = {}\n'
    _, held = verify_table(path, policy(folder, asked.format(5, 2)))
    assert [verdict.holds for verdict in held] == [True, True]
    _, failed = verify_table(path, policy(folder, asked.format(6, 3)), show=1000)
    frame = pl.read_csv(path, separator=";", infer_schema_length=0).filter(pl.col("sex") != "*")
    grouped = frame.group_by(KEYS).agg(n=pl.len(), l=pl.col("occupation").n_unique())
    small, uniform = grouped.filter(n=5), grouped.filter(l=2)
    assert [(v.holds, v.short, v.breaches) for v in failed] == [
        (False, len(small), small["n"].sum()),
        (False, len(uniform), uniform["n"].sum()),
    ]
    named = {tuple(one.keys[name] for name in KEYS) for one in failed[0].shortfalls}
    assert named == set(small.select(KEYS).iter_rows())
    tree = measure(path, policy(folder, asked.format(5, 2)))
    assert 0 < tree.value("t-closeness", "occupation", distance="tree") <= tree.value("t-closeness", distance="equal")


def test_every_cell_of_the_tables_stands_in_the_hierarchies() -> None:
    """ARX writes nodes of its hierarchies and `*`; all of them are found in the files as we read them."""
    folder = data("adult_hierarchies")
    for name in ("adult_k5_s5", "adult_distinct_l3_s5", "adult_local_k5"):
        frame = pl.read_csv(data("arx_outputs", f"{name}.csv.gz"), separator=";", infer_schema_length=0)
        for column in KEYS:
            tree = Hierarchy.read_csv(folder / f"adult_hierarchy_{column}.csv")
            nodes = {label for level in tree.levels for label in level}
            assert set(frame[column].unique()) <= nodes, (name, column)
