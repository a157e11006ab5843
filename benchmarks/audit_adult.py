"""Adult released by every method, and what each attack gains before and after.

    python benchmarks/audit_adult.py --data DIR [--records 45222]

DIR holds adult.csv.gz (UCI Adult, complete rows, header). Seven quasi-identifiers, occupation is the secret; methods of
classes must meet k = 5 and frequency l = 3, the others l = 3. `suppress` gets nine synthetic terms a record and QS
t-closeness 0.4 instead of a secret. Attacks that do not apply are left empty.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import noren as nr
from noren.audit import applicable
from noren.errors import NorenError
from term_search import records, synthetic
from terms_adult import term_lists

QUASI = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
DIVERSE = nr.FrequencyLDiversity(on="occupation", l=3)
CLASSES: list[Any] = [nr.KAnonymity(k=5), DIVERSE]
METHODS: dict[str, tuple[Any, list[Any]]] = {
    "decoys": (nr.Decoys(), [DIVERSE]),
    "mondrian": (nr.Mondrian(), CLASSES),
    "sweep": (nr.Sweep(), CLASSES),
    "incognito": (nr.Incognito(suppression=0.05), CLASSES),
    "hilbert": (nr.Hilbert(), CLASSES),
    "three-phase": (nr.ThreePhase(), CLASSES),
    "anatomy": (nr.Anatomy(), [DIVERSE]),
    "rating": (nr.Rating(), [DIVERSE]),
}
SHOWN = {
    "reidentification": ("mean_risk", "max_risk"),
    "homogeneity": ("certain", "right"),
    "disclosure": ("positive", "mean_excluded_mass"),
    "known-records": ("min_needed",),
    "bayes": ("right",),
    "minimality": ("gains",),
    "linking": ("certain", "mean_belief"),
}


def figures(release: nr.Release, original: Any, policy: nr.Policy) -> dict[str, tuple[float, ...]]:
    """attack.figure -> before any release, raw table, this release."""
    out: dict[str, tuple[float, ...]] = {}
    for name in applicable(release):
        if name not in SHOWN:
            continue
        try:
            result = nr.attack(release, name, original=original, policy=policy)[0]
        except NorenError as error:
            print(f"    {name}: {error.message}")
            continue
        scenarios = {scenario.name: scenario.summary for scenario in result.scenarios}
        after = scenarios.get("release", result.shown[-1].summary)
        for figure in SHOWN[name]:
            raw = scenarios.get("raw", {}).get(figure, float("nan"))
            out[f"{name} {figure}"] = (result.baseline.get(figure, float("nan")), raw, after.get(figure, float("nan")))
    return out


def show(title: str, found: dict[str, tuple[float, ...]], seconds: float) -> None:
    print(f"\n{title} ({seconds:.1f} s)")
    for name, numbers in found.items():
        print(f"    {name:<36} " + "  ".join("     -" if np.isnan(x) else f"{x:6.3f}" for x in numbers), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult.csv.gz")
    parser.add_argument("--records", type=int, default=45_222)
    args = parser.parse_args()
    if args.data is None or not (args.data / "adult.csv.gz").exists():
        sys.exit("This benchmark needs --data, a folder with adult.csv.gz (UCI Adult, complete rows, header).")
    frame = pl.read_csv(args.data / "adult.csv.gz").head(args.records)
    table = frame.select(*QUASI, "occupation").to_arrow()
    print("columns: before any release, raw table, this release")
    for name, (method, require) in METHODS.items():
        attributes = {column: nr.quasi_identifier() for column in QUASI} | {"occupation": nr.sensitive()}
        started = time.perf_counter()
        try:
            policy = nr.Policy(attributes, require, method)
            release = nr.anonymize(table, policy)
        except NorenError as error:
            print(f"\n{name}: {error}")
            continue
        seconds = time.perf_counter() - started
        show(name, figures(release, table, policy), seconds)
    rng = np.random.default_rng(1)
    knowledge = synthetic(rng)
    terms = term_lists(knowledge, *records(rng, knowledge, len(frame)))
    signs = frame.select(QUASI).to_arrow().append_column("signs", terms)
    attributes = {column: nr.quasi_identifier() for column in QUASI}
    attributes["signs"] = nr.quasi_sensitive(knowledge=knowledge)
    policy = nr.Policy(attributes, [nr.KAnonymity(k=5), nr.QSCloseness(on="signs", t=0.4)], nr.Suppress(seconds=0.05))
    started = time.perf_counter()
    release = nr.anonymize(signs, policy)
    seconds = time.perf_counter() - started
    show("suppress", figures(release, signs, policy), seconds)


if __name__ == "__main__":
    main()
