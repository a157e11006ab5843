"""What plausible tables are good for: coverage of pooled intervals, and what a classifier loses.

    python benchmarks/imputation_generated.py [--releases 40] [--records 5000]

Generated tables of four hidden columns that go together, sets of two and of three. For shares of single values, of
pairs of values, and for log odds ratios the pooled 95% intervals are compared with the truth of the population; a
logistic regression is fitted on the truth, on plausible tables and on a random member of each set, and judged by the
area under its curve on fresh records.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

import noren as nr

COLUMNS = ("a", "b", "c")
TARGET = "y"


def people(n: int, rng: np.random.Generator) -> pl.DataFrame:
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    shapes = ((0, 4), (1, 5), (2, 6))
    codes = [np.where(rng.random(n) < 0.7, (kind + shift) % size, rng.integers(0, size, n)) for shift, size in shapes]
    rich = rng.random(n) < 1 / (1 + np.exp(1.0 - 1.2 * (codes[0] == 0) - 0.8 * (codes[1] == 1) + 0.5 * (codes[2] == 2)))
    frame = {name: [f"{name}{v}" for v in code] for name, code in zip(COLUMNS, codes, strict=True)}
    return pl.DataFrame(frame | {TARGET: np.where(rich, "y1", rng.choice(["y0", "y2", "y3"], n))})


def released(table: pl.DataFrame, size: int) -> nr.Release:
    names = [*COLUMNS, TARGET]
    diverse = nr.models.FrequencyLDiversity(on=names, l=size)
    policy = nr.Policy(attributes=dict.fromkeys(names, "sensitive"), require=[diverse], dependence={"most": 1.0})
    return nr.anonymize(table, policy)


def answers(table: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Shares of values, shares of pairs, log odds ratios, with their variances in a complete table."""
    n = table.height
    one = [(table["a"] == f"a{v}").mean() for v in range(4)] + [(table["b"] == f"b{v}").mean() for v in range(5)]
    two = [((table["a"] == f"a{v}") & (table["c"] == f"c{w}")).mean() for v in range(3) for w in range(3)]
    shares = np.array(one + two)
    odds, spread = [], []
    for name, value in (("a", "a0"), ("b", "b1"), ("c", "c2")):
        x, y = table[name] == value, table[TARGET] == "y1"
        cells = np.array([(x & y).sum(), (x & ~y).sum(), (~x & y).sum(), (~x & ~y).sum()], float) + 0.5
        odds.append(np.log(cells[0] * cells[3] / cells[1] / cells[2]))
        spread.append((1 / cells).sum())
    return np.concatenate([shares, odds]), np.concatenate([shares * (1 - shares) / n, spread])


KINDS = np.array(["share of a value"] * 9 + ["share of a pair"] * 9 + ["log odds ratio"] * 3)


def auc(train: pl.DataFrame, test: pl.DataFrame) -> float:
    encoder = OneHotEncoder(handle_unknown="ignore").fit(train.select(COLUMNS).to_numpy())
    model = LogisticRegression(max_iter=2000)
    model.fit(encoder.transform(train.select(COLUMNS).to_numpy()), (train[TARGET] == "y1").to_numpy())
    score = model.predict_proba(encoder.transform(test.select(COLUMNS).to_numpy()))[:, 1]
    return float(roc_auc_score((test[TARGET] == "y1").to_numpy(), score))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--records", type=int, default=5000)
    given = parser.parse_args()
    print("| sets of | figure | coverage of 95% | median missing information | AUC truth | plausible | random member |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    truth = answers(people(2_000_000, np.random.default_rng(7)))[0]
    for size in (2, 3):
        rng = np.random.default_rng(100 + size)
        inside, missing, curves = [], [], []
        for _ in range(given.releases):
            table, fresh = people(given.records, rng), people(20_000, rng)
            release = released(table, size)
            made = release.impute(m=10, seed=1)
            pooled = made.pool(answers)
            inside.append((pooled.low <= truth) & (truth <= pooled.high))
            missing.append(pooled.missing)
            places = {name: pl.Series(rng.integers(0, size, given.records)) for name in (*COLUMNS, TARGET)}
            member = release.frame().with_columns(pl.col(name).list.get(place) for name, place in places.items())
            curves.append(
                [auc(table, fresh), np.mean([auc(one, fresh) for one in made.tables[:3]]), auc(member, fresh)]
            )
        for kind in dict.fromkeys(KINDS):
            of = kind == KINDS
            share, lost = np.mean(np.array(inside)[:, of]), np.median(np.array(missing)[:, of])
            told = " | ".join(f"{value:.3f}" for value in np.mean(curves, axis=0))
            print(f"| {size} | {kind} | {share:.1%} | {lost:.0%} | {told} |", flush=True)


if __name__ == "__main__":
    main()
