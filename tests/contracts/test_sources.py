"""Whoever reads a file reads the same records: the reader and the tasks of a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from noren.engines.spark.source import csv_files, parquet_files
from noren.errors import DataError
from noren.sources.source import Writing, open_source

Records = list[tuple[str | None, ...]]
"""Region, name and illness of every record."""
COLUMNS = ("region", "name", "ill")
PLAIN: Records = [("Ulm", "Ann", "flu"), ("Bonn", "Bob", "gout"), ("Kiel", "Cem", "burn")]


def lines(rows: Records, end: str = "\n", separator: str = ",") -> str:
    return "".join(separator.join(cell or "" for cell in row) + end for row in [COLUMNS, *rows])


@dataclass(frozen=True)
class Case:
    """Files of a folder and the records in them; None where they are no table."""

    files: dict[str, bytes]
    records: Records | None
    options: dict[str, Any] = field(default_factory=dict)


def text(content: str, records: Records | None = PLAIN, codec: str = "utf-8", **options: Any) -> Case:
    return Case({"a.csv": content.encode(codec)}, records, options)


ODD: Records = [("Köln", "Zoë", "flu"), ("Ulm", "Ann – Bo", "gout"), ("Bonn", "Cem", "burn")]
CASES = {
    "plain": text(lines(PLAIN)),
    "quoted line breaks": text(
        'region,name,ill\nUlm,"Ann\nof Ulm",flu\nBonn,"Bob\r\nBo",gout\n',
        [("Ulm", "Ann\nof Ulm", "flu"), ("Bonn", "Bob\r\nBo", "gout")],
    ),
    "quotes and separators in quotes": text(
        'region,name,ill\n"Ulm, old","the ""A""",flu\nBonn,5" pipe,"gout"\n',
        [("Ulm, old", 'the "A"', "flu"), ("Bonn", '5" pipe', "gout")],
    ),
    "backslashes": text(
        'region,name,ill\nUlm,a\\,flu\nBonn,"b\\",gout\n', [("Ulm", "a\\", "flu"), ("Bonn", "b\\", "gout")]
    ),
    "blank lines": text(lines(PLAIN).replace("\n", "\n\n")),
    "windows line ends": text(lines(PLAIN, "\r\n")),
    "old line ends": text(lines(PLAIN, "\r")),
    "no last line end": text(lines(PLAIN).rstrip("\n")),
    "a mark of UTF-8": text(lines(ODD), ODD, "utf-8-sig"),
    "cp1252": text(lines(ODD), ODD, "cp1252"),
    "cp1252, said": text(lines(ODD), ODD, "cp1252", encoding="cp1252"),
    "UTF-16": text(lines(ODD), ODD, "utf-16"),
    "missing cells": text(
        'region,name,ill\nUlm,,flu\n,"",gout\n', [("Ulm", None, "flu"), (None, None, "gout")]
    ),
    "words for missing": text(
        lines([("NA", "null", "?"), ("Ulm", "nan", "flu")]),
        [("NA", "null", None), ("Ulm", "nan", "flu")],
        missing_values=("?",),
    ),
    "wide whole numbers and dates": text(
        lines([("9223372036854775808123", "007", "2020-02-30"), ("1e400", "-0", "1850-01-01 00:00:00")]),
        [("9223372036854775808123", "007", "2020-02-30"), ("1e400", "-0", "1850-01-01 00:00:00")],
    ),
    "spaces around cells": text(
        lines([(" Ulm", "Ann ", "\tflu"), ("Bonn", " ", "x")]), [(" Ulm", "Ann ", "\tflu"), ("Bonn", " ", "x")]
    ),
    "semicolons": text(lines(PLAIN, separator=";")),
    "comments are cells": text(lines([("#Ulm", "Ann", "flu"), ("Bonn", "#", "x")]),
                               [("#Ulm", "Ann", "flu"), ("Bonn", "#", "x")]),
    "a row too long": text(lines(PLAIN) + "Ulm,Ann,flu,Xq7\n", None),
    "a row too short": text(lines(PLAIN) + "Xq7,Ann\n", None),
    "a quote that is never closed": text(lines(PLAIN) + 'Ulm,"Xq7,flu\n', None),
    "columns in another order": Case(
        {"a.csv": lines(PLAIN).encode(), "b.csv": b"name,ill,region\nDea,flu,Jena\n"},
        [*PLAIN, ("Jena", "Dea", "flu")],
    ),
    "another separator and encoding in another file": Case(
        {"a.csv": lines(ODD).encode("utf-16"), "b.csv": lines(ODD, "\r\n", ";").encode("cp1252")}, [*ODD, *ODD]
    ),
    "a file with a column less": Case({"a.csv": lines(PLAIN).encode(), "b.csv": b"name,ill\nXq7,flu\n"}, None),
    "a file with another column": Case(
        {"a.csv": lines(PLAIN).encode(), "b.csv": b"name,ill,town\nXq7,flu,Jena\n"}, None
    ),
    "a file without a header": Case({"a.csv": lines(PLAIN).encode(), "b.csv": b"Ulm,Xq7,flu\nBonn,Bob,flu\n"}, None),
    "a file of another kind": Case({"a.csv": lines(PLAIN).encode(), "b.parquet": b"PAR1"}, None),
}  # fmt: skip


