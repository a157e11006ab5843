"""How fast a census-sized table turns into decoy sets, against what this machine can do at all.

    python benchmarks/decoys_census.py                      # 2,458,285 records, 68 attributes, eta = 5
    python benchmarks/decoys_census.py --records 200000 --threads 1

The limit is the time to make four bytes of AES-CTR keystream per cell and to copy an array of the result's size, with
as many threads as the draws use. Everything is measured in one run, after compilation, best of a few rounds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.designs.draw import draw_columns
from noren.secret import Keystream, RecordStream, Secret

CHUNK = 1 << 17


def table(records: int, attributes: int, eta: int, p: float) -> tuple[dict[str, DecoyDesign], dict[str, NDArray]]:
    """Domains of 2 to 18 values in turn, uniform codes. Small domains take eta = d - 1, as in the paper."""
    rng = np.random.default_rng(1990)  # test data, not decoys
    designs, columns = {}, {}
    for number in range(attributes):
        d = 2 + number % 17
        designs[f"a{number}"] = DecoyDesign(d=d, eta=min(eta, d - 1), p=p)
        columns[f"a{number}"] = rng.integers(0, d, records, dtype=np.uint8)
    return designs, columns


def keystream(cells: int, threads: int) -> None:
    """Four bytes of AES-CTR for every cell, in a buffer that stays in cache."""
    stream = Keystream()

    def work(total: int) -> None:
        lane = stream.lane()
        buffer = np.empty(CHUNK, np.uint8)
        for _ in range(0, total, CHUNK):
            lane.fill(buffer)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [4 * cells // threads] * threads))


def copy(size: int, threads: int) -> Callable[[], None]:
    """Copy as many bytes as the result has, from one array into another new one, as drawing allocates its result."""
    source = np.ones(size, np.uint8)

    def run() -> None:
        target = np.empty(size, np.uint8)
        bounds = np.linspace(0, size, threads + 1, dtype=np.int64)

        def work(part: int) -> None:
            target[bounds[part] : bounds[part + 1]] = source[bounds[part] : bounds[part + 1]]

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))

    return run


def naive(designs: dict[str, DecoyDesign], columns: dict[str, NDArray], rows: int) -> None:
    """The textbook NumPy way: random keys, the truth first, argpartition. Statistical generator, one thread."""
    rng = np.random.default_rng(1)
    for name, design in designs.items():
        codes = columns[name][:rows]
        order = rng.random((len(codes), design.d))
        order[np.arange(len(codes)), codes] = -1
        np.argpartition(order, design.eta - 1, axis=1)[:, : design.eta].astype(np.uint8)


def best(run: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_458_285)
    parser.add_argument("--attributes", type=int, default=68)
    parser.add_argument("--eta", type=int, default=5)
    parser.add_argument("--p", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slice", type=int, default=20_000, help="Records the naive version runs on, then scaled.")
    options = parser.parse_args()

    designs, columns = table(options.records, options.attributes, options.eta, options.p)
    cells, threads, rounds = options.records * options.attributes, options.threads, options.rounds
    keys = pa.array(np.arange(options.records))
    stream = RecordStream(Secret.fresh())
    small = {name: codes[:1000] for name, codes in columns.items()}
    draw_columns(designs, small, Keystream(), threads=threads)
    draw_columns(designs, small, stream, digests=stream.digests(keys[:1000]), threads=threads)

    digests = stream.digests(keys)
    size = sum(sets.data.nbytes for sets in draw_columns(designs, columns, Keystream(), threads=threads).values())
    seconds = {
        "AES-CTR keystream, 4 bytes a cell": best(lambda: keystream(cells, threads), rounds),
        "copy of the result": best(copy(size, threads), rounds),
        "fresh mode": best(lambda: draw_columns(designs, columns, Keystream(), threads=threads), rounds),
        "memoised mode, keys hashed": best(
            lambda: draw_columns(designs, columns, stream, digests=digests, threads=threads), rounds
        ),
        "hashing the record keys": best(lambda: stream.digests(keys), 1),
    }
    rows = min(options.slice, options.records)
    if rows:
        seconds["NumPy argpartition (scaled)"] = best(lambda: naive(designs, columns, rows), 1) * options.records / rows

    first, second, *_ = seconds.values()
    limit = first + second
    fresh, memoised = seconds["fresh mode"], seconds["memoised mode, keys hashed"]
    print(f"{options.records:,} records x {options.attributes} attributes, eta={options.eta}, p={options.p}, "
          f"{threads} threads, result {size / 1e6:.0f} MB")  # fmt: skip
    for name, value in seconds.items():
        print(f"  {name:<36}{value:9.3f} s {value / cells * 1e9:9.2f} ns a cell {value / limit:8.1f} x limit")
    print(f"  fresh mode / (keystream + copy)  = {fresh / limit:5.2f}   (target: at most 8)")
    print(f"  memoised mode / fresh mode       = {memoised / fresh:5.2f}   (target: at most 3)")


if __name__ == "__main__":
    main()
