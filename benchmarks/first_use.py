"""What first use waits for: CPU seconds of every method with an empty cache of compiled kernels, and with a full one.

    python benchmarks/first_use.py [--records 60000] [--methods mondrian sweep]

Each command runs in a process of its own on a generated table, first with an empty directory for compiled kernels, then
with what that run left there. CPU time of the process and its children; the difference is what compiling costs. Last,
`noren warm` for everything, and how many kernels that are.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

METHODS = (
    "decoys",
    "mondrian",
    "sweep",
    "incognito",
    "hilbert",
    "three-phase",
    "anatomy",
    "rating",
    "microaggregation",
)
DIVERSE = '[[require]]\nmodel = "frequency-l-diversity"\non = "ill"\nl = 3\n'
ANONYMOUS = '[[require]]\nmodel = "k-anonymity"\nk = 5\n'
ROLES = """[attributes]
age = { role = "quasi-identifier" }
town = { role = "quasi-identifier" }
job = { role = "quasi-identifier" }
ill = { role = "sensitive" }

[dependence]
most = 1.0
"""


def people(records: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 95, records),
            "town": [f"town {i}" for i in rng.zipf(1.4, records) % 60],
            "job": [f"job {i}" for i in rng.integers(0, 14, records)],
            "ill": [f"ill {i}" for i in rng.integers(0, 24, records)],
        }
    )


def cpu(words: list[str], cache: Path) -> float:
    """CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "noren.cli.main", *words],
        env={**os.environ, "NOREN_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"noren {' '.join(words)}: {done.stderr or done.stdout}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        people(args.records).write_csv(home / "people.csv")
        print(f"{args.records:,} rows; CPU seconds\n{'command':<28}{'cold':>8}{'warm':>8}{'compiling':>11}")
        for number, method in enumerate(args.methods):
            needs = DIVERSE if method in ("decoys", "anatomy", "rating") else ANONYMOUS + DIVERSE
            policy = home / f"{method}.toml"
            policy.write_text(f'{ROLES}\n{needs}\n[method]\nname = "{method}"\n')
            cache = home / f"cache-{number}"
            cold, warm = (
                cpu(["anonymize", str(home / "people.csv"), str(policy), "--to", str(home / f"{method}-{run}")], cache)
                for run in range(2)
            )
            print(f"{'anonymize, ' + method:<28}{cold:8.1f}{warm:8.1f}{cold - warm:11.1f}", flush=True)
        release = str(home / f"{args.methods[0]}-0")
        for words in (["verify", release], ["estimate", release, "--by", "town,ill"], ["audit", release]):
            cache = home / f"cache-{words[0]}"
            cold, warm = (cpu(words, cache) for _ in range(2))
            print(f"{words[0] + ', ' + args.methods[0]:<28}{cold:8.1f}{warm:8.1f}{cold - warm:11.1f}", flush=True)
        cache = home / "cache-all"
        seconds = cpu(["warm", "--json"], cache)
        kept = len(list(cache.rglob("*.nbc")))
        print(json.dumps({"warm, CPU seconds": round(seconds, 1), "compiled kernels": kept}))


if __name__ == "__main__":
    main()
