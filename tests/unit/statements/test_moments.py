"""Moments come back from every file as they were published, whatever unit a frame or Parquet keeps them in."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.kinds import sniff
from noren.schema.roles import Role
from noren.statements import ExactStatement


def table(rows: int = 60, start: datetime = datetime(2020, 2, 28, 23, 30, 5)) -> pl.DataFrame:
    moments = [start + timedelta(minutes=45 * (row % 6)) for row in range(rows)]
    return pl.DataFrame({"seen": moments, "ill": ["Flu", "Cold", "Gout", "Mumps"] * (rows // 4)})


def policy(role: str, method: str = "decoys") -> nr.Policy:
    hidden = ["ill"] + ["seen"] * (role == "sensitive")
    return nr.Policy(
        attributes={"seen": role, "ill": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on=hidden, l=2)],
        method=method,
        dependence={"most": 1.0},
    )


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("role", "method", "rows"),
    [
        ("plain", "decoys", 60),
        ("sensitive", "decoys", 60),
        ("sensitive", "decoys", 12_000),
        ("sensitive", "rating", 60),
    ],
)
def test_published_moments_are_read_again(role: str, method: str, rows: int, file_format: Any, tmp_path: Path) -> None:
    people = table(rows)
    nr.anonymize(people, policy(role, method), to=tmp_path / "release", file_format=file_format)
    assert not nr.verify(tmp_path / "release", policy(role, method), original=people).failed
    found = nr.open_release(tmp_path / "release")
    assert found.column("seen").domain.kind == "datetime"
    assert found.estimate("seen").frame["seen"][0] == "2020-02-28 23:30:05"
    assert found.estimate("seen").frame["count"].sum() == pytest.approx(rows)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_moments_of_frames_are_moments(unit: Any) -> None:
    people = table().with_columns(pl.col("seen").cast(pl.Datetime(unit)))
    found = nr.anonymize(people, policy("plain"))
    assert found.column("seen").domain.kind == "datetime"
    assert found.count({"seen": {">=": "2020-02-29"}}).count == 50


def test_parts_of_a_second_are_kept_apart() -> None:
    assert sniff(["2020-02-28 23:30:05.000", "2020-02-28 23:30:06.000000"]).kind == "datetime"
    assert sniff(["2020-02-28 23:30:05.5"]).kind == "string"
    assert sniff(["2020-02-28 23:30:05."]).kind == "string"


def test_a_file_with_parts_of_a_second_is_refused(tmp_path: Path) -> None:
    seen = ExactStatement(Column(role=Role.PLAIN).over("seen", Domain(("2020-02-28 23:30:05",), "datetime")))
    whole = pa.array([datetime(2020, 2, 28, 23, 30, 5)], pa.timestamp("s"))
    pq.write_table(pa.table({"seen": whole}), tmp_path / "seen.parquet", store_schema=False)
    assert seen.check_cells(seen.from_arrow(pq.read_table(tmp_path / "seen.parquet").column(0))).tolist() == [0]
    with pytest.raises(nr.errors.ReleaseError, match="parts of a second"):
        seen.from_arrow(pa.array([datetime(2020, 2, 28, 23, 30, 5, 7)], pa.timestamp("us")))
