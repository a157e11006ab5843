"""Helpers that prepare items in a thread and run independent parts on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")
WAIT = 0.1
"""Seconds after which a maker looks whether it is still wanted."""


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Return an iterator over the same items, which a thread prepares one item ahead.

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


def side_by_side(work: Callable[[Item], Made], parts: Sequence[Item]) -> list[Made]:
    """Return the results of `work` for all parts, in their order, computed on all cores. For work that waits for no
    other thread and mostly runs outside Python's lock."""
    threads = min(len(parts), os.cpu_count() or 1)
    if threads < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(threads, "noren-beside") as pool:
        return list(pool.map(work, parts))
