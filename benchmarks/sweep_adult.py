"""SWEEP on Adult: utility at seven (tau,l) requirements, speed, and how time grows with the table.

    python benchmarks/sweep_adult.py --data DIR [--rows 1000000]

DIR holds adult.csv.gz and adult_hierarchies/ (ARX's layout). Seven quasi-identifiers, occupation is sensitive. Utility
is the mean of 1 / leaves over all cells; that of quasi-identifiers and of occupation is printed apart, because a table
of exact quasi-identifiers and suppressed secrets scores high on their mean. The first 30,162 rows give the figures
that are compared with the reference: records still open after the base vector (no tie can change them) exactly, the
utilities within 0.005. All 45,222 rows give CPU seconds, which should stay below 2. Larger tables are Adult rows drawn
at random with some noise in age and education.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from noren.engines import Plan, Recode, Records
from noren.engines.shuffle import permutation
from noren.methods import Sweep
from noren.methods.sweep import Run
from noren.methods.sweep.bounds import bounds_of
from noren.models import TauLDiversity
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.secret import Keystream

QUASI = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
SECRET = "occupation"
TRAINING = 30_162
REFERENCE = {
    (0.5, 2): (0.949, 9607),
    (0.5, 3): (0.927, 12918),
    (0.4, 4): (0.895, 16203),
    (0.3, 5): (0.844, 19909),
    (0.25, 6): (0.787, 22533),
    (0.2, 7): (0.696, 24842),
    (0.15, 8): (0.634, None),
}
"""(tau,l): utility, and records open after the base vector."""
CHUNKED = ((0.2, 7), 16, 0.785)
CHUNKS = (7, 16, 64, 256, 1024, 4096)
"""The knob between generalised quasi-identifiers and generalised secrets."""
GROWTH = ((0.5, 2), (0.3, 5), (0.15, 8))


def load(folder: Path) -> Records:
    path = folder / "adult.csv.gz"
    trees = folder / "adult_hierarchies"
    if not path.exists() or not trees.is_dir():
        sys.exit(f"{path} or {trees} is missing. Give --data a folder that holds adult.csv.gz and adult_hierarchies/.")
    frame = pl.read_csv(path, infer_schema_length=0)
    columns, codes = {}, {}
    for name in (*QUASI, SECRET):
        tree = Hierarchy.read_csv(trees / f"adult_hierarchy_{name}.csv")
        code = frame[name].replace_strict(list(tree.leaves), range(len(tree.leaves)), return_dtype=pl.Int64)
        codes[name] = code.to_numpy()
        role = Role.SENSITIVE if name == SECRET else Role.QUASI_IDENTIFIER
        columns[name] = Column(role=role, hierarchy=tree).over(name, Domain(tree.leaves))
    return Records(len(frame), columns, codes)


def head(table: Records, n: int) -> Records:
    return Records(n, table.columns, {name: codes[:n] for name, codes in table.codes.items()})


def grown(table: Records, n: int) -> Records:
    """Rows drawn at random, age up to six years off, half of the educations drawn anew."""
    rng = np.random.default_rng(7)
    pick = rng.integers(0, table.n, n)
    codes = {name: column[pick] for name, column in table.codes.items()}
    oldest = len(table.columns["age"].domain) - 1
    codes["age"] = np.clip(codes["age"] + rng.integers(-6, 7, n), 0, oldest)
    other = rng.random(n) < 0.5
    codes["education"][other] = rng.integers(0, len(table.columns["education"].domain), int(other.sum()))
    return Records(n, table.columns, codes)


def order(n: int) -> np.ndarray:
    return permutation(n, Keystream())


def timed(table: Records, tau: float, l: int, chunk: int | None = None) -> tuple[Plan, float]:  # noqa: E741
    begin = time.process_time()
    plan = Sweep(chunk=chunk).recode(table, [TauLDiversity(on=SECRET, tau=tau, l=l)], order)
    return plan, time.process_time() - begin


def utilities(plan: Plan) -> tuple[float, float, float]:
    """Of the quasi-identifiers, of the secret, and of all eight columns together."""

    def mean(name: str) -> float:
        column = plan.of(name)
        return float((1 / column.nodes.sizes[column.data]).mean()) if isinstance(column, Recode) else 1.0

    quasi = sum(mean(name) for name in QUASI)
    return quasi / len(QUASI), mean(SECRET), (quasi + mean(SECRET)) / (len(QUASI) + 1)


def open_after_base(table: Records, tau: float, l: int) -> int:  # noqa: E741
    bounds = bounds_of(table, [TauLDiversity(on=SECRET, tau=tau, l=l)])
    run = Run.of(table, QUASI, [table.columns[name].tree for name in QUASI], bounds, order)  # type: ignore[misc]
    run.close(slice(0, 1), 1, -1)
    return int((run.classes < 0).sum())


def compare(table: Records) -> None:
    print(f"\nfirst {table.n:,} rows: utility of all cells (reference), quasi-identifiers, {SECRET}; open after base")
    for (tau, level), (utility, waiting) in REFERENCE.items():
        plan, _ = timed(table, tau, level)
        quasi, secret, both = utilities(plan)
        found = open_after_base(table, tau, level)
        verdict = "ok" if abs(both - utility) <= 0.005 and waiting in (None, found) else "DIFFERS"
        apart = f"{quasi:.4f}  {secret:.4f}"
        print(f"  ({tau}, {level}): {both:.4f} ({utility})  {apart}  {found:,} ({waiting or '-'})  {verdict}")
    (tau, level), stated, utility = CHUNKED
    for chunk in CHUNKS:
        quasi, secret, both = utilities(timed(table, tau, level, chunk)[0])
        reference = f" ({utility})" if chunk == stated else ""
        print(f"  ({tau}, {level}), chunk = {chunk}: {both:.4f}{reference}  {quasi:.4f}  {secret:.4f}")


def speed(table: Records) -> None:
    print(f"\nall {table.n:,} rows: CPU seconds")
    print("  " + "   ".join(f"({tau}, {level}): {timed(table, tau, level)[1]:.2f}" for tau, level in REFERENCE))


def growth(table: Records, rows: int) -> None:
    print("\nlarger tables: CPU seconds at " + ", ".join(f"({tau}, {level})" for tau, level in GROWTH))
    n = 125_000
    while n <= rows:
        larger = grown(table, n)
        radix = [len(table.columns[name].domain) for name in QUASI]
        distinct = len(np.unique(np.ravel_multi_index([larger.codes[name] for name in QUASI], radix)))
        seconds = "   ".join(f"{timed(larger, tau, level)[1]:6.2f}" for tau, level in GROWTH)
        print(f"  {n:>9,} rows, {distinct:>8,} distinct quasi-identifiers: {seconds}", flush=True)
        n = rows if n < rows < 2 * n else 2 * n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1_000_000, help="largest table of the growth curve")
    args = parser.parse_args()
    table = load(args.data)
    timed(head(table, 2000), 0.15, 8)
    compare(head(table, TRAINING))
    speed(table)
    growth(table, args.rows)


if __name__ == "__main__":
    main()
