"""Mondrian on Adult: loss and CPU seconds, against anonypy and ARX's local recoding, and its growth with the table.

    python benchmarks/mondrian_adult.py --data DIR [--peers PYTHON] [--records N]

DIR holds adult.csv.gz (UCI Adult, complete rows, header), adult_hierarchies/ (ARX's files) and, for the comparison,
arx_outputs/adult_local_k5.csv.gz (ARX's own table). PYTHON is an interpreter that has anonypy (pip install anonypy);
without it that comparison is left out. anonypy takes about two minutes.

NCP: mean over records and quasi-identifiers of (high - low) / range for age and (values covered - 1) / (values - 1)
for the others, which have no hierarchy. Granularity: 1 - mean of (leaves under the node - 1) / (leaves - 1), over the
leaves of the whole hierarchy whether they occur or not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.engines import Plan, Records
from noren.methods import Mondrian
from noren.metrics.general import view_of
from noren.metrics.losses import granularity_score, ncp_loss
from noren.models import DistinctLDiversity, KAnonymity, Model
from noren.schema.column import Column
from noren.schema.domain import Domain, Kind, sort_labels
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role

ROWS = 30_162
SETS = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
TREES = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
NOISE = 0.15
"""Share of cells drawn anew in the tables of the growth curve, so that not all records are copies."""
PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import pandas as pd
from anonypy.anonypy import anonymize
from anonypy.mondrian import Mondrian
path, rows, names, secret = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), sys.argv[4]
k, l = int(sys.argv[5]), int(sys.argv[6])
frame = pd.read_csv(path).head(rows)[[*names, secret]]
for name in [*names[1:], secret]:
    frame[name] = frame[name].astype("category")
begin = time.process_time()
parts = Mondrian(frame, names, secret).partition(k, l, 0.0)
anonymize(frame, parts, names, secret)
seconds = time.process_time() - begin
lost = 0.0
for part in parts:
    inside = frame.loc[part]
    first, whole = inside[names[0]], frame[names[0]]
    lost += len(part) * (first.max() - first.min()) / (whole.max() - whole.min())
    for name in names[1:]:
        lost += len(part) * (inside[name].nunique() - 1) / (frame[name].nunique() - 1)
print(json.dumps([seconds, lost / len(frame) / len(names), len(parts)]))
"""


def load(folder: Path) -> tuple[pl.DataFrame, dict[str, Hierarchy]]:
    path, trees = folder / "adult.csv.gz", folder / "adult_hierarchies"
    for needed in (path, trees):
        if not needed.exists():
            sys.exit(f"{needed} is missing. Give --data a folder with adult.csv.gz and ARX's adult_hierarchies/.")
    frame = pl.read_csv(path, infer_schema_length=0).head(ROWS)
    return frame, {name: Hierarchy.read_csv(trees / f"adult_hierarchy_{name}.csv") for name in TREES}


def coded(frame: pl.DataFrame, quasi: tuple[str, ...], secret: str, trees: dict[str, Hierarchy]) -> Records:
    columns, codes = {}, {}
    for name in (*quasi, secret):
        role = Role.SENSITIVE if name == secret else Role.QUASI_IDENTIFIER
        tree = None if name == secret else trees.get(name)
        cells = frame[name].to_list()
        kind: Kind = "integer" if name == "age" else "string"
        values = tree.leaves if tree is not None else tuple(sort_labels(sorted(set(cells)), kind))
        domain = Domain(values, kind, "data")
        codes[name] = np.array([domain.index[cell] for cell in cells])
        columns[name] = Column(role=role, hierarchy=tree).over(name, domain)
    return Records(len(frame), columns, codes)


