"""Full-domain generalisation on Adult: against ARX's optimum, anjana's time and the (c,l)-diversity of paper 004.

    python benchmarks/incognito_adult.py --data DIR [--peers PYTHON]

DIR holds adult.csv.gz and adult_hierarchies/ (ARX's files); arx_outputs/adult_k5_s5.csv.gz in it is ARX's own table.
PYTHON is an interpreter that has anjana (pip install anjana); without it the comparison of times is left out.

Granularity here is 1 - the mean over all cells of (leaves under the node - 1) / (leaves of the hierarchy - 1), over
the leaves of the whole hierarchy whether they occur or not, with 1 for every cell of a dropped record.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.engines import Records
from noren.errors import RequirementNotMet
from noren.methods import Incognito
from noren.methods.incognito.search import FullDomain, best_full_domain
from noren.methods.requirements import compiled
from noren.models import KAnonymity, RecursiveCLDiversity
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role

ROWS = 30_162
ARX = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
PAPER = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
SECRET = "occupation"
PUBLISHED = {(0.5, 2): "0.439", (0.5, 3): "0.439", (0.4, 4): "0.306", (0.3, 5): "0.345", (0.25, 6): "0.358",
             (0.2, 7): "not eligible", (0.15, 8): "not eligible"}  # fmt: skip
PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import pandas as pd
from anjana.anonymity import k_anonymity
folder, rows, names, percent = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), int(sys.argv[4])
frame = pd.read_csv(folder + "/adult.csv.gz", dtype=str).head(rows)[names]
trees = {}
for name in names:
    tree = pd.read_csv(f"{folder}/adult_hierarchies/adult_hierarchy_{name}.csv", sep=";", header=None, dtype=str)
    trees[name] = {level: tree[level].values for level in tree.columns}
begin = time.process_time()
out = k_anonymity(frame, [], names, 5, percent, trees)
print(json.dumps([time.process_time() - begin, len(out), out[names].drop_duplicates().shape[0]]))
"""


def load(folder: Path) -> tuple[pl.DataFrame, dict[str, Hierarchy]]:
    path = folder / "adult.csv.gz"
    trees = folder / "adult_hierarchies"
    for needed in (path, trees):
        if not needed.exists():
            sys.exit(f"{needed} is missing. Give --data a folder with adult.csv.gz and ARX's adult_hierarchies/.")
    names = sorted({*ARX, *PAPER, SECRET})
    frame = pl.read_csv(path, infer_schema_length=0).head(ROWS)
    return frame, {name: Hierarchy.read_csv(trees / f"adult_hierarchy_{name}.csv") for name in names}


def coded(frame: pl.DataFrame, trees: dict[str, Hierarchy], names: tuple[str, ...]) -> Records:
    """The quasi-identifiers over all leaves, the sensitive column over the values that occur."""
    columns: dict[str, Column] = {}
    codes: dict[str, NDArray] = {}
    for name in (*names, SECRET):
        tree = trees[name] if name != SECRET else None
        values = tree.leaves if tree is not None else tuple(sorted(frame[name].unique().to_list()))
        codes[name] = frame[name].cast(pl.Enum(values)).to_physical().to_numpy().astype(np.int64)
        domain = Domain(values, "integer" if name == "age" else "string")
        role = Role.SENSITIVE if name == SECRET else Role.QUASI_IDENTIFIER
        columns[name] = Column(role=role, hierarchy=tree).over(name, domain)
    return Records(len(frame), columns, codes)


def granularity_of(folder: Path, trees: dict[str, Hierarchy]) -> None:
    """ARX's own table by the convention above."""
    path = folder / "arx_outputs" / "adult_k5_s5.csv.gz"
    if not path.exists():
        print(f"  {path} is missing: ARX's table not counted again")
        return
    frame = pl.read_csv(path, separator=";", infer_schema_length=0)
    total = 0.0
    for name in ARX:
        levels = trees[name].levels
        leaves = {label: level.count(label) for level in levels for label in set(level)}
        cells = np.array([leaves[label] for label in frame[name].to_list()])
        total += float((cells - 1).mean() / (len(levels[0]) - 1))
    stars = np.all([(frame[name] == "*").to_numpy() for name in ARX], axis=0)
    classes = frame.filter(~stars).select(ARX).n_unique()
    print(f"  ARX's table:  granularity {1 - total / len(ARX):.4f}, {classes} classes, {stars.sum():,} suppressed")


def cpu_seconds(work: Callable[[], object], times: int = 5) -> float:
    """Least CPU time of several runs after a first one."""
    work()
    spent = []
    for _ in range(times):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return min(spent)


def against_arx(folder: Path, frame: pl.DataFrame, trees: dict[str, Hierarchy]) -> None:
    print("\n5-anonymity, 8 quasi-identifiers, at most 5% of records dropped")
    table = coded(frame, trees, ARX)
    found = best_full_domain(table, compiled(table, [KAnonymity(k=5)]), suppression=0.05)
    said = f"granularity {1 - found.loss:.4f}, {found.classes} classes, {found.dropped:,} dropped"
    print(f"  Incognito:    {said} (levels {tuple(found.levels.values())}, {found.tested} tested)")
    granularity_of(folder, trees)


