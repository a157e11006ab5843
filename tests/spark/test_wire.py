"""What is shuffled comes back as it was; files fall into partitions whole and in order. No Java is needed here."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noren.engines.spark.source import Chain, parquet_files
from noren.engines.spark.wire import Wire
from noren.errors import DataError
from noren.sources.derived import with_markers
from noren.sources.sample import sampled
from noren.sources.source import RowRange, Writing
from noren.statements import CodeCells, OpenCells, TermCells, take
from noren.statements.set_cells import NumberedSets, SetCells

N = 7


def cells() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    table = SetCells(5, np.array([3, 5, 6], np.uint8))
    rows = np.sort(np.stack([rng.permutation(70)[:3] for _ in range(N)]), axis=1).astype(np.uint8)
    texts = ["a", "", None, "größer", "b" * 300, "c", "d"]
    open_cells = {
        "text": pa.array(texts),
        "large": pa.array(texts, pa.large_string()),
        "number": pa.array([1, None, -3, 2**60, 0, 5, 6]),
        "real": pa.array([1.5, None, float("inf"), -0.0, 2.0, 3.0, 4.0]),
        "flag": pa.array([True, False, None, True, True, False, None]),
        "day": pa.array([date(2026, 1, 1), None] + [date(1900, 1, 1)] * 5),
        "money": pa.array([Decimal("1.25"), None, Decimal("-3.00")] + [Decimal("0.01")] * 4, pa.decimal128(9, 2)),
    }
    return {
        "code": CodeCells(300, rng.integers(0, 300, N).astype(np.uint16)),
        "mask": SetCells(40, rng.integers(0, 1 << 40, N).astype(np.uint64)),
        "rows": SetCells(70, rows),
        "kept": NumberedSets(table, np.array([0, 1, 2, 0, 1, 2, 0], np.uint8)),
        "terms": TermCells(9, np.array([0, 2, 2, 3, 3, 6, 6, 7]), np.array([1, 4, 0, 2, 3, 8, 5], np.int32)),
        **{name: OpenCells(column) for name, column in open_cells.items()},
    }


def through(wire: Wire, batch: dict[str, Any]) -> dict[str, Any]:
    sent = wire.packed(batch, np.arange(2 * N).reshape(N, 2)[: len(next(iter(batch.values())))])
    return wire.unpacked(sent)


@pytest.mark.parametrize("rows", [slice(0, N), slice(2, 5), slice(3, 3)])
def test_every_kind_of_cell_comes_back(rows: slice) -> None:
    whole = cells()
    wire, batch = Wire(take(whole, slice(0, 0))), take(whole, rows)
    back = through(wire, batch)
    assert list(back) == list(batch)
    for name, found in back.items():
        assert found.pack().to_pylist() == batch[name].pack().to_pylist(), name
        assert type(found) is type(batch[name])


def test_batches_that_spark_has_cut_come_back() -> None:
    whole = cells()
    wire = Wire(take(whole, slice(0, 0)))
    sent = wire.packed(whole, np.zeros((N, 2), np.int64))
    back = wire.unpacked(pa.RecordBatch.from_arrays([column.slice(2, 3) for column in sent.columns], sent.schema.names))
    for name, found in back.items():
        assert found.pack().to_pylist() == whole[name].take(slice(2, 5)).pack().to_pylist(), name


def test_a_kind_that_cannot_be_shuffled_is_refused() -> None:
    with pytest.raises(DataError, match="'x' holds struct"):
        Wire({"x": OpenCells(pa.array([{"a": 1}]))})


def written(folder: Path, sizes: list[int], group: int = 4) -> Path:
    folder.mkdir()
    start = 0
    for number, size in enumerate(sizes):
        column = pa.array([str(start + i) for i in range(size)])
        pq.write_table(pa.table({"a": column}), folder / f"p{number}.parquet", row_group_size=group)
        start += size
    return folder


@pytest.mark.parametrize("parallel", [1, 2, 3, 50])
def test_files_fall_into_partitions_in_their_order(parallel: int, tmp_path: Path) -> None:
    folder = written(tmp_path / "t", [9, 1, 6])
    found, _ = parquet_files(sorted(folder.iterdir()), parallel, "t", Writing())
    assert len(found.parts) == min(parallel, 6)
    read = [batch.column("a").to_pylist() for part in range(len(found.parts)) for batch in found.rows(part, [], ["a"])]
    assert [cell for part in read for cell in part] == [str(number) for number in range(16)]


class Base:
    """A table of one column, as an engine on a cluster has it."""

    name, columns, notes, missing_values, files, rows = "t", ("a", "b"), (), ("9",), None, None

    def batches(self, columns: Any) -> Any:
        raise AssertionError("it is read in tasks")


def test_a_partition_is_read_as_the_table_is() -> None:
    """Markers of the table and of a column; the same records of a sample whoever reads the partition."""
    source = sampled(with_markers(Base(), {"a": ["7"]}), 0.5)  # type: ignore[arg-type]
    chain = Chain.of(source, ["a"])
    assert chain.read == ("a",)
    feed = [pa.RecordBatch.from_arrays([pa.array([str(i % 10) for i in range(400)])], ["c0"])]
    reads = [
        [c for b in chain.source(part, feed).batches(["a"]) for c in b.column("a").to_pylist()] for part in (0, 1, 0)
    ]
    assert reads[0] == reads[2] != reads[1], "each partition has its own draws"
    assert not {"7", "9"} & set(reads[0])
    assert abs(len(reads[0]) - 200) < 8 * np.sqrt(100)
    assert Chain(chain.top, chain.read, (0, 5, 8)).place(1) == RowRange(1, 5, 8)
