"""What it costs on Adult that those who are left out are judged as a class: loss and query error, before and after.

    python benchmarks/left_out_adult.py --data DIR

DIR holds adult.csv.gz and adult_hierarchies/ (ARX's files). "as chosen" is what a method would drop by itself,
"judged" what it publishes, "nobody" what it publishes without suppression. A dropped record loses everything.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

import noren as nr
from noren.engines import Plan
from noren.engines.left_out import Members
from noren.errors import RequirementNotMet
from noren.methods import Anatomy, Hilbert, Incognito, Mondrian, Sweep, ThreePhase
from noren.methods.base import ClassMethod, secret_order
from noren.methods.candidates import count_query_loss
from noren.metrics.general import view_of
from noren.metrics.losses import ncp_loss
from noren.workflow.prepare import prepare

ROWS = 30_162
QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
SHARE = 0.05
K5 = {"model": "k-anonymity", "k": 5}
SETTINGS = {
    "k = 5": ("occupation", [K5]),
    "k = 5, l = 4 on occupation": ("occupation", [K5, {"model": "frequency-l-diversity", "on": "occupation", "l": 4}]),
    "l = 6 on occupation": ("occupation", [{"model": "frequency-l-diversity", "on": "occupation", "l": 6}]),
    "l = 8 on occupation": ("occupation", [{"model": "frequency-l-diversity", "on": "occupation", "l": 8}]),
}
METHODS: tuple[type[ClassMethod], ...] = (Mondrian, Incognito, Sweep, ThreePhase, Hilbert, Anatomy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    frame = pl.read_csv(folder / "adult.csv.gz", infer_schema_length=0).head(ROWS)
    print("| asked | method | variant | left out | meets all as a class | NCP | query error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for title, (secret, require) in SETTINGS.items():
        for kind in METHODS:
            line = f"| {title} | `{kind.model_fields['name'].default}`"
            try:
                tried(frame, folder, kind, secret, require, line)
            except nr.errors.PolicyError:
                continue


def tried(frame: pl.DataFrame, folder: Path, kind: type[ClassMethod], secret: str, require: list, line: str) -> None:
    """The three variants of one method."""
    trees = {name: str((folder / f"adult_hierarchies/adult_hierarchy_{name}.csv").resolve()) for name in QUASI}
    quasi = {name: {"role": "quasi-identifier", "hierarchy": trees[name]} for name in QUASI}
    role = "sensitive" if any("on" in one for one in require) else "plain"
    policy = nr.Policy(
        attributes={**quasi, secret: role}, require=require, mechanism="ignored", method=kind(suppression=SHARE)
    )
    table = prepare(frame.select(*QUASI, secret), policy)
    records, members = table.records, Members.of(table)
    alone, allowed = kind(), kind(suppression=SHARE)
    variants = {
        "as chosen": lambda: allowed.recode(records, policy.require, secret_order),
        "judged": lambda: allowed.settled(records, policy.require, secret_order, members),
        "nobody": lambda: alone.recode(records, policy.require, secret_order),
    }
    for name, made in variants.items():
        try:
            plan: Plan = made()
        except RequirementNotMet:
            print(f"{line} | {name} | refused | | | |", flush=True)
            continue
        view = view_of(records, plan)
        out = np.zeros(records.n, bool) if plan.keep is None else ~plan.keep
        holds = "-" if not out.any() else "yes" if members.holds(out) else "no"
        cost = f"{ncp_loss(view):.4f} | {count_query_loss(records, view):.4f}"
        print(f"{line} | {name} | {int(out.sum()):,} | {holds} | {cost} |", flush=True)


if __name__ == "__main__":
    main()
