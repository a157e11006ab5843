"""General quasi-identifiers beside drawn secrets, against either alone: what is guessed, and what tables lose.

Adult's first 30,162 rows, quasi-identifiers as everywhere, secret: occupation, k = 5 and l = 3. The guess is that of
an adversary who knows a person's row and all its published columns (`bayes` where sets are published, the class of
the row where the secret is exact). The tables are education x occupation and marital-status x occupation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

import noren as nr
from noren.methods.base import Method

QUASI = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
SECRET = "occupation"
TABLES = ("education", "marital-status")


def policies() -> dict[str, nr.Policy]:
    columns = {name: nr.quasi_identifier() for name in QUASI} | {SECRET: nr.sensitive()}
    classes, values = nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on=SECRET, l=3)
    decoys, mondrian = nr.methods.Decoys(), nr.methods.Mondrian()
    pair: tuple[Method, ...] = (mondrian, nr.methods.Decoys(on=(SECRET,)))
    return {
        "decoys": nr.Policy(attributes=columns, require=[values], method=decoys),
        "mondrian": nr.Policy(attributes=columns, require=[classes, values], method=mondrian),
        "mondrian + decoys": nr.Policy(attributes=columns, require=[classes, values], method=pair),
    }


def guessed(release: nr.Release, policy: nr.Policy, table: pl.DataFrame) -> tuple[float, str]:
    """The largest share of right guesses over what the adversary may know besides the release, and what that is."""
    attack = "bayes" if release.designs else "homogeneity"
    found = nr.attack(release, attack, original=table, policy=policy)
    shares = [
        (scenario.summary["right"], scenario.title)
        for result in found
        for scenario in result.scenarios
        if "right" in scenario.summary and scenario.name != "raw"
    ]
    return max(shares)


def error(release: nr.Release, table: pl.DataFrame, by: str) -> float:
    """L1 distance between the estimated and the true table, in relative frequencies."""
    estimate = release.estimate([by, SECRET]).frame
    truth = table.group_by(by, SECRET).len("true").cast({by: pl.String, SECRET: pl.String})
    both = estimate.join(truth, on=[by, SECRET], how="left").with_columns(pl.col("true").fill_null(0))
    return float(np.abs(both["count"] - both["true"]).sum() / table.height)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="Folder with adult.csv.gz.")
    path = parser.parse_args().data / "adult.csv.gz"
    if not path.exists():
        raise SystemExit(f"{path} is missing: give the folder of the data sets with --data.")
    table = pl.read_csv(path).head(30_162).select(*QUASI, SECRET)
    print(f"{'release':<20}{'right guesses':>15}" + "".join(f"{'L1 ' + by:>24}" for by in TABLES))
    for name, policy in policies().items():
        release = nr.anonymize(table, policy)
        shares = [error(release, table, by) for by in TABLES]
        right, known = guessed(release, policy, table)
        print(f"{name:<20}{right:>15.1%}" + "".join(f"{share:>24.3f}" for share in shares) + f"  ({known})")


if __name__ == "__main__":
    main()
