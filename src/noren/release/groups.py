"""The side tables of an anatomised release: group, value, count, one file per column that was taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noren.cells import GroupTable, ValueCells
from noren.errors import DataError, ReleaseError
from noren.release.convert import as_integers, from_arrow, guarded, to_arrow, unguarded
from noren.release.manifest import ColumnEntry

COLUMNS = ("group", "value", "count")


def value_entry(entry: ColumnEntry) -> ColumnEntry:
    """The base values of a grouped column, as a column of their own."""
    return entry.model_copy(update={"name": "value", "form": "value", "groups": None})


def write_groups(path: Path, entry: ColumnEntry, table: GroupTable) -> None:
    """Write a group table, by group number and in domain order; the numbers are random, so the order says nothing."""
    import pyarrow as pa

    values = to_arrow(value_entry(entry), ValueCells(table.d, table.value))
    written = pa.table({"group": pa.array(table.group), "value": values, "count": pa.array(table.count)})
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(written, path, compression="zstd", store_schema=False)
    else:
        import pyarrow.csv as pv

        pv.write_csv(guarded_table(written), path, pv.WriteOptions(quoting_style="needed"))


def guarded_table(table: Any) -> Any:
    """A side table for CSV, its texts guarded."""
    import pyarrow as pa

    return pa.table({name: guarded(table.column(name).combine_chunks()) for name in table.column_names})


def read_groups(path: Path, entry: ColumnEntry, escaped: bool = True) -> GroupTable:
    """A group table from its file; anything but a complete and sorted list of groups is refused."""
    import pyarrow as pa

    damaged = ReleaseError(f"{path}: not the groups of {entry.name!r}.", hint="Ask for the release again.")
    try:
        columns = read_columns(path, COLUMNS, escaped)
        cells = from_arrow(value_entry(entry), columns["value"])
        group, count = as_integers(columns["group"]), as_integers(columns["count"])
        assert isinstance(cells, ValueCells)
        if (entry.groups or 0) > len(group):
            raise damaged
        table = GroupTable(entry.groups or 0, entry.d, group, cells.data.astype(np.int64), count)
    except (pa.ArrowException, DataError, KeyError, ValueError, OSError):
        raise damaged from None
    if not (table.sizes > 0).all():
        raise damaged
    return table


def read_columns(path: Path, names: Sequence[str], escaped: bool = True) -> dict[str, Any]:
    """Those of the named columns that a side table has. In CSV, `escaped` texts stand behind apostrophes."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        have = pq.read_schema(path).names
        wanted = [name for name in names if name in have]
        read = pq.read_table(path, columns=wanted)
        return {name: read.column(name).combine_chunks() for name in wanted}
    import pyarrow as pa

    from noren.io.csv import CsvSource

    source = CsvSource(path, separator=",", encoding="utf-8")
    wanted = [name for name in names if name in source.columns]
    batches = list(source.batches(wanted))
    found = {name: _joined(pa.chunked_array([b.column(name) for b in batches])) for name in wanted}
    return {name: unguarded(column) for name, column in found.items()} if escaped else found


def _joined(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks()
