"""Classes under closeness on Adult: cuts alone against cuts that leave records behind (`mondrian`, option `exchange`).

    python benchmarks/close_classes_adult.py --data DIR

DIR holds adult.csv.gz (UCI Adult, complete rows, header) and adult_hierarchies/ (ARX's files). First 30,162 rows, ARX's
hierarchies and eight quasi-identifiers, occupation as the secret; `tree` distances by ARX's hierarchy of occupations.

Granularity: 1 - mean of (leaves under the node - 1) / (leaves - 1). Queries: mean relative error of random count
queries with one to three conditions, one of them on occupation. CPU seconds: median of five runs, kernels loaded; the
default tries both ways, so its time includes that of the cuts alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from mondrian_adult import TREES, coded, load, timed
from noren.engines import Plan, Records
from noren.methods import Mondrian
from noren.methods.candidates import count_query_loss
from noren.methods.mechanism.judge import Replay, published_of
from noren.metrics.general import view_of
from noren.metrics.losses import granularity_score
from noren.models import BetaLikeness, DeltaDisclosure, KAnonymity, Model, TCloseness
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role

SECRET = "occupation"
ON = (SECRET,)
METHODS = {"cuts alone": Mondrian(exchange=False), "default": Mondrian(), "refinement = 5": Mondrian(refinement=5)}


def cases() -> dict[str, list[Model]]:
    found: dict[str, list[Model]] = {f"t = {t}": [TCloseness(t=t, on=ON)] for t in (0.1, 0.2, 0.3)}
    found["t = 0.2, k = 20"] = [TCloseness(t=0.2, on=ON), KAnonymity(k=20)]
    found |= {f"t = {t}, ordered": [TCloseness(t=t, on=ON, distance="ordered")] for t in (0.05, 0.1)}
    found |= {f"t = {t}, tree": [TCloseness(t=t, on=ON, distance="tree")] for t in (0.1, 0.2)}
    found |= {f"beta = {beta:g}": [BetaLikeness(beta=beta, on=ON)] for beta in (1.0, 2.0)}
    found |= {f"delta = {delta:g}": [DeltaDisclosure(delta=delta, on=ON)] for delta in (1.0, 2.0)}
    return found


def with_tree(table: Records, tree: Hierarchy) -> Records:
    """The same table with the secret's hierarchy, in the order of its leaves."""
    column = table.columns[SECRET]
    domain = Domain(tree.leaves, "string", "data")
    place = np.array([domain.index[value] for value in column.domain.values])
    columns = {**table.columns, SECRET: Column(role=Role.SENSITIVE, hierarchy=tree).over(SECRET, domain)}
    return Records(table.n, columns, {**table.codes, SECRET: place[table.codes[SECRET]]})


def told(table: Records, plan: Plan, method: Mondrian, required: list[Model]) -> str:
    """What is believed from the classes alone and with the rule of the method, and how often the top guess is right."""
    published = published_of(table, plan)
    secret = published.column(SECRET)
    found = Replay(published, table, required, method.mechanism()).beliefs(secret)
    truth = table.published(secret)
    parts = []
    for beliefs in (found.before, found.after):
        mine = beliefs[found.item]
        right = float((mine.argmax(axis=1) == truth).mean())
        parts.append(f"top {mine.max(axis=1).mean():.3f} (right {right:.3f}), largest {mine.max():.2f}")
    return "; with the rule ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    frame, trees = load(args.data)
    tree = Hierarchy.read_csv(args.data / "adult_hierarchies" / f"adult_hierarchy_{SECRET}.csv")
    table = with_tree(coded(frame, TREES, SECRET, trees), tree)
    print(f"Adult, first {table.n:,} complete rows: granularity, classes, query error, CPU seconds")
    for title, required in cases().items():
        for name, method in METHODS.items():
            plan, seconds = timed(table, method, required)
            view = view_of(table, plan)
            figures = (
                f"{granularity_score(view):.4f}{int(view.classes.max()) + 1:>7,}{count_query_loss(table, view):>8.3f}"
            )
            print(f"  {title:<18}{name:<16}{figures}{seconds:>8.2f}", flush=True)
            if title == "t = 0.2":
                print(f"    beliefs: {told(table, plan, method, required)}", flush=True)


if __name__ == "__main__":
    main()
