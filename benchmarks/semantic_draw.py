"""How fast true values turn into sets that are far apart, for the four semantic designs.

    python benchmarks/semantic_draw.py                       # 10 million records for flat at (148,5,10)
    python benchmarks/semantic_draw.py --records 1000000 --threads 1

Fresh and memoised (record keys hashed beforehand), after compilation, best of a few rounds. The limit is the time that
AES-CTR alone takes, in the same run, to make as many bytes of keystream as the fresh draw uses.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from noren.designs.semantic.design import Kind, SemanticDesign
from noren.secret import Keystream, RecordStream, Secret

KINDS: tuple[Kind, ...] = ("simple", "duplicate-processing", "uniform-sets", "flat")
CASES = ((14, 3, 3), (148, 3, 10), (148, 5, 10))
CHUNK = 1 << 17


def keystream(size: int, threads: int) -> None:
    """AES-CTR into a buffer that stays in cache."""
    stream = Keystream()

    def work(total: int) -> None:
        lane = stream.lane()
        buffer = np.empty(CHUNK, np.uint8)
        for _ in range(0, total, CHUNK):
            lane.fill(buffer)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [size // threads] * threads))


def best(run: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000, help="For flat at (148,5,10); others take a fifth.")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    stream = RecordStream(Secret.fresh())
    digests = stream.digests(pa.array(np.arange(options.records)))
    rng = np.random.default_rng(148)  # test data, not decoys
    print(f"{options.threads} threads; millions of records a second")
    print(f"  {'(F,l,d)':<12}{'design':<22}{'records':>12}{'fresh':>8}{'memoised':>10}{'AES limit':>11}"
          f"{'fresh/limit':>13}{'memoised/fresh':>16}")  # fmt: skip
    for F, l, d in CASES:  # noqa: E741  the paper's letter
        ranks = np.arange(F, dtype=float)
        for kind in KINDS:
            n = options.records if (kind, F, l) == ("flat", 148, 5) else max(1, options.records // 5)
            design = SemanticDesign.make(kind, np.abs(ranks[:, None] - ranks), l, d)
            codes = rng.integers(0, F, n, dtype=np.uint8)

            def fresh(design: SemanticDesign = design, codes: np.ndarray = codes) -> None:
                design.draw(codes, Keystream(), attribute="a", threads=options.threads)

            def memoised(design: SemanticDesign = design, codes: np.ndarray = codes) -> None:
                keys = digests[: len(codes)]
                design.draw(codes, stream, attribute="a", digests=keys, threads=options.threads)

            design.draw(codes[:1000], Keystream(), attribute="a")
            design.draw(codes[:1000], stream, attribute="a", digests=digests[: min(n, 1000)])
            size = 4 * n * design.plan.need
            limit = best(lambda size=size: keystream(size, options.threads), options.rounds)  # type: ignore[misc]
            first, second = best(fresh, options.rounds), best(memoised, options.rounds)
            print(f"  {f'({F},{l},{d})':<12}{kind:<22}{n:>12,}{n / first / 1e6:>8.1f}{n / second / 1e6:>10.1f}"
                  f"{n / limit / 1e6:>11.1f}{first / limit:>12.1f}x{second / first:>15.2f}x")  # fmt: skip


if __name__ == "__main__":
    main()
