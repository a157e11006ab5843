"""How far something is: the one way in which anything tells it.

A `Stage` opens a named piece of work and gives a `Meter`, which is told what was done since the last time. Whoever
watches decides what to show; nobody has to watch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Meter(Protocol):
    """Counts what is done; may say more about it, or how much there is in all."""

    def __call__(self, done: int, *, note: str = "", total: int | None = None) -> None: ...


Stage = Callable[[str, int | None], AbstractContextManager[Meter]]
"""Announces a stage and how much there is to do, where that is known; inside it, the meter counts what is done."""


def silent(done: int, *, note: str = "", total: int | None = None) -> None:
    """A meter that nobody reads."""


def quiet(name: str, total: int | None) -> AbstractContextManager[Meter]:
    """A stage that nobody watches."""
    return nullcontext(silent)
