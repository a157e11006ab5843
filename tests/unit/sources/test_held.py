"""A file is parsed once while its columns are small, and read again where they are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noren.sources import held as room
from noren.sources.held import HeldSource, hold_columns
from noren.sources.source import open_source

ROWS = "".join(f"{i % 7},{'' if i % 5 == 0 else i % 300},{i}\n" for i in range(3000))


class Counted:
    """A source that counts how often it is read."""

    def __init__(self, path: Path) -> None:
        self._source = open_source(path)
        self.name, self.columns, self.notes, self.rows = self._source.name, self._source.columns, (), None
        self.reads = 0

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        self.reads += 1
        return self._source.batches(columns)


@pytest.fixture
def source(tmp_path: Path) -> Counted:
    (tmp_path / "table.csv").write_text("a,b,c\n" + ROWS, encoding="utf-8")
    return Counted(tmp_path / "table.csv")


def texts(source: Any, columns: list[str]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {name: [] for name in columns}
    for batch in source.batches(columns):
        assert batch.schema.names == columns
        for name in columns:
            out[name] += batch.column(name).to_pylist()
    return out


def test_the_second_pass_reads_nothing(source: Counted) -> None:
    kept, plain = HeldSource(source), texts(open_source(source._source.path), ["a", "b", "c"])
    assert texts(kept, ["a", "b", "c"]) == plain
    assert texts(kept, ["c", "a"]) == {"c": plain["c"], "a": plain["a"]}
    assert texts(kept, ["b"]) == {"b": plain["b"]}
    assert source.reads == 1


def test_other_columns_are_read(source: Counted) -> None:
    kept = HeldSource(source)
    texts(kept, ["a"])
    assert texts(kept, ["b"]) == texts(open_source(source._source.path), ["b"])
    assert source.reads == 2


def test_a_pass_that_ends_early_keeps_nothing(source: Counted) -> None:
    kept = HeldSource(source)
    next(iter(kept.batches(["a"]))).column("a")
    assert texts(kept, ["a"]) == texts(open_source(source._source.path), ["a"])
    assert source.reads == 2


def test_a_large_table_is_read_again(source: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_BYTES", 1000)
    kept = HeldSource(source)
    assert texts(kept, ["a", "b"]) == texts(kept, ["a", "b"])
    assert source.reads == 2


def test_only_text_files_and_tables_of_a_base_are_kept(tmp_path: Path, source: Counted) -> None:
    table = pa.table({"a": [1, 2, 3]})
    pq.write_table(table, tmp_path / "table.parquet")
    for one in (open_source(table), open_source(tmp_path / "table.parquet")):
        assert hold_columns(one) is one
    assert isinstance(hold_columns(open_source(source._source.path)), HeldSource)


class Numbers:
    """A source of numbers, dates and texts, as a base gives them, which can be read once."""

    name, columns, notes, rows = "numbers", ("small", "large", "day", "town"), (), None

    def __init__(self, table: pa.Table) -> None:
        self.table: pa.Table | None = table

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        assert self.table is not None, "read twice"
        table, self.table = self.table, None
        yield from table.select(list(columns)).to_batches(max_chunksize=2)


def test_numbers_of_a_base_are_kept_small_and_come_back_as_they_were() -> None:
    table = pa.table(
        {
            "small": pa.array([-128, 127, None, 5], pa.int64()),
            "large": pa.array([1 << 40, 2, -(1 << 15) - 1, 1 << 31], pa.int64()),
            "day": pa.array([0, 1, None, 19_000], pa.date32()),
            "town": pa.array(["Ulm", "Bonn", "Ulm", None]).dictionary_encode(),
        }
    )
    kept = HeldSource(Numbers(table))
    once = pa.Table.from_batches(list(kept.batches(list(table.column_names))))
    again = pa.Table.from_batches(list(kept.batches(list(table.column_names))))
    assert once.to_pydict() == again.to_pydict() == table.to_pydict()
    assert again.schema.field("large").type == again.schema.field("small").type == pa.int64()
    small = kept._batches[0]  # type: ignore[index]
    assert (small.column("small").type, small.column("large").type) == (pa.int8(), pa.int64())
    floats = HeldSource(Numbers(pa.table({"small": [0.5]})))
    for _ in range(2):
        assert [batch.to_pydict() for batch in floats.batches(["small"])] == [{"small": [0.5]}]
