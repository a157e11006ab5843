"""That a cell is missing or was merged is told where a published record has it, and not of those who are left out.

Ten people far from all others are left out. In one table they lack every cell, in others they have rare values, or
secrets that nobody else has, in the last they are as everybody else is: no file may tell which it was made from.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr

N = 300
GONE = 10
TREE = "a1;a;*\na2;a;*\nb1;b;*\n"
CELLS: dict[str, list[Any]] = {
    "town": ["Ulm", "Bern", "Rom"],
    "code": ["10115", "10117", "80331"],
    "size": [*range(150, 200)],
    "area": ["a1", "a2", "b1"],
    "mark": ["low", "high"],
    "grade": ["low", "high"],
    "band": [1, 2, 3],
    "note": ["x", "y"],
    "count": [1, 2, 3],
}
OPEN = ("town", "note", "count")
"""Columns whose values the policy does not declare: there a rare one can be merged."""
LEVELS = {"town": 1, "code": 2, "size": 2, "area": 2, "mark": 1}


def table(gone: str) -> pl.DataFrame:
    """People with incomes up to 4,900, and ten with a hundred times as much who are left out."""
    rng = np.random.default_rng(8)
    columns: dict[str, Any] = {"row": np.arange(N), "income": rng.integers(0, 4_900, N)}
    columns["income"][:GONE] = 480_000 + 40_000 * np.arange(GONE)
    for name, values in CELLS.items():
        cells = [values[place] for place in rng.integers(0, len(values), N)]
        if gone == "lack":
            cells[:GONE] = [None] * GONE
        if gone == "rare" and name in OPEN:
            cells[:GONE] = [70 + i if name == "count" else f"rare-{i}" for i in range(GONE)]
        columns[name] = cells
    ill = [1, 2, 3, 4]
    columns["ill"] = [*(ill * GONE)[:GONE], *rng.choice(ill, N - GONE).tolist()]
    if gone == "lack":
        columns["ill"][:3] = [None] * 3
    if gone == "alone":
        columns["ill"][:3] = [7, 8, 9]
    return pl.DataFrame(columns, strict=False)


INCOGNITO = {"name": "incognito", "suppression": 0.1, "levels": LEVELS}


def policy(folder: Path, declared: bool, method: Any = INCOGNITO) -> nr.Policy:
    (folder / "area.csv").write_text(TREE, encoding="utf-8")
    quasi: dict[str, Any] = {"role": "quasi-identifier"}
    plain: dict[str, Any] = {"role": "plain"}
    ill: dict[str, Any] = {"role": "sensitive"} | ({"values": ["1", "2", "3", "4"]} if declared else {"min_count": 1})
    return nr.Policy(
        mechanism="ignored",
        attributes={
            "row": plain,
            "income": quasi,
            "town": quasi | {"rare": "merge", "min_count": 5},
            "code": quasi | {"hierarchy": {"prefix": [3]}},
            "size": quasi | {"hierarchy": {"widths": [10]}},
            "area": quasi | {"hierarchy": str(folder / "area.csv")},
            "mark": quasi | {"values": ["low", "high"]},
            "grade": plain | {"values": ["low", "high"]},
            "band": plain | {"bins": [0, 2, 4]},
            "note": plain | {"rare": "merge", "min_count": 5},
            "count": plain | {"rare": "merge", "min_count": 5},
            "ill": ill,
        },
        require=[nr.models.FrequencyLDiversity(on="ill", l=2), nr.models.KAnonymity(k=5)],
        method=method,
        dependence={"most": 1.0},
    )


def told(gone: str, declared: bool, folder: Path) -> tuple[str, list[str]]:
    """What the descriptor says about columns, and the page for people without its checksums."""
    folder.mkdir()
    release = nr.anonymize(table(gone), policy(folder, declared), to=folder / "release", file_format="csv")
    assert set(release.frame()["row"].to_list()) == set(range(GONE, N)), "the ten are left out, and nobody else"
    verdicts = nr.verify(release, policy(folder, declared), original=table(gone))
    assert all(verdict.holds for verdict in verdicts), verdicts
    package = json.loads((folder / "release" / "datapackage.json").read_text(encoding="utf-8"))
    fields = [one["schema"] for one in package["resources"]]
    page = (folder / "release" / "README.md").read_text(encoding="utf-8")
    return json.dumps([package["noren"]["columns"], fields], indent=1), page.splitlines()


@pytest.mark.parametrize(
    ("gone", "declared"), [("lack", True), ("lack", False), ("rare", True), ("rare", False), ("alone", False)]
)
def test_nothing_tells_what_those_who_are_left_out_lack(gone: str, declared: bool, tmp_path: Path) -> None:
    found, page = told(gone, declared, tmp_path / gone)
    others, other_page = told("like others", declared, tmp_path / "others")
    assert found == others
    assert page == other_page


@pytest.mark.parametrize("method", ["mondrian", "sweep", "hilbert"])
def test_a_missing_cell_of_a_published_record_is_told(method: str, tmp_path: Path) -> None:
    """Where somebody who is published lacks a value, the recipient knows that this can be."""
    release = nr.anonymize(table("lack"), policy(tmp_path, True, method))
    assert release.records == N
    listed = {name for name in CELLS if "(missing)" in release.column(name).domain.values}
    assert listed == {*CELLS}