def against_anjana(folder: Path, frame: pl.DataFrame, trees: dict[str, Hierarchy], peers: str | None) -> None:
    print("\nCPU seconds for 5-anonymity, 8 quasi-identifiers (ours: warm, least of five)")
    table, need = coded(frame, trees, ARX), [KAnonymity(k=5)]
    coding = cpu_seconds(lambda: coded(frame, trees, ARX))
    for suppression in (0.0, 0.05):
        method = Incognito(suppression=suppression)
        ours = cpu_seconds(lambda method=method: method.recode(table, need, np.arange))  # type: ignore[misc]
        print(f"  suppression {suppression:.0%}: Incognito {ours:.3f} + {coding:.3f} for coding", end="")
        if peers is None:
            print("; anjana not asked (--peers PYTHON)")
            continue
        command = [peers, "-c", PEER, str(folder), str(ROWS), ",".join(ARX), str(round(suppression * 100))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"; anjana failed in {peers}: {done.stderr.strip().splitlines()[-1:]}")
            continue
        theirs, rows, classes = json.loads(done.stdout.strip().splitlines()[-1])
        factor = theirs / (ours + coding)
        print(f"; anjana {theirs:.2f} ({rows:,} rows, {classes} classes): {theirs / ours:.0f} and {factor:.0f} times")


def excess_of(hists: NDArray, tau: float, l: int) -> float | None:  # noqa: E741
    """Excessive protection of a release (definition 35), or None where a class breaks (tau,l)-diversity."""
    k = np.arange(1, hists.shape[1] + 1)
    bound = np.where(k <= l, tau + (1 - tau) * (k - 1) / (l - 1), 1.0)
    reached = np.cumsum(-np.sort(-hists, axis=1), axis=1) / hists.sum(axis=1, keepdims=True)
    return float(np.abs(bound - reached).sum(axis=1).min()) if (reached <= bound + 1e-9).all() else None


def histograms(table: Records, found: FullDomain) -> NDArray:
    """(classes, values) of the sensitive column."""
    nodes = [found.trees[name].at[level][table.codes[name]] for name, level in found.levels.items()]
    _, classes = np.unique(np.stack(nodes, axis=1), axis=0, return_inverse=True)
    m = len(table.columns[SECRET].domain)
    return np.bincount(classes.ravel() * m + table.codes[SECRET], minlength=m * (classes.max() + 1)).reshape(-1, m)


def utility_of(table: Records, found: FullDomain) -> float:
    """um: mean over cells, the exact sensitive ones among them, of 1 / leaves."""
    parts = [
        (1 / found.trees[n].nodes.sizes[found.trees[n].at[h][table.codes[n]]]).mean() for n, h in found.levels.items()
    ]
    return float(sum(parts) + 1) / (len(parts) + 1)


def against_paper(frame: pl.DataFrame, trees: dict[str, Hierarchy], loss: str, most: float) -> None:
    """Every (c,l) is searched; of the releases that satisfy (tau,l) the one with least excessive protection counts."""
    table = coded(frame, trees, PAPER)
    grid = [c for c in (*np.arange(1, 11) / 10, *np.arange(3, 41) / 2) if c <= most]
    begin = time.process_time()
    releases: dict[tuple[int, ...], tuple[float, NDArray, str]] = {}
    for l in range(2, len(table.columns[SECRET].domain) + 1):  # noqa: E741
        for c in grid:
            need = compiled(table, [RecursiveCLDiversity(on=SECRET, c=c, l=l)])
            try:
                found = best_full_domain(table, need, loss)
            except RequirementNotMet:
                continue
            levels = tuple(found.levels.values())
            if levels not in releases:
                releases[levels] = utility_of(table, found), histograms(table, found), f"c = {c:g}, l = {l}"
    searches = len(grid) * (len(table.columns[SECRET].domain) - 1)
    spent = time.process_time() - begin
    print(f"\nrecursive (c,l)-diversity, loss = {loss}, c up to {most:g}: {searches} searches, "
          f"{len(releases)} releases, {spent:.1f} CPU s")  # fmt: skip
    for (tau, l), paper in PUBLISHED.items():  # noqa: E741
        eligible = []
        for levels, (utility, hists, where) in releases.items():
            excess = excess_of(hists, tau, l)
            if excess is not None:
                eligible.append((round(excess, 9), -utility, levels, where))
        if not eligible:
            print(f"  ({tau:g},{l}): not eligible                                   table: {paper}")
            continue
        excess, negative, levels, where = min(eligible)
        print(f"  ({tau:g},{l}): um {-negative:.3f}, excess {excess:.3f} at {where}, levels {levels}; table: {paper}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--peers", help="interpreter that has anjana")
    args = parser.parse_args()
    frame, trees = load(args.data)
    print(f"Adult, first {len(frame):,} complete rows")
    against_arx(args.data, frame, trees)
    against_anjana(args.data, frame, trees, args.peers)
    for loss, most in (("height", 20.0), ("granularity", 20.0), ("granularity", 10.0)):
        against_paper(frame, trees, loss, most)


if __name__ == "__main__":
    main()
