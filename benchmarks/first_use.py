"""What first use waits for: CPU seconds of every method with an empty cache of compiled kernels, and with a full one.

    python benchmarks/first_use.py [--records 60000] [--methods mondrian sweep]

Each command runs in a process of its own on a generated table, first with an empty directory for compiled kernels, then
with what that run left there. CPU time of the process and its children; the difference is what compiling costs. A star
marks what is above the goal: 1.5 at 5,000 rows, and at 60,000 3 for most methods, more for those that search.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

SYMPTOMS = Path(__file__).parents[1] / "examples" / "symptoms"
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
    "auto",
    "suppress",
)
DIVERSE = '[[require]]\nmodel = "frequency-l-diversity"\non = "ill"\nl = 3\n'
ANONYMOUS = '[[require]]\nmodel = "k-anonymity"\nk = 5\n'
ROLES = """mechanism = "ignored"

[attributes]
age = { role = "quasi-identifier" }
town = { role = "quasi-identifier" }
job = { role = "quasi-identifier" }
ill = { role = "sensitive" }

[dependence]
most = 1.0
"""


GOALS = {"mondrian": 8.0, "suppress": 10.0, "auto": 12.0, "estimate": 2.0}
"""CPU seconds that compiling may take with more than SMALL rows; 3 for all others."""
SMALL, GOAL_OF_SMALL = 5_000, 1.5


def line(name: str, cold: float, warm: float, goal: float) -> str:
    over = " *" if cold - warm > goal else ""
    return f"{name:<28}{cold:8.1f}{warm:8.1f}{cold - warm:11.1f}{over}"


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


def inputs(home: Path, method: str) -> tuple[Path, Path]:
    """The table and the policy for a method; terms are those of the example."""
    if method == "suppress":
        table = home / "patients.csv"
        subprocess.run([sys.executable, str(SYMPTOMS / "make_patients.py"), "--to", str(table)], check=True)
        return table, SYMPTOMS / "policy.toml"
    needs = DIVERSE if method in ("decoys", "anatomy", "rating") else ANONYMOUS + DIVERSE
    policy = home / f"{method}.toml"
    policy.write_text(f'{ROLES}\n{needs}\n[method]\nname = "{method}"\n')
    return home / "people.csv", policy


def cpu(words: list[str], cache: Path) -> float:
    """CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "noren.cli.main", *words],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
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
        for method in args.methods:
            table, policy = inputs(home, method)
            places = [str(home / f"{method}-{run}") for run in range(2)]
            cache = home / f"cache-{method}"
            cold, warm = (cpu(["anonymize", str(table), str(policy), "--to", to], cache) for to in places)
            goal = GOAL_OF_SMALL if args.records <= SMALL else GOALS.get(method, 3.0)
            print(line(f"anonymize, {method}", cold, warm, goal), flush=True)
        release = str(home / f"{args.methods[0]}-0")
        for words in (["verify", release], ["estimate", release, "--by", "town,ill"], ["audit", release]):
            cold, warm = (cpu(words, home / f"cache-{words[0]}") for _ in range(2))
            goal = GOAL_OF_SMALL if args.records <= SMALL else GOALS.get(words[0], 3.0)
            print(line(f"{words[0]}, {args.methods[0]}", cold, warm, goal), flush=True)


if __name__ == "__main__":
    main()
