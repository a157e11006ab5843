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

from noren import Policy, anonymize
from noren.audit import applicable, attack
from noren.errors import NorenError
from noren.methods import Anatomy, Decoys, Hilbert, Incognito, Mondrian, Rating, Suppress, Sweep, ThreePhase
from noren.models import FrequencyLDiversity, KAnonymity, QSCloseness
from noren.release.release import Release
from noren.schema.column import quasi_identifier, quasi_sensitive, sensitive
from term_search import records, synthetic
from terms_adult import term_lists

QUASI = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
DIVERSE = FrequencyLDiversity(on="occupation", l=3)
CLASSES: list[Any] = [KAnonymity(k=5), DIVERSE]
METHODS: dict[str, tuple[Any, list[Any]]] = {
    "decoys": (Decoys(), [DIVERSE]),
    "mondrian": (Mondrian(), CLASSES),
    "sweep": (Sweep(), CLASSES),
    "incognito": (Incognito(suppression=0.05), CLASSES),
    "hilbert": (Hilbert(blind=False), CLASSES),
    "three-phase": (ThreePhase(), CLASSES),
    "anatomy": (Anatomy(), [DIVERSE]),
    "rating": (Rating(), [DIVERSE]),
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


def figures(release: Release, original: Any, policy: Policy) -> dict[str, tuple[float, ...]]:
    """attack.figure -> before any release, raw table, this release."""
    out: dict[str, tuple[float, ...]] = {}
    for name in applicable(release):
        if name not in SHOWN:
            continue
        try:
            result = attack(release, name, original=original, policy=policy)[0]
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
        attributes = {column: quasi_identifier() for column in QUASI} | {"occupation": sensitive()}
        started = time.perf_counter()
        try:
            policy = Policy(attributes=attributes, require=require, method=method, mechanism="ignored")
            release = anonymize(table, policy)
        except NorenError as error:
            print(f"\n{name}: {error}")
            continue
        seconds = time.perf_counter() - started
        show(name, figures(release, table, policy), seconds)
    rng = np.random.default_rng(1)
    knowledge = synthetic(rng)
    terms = term_lists(knowledge, *records(rng, knowledge, len(frame)))
    signs = frame.select(QUASI).to_arrow().append_column("signs", terms)
    attributes = {column: quasi_identifier() for column in QUASI}
    attributes["signs"] = quasi_sensitive(knowledge=knowledge)
    policy = Policy(
        attributes=attributes,
        require=[KAnonymity(k=5), QSCloseness(on="signs", t=0.4)],
        method=Suppress(seconds=0.05),
    )
    started = time.perf_counter()
    release = anonymize(signs, policy)
    seconds = time.perf_counter() - started
    show("suppress", figures(release, signs, policy), seconds)


if __name__ == "__main__":
    main()
