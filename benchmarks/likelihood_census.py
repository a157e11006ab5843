"""The likelihood of several drawn columns: time and error beside plain steps from independence, in one run.

    python benchmarks/likelihood_census.py [--records 2458285] [--eta 5] [--data DIR]

Generated records in the shape of a census, tables 18x16 and 18x16x7 in sets of five. `before` is plain EM from
independence, stopped at the best held-out score of two folds. `now` is what a recipient gets. CPU seconds of the fit
alone, after all were called once on a few records; then widths and coverage of 95% intervals of the three-way table
beside those without narrowing. With --data the same errors on random pairs and triples of Adult's columns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from estimators_adult import draw, load
from noren.designs import DecoyDesign
from noren.estimates.counts import tabulate as room
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bayes import bayes
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import Frame, prepare
from noren.estimates.counts.held_out import DRAWN, folds_of, independent, single_columns
from noren.estimates.counts.tuples import Fit
from noren.secret import Keystream
from reconstruction_census import SIZES, attributes


def plain(frame: Frame) -> Fit:
    """EM from independence for as long as it predicts the held-out records better."""
    tuples, every = frame.tuples, folds_of(frame.tuples.counts)
    start, held = independent(single_columns(tuples, every, DRAWN.tolerance))[0], every.counts.T[:2]
    tables, steps, best, score = [start / start.sum()] * len(held), 0, 0, -np.inf
    while steps <= best + 5:
        passes = [
            tuples.em_pass(x / x.sum(), h, np.full(len(tuples), 1e-12)) for x, h in zip(tables, held, strict=True)
        ]
        if (total := sum(value for _, _, value in passes)) > score:
            best, score = steps, total
        tables, steps = [x / x.sum() * acc for x, (acc, _, _) in zip(tables, passes, strict=True)], steps + 1
    for _ in range(round(best * 4 / 3)):
        start = start * tuples.em_pass(start)[0]
    return Fit(start, steps)


WAYS: dict[str, Callable[[Frame], Fit]] = {
    "before": plain,
    "now": fit,
    "bayes": bayes,
}


def measured(frame: Frame, truth: NDArray) -> dict[str, tuple[float, float, int]]:
    """CPU seconds, L1 error in relative frequencies and passes over the records."""
    frame.inclusions  # noqa: B018  counted before the clock starts
    out = {}
    for name, way in WAYS.items():
        started = time.process_time()
        found = way(frame)
        spent = time.process_time() - started
        out[name] = spent, float(np.abs(frame.place(found.table) - truth).sum() / truth.sum()), found.iterations
    return out


def told(title: str, found: dict[str, tuple[float, float, int]]) -> None:
    parts = [f"{name} {cpu:.1f} CPU s, L1 {l1:.4f}, {steps} steps" for name, (cpu, l1, steps) in found.items()]
    time_ratio, error = (found["now"][k] / max(found["before"][k], 1e-12) for k in (0, 1))
    print(f"{title}: {'; '.join(parts)}; now / before: time {time_ratio:.2f}, error {error:.2f}", flush=True)


def intervals(title: str, axes: list[Axis], truth: NDArray) -> None:
    """Width and coverage with and without narrowing, by the size of the cell."""
    narrowed, now = room.narrowed, room.tabulate(axes)
    room.narrowed = lambda frame, found, *rest: found  # type: ignore[assignment]
    wide = room.tabulate(axes)
    room.narrowed = narrowed
    for least, most in ((0, np.inf), (0, 1), (1, 11), (11, 101), (101, np.inf)):
        cells = (truth >= least) & (truth < most)
        if not cells.any():
            continue
        width = (now.high - now.low)[cells].mean() / (wide.high - wide.low)[cells].mean()
        shares = [float(((truth >= t.low - 1e-6) & (truth <= t.high + 1e-6))[cells].mean()) for t in (wide, now)]
        size = f"{least:g} to {most:g}"
        print(f"  {title}, cells of {size}: width {width:.2f} of before, coverage {shares[0]:.3f} -> {shares[1]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_458_285)
    parser.add_argument("--eta", type=int, default=5)
    parser.add_argument("--data", type=Path, help="Directory that holds adult.csv.gz.")
    parser.add_argument("--choices", type=int, default=8, help="Random choices of Adult's columns.")
    args = parser.parse_args()
    columns = attributes(args.records)
    axes = []
    for number, (d, codes) in enumerate(zip(SIZES, columns, strict=True)):
        design = DecoyDesign(d=d, eta=min(args.eta, d - 1))
        axes.append(Axis.drawn(f"a{number}", design.draw(codes, Keystream(), attribute=f"a{number}"), design))
    few = prepare([replace(axes[i], cells=axes[i].cells.take(slice(0, 2000))) for i in (0, 1, 4)])
    for way in WAYS.values():
        way(few)
    print(f"{args.records:,} records, sets of {args.eta}", flush=True)
    for chosen in ((0, 1), (0, 1, 4)):
        truth = np.zeros([SIZES[i] for i in chosen])
        np.add.at(truth, tuple(columns[i] for i in chosen), 1)
        told("x".join(str(SIZES[i]) for i in chosen), measured(prepare([axes[i] for i in chosen]), truth))
    intervals("18x16x7", [axes[i] for i in chosen], truth)
    if args.data is not None:
        adult(args.data, args.choices)


def adult(folder: Path, choices: int) -> None:
    known = {name: column for name, column in load(folder).items() if 2 < column[1] < 50}
    for size in (2, 3):
        rng = np.random.default_rng(size)
        for level in (2, 5, 10):
            ratios = []
            for _ in range(choices):
                names = [str(name) for name in rng.choice(sorted(known), size, replace=False)]
                truth = np.zeros([known[name][1] for name in names])
                np.add.at(truth, tuple(known[name][0] for name in names), 1)
                frame = prepare([draw(rng, name, *known[name], min(level, known[name][1] - 1)) for name in names])
                found = measured(frame, truth)
                ratios.append([found["now"][1] / found[rival][1] for rival in ("before", "bayes")])
            before, paper = np.exp(np.log(ratios).mean(axis=0))
            print(f"Adult, {size} columns, l = {level}: now / before {before:.2f}, now / bayes {paper:.2f}", flush=True)


if __name__ == "__main__":
    main()
