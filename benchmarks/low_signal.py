"""One drawn column at low signal: error of the default, of the maximum of the likelihood and of `bayes`.

Random distributions over 5 to 30 values, sets of 2 to d/2 values, p from 0.15 to 1: for each estimator the geometric
mean and the worst of L1 / L1(bayes), and in how many tables it exceeds 1.3. `bayes` stops at a change below one before
its division.

    python benchmarks/low_signal.py --records 500 --tables 300
"""

from __future__ import annotations

import argparse

import numpy as np

from noren.designs import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bayes import bayes
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import prepare
from noren.statements import SetCells


def draw(rng: np.random.Generator, codes: np.ndarray, design: DecoyDesign) -> Axis:
    keys = rng.random((len(codes), design.d))
    keys[np.arange(len(codes)), codes] = np.where(rng.random(len(codes)) < design.p_true, -1.0, 2.0)
    sets = np.argpartition(keys, design.eta - 1, axis=1)[:, : design.eta]
    return Axis.drawn("column", SetCells.from_codes(design.d, sets), design)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--seed", type=int, default=100)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    rows = []
    for _ in range(args.tables):
        d = int(rng.choice([5, 7, 10, 16, 30]))
        eta, p = int(rng.integers(2, max(3, d // 2 + 1))), float(rng.choice([1.0, 0.6, 0.3, 0.15]))
        codes = rng.choice(d, args.records, p=rng.dirichlet(np.full(d, rng.choice([0.5, 1.0, 3.0]))))
        truth = np.bincount(codes, minlength=d)
        frame = prepare([draw(rng, codes, DecoyDesign(d=d, eta=eta, p=p))])
        found = fit(frame)
        top = found.table if found.maximum is None else found.maximum
        tables = (found.table, top, np.full(d, args.records / d), bayes(frame).table)
        rows.append([float(np.abs(table.ravel() - truth).sum()) for table in tables])
    errors = np.array(rows)
    for name, ratio in zip(("default", "maximum", "even shares"), (errors[:, :3] / errors[:, 3:]).T, strict=True):
        print(
            f"{name} / bayes: {np.exp(np.log(ratio).mean()):.2f}, worst {ratio.max():.2f}, above 1.3 in "
            f"{(ratio > 1.3).mean():.1%} of {args.tables} tables of {args.records} records"
        )


if __name__ == "__main__":
    main()
