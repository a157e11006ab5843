"""What a noised margin of epsilon 0.1 (and 1) buys beside decoys: tables of one, two and three columns, and regression.

    python benchmarks/noised_margins.py --releases 40

Generated tables with three hidden columns (6, 7 and 5 values) that depend on each other, in sets of l = 2 and 3. The
margin is of the first two columns. Compared are the release without margins, with one, and the noised margin alone.
L1 is the sum of absolute errors over the number of records; errors of a slope are root mean squares against the law
that the table was drawn from. No constant of the library was chosen on these tables.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

import noren as nr

NAMES = ("job", "ill", "pay")
SIZES = (6, 7, 5)
SLOPE = 0.3


def drawn(rng: np.random.Generator, n: int) -> pl.DataFrame:
    job = rng.choice(6, n, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    ill = np.clip(np.round(1.5 + SLOPE * job + rng.normal(0, 1.2, n)), 0, 6).astype(int)
    pay = np.clip(np.round(1 + 0.4 * job - 0.2 * ill + rng.normal(0, 1, n)), 0, 4).astype(int)
    return pl.DataFrame({"job": job, "ill": ill, "pay": pay})


def released(frame: pl.DataFrame, l: int, epsilon: float | None) -> nr.Release:  # noqa: E741
    roles = {name: nr.sensitive(values=list(range(size))) for name, size in zip(NAMES, SIZES, strict=True)}
    margins = [] if epsilon is None else [{"of": ["job", "ill"], "epsilon": epsilon}]
    require = [nr.models.FrequencyLDiversity(on=list(NAMES), l=l)]
    return nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}, margins=margins))


def truth(frame: pl.DataFrame, by: Sequence[str]) -> NDArray[np.float64]:
    shape = [SIZES[NAMES.index(name)] for name in by]
    flat = np.ravel_multi_index(tuple(frame[name].to_numpy() for name in by), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=40)
    args = parser.parse_args()
    rng, started = np.random.default_rng(5), time.process_time()
    big = drawn(rng, 2_000_000)
    slope = float(np.polyfit(big["job"], big["ill"], 1)[0])
    asked = (("ill",), ("job", "ill"), NAMES)
    print("| records | l | epsilon | L1 1-way | 2-way | 3-way | cover 1, 2, 3-way | slope: error | covers |")
    print("| --- " * 9 + "|")
    for n in (2_000, 20_000):
        for l in (2, 3):  # noqa: E741
            for epsilon in (None, 0.1, 1.0):
                errors: list[list[float]] = [[] for _ in asked]
                inside: list[list[float]] = [[] for _ in asked]
                slopes: list[tuple[float, bool]] = []
                alone: list[float] = []
                for _ in range(args.releases):
                    frame = drawn(rng, n)
                    release = released(frame, l, epsilon)
                    for k, by in enumerate(asked):
                        table, true = release.estimate(by).frame, truth(frame, by)
                        errors[k].append(float(np.abs(table["count"].to_numpy() - true).sum() / n))
                        low, high = table["low"].to_numpy(), table["high"].to_numpy()
                        inside[k].append(float(((low <= true + 1e-9) & (true <= high + 1e-9)).mean()))
                    if epsilon is not None:
                        margin = np.maximum(release.margins[0]["count"].to_numpy(), 0)
                        alone.append(float(np.abs(margin - truth(frame, asked[1])).sum() / n))
                    try:
                        row = release.regress("ill ~ job").frame.row(1, named=True)
                        slopes.append((row["coef"] - slope, row["low"] <= slope <= row["high"]))
                    except nr.errors.QueryError:
                        continue
                wrong, covers = np.array([s for s, _ in slopes]), np.mean([c for _, c in slopes])
                shown = [f"{np.mean(each):.4f}" for each in errors]
                if alone:
                    shown[1] += f" ({np.mean(alone):.4f} alone)"
                cover = ", ".join(f"{np.mean(each):.1%}" for each in inside)
                cells = [
                    f"{n:,}",
                    l,
                    epsilon or "none",
                    *shown,
                    cover,
                    f"{np.sqrt((wrong**2).mean()):.4f}",
                    f"{covers:.0%}",
                ]
                print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    print(
        f"\n{time.process_time() - started:.0f} CPU seconds, {args.releases} releases each; the law's slope {slope:.4f}"
    )


if __name__ == "__main__":
    main()
