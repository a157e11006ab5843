"""Lists of terms to counts and to codes, whole batches at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.schema.domain import Domain
from noren.statements.encode import as_dictionary
from noren.statements.term_cells import TermCells


def present(column: Any, name: str) -> NDArray[np.bool_]:
    """Which cells are not missing."""
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), bool)
    return np.asarray(as_dictionary(column, name)[1] >= 0)


def _entries(column: Any) -> tuple[NDArray[np.int64], Any]:
    """The record of every term, and the terms."""
    import pyarrow.compute as pc

    sizes = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(column)), sizes), column.flatten()


def term_counts(column: Any) -> tuple[list[str], NDArray[np.int64], int]:
    """The terms that occur, in how many records, and how many cells are missing. A repeated term counts once."""
    record, flat = _entries(column)
    encoded = flat.dictionary_encode()
    labels = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    cells = TermCells.from_entries(len(labels), len(column), record, codes)
    return labels, cells.counts(), int(column.null_count)


def encode_terms(column: Any, domain: Domain) -> TermCells:
    """Codes into the domain, each once a record. Terms that the domain lacks are left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    record, flat = _entries(column)
    found = pc.index_in(flat, value_set=pa.array(domain.values, pa.string())).fill_null(-1)
    codes = found.to_numpy(zero_copy_only=False)
    inside = codes >= 0
    return TermCells.from_entries(len(domain), len(column), record[inside], codes[inside])
