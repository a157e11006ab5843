"""What goes wrong if you take one member of every set: measured on generated tables with a known truth.

    python benchmarks/one_member.py --releases 40

A number x of 8 values and a place z of 6 are hidden in sets, a yes or no y is exact and follows x by a logistic law; w
is a column of 5 values that has nothing to do with any of them. Asked are the share of a rare x, the mean of x, its
correlation with y and the slope of the law: from one member of every set by chance, from the first member, from
`expand()` (every combination a row), and with `release.mean`, `correlation` and `regress`. On smaller tables, and
more of them: whether z and w are related (they are not) by Pearson's chi-square at 5%, and by `release.test`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

import noren as nr

SLOPE = 0.5
X, Z, W = 8, 6, 5


def drawn(rng: np.random.Generator, n: int) -> pl.DataFrame:
    x = np.clip(rng.binomial(X - 1, 0.35, n), 0, X - 1)
    y = rng.random(n) < 1 / (1 + np.exp(1.5 - SLOPE * x))
    z, w = rng.choice(Z, n, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]), rng.integers(0, W, n)
    return pl.DataFrame({"x": x, "y": y.astype(int), "z": z, "w": w})


def released(frame: pl.DataFrame, l: int) -> nr.Release:  # noqa: E741
    roles = {"y": nr.plain()} | {
        name: nr.sensitive(values=list(range(d))) for name, d in (("x", X), ("z", Z), ("w", W))
    }
    require = [nr.models.FrequencyLDiversity(on=["x", "z", "w"], l=l)]
    return nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))


def logistic(x: NDArray, y: NDArray) -> float:
    """The slope by Newton's method."""
    design, theta = np.column_stack([np.ones(len(x)), x]), np.zeros(2)
    for _ in range(12):
        mean = 1 / (1 + np.exp(-design @ theta))
        theta += np.linalg.solve((design * (mean * (1 - mean))[:, None]).T @ design, design.T @ (y - mean))
    return float(theta[1])


def plain(table: pl.DataFrame) -> dict[str, float]:
    """What somebody finds who takes a table at its word."""
    x, y = table["x"].to_numpy().astype(float), table["y"].to_numpy().astype(float)
    return {
        "share": float((x == X - 2).mean()),
        "mean": float(x.mean()),
        "correlation": float(np.corrcoef(x, y)[0, 1]),
        "slope": logistic(x, y),
    }


def alarm(z: NDArray, w: NDArray) -> bool:
    """Whether chi-square finds two columns related."""
    cross = np.zeros((Z, W))
    np.add.at(cross, (z.astype(int), w.astype(int)), 1)
    return related(cross)


def related(cross: NDArray) -> bool:
    cross = cross[cross.sum(axis=1) > 0][:, cross.sum(axis=0) > 0]
    return bool(chi2_contingency(np.maximum(cross, 1e-9)).pvalue < 0.05)


def members(release: nr.Release, rng: np.random.Generator | None) -> pl.DataFrame:
    """One member of every set: by chance, or the first."""
    frame = release.frame()
    for name in ("x", "z", "w"):
        sets = np.array(frame[name].to_list())
        place = np.zeros(len(sets), int) if rng is None else rng.integers(0, sets.shape[1], len(sets))
        frame = frame.with_columns(pl.Series(name, sets[np.arange(len(sets)), place].astype(int)))
    return frame.with_columns(pl.col("y").cast(pl.Int64))


def by_noren(release: nr.Release, n: int) -> dict[str, float]:
    """The answers of the library."""
    return {
        "share": release.count({"x": str(X - 2)}).count / n,
        "mean": float(release.mean("x")),
        "correlation": float(release.correlation("x", "y")),
        "slope": release.regress("y ~ x", family="binomial").params["x"],
    }


def alarms(rng: np.random.Generator, l: int, n: int) -> dict[str, bool]:  # noqa: E741
    """False alarms of one small table."""
    frame = drawn(rng, n)
    release = released(frame, l)
    one = members(release, rng)
    whole = release.expand(limit=10**8)
    cross = release.estimate(["z", "w"]).frame["count"].to_numpy().reshape(Z, W)
    return {
        "the original": alarm(frame["z"].to_numpy(), frame["w"].to_numpy()),
        "one member by chance": alarm(one["z"].to_numpy(), one["w"].to_numpy()),
        "`expand()`": alarm(whole["z"].cast(pl.Int64).to_numpy(), whole["w"].cast(pl.Int64).to_numpy()),
        "chi-square on `estimate`": related(cross),
        "`test`": release.test("z", "w", "independence", permutations=199).p_value <= 0.05,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--tests", type=int, default=300)
    parser.add_argument("--small", type=int, default=1_000, help="Records of the tables for tests.")
    args = parser.parse_args()
    rng, started, n = np.random.default_rng(2), time.process_time(), args.records
    asked = ("share", "mean", "correlation", "slope")
    print("| l | from | share of a rare value | mean | correlation | slope |")
    print("| --- " * 6 + "|")
    for l in (2, 3, 4):  # noqa: E741
        found: dict[str, list[dict[str, float]]] = {}
        for _ in range(args.releases):
            frame = drawn(rng, n)
            release = released(frame, l)
            found.setdefault("the original", []).append(plain(frame))
            found.setdefault("one member by chance", []).append(plain(members(release, rng)))
            found.setdefault("the first member", []).append(plain(members(release, None)))
            whole = release.expand(limit=10**8).with_columns(pl.col("x", "y").cast(pl.Int64))
            found.setdefault("`expand()`", []).append(plain(whole))
            found.setdefault("`count`, `mean`, `correlation`, `regress`", []).append(by_noren(release, n))
        for kind, rows in found.items():
            shown = " | ".join(f"{np.mean([row[name] for row in rows]):.3f}" for name in asked)
            print(f"| {l} | {kind} | {shown} |", flush=True)
    print("\n| false alarms at 5% | l = 2 | l = 3 | l = 4 |\n| --- | --- | --- | --- |")
    told = [[alarms(rng, size, args.small) for _ in range(args.tests)] for size in (2, 3, 4)]
    for kind in told[0][0]:
        print(f"| {kind} | " + " | ".join(f"{np.mean([one[kind] for one in each]):.1%}" for each in told) + " |")
    tables = f"{args.releases} tables of {n:,} records, {args.tests} of {args.small:,}"
    print(f"\n{time.process_time() - started:.0f} CPU seconds, {tables}")


if __name__ == "__main__":
    main()
