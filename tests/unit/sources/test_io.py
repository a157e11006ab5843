"""Reading: CSV however it is written. Errors point and never quote a cell."""

from __future__ import annotations

import gzip
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from noren.engines import engine_for
from noren.engines.engine import Counting, Profile
from noren.errors import DataError
from noren.sources.csv import CsvSource
from noren.sources.source import SOURCES, Writing, open_source


def profile(data: Any, **options: Any) -> Profile:
    source = open_source(data, **options)
    found = engine_for(source).profile(source, Counting(source.columns))
    found.demand(source.name)
    return found


def counts(data: Any, **options: Any) -> dict[str, dict[str, int]]:
    return {name: column.counts for name, column in profile(data, **options).columns.items()}


def write(folder: Path, content: str | bytes, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        profile(path, **options)
    return str(caught.value)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_sniffed(tmp_path: Path, separator: str) -> None:
    lines = [["name", "job, or so", "age"], ["Ann", "Nurse", "41"], ["Bob", "Clerk", "7"]]
    text = "\n".join(separator.join(f'"{cell}"' for cell in line) for line in lines)
    source = CsvSource(write(tmp_path, text))
    assert source.separator == separator
    assert source.columns == ("name", "job, or so", "age")
    assert counts(source)["age"] == {"41": 1, "7": 1}


def test_the_separator_that_fits_most_lines_wins(tmp_path: Path) -> None:
    path = write(tmp_path, "a;b\n1,5;2\n2,25;3\n3,5;4\n")
    assert CsvSource(path).separator == ";"
    assert counts(path)["a"] == {"1,5": 1, "2,25": 1, "3,5": 1}


def test_a_given_separator_is_used(tmp_path: Path) -> None:
    path = write(tmp_path, "a;b,c\n1;2,3\n")
    assert counts(path, separator=";") == {"a": {"1": 1}, "b,c": {"2,3": 1}}
    assert "is not one character" in refused(path, separator=",,")


WORDS = "stadt,größe\nKöln,groß\nÅrhus,äh\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_encodings(tmp_path: Path, encoding: str) -> None:
    text = f"\ufeff{WORDS}" if encoding.endswith(("le", "be")) else WORDS
    source = CsvSource(write(tmp_path, text.encode(encoding)))
    assert source.columns == ("stadt", "größe")
    assert source.notes == ()
    assert counts(source) == {"stadt": {"Köln": 1, "Århus": 1}, "größe": {"groß": 1, "äh": 1}}


def test_cp1252_is_a_guess_and_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, WORDS.encode("cp1252"))
    source = CsvSource(path)
    assert source.encoding == "cp1252"
    assert len(source.notes) == 1
    assert "read as cp1252" in source.notes[0]
    assert counts(source)["stadt"] == {"Köln": 1, "Århus": 1}
    assert CsvSource(path, encoding="cp1252").notes == ()


def test_a_given_encoding_is_used(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\nпривет,1\n".encode("cp1251"))
    assert counts(path, encoding="cp1251")["a"] == {"привет": 1}
    assert "encoding 'klingon' is unknown" in refused(path, encoding="klingon")
    assert "encoding 'hex' is unknown" in refused(path, encoding="hex")
    assert "not valid utf-16" in refused(path, encoding="utf-16")


@pytest.mark.parametrize("start", ["a,b\nÜ,1\n", "a,b\n" + "x,1\n" * 100_000], ids=["sample", "behind the sample"])
def test_broken_utf8_is_refused_without_a_quote(tmp_path: Path, start: str) -> None:
    path = write(tmp_path, start.encode() + b"hidden\xffcell,2\n")
    message = refused(path)
    assert "the text is not valid utf-8" in message
    assert "hidden" not in message


def test_bytes_that_no_guess_explains_are_refused(tmp_path: Path) -> None:
    assert "not valid utf-8 at byte 4" in refused(write(tmp_path, b"a,b\n\x81,3\n"))
    assert "not valid ascii" in refused(write(tmp_path, WORDS), encoding="ascii")


@pytest.mark.parametrize("rows", [3, 60_000])
@pytest.mark.parametrize("ragged", ["Hidden", "Hidden,1,2,3"])
def test_a_ragged_row_is_refused_by_number(tmp_path: Path, rows: int, ragged: str) -> None:
    path = write(tmp_path, "name,age,job\n" + "Ann,1,x\n" * rows + f"{ragged}\n" + "Bob,2,y\n" * 5)
    message = refused(path)
    assert f"row {rows + 2} has {ragged.count(',') + 1} cells, the header has 3" in message
    assert "Hidden" not in message


def test_an_unclosed_quote_is_refused_without_a_quotation(tmp_path: Path) -> None:
    message = refused(write(tmp_path, 'a,b\n1,2\n"Hidden,3\n4,5\n'))
    assert "Hidden" not in message
    message = refused(write(tmp_path, '"a,b\n' + "Hidden,3\n" * 40_000))
    assert "the header cannot be read" in message
    assert "Hidden" not in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty file"),
        ("\n \n", "empty file"),
        ("a,b\n", "no records"),
        ("a,b", "no records"),
        ("a,,c\n1,2,3\n", "column 2 has no name"),
    ],
)
def test_files_without_a_table(tmp_path: Path, content: str, message: str) -> None:
    assert message in refused(write(tmp_path, content))


