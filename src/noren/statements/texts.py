"""Conversion between codes in memory and Arrow columns, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError, ReleaseError
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.extents import kind_of
from noren.schema.kinds import Format, Kind, as_number, number_text, reader
from noren.statements.set_cells import code_dtype

ESCAPE = "'"
FORMULA = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""What a spreadsheet takes for the beginning of a formula, or skips to find one."""
_GUARDED = f"^[{ESCAPE}{FORMULA.replace('-', chr(92) + '-')}]"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
AGAIN = "Ask for the release again."


def arrow_type(kind: Kind) -> Any:
    """Return the Arrow type of one value of this kind."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    return (kinds | {"date": pa.date32(), "datetime": pa.timestamp("s")})[kind]


def arrow_values(domain: Domain) -> Any:
    """Return the values of a domain in the published type."""
    import pyarrow as pa

    return pa.array(domain.typed_values(), arrow_type(domain.kind))


def lists_of(domain: Domain, codes: NDArray, offsets: NDArray) -> Any:
    """Return lists of values; texts are in a dictionary."""
    import pyarrow as pa

    values, flat = arrow_values(domain), pa.array(codes)
    items = pa.DictionaryArray.from_arrays(flat, values) if domain.kind == "string" else values.take(flat)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)


def json_lists(domain: Domain, codes: NDArray, offsets: NDArray) -> Any:
    """Return the same lists as JSON arrays, for CSV."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(
        [json.dumps(value, ensure_ascii=False, default=str) for value in domain.typed_values()], pa.string()
    )
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts.take(pa.array(codes))), ", ")
    return pc.binary_join_element_wise(pa.scalar("["), joined, pa.scalar("]"), "")


def parse_lists(name: str, kind: Kind, column: Any) -> Any:
    """Parse the lists that `json_lists` wrote."""
    import polars as pl
    import pyarrow as pa

    kinds: dict[str, Any] = {"integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}
    texts = pl.from_arrow(column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column)
    try:
        decoded = texts.str.json_decode(dtype=pl.List(kinds.get(kind, pl.String))).to_arrow()  # type: ignore[union-attr]
    except pl.exceptions.PolarsError:
        raise ReleaseError(f"column {name!r} has a cell that is not a JSON array.", hint=AGAIN) from None
    return decoded.cast(pa.list_(decoded.type.value_type))


def guard_formulas(column: Any) -> Any:
    """Return texts for CSV, with an apostrophe before those that a spreadsheet would run as formulas.

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


def unguard_formulas(column: Any) -> Any:
    """Undo `guarded` for texts or a dictionary of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(column.indices, unguard_formulas(column.dictionary))
    return pc.replace_substring_regex(column, f"^{ESCAPE}", "", max_replacements=1)


def guard_text(text: str) -> str:
    """Guard one text, such as a column's name."""
    import pyarrow as pa

    return str(guard_formulas(pa.array([text], pa.string()))[0].as_py())


def as_integers(column: Any) -> NDArray[np.int64]:
    """Return a column of whole numbers, whether the file kept them as numbers or as texts."""
    import pyarrow as pa

    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if column.null_count:
        raise ValueError("a number is missing")
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))


def codes_in(name: str, domain: Domain, column: Any) -> NDArray:
    """Return the codes of a file's column; refuse a cell that the domain does not list."""
    import pyarrow as pa

    if domain.kind == "datetime":
        column = _seconds(name, column)
    texts, positions = _single(name, column)
    if domain.kind == "number":
        try:
            texts = pa.array([number_text(float(text)) for text in texts.to_pylist()], pa.string())
        except (ValueError, OverflowError):
            raise ReleaseError(f"column {name!r} holds a cell that is not a number.", hint=AGAIN) from None
    return _place_texts(name, texts, positions, domain.values, domain.index.get(MISSING, -1))


