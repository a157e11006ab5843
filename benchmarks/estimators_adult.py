"""Error of the four decoy estimators on the Adult table, as in the paper's evaluation (section VI).

First 30,162 rows; nine attributes; p = 1 and eta = min(l, d - 1), the paper's rule for small domains, which publishes
sex and salary-class as they are. For tables of 1, 2 and 3 randomly chosen attributes, not all of them exact, it prints
the mean L1 error in relative frequencies for every l, and the geometric mean of L2(likelihood) / L2(bayes), which stops
when no cell moves by one before its division.

    python benchmarks/estimators_adult.py --data DIR        (DIR holds adult.csv.gz)
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from noren.designs import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import ESTIMATORS
from noren.estimates.counts.frame import prepare
from noren.statements import SetCells

ROWS = 30_162
ATTRIBUTES = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation", "salary-class",
)  # fmt: skip
NAMES = ("value-adding", "linear", "bayes", "likelihood")


def load(directory: Path) -> dict[str, tuple[np.ndarray, int]]:
    """Codes and domain size of every attribute."""
    path = directory / "adult.csv.gz"
    if not path.is_file():
        sys.exit(f"{path} is missing: pass --data with the directory that holds adult.csv.gz (UCI Adult, 15 columns).")
    frame = pl.read_csv(path, n_rows=ROWS)
    columns = {}
    for name in ATTRIBUTES:
        values, codes = np.unique(frame[name].to_numpy(), return_inverse=True)
        columns[name] = (codes, len(values))
    return columns


def draw(rng: np.random.Generator, name: str, codes: np.ndarray, d: int, eta: int) -> Axis:
    """The true value and eta - 1 distinct others."""
    if eta == 1:
        return Axis.exact(name, codes, d)
    keys = rng.random((len(codes), d))
    keys[np.arange(len(codes)), codes] = -1.0
    sets = np.argpartition(keys, eta - 1, axis=1)[:, :eta]
    return Axis.drawn(name, SetCells.from_codes(d, sets), DecoyDesign(d=d, eta=eta))


def trial(rng: np.random.Generator, columns: dict, names: list[str], level: int) -> dict[str, tuple[float, float, int]]:
    """(L1, L2, iterations) of every estimator on one random release, in relative frequencies."""
    sizes = [columns[name][1] for name in names]
    truth = np.zeros(sizes)
    np.add.at(truth, tuple(columns[name][0] for name in names), 1.0)
    axes = [draw(rng, name, *columns[name], min(level, columns[name][1] - 1)) for name in names]
    frame = prepare(axes)
    out = {}
    for name in NAMES:
        fit = ESTIMATORS[name](frame, progress=None, eps=1.0)
        error = (frame.place(fit.table) - truth) / ROWS
        out[name] = (float(np.abs(error).sum()), float(np.sqrt(np.square(error).sum())), fit.iterations)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="Directory that holds adult.csv.gz.")
    parser.add_argument("--choices", type=int, default=9, help="Random attribute choices per table size.")
    parser.add_argument("--levels", type=int, nargs="+", default=list(range(2, 11)), help="Values of l.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 3], help="Numbers of attributes.")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the attribute choices and decoys.")
    args = parser.parse_args()
    columns = load(args.data)
    everything: list[float] = []
    for size in args.sizes:
        rng = np.random.default_rng((args.seed, size))
        if size == 1:
            chosen = [[name] for name in ATTRIBUTES]
        else:
            chosen = [[str(name) for name in rng.choice(ATTRIBUTES, size, replace=False)] for _ in range(args.choices)]
        chosen = [names for names in chosen if any(columns[name][1] > 2 for name in names)]
        ratios: list[float] = []
        print(f"\n{size} attribute{'s' if size > 1 else ''}, {len(chosen)} choices: mean L1", flush=True)
        for level in args.levels:
            start = time.perf_counter()
            results = [trial(rng, columns, names, level) for names in chosen]
            means = {name: np.mean([r[name][0] for r in results]) for name in NAMES}
            here = [r["likelihood"][1] / r["bayes"][1] for r in results if r["bayes"][1] > 1e-12]
            ratios += here
            steps = [r["likelihood"][2] for r in results]
            cells = "  ".join(f"{name} {means[name]:8.4f}" for name in NAMES)
            ratio = np.exp(np.mean(np.log(here))) if here else float("nan")
            print(
                f"  l={level:<3d} {cells}   L2 ratio {ratio:.3f}   EM steps {min(steps)}-{max(steps)}"
                f"   {time.perf_counter() - start:.1f} s",
                flush=True,
            )
        print(f"  geometric mean of L2(likelihood) / L2(bayes): {np.exp(np.mean(np.log(ratios))):.3f}", flush=True)
        everything += ratios
    print(f"\nall table sizes together: {np.exp(np.mean(np.log(everything))):.3f}")


if __name__ == "__main__":
    main()
