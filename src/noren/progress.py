"""Progress meters.

A `Stage` opens a named piece of work and gives a `Meter`, which is told what was done since the last time. Whoever
watches decides what to show; nobody has to watch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Meter(Protocol):
    """A protocol: counts finished work; may report details, or the total."""

    def __call__(self, done: int, *, note: str = "", total: int | None = None) -> None: ...


Stage = Callable[[str, int | None], AbstractContextManager[Meter]]
"""Announces a stage and how much there is to do, where that is known; inside it, the meter counts what is done."""


def silent(done: int, *, note: str = "", total: int | None = None) -> None:
    """A meter that reports nothing."""


def quiet(name: str, total: int | None) -> AbstractContextManager[Meter]:
    """A stage without a display."""
    return nullcontext(silent)
