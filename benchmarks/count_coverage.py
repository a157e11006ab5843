"""How often 95% intervals of counts hold the truth: sums over cells of two and three drawn columns, and the cells.

    python benchmarks/count_coverage.py --releases 200
    python benchmarks/count_coverage.py --releases 200 --data FOLDER

A table is fixed, its columns are drawn again in sets of l values for every release, and each release is asked for the
blocks into which two or three ranges of values cut the table, and for single cells. Generated tables are `weak`
(columns that have little to do with each other), `strong` (ordered columns that follow each other) and `mixed`
(a mixture of independent tables, with values from common to nearly absent); with a folder that holds adult.csv.gz,
census/ and uci/ pairs and triples of their columns follow. No constant of the library was chosen on these tables.
`shift` is the mean distance of a shown count from the truth over the standard error of its interval, `centre` the
same of what the interval stands around, of the block where it is largest.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells

Codes = Sequence[NDArray[np.int64]]
SHAPES = {2: (9, 8), 3: (7, 6, 5)}
REAL = {
    "adult.csv.gz": (("education", "age"), ("marital-status", "occupation"), ("workclass", "age", "marital-status")),
    "census/census_kdd_occ_like.csv.gz": (("age", "marital_status"), ("education", "workclass", "occupation_group")),
    "uci/nursery.csv.gz": (("has_nurs", "class"),),
}
MOST_VALUES = 16


def generated(kind: str, rng: np.random.Generator, n: int, shape: Sequence[int]) -> Codes:
    """The values of n records."""
    if kind == "strong":
        place = rng.normal(0, 1, n)
        near = [place + rng.normal(0, 0.5, n) for _ in shape]
        return [np.clip(((z + 2) / 4 * d).astype(np.int64), 0, d - 1) for z, d in zip(near, shape, strict=True)]
    parts = 4 if kind == "mixed" else 1
    laws = [rng.dirichlet(np.full(d, 0.5 if kind == "mixed" else 2.0), parts) for d in shape]
    of = rng.integers(0, parts, n)
    return [np.array([rng.choice(law.shape[1], p=law[k]) for k in of]) for law in laws]


def real(folder: Path) -> Iterator[tuple[str, Codes]]:
    """Pairs and triples of columns of the tables in the folder."""
    for name, chosen in REAL.items():
        if not (folder / name).exists():
            continue
        frame = pl.read_csv(folder / name, infer_schema=False)
        if "age" in frame.columns and frame["age"].n_unique() > MOST_VALUES:
            frame = frame.with_columns((pl.col("age").cast(pl.Float64) // 10).cast(pl.String))
        for columns in chosen:
            codes = [frame[c].rank("dense").to_numpy().astype(np.int64) - 1 for c in columns]
            yield f"{name.split('/')[-1].split('.')[0]}: {' x '.join(columns)}", codes


def drawn(rng: np.random.Generator, values: NDArray[np.int64], d: int, l: int, groups: NDArray | None) -> Axis:  # noqa: E741
    """A column in sets of l values."""
    keys = rng.random((len(values), d))
    keys[np.arange(len(values)), values] = -1.0
    sets = np.argpartition(keys, l - 1, axis=1)[:, :l]
    design = DecoyDesign(d=d, eta=l, p=1.0)
    return Axis.drawn("a", SetCells.from_codes(d, sets), design, groups, None if groups is None else 3)


def asked(rng: np.random.Generator, d: int) -> NDArray[np.int64]:
    """Three ranges of values, numbered."""
    ends = np.sort(rng.choice(np.arange(1, d), 2, replace=False))
    return np.searchsorted(ends, np.arange(d), side="right").astype(np.int64)


def coverage(rng: np.random.Generator, values: Codes, l: int, releases: int) -> dict[str, float]:  # noqa: E741
    """What is found of one table."""
    sizes = [int(v.max()) + 1 for v in values]
    cuts = [asked(rng, d) for d in sizes]
    truth = np.zeros((3,) * len(sizes))
    np.add.at(truth, tuple(cut[v] for cut, v in zip(cuts, values, strict=True)), 1.0)
    cells = np.zeros(sizes)
    np.add.at(cells, tuple(values), 1.0)
    held, cell_held, shifts, centres = [], [], [], []
    for _ in range(releases):
        axes = [drawn(rng, v, d, l, cut) for v, d, cut in zip(values, sizes, cuts, strict=True)]
        found = tabulate(axes)
        held.append((found.low - 1e-6 <= truth) & (truth <= found.high + 1e-6))
        shifts.append((found.counts - truth) / np.maximum(found.std_error, 1e-9))
        centres.append((found.centre - truth) / np.maximum(found.std_error, 1e-9))
        single = tabulate([Axis.drawn("a", axis.cells, axis.design) for axis in axes])
        cell_held.append((single.low - 1e-6 <= cells) & (cells <= single.high + 1e-6))
    blocks = np.mean(held, axis=0)
    return {
        "mean": float(blocks.mean()),
        "least": float(blocks.min()),
        "cells": float(np.mean(cell_held)),
        "shift": float(np.abs(np.mean(shifts, axis=0)).max()),
        "centre": float(np.abs(np.mean(centres, axis=0)).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--data", type=Path, help="a folder with adult.csv.gz, census/ and uci/")
    parser.add_argument("--records", type=int, nargs="+", default=[500, 2000, 10000])
    parser.add_argument("--l", type=int, nargs="+", default=[2, 3, 5])
    args = parser.parse_args()
    rng, started = np.random.default_rng(33), time.process_time()
    print("| table | records | l | sums: mean | least | cells | shift | centre | CPU s |")
    print("| --- " * 9 + "|")
    for n in args.records:
        tables = [
            (f"{kind}, {columns} columns", generated(kind, rng, n, SHAPES[columns]))
            for columns in SHAPES
            for kind in ("weak", "strong", "mixed")
        ]
        if args.data is not None:
            for name, codes in real(args.data):
                rows = rng.permutation(len(codes[0]))[:n]
                tables.append((name, [np.unique(code[rows], return_inverse=True)[1] for code in codes]))
        for name, values in tables:
            for l in args.l:  # noqa: E741
                if any(int(v.max()) + 1 <= l for v in values):
                    continue
                found, now = coverage(rng, values, l, args.releases), time.process_time()
                shown = " | ".join(f"{found[k]:.3f}" for k in ("mean", "least", "cells"))
                print(f"| {name} | {n:,} | {l} | {shown} | {found['shift']:.2f} | {found['centre']:.2f} "
                      f"| {now - started:.1f} |", flush=True)  # fmt: skip
                started = now


if __name__ == "__main__":
    main()
