"""All benchmarks of a full run, one after the other, each in a process of its own.

    python benchmarks/run.py --data DIR

DIR is a folder that holds adult.csv.gz (UCI Adult, complete rows, with a header) and adult_hierarchies/ (ARX layout).
Benchmarks that need it are left out, with a message, when it is missing; the others generate their tables.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ADULT = (
    "estimators_adult.py",
    "protection_adult.py",
    "sweep_adult.py",
    "mondrian_adult.py",
    "close_classes_adult.py",
    "incognito_adult.py",
    "grouping_adult.py",
    "audit_adult.py",
    "terms_adult.py",
    "measure_adult.py",
)
GENERATED = (
    ("decoys_census.py",),
    ("reconstruction_census.py",),
    ("likelihood_census.py",),
    ("semantic_draw.py",),
    ("semantic_mse.py",),
    ("term_search.py",),
    ("terms_large.py",),
    ("risk_table.py",),
    ("audit_large.py",),
    ("first_use.py",),
    ("inference_generated.py",),
    ("inference_scores.py",),
    ("imputation_generated.py",),
    ("postgres_table.py",),
    ("spark_table.py",),
    ("low_signal.py",),
    ("smooth_column.py",),
    ("studio_load.py",),
    ("release_census.py", "--records", "10000000"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult.csv.gz")
    args = parser.parse_args()
    jobs: list[list[str]] = [list(job) for job in GENERATED]
    if args.data is not None and (args.data / "adult.csv.gz").exists():
        jobs = [[name, "--data", str(args.data)] for name in ADULT] + jobs
    else:
        print(f"adult.csv.gz is not in {args.data}: {', '.join(ADULT)} left out (set DATA=folder).", flush=True)
    failed = []
    for job in jobs:
        print(f"\n=== {' '.join(job)}", flush=True)
        if subprocess.run([sys.executable, str(HERE / job[0]), *job[1:]], check=False).returncode:
            failed.append(job[0])
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
