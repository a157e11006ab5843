"""Files of a release are what writing their cells gives: whatever else stands in them is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noren.errors import ReleaseError
from noren.release.closed import Digest, demand_lines, demand_written
from noren.release.store import write_data, write_side
from noren.statements import CodeCells, SetCells
from tests.statements import exact_column, set_column

COLUMNS = [exact_column("town", 3), set_column("ill", 4)]
CELLS = {
    "town": CodeCells(3, np.array([0, 2, 1], np.uint8)),
    "ill": SetCells.from_codes(4, np.array([[0, 1], [1, 3], [0, 2]])),
}


def test_a_checksum_is_that_of_what_was_written() -> None:
    file = Digest()
    assert not file.closed
    assert [file.write(part) for part in (b"ab", b"c")] == [2, 1]
    file.close()
    assert file.closed
    assert file.hexdigest() == hashlib.sha256(b"abc").hexdigest()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    assert write_data(path, COLUMNS, [CELLS]) == 3
    return path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('""2""]"\n', '""2""]"\n\n'),  # a blank line
        ('[""1"", ""3""]', '[""1"",""3""]'),
        ('"2",', "2,"),
    ],
)
def test_other_texts_of_the_same_cells_are_refused(data: Path, before: str, after: str) -> None:
    demand_written(data, COLUMNS, {})
    text = data.read_text()
    assert before in text
    data.write_text(text.replace(before, after, 1))
    with pytest.raises(
        ReleaseError, match=r"data\.csv: not as published: its text differs from how these cells are written"
    ):
        demand_written(data, COLUMNS, {})


def test_a_header_alone_has_no_cells_to_be_written(data: Path) -> None:
    data.write_text('"town","ill"\n')
    demand_written(data, COLUMNS, {})


def test_tables_beside_are_compared_too(data: Path) -> None:
    beside = data.with_name("groups-1.csv")
    columns = {"group": pa.array([0, 1]), "value": pa.array(["a", "b"])}
    write_side(beside, columns)
    types = {beside: {name: column.type for name, column in columns.items()}}
    demand_written(data, COLUMNS, types)
    beside.write_text(beside.read_text().replace('1,"b"', '01,"b"'))
    with pytest.raises(ReleaseError, match=r"groups-1\.csv: not as published"):
        demand_written(data, COLUMNS, types)
    demand_written(data.with_suffix(".parquet"), COLUMNS, types)  # Parquet is looked at elsewhere


# ---------------------------------------------------------------------- lines of knowledge

TERMS = pa.array(["cough", "fever", "rash"])
PRIORS = pa.array([0.25, 0.75, None])


def accepted(folder: Path, columns: dict[str, Any], table: dict[str, Any]) -> bool:
    path = folder / "terms-1.parquet"
    pq.write_table(pa.table(table), path)
    try:
        demand_lines(path, columns)
    except ReleaseError as error:
        assert "its lines differ from how this table is written" in str(error)  # noqa: PT017
        return False
    return True


@pytest.mark.parametrize(
    ("terms", "priors", "fits"),
    [
        (TERMS, PRIORS, True),
        (pa.array(["cough", "fever", "fever"]), PRIORS, False),
        (TERMS.take(pa.array([1, 0, 2])), PRIORS, False),
        (TERMS, pa.array([0.25 * (1 + 1e-13), 0.75, None]), True),
        (TERMS, pa.array([0.25 * (1 + 1e-11), 0.75, None]), False),
        (TERMS, pa.array([0.25, 0.75, 0.5]), False),
        (TERMS, pa.array(["0.25", "0.75", None]), False),
        (TERMS, PRIORS.cast(pa.float32()), False),
    ],
)
def test_lines_are_those_of_the_table(tmp_path: Path, terms: pa.Array, priors: pa.Array, fits: bool) -> None:
    """A prior may differ in its last digit, because priors are made to sum to 1 again when they are read."""
    assert accepted(tmp_path, {"term": TERMS, "prior": PRIORS}, {"term": terms, "prior": priors}) is fits


def test_a_line_more_or_less_is_refused(tmp_path: Path) -> None:
    whole = {"prior": PRIORS.slice(0, 2)}
    assert accepted(tmp_path, whole, whole)
    assert not accepted(tmp_path, whole, {"prior": pa.array([0.25])})
    assert not accepted(tmp_path, whole, {"prior": pa.array([0.25, 0.75, 0.75])})
    assert not accepted(tmp_path, {"prior": pa.array([0.0])}, {"prior": pa.array([1e-15])})  # nothing is near nothing


def test_columns_have_their_names_and_their_order(tmp_path: Path) -> None:
    table = {"term": TERMS, "prior": PRIORS}
    assert not accepted(tmp_path, table, {"prior": PRIORS, "term": TERMS})
    assert not accepted(tmp_path, table, {"term": TERMS})
