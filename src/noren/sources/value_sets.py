"""Parses cells that are sets of values, as papers and other tools write them: `{41, 23}`, `41|23`, `["41", "23"]`,
lists."""

from __future__ import annotations

from typing import Any

from noren.errors import DataError
from noren.statements.texts import as_dictionary

BRACES = r"^\{.*\}$"
BRACKETS = r"^\[.*\]$"
SEPARATORS = "|;,"
"""What may stand between the values of cells without brackets; the first that occurs in the column does."""
QUOTES = "\"'“”"


def is_list(column: Any) -> bool:
    """Return whether an Arrow column has lists as its cells."""
    import pyarrow as pa

    kind = column.type
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def looks_like_sets(column: Any, name: str) -> bool:
    """Return whether every nonempty cell is a list or written as a set."""
    import polars as pl

    if is_list(column):
        return True
    texts = _texts(column, name)[0].drop_nulls()
    texts = texts.filter(texts != "")
    sets = texts.str.contains(BRACES) | texts.str.contains(BRACKETS) | texts.str.contains("|", literal=True)
    return bool(len(texts) and sets.all()) if isinstance(sets, pl.Series) else False


def read_sets(column: Any, name: str) -> Any:
    """Return the column as Arrow lists of texts; raise DataError if a cell has no value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_list(column):
        flat, place = as_dictionary(column.flatten(), name)
        sizes = pc.list_value_length(column)
        lists = pa.ListArray.from_arrays(_offsets(sizes), flat.take(pa.array(place, mask=place < 0)))
        _demand_values(name, sizes, flat.take(pa.array(place, mask=place < 0)))
        return lists
    texts, positions = _texts(column, name)
    if (positions < 0).any():
        raise _without(name)
    parsed = _parse_texts(texts).to_arrow()
    lists = parsed.cast(pa.list_(pa.string())).take(pa.array(positions))
    _demand_values(name, pc.list_value_length(lists), lists.flatten())
    return lists


def _texts(column: Any, name: str) -> tuple[Any, Any]:
    """Return the distinct trimmed texts of a column, and every cell's position among them."""
    import polars as pl

    texts, positions = as_dictionary(column, name)
    found = pl.from_arrow(texts)
    assert isinstance(found, pl.Series)
    return found.cast(pl.String).str.strip_chars(), positions


def _parse_texts(texts: Any) -> Any:
    """Return the values of every text. Content in brackets is read as JSON if possible."""
    import polars as pl

    inner = texts.str.strip_chars("{}[]")
    commas = pl.when(inner.str.contains(";", literal=True)).then(inner.str.split(";")).otherwise(inner.str.split(","))
    marked = texts.str.contains(BRACES) | texts.str.contains(BRACKETS)
    bare = texts.filter(~marked)
    separator = next((one for one in SEPARATORS if bare.str.contains(one, literal=True).any()), SEPARATORS[0])
    listed = pl.select(pl.when(marked).then(commas).otherwise(texts.str.split(separator))).to_series()
    plain = listed.list.eval(pl.element().str.strip_chars().str.strip_chars(QUOTES))
    json = texts.str.contains(BRACKETS)
    try:
        read = texts.set(~json, "[]").str.json_decode(dtype=pl.List(pl.String))
    except pl.exceptions.PolarsError:
        return plain
    return pl.select(pl.when(json).then(read).otherwise(plain)).to_series()


def _offsets(sizes: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    widths = sizes.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(widths)]), pa.int32())


def _demand_values(name: str, sizes: Any, values: Any) -> None:
    import pyarrow.compute as pc

    empty = pc.any(pc.equal(sizes.fill_null(0), 0)).as_py() if len(sizes) else False
    if empty or values.null_count or pc.any(pc.equal(values, "")).as_py():
        raise _without(name)


def _without(name: str) -> DataError:
    return DataError(
        f"column {name!r} has sets of values, but one cell lists no value.",
        hint="Write every cell as a set, or declare that the cells are values.",
    )
