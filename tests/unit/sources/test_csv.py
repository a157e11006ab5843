"""Any well-formed CSV text is read as the csv module of Python reads it."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from noren.errors import DataError
from noren.sources import csv as room
from noren.sources.csv import CsvSource

Rows = list[tuple[str | None, ...]]


def read(content: bytes, block: int = 1 << 20, **options: Any) -> Rows | str:
    """The rows, or what the refusal says."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        path.write_bytes(content)
        with patch.object(room, "BLOCK_BYTES", block):
            try:
                return rows_of(CsvSource(path, **options))
            except DataError as error:
                return str(error).replace(str(path), "FILE")


def rows_of(source: CsvSource) -> Rows:
    out: Rows = []
    for batch in source.batches(source.columns):
        out += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        for column in batch.columns:
            texts = column.dictionary.to_pylist()
            assert len(set(texts)) == len(texts)
            assert None not in texts
    return out


CELLS = st.text('ab01,;"\n\rß€ ', max_size=9) | st.sampled_from(
    ["", "?", "0", "00", "longer than a word", "longer than a ward", '""', "\x01", "\x01\x01"]
)


def is_bare(cell: str) -> bool:
    """Whether a cell may stand without quotes."""
    return not set(cell) & set(',\n\r"')


@st.composite
def tables(draw: st.DrawFn) -> tuple[bytes, Rows]:
    """A file in any mixture of quotes, line ends, empty lines and a byte order mark, and what stands in it."""
    width = draw(st.integers(2, 4))
    rows = draw(st.lists(st.tuples(*[CELLS] * width), max_size=12))
    lines = [",".join(f"c{i}" for i in range(width))]
    for row in rows:
        quoted = draw(st.lists(st.booleans(), min_size=width, max_size=width))
        written = [
            cell if is_bare(cell) and not quotes else '"' + cell.replace('"', '""') + '"'
            for cell, quotes in zip(row, quoted, strict=True)
        ]
        lines.append(",".join(written))
    ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"])
    text = "".join(line + draw(ends) for line in lines[:-1]) + lines[-1] + draw(ends | st.just(""))
    mark = draw(st.sampled_from(["", "\ufeff", "\n", "\ufeff\r\n"]))
    return (mark + text).encode(), [tuple(None if cell in ("", "?") else cell for cell in row) for row in rows]


@given(tables(), st.integers(60, 200))
def test_whatever_is_well_formed_is_read_as_the_csv_module_reads_it(table: tuple[bytes, Rows], block: int) -> None:
    content, expected = table
    text = content.decode().removeprefix("\ufeff")
    oracle = [row for row in csv.reader(io.StringIO(text, newline="")) if row][1:]
    assert [tuple(None if cell in ("", "?") else cell for cell in row) for row in oracle] == expected
    assert read(content, separator=",", missing_values=("?",)) == expected
    found = read(content, block, separator=",", missing_values=("?",))
    assert found == expected or "exceeds" in found
