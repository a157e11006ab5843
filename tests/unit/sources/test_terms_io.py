"""Set-valued columns, however a table writes them: separators, lists, yes/no columns; and their codes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import noren as nr
from noren.engines import engine_for
from noren.engines.engine import Counting
from noren.errors import DataError, PolicyError
from noren.schema.domain import Domain
from noren.sources import arrow
from noren.sources.derived import TermSource, TermSpec, with_terms
from noren.sources.source import open_source
from noren.statements import TermCells
from noren.statements.terms import encode_terms, term_counts

LISTS = [["a", " b "], None, [], ["a", None, ""], ["b", "b"]]
READ = [["a", "b"], None, [], ["a"], ["b", "b"]]


def read(data: Any, markers: tuple[str, ...] = (), **spec: Any) -> list[list[str] | None]:
    """The column "t" as lists of terms."""
    source = with_terms(open_source(data, missing_values=markers), {"t": TermSpec(markers=markers, **spec)})
    return [cell for batch in source.batches(["t"]) for cell in batch.column("t").to_pylist()]


def texts(*cells: str | None, **spec: Any) -> list[list[str] | None]:
    return read(pa.table({"t": pa.array(cells, pa.string())}), **spec)


# ---------------------------------------------------------------- texts with separators


@pytest.mark.parametrize("separator", [";", "|", ".", "*", "\\", "^$", "::", " ", "·", "、", "[ab]", "(?i)x", "\t"])
def test_a_separator_is_a_text_and_no_pattern(separator: str) -> None:
    assert texts(separator.join(["cough", "fièvre", "頭痛"]), separator=separator) == [["cough", "fièvre", "頭痛"]]
    assert texts("ax|bX.c", separator="|") == [["ax", "bX.c"]]
    assert texts("a:b::c", separator="::") == [["a:b", "c"]]


def test_spaces_around_terms_and_empty_ones_do_not_count() -> None:
    found = texts(" a ;b\u00a0;; \u2003;c d", ";", " ; ", separator=";")
    assert found == [["a", "b", "c d"], [], []]


def test_a_cell_without_text_is_missing_and_one_without_terms_is_empty() -> None:
    assert texts("", "  ", None, ";", separator=";") == [None, None, None, []]


def test_without_a_separator_a_text_is_one_term() -> None:
    assert texts("a;b", " c ", "", None) == [["a;b"], ["c"], None, None]


def test_texts_that_mean_missing() -> None:
    found = texts("a;?", "?", " ? ", "n/a", "a;n/a;b", "n/a ; ?", separator=";", markers=("?", "n/a"))
    assert found == [["a"], None, None, None, ["a", "b"], []]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a;b", None, "", "b"]),
        pa.array(["a;b", None, "", "b"], pa.large_string()),
        pa.array(["a;b", None, "", "b"], pa.string_view()),
        pa.array(["a;b", None, "", "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 2], pa.int8()), pa.array(["", "a;b", "b", "unused"])),
        pa.chunked_array([["a;b", None], ["", "b"]]),
    ],
    ids=lambda column: str(column.type),
)
def test_every_kind_of_text(column: Any) -> None:
    assert read(pa.table({"t": column}), separator=";") == [["a", "b"], None, None, ["b"]]


def test_numbers_may_stand_for_terms() -> None:
    assert read(pa.table({"t": [7, None]}), separator=";") == [["7"], None]
    assert read(pa.table({"t": pa.array([None, None])}), separator=";") == [None, None]


# ---------------------------------------------------------------- lists


@pytest.mark.parametrize(
    "column",
    [
        pa.array(LISTS),
        pa.array(LISTS, pa.large_list(pa.large_string())),
        pa.array(LISTS, pa.list_(pa.string_view())),
        pa.array(LISTS, pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.chunked_array([pa.array(LISTS[:2]), pa.array(LISTS[2:])]),
        pa.array([["x"], *LISTS, ["y", "z"]]).slice(1, 5),
        pl.Series(LISTS),
        pl.Series(LISTS, dtype=pl.List(pl.Categorical)),
    ],
    ids=lambda column: str(getattr(column, "type", getattr(column, "dtype", ""))),
)
def test_lists_of_texts(column: Any) -> None:
    table = pl.DataFrame({"t": column}) if isinstance(column, pl.Series) else pa.table({"t": column})
    assert read(table) == READ


def test_lists_of_one_size_and_of_other_things() -> None:
    fixed = pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string(), 2))
    assert read(pa.table({"t": fixed})) == [["a", "b"], None, ["c"]]
    assert read(pa.table({"t": fixed}).slice(1)) == [None, ["c"]]
    assert read(pl.DataFrame({"t": [["a", "b"], None]}, schema={"t": pl.Array(pl.String, 2)})) == [["a", "b"], None]
    assert read(pa.table({"t": [[1, 2], None, []]})) == [["1", "2"], None, []]
    assert read(pa.table({"t": pa.array([[], None], pa.list_(pa.null()))})) == [[], None]
    assert read(pd.DataFrame({"t": LISTS})) == READ


def test_lists_leave_out_what_means_missing() -> None:
    assert read(pa.table({"t": [["?", "a"], ["?"], ["a"]]}), markers=("?",)) == [["a"], [], ["a"]]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_lists_across_batches_and_files(rows: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrow, "BATCH_ROWS", rows)
    table = pa.table({"t": LISTS})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    feather.write_feather(table, tmp_path / "t.feather")
    assert read(table) == read(tmp_path / "t.parquet") == read(tmp_path / "t.feather") == READ
    with_separators = pa.table({"t": ["a;b", None, ";", "a", "b;b"]})
    pq.write_table(with_separators, tmp_path / "s.parquet")
    assert read(tmp_path / "s.parquet", separator=";") == READ


@pytest.mark.parametrize(
    "column",
    [pa.array([b"secret"]), pa.array([[["secret"]]]), pa.array([{"a": "secret"}]), pa.array([[b"secret"]])],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("columns", [(), ("t",)])
def test_what_is_no_set_of_terms_is_refused_without_its_cells(column: Any, columns: tuple[str, ...]) -> None:
    name = "signs" if columns else "t"
    source = with_terms(open_source(pa.table({"t": column})), {name: TermSpec(columns=columns)})
    with pytest.raises(DataError, match=r"column 't' holds .*, which are not terms") as caught:
        list(source.batches([name]))
    assert "secret" not in str(caught.value)


def test_lists_have_no_separator() -> None:
    with pytest.raises(DataError, match="column 't' holds lists, which have no separator"):
        read(pa.table({"t": LISTS}), separator=";")


# ---------------------------------------------------------------- yes/no columns


@pytest.mark.parametrize(
    "says",
    [
        ["1", "0", ""],
        ["yes", "no", None],
        [" True", "FALSE ", "  "],
        ["y", "N", None],
        ["1.0", "0.0", None],
        [True, False, None],
        [1, 0, None],
        [1.0, 0.0, None],
        [1.0, 0.0, float("nan")],
    ],
    ids=str,
)
def test_columns_that_say_yes_are_the_terms(says: list[Any]) -> None:
    yes, no, none = says
    for kind in (pa.table, pl.DataFrame, pd.DataFrame):
        table = kind({"fever": [yes, no, none, yes], "cough": [no, no, none, yes]})
        assert read(table, columns=("fever", "cough")) == [["fever"], [], [], ["fever", "cough"]]


def test_yes_and_no_in_other_types() -> None:
    for column in (
        pa.array(["yes", None, "no"]).dictionary_encode(),
        pa.array(["yes", None, "no"], pa.large_string()),
        pa.array([1, None, 0], pa.decimal128(5, 2)),
        pa.array([1, None, 0], pa.uint8()),
    ):
        assert read(pa.table({"fever": column}), columns=("fever",)) == [["fever"], [], []]
    assert read(pa.table({"fever": pa.array([None, None])}), columns=("fever",)) == [[], []]
    assert read(pa.table({"fever": ["1", "-9", "?"]}), columns=("fever",), markers=("?", "-9")) == [["fever"], [], []]


@pytest.mark.parametrize("cell", ["perhapsitis", 2, 0.5, float("inf"), "-1"])
def test_anything_else_is_refused_without_being_named(cell: Any) -> None:
    table = pa.table({"fever": [cell, cell], "row": [1, 2]})
    with pytest.raises(DataError, match="column 'fever' holds 2 cells that say neither yes nor no") as caught:
        read(table, columns=("fever",))
    assert str(cell) not in str(caught.value).replace("holds 2 cells", "")


# ---------------------------------------------------------------- the columns of the source


def test_a_group_of_columns_stands_under_the_name_of_the_set() -> None:
    table = pa.table({"age": [1], "x": ["1"], "note": ["n"], "y": ["1"], "tags": ["a;b"]})
    specs = {"signs": TermSpec(columns=("y", "x")), "tags": TermSpec(separator=";")}
    source = with_terms(open_source(table), specs)
    assert source.columns == ("age", "signs", "note", "tags")
    (batch,) = source.batches(["tags", "age", "signs"])
    assert batch.schema.names == ["tags", "age", "signs"]
    assert batch.to_pydict() == {"tags": [["a", "b"]], "age": [1], "signs": [["y", "x"]]}
    assert (source.rows, source.name, source.notes) == (1, "the pyarrow Table", ())


def test_names_that_clash_or_are_absent() -> None:
    plain = open_source(pa.table({"signs": ["1"], "x": ["1"]}))
    with pytest.raises(DataError, match="it has no column 'z', which is part of the set 's'") as caught:
        TermSource(plain, {"s": TermSpec(columns=("x", "z"))})
    assert "attributes.s.columns" in (caught.value.hint or "")
    with pytest.raises(DataError, match="a set of columns has the name 'signs'"):
        TermSource(plain, {"signs": TermSpec(columns=("x",))})


def test_a_source_without_sets_is_left_alone() -> None:
    plain = open_source(pa.table({"x": ["1"]}))
    assert with_terms(plain, {}) is plain


# ---------------------------------------------------------------- counts and codes


def test_a_repeated_term_counts_once() -> None:
    column = pa.array([["b", "b", "a"], None, [], ["b"]], pa.large_list(pa.string()))
    labels, counts, missing = term_counts(column)
    assert dict(zip(labels, counts.tolist(), strict=True)) == {"a": 1, "b": 2}
    assert missing == 1
    cells = encode_terms(column, Domain(("a", "b", "c")))
    assert (cells.d, len(cells), cells.offsets.tolist(), cells.data.tolist()) == (3, 4, [0, 2, 2, 2, 3], [0, 1, 1])


def test_terms_outside_the_domain_are_left_out_and_none_is_a_table_too() -> None:
    cells = encode_terms(pa.array([["z"], ["a", "z"]], pa.large_list(pa.string())), Domain(("a",)))
    assert (cells.offsets.tolist(), cells.data.tolist()) == ([0, 0, 1], [0])
    empty = pa.array([[], None], pa.large_list(pa.string()))
    assert encode_terms(empty, Domain(("a",))).offsets.tolist() == [0, 0, 0]
    assert term_counts(empty)[0] == []


def cells(*sets: Sequence[int], d: int = 5) -> TermCells:
    record = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    return TermCells.from_entries(d, len(sets), record, np.array([c for own in sets for c in own], np.int64))


def listed(found: TermCells) -> list[list[int]]:
    return [found.data[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


def test_cells_are_cut_joined_and_counted() -> None:
    found = cells([3, 1, 3], [], [0], [4, 2])
    assert listed(found) == [[1, 3], [], [0], [2, 4]]
    assert listed(found.take(slice(1, 3))) == [[], [0]]
    assert listed(found.take(slice(3, 1))) == []
    assert listed(found.take(np.array([3, 0, 0, 1]))) == [[2, 4], [1, 3], [1, 3], []]
    assert listed(found.take(np.zeros(0, int))) == []
    assert listed(TermCells.concat([found.take(slice(2, 4)), cells(), found.take(slice(0, 1))])) == [
        [0],
        [2, 4],
        [1, 3],
    ]
    assert listed(found.keep(np.array([False, True, True, False, True]))) == [[3], [], [0], [4]]
    assert (found.counts().tolist(), found.sizes.tolist()) == ([1, 1, 1, 1, 1], [2, 0, 1, 2])
    wanted = np.isin(np.arange(5), [1, 3, 4])
    assert found.has(wanted).tolist() == [True, False, False, True]
    assert found.has(np.isin(np.arange(5), [2, 4]), every=True).tolist() == [False, False, False, True]
    assert found.owner.tolist() == [0, 0, 2, 3, 3]


# ---------------------------------------------------------------- missing sets under a policy


KNOWLEDGE = nr.Knowledge.from_pairs([("Flu", "a"), ("Cold", "a"), ("Cold", "b")])


def policy(missing: str, **more: Any) -> nr.Policy:
    signs = {"role": "quasi-sensitive", "knowledge": KNOWLEDGE, "missing": missing, **more}
    return nr.Policy(
        attributes={"age": "quasi-identifier", "signs": signs},
        require=[nr.models.QSDiversity(on="signs", c=3, l=2)],
        method={"name": "suppress", "nodes": 100},
    )


def test_missing_sets_are_empty_dropped_or_refused() -> None:
    table = pa.table({"age": [1, 2, 3, 4], "signs": [["a"], None, [], ["a", "a"]]})
    frame = nr.anonymize(table, policy("category")).frame().sort("age")
    assert frame["signs"].to_list() == [["a"], [], [], ["a"]]
    frame = nr.anonymize(table, policy("drop")).frame().sort("age")
    assert (frame["age"].to_list(), frame["signs"].to_list()) == ([1, 3, 4], [["a"], [], ["a"]])
    with pytest.raises(PolicyError, match="1 cells are missing, and the policy rejects them"):
        nr.anonymize(table, policy("reject"))
    everybody = pa.table({"age": [1], "signs": pa.array([None], pa.list_(pa.string()))})
    with pytest.raises(DataError, match="every record was dropped"):
        nr.anonymize(everybody, policy("drop"))


def test_a_csv_with_markers_and_yes_and_no(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,signs\n1,a|b\n2,?\n3,\n4,a| ? \n", encoding="utf-8")
    rules = policy("drop", separator="|")
    written = {"missing_values": ["?"], "separator": ","}
    rules = nr.Policy(attributes=rules.attributes, require=rules.require, method=rules.method, data=written)
    assert nr.anonymize(path, rules).records == 2
    path.write_text("age,a,b\n1,1,0\n2,,\n3,no,yes\n", encoding="utf-8")
    release = nr.anonymize(path, policy("category", columns=("a", "b")))
    assert release.columns == ("age", "signs")
    assert release.records == 3


def test_too_many_different_terms_are_free_text(monkeypatch: Any) -> None:
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 3)
    source = with_terms(open_source(pa.table({"t": [["a", "b"], ["c", "d"]]})), {"t": TermSpec()})
    with pytest.raises(DataError, match="more than 3 different terms"):
        engine_for(source).profile(source, Counting(["t"], terms=["t"])).demand("t", ["t"])
