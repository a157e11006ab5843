"""What plausible tables are good for: coverage of pooled intervals, and what a classifier loses.

    python benchmarks/imputation_generated.py [--releases 40] [--records 5000] [--models mixture pairs]

Two worlds of four hidden columns that go together, sets of two and of three: in `kinds` columns follow from kinds of
people and a logistic law, in `together` the last one depends on what two others are together, which no model of pairs
holds. For shares of single values, of
pairs of values, and for log odds ratios the pooled 95% intervals are compared with the truth of the population; a
logistic regression is fitted on the truth, on one plausible table, on all of them one below the other and on a random
member of each set, and judged by the area under its curve on fresh records.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

import noren as nr

COLUMNS = ("a", "b", "c")
TARGET = "y"


def people(n: int, rng: np.random.Generator, world: str = "kinds") -> pl.DataFrame:
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    shapes = ((0, 4), (1, 5), (2, 6))
    codes = [np.where(rng.random(n) < 0.7, (kind + shift) % size, rng.integers(0, size, n)) for shift, size in shapes]
    first, second, third = codes[0] == 0, codes[1] == 1, codes[2] == 2
    if world == "together":
        logit = -0.8 + 1.5 * (first ^ second) - 0.6 * third
    else:
        logit = -1.0 + 1.2 * first + 0.8 * second - 0.5 * third
    rich = rng.random(n) < 1 / (1 + np.exp(-logit))
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


def members(release: nr.Release, size: int, rng: np.random.Generator) -> pl.DataFrame:
    """One member of each set at random."""
    frame = release.frame()
    places = {name: pl.Series(rng.integers(0, size, frame.height)) for name in (*COLUMNS, TARGET)}
    return frame.with_columns(pl.col(name).list.get(place) for name, place in places.items())


def measured(world: str, size: int, models: list[str], releases: int, records: int, truth: np.ndarray) -> None:
    rng = np.random.default_rng(100 + size)
    inside: dict[str, list[np.ndarray]] = {model: [] for model in models}
    together = {model: f"all {model}" for model in models}
    curves: dict[str, list[float]] = {one: [] for one in (*models, *together.values(), "truth", "member")}
    seconds = dict.fromkeys(models, 0.0)
    for _ in range(releases):
        table, fresh = people(records, rng, world), people(20_000, rng, world)
        release = released(table, size)
        for model in models:
            began = time.process_time()
            try:
                made = release.impute(m=10, seed=1, model=model)
            except nr.errors.QueryError:
                continue
            seconds[model] += time.process_time() - began
            pooled = made.pool(answers)
            inside[model].append((pooled.low <= truth) & (truth <= pooled.high))
            curves[model].append(float(np.mean([auc(one, fresh) for one in made.tables[:3]])))
            curves[together[model]].append(auc(made.frame, fresh))
        curves["truth"].append(auc(table, fresh))
        curves["member"].append(auc(members(release, size, rng), fresh))
    for model in models:
        if len(inside[model]) < releases:
            print(f"| {world} | {size} | {model} | refused: too little is told of some two columns |", flush=True)
            continue
        found = np.array(inside[model])
        covers = " | ".join(f"{found[:, kind == KINDS].mean():.1%}" for kind in dict.fromkeys(KINDS))
        areas = " | ".join(f"{np.mean(curves[one]):.3f}" for one in ("truth", model, together[model], "member"))
        print(f"| {world} | {size} | {model} | {covers} | {areas} | {seconds[model] / releases:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--models", nargs="+", default=["mixture", "pairs"], help="What tables are drawn from.")
    parser.add_argument("--worlds", nargs="+", default=["kinds", "together"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[2, 3], help="Members of a set.")
    given = parser.parse_args()
    print("| world | sets of | model | values | pairs | log odds | truth | one table | all tables | member | CPU s |")
    print("| --- " * 11 + "|")
    for world in given.worlds:
        truth = answers(people(2_000_000, np.random.default_rng(7), world))[0]
        for size in given.sizes:
            measured(world, size, given.models, given.releases, given.records, truth)


if __name__ == "__main__":
    main()
