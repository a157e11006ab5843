"""Arrow columns to label counts and to domain codes, whole batches at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.extents import kind_of
from noren.schema.kinds import Format, as_number, number_text, reader
from noren.statements.set_cells import code_dtype

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The first of January of the year 1 and the last of December of 9999, in days from 1970."""
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def as_dictionary(column: Any, name: str) -> tuple[Any, NDArray[np.int32]]:
    """The distinct texts of a column and, for each row, the position of its text or -1 where it is missing.

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
    """Refuse what files and bases do not agree on: a NUL character, a date outside of the calendar."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.match_substring(texts, "\0")).as_py():
        raise DataError(f"column {name!r} holds a NUL character.", hint="Remove it from the table: it is no text.")
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        ends = pc.min_max(values.cast(pa.int64()) if not pa.types.is_date32(values.type) else values.cast(pa.int32()))
        low, high = (end.as_py() for end in (ends["min"], ends["max"]))
        days = 1 if pa.types.is_date32(values.type) else _DAY[getattr(values.type, "unit", "ms")]
        if low is not None and not FIRST_DAY * days <= low <= high < (LAST_DAY + 1) * days:
            raise DataError(
                f"column {name!r} holds a date before the year 1 or after 9999, such as infinity.",
                hint="Make it a missing cell, or a text that says what is meant.",
            )


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(check(kind) for check in checks)


def _plain_numbers(texts: Any) -> Any:
    """Arrow writes 1e-7 and -0 where this package writes 1e-07 and 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring_regex(texts, "e|^-0$")).as_py():
        return texts
    return pa.array([None if text is None else number_text(float(text)) for text in texts.to_pylist()], pa.string())


def label_counts(column: Any, name: str) -> tuple[list[str], NDArray[np.int64], int]:
    """Distinct texts that occur, how often, and how many cells are missing."""
    texts, positions = as_dictionary(column, name)
    missing = int((positions < 0).sum()) if positions.min(initial=0) < 0 else 0
    counts = np.bincount(positions[positions >= 0] if missing else positions, minlength=len(texts)).astype(np.int64)
    occurring = np.flatnonzero(counts)
    labels = texts.take(occurring).to_pylist() if len(occurring) < len(texts) else texts.to_pylist()
    return labels, counts[occurring], missing


def encode_labels(column: Any, name: str, domain: Domain) -> tuple[NDArray, int]:
    """Codes into the domain, and how many cells have no place in it (their code is meaningless)."""
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
    """Bin codes, how many cells are missing (coded 0 unless the domain has the category), how many lie outside."""
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
            f"column {name!r} has bins but holds something that is not a number.",
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
    """Texts of the table as places on the line of the published edges; what is none stays as it is."""
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
    """The texts as numbers, or None where one is not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return np.asarray(pc.cast(pc.utf8_trim_whitespace(texts), pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return None
