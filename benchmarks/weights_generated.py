"""Survey weights: do intervals from a weighted sample cover the population, where the weights depend on the secret?

    python benchmarks/weights_generated.py --releases 300

A population of 60,000 is drawn once; every release is a sample of it with chances that depend on the hidden value and
on an exact column, published in sets of l = 2 or 3 beside its weights. Asked are a share, a mean, a median, a slope and
a logistic slope, with weights and without; and a test of two columns that are independent in the population and not in
the sample.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl
from numpy.typing import NDArray

import noren as nr

SIZE = 60_000


def population(rng: np.random.Generator) -> tuple[NDArray, NDArray, NDArray]:
    """x exact, y hidden and related to x, z hidden and independent of x."""
    x = rng.integers(0, 2, SIZE)
    y = np.minimum(rng.poisson(1 + 0.8 * x), 6)
    return x, y, rng.choice(5, SIZE, p=[0.4, 0.25, 0.15, 0.12, 0.08])


def released(x: NDArray, y: NDArray, z: NDArray, weight: NDArray, l: int) -> nr.Release:  # noqa: E741
    frame = pl.DataFrame({"x": x, "y": y, "z": z, "wt": np.round(weight, 6)})
    roles = {"x": nr.plain(), "y": nr.sensitive(), "z": nr.sensitive(), "wt": nr.plain(weight=True)}
    require = [nr.models.FrequencyLDiversity(on=["y", "z"], l=l)]
    return nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))


def asked(release: nr.Release, weighted: bool) -> dict[str, tuple[float, float]]:
    """Intervals of what is asked."""
    table = release.estimate("y", population=True, weighted=weighted)
    total = float(table.frame["count"].sum())
    out = {"share": (table[1]["low"] / total, table[1]["high"] / total)}
    for name, found in (
        ("mean", release.mean("y", population=True, weighted=weighted)),
        ("median", release.quantile("y", population=True, weighted=weighted)),
    ):
        out[name] = found[0]["low"], found[0]["high"]
    line = release.regress("y ~ x", weighted=weighted).frame.row(1, named=True)
    out["slope"] = line["low"], line["high"]
    line = release.regress("x ~ y", family="binomial", weighted=weighted).frame.row(1, named=True)
    out["log odds"] = line["low"], line["high"]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=300)
    args = parser.parse_args()
    rng, started = np.random.default_rng(17), time.process_time()
    x, y, z = population(rng)
    everybody = nr.anonymize(pl.DataFrame({"x": x, "y": y}), nr.Policy(attributes={"x": "plain", "y": "plain"}))
    truth = {
        "share": float((y == 1).mean()),
        "mean": float(y.mean()),
        "median": float(np.median(y)),
        "slope": float(np.polyfit(x, y, 1)[0]),
        "log odds": everybody.regress("x ~ y", family="binomial").params["y"],
    }
    print("| records | l | design effect | " + " | ".join(truth) + " | test at 5% | unweighted: mean, slope, test |")
    print("| --- " * (len(truth) + 5) + "|")
    for n in (600, 2_000):
        for l in (2, 3):  # noqa: E741
            chance = np.where(y > 2, 3.0, 1.0) * np.where(x == 1, 0.4, 1.0) * np.where((z == 0) & (x == 1), 2.5, 1.0)
            chance = chance / chance.sum() * n
            inside: dict[str, list[bool]] = {name: [] for name in truth}
            without: dict[str, list[bool]] = {name: [] for name in truth}
            tests: tuple[list[bool], list[bool]] = ([], [])
            effects = []
            for _ in range(args.releases):
                rows = rng.random(SIZE) < chance
                release = released(x[rows], y[rows], z[rows], 1 / chance[rows], l)
                effects.append(release.estimate("y").diagnostics["design_effect"])
                for weighted, tally in ((True, inside), (False, without)):
                    try:
                        for name, (low, high) in asked(release, weighted).items():
                            tally[name].append(low <= truth[name] <= high)
                    except nr.errors.QueryError:
                        continue
                    found = release.test("x", "z", "independence", permutations=199, weighted=weighted)
                    tests[not weighted].append(found.p_value <= 0.05)
            shown = [f"{np.mean(found):.1%}" for found in inside.values()]
            other = [f"{np.mean(without[name]):.0%}" for name in ("mean", "slope")] + [f"{np.mean(tests[1]):.0%}"]
            cells = [f"{n:,}", l, f"{np.mean(effects):.2f}", *shown, f"{np.mean(tests[0]):.1%}", ", ".join(other)]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    print(f"\n{time.process_time() - started:.0f} CPU seconds, {args.releases} releases each")


if __name__ == "__main__":
    main()
