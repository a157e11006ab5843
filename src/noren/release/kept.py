"""Cells of a file that are read once and kept: for work that looks at the same columns again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from noren.cells import CellBatch, Cells, Statement, concat
from noren.release.release import Release
from noren.release.store import MemoryStore, Store


class KeptStore:
    """The cells of another store; a column that was read is kept whole."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, Cells] = {}

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        missing = [column for column in columns if column.name not in self._kept]
        if missing and (found := list(self._store.batches(missing))):
            self._kept |= concat(found)
        if all(column.name in self._kept for column in columns):
            yield {column.name: self._kept[column.name] for column in columns}


def kept(release: Release) -> Release:
    """The same release, which reads every column once."""
    if isinstance(release.store, KeptStore | MemoryStore):
        return release
    out = copy(release)
    out.store = KeptStore(release.store)
    return out
