"""The line in which jobs wait: only a few run at a time, so that ten people do not need ten times the memory.

First come, first served. A job that is cancelled while it waits leaves the line and never begins.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Protocol

PLACES = min(3, max(2, os.cpu_count() or 2))
"""Jobs that compute at the same time: more would share the same processors and only need more memory."""


class Waits(Protocol):
    """What stands in a line."""

    def begin(self) -> None:
        """Its turn has come."""


class Line:
    """Those who wait, and how many are being served."""

    def __init__(self, places: int = PLACES) -> None:
        self.places = places
        self._lock = threading.Lock()
        self._served: list[Waits] = []
        self._waiting: list[Waits] = []

    def enter(self, one: Waits) -> None:
        """Begin at once if a place is free, else stand behind the others."""
        self._change(lambda: self._waiting.append(one))

    def leave(self, one: Waits) -> None:
        """Give the place free, or stop waiting. Whoever has left before may do so again."""
        self._change(lambda: self._remove(one))

    def before(self, one: Waits) -> int | None:
        """How many wait before somebody; None if their turn has come."""
        with self._lock:
            return self._waiting.index(one) if one in self._waiting else None

    def _remove(self, one: Waits) -> None:
        for group in (self._served, self._waiting):
            if one in group:
                group.remove(one)

    def _change(self, change: Callable[[], None]) -> None:
        with self._lock:
            change()
            turn = self._waiting[: max(0, self.places - len(self._served))]
            del self._waiting[: len(turn)]
            self._served += turn
        for one in turn:  # outside the lock: beginning starts a process
            one.begin()