def _seconds(name: str, column: Any) -> Any:
    """Return times in whole seconds, because Parquet returns thousandths."""
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
        return column
    try:
        return column.cast(pa.timestamp("s"))
    except pa.ArrowInvalid:
        raise ReleaseError(f"column {name!r} holds parts of a second.", hint=AGAIN) from None


def labels_in(name: str, labels: Sequence[str], column: Any) -> NDArray:
    """Return each cell's position among the labels; refuse another text, or a missing cell."""
    texts, positions = _single(name, column)
    return _place_texts(name, texts, positions, labels, -1)


def _single(name: str, column: Any) -> tuple[Any, NDArray]:
    """Return the distinct texts of a column and each cell's position; refuse anything but single values."""
    try:
        return as_dictionary(column, name)
    except DataError:
        raise ReleaseError(f"column {name!r} does not hold single values.", hint=AGAIN) from None


def _strays(texts: Any, table: NDArray) -> bool:
    """Return whether a dictionary contains a text that its column may not name, even if no cell does."""
    import pyarrow.compute as pc

    blank = pc.equal(texts, "").fill_null(True).to_numpy(zero_copy_only=False)
    return bool((~blank & (table[:-1] < 0)).any())


def _place_texts(name: str, texts: Any, positions: NDArray, labels: Sequence[str], missing: int) -> NDArray:
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
    return np.asarray(np.maximum(table, 0).astype(code_dtype(len(labels)))[positions])


# ------------------------------------------------------------------ of the original

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The first of January of the year 1 and the last of December of 9999, in days from 1970."""
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def as_dictionary(column: Any, name: str) -> tuple[Any, NDArray[np.int32]]:
    """Return the distinct texts of a column and, for each row, the position of its text or -1 if it is missing.

    Numbers are written as a person would: 41.0 in one file and 41 in another are the same value. An empty text is a
    missing value, as it is in CSV.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    try:
        if pa.types.is_nested(kind) or _is_bytes(kind):
            raise pa.ArrowNotImplementedError
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        texts = encoded.dictionary if pa.types.is_string(kind) else pc.cast(encoded.dictionary, pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise DataError(
            f"column {name!r} has type {kind}, which is not a single value.",
            hint="Convert it to text, a number, a date or a boolean.",
        ) from None
    if pa.types.is_floating(kind):
        texts = _plain_numbers(pc.if_else(pc.is_in(texts, pa.array(["nan", "-nan"])), None, texts))
    _demand_writable(texts, encoded.dictionary, name)
    indices = encoded.indices
    if indices.null_count or indices.type not in (pa.int8(), pa.int16(), pa.int32()):
        indices = indices.cast(pa.int32()).fill_null(-1)
    positions = indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    empty = pc.or_kleene(texts.is_null(), pc.equal(texts, "")).to_numpy(zero_copy_only=False).astype(bool)
    if empty.any():
        lost = np.flatnonzero(empty)
        positions = np.where(np.isin(positions, lost), -1, positions).astype(np.int32)
        texts = texts.fill_null("")
    return texts, positions


def _demand_writable(texts: Any, values: Any, name: str) -> None:
    """Refuse what files and databases treat differently: a NUL character, a date outside of the calendar."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.match_substring(texts, "\0")).as_py():
        raise DataError(f"column {name!r} holds a NUL character.", hint="Remove the character from the table.")
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        ends = pc.min_max(values.cast(pa.int64()) if not pa.types.is_date32(values.type) else values.cast(pa.int32()))
        low, high = (end.as_py() for end in (ends["min"], ends["max"]))
        days = 1 if pa.types.is_date32(values.type) else _DAY[getattr(values.type, "unit", "ms")]
        if low is not None and not FIRST_DAY * days <= low <= high < (LAST_DAY + 1) * days:
            raise DataError(
                f"column {name!r} holds a date before the year 1 or after 9999, such as infinity.",
                hint="Make it a missing cell, or a text.",
            )


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(check(kind) for check in checks)


def _plain_numbers(texts: Any) -> Any:
    """Rewrite numbers that Arrow writes as 1e-7 and -0 to 1e-07 and 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring_regex(texts, "e|^-0$")).as_py():
        return texts
    return pa.array([None if text is None else number_text(float(text)) for text in texts.to_pylist()], pa.string())


