"""When a search stops: at a deadline, after so many nodes, or both."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from noren.methods.suppress.beliefs import Array


class Clock:
    """When to stop: a deadline, a node budget, or both; and how many nodes to look at before asking again."""

    def __init__(self, seconds: float | None, nodes: int | None) -> None:
        self.begin = time.perf_counter()
        self.end = np.inf if seconds is None else self.begin + seconds
        self.nodes = (1 << 62) if nodes is None else nodes
        self.timed = seconds is not None
        self.rate = 2e5

    def share(self, part: float, used: int) -> tuple[float, int]:
        """A part of what is left: a deadline and a number of nodes."""
        now = time.perf_counter()
        end = now + part * max(0.0, self.end - now) if self.timed else np.inf
        return end, used + int(part * max(0, self.nodes - used)) if self.nodes < 1 << 62 else self.nodes

    def run(self, step: Callable[[int], object], counters: Array, at: int, end: float, limit: int) -> None:
        """Call step(nodes in all) in slices of some milliseconds until it makes no progress or a bound is reached."""
        while counters[at] < limit:
            now = time.perf_counter()
            if now >= end:
                return
            before = int(counters[at])
            slice_ = limit if not self.timed else before + int(max(200, self.rate * min(0.02, (end - now) / 2 + 1e-4)))
            step(min(limit, slice_))
            spent = time.perf_counter() - now
            done = int(counters[at]) - before
            if done == 0 or counters[at] < min(limit, slice_):
                return
            self.rate = max(1e4, 0.5 * self.rate + 0.5 * done / max(spent, 1e-6))
