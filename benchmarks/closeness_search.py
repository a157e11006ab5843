"""How much the closed-form closeness search saves over trying every set, in one process and as ratios.

Naive: every set of eta values for every eta, one distance each in NumPy, no binary search on p (the paper's Algorithm 1
adds one per set). Both sides find the same largest p; a difference stops the run.
Run: python benchmarks/closeness_search.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from noren.designs.closeness import Distance, largest_ps


def naive(counts: NDArray[np.int64], t: float, distance: Distance) -> list[float]:
    """The largest p for each eta from all subsets: H(Z) in blocks, then the closed form."""
    d = counts.size
    a = counts / counts.sum()
    f = np.cumsum(a)
    found = []
    for eta in range(1, d):
        worst = -np.inf
        sets = np.array(list(combinations(range(d), eta)))
        for block in np.array_split(sets, max(1, len(sets) // 50_000)):
            inside = np.zeros((len(block), d), bool)
            np.put_along_axis(inside, block, True, axis=1)
            cumulative = np.cumsum(inside * a, axis=1)
            m = cumulative[:, -1]
            if distance == "equal":
                gap = m * (1 - m)
            else:
                gap = np.abs(cumulative - m[:, None] * f)[:, :-1].sum(axis=1) / (d - 1)
            worst = max(worst, float((gap - t * m).max()))
        found.append(1.0 if worst <= 0 else eta * t / (d * worst + eta * t))
    return found


def seconds(work: Callable[[], list[float]]) -> tuple[float, list[float]]:
    """The best of three runs (of one, where it takes long)."""
    best, result = np.inf, []
    for _ in range(3):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
        if best > 1:
            break
    return best, result


def main() -> None:
    rng = np.random.default_rng(11)
    t = 0.1
    largest_ps(np.array([1, 2, 3]), t, "ordered")  # compile before the clock runs
    print(f"{'distance':>9} {'d':>3} {'sets':>10} {'naive s':>9} {'search s':>9} {'ratio':>8}")
    for distance in ("equal", "ordered"):
        for d in (8, 12, 16, 20):
            counts = rng.multinomial(30_162, rng.dirichlet(np.ones(d)))
            slow, expected = seconds(lambda c=counts, k=distance: naive(c, t, k))
            fast, found = seconds(lambda c=counts, k=distance: [option.p for option in largest_ps(c, t, k)])
            if not np.allclose(found, expected, rtol=1e-9):
                raise SystemExit(f"the two searches disagree at d = {d}, {distance}")
            print(f"{distance:>9} {d:>3} {2**d - 2:>10,} {slow:>9.3f} {fast:>9.4f} {slow / fast:>8.0f}")
    for distance, d in (("ordered", 24), ("equal", 74), ("ordered", 74)):
        counts = rng.multinomial(2_458_285, rng.dirichlet(np.ones(d)))
        fast, _ = seconds(lambda c=counts, k=distance: [option.p for option in largest_ps(c, t, k)])
        print(f"{distance:>9} {d:>3} {float(2**d):>10.1e} {'-':>9} {fast:>9.4f} {'-':>8}")


if __name__ == "__main__":
    main()