def test_a_repeated_name_gets_a_number(tmp_path: Path) -> None:
    many = 20
    path = write(tmp_path, "a,a_2,a,b,a\n" + "1,2,3,4,5\n" * many)
    source = open_source(path)
    assert source.columns == ("a", "a_2", "a_3", "b", "a_4")
    assert [note.rpartition(": ")[2] for note in source.notes] == [
        "column 3 has the name of an earlier one and is read as 'a_3'",
        "column 5 has the name of an earlier one and is read as 'a_4'",
    ]
    batches = list(source.batches(["a_4", "a_3"]))
    assert sum(batch.num_rows for batch in batches) == many
    assert batches[0].slice(0, 1).to_pylist() == [{"a_4": "5", "a_3": "3"}]


def test_a_repeated_name_may_hold_a_line_break(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, 'id,"two\nlines","two\nlines"\n1,2,3\n4,5,6\n'))
    (batch,) = source.batches(source.columns)
    assert batch.to_pylist() == [
        {"id": "1", "two\nlines": "2", "two\nlines_2": "3"},
        {"id": "4", "two\nlines": "5", "two\nlines_2": "6"},
    ]
    message = refused(write(tmp_path, "a,a\n1,2\n1,2,3\n"))
    assert "row 3 has 3 cells, the header has 2" in message


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "absent.csv")
    assert "holds no files" in refused(tmp_path)
    assert "cannot be read" in refused(write(tmp_path, "not zipped", "people.csv.gz"))


def test_objects_that_hold_no_table() -> None:
    with pytest.raises(DataError, match="cannot read a table from list"):
        open_source([1, 2, 3])


def test_quoted_cells_may_hold_anything(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,"two\nlines"\n"x, y","p\nq"\n"say ""hi""",r\n')
    assert counts(path) == {"a": {"x, y": 1, 'say "hi"': 1}, "two\nlines": {"p\nq": 1, "r": 1}}


def test_blank_lines_are_not_records(tmp_path: Path) -> None:
    assert counts(write(tmp_path, "\n\r\na,b\n\n1,2\n\n3,4\n\n")) == {"a": {"1": 1, "3": 1}, "b": {"2": 1, "4": 1}}


def test_in_a_table_of_one_column_an_empty_line_is_a_missing_cell(tmp_path: Path) -> None:
    found = profile(write(tmp_path, "\na\n1\n\n2\n"))
    assert found.records == 3
    assert found.columns["a"].missing == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path: Path, end: str) -> None:
    assert counts(write(tmp_path, f"a,b{end}1,2{end}3,4")) == {"a": {"1": 1, "3": 1}, "b": {"2": 1, "4": 1}}


def test_compressed_files(tmp_path: Path) -> None:
    packed = write(tmp_path, gzip.compress(WORDS.encode()), "people.csv.gz")
    assert counts(packed) == counts(write(tmp_path, WORDS))


