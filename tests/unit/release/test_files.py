"""Files and tables of a release: how large each part is, what it is called, what is refused at which size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.designs.pram import PramDesign
from noren.errors import QueryError, ReleaseError
from noren.release import closed, export, store
from noren.release.closed import check_size
from noren.release.database.layout import (
    FIELDS,
    LONGEST,
    PairTally,
    demand_names,
    kept_pairs,
    lookup_name,
    pair_constraints,
    pair_reading,
    plain,
    range_type,
    sql_type,
)
from noren.release.package import manifest_block, manifest_of
from noren.release.release import keep_cells
from noren.release.store import (
    CsvStore,
    KeptStore,
    MemoryStore,
    ParquetStore,
    rows_at_once,
    sides,
    store_for,
    titles_of,
)
from noren.statements import CellBatch, CodeCells, SetCells, Statement
from noren.statements.set import ChangedStatement
from tests.statements import exact_column, group_column, meaning, node_column, set_column

# ---------------------------------------------------------------- stores


@pytest.mark.parametrize("most", [1, 3, 4, 5, 12, 13])
@pytest.mark.parametrize("sizes", [(12,), (5, 7), (4, 4, 4), (1, 1, 10), (3, 9), (0, 12, 0)])
def test_row_groups_are_full_but_for_the_last(most: int, sizes: tuple[int, ...]) -> None:
    edges = np.cumsum([0, *sizes])
    batches = [{"a": CodeCells(12, np.arange(edges[i], edges[i + 1]))} for i in range(len(sizes))]
    found = [batch["a"].data.tolist() for batch in store._slices(batches, most)]  # type: ignore[attr-defined]
    assert [row for part in found for row in part] == [*range(12)]
    assert [len(part) for part in found] == [most] * (12 // most) + [12 % most] * (12 % most > 0)


def test_wide_tables_are_read_in_fewer_rows() -> None:
    def wide(values: int) -> list[Any]:
        return [SimpleNamespace(values_per_record=1)] * values

    assert rows_at_once(wide(1)) == rows_at_once(wide(128)) == 1 << 16
    assert rows_at_once(wide(129)) == (1 << 23) // 129
    assert rows_at_once(wide(8192)) == rows_at_once(wide(9000)) == 1024


def test_titles_say_in_csv_what_is_a_group() -> None:
    columns = [exact_column("a", 2), group_column("g", 3)]
    own = columns[1].csv_title
    assert own != "g"
    assert titles_of(Path("data.parquet"), columns) == {"a": "a", "g": "g_group"}
    assert titles_of(Path("data.csv"), columns) == {"a": "a", "g": own}
    taken = [columns[1], exact_column(own, 2)]
    assert titles_of(Path("data.csv"), taken)["g"] == "g", "a column that is called so keeps its name"
    reader = CsvStore(Path("data.csv"))
    assert reader._title(columns[1], [own]) == own
    assert reader._title(columns[1], ["g", own]) == "g"


def test_the_ending_says_how_cells_are_read() -> None:
    assert isinstance(store_for(Path("data.csv")), CsvStore)
    several = store_for(Path("data-00000.parquet"), True, Path("data-00001.parquet"))
    assert isinstance(several, ParquetStore)
    assert [path.name for path in several.paths] == ["data-00000.parquet", "data-00001.parquet"]


class Counting(MemoryStore):
    """A store that notes what is read of it."""

    def __init__(self, cells: CellBatch) -> None:
        super().__init__(cells)
        self.read: list[list[str]] = []

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        self.read.append([column.name for column in columns])
        return super().batches(columns)


def test_a_column_that_was_read_is_kept() -> None:
    columns = [exact_column(name, 3) for name in "abc"]
    below = Counting({name: CodeCells(3, np.arange(3)) for name in "abc"})
    reader = KeptStore(below)
    for wanted in (columns[:1], columns[:2], columns, columns[1:]):
        (batch,) = reader.batches(wanted)
        assert list(batch) == [column.name for column in wanted]
    assert below.read == [["a"], ["b"], ["c"]]


def test_side_tables_stand_by_kind_and_number() -> None:
    groups = [replace(group_column(f"g{number}", 2), number=number) for number in (10, 2, 1)]
    drawn = set_column("s", 4).with_table(SetCells.from_codes(4, np.array([[0, 1]])))
    found = sides([drawn, *groups, exact_column("a", 2)])
    assert list(found) == ["groups-1", "groups-2", "groups-10", "sets"]


# ---------------------------------------------------------------- what is refused


def written(path: Path, rows: int, **options: Any) -> Path:
    pq.write_table(pa.table({"a": np.zeros(rows, np.int64)}), path, **options)
    return path


@pytest.mark.parametrize(
    ("name", "most"), [("data.parquet", 6), ("data-00000.parquet", 6), ("groups-1.parquet", 5), ("terms-1.parquet", 9)]
)
def test_files_claim_no_more_rows_than_the_manifest_allows(
    name: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed, "MOST_PAIRS", 9)
    monkeypatch.setattr(closed, "MOST_SETS", 4)
    manifest: Any = SimpleNamespace(records=3, rows_per_record=2, counterfeits=2)
    check_size(written(tmp_path / name, most), manifest)
    check_size(written(tmp_path / "sets.parquet", 4), manifest)
    for path, rows in ((tmp_path / name, most + 1), (tmp_path / "sets.parquet", 5)):
        with pytest.raises(
            ReleaseError, match=f"it claims {rows} rows, more than the manifest allows \\({rows - 1}\\)"
        ):
            check_size(written(path, rows), manifest)
    (tmp_path / "data.csv").write_text("a\n")
    check_size(tmp_path / "data.csv", manifest)


def test_row_groups_have_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed, "MOST_ROWS", 4)
    manifest: Any = SimpleNamespace(records=100, rows_per_record=1, counterfeits=0)
    check_size(written(tmp_path / "data.parquet", 8, row_group_size=4), manifest)
    check_size(written(tmp_path / "groups-1.parquet", 8), manifest)
    with pytest.raises(ReleaseError, match="claims more than 4 rows"):
        check_size(written(tmp_path / "data.parquet", 8, row_group_size=5), manifest)


def test_a_file_unpacks_to_no_more_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest: Any = SimpleNamespace(records=100, rows_per_record=1, counterfeits=0)
    path = written(tmp_path / "data.parquet", 50)
    unpacked = pq.read_metadata(path).row_group(0).total_byte_size
    monkeypatch.setattr(closed, "RATIO", 0)
    for bound, fits in ((unpacked, True), (unpacked - 1, False)):
        monkeypatch.setattr(closed, "UNPACKED", bound)
        if fits:
            check_size(path, manifest)
        else:
            with pytest.raises(ReleaseError, match="unpack to far more than its size"):
                check_size(path, manifest)


@pytest.mark.parametrize(("length", "fits"), [(30, True), (31, False)])
def test_the_writer_of_a_file_has_a_short_name(
    length: int, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = SimpleNamespace(created_by=closed.WRITER + "1" * length, metadata=None)
    path = written(tmp_path / "data.parquet", 1, store_schema=False)
    monkeypatch.setattr(pq, "read_metadata", lambda file: told)
    if fits:
        assert closed.columns_of(path) == ["a"]
    else:
        with pytest.raises(ReleaseError, match="name an unknown writer"):
            closed.columns_of(path)
    told.created_by = None
    with pytest.raises(ReleaseError, match="name an unknown writer"):
        closed.columns_of(path)


@pytest.mark.parametrize(("names", "text"), [("abc", "'a', 'b', 'c'"), ("abcd", "'a', 'b', 'c' and 1 more")])
def test_three_strange_names_are_listed(names: str, text: str) -> None:
    assert closed.list_names(names) == text


# ---------------------------------------------------------------- other forms


@pytest.fixture(scope="module")
def drawn() -> nr.Release:
    people = pl.DataFrame({"town": ["Ulm", "Bonn"] * 12, "ill": ["a", "b", "c", "d"] * 6})
    asked = [nr.models.FrequencyLDiversity(on="ill", l=2)]
    rules = nr.Policy(
        attributes={"town": "plain", "ill": "sensitive"}, require=asked, dependence={"most": 1.0}, method="decoys"
    )
    return nr.anonymize(people, rules)


def test_a_release_is_expanded_up_to_its_limit(drawn: nr.Release) -> None:
    rows = 24 * drawn.designs["ill"].eta
    assert drawn.expand(limit=rows).height == rows
    with pytest.raises(QueryError, match=f"would have {rows} rows, more than {rows - 1}"):
        drawn.expand(limit=rows - 1)


def test_a_wide_table_has_a_most_of_columns(drawn: nr.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    for most, fits in ((5, True), (4, False)):
        monkeypatch.setattr(export, "MOST_COLUMNS", most)
        if fits:
            wide = export.wide(drawn)
            assert wide.columns == ["town", "ill=a", "ill=b", "ill=c", "ill=d"]
            assert wide.select(pl.sum_horizontal(pl.all().exclude("town"))).to_series().unique().to_list() == [
                drawn.designs["ill"].eta
            ]
        else:
            with pytest.raises(QueryError, match="more than 4 columns"):
                export.wide(drawn)


def test_what_is_in_memory_is_kept_as_it_is(drawn: nr.Release, tmp_path: Path) -> None:
    assert keep_cells(drawn) is drawn
    opened = nr.open_release(drawn.save(tmp_path / "r"))
    assert isinstance(keep_cells(opened).store, KeptStore)
    assert keep_cells(keep_cells(opened)).frame().equals(opened.frame())


# ---------------------------------------------------------------- a base


def test_pairs_are_kept_while_they_are_short_beside_the_rows() -> None:
    assert kept_pairs({1: 2, 2: 5}, 80) == [(1, 2)], "ten lines, eight rows for each"
    assert kept_pairs({1: 2, 2: 5}, 79) == []
    # pairs of 2 x 5, 2 x 5 and 5 x 5 lines: 45 together
    assert kept_pairs({1: 2, 2: 5, 3: 5}, 200) == [(1, 2), (1, 3), (2, 3)]
    assert kept_pairs({1: 2, 2: 5, 3: 5}, 199) == [(1, 2), (1, 3)]
    many = dict.fromkeys(range(1, 6), 4)
    assert len(kept_pairs(many, 128)) == 4, "half of the rows are 64 lines, 16 a pair"
    assert len(kept_pairs(many, 127)) == 0, "less than eight rows for each"


def test_pairs_are_counted_as_rows_go_by() -> None:
    rng = np.random.default_rng(5)
    ids = {1: rng.integers(0, 3, 500), 2: rng.integers(0, 4, 500)}
    tally = PairTally({1: 3, 2: 4}, 500)
    for part in (slice(0, 200), slice(200, 500)):
        tally.add({place: codes[part].astype(np.uint8) for place, codes in ids.items()})
    ((pair, table),) = tally.tables()
    assert pair == (1, 2)
    assert table.schema.names == list(FIELDS)
    expected = pl.DataFrame({"first": ids[1], "second": ids[2]}).group_by("first", "second").len().sort(pl.all())
    assert [tuple(row.values()) for row in table.to_pylist()] == expected.rows()


def test_counts_are_read_of_both_columns_or_summed_over_one() -> None:
    both = pair_reading("s", (2, 5), {2: "a", 5: "b"}, "n")
    assert both == 'SELECT first AS "a", second AS "b", rows AS "n" FROM s.counts_2_5'
    one = pair_reading("s", (2, 5), {5: "b"}, "n")
    assert one == 'SELECT second AS "b", sum(rows)::int8 AS "n" FROM s.counts_2_5 GROUP BY second'
    keys = pair_constraints("s", (2, 5), ["sets_2", "nodes_5"])
    assert keys.startswith("ALTER TABLE s.counts_2_5 ADD PRIMARY KEY (first, second), ")
    assert 'ADD FOREIGN KEY (first) REFERENCES s."sets_2" (id), ADD FOREIGN KEY (second) REFERENCES s."nodes_5"' in keys


def test_columns_of_a_base_have_types_and_names() -> None:
    texts = pa.array(["a", "b", "a"]).dictionary_encode()
    assert plain(texts).type == pa.string()
    assert plain(pa.chunked_array([texts, texts])).to_pylist() == ["a", "b", "a"] * 2
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), texts)
    assert plain(lists).type == pa.list_(pa.string())
    numbers = pa.array([[1], [2]], pa.list_(pa.int64()))
    assert plain(numbers) is numbers
    assert plain(pa.array([1])).type == pa.int64()
    assert (sql_type(numbers.type), sql_type(pa.string()), sql_type(pa.timestamp("s"))) == (
        "int8[]",
        "text",
        "timestamp",
    )
    with pytest.raises(ReleaseError, match="cannot be stored in PostgreSQL"):
        sql_type(pa.binary())
    assert lookup_name(node_column("n", 3), 1) == "nodes_1"
    assert lookup_name(set_column("s", 4, DecoyDesign(d=4, eta=2)), 2) == "sets_2"
    assert lookup_name(exact_column("a", 2), 3) is None
    assert lookup_name(group_column("g", 3), 4) is None
    changed = ChangedStatement(meaning("c", 4), PramDesign(d=4, keep=0.5))
    assert lookup_name(changed, 5) is None, "one value of few kinds"
    demand_names([exact_column("ü" * 31 + "a", 2)])
    assert len(("ü" * 31 + "a").encode()) == LONGEST
    with pytest.raises(ReleaseError, match="longer than PostgreSQL's 63 bytes"):
        demand_names([exact_column("ü" * 32, 2)])


@pytest.mark.parametrize(
    ("labels", "kind", "texts"),
    [
        (["[1, 5)", "7", "*"], "int8range", ["[1,5)", "[7,7]", "(,)"]),
        (["[1, 5]", "below 1", "5.5 and above"], "numrange", ["[1,5]", "(,1)", "[5.5,)"]),
        (["[2020-01-01, 2021-01-01)"], "daterange", ["[2020-01-01,2021-01-01)"]),
    ],
)
def test_intervals_are_ranges(labels: list[str], kind: str, texts: list[str]) -> None:
    assert range_type(labels) == (kind, texts)
    assert range_type([*labels, "Ulm"]) is None
    assert range_type(["*"]) is None, "nothing tells of what"


def test_a_manifest_in_a_base_is_compared_with_its_checksum(drawn: nr.Release) -> None:
    block = manifest_block(drawn.manifest)
    assert manifest_of("base", dict(block)) == drawn.manifest
    with pytest.raises(ReleaseError, match="does not match its checksum"):
        manifest_of("base", block | {"records": 23})
    for nothing in ({}, {name: one for name, one in block.items() if name != "sha256"}, None, [block]):
        with pytest.raises(ReleaseError, match="is not the manifest of a release"):
            manifest_of("base", nothing)
