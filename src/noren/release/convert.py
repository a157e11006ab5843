"""Between cells in memory and the columns of a file: labels in domain order outside, codes inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from noren.cells import Cells, GroupCells, NodeCells, OpenCells, SetCells, TermCells, ValueCells
from noren.engines.encode import as_dictionary
from noren.errors import ReleaseError
from noren.release.manifest import ColumnEntry
from noren.schema.domain import MISSING, number_text

ESCAPE = "'"
FORMULA = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""What a spreadsheet takes for the beginning of a formula, or skips to find one."""
_GUARDED = f"^[{ESCAPE}{FORMULA.replace('-', chr(92) + '-')}]"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def arrow_type(entry: ColumnEntry) -> Any:
    """The Arrow type of one value of the column."""
    import pyarrow as pa

    return {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}[entry.kind]


def to_arrow(entry: ColumnEntry, cells: Cells) -> Any:
    """A column of values, or of lists in domain order."""
    import pyarrow as pa

    if isinstance(cells, OpenCells):
        return cells.data
    if isinstance(cells, NodeCells):
        return pa.array(entry.catalogue.labels, pa.string()).take(pa.array(np.asarray(cells.data)))
    if isinstance(cells, GroupCells):
        return pa.array(np.asarray(cells.data), pa.int64())
    values = pa.array(entry.domain.typed(), arrow_type(entry))
    if isinstance(cells, TermCells):
        flat = pa.DictionaryArray.from_arrays(pa.array(cells.data), values)
        return pa.ListArray.from_arrays(pa.array(cells.offsets, pa.int32()), flat)
    if isinstance(cells, ValueCells):
        if entry.kind == "string" and MISSING in entry.domain.index:
            missing = cells.data == entry.domain.index[MISSING]
            codes = pa.array(np.asarray(cells.data), mask=missing)
        else:
            codes = pa.array(np.asarray(cells.data))
        return values.take(codes)
    assert entry.design is not None
    assert isinstance(cells, SetCells)
    codes = pa.array(cells.codes(entry.design.eta).ravel())
    flat = pa.DictionaryArray.from_arrays(codes, values) if entry.kind == "string" else values.take(codes)
    offsets = np.arange(len(cells) + 1, dtype=np.int32) * entry.design.eta
    return pa.ListArray.from_arrays(pa.array(offsets), flat)


def to_json_text(entry: ColumnEntry, cells: SetCells | TermCells) -> Any:
    """The sets as JSON arrays, for CSV."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array([json.dumps(value, ensure_ascii=False) for value in entry.domain.typed()], pa.string())
    if isinstance(cells, TermCells):
        flat, offsets = texts.take(pa.array(cells.data)), cells.offsets.astype(np.int32)
    else:
        assert entry.design is not None
        flat = texts.take(pa.array(cells.codes(entry.design.eta).ravel()))
        offsets = np.arange(len(cells) + 1, dtype=np.int32) * entry.design.eta
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), flat), ", ")
    return pc.binary_join_element_wise(pa.scalar("["), joined, pa.scalar("]"), "")


def guarded(column: Any) -> Any:
    """Texts for CSV, with an apostrophe before those that a spreadsheet would run as formulas.

    Texts that begin with an apostrophe get another one, so that taking one off gives every text back. Plain numbers
    such as -5 stay as they are: nothing runs in them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column
    risky = pc.and_not(pc.match_substring_regex(column, _GUARDED), pc.match_substring_regex(column, _NUMBER))
    escaped = pc.binary_join_element_wise(pa.scalar(ESCAPE, column.type), column, pa.scalar("", column.type))
    return pc.if_else(risky, escaped, column)


def unguarded(column: Any) -> Any:
    """The texts of `guarded`, or of a dictionary of them, as they were."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(column.indices, unguarded(column.dictionary))
    return pc.replace_substring_regex(column, f"^{ESCAPE}", "", max_replacements=1)


def guarded_text(text: str) -> str:
    """The same for one text, such as a column's name."""
    import pyarrow as pa

    return str(guarded(pa.array([text], pa.string()))[0].as_py())


