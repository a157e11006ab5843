"""Does `estimate` say how much an association is shrunk? Told against lost, on generated tables.

    python benchmarks/shrinkage_generated.py --releases 12

The three worlds of `inference_generated.py` (which chose no constant), 1,000 to 20,000 records, l = 2, 3 and 4:
the covariance of every pair of hidden numbers in the table of the pair and in that of all hidden columns, against the
truth, beside the share that `estimate.shrunk` tells (nothing told counts as 0). Pairs whose true correlation is below
0.1 are left out: what is lost of nothing has no size.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inference_generated import WORLDS, released


def covariance(table: NDArray[np.float64], numbers: tuple[NDArray, NDArray]) -> float:
    share = table / table.sum()
    x, y = numbers[0] - share.sum(axis=1) @ numbers[0], numbers[1] - share.sum(axis=0) @ numbers[1]
    return float((share * np.outer(x, y)).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=12)
    args = parser.parse_args()
    rng, started = np.random.default_rng(23), time.process_time()
    print(
        "| records | l | pairs | lost on average | told on average | mean distance | lost over a third, nothing told |"
    )
    print("| --- " * 7 + "|")
    for n in (1_000, 5_000, 20_000):
        for l in (2, 3, 4):  # noqa: E741
            lost, told = [], []
            for draw, hidden, *_ in WORLDS.values():
                numeric = [name for name in hidden if name != "trade"]
                for _ in range(args.releases):
                    frame = draw(rng, n)
                    release = released(frame, list(hidden), l)
                    for one, two in combinations(numeric, 2):
                        if abs(np.corrcoef(frame[one], frame[two])[0, 1]) < 0.1:
                            continue
                        true = float(np.cov(frame[one], frame[two])[0, 1])
                        for by in ([one, two], list(hidden)):
                            found = release.estimate(by)
                            pairs = found.frame.group_by(one, two, maintain_order=True).agg(pl.col("count").sum())
                            sizes = [pairs[name].n_unique() for name in (one, two)]
                            table = pairs["count"].to_numpy().reshape(sizes)
                            numbers = tuple(_numbers(release, name) for name in (one, two))
                            lost.append(1 - covariance(table, numbers) / true)  # type: ignore[arg-type]
                            names = [f"{one} x {two}", f"{two} x {one}"]
                            said = found.diagnostics.get("shrunk", {})
                            told.append(max(said.get(name, 0.0) for name in names))
            a, b = np.array(lost), np.array(told)
            unsaid = (a > 1 / 3) & (b == 0)
            cells = [f"{n:,}", l, len(a), f"{a.mean():.2f}", f"{b.mean():.2f}", f"{np.abs(a - b).mean():.2f}"]
            print("| " + " | ".join(map(str, [*cells, f"{unsaid.mean():.1%}"])) + " |", flush=True)
    print(f"\n{time.process_time() - started:.0f} CPU seconds, {args.releases} releases of each world")


def _numbers(release, name: str) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    """What the values of a column stand for; a bin for its middle."""
    domain = release.column(name).domain
    if domain.edges is not None:
        return np.convolve(domain.edges, [0.5, 0.5], "valid")
    return np.array([float(value) for value in domain.values])


if __name__ == "__main__":
    main()
