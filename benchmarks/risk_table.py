"""`noren risk` on a generated survey: how long the raw table's risk takes.

    python benchmarks/risk_table.py [--records 100000] [--columns 8]

Columns have 2 to 800 values and one is a rounded income. The time is CPU and wall seconds from a CSV file to all
figures, imports left out, after a first run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import noren as nr

DOMAINS = (95, 2, 800, 16, 40, 6, 60, 12, 5, 30)


def survey(records: int, columns: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    out = {f"c{i}": rng.zipf(1.3, records) % d for i, d in enumerate(DOMAINS[: columns - 1])}
    return pl.DataFrame(out | {"income": rng.lognormal(10, 1, records).round(-2)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=8, choices=range(2, len(DOMAINS) + 2))
    args = parser.parse_args()
    frame = survey(args.records, args.columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "survey.csv"
        frame.write_csv(path)
        nr.risk(frame.head(1000), quasi=frame.columns)
        wall, cpu = time.perf_counter(), time.process_time()
        found = nr.risk(path, quasi=frame.columns)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{args.records:,} x {args.columns}: {wall:.2f} s ({cpu:.2f} s CPU), {len(found.combinations)} combinations")
    print(found)


if __name__ == "__main__":
    main()
