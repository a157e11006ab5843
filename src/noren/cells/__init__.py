"""The forms a published cell takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from noren.cells.general import GroupCells, GroupTable, NodeCells
from noren.cells.open import OpenCells
from noren.cells.sets import SetCells, ValueCells
from noren.cells.terms import TermCells

Cells = SetCells | ValueCells | OpenCells | NodeCells | GroupCells | TermCells
CellBatch = Mapping[str, Cells]
"""A run of records: the same number of cells for every published column."""


def batch_length(batch: CellBatch) -> int:
    return len(next(iter(batch.values())))


def concat(batches: Sequence[CellBatch]) -> dict[str, Cells]:
    """One batch from several."""
    first = batches[0]
    if len(batches) == 1:
        return dict(first)
    return {name: type(cells).concat([batch[name] for batch in batches]) for name, cells in first.items()}  # type: ignore[misc]


def take(batch: CellBatch, rows: np.ndarray | slice) -> dict[str, Cells]:
    """The same columns, with these rows in this order."""
    return {name: cells.take(rows) for name, cells in batch.items()}


__all__ = [
    "CellBatch",
    "Cells",
    "GroupCells",
    "GroupTable",
    "NodeCells",
    "OpenCells",
    "SetCells",
    "TermCells",
    "ValueCells",
    "batch_length",
    "concat",
    "take",
]
