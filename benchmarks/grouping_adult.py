"""Methods that group records by their secrets, on Adult: 1-D (Hilbert), TP+, TP, Anatomy and Rating.

    python benchmarks/grouping_adult.py --data DIR

DIR holds adult.csv.gz (UCI Adult, complete rows, header) and adult_hierarchies/ in ARX's layout. Seven
quasi-identifiers, sensitive: occupation. Utility is the mean of 1 / leaves(node) over records and eight columns; for
every (tau, l) the smallest simple l that satisfies it is used. QI utility leaves the sensitive column out, whose own
utility is 1 because no method here generalises it.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.engines import Plan, Recode, Records
from noren.errors import RequirementNotMet
from noren.methods import Anatomy, Hilbert, Rating, ThreePhase
from noren.methods.base import ClassMethod
from noren.methods.three_phase import SecretCounts, Task
from noren.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity, Model, TauLDiversity
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role

QUASI = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
SECRET = "occupation"
REQUIRED = ((0.5, 2), (0.5, 3), (0.4, 4), (0.3, 5), (0.25, 6), (0.2, 7), (0.15, 8))
METHODS: dict[str, ClassMethod] = {"1-D": Hilbert(blind=False), "TP+": ThreePhase(), "TP": ThreePhase(refine=False)}


def order(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(n).permutation(n)


def load(folder: Path) -> Records:
    path = folder / "adult.csv.gz"
    trees = folder / "adult_hierarchies"
    if not path.exists() or not trees.is_dir():
        sys.exit(f"{folder} must hold adult.csv.gz (UCI Adult, complete rows, header) and adult_hierarchies/.")
    frame = pl.read_csv(path, infer_schema_length=0).head(30_162)
    columns, codes = {}, {}
    for name in (*QUASI, SECRET):
        tree = Hierarchy.read_csv(trees / f"adult_hierarchy_{name}.csv")
        place = {leaf: code for code, leaf in enumerate(tree.leaves)}
        codes[name] = np.array([place[value] for value in frame[name].to_list()], np.int64)
        domain = Domain(tree.leaves, "integer" if name == "age" else "string", "policy")
        role = Role.SENSITIVE if name == SECRET else Role.QUASI_IDENTIFIER
        columns[name] = Column(role=role, hierarchy=tree).over(name, domain)
    return Records(len(frame), columns, codes)


def enlarged(table: Records, n: int) -> Records:
    """A larger table: rows drawn again, each with a new age near the old one."""
    rng = np.random.default_rng(11)
    rows = rng.integers(0, table.n, n)
    codes = {name: column[rows] for name, column in table.codes.items()}
    codes["age"] = np.clip(codes["age"] + rng.integers(-3, 4, n), 0, len(table.columns["age"].domain) - 1)
    return Records(n, table.columns, codes)


def utility(plan: Plan) -> float:
    """The mean of 1 / leaves(node) over records and quasi-identifiers."""
    shares = []
    for column in plan.recoded.values():
        assert isinstance(column, Recode)
        shares.append(float((1 / column.nodes.sizes[column.data]).mean()))
    return float(np.mean(shares))


def timed(method: ClassMethod, table: Records, required: list[Model]) -> tuple[Plan, float]:
    begin = time.process_time()
    plan = method.recode(table, required, order)
    return plan, time.process_time() - begin


def generalisation(table: Records) -> None:
    print("\nutility um / QI utility alone / CPU seconds (smallest l that satisfies)")
    print(f"{'(tau, l)':<12}" + "".join(f"{name:>34}" for name in METHODS))
    for tau, l in REQUIRED:
        cells = []
        for method in METHODS.values():
            try:
                plan, seconds = timed(method, table, [TauLDiversity(on=SECRET, tau=tau, l=l)])
            except RequirementNotMet:
                cells.append("not eligible")
                continue
            quasi = utility(plan)
            chosen = plan.notes[0].rsplit("= ", 1)[1]
            cells.append(f"{(7 * quasi + 1) / 8:.4f} / {quasi:.4f} / {seconds:.2f} (l = {chosen})")
        print(f"{f'({tau}, {l})':<12}" + "".join(f"{cell:>34}" for cell in cells))


def residues(table: Records) -> None:
    from noren.methods.three_phase import three_phase

    print("\nTP: records in the residue after phases 1, 2 and 3, and rounds of phase 3")
    for l in range(2, 8):
        task = Task.of(table, [FrequencyLDiversity(on=SECRET, l=l)], 0.0, order(table.n))
        entries = SecretCounts.of(task, order)
        _, sizes, rounds = three_phase(
            entries.bounds, entries.values, entries.counts, task.m, l, entries.walk, entries.group_walk
        )
        print(f"  l = {l}: {', '.join(f'{size:,}' for size in sizes)}; {rounds}")


def anonymity(table: Records) -> None:
    print("\nk-anonymity along the curve: QI utility, loss (leaves - 1) / (domain - 1), CPU seconds")
    for k in (2, 5, 10, 25, 100):
        plan, seconds = timed(Hilbert(), table, [KAnonymity(k=k)])
        losses = []
        for column in plan.recoded.values():
            assert isinstance(column, Recode)
            losses.append(((column.nodes.sizes[column.data] - 1) / (column.nodes.d - 1)).mean())
        print(f"  k = {k:>3}: {utility(plan):.4f}  {np.mean(losses):.4f}  {seconds:.2f}")


def growth(table: Records, sizes: list[int]) -> None:
    print("\nCPU seconds (millions of records per second) on enlarged tables, frequency l = 4")
    jobs: dict[str, ClassMethod] = {**METHODS, "anatomy": Anatomy(), "rating, 3 columns": Rating()}
    print(f"{'records':>10}" + "".join(f"{name:>20}" for name in jobs))
    for n in sizes:
        large = enlarged(table, n)
        cells = []
        for name, method in jobs.items():
            required: list[Model] = [FrequencyLDiversity(on=SECRET, l=4)]
            if name.startswith("rating"):
                required += [DistinctLDiversity(on="education", l=3), DistinctLDiversity(on="age", l=5)]
            _, seconds = timed(method, large, required)
            cells.append(f"{seconds:.2f} ({n / seconds / 1e6:.2f})")
        print(f"{n:>10,}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--records", type=int, default=1_000_000, help="size of the largest enlarged table")
    args = parser.parse_args()
    table = load(args.data)
    print(f"Adult, first {table.n:,} complete rows")
    generalisation(table)  # compiles; the figures that count are those of the second run
    print("\nagain, compiled:")
    generalisation(table)
    residues(table)
    anonymity(table)
    growth(table, [n for n in (30_000, 100_000, 300_000) if n < args.records] + [args.records])


if __name__ == "__main__":
    main()