def label_counts(column: Any, name: str) -> tuple[list[str], NDArray[np.int64], int]:
    """Return the distinct texts that occur, their counts, and the number of missing cells."""
    texts, positions = as_dictionary(column, name)
    missing = int((positions < 0).sum()) if positions.min(initial=0) < 0 else 0
    counts = np.bincount(positions[positions >= 0] if missing else positions, minlength=len(texts)).astype(np.int64)
    occurring = np.flatnonzero(counts)
    labels = texts.take(occurring).to_pylist() if len(occurring) < len(texts) else texts.to_pylist()
    return labels, counts[occurring], missing


def encode_labels(column: Any, name: str, domain: Domain) -> tuple[NDArray, int]:
    """Encode cells into the domain; return how many have no code (theirs is meaningless)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, positions = as_dictionary(column, name)
    if domain.rewrites:
        texts = pa.array(domain.canonical(texts.to_pylist()), pa.string())
    plain = [value for value in domain.values if value != OTHER]
    codes = np.array([domain.index[value] for value in plain], np.int64)
    found = pc.index_in(texts, value_set=pa.array(plain, pa.string())).fill_null(-1).to_numpy(zero_copy_only=False)
    table = np.full(len(texts) + 1, domain.index.get(OTHER, -1), np.int64)
    if len(plain):
        table[:-1] = np.where(found >= 0, codes[np.maximum(found, 0)], table[:-1])
    table[-1] = domain.index.get(MISSING, -1)
    unknown = table < 0
    if unknown.any():
        bad = int(unknown[positions].sum())
        table[unknown] = 0
    else:
        bad = 0
    return table.astype(code_dtype(len(domain)))[positions], bad


def encode_bins(column: Any, name: str, domain: Domain) -> tuple[NDArray, int, int]:
    """Return bin codes, how many cells are missing (coded 0 unless the domain has the category), and how many are
    outside."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, positions = as_dictionary(column, name)
    table = np.full(len(texts) + 1, -1, np.int64)
    written = domain.format
    if domain.measure is not None:
        texts = pa.array(_on_measure(texts.to_pylist(), domain), pa.string())
    elif written != Format():
        texts = pa.array([reader("number", written)(text) or text for text in texts.to_pylist()], pa.string())
    numbers = to_numbers(pc.replace_with_mask(texts, pc.equal(texts, ""), "nan"))
    if numbers is None:
        raise DataError(
            f"column {name!r} has bins but holds values that are not numbers.",
            hint="Declare markers such as '?' under [data] missing_values, or drop the bins.",
        )
    assert domain.edges is not None
    edges = np.asarray(domain.edges)
    slots = np.searchsorted(edges, numbers, side="right") - 1
    slots[numbers == edges[-1]] = len(edges) - 2
    table[:-1] = np.where((slots >= 0) & (slots < len(edges) - 1), slots, -1)
    outside = int((table[:-1][positions[positions >= 0]] < 0).sum())
    missing = int((positions < 0).sum())
    table[-1] = domain.index.get(MISSING, 0)
    return np.maximum(table, 0).astype(code_dtype(len(domain)))[positions], missing, outside


def _on_measure(texts: list[str], domain: Domain) -> list[str]:
    """Return texts of the table as positions on the line of the published edges; others stay unchanged."""
    assert domain.measure is not None
    kind = kind_of(domain.measure)
    read = reader(kind, domain.format)
    out = []
    for text in texts:
        value = read(text) if text else None
        try:
            out.append(text if value is None else repr(as_number(value, kind)))
        except ValueError:
            out.append(text)
    return out


def to_numbers(texts: Any) -> NDArray[np.float64] | None:
    """Return the texts as numbers, or None if one is not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return np.asarray(pc.cast(pc.utf8_trim_whitespace(texts), pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return None
