"""Cells of a file that are read once and kept: for work that looks at the same columns again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from threading import Lock
from typing import Any

from noren.release.release import Release
from noren.release.store import MemoryStore, Store
from noren.statements import CellBatch, Cells, Statement, concat


class KeptStore:
    """The cells of another store; a column that was read is kept whole."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, Cells] = {}
        self._reading = Lock()
        self._found: dict[str, Any] = {}
        self._finding = Lock()

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        with self._reading:  # of two threads that want the same columns, one reads them
            missing = [column for column in columns if column.name not in self._kept]
            if missing and (found := list(self._store.batches(missing))):
                self._kept |= concat(found)
        if all(column.name in self._kept for column in columns):
            yield {column.name: self._kept[column.name] for column in columns}

    def remembered(self, what: str, made: Callable[[], Any]) -> Any:
        """What somebody worked out of all cells before, or works out now."""
        with self._finding:
            if what not in self._found:
                self._found[what] = made()
            return self._found[what]


def kept(release: Release) -> Release:
    """The same release, which reads every column once."""
    if isinstance(release.store, KeptStore | MemoryStore):
        return release
    out = copy(release)
    out.store = KeptStore(release.store)
    return out
