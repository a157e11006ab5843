"""Whole runs of term suppression: Adult with synthetic terms over k, the two baselines, one step, a million records.

    python benchmarks/terms_adult.py --data DIR [--part k|balance|large] [--records 1000000]

DIR holds adult.csv.gz (UCI Adult, complete rows, header); only the part `large`, which makes its own table, does not
need it. 3,000 records of Adult with the paper's eight quasi-identifiers get 9 terms each, all from one of 3,000
synthetic labels. Times are of `noren.anonymize`, verification included, with 0.05 seconds for the search of a group.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from noren import Policy
from noren.schema.column import quasi_identifier, quasi_sensitive
from noren.schema.knowledge import Knowledge
from noren.workflow.anonymize import Outcome, run
from term_search import records, synthetic

QUASI = ("age", "education-num", "workclass", "marital-status", "occupation", "race", "sex", "native-country")
ASKED: dict[str, dict[str, Any]] = {
    "(1, 30)": {"model": "qs-diversity", "on": "signs", "c": 1.0, "l": 30},
    "t = 0.4": {"model": "qs-closeness", "on": "signs", "t": 0.4},
}


def term_lists(knowledge: Knowledge, bounds: np.ndarray, codes: np.ndarray) -> pa.Array:
    names = pa.array(knowledge.terms).take(pa.array(codes))
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), names)


def policy(knowledge: Knowledge, quasi: tuple[str, ...], asked: dict[str, Any], method: dict[str, Any]) -> Policy:
    attributes = {name: quasi_identifier() for name in quasi} | {"signs": quasi_sensitive(knowledge=knowledge)}
    return Policy(attributes=attributes, require=[asked], method=method)


def report(title: str, outcome: Outcome, seconds: float) -> None:
    losses = outcome.facts.losses
    found = outcome.facts.terms
    proven = sum(int(f.optimal.sum()) for f in found) / max(1, sum(len(f.optimal) for f in found)) if found else 1.0
    gap = max((f.gap for f in found), default=0.0)
    verdict = outcome.facts.verdicts[-1]
    print(
        f"{title:<26} {seconds:7.1f} s  groups {losses['classes']:6.0f}  size {losses['average_class_size_loss']:7.2f}"
        f"  ncp {losses['ncp_loss']:.4f}  term cost {losses['term_cost_loss']:.4f}"
        f"  terms lost {losses['term_share_loss']:.3f}  proven {proven:.1%}  gap {gap:.1%}"
        f"  found {verdict.achieved:.4g}",
        flush=True,
    )


def adult(data: Path, seed: int) -> tuple[pa.Table, Knowledge]:
    frame = pl.read_csv(data / "adult.csv.gz").head(3000)
    names = [name for name in QUASI if name in frame.columns]
    if len(names) != len(QUASI):
        sys.exit(f"adult.csv.gz lacks {sorted(set(QUASI) - set(names))}; it has {frame.columns}")
    rng = np.random.default_rng(seed)
    knowledge = synthetic(rng)
    terms = term_lists(knowledge, *records(rng, knowledge, 3000))
    table = frame.select(QUASI).to_arrow()
    return table.append_column("signs", terms), knowledge


def over_k(data: Path, seed: int) -> None:
    table, knowledge = adult(data, seed)
    warm = policy(knowledge, QUASI, ASKED["(1, 30)"], {"name": "suppress", "k": 5, "seconds": 0.01})
    run(table.slice(0, 100), warm)
    begin = time.perf_counter()
    for title, asked in ASKED.items():
        for k in (1, 2, 5, 10, 20):
            started = time.perf_counter()
            outcome = run(table, policy(knowledge, QUASI, asked, {"name": "suppress", "k": k, "seconds": 0.05}))
            report(f"{title} suppress k={k}", outcome, time.perf_counter() - started)
    print(f"all ten runs together: {time.perf_counter() - begin:.1f} s", flush=True)
    for title, asked in ASKED.items():
        started = time.perf_counter()
        outcome = run(table, policy(knowledge, QUASI, asked, {"name": "mondrian"}))
        report(f"{title} generalisation only", outcome, time.perf_counter() - started)


def balance(data: Path, seed: int) -> None:
    table, knowledge = adult(data, seed)
    for title, asked in ASKED.items():
        for budget in ({"generalisation": b} for b in (0.05, 0.1, 0.15, 0.2)):
            method = {"name": "suppress", "balance": budget, "seconds": 0.05}
            started = time.perf_counter()
            outcome = run(table, policy(knowledge, QUASI, asked, method))
            report(f"{title} {budget}", outcome, time.perf_counter() - started)


def large(n: int, labels: int, asked: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    knowledge = synthetic(rng, labels=labels)
    terms = term_lists(knowledge, *records(rng, knowledge, n))
    table = pa.table(
        {
            "age": rng.integers(18, 90, n),
            "sex": pa.array(["f", "m"]).take(pa.array(rng.integers(0, 2, n))),
            "region": pa.array([f"region {i}" for i in range(20)]).take(pa.array(rng.integers(0, 20, n))),
            "income": rng.integers(0, 500, n),
            "signs": terms,
        }
    )
    quasi = ("age", "sex", "region", "income")
    with tempfile.TemporaryDirectory() as folder:
        import pyarrow.parquet as pq

        path = Path(folder) / "people.parquet"
        pq.write_table(table, path)
        del table, terms
        made = policy(knowledge, quasi, ASKED[asked], {"name": "suppress", "k": 5, "total_seconds": 420.0})
        started = time.perf_counter()
        outcome = run(path, made, to=Path(folder) / "release")
        report(f"{n:,} records, {labels:,} labels, {asked}", outcome, time.perf_counter() - started)
        print("seconds:", {name: round(s, 1) for name, s in outcome.facts.seconds.items()})
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult.csv.gz")
    parser.add_argument("--part", choices=["k", "balance", "large"], default="k")
    parser.add_argument("--records", type=int, default=1_000_000, help="records of the part `large`")
    parser.add_argument("--labels", type=int, default=10_000, help="labels of the part `large`")
    parser.add_argument("--asked", choices=list(ASKED), default="t = 0.4", help="requirement of the part `large`")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.part == "large":
        large(args.records, args.labels, args.asked, args.seed)
        return
    if args.data is None or not (args.data / "adult.csv.gz").exists():
        sys.exit("This part needs --data, a folder with adult.csv.gz (UCI Adult, complete rows, header).")
    (over_k if args.part == "k" else balance)(args.data, args.seed)


if __name__ == "__main__":
    main()
