"""The next item is made while the last one is used: reading beside drawing, shuffling beside writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

Item = TypeVar("Item")
WAIT = 0.1
"""Seconds after which a maker looks whether it is still wanted."""


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, made by a thread that is one ahead.

    What goes wrong there is raised here. When nobody wants more, the thread ends after the item that it is making, and
    what it was making them with is closed.
    """
    made: Queue[tuple[bool, Any]] = Queue(1)
    enough = Event()

    def hand_over(more: bool, item: Any) -> None:
        while not enough.is_set():
            try:
                made.put((more, item), timeout=WAIT)
            except Full:
                continue
            return

    def make() -> None:
        source = iter(items)
        try:
            for item in source:
                hand_over(True, item)
                if enough.is_set():
                    break
            failure: BaseException | None = None
        except BaseException as error:
            failure = error
        finally:
            close = getattr(source, "close", None)
            if close is not None and enough.is_set():
                close()
        hand_over(False, failure)

    thread = Thread(target=make, name="noren-ahead", daemon=True)
    thread.start()
    try:
        while True:
            more, item = made.get()
            if not more:
                if item is not None:
                    raise item
                return
            yield item
            del item
    finally:
        enough.set()
        with suppress(Empty):
            made.get_nowait()
        thread.join()
