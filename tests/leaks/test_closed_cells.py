"""`verify` reads every cell, also of columns that no requirement names: a forger has fitted every checksum."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.release.package import page_of, read_package
from tests.leaks.test_closed_world import mended

N = 60


@functools.cache
def people() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "weight": rng.choice([1.0, 2.0, 4.5], N),
            "rooms": rng.integers(1, 9, N),
            "town": rng.choice(["Ulm", "Hof", "Kiel"], N),
            "ill": rng.choice(["Flu", "Cold", "Gout", "Mumps"], N),
        }
    )


@pytest.fixture
def release(tmp_path: Path) -> Path:
    weight = nr.plain(weight=True)
    attributes: dict[str, Any] = {"weight": weight, "rooms": "plain", "town": "plain", "ill": "sensitive"}
    policy = nr.Policy(
        attributes=attributes, require=[nr.models.FrequencyLDiversity(on="ill", l=2)], dependence={"most": 1.0}
    )
    nr.anonymize(people(), policy, to=tmp_path / "release")
    assert not nr.verify(tmp_path / "release").failed
    return tmp_path / "release"


def with_first(release: Path, name: str, cell: Any) -> None:
    """Put something else into the first cell of a column."""
    path = release / "data.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index(name)
    cells = pa.array([cell, *table.column(place).to_pylist()[1:]], table.schema.field(place).type)
    pq.write_table(table.set_column(place, name, cells), path, compression="zstd", store_schema=False)
    mended(release)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("town", "Ann Smith, 5 Mill Lane"),
        ("town", None),
        ("rooms", 4930123456),
        ("rooms", None),
        ("weight", 17.25),
        ("weight", float("nan")),
    ],
)
def test_a_cell_outside_the_published_domain_is_refused(name: str, cell: Any, release: Path) -> None:
    with_first(release, name, cell)
    with pytest.raises(nr.errors.ReleaseError, match=f"column {name!r} holds a value that its published domain"):
        nr.verify(release)


def test_a_weight_that_is_no_number_is_refused(release: Path) -> None:
    renamed(release, lambda manifest: manifest.update(weight="town"))
    with pytest.raises(nr.errors.ReleaseError, match="not all numbers above 0"):
        nr.verify(release)


def renamed(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the manifest, and the page for people with it."""
    mended(release, lambda package: change(package["noren"]))
    manifest, _ = read_package(release)
    (release / "README.md").write_text(page_of(manifest, release / "data.parquet", False), encoding="utf-8")
    mended(release)
    assert json.loads((release / "datapackage.json").read_text(encoding="utf-8"))["noren"]["weight"] == "town"


LINES = "Flu,cough,0.9 Flu,fever,0.5 Cold,cough,0.6 Cold,sneeze,0.8 Gout,pain,0.9 Gout,fever,0.2 Mumps,pain,0.4"


@pytest.mark.parametrize("what", ["nothing", "lines twice", "numbers as texts"])
def test_a_knowledge_table_holds_its_lines_once_and_as_numbers(what: str, tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("label,term,pair_weight\n" + LINES.replace(" ", "\n"), encoding="utf-8")
    signs = {"role": "quasi-sensitive", "knowledge": str(tmp_path / "links.csv"), "separator": ";"}
    policy = nr.Policy(
        attributes={"age": "quasi-identifier", "signs": signs},
        require=[nr.models.QSDiversity(on="signs", c=3, l=2)],
        method={"name": "suppress", "k": 3},
    )
    ages = np.random.default_rng(3).integers(20, 40, N)
    cells = ["cough;fever", "sneeze", "pain;fever", "cough"] * (N // 4)
    nr.anonymize(pl.DataFrame({"age": ages, "signs": cells}), policy, to=tmp_path / "release")
    path = tmp_path / "release" / "knowledge-1.parquet"
    table = pq.read_table(path)
    if what == "lines twice":
        table = pa.concat_tables([table, table])
    if what == "numbers as texts":
        table = table.set_column(2, "pair_weight", pa.array([f"000{one}" for one in table.column(2).to_pylist()]))
    pq.write_table(table, path, compression="zstd", store_schema=False)
    mended(tmp_path / "release")
    if what == "nothing":
        assert not nr.verify(tmp_path / "release").failed
        return
    with pytest.raises(nr.errors.ReleaseError, match="its lines differ from how this table is written"):
        nr.verify(tmp_path / "release")
