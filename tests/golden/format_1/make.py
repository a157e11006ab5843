"""Makes the releases beside this file. Runs under version 0.1.0 alone, and was run once: see README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import noren as nr

HERE = Path(__file__).parent
N = 90
ILLS = ["none", "cold", "flu", "cancer", "hiv"]
TOWNS = {"tree": {"Rhine": ["Bonn", "Köln"], "Danube": ["Ulm", "Passau"]}}
SIGNS = nr.Knowledge.from_pairs(
    (ill, sign)
    for ill, signs in {"Flu": ("cough", "fever"), "Cold": ("cough", "sneeze"), "Measles": ("fever", "rash")}.items()
    for sign in signs
)


def people() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    signs = ["cough", "fever", "sneeze", "rash"]
    return pl.DataFrame(
        {
            "age": rng.integers(20, 60, N),
            "town": rng.choice(["Bonn", "Köln", "Ulm", "Passau"], N),
            "ill": rng.choice(ILLS, N, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
            "pay": rng.choice([10, 20, 30], N),
            "note": rng.choice(["=1+1", "plain", "é"], N),
            "signs": [";".join(s for s in signs if rng.random() < 0.4) for _ in range(N)],
        }
    )


ROLES: dict[str, Any] = {
    "age": "quasi-identifier",
    "town": "quasi-identifier",
    "ill": "sensitive",
    "pay": "plain",
    "note": "plain",
    "signs": "identifier",
}
ORDERED = {"role": "sensitive", "values": ILLS, "distance": "ordinal"}
DIVERSE = {"model": "frequency-l-diversity", "on": "ill", "l": 2}
APART = {"model": "semantic-diversity", "on": "ill", "l": 2, "d": 2}


def policy(require: Any, method: Any = None, **roles: Any) -> nr.Policy:
    return nr.Policy(attributes={**ROLES, **roles}, require=require, method=method or {"name": "decoys"})


MADE: dict[str, tuple[nr.Policy, str]] = {
    "decoys": (policy([DIVERSE, {**DIVERSE, "on": "pay"}], pay="sensitive-quasi-identifier"), "parquet"),
    "closeness": (policy([{"model": "t-closeness", "on": "ill", "t": 0.3}]), "parquet"),
    "semantic": (policy([APART], ill=ORDERED), "parquet"),
    "members": (policy([APART], {"name": "decoys", "form": "records"}, ill=ORDERED), "parquet"),
    "mondrian": (policy([{"model": "k-anonymity", "k": 4}, DIVERSE], {"name": "mondrian"}), "parquet"),
    "mondrian-tree": (
        policy([DIVERSE], {"name": "mondrian"}, town={"role": "quasi-identifier", "hierarchy": TOWNS}),
        "parquet",
    ),
    "sweep": (policy([{"model": "tau-l-diversity", "on": "ill", "tau": 0.6, "l": 3}], {"name": "sweep"}), "parquet"),
    "left-out": (policy([{**DIVERSE, "l": 3}], {"name": "sweep", "suppression": 0.1}), "parquet"),
    "anatomy": (policy([DIVERSE], {"name": "anatomy"}), "parquet"),
    "rating": (policy([DIVERSE, {**DIVERSE, "on": "pay"}], {"name": "rating"}, pay="sensitive"), "parquet"),
    "terms": (
        policy(
            [{"model": "qs-diversity", "on": "signs", "c": 1.5, "l": 2}],
            {"name": "suppress", "nodes": 200},
            ill="identifier",
            signs={"role": "quasi-sensitive", "separator": ";", "knowledge": SIGNS},
        ),
        "parquet",
    ),
    "decoys-csv": (policy([DIVERSE, {**DIVERSE, "on": "pay"}], pay="sensitive-quasi-identifier"), "csv"),
    "rating-csv": (policy([DIVERSE, {**DIVERSE, "on": "pay"}], {"name": "rating"}, pay="sensitive"), "csv"),
}
"""Policy and file format of every release."""


def asked(release: nr.Release) -> list[dict[str, Any]]:
    """Some questions and what version 0.1.0 answered."""
    by: list[list[str]] = [["town"], ["town", "ill"]] if "ill" in release.columns else [["town"]]
    where: list[dict[str, Any]] = [{"town": ["Bonn", "Ulm"]}]
    if "ill" in release.columns:
        where += [{"ill": "flu"}, {"town": "Bonn", "ill": ["hiv", "cancer"]}]
    if "signs" in release.columns:
        where += [{"signs": "cough"}]
    out: list[dict[str, Any]] = []
    for names in by:
        frame = release.estimate(names).frame
        out.append({"estimate": names, "rows": [list(row) for row in frame.rows()]})
    for one in where:
        count = release.count(one)
        out.append({"count": one, "answer": [count.count, count.std_error, count.low, count.high]})
    return out


def main() -> None:
    assert nr.__version__ == "0.1.0"
    for name, (rules, file_format) in MADE.items():
        if (HERE / name).exists():
            continue
        nr.anonymize(people(), rules, to=HERE / name / "release", file_format=file_format)
        release = nr.open_release(HERE / name / "release")
        verdicts = nr.verify(release)
        told = {
            "records": release.records,
            "rows": release.rows,
            "suppressed": release.manifest.suppressed,
            "columns": list(release.columns),
            "published": [[v.model, v.column, v.required, v.achieved, v.holds, v.basis] for v in release.verdicts],
            "verdicts": [[v.model, v.column, v.achieved, v.holds, v.records, v.breaches] for v in verdicts],
            "frame": [[str(cell) for cell in row] for row in release.frame().rows()[:5]],
            "answers": asked(release),
        }
        text = json.dumps(told, ensure_ascii=False, indent=1, allow_nan=False)
        (HERE / name / "answers.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
