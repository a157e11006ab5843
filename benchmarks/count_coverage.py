"""How often 95% intervals hold the truth: sums over cells of two and three drawn columns, cells, and other verbs.

    python benchmarks/count_coverage.py --releases 400
    python benchmarks/count_coverage.py --releases 400 --data FOLDER --parts sums verbs margins
    python benchmarks/count_coverage.py --releases 400 --data FOLDER --only cmc:500:2 strong:2000:3

`sums`: a table is fixed, its columns are drawn again in sets of l values for every release, and each release is asked
for the blocks into which two or three ranges of values cut the table, and for single cells. Generated tables are `weak`
(columns that have little to do with each other), `strong` (ordered columns that follow each other) and `mixed`
(a mixture of independent tables, with values from common to nearly absent); with a folder that holds census/ and uci/
pairs and triples of their columns follow. `shift` is the mean distance of a shown count from the truth over the
standard error of its interval, `centre` the same of what the interval stands around, of the block where it is largest.

`verbs` asks releases as a recipient does: n rows of a table are drawn with replacement and published by `anonymize`
for every release. Means, differences and counts are those of the rows, coefficients those of the whole table.
`margins` adds a noised margin (epsilon 0.1) of two hidden columns, or one of each, and asks for the table of both.

No constant of the library was chosen on these tables. `off` is how many blocks, groups or coefficients are covered
less than 93% or more than 97% of the time by more than three binomial standard errors.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells

Codes = Sequence[NDArray[np.int64]]
SHAPES = {2: (9, 8), 3: (7, 6, 5)}
REAL = {
    "uci/cmc.csv": (("wife_age", "n_children"), ("wife_education", "husband_education", "standard_of_living")),
    "census/census_kdd_occ_like.csv.gz": (("age", "marital_status"), ("education", "workclass", "occupation_group")),
    "uci/nursery.csv.gz": (("has_nurs", "class"),),
}
Pairs = tuple[tuple[str, str], ...]
VERBS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], Pairs, Pairs]] = {
    "cmc": (
        "uci/cmc.csv",
        ("wife_age", "n_children", "wife_education"),
        ("standard_of_living", "contraceptive_method"),
        (("n_children", "wife_age"), ("n_children", "standard_of_living"), ("wife_education=4", "wife_age")),
        (
            ("n_children ~ wife_age + standard_of_living", "gaussian"),
            ("`contraceptive_method=1` ~ n_children + wife_education", "binomial"),
        ),
    ),
    "census": (
        "census/census_kdd_occ_like.csv.gz",
        ("age", "marital_status", "workclass"),
        ("sex", "income_class"),
        (("age", "marital_status"), ("age", "sex"), ("workclass=Private", "age")),
        (("age ~ sex + marital_status", "gaussian"), ("`income_class=50000+` ~ age + sex", "binomial")),
    ),
    "nursery": (
        "uci/nursery.csv.gz",
        ("has_nurs", "health", "class"),
        ("parents", "social"),
        (("class=priority", "health"), ("class=spec_prior", "parents"), ("has_nurs=critical", "class")),
        (("`class=priority` ~ parents", "binomial"), ("`class=not_recom` ~ has_nurs", "gaussian")),
    ),
}
"""Of a table: file, hidden columns, exact ones, means with their groups, models."""


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
        for age in set(frame.columns) & {"age", "wife_age"}:
            frame = frame.with_columns((pl.col(age).cast(pl.Float64) // (10 if age == "age" else 5)).cast(pl.String))
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


def strays(shares: NDArray[np.float64], releases: int) -> int:
    """How many shares lie outside 93 to 97% by more than chance."""
    slack = 3 * np.sqrt(0.05 * 0.95 / releases)
    return int(((shares < 0.93 - slack) | (shares > 0.97 + slack)).sum())


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
        "off": float(strays(blocks, releases)),
        "blocks": float(blocks.size),
        "mean": float(blocks.mean()),
        "least": float(blocks.min()),
        "cells": float(np.mean(cell_held)),
        "shift": float(np.abs(np.mean(shifts, axis=0)).max()),
        "centre": float(np.abs(np.mean(centres, axis=0)).max()),
    }


class Tally:
    """How often intervals of one verb held the truth; those without ends are counted as refused."""

    def __init__(self) -> None:
        self.held: dict[object, list[bool]] = {}
        self.refused = 0

    def add(self, of: object, low: float | None, high: float | None, truth: float) -> None:
        if low is None or high is None or not np.isfinite(high - low):
            self.refused += 1
        else:
            self.held.setdefault(of, []).append(low - 1e-6 <= truth <= high + 1e-6)

    def line(self, releases: int) -> str:
        often = {of: rows for of, rows in self.held.items() if len(rows) > releases / 4}
        if not often:
            return f"- | - | - of 0 | {self.refused}"
        shares = np.array([np.mean(rows) for rows in often.values()])
        off = sum(strays(np.array([np.mean(rows)]), len(rows)) for rows in often.values())
        every = np.concatenate(list(often.values()))
        return f"{every.mean():.3f} | {shares.min():.3f} | {off} of {len(shares)} | {self.refused}"


def whole(folder: Path, name: str) -> pl.DataFrame:
    """A table with ages in tens (or fives), as the verbs ask for it."""
    file, hidden, exact, _, _ = VERBS[name]
    frame = pl.read_csv(folder / file, infer_schema_length=None).select(*hidden, *exact)
    if name == "cmc":
        return frame.with_columns(pl.col("wife_age") // 5 * 5, pl.col("n_children").clip(0, 8))
    return frame.with_columns(pl.col("age") // 10 * 10) if name == "census" else frame


def released(frame: pl.DataFrame, hidden: Sequence[str], l: int, **more: object) -> nr.Release:  # noqa: E741
    roles = {name: "sensitive" if name in hidden else "plain" for name in frame.columns}
    require = [nr.models.FrequencyLDiversity(on=list(hidden), l=l)]
    policy = nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}, **more)  # type: ignore[arg-type]
    return nr.anonymize(frame, policy)


def verbs(rng: np.random.Generator, folder: Path, name: str, n: int, l: int, releases: int) -> dict[str, Tally]:  # noqa: E741
    """What a recipient finds of samples of one table."""
    population = whole(folder, name)
    _, hidden, _, means, models = VERBS[name]
    open_release = nr.anonymize(population, nr.Policy(attributes=dict.fromkeys(population.columns, "plain")))
    laws = {model: open_release.regress(*model).params for model in models}  # type: ignore[arg-type]
    out = {verb: Tally() for verb in ("mean", "difference", "regress")}
    for _ in range(releases):
        frame = population[rng.integers(0, population.height, n)]
        if any(frame[column].n_unique() <= l for column in hidden):
            continue
        release = released(frame, hidden, l)
        for of, by in means:
            column, _, value = of.partition("=")
            number = (pl.col(column).cast(pl.String) == value).cast(pl.Float64) if value else pl.col(column)
            rows = frame.group_by(pl.col(by).cast(pl.String)).agg(number.mean().alias("truth")).iter_rows()
            truth = dict(rows)
            for row in release.mean(of, by=by).frame.iter_rows(named=True):
                out["mean"].add((of, by, row[by]), row["low"], row["high"], truth[row[by]])
            found = list(release.difference(of, by=by).frame.iter_rows(named=True))
            for row in found[1:]:
                known = truth[row[by]] - truth[found[0][by]]
                out["difference"].add((of, by, found[0][by], row[by]), row["low"], row["high"], known)
        for model, law in laws.items():
            try:
                fit = release.regress(*model)  # type: ignore[arg-type]
            except nr.errors.QueryError:
                out["regress"].refused += 1
                continue
            for row in fit.frame.iter_rows(named=True):
                if row["term"] in law:
                    out["regress"].add((model, row["term"]), row["low"], row["high"], law[row["term"]])
    return out


def margins(rng: np.random.Generator, folder: Path, together: bool, n: int, l: int, releases: int) -> dict[str, Tally]:  # noqa: E741
    """Cells of a table of two hidden columns, of which noised margins are published."""
    names = ["age", "marital_status"]
    frame = whole(folder, "census")
    frame = frame[rng.permutation(frame.height)[:n]].with_columns(pl.col(name).cast(pl.String) for name in names)
    noised = [{"of": of, "epsilon": 0.1} for of in ([names] if together else [[name] for name in names])]
    truth = {row[:2]: row[2] for row in frame.group_by(names).len().iter_rows()}
    out = {"cells above 200": Tally(), "other cells": Tally()}
    values = {name: nr.sensitive(values=sorted(frame[name].unique())) for name in names}
    require = [nr.models.FrequencyLDiversity(on=names, l=l)]
    policy = nr.Policy(attributes=values, require=require, dependence={"most": 1.0}, margins=noised)  # type: ignore[arg-type]
    for _ in range(releases):
        release = nr.anonymize(frame.select(names), policy)
        for row in release.estimate(names).frame.iter_rows(named=True):
            cell = (row[names[0]], row[names[1]])
            known = truth.get(cell, 0)
            kind = "cells above 200" if known > 200 else "other cells"
            out[kind].add(cell, row["low"], row["high"], known)
    return out


def wanted(only: Sequence[str] | None, name: str, n: int, l: int) -> bool:  # noqa: E741
    """Whether a condition is asked for."""
    if not only:
        return True
    cut = [one.rsplit(":", 2) for one in only]
    return any(part in name and (str(n), str(l)) == (records, sets) for part, records, sets in cut)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--data", type=Path, help="a folder with census/ and uci/")
    parser.add_argument("--records", type=int, nargs="+", default=[500, 2000, 10000])
    parser.add_argument("--l", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--parts", nargs="+", default=["sums"], choices=["sums", "verbs", "margins"])
    parser.add_argument("--only", nargs="+", metavar="TABLE:RECORDS:L", help="these conditions; part of a table's name")
    args = parser.parse_args()
    if "sums" in args.parts:
        print_sums(args)
    if args.data is not None and set(args.parts) & {"verbs", "margins"}:
        print_verbs(args)


def print_verbs(args: argparse.Namespace) -> None:
    print("\n| table | records | l | intervals of | mean | least | off | refused fits |")
    print("| --- " * 8 + "|")
    for n in args.records:
        for l in args.l:  # noqa: E741
            tables: dict[str, Callable[[], dict[str, Tally]]] = {}
            rng = np.random.default_rng([33, n, l])
            if "verbs" in args.parts:
                tables |= {name: partial(verbs, rng, args.data, name, n, l, args.releases) for name in VERBS}
            if "margins" in args.parts:
                for name, together in (("margin of both", True), ("margin of each", False)):
                    tables[name] = partial(margins, rng, args.data, together, n, l, args.releases)
            for name, run in tables.items():
                if wanted(args.only, name, n, l):
                    for verb, tally in run().items():
                        print(f"| {name} | {n:,} | {l} | {verb} | {tally.line(args.releases)} |", flush=True)


def print_sums(args: argparse.Namespace) -> None:
    rng, started = np.random.default_rng(33), time.process_time()
    print("| table | records | l | sums: mean | least | off | cells | shift | centre | CPU s |")
    print("| --- " * 10 + "|")
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
                if any(int(v.max()) + 1 <= l for v in values) or not wanted(args.only, name, n, l):
                    continue
                found, now = coverage(rng, values, l, args.releases), time.process_time()
                shown = f"{found['mean']:.3f} | {found['least']:.3f} | {found['off']:.0f} of {found['blocks']:.0f}"
                more = f"{found['cells']:.3f} | {found['shift']:.2f} | {found['centre']:.2f} | {now - started:.1f}"
                print(f"| {name} | {n:,} | {l} | {shown} | {more} |", flush=True)
                started = now


if __name__ == "__main__":
    main()
