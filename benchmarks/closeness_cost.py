"""What t-closeness for every prior costs on Adult, beside the paper's search in the data: for docs/protection.md.

    python benchmarks/closeness_cost.py --data DIR        # DIR holds adult.csv.gz

The expected error is equation 9: E||xhat/N - x/N||_2 of linear inversion over one column's own sets.
"""

from __future__ import annotations

import argparse
import sys
from math import exp
from pathlib import Path

import numpy as np
import polars as pl

from noren.designs import DecoyDesign
from noren.methods.decoys import searched
from noren.models import TCloseness
from noren_papers.sensitive_qids.search import search

NAMES = (
    "sex",
    "race",
    "salary-class",
    "workclass",
    "marital-status",
    "occupation",
    "education",
    "native-country",
    "age",
)
ASKED = (0.1, 0.2, 0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with adult.csv.gz")
    path = parser.parse_args().data / "adult.csv.gz"
    if not path.exists():
        sys.exit(f"{path} is missing. Give --data a folder that holds adult.csv.gz (UCI Adult, complete rows, header).")
    frame = pl.read_csv(path, infer_schema_length=0).head(30_162)
    n = len(frame)
    print("| column | d | t | any prior: epsilon, eta, error | data, exact | data, grid | error, times |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    worst: dict[float, list[float]] = {t: [] for t in ASKED}
    for name in NAMES:
        counts = np.unique(frame[name].to_numpy(), return_counts=True)[1].astype(np.int64)
        for t in ASKED:
            model = TCloseness(on=name, t=t)
            free = DecoyDesign.within(len(counts), exp(model.epsilon_each))
            exact = search(counts, t, "equal").design
            coarse = searched(counts, [model], 1, float("inf"))
            shown = [f"{d.epsilon:.2f}, {d.eta}, {d.expected_l2(n):.4f}" for d in (free, exact, coarse)]
            times = free.expected_l2(n) / exact.expected_l2(n)
            worst[t].append(times)
            print(f"| {name} | {len(counts)} | {t} | {' | '.join(shown)} | {times:.2f} |")
    for t, times in worst.items():
        print(f"t = {t}: {min(times):.2f} to {max(times):.2f} times the error, median {np.median(times):.2f}")


if __name__ == "__main__":
    main()