def written(case: Case, folder: Path) -> Path:
    """The files of a case; the folder, or the file where there is only one."""
    folder.mkdir()
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    return folder if len(case.files) > 1 else folder / next(iter(case.files))


def records(batches: Any) -> Records:
    return [tuple(row[name] for name in COLUMNS) for batch in batches for row in batch.to_pylist()]


def by_reader(place: Path, options: dict[str, Any]) -> Records:
    return records(open_source(place, **options).batches(COLUMNS))


def by_tasks(place: Path, options: dict[str, Any]) -> Records:
    """As tasks read what has been cut for them, after a journey."""
    whole = open_source(place, **options)
    files, source = csv_files(getattr(whole, "parts", [whole]), 3, str(place))
    files = pickle.loads(pickle.dumps(files))
    read = records(batch for number in range(len(files.parts)) for batch in files.rows(number, [], COLUMNS))
    assert read == records(source.batches(COLUMNS))
    return read


READERS: dict[str, Callable[[Path, dict[str, Any]], Records]] = {
    "reader": by_reader,
    "tasks": by_tasks,
}


@pytest.fixture
def read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, dict[str, Any]], Records]:
    """A reader, whose tasks take short pieces."""
    if "tasks" in request.param:
        monkeypatch.setattr("noren.engines.spark.source.LEAST_BYTES", 8)
    return READERS[request.param]


def demand_case(case: Case, read: Callable[[Path, dict[str, Any]], Records], folder: Path) -> None:
    """The records of a case, or a refusal that names the file and no cell."""
    place = written(case, folder)
    if case.records is not None:
        assert read(place, case.options) == case.records
        return
    with pytest.raises(DataError) as refused:
        read(place, case.options)
    assert any(name in str(refused.value) for name in case.files) or "several types" in str(refused.value)
    assert "Xq7" not in str(refused.value)


@pytest.mark.parametrize("read", READERS, indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_every_reader_reads_the_same_records(name: str, read: Any, tmp_path: Path) -> None:
    demand_case(CASES[name], read, tmp_path / "t")


@pytest.mark.parametrize("size", [1, 7, 20, 100, 400])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r"])
def test_pieces_of_a_text_are_its_records(size: int, end: str, tmp_path: Path) -> None:
    rows: Records = [(f"Ulm{i % 7}", f"P{i}", "flu" * (i % 5)) for i in range(40)]
    place = written(text(lines(rows, end)), tmp_path / "t")
    source: Any = open_source(place)
    pieces = source.pieces(size)
    assert records(batch for piece in pieces for batch in piece.batches(COLUMNS)) == by_reader(place, {})
    assert end == "\r" or len(pieces) > 1 or size == 400
    assert [piece.piece[0] for piece in pieces[1:]] == [piece.piece[1] for piece in pieces[:-1]]


TABLE = pa.table({"region": ["Ulm", "Bonn"], "name": ["Ann", None], "ill": ["flu", "gout"]})


def write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=1)


@pytest.mark.parametrize(("write", "suffix"), [(write_parquet, ".parquet"), (feather.write_feather, ".arrow")])
def test_files_with_types_are_matched_by_names_too(write: Any, suffix: str, tmp_path: Path) -> None:
    write(TABLE, tmp_path / f"a{suffix}")
    write(TABLE.select(["ill", "region", "name"]), tmp_path / f"b{suffix}")
    (tmp_path / "_SUCCESS").touch()
    expected = [("Ulm", "Ann", "flu"), ("Bonn", None, "gout")] * 2
    assert records(open_source(tmp_path).batches(COLUMNS)) == expected
    assert open_source(tmp_path).rows in (4, None)
    if suffix == ".parquet":
        files, _ = parquet_files(sorted(tmp_path.glob("*.parquet")), 3, "t", Writing())
        read = [batch for number in range(len(files.parts)) for batch in files.rows(number, [], COLUMNS)]
        assert records(read) == expected
    numbers = TABLE.set_column(0, "region", pa.array([1, 2]))
    for other in (TABLE.drop_columns("ill"), TABLE.rename_columns(["region", "name", "Xq7"]), numbers):
        write(other, tmp_path / f"c{suffix}")
        with pytest.raises(DataError, match=rf"c{suffix}: its (types of )?columns") as refused:
            open_source(tmp_path)
        assert "Xq7" not in str(refused.value)


def test_a_folder_is_one_table_of_one_kind(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no files"):
        open_source(tmp_path)
    (tmp_path / "a.csv").write_text(lines(PLAIN))
    (tmp_path / "_SUCCESS").touch()
    assert records(open_source(tmp_path).batches(COLUMNS)) == PLAIN
    assert records(open_source(f"{tmp_path}/*.csv").batches(COLUMNS)) == PLAIN
    (tmp_path / "b.parquet").touch()
    with pytest.raises(DataError, match="files of several types"):
        open_source(tmp_path)
    (tmp_path / "b.parquet").unlink()
    (tmp_path / "inner").mkdir()
    with pytest.raises(DataError, match="holds folders"):
        open_source(tmp_path)
