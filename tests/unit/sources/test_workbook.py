"""A real Excel workbook, written part by part here: what its cells mean reaches the table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import noren as nr
from noren.errors import DataError
from noren.policy.proposal import draft
from noren.sources.source import open_source

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
DAY_ZERO = datetime(1899, 12, 30)
"""Excel counts days from here."""

TYPES = f"""<Types xmlns="{PACKAGE}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/xl/workbook.xml" ContentType="{SHEET}.sheet.main+xml"/>
<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{SHEET}.worksheet+xml"/>
<Override PartName="/xl/styles.xml" ContentType="{SHEET}.styles+xml"/></Types>"""
ROOT = f"""<Relationships xmlns="{PACKAGE}/relationships">
<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>"""
BOOK = f"""<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets><sheet name="people" sheetId="1" r:id="r1"/></sheets>
</workbook>"""
PARTS = f"""<Relationships xmlns="{PACKAGE}/relationships">
<Relationship Id="r1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="r2" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>"""
STYLES = f"""<styleSheet xmlns="{MAIN}"><fonts><font/></fonts><fills><fill/></fills><borders><border/></borders>
<cellStyleXfs><xf/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs>
</styleSheet>"""


def cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    if isinstance(value, date):
        return f'<c r="{place}" s="1"><v>{(datetime.combine(value, datetime.min.time()) - DAY_ZERO).days}</v></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def workbook(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    """A workbook of one sheet: texts, numbers, days; None is a cell that is not there."""
    lines = []
    for number, row in enumerate(rows, 1):
        cells = "".join(cell(f"{chr(65 + i)}{number}", value) for i, value in enumerate(row))
        lines.append(f'<row r="{number}">{cells}</row>')
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'
    parts = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": ROOT,
        "xl/workbook.xml": BOOK,
        "xl/_rels/workbook.xml.rels": PARTS,
        "xl/styles.xml": STYLES,
        "xl/worksheets/sheet1.xml": sheet,
    }
    with ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}')
    return path


HEAD = ["job", "age", "height", "seen"]
ROWS: list[list[Any]] = [
    ["baker", 31, 171.5, date(2024, 2, 29)],
    ["nurse", None, 160.25, date(2023, 12, 31)],
    [None, 58, None, date(2024, 1, 1)],
    ["clerk", 44, 182.0, None],
]


def test_texts_numbers_days_and_missing_cells_are_read(tmp_path: Path) -> None:
    source = open_source(workbook(tmp_path / "people.xlsx", [HEAD, *ROWS]))
    assert source.columns == tuple(HEAD)
    (batch,) = source.batches(HEAD)
    assert [list(row.values()) for row in batch.to_pylist()] == ROWS
    assert [str(kind) for kind in batch.schema.types][1:] == ["int64", "double", "date32[day]"]


def test_a_sheet_is_drafted_by_its_kinds_and_published(tmp_path: Path) -> None:
    jobs = ["baker", "nurse", "clerk", "smith", None]
    of = np.random.default_rng(4).permutation(200) % 5
    rows = [[jobs[of[i]], 20 + i % 40, 150 + i % 31 / 2, date(2024, 1 + i % 12, 1 + i % 28)] for i in range(200)]
    file = workbook(tmp_path / "people.xlsx", [HEAD, *rows])
    text = draft(open_source(file))
    for kind in ("age: integer", "height: number", "seen: date", "job: text"):
        assert f"# {kind}" in text
    assert "40 missing" in text
    found_by = ["age", "height", "seen"]
    policy = nr.Policy(
        attributes=dict.fromkeys(found_by, "quasi-identifier") | {"job": "sensitive"},
        require=[nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="job", l=2)],
        method=[nr.methods.Mondrian(on=found_by), nr.methods.Decoys(on=["job"])],
    )
    assert nr.anonymize(file, policy).records == 200


def test_what_is_no_workbook_is_named_without_its_cells(tmp_path: Path) -> None:
    (tmp_path / "people.xlsx").write_bytes(b"PK\x03\x04secret")
    with pytest.raises(DataError, match=r"people\.xlsx: cannot be read as an Excel workbook") as caught:
        open_source(tmp_path / "people.xlsx")
    assert "secret" not in str(caught.value)
