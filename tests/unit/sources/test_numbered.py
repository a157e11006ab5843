"""Long files are read by a kernel, to the same rows and refusals as by the reader for any text."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.errors import DataError
from noren.sources import csv as room
from noren.sources.csv import CsvSource

Rows = list[tuple[str | None, ...]]


def read(content: bytes, *, long: bool, block: int = 1 << 20, **options: Any) -> tuple[Rows | str, bool]:
    """The rows, or what the refusal says, and whether the kernel read to the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        path.write_bytes(content)
        with patch.object(room, "LONG_BYTES", 0 if long else 1 << 60), patch.object(room, "BLOCK_BYTES", block):
            try:
                source = CsvSource(path, **options)
                rows = rows_of(source)
            except DataError as error:
                return str(error).replace(str(path), "FILE"), False
            return rows, source._plain


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
    found, by_kernel = read(content, long=True, separator=",", missing_values=("?",))
    assert by_kernel
    assert found == expected
    found, _ = read(content, long=True, block=block, separator=",", missing_values=("?",))
    assert found == expected or "exceeds" in found


@given(st.text('a",;\n\r', max_size=40), st.sampled_from(["a,b\n", "a\n", '"a",b\r\n', "a,b,c"]))
def test_whatever_is_not_is_read_or_refused_as_by_the_other_reader(body: str, header: str) -> None:
    content = (header + body).encode()
    found, _ = read(content, long=True, separator=",")
    assert found == read(content, long=False, separator=",")[0]


@given(st.lists(st.integers(0, 4000), min_size=1, max_size=3000), st.sampled_from([400, 5_000, 1 << 20]))
def test_any_number_of_different_texts_is_numbered(numbers: list[int], block: int) -> None:
    rows = [(str(number), f"a text of {number % 50} letters", str(number % 3)) for number in numbers]
    content = "one,two,three\n" + "".join(",".join(row) + "\n" for row in rows)
    assert read(content.encode(), long=True, block=block) == (rows, True)


@pytest.mark.parametrize("odd", ['1,"a"b', '1,"a" ', '"1" ,2', '1,"a""'])
def test_behind_what_is_not_plain_the_other_reader_goes_on(odd: str) -> None:
    content = ("a,b\n" + "1,2\n" * 500 + odd + "\n" + "3,4\n" * 500).encode()
    assert read(content, long=True, block=900) == (read(content, long=False, block=900)[0], False)


def test_a_record_longer_than_a_block_is_left_to_the_other_reader(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("a,b\n" + "1,2\n" * 500 + f"1,{'x' * 1200}\n" + "3,4\n" * 500)
    with patch.object(room, "LONG_BYTES", 0), patch.object(room, "BLOCK_BYTES", 900):
        source = CsvSource(tmp_path / "people.csv")
        batches = source.batches(["a"])
        seen = next(batches).num_rows
    assert 0 < seen < 500
    assert seen + sum(batch.num_rows for batch in batches) == 1001
    assert not source._plain


def test_batches_of_few_and_many_texts_and_of_both_readers_are_one_table(tmp_path: Path) -> None:
    lines = [*("same" for _ in range(300)), *(f"t{i}" for i in range(40_000)), '"a"b', *("" for _ in range(300))]
    (tmp_path / "people.csv").write_text("a,b\n" + "".join(f"1,{line}\n" for line in lines))
    with patch.object(room, "LONG_BYTES", 0), patch.object(room, "BLOCK_BYTES", 100_000):
        source = CsvSource(tmp_path / "people.csv")
        whole = pa.Table.from_batches(source.batches(["b"]))
    assert not source._plain
    assert whole["b"].num_chunks > 1
    assert whole["b"].to_pylist() == [None if line == "" else line.replace('"', "") for line in lines]


def test_another_pass_does_not_try_again(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text('a,b\n1,"a"b\n')
    with patch.object(room, "LONG_BYTES", 0):
        source = CsvSource(tmp_path / "people.csv")
        assert rows_of(source) == [("1", "ab")]
        with patch.object(room, "numbered_batches", lambda *_, **__: pytest.fail("tried again")):
            assert rows_of(source) == [("1", "ab")]


@pytest.mark.parametrize("options", [{"encoding": "utf-16"}, {"separator": "ß"}, {"separator": '"'}])
def test_other_encodings_and_separators_are_left_to_the_other_reader(tmp_path: Path, options: dict[str, str]) -> None:
    (tmp_path / "people.csv").write_text("a,b\n1,2\n", encoding=options.get("encoding"))
    with patch.object(room, "LONG_BYTES", 0):
        assert not CsvSource(tmp_path / "people.csv", **options)._plain


def test_a_pass_that_ends_early_closes_the_file(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("a,b\n" + "1,2\n" * 5000)
    opened: list[Any] = []
    with patch.object(room, "LONG_BYTES", 0), patch.object(room, "BLOCK_BYTES", 400):
        source = CsvSource(tmp_path / "people.csv")
        stream = source._stream
        with patch.object(source, "_stream", lambda: opened.append(stream()) or opened[-1]):
            batches = source.batches(["a"])
            next(batches)
            batches.close()
    assert [one.closed for one in opened] == [True]


def test_compressed_files_are_read_by_the_kernel_too(tmp_path: Path) -> None:
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,x\n2,\n" * 3000))
    with patch.object(room, "LONG_BYTES", 0), patch.object(room, "BLOCK_BYTES", 1000):
        source = CsvSource(tmp_path / "people.csv.gz")
        assert rows_of(source) == [("1", "x"), ("2", None)] * 3000
        assert source._plain
