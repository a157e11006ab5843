"""Error of semantically diverse releases: the paper's designs and solve against the default design and estimator.

    python benchmarks/semantic_mse.py

Income-like data, 100,000 records over 14 ordered classes; then an ordered attribute of 148 values, skewed like a survey
weight (most records in the lowest third of the scale). For several (l, d) on ranks it prints the mean squared error in
relative frequencies (equation 18 of the paper), averaged over fresh decoys of the same table, for: the simple design
and the paper's solve (`semantic-linear`); duplicate-processing and the same solve (the paper's N-Proposal); flat and
`likelihood`, the default; flat and `linear`. The default's ratio to N-Proposal, printed with its standard error, should
be at most 1 at (3,2) and at most 0.5 at (3,3) and at 148 values.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from noren.designs import SemanticDesign
from noren.errors import NorenError
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import ESTIMATORS, SEMANTIC_ESTIMATORS
from noren.estimates.counts.frame import prepare
from noren.secret import Keystream

INCOME = (0.081, 0.137, 0.152, 0.172, 0.149, 0.102, 0.065, 0.044, 0.029, 0.019, 0.036, 0.008, 0.003, 0.003)
"""Shares of 14 income classes, like those of a salary survey."""
RUNS = ((14, 3, 2, 1.0), (14, 3, 3, 0.5), (14, 5, 2, None), (148, 3, 10, 0.5), (148, 5, 10, 0.5))
"""F, l, d and the largest ratio asked for."""
WAYS = (
    ("simple", "semantic-linear"),
    ("duplicate-processing", "semantic-linear"),
    ("flat", "likelihood"),
    ("flat", "linear"),
)
ALL = {**ESTIMATORS, **SEMANTIC_ESTIMATORS}


def table(F: int, records: int) -> NDArray[np.int64]:
    """True codes: income-like shares of 14 classes, or a gamma curve with mean F/8 and a long tail over F values."""
    if len(INCOME) == F:
        shares = np.array(INCOME)
    else:
        place = (np.arange(F) + 0.5) / F * 26
        shares = place**2.25 * np.exp(-place)
    counts = np.floor(shares / shares.sum() * records).astype(np.int64)
    counts[np.argmax(counts)] += records - counts.sum()
    return np.repeat(np.arange(F), counts)


def mse(design: SemanticDesign, estimator: str, codes: NDArray[np.int64]) -> float:
    """Equation 18 for one draw of decoys."""
    truth = np.bincount(codes, minlength=design.d)
    frame = prepare([Axis.drawn("x", design.draw(codes, Keystream(), attribute="x"), design)])
    found = ALL[estimator](frame, progress=None, eps=1.0).table[0]
    return float(np.square((found - truth) / len(codes)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=400, help="Fresh decoys for each figure at F = 14.")
    parser.add_argument("--repetitions-148", type=int, default=40, help="The same at F = 148.")
    args = parser.parse_args()
    times = {14: args.repetitions, 148: args.repetitions_148}
    print(
        f"{args.records:,} records; mean squared error of relative frequencies over {times[14]} repetitions at F = 14"
    )
    print(f"and {times[148]} at F = 148\n")
    print(f"{'F':>4}{'(l,d)':>9}" + "".join(f"{d[:9] + ' + ' + e:>28}" for d, e in WAYS) + f"{'ratio':>16}  asked")
    missed = []
    for F, size, d, asked in RUNS:
        ranks = np.arange(F, dtype=float)
        codes = table(F, args.records)
        figures, started = {}, time.perf_counter()
        for kind, estimator in WAYS:
            try:
                design = SemanticDesign.make(kind, np.abs(ranks[:, None] - ranks), size, d)
            except NorenError:
                figures[kind, estimator] = np.array([np.nan])
                continue
            figures[kind, estimator] = np.array([mse(design, estimator, codes) for _ in range(times[F])])
        means = {way: float(values.mean()) for way, values in figures.items()}
        ratio = means[WAYS[2]] / means[WAYS[1]]
        noise = ratio * np.sqrt(sum(figures[way].var() / means[way] ** 2 / times[F] for way in WAYS[1:3]))
        cells = "".join(f"{means[way]:>28.3g}" for way in WAYS)
        goal = "" if asked is None else f"<= {asked:g}"
        took = time.perf_counter() - started
        line = f"{F:>4}{f'({size},{d})':>9}{cells}{ratio:>8.3f} +-{noise:.3f}  {goal:<8}{took:.0f} s"
        print(line, flush=True)
        if asked is not None and not ratio <= asked:
            missed.append(f"F = {F}, ({size},{d})")
    print("\nall targets reached" if not missed else f"\nmissed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