def test_every_cell_is_text_and_empty_cells_are_missing(tmp_path: Path) -> None:
    found = profile(write(tmp_path, 'zip,x\n01234,1\n,1.0\n"",true\n01234,\n'))
    assert found.columns["zip"].counts == {"01234": 2}
    assert found.columns["zip"].missing == 2
    assert found.columns["x"].counts == {"1": 1, "1.0": 1, "true": 1}
    assert found.columns["x"].missing == 1


def test_declared_markers_are_missing_too(tmp_path: Path) -> None:
    path = write(tmp_path, "job,age\n?,1\nNurse,-9\nn/a,2\nClerk,?\n")
    found = profile(path, missing_values=["?", "n/a", "-9"])
    assert found.columns["job"].counts == {"Nurse": 1, "Clerk": 1}
    assert [found.columns["job"].missing, found.columns["age"].missing] == [2, 2]


def test_small_blocks_give_the_same_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'{i % 7},"{i % 3}, {i % 5}",{"" if i % 4 else i}\n' for i in range(3_000))
    path = write(tmp_path, f"a,b,c\n{rows}")
    whole = profile(path)
    monkeypatch.setattr("noren.sources.csv.BLOCK_BYTES", 500)
    source = open_source(path)
    assert sum(1 for _ in source.batches(["a"])) > 10
    assert profile(path) == whole
    assert whole.records == 3_000
    assert whole.columns["a"].counts == {str(r): len(range(r, 3_000, 7)) for r in range(7)}


def rows_of(batches: Any) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("long", [0, 2_000])
def test_the_first_rows_are_those_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: int) -> None:
    """Also beyond a row that is longer than one of the small blocks."""
    rows = "".join(f'{i},"{i % 3}\n{"x" * long if i == 900 else ""}",{"" if i % 4 else i}\n' for i in range(1_500))
    source = open_source(write(tmp_path, f"a,b,c\n{rows}"))
    whole = rows_of(source.batches(source.columns))
    monkeypatch.setattr("noren.sources.csv.FIRST_BYTES", 500)
    assert rows_of(source.first(source.columns)) == whole
    assert len(whole) == 1_500


def test_a_few_rows_are_read_without_a_look_at_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.sources.csv.FIRST_BYTES", 500)
    monkeypatch.setattr(
        "noren.sources.csv.contains_byte", lambda path, byte: pytest.fail("the whole file was searched")
    )
    source = open_source(write(tmp_path, "a,b\n" + "1,2\n" * 3_000 + "1,2,3\n"))
    assert next(source.first(["b"])).num_rows < 3_000


def test_what_the_first_rows_stumble_over_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.sources.csv.FIRST_BYTES", 500)
    source = open_source(write(tmp_path, "a,b\n" + "1,2\n" * 3_000 + "1,2,3\n"))
    with pytest.raises(DataError, match="row 3002 has 3 cells, the header has 2"):
        rows_of(source.first(["b"]))


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, "a,b,c\n1,2,3\n"))
    assert [batch.schema.names for batch in source.batches(["c", "a"])] == [["c", "a"]]


@pytest.mark.parametrize("kind", SOURCES)
def test_every_line_of_the_registry_names_an_opener(kind: str) -> None:
    module, _, name = SOURCES[kind].partition(":")
    assert callable(getattr(import_module(module), name))
    assert kind == kind.lower()
    assert kind.startswith(".") != kind.endswith(":")


def test_a_new_source_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheme leads to its opener, which gets the whole address and how the input is written."""
    found: list[tuple[str, Writing]] = []
    module = ModuleType("elsewhere")
    module.opened = lambda place, writing: found.append((place, writing))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    monkeypatch.setitem(SOURCES, "shop:", "elsewhere:opened")
    open_source("SHOP://me:word@host/table", missing_values=["?"])
    assert found == [("SHOP://me:word@host/table", Writing(missing_values=("?",)))]


def test_an_unknown_scheme_is_refused_without_its_password() -> None:
    with pytest.raises(DataError, match="cannot read from gopher://") as caught:
        open_source("gopher://me:word@host/table")
    assert "word" not in str(caught.value)