def order(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(7).permutation(n)


def timed(table: Records, method: Mondrian, requirements: list[Model], runs: int = 5) -> tuple[Plan, float]:
    """The plan, and median CPU seconds of several runs, after one that loads the kernels."""
    plan = method.recode(table, requirements, order)
    seconds = []
    for _ in range(runs):
        begin = time.process_time()
        method.recode(table, requirements, order)
        seconds.append(time.process_time() - begin)
    return plan, float(np.median(seconds))


def peer(python: str, folder: Path, distinct: int) -> tuple[float, float, int]:
    arguments = [str(folder / "adult.csv.gz"), str(ROWS), ",".join(SETS), "salary-class", "5", str(distinct)]
    done = subprocess.run([python, "-c", PEER, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"anonypy failed in {python}: {done.stderr.strip().splitlines()[-1]}")
    seconds, loss, count = json.loads(done.stdout)
    return seconds, loss, count


def sets(frame: pl.DataFrame, folder: Path, python: str | None) -> None:
    table = coded(frame, SETS, "salary-class", {})
    k5, l2 = KAnonymity(k=5), DistinctLDiversity(l=2, on=("salary-class",))
    cases: tuple[tuple[str, list[Model], int], ...] = (("k = 5", [k5], 0), ("k = 5, distinct l = 2", [k5, l2], 2))
    for title, requirements, distinct in cases:
        print(f"\n{title}, 8 quasi-identifiers without hierarchies: NCP, CPU seconds")
        found = {}
        for name, method in variants().items():
            plan, found[name] = timed(table, method, requirements)
            print(f"  {name:<24}{ncp_loss(view_of(table, plan)):.4f}{found[name]:>10.3f}", flush=True)
        if python is None:
            print("  anonypy left out: give --peers an interpreter that has it.")
            continue
        seconds, loss, count = peer(python, folder, distinct)
        print(f"  {'anonypy':<24}{loss:.4f}{seconds:>10.1f}   {count} classes")
        ratio = seconds / found["default"]
        print(f"  anonypy takes {ratio:.0f} times the default's CPU seconds (one run against the median of five)")


def variants() -> dict[str, Mondrian]:
    return {
        "cuts alone": Mondrian(refinement=0),
        "default": Mondrian(),
        "refinement = 5": Mondrian(refinement=5),
        "relaxed": Mondrian(strict=False),
        "relaxed, refinement = 5": Mondrian(strict=False, refinement=5),
    }


def granularity(frame: pl.DataFrame, trees: dict[str, Hierarchy], folder: Path) -> None:
    print("\nk = 5, 8 quasi-identifiers with ARX's hierarchies: granularity, CPU seconds")
    table = coded(frame, TREES, "occupation", trees)
    for name, method in variants().items():
        plan, seconds = timed(table, method, [KAnonymity(k=5)])
        print(f"  {name:<24}{granularity_score(view_of(table, plan)):.4f}{seconds:>10.3f}", flush=True)
    path = folder / "arx_outputs" / "adult_local_k5.csv.gz"
    if not path.exists():
        print(f"  ARX left out: {path} is missing.")
        return
    theirs = pl.read_csv(path, separator=";", infer_schema_length=0)
    lost = 0.0
    for name in TREES:
        levels, leaves = trees[name].levels, len(trees[name].leaves)
        under: dict[str, int] = {}
        for level in levels:
            for label in dict.fromkeys(level):
                under.setdefault(label, level.count(label))
        lost += float(np.mean([(under[cell] - 1) / (leaves - 1) for cell in theirs[name].to_list()]))
    print(f"  {'ARX, local recoding':<24}{1 - lost / len(TREES):.4f}")


def growth(frame: pl.DataFrame, largest: int) -> None:
    print("\ngrowth, k = 5, no hierarchies, default: records, CPU seconds, microseconds per record, NCP")
    base = coded(frame, SETS, "salary-class", {})
    rng = np.random.default_rng(1)
    n = 31_250
    while n <= largest:
        rows = rng.integers(0, base.n, n)
        codes = {}
        for name, column in base.codes.items():
            other = column[rng.integers(0, base.n, n)]
            codes[name] = np.where(rng.random(n) < NOISE, other, column[rows])
        table = Records(n, base.columns, codes)
        plan, seconds = timed(table, Mondrian(), [KAnonymity(k=5)], runs=1)
        loss = ncp_loss(view_of(table, plan))
        print(f"  {n:>9,}{seconds:>9.2f}{seconds / n * 1e6:>8.2f}{loss:>9.4f}", flush=True)
        n *= 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--peers", help="an interpreter that has anonypy")
    parser.add_argument("--records", type=int, default=2_000_000, help="largest table of the growth curve")
    args = parser.parse_args()
    frame, trees = load(args.data)
    print(f"Adult, first {len(frame):,} complete rows")
    sets(frame, args.data, args.peers)
    granularity(frame, trees, args.data)
    growth(frame, args.records)


if __name__ == "__main__":
    main()