def from_arrow(entry: ColumnEntry, column: Any) -> Cells:
    """Codes from a file's column; anything the manifest does not allow is refused."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if entry.form == "open":
        return OpenCells(column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column)
    if entry.form in ("value", "member"):
        return ValueCells(entry.d, _codes(entry, column))
    if entry.form == "node":
        labels = entry.catalogue.labels
        return NodeCells(len(labels), _positions(entry, column, labels, -1))
    if entry.form == "group":
        return GroupCells(entry.groups or 0, _group_ids(entry, column))
    if entry.form == "terms":
        return _terms(entry, column)
    assert entry.design is not None
    eta = entry.design.eta
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        raise ReleaseError(f"column {entry.name!r} should hold sets and does not.", hint="Ask for the release again.")
    offsets = column.offsets.to_numpy()
    if column.null_count or not np.array_equal(offsets, offsets[0] + np.arange(len(column) + 1) * eta):
        raise ReleaseError(
            f"column {entry.name!r} has a cell that does not hold {eta} values.", hint="Ask for the release again."
        )
    flat = _codes(entry, column.flatten()).reshape(len(column), eta)
    if eta > 1 and len(flat) and not (flat[:, 1:] > flat[:, :-1]).all():
        raise ReleaseError(
            f"column {entry.name!r} has a set that repeats a value or is not in domain order.",
            hint="Ask for the release again.",
        )
    return SetCells.from_codes(entry.d, flat)


def _terms(entry: ColumnEntry, column: Any) -> TermCells:
    """Sets of terms in domain order, of any size."""
    import pyarrow as pa

    damaged = ReleaseError(
        f"column {entry.name!r} has a cell that is not a set of terms in domain order.",
        hint="Ask for the release again.",
    )
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)) or column.null_count:
        raise damaged
    offsets = column.offsets.to_numpy().astype(np.int64)
    flat = column.flatten()
    if flat.null_count:
        raise damaged
    codes = _codes(entry, flat).astype(np.int32) if len(flat) else np.zeros(0, np.int32)
    cells = TermCells(entry.d, offsets - offsets[0], codes)
    first = np.zeros(len(codes) + 1, bool)
    first[cells.offsets] = True
    if not (first[1:-1] | (np.diff(codes) > 0)).all():
        raise damaged
    return cells


def _group_ids(entry: ColumnEntry, column: Any) -> np.ndarray:
    import pyarrow as pa

    try:
        ids = as_integers(column)
    except (pa.ArrowException, ValueError):
        ids = np.full(1, -1)
    if len(ids) and not (ids.min() >= 0 and ids.max() < (entry.groups or 0)):
        raise ReleaseError(f"column {entry.name!r} names a group that does not exist.", hint="Ask for it again.")
    return ids


def as_integers(column: Any) -> np.ndarray:
    """A column of whole numbers, whether the file kept them as numbers or as texts."""
    import pyarrow as pa

    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if column.null_count:
        raise ValueError("a number is missing")
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _codes(entry: ColumnEntry, column: Any) -> np.ndarray:
    return _positions(entry, column, entry.domain.values, entry.domain.index.get(MISSING, -1))


def _positions(entry: ColumnEntry, column: Any, labels: Sequence[str], missing: int) -> np.ndarray:
    """Where each cell's text stands among the labels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from noren.cells.sets import code_dtype

    texts, positions = as_dictionary(column, entry.name)
    if entry.kind == "number" and entry.form != "node":
        try:
            texts = pa.array([number_text(float(text)) for text in texts.to_pylist()], pa.string())
        except (ValueError, OverflowError):
            raise ReleaseError(
                f"column {entry.name!r} holds a cell that is not a number.", hint="Ask for the release again."
            ) from None
    table = np.full(len(texts) + 1, -1, np.int64)
    table[:-1] = (
        pc.index_in(texts, value_set=pa.array(labels, pa.string())).fill_null(-1).to_numpy(zero_copy_only=False)
    )
    table[-1] = missing
    if (table < 0).any() and (table[positions] < 0).any():
        raise ReleaseError(
            f"column {entry.name!r} holds a value that its published domain does not name.",
            hint="Ask for the release again.",
        )
    return np.maximum(table, 0).astype(code_dtype(len(labels)))[positions]
