"""A synthetic table under one central epsilon (MST and AIM of dpmm) on the table of `alternatives.py`.

    python -m venv .synthetic && .synthetic/bin/pip install dpmm==0.1.9
    python benchmarks/central_synthetic.py --python .synthetic/bin/python --releases 10

The package pins an old NumPy, so it runs in an environment of its own: this script writes the table, the other
interpreter fits and draws as many records, and L1 errors of one and of two columns are taken here, against the drawn
table's own counts, over the number of records (as in `alternatives.py`). Domains are given, so that nothing is spent
on them; delta is 1e-9.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from alternatives import D, shares

DELTA = 1e-9
OTHER = """
import sys, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
from numpy.random import RandomState
model, epsilon, delta, seed, source, target, *sizes = sys.argv[1:]
table = pd.read_csv(source)
domain = dict(zip(table.columns, map(int, sizes)))
made = {"mst": MSTGM, "aim": AIMGM}[model](epsilon=float(epsilon), delta=float(delta), domain=domain)
made.set_random_state(RandomState(int(seed)))
made.set_domain(domain)
made.fit(table)
made.generate(n_records=len(table)).to_csv(target, index=False)
"""


def counted(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.bincount(first * D[1] + second, minlength=D[0] * D[1]).reshape(D).astype(np.float64)


def synthetic(python: Path, model: str, epsilon: float, seed: int, folder: Path, table: np.ndarray) -> np.ndarray:
    source, target = folder / "table.csv", folder / "made.csv"
    np.savetxt(source, table, fmt="%d", delimiter=",", header="a,b", comments="")
    given = [model, str(epsilon), str(DELTA), str(seed), str(source), str(target), *map(str, D)]
    subprocess.run([str(python), "-c", OTHER, *given], check=True, capture_output=True)
    made = np.loadtxt(target, delimiter=",", skiprows=1).astype(np.int64)
    return counted(made[:, 0], made[:, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="The interpreter that has dpmm.")
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--records", nargs="+", type=int, default=[5000, 50_000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--models", nargs="+", default=["mst", "aim"])
    args = parser.parse_args()
    law = shares().ravel()
    for model in args.models:
        for epsilon in args.epsilon:
            for n in args.records:
                rng, found, began = np.random.default_rng(n), [], time.perf_counter()
                for seed in range(args.releases):
                    code = rng.choice(len(law), n, p=law)
                    truth = counted(code // D[1], code % D[1])
                    with tempfile.TemporaryDirectory() as folder:
                        table = np.stack([code // D[1], code % D[1]], axis=1)
                        made = synthetic(args.python, model, epsilon, seed, Path(folder), table)
                    found.append([np.abs((made - truth).sum(axis=1)).sum() / n, np.abs(made - truth).sum() / n])
                one, two = np.mean(found, axis=0)
                seconds = (time.perf_counter() - began) / args.releases
                print(f"| {model} | {epsilon:g} | {n:,} | {one:.4f} | {two:.4f} | {seconds:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
