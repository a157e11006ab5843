"""Adult published twice, a tenth of the people gone and as many new: who is exposed, and what m-invariance costs.

    python benchmarks/republication_adult.py --data DIR [--records 40000]

DIR holds adult.csv.gz (UCI Adult, complete rows, header). Seven quasi-identifiers, occupation is the secret, l = m = 3.
Every method publishes both tables under one secret; the register counts who would be left fewer than l occupations.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import polars as pl

import noren as nr
from noren.secret import Register
from noren.workflow.anonymize import run

QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")


def policy(method: str, jobs: list[str], repeat: str) -> nr.Policy:
    kept = method == "m-invariance"
    asked = {"model": "m-invariance", "m": 3} if kept else {"model": "frequency-l-diversity", "l": 3}
    return nr.Policy(
        mechanism="ignored",
        attributes={"id": "identifier"}
        | dict.fromkeys(QUASI, "quasi-identifier")
        | {"occupation": {"role": "sensitive", "values": jobs}},
        require=[asked | {"on": "occupation"}],
        method={"name": method} | ({"counterfeits": 1.0} if kept else {}),
        randomness={"record_key": "id", "repeat": repeat},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult.csv.gz")
    parser.add_argument("--records", type=int, default=40_000)
    args = parser.parse_args()
    if args.data is None or not (args.data / "adult.csv.gz").exists():
        sys.exit("This benchmark needs --data, a folder with adult.csv.gz (UCI Adult, complete rows, header).")
    frame = pl.read_csv(args.data / "adult.csv.gz").select(*QUASI, "occupation").with_row_index("id")
    jobs = sorted(frame["occupation"].unique().to_list())
    n = min(args.records, frame.height * 10 // 11)
    first, second = frame.head(n), frame.slice(n // 10, n)
    for method in ("mondrian", "hilbert", "three-phase", "anatomy", "m-invariance"):
        with tempfile.TemporaryDirectory() as folder:
            key = Path(folder) / "key"
            nr.Secret.create(key)
            for number, table in enumerate((first, second), 1):
                started = perf_counter()
                outcome = run(table, policy(method, jobs, "allow"), secret=key)
                facts = outcome.facts
                told = "; ".join(note for note in facts.notes if "register" in note or "counterfeit" in note)
                losses = {name: round(value, 4) for name, value in facts.losses.items() if "ncp" in name.lower()}
                seconds = perf_counter() - started
                print(f"{method} {number}: {seconds:.1f} s, {losses}, {told or '-'}, {Register.open(key).size:,} bytes")


if __name__ == "__main__":
    main()
