"""Cross tabulations of a census-sized release: seconds, iterations and error of every estimator.

    python benchmarks/reconstruction_census.py

2,458,285 generated records with correlated attributes of 18, 16, 14, 13 and 7 values, published in sets of five. Four
attributes (52,416 cells) by `linear`, `bayes` and `value-adding`, three by `likelihood`; errors against the truth.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.tabulate import tabulate
from noren.metrics.distances import l1_loss, l2_loss
from noren.secret import Keystream

SIZES = (18, 16, 14, 13, 7)


def attributes(records: int) -> list[NDArray[np.uint8]]:
    """Skewed categories that share two hidden factors."""
    rng = np.random.default_rng(1990)
    factors = rng.random((2, records), np.float32)
    columns = []
    for number, d in enumerate(SIZES):
        mixed = 0.45 * factors[number % 2] + 0.25 * factors[0] + 0.3 * rng.random(records, np.float32)
        columns.append((np.clip(mixed, 0, 0.999999) ** 1.5 * d).astype(np.uint8))
    return columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_458_285)
    parser.add_argument("--eta", type=int, default=5)
    args = parser.parse_args()
    columns = attributes(args.records)
    axes = []
    for number, (d, codes) in enumerate(zip(SIZES, columns, strict=True)):
        design = DecoyDesign(d=d, eta=args.eta)
        axes.append(Axis.drawn(f"a{number}", design.draw(codes, Keystream(), attribute=f"a{number}"), design))
    warm = [replace(axis, cells=axis.cells.take(slice(0, 2000))) for axis in axes]
    for estimator in ("linear", "bayes", "likelihood"):
        tabulate(warm[:3], estimator)
    tabulate(warm[:4], "linear")
    four, three = (0, 1, 2, 3), (0, 1, 4)
    runs = [(four, "linear"), (four, "bayes"), (four, "value-adding"), (three, "linear"), (three, "bayes")]
    runs += [((0,), "likelihood"), ((0, 1), "likelihood"), (three, "likelihood")]
    print(f"{args.records:,} records, sets of {args.eta}\n")
    print(f"{'table':<18}{'cells':>8}  {'estimator':<14}{'seconds':>8}{'steps':>7}{'L1':>9}{'L2':>9}  stopping")
    for chosen, estimator in runs:
        shape = [SIZES[i] for i in chosen]
        truth = np.zeros(shape)
        np.add.at(truth, tuple(columns[i] for i in chosen), 1)
        started = time.perf_counter()
        result = tabulate([axes[i] for i in chosen], estimator)
        seconds = time.perf_counter() - started
        l1, l2 = l1_loss(result.counts, truth, relative=True), l2_loss(result.counts, truth, relative=True)
        stopping = result.diagnostics.get("stopping", "")
        table = f"{'x'.join(map(str, shape)):<18}{truth.size:>8,}"
        steps = result.iterations or 0
        print(f"{table}  {estimator:<14}{seconds:>8.2f}{steps:>7}{l1:>9.4f}{l2:>9.5f}  {stopping}")


if __name__ == "__main__":
    main()
