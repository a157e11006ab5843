"""The format of shuffled rows: each is a run of bytes with 128 random bits that determine its position.

Codes, sets and numbers of sets have a fixed width and stand together; texts of open columns, which are published as
they are, and sets of terms follow as bytes of their own. Nothing but what will be published is in a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError
from noren.statements import CellBatch, Cells, OpenCells, TermCells
from noren.statements.batch import batch_length


class Wire:
    """How rows of these columns are packed; `like` is an empty batch of them."""

    def __init__(self, like: CellBatch) -> None:
        self.like = dict(like)
        self.types = {name: cells.pack().type for name, cells in like.items()}
        self.fixed = [name for name, cells in like.items() if not isinstance(cells, OpenCells | TermCells)]
        self.loose = [name for name in like if name not in self.fixed]
        for name in self.loose:
            _demand_packable(self.types[name], name)
        self.widths = {name: _width(self.types[name]) for name in self.fixed}

    @property
    def schema(self) -> str:
        """Return the columns for Spark."""
        return ", ".join(["hi long", "lo long", "row binary", *(f"v{i} binary" for i in range(len(self.loose)))])

    def packed(self, batch: CellBatch, keys: NDArray[np.int64]) -> Any:
        """Pack a batch for Spark."""
        import pyarrow as pa

        n = batch_length(batch)
        parts = [_bytes_of(batch[name].pack().cast(self.types[name]), n) for name in self.fixed]
        row = np.concatenate(parts, axis=1) if parts else np.zeros((n, 0), np.uint8)
        loose = [_loose(batch[name].pack()) for name in self.loose]
        keyed = np.ascontiguousarray(keys.T)
        arrays = [pa.array(keyed[0]), pa.array(keyed[1]), _binary(row), *loose]
        return pa.RecordBatch.from_arrays(arrays, ["hi", "lo", "row", *(f"v{i}" for i in range(len(loose)))])

    def unpacked(self, batch: Any) -> dict[str, Cells]:
        """Unpack a batch from Spark."""
        n = batch.num_rows
        rows = _matrix(batch.column(2), sum(self.widths.values()))
        found, at = {}, 0
        for name in self.fixed:
            found[name] = _array(np.ascontiguousarray(rows[:, at : at + self.widths[name]]), self.types[name], n)
            at += self.widths[name]
        for number, name in enumerate(self.loose):
            found[name] = _unloose(batch.column(3 + number), self.types[name])
        return {name: cells.unpack(found[name]) for name, cells in self.like.items()}


def _width(kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size * kind.value_type.bit_width // 8)
    return int(kind.bit_width // 8)


def _demand_packable(kind: Any, name: str) -> None:
    import pyarrow as pa

    known = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or _is_text(kind)
    if not (known or pa.types.is_large_list(kind)):
        raise DataError(
            f"column {name!r} holds {kind}, which cannot be shuffled.", hint="Drop the column, or convert it to text."
        )


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_kind(kind) for is_kind in kinds)


def _bytes_of(array: Any, n: int) -> NDArray[np.uint8]:
    """Return cells of fixed width as an (n, width) array of bytes."""
    import pyarrow as pa

    flat = array.flatten() if pa.types.is_fixed_size_list(array.type) else array
    numbers = np.ascontiguousarray(flat.to_numpy(zero_copy_only=False))
    width = _width(array.type)
    return numbers.view(np.uint8).reshape(n, width) if n else np.zeros((0, width), np.uint8)


def _array(rows: NDArray[np.uint8], kind: Any, n: int) -> Any:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        inner = kind.value_type
        flat = pa.Array.from_buffers(inner, n * kind.list_size, [None, pa.py_buffer(rows)])
        return pa.FixedSizeListArray.from_arrays(flat, kind.list_size)
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(rows)])


def _binary(rows: NDArray[np.uint8]) -> Any:
    """Return (n, width) bytes as n binary texts."""
    import pyarrow as pa

    n, width = rows.shape
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(
        pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows))]
    )


def _matrix(column: Any, width: int) -> NDArray[np.uint8]:
    """Return n binary texts of this width as (n, width) bytes."""
    n = len(column)
    if n == 0 or width == 0:
        return np.zeros((n, width), np.uint8)
    offsets = np.frombuffer(column.buffers()[1], np.int32, n + 1, 4 * column.offset)
    return np.frombuffer(column.buffers()[2], np.uint8, n * width, int(offsets[0])).reshape(n, width)


def _loose(array: Any) -> Any:
    """Return cells of any width as bytes; a missing cell stays missing."""
    import pyarrow as pa

    kind = array.type
    if _is_text(kind):
        return array.cast(pa.large_binary()).cast(pa.binary())
    if pa.types.is_large_list(kind):
        offsets = array.offsets.to_numpy()
        inside = np.ascontiguousarray(array.flatten().to_numpy(zero_copy_only=False))
        ends = ((offsets - offsets[0]) * 4).astype(np.int32)
        return pa.Array.from_buffers(pa.binary(), len(array), [None, pa.py_buffer(ends), pa.py_buffer(inside)])
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    return array.view(pa.binary(array.type.bit_width // 8)).cast(pa.binary())


def _unloose(column: Any, kind: Any) -> Any:
    import pyarrow as pa

    if _is_text(kind):
        return column.cast(kind)
    if pa.types.is_large_list(kind):
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset).astype(np.int64)
        size = int(offsets[-1] - offsets[0])
        data = np.frombuffer(column.buffers()[2], np.uint8, size, int(offsets[0])) if size else np.zeros(0, np.uint8)
        return pa.LargeListArray.from_arrays(pa.array((offsets - offsets[0]) // 4), pa.array(data.view(np.int32)))
    inner = pa.uint8() if pa.types.is_boolean(kind) else kind
    made = column.cast(pa.binary(inner.bit_width // 8)).view(inner)
    return made.cast(kind) if pa.types.is_boolean(kind) else made
