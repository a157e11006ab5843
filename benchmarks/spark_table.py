"""Spark beside one machine: a generated table of ten columns, and what every record costs.

    python benchmarks/spark_table.py                                  # 300,000 rows
    python benchmarks/spark_table.py --millions 1 3 10 30 100
    python benchmarks/spark_table.py --millions 5 --local             # beside the local engine, same Parquet files
    python benchmarks/spark_table.py --millions 30 --method mondrian --decide 2g     # six columns that decide, in parts

Time is CPU time of this process, of Java and of all Python workers together, with the start of the session and one
small run left out; memory is the largest that the Python driver and Java took.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import noren as nr

COLUMNS = 10
TICKS = os.sysconf("SC_CLK_TCK")


def family(root: int) -> list[int]:
    """A process and all that come from it."""
    out, waiting = [], [root]
    while waiting:
        one = waiting.pop()
        out.append(one)
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                waiting += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return out


def cpu() -> float:
    """CPU seconds of this process and of all that come from it, those that ended too."""
    total = 0
    for one in family(os.getpid()):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(fields[place]) for place in (11, 12, 13, 14))
    return total / TICKS


def peak(process: int) -> int:
    """Largest memory of a process, in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


def generated(session: Any, rows: int, folder: Path, parts: int) -> Path:
    """Ten columns of texts: two that find people, seven secrets or harmless ones, of 4 to 60 values, and a number."""
    from pyspark.sql import functions as f

    frame = session.range(0, rows, 1, parts)
    columns = [f.concat(f.lit("t"), f.pmod(f.xxhash64("id", f.lit(1)), f.lit(60))).alias("town")]
    columns += [f.pmod(f.xxhash64("id", f.lit(2)), f.lit(80)).cast("int").alias("age")]
    for number in range(COLUMNS - 2):
        values = 4 + 3 * number
        drawn = f.floor(values * f.pow(f.pmod(f.xxhash64("id", f.lit(10 + number)), f.lit(1000)) / 1000, f.lit(1.5)))
        columns.append(f.concat(f.lit("v"), drawn.cast("int")).alias(f"s{number}"))
    frame.select(*columns).write.parquet(str(folder))
    return folder


def policy(method: str) -> nr.Policy:
    """Five secrets hidden among three values each, or classes of five."""
    columns: dict[str, Any] = {"town": "quasi-identifier", "age": "quasi-identifier"}
    if method == "decoys":
        secrets = [f"s{number}" for number in range(5)]
        columns |= {f"s{number}": "sensitive" if number < 5 else "plain" for number in range(COLUMNS - 2)}
        require: list[Any] = [{"model": "frequency-l-diversity", "on": name, "l": 3} for name in secrets]
    else:
        columns |= {f"s{number}": "quasi-identifier" if number < 3 else "identifier" for number in range(COLUMNS - 2)}
        columns["s4"] = "sensitive"
        require = [{"model": "k-anonymity", "k": 5}, {"model": "frequency-l-diversity", "on": "s4", "l": 3}]
        if method == "sweep":
            require = [{"model": "tau-l-diversity", "on": "s4", "tau": 0.3, "l": 5}]
    return nr.Policy(attributes=columns, require=require, method=method, people={"rows": "independent"})


def measured(data: Any, method: str, folder: Path, engine: Any) -> tuple[float, float, int]:
    """CPU seconds, seconds and bytes written of one release."""
    before, started = cpu(), time.perf_counter()
    nr.anonymize(data, policy(method), to=folder, engine=engine)
    used, took = cpu() - before, time.perf_counter() - started
    size = sum(path.stat().st_size for path in folder.iterdir())
    shutil.rmtree(folder)
    return used, took, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="*", default=[0.3])
    parser.add_argument("--method", default="decoys")
    parser.add_argument("--local", action="store_true", help="measure the local engine on the same files too")
    parser.add_argument("--memory", default="1g", help="of Java")
    parser.add_argument("--decide", help="memory that decisions may take on the driver; beyond, in parts")
    args = parser.parse_args()
    if shutil.which("java") is None:
        sys.exit("Spark needs Java 17 or newer.")
    from noren.engines.spark import SparkEngine

    conf = {"spark.ui.enabled": "false", "spark.driver.memory": args.memory, "spark.default.parallelism": "2"}
    conf |= {} if args.decide is None else {"spark.noren.driver.memory": args.decide}
    engine = SparkEngine(master="local[2]", conf=conf)
    engine.session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        warm = generated(engine.session, 20_000, root / "warm", 2)
        measured(warm, args.method, root / "out", engine)
        if args.local:
            from polars import scan_parquet

            measured(scan_parquet(warm / "*.parquet").collect(), args.method, root / "out", "local")
        titles = ("engine", "CPU s", "us/row", "wall s", "MB out", "driver MB", "Java MB")
        print(f"{'rows':>12} " + " ".join(f"{title:>9}" for title in titles))
        for millions in args.millions:
            rows = int(millions * 1_000_000)
            data = generated(engine.session, rows, root / "data", max(2, rows // 1_000_000))
            java = next(one for one in family(os.getpid())[1:] if "java" in Path(f"/proc/{one}/comm").read_text())
            used, took, size = measured(data, args.method, root / "out", engine)
            line = f"{size / 1e6:9.0f} {peak(os.getpid()):9} {peak(java):9}"
            print(f"{rows:12,} {'spark':>9} {used:9.1f} {used / rows * 1e6:9.2f} {took:9.1f} {line}", flush=True)
            if args.local:
                import polars as pl

                whole = root / "whole.parquet"
                pl.scan_parquet(data / "*.parquet").sink_parquet(whole)
                here, took, size = measured(whole, args.method, root / "out", "local")
                print(f"{rows:12,} {'local':>9} {here:9.1f} {here / rows * 1e6:9.2f} {took:9.1f} {size / 1e6:9.0f}")
                print(f"{'':12} spark takes {used / here:.2f} times the CPU time of local", flush=True)
                whole.unlink()
            shutil.rmtree(data)


if __name__ == "__main__":
    main()
