"""Between codes in memory and the columns of a file: labels in domain order outside, codes inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError, ReleaseError
from noren.schema.domain import MISSING, Domain
from noren.schema.kinds import Kind, number_text
from noren.statements.encode import as_dictionary
from noren.statements.set_cells import code_dtype

ESCAPE = "'"
FORMULA = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""What a spreadsheet takes for the beginning of a formula, or skips to find one."""
_GUARDED = f"^[{ESCAPE}{FORMULA.replace('-', chr(92) + '-')}]"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
AGAIN = "Ask for the release again."


def arrow_type(kind: Kind) -> Any:
    """The Arrow type of one value of this kind."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    return (kinds | {"date": pa.date32(), "datetime": pa.timestamp("s")})[kind]


def arrow_values(domain: Domain) -> Any:
    """The values of a domain as the published type has them."""
    import pyarrow as pa

    return pa.array(domain.typed(), arrow_type(domain.kind))


def lists_of(domain: Domain, codes: NDArray, offsets: NDArray) -> Any:
    """Lists of values; texts stand in a dictionary."""
    import pyarrow as pa

    values, flat = arrow_values(domain), pa.array(codes)
    items = pa.DictionaryArray.from_arrays(flat, values) if domain.kind == "string" else values.take(flat)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)


def json_lists(domain: Domain, codes: NDArray, offsets: NDArray) -> Any:
    """The same lists as JSON arrays, for CSV."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array([json.dumps(value, ensure_ascii=False, default=str) for value in domain.typed()], pa.string())
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts.take(pa.array(codes))), ", ")
    return pc.binary_join_element_wise(pa.scalar("["), joined, pa.scalar("]"), "")


def parsed_lists(name: str, kind: Kind, column: Any) -> Any:
    """The lists that `json_lists` wrote."""
    import polars as pl
    import pyarrow as pa

    kinds: dict[str, Any] = {"integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}
    texts = pl.from_arrow(column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column)
    try:
        decoded = texts.str.json_decode(dtype=pl.List(kinds.get(kind, pl.String))).to_arrow()  # type: ignore[union-attr]
    except pl.exceptions.PolarsError:
        raise ReleaseError(f"column {name!r} has a cell that is not a JSON array.", hint=AGAIN) from None
    return decoded.cast(pa.list_(decoded.type.value_type))


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


def as_integers(column: Any) -> NDArray[np.int64]:
    """A column of whole numbers, whether the file kept them as numbers or as texts."""
    import pyarrow as pa

    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if column.null_count:
        raise ValueError("a number is missing")
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))


def codes_in(name: str, domain: Domain, column: Any) -> NDArray:
    """Codes of a file's column; a cell that the domain does not list is refused."""
    import pyarrow as pa

    if domain.kind == "datetime":
        column = _seconds(name, column)
    texts, positions = _single(name, column)
    if domain.kind == "number":
        try:
            texts = pa.array([number_text(float(text)) for text in texts.to_pylist()], pa.string())
        except (ValueError, OverflowError):
            raise ReleaseError(f"column {name!r} holds a cell that is not a number.", hint=AGAIN) from None
    return _placed(name, texts, positions, domain.values, domain.index.get(MISSING, -1))


def _seconds(name: str, column: Any) -> Any:
    """Moments as they were written: Parquet has no unit of whole seconds and gives back thousandths."""
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
        return column
    try:
        return column.cast(pa.timestamp("s"))
    except pa.ArrowInvalid:
        raise ReleaseError(f"column {name!r} holds parts of a second.", hint=AGAIN) from None


def labels_in(name: str, labels: Sequence[str], column: Any) -> NDArray:
    """Where each cell's text stands among the labels; another text, or a missing cell, is refused."""
    texts, positions = _single(name, column)
    return _placed(name, texts, positions, labels, -1)


def _single(name: str, column: Any) -> tuple[Any, NDArray]:
    """The different texts of a column and each cell's among them; a file with anything but single values is damaged."""
    try:
        return as_dictionary(column, name)
    except DataError:
        raise ReleaseError(f"column {name!r} does not hold single values.", hint=AGAIN) from None


def _strays(texts: Any, table: NDArray) -> bool:
    """Whether a dictionary holds a text that its column may not name, even if no cell does."""
    import pyarrow.compute as pc

    blank = pc.equal(texts, "").fill_null(True).to_numpy(zero_copy_only=False)
    return bool((~blank & (table[:-1] < 0)).any())


def _placed(name: str, texts: Any, positions: NDArray, labels: Sequence[str], missing: int) -> NDArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = np.full(len(texts) + 1, -1, np.int64)
    table[:-1] = (
        pc.index_in(texts, value_set=pa.array(labels, pa.string())).fill_null(-1).to_numpy(zero_copy_only=False)
    )
    table[-1] = missing
    if len(positions) and int(positions.max()) >= len(texts):
        raise ReleaseError(f"column {name!r} cannot be read: its dictionary lacks entries.", hint=AGAIN)
    if (table < 0).any() and ((table[positions] < 0).any() or _strays(texts, table)):
        raise ReleaseError(f"column {name!r} holds a value that its published domain does not name.", hint=AGAIN)
    return np.maximum(table, 0).astype(code_dtype(len(labels)))[positions]
