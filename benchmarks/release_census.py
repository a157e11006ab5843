"""File to release: a census-shaped CSV of any length through the whole pipeline, with peak memory and the time split.

    python benchmarks/release_census.py --records 10000000

The table is generated (68 attributes, domains 2..18, skewed), written as CSV or Parquet, and released with l = 5 where
the domain has more than five values, else by the largest set that still says something. The run happens in a process
of its own, whose CPU time and peak memory are reported. Up to two million records another process does the same with
Polars alone: reading the CSV twice, writing a plain table of as many cells and reading it.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

BATCH = 200_000
MOST_COMPARED = 2_000_000
"""Records up to which Polars, which holds the whole table, does the same."""


def domain_sizes(attributes: int) -> list[int]:
    return [2 + i % 17 for i in range(attributes)]


def generate(path: Path, records: int, attributes: int) -> None:
    """Skewed categories, every column tied to a common factor so that they are correlated."""
    rng = np.random.default_rng(7)
    sizes = domain_sizes(attributes)
    names = [f"a{i:02d}" for i in range(attributes)]
    writer = None
    for start in range(0, records, BATCH):
        n = min(BATCH, records - start)
        factor = rng.random(n)
        columns = {}
        for name, d in zip(names, sizes, strict=True):
            mixed = np.clip(0.5 * factor + 0.5 * rng.random(n), 0, 0.999999)
            columns[name] = (mixed**1.7 * d).astype(np.int8)
        table = pa.table(columns)
        if writer is None:
            if path.suffix == ".parquet":
                writer = pq.ParquetWriter(path, table.schema)
            else:
                writer = pv.CSVWriter(path, table.schema, write_options=pv.WriteOptions(quoting_style="none"))
        writer.write_table(table)
    assert writer is not None
    writer.close()


def policy_text(attributes: int) -> str:
    sizes = domain_sizes(attributes)
    lines = ["[attributes]"]
    lines += [f'a{i:02d} = {{ role = "sensitive-quasi-identifier" }}' for i in range(attributes)]
    large = [f"a{i:02d}" for i, d in enumerate(sizes) if d > 5]
    lines += ["[[require]]", 'model = "frequency-l-diversity"', f"on = {json.dumps(large)}", "l = 5"]
    for d in range(3, 6):
        some = [f"a{i:02d}" for i, size in enumerate(sizes) if size == d]
        lines += ["[[require]]", 'model = "frequency-l-diversity"', f"on = {json.dumps(some)}", f"l = {d - 1}"]
    two = [f"a{i:02d}" for i, d in enumerate(sizes) if d == 2]
    lines += ["[[require]]", 'model = "t-closeness"', f"on = {json.dumps(two)}", "t = 0.3"]
    return "\n".join(lines) + "\n"


def child(data: Path, policy: Path, to: Path) -> None:
    from noren.workflow.anonymize import run

    started = time.perf_counter()
    outcome = run(data, policy, to=to)
    total = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"total": total, "cpu": cpu(), "seconds": dict(outcome.facts.seconds), "peak_mb": peak}))


def cpu() -> float:
    """CPU seconds of this process so far, its start and imports included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def plain(data: Path, to: Path) -> None:
    """What Polars alone needs: the CSV read twice, a plain table of as many cells written and read."""
    import polars as pl

    pl.read_csv(data)
    table = pl.read_csv(data)
    table.write_parquet(to)
    pl.read_parquet(to)
    print(json.dumps({"cpu": cpu()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--attributes", type=int, default=68)
    parser.add_argument("--format", choices=["csv", "parquet"], default="csv", help="of the generated input")
    parser.add_argument("--folder", type=Path, help="where the files go (default: a temporary folder, removed after)")
    parser.add_argument("--child", nargs=3, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--plain", nargs=2, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(*args.child)
        return
    if args.plain:
        plain(*args.plain)
        return
    folder = Path(tempfile.mkdtemp(prefix="noren-census-", dir=args.folder))
    try:
        data = folder / f"census.{args.format}"
        generate(data, args.records, args.attributes)
        policy = folder / "policy.toml"
        policy.write_text(policy_text(args.attributes))
        size = data.stat().st_size / 1e6
        print(f"{args.records:,} records x {args.attributes} attributes, {args.format} of {size:,.0f} MB")
        result = _apart("--child", data, policy, folder / "release")
        written = sum(path.stat().st_size for path in (folder / "release").iterdir()) / 1e6
        print(
            f"release of {written:,.0f} MB in {result['total']:.1f} s, {result['cpu']:.1f} CPU s, "
            f"peak memory {result['peak_mb']:,.0f} MB"
        )
        for stage, seconds in result["seconds"].items():
            print(f"  {stage:<18} {seconds:8.2f} s  {seconds / result['total']:6.1%}")
        if args.format == "csv" and args.records <= MOST_COMPARED:
            alone = _apart("--plain", data, folder / "plain.parquet")["cpu"]
            times = result["cpu"] / alone
            print(f"Polars alone, reading twice, writing and reading: {alone:.1f} CPU s; {times:.2f} times")
    finally:
        shutil.rmtree(folder)


def _apart(*arguments: object) -> dict[str, Any]:
    """What a part of the benchmark says that runs in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


if __name__ == "__main__":
    main()
