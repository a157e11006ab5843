"""Means, models and tests from generated releases with a known truth: coverage, bias and size.

    python benchmarks/inference_generated.py --releases 200

Three invented tables (a survey, a clinic, a labour market) that chose no constant of the library are drawn again for
every release, protected in sets of l = 2 and 3 (the clinic's diagnosis also by t-closeness, where sets may lack the
truth), and asked. The truth of means, quantiles and correlations is the drawn table's own; that of coefficients is the
law it was drawn from, or, where the model is not that law, the fit to a million of its people.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

import noren as nr

Drawn = Callable[[np.random.Generator, int], pl.DataFrame]
Model = tuple[str, str]


def logistic(eta: NDArray) -> NDArray:
    return 1 / (1 + np.exp(-eta))


def names(letters: Sequence[str], codes: NDArray) -> NDArray:
    return np.array(letters)[codes]


def survey(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Region and sex exact; schooling, children and satisfaction hidden; a vote depends on all."""
    sex, region = rng.integers(0, 2, n), rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    school = np.clip(rng.binomial(7, 0.3 + 0.08 * sex + 0.05 * (region == 0)), 0, 7)
    children = np.minimum(rng.poisson(np.exp(0.6 - 0.12 * school + 0.1 * sex)), 6)
    mood = np.clip(np.round(4 + 0.5 * school - 0.3 * children + rng.normal(0, 1.5, n)), 0, 10).astype(int)
    vote = rng.random(n) < logistic(-1 + 0.4 * school - 0.3 * sex + 0.25 * (region == 1))
    return pl.DataFrame(
        {
            "sex": names(["F", "M"], sex),
            "region": names(["east", "north", "south", "west"], region),
            "school": school,
            "children": children,
            "mood": mood,
            "vote": names(["no", "yes"], vote.astype(int)),
        }
    )


def clinic(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Age in bins of ten hidden, ward exact, diagnosis and stay hidden."""
    age = rng.integers(20, 90, n) // 10 * 10 + 5
    ward = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    smoker = rng.random(n) < 0.3
    ill = np.clip(rng.binomial(4, logistic(-2 + 0.025 * age + 0.5 * smoker)), 0, 4)
    stay = np.minimum(rng.poisson(np.exp(0.2 + 0.008 * age + 0.2 * ill)), 14)
    again = rng.random(n) < logistic(-2.5 + 0.6 * ill + 0.015 * age)
    return pl.DataFrame(
        {
            "age": age,
            "ward": names(["a", "b", "c"], ward),
            "smoker": names(["no", "yes"], smoker.astype(int)),
            "ill": ill,
            "stay": stay,
            "again": again.astype(int),
        }
    )


def labour(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Skewed pay and trades, of which some are rare; hours exact."""
    hours = rng.choice([20, 30, 40, 50], n, p=[0.15, 0.2, 0.55, 0.1])
    trade = rng.choice(6, n, p=[0.35, 0.25, 0.15, 0.12, 0.08, 0.05])
    years = np.minimum(rng.geometric(0.15, n), 15)
    lift = np.array([0, 0.6, 1.0, 1.6, 2.2, 2.6])[trade]
    pay = np.clip(np.round(1 + lift + 0.05 * hours + 0.15 * years + rng.normal(0, 1.2, n)), 0, 11).astype(int)
    union = rng.random(n) < logistic(-1.2 + 0.12 * years + 0.5 * (trade == 1) - 0.6 * (trade == 3))
    return pl.DataFrame(
        {
            "hours": hours,
            "trade": names(["clerk", "cook", "driver", "nurse", "tailor", "welder"], trade),
            "years": years,
            "pay": pay,
            "union": names(["no", "yes"], union.astype(int)),
        }
    )


WORLDS: dict[str, tuple[Drawn, dict[str, int], list[Model], list[tuple[str, ...]]]] = {
    "survey": (
        survey,
        {"school": 8, "children": 7, "mood": 11},
        [
            ("vote ~ school + sex + region", "binomial"),
            ("mood ~ school + children", "gaussian"),
            ("children ~ school + sex", "poisson"),
            ("vote ~ C(school) + sex", "binomial"),
        ],
        [("mood", "sex"), ("children", "region"), ("school", "mood")],
    ),
    "clinic": (
        clinic,
        {"age": 7, "ill": 5, "stay": 15},
        [
            ("again ~ ill + age", "binomial"),
            ("stay ~ age + ill + ward", "poisson"),
            ("ill ~ age*smoker", "gaussian"),
            ("smoker ~ age + ill", "binomial"),
        ],
        [("stay", "ward"), ("age", "smoker"), ("ill", "stay")],
    ),
    "labour": (
        labour,
        {"trade": 6, "years": 15, "pay": 12},
        [
            ("pay ~ hours + years + trade", "gaussian"),
            ("union ~ years + trade", "binomial"),
            ("trade ~ years", "multinomial"),
            ("pay ~ hours + years", "poisson"),
        ],
        [("pay", "union"), ("years", "hours"), ("pay", "years")],
    ),
}


BINS = {"age": (20, 30, 40, 50, 60, 70, 80, 90)}
"""Columns that are published in bins; the tables hold their middles."""


def middle(values: NDArray, edges: Sequence[float]) -> float:
    """The median of binned values, spread evenly inside a bin."""
    share = np.concatenate([[0], np.cumsum(np.histogram(values, edges)[0])]) / len(values)
    return float(np.interp(0.5, share, edges))


def released(frame: pl.DataFrame, hidden: Sequence[str], l: int, t: float | None = None) -> nr.Release:  # noqa: E741
    roles: dict[str, object] = {name: "sensitive" if name in hidden else "plain" for name in frame.columns}
    roles |= {name: nr.sensitive(bins=BINS[name]) for name in hidden if name in BINS}
    require: list[nr.models.Model] = [nr.models.FrequencyLDiversity(on=list(hidden), l=l)]
    if t is not None:
        require = [nr.models.TCloseness(on=name, t=t) for name in hidden]
    return nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))


class Tally:
    """How often intervals cover, and how far estimates lie from the truth."""

    def __init__(self) -> None:
        self.covered: list[bool] = []
        self.found: dict[str, list[tuple[float, float, float]]] = {}
        self.refused = 0

    def add(self, name: str, row: dict[str, float], value: float, truth: float) -> None:
        self.covered.append(row["low"] <= truth <= row["high"])
        self.found.setdefault(name, []).append((value - truth, abs(truth), row["std_error"]))

    def line(self) -> str:
        """Relative bias is told of what exceeds two of its standard errors: elsewhere it divides by nearly nothing."""
        if not self.covered:
            return f"all refused ({self.refused}) | -"
        bias = []
        for rows in self.found.values():
            off, truth, error = np.median(np.array(rows), axis=0)
            if truth > 2 * error:
                bias.append(abs(off) / truth)
        refused = f", refused {self.refused}" if self.refused else ""
        told = f"{np.median(bias):.1%}, {max(bias):.1%}" if bias else "-"
        return f"{np.mean(self.covered):.1%} of {len(self.covered):,}{refused} | {told}"


def coefficients(world: str, l: int, n: int, releases: int, t: float | None = None) -> Tally:  # noqa: E741
    draw, hidden, models, _ = WORLDS[world]
    plain = draw(np.random.default_rng(0), 1_000_000)
    everybody = nr.anonymize(plain, nr.Policy(attributes=dict.fromkeys(plain.columns, "plain")))
    truths = {model: everybody.regress(*model).params for model in models}  # type: ignore[arg-type]
    tally = Tally()
    for number in range(releases):
        release = released(draw(np.random.default_rng(1000 + number), n), [*hidden], l, t)
        for model, truth in truths.items():
            try:
                fit = release.regress(*model)  # type: ignore[arg-type]
            except nr.errors.QueryError:
                tally.refused += 1
                continue
            for (name, value), row in zip(fit.params.items(), fit.frame.iter_rows(named=True), strict=True):
                if name in truth:
                    tally.add(f"{model[0]} {name}", row, value, truth[name])
    return tally


def moments(world: str, l: int, n: int, releases: int) -> dict[str, Tally]:  # noqa: E741
    draw, hidden, _, pairs = WORLDS[world]
    out = {name: Tally() for name in ("mean", "variance", "quantile", "difference", "correlation")}
    for number in range(releases):
        frame = draw(np.random.default_rng(5000 + number), n)
        release = released(frame, [*hidden], l)
        for of, by in pairs:
            if by in hidden:
                truth = float(frame.select(pl.corr(of, by)).item())
                found = release.correlation(of, by)[0]
                out["correlation"].add(of + by, found, found["correlation"], truth)
                continue
            groups = frame.group_by(pl.col(by).cast(pl.String)).agg(
                pl.col(of).mean().alias("mean"),
                pl.col(of).var().alias("variance"),
                pl.col(of).quantile(0.5, "higher").alias("quantile"),
            )
            truths = {row[by]: row for row in groups.iter_rows(named=True)}
            for measure in ("mean", "variance", "quantile"):
                for row in getattr(release, measure)(of, by=by):
                    truth = truths[row[by]][measure]
                    if measure == "quantile" and of in BINS:
                        truth = middle(frame.filter(pl.col(by).cast(pl.String) == row[by])[of].to_numpy(), BINS[of])
                    out[measure].add(f"{of} {row[by]}", row, row[measure], truth)
            rows = [*release.difference(of, by=by)]
            for row in rows[1:]:
                truth = truths[row[by]]["mean"] - truths[rows[0][by]]["mean"]
                out["difference"].add(f"{of} {row[by]}", row, row["difference"], truth)
    return out


def sizes(l: int, n: int, releases: int) -> dict[str, float]:  # noqa: E741
    """The share of rejections at 5% where nothing is related: every column of the labour table is shuffled."""
    draw, hidden, _, _ = WORLDS["labour"]
    asked = (("trade", "union"), ("pay", "union"), ("pay", "years"), ("trade", "pay"))
    kinds = ("independence", "difference", "trend", "independence")
    found: dict[str, list[bool]] = {}
    for number in range(releases):
        rng = np.random.default_rng(9000 + number)
        frame = draw(rng, n)
        frame = pl.DataFrame({name: rng.permutation(frame[name].to_numpy()) for name in frame.columns})
        release = released(frame, [*hidden], l)
        for (one, two), kind in zip(asked, kinds, strict=True):
            test = release.test(one, two, kind, permutations=199, seed=number)  # type: ignore[arg-type]
            found.setdefault(f"{kind} of {one} and {two}", []).append(test.p_value <= 0.05)
    return {name: float(np.mean(hits)) for name, hits in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=200, help="generated releases of every setting")
    releases = parser.parse_args().releases
    began = time.process_time()
    print("| table, l, records | coefficients: coverage of 95% | relative bias: median, largest |\n| --- | --- | --- |")
    for world in WORLDS:
        for l in (2, 3):  # noqa: E741
            for n in (5_000, 20_000):
                tally = coefficients(world, l, n, releases if n == 5_000 else releases // 2)
                print(f"| {world}, {l}, {n:,} | {tally.line()} |", flush=True)
    tally = coefficients("clinic", 2, 20_000, releases // 2, t=0.5)
    print(f"| clinic, t = 0.5, 20,000 | {tally.line()} |", flush=True)
    print(
        "\n| table, l, records | what | coverage of 95% | relative bias: median, largest |\n| --- | --- | --- | --- |"
    )
    for world in WORLDS:
        for l in (2, 3):  # noqa: E741
            for measure, tally in moments(world, l, 5_000, releases).items():
                print(f"| {world}, {l}, 5,000 | {measure} | {tally.line()} |", flush=True)
    print("\n| test | l | records | rejections at 5% |\n| --- | --- | --- | --- |")
    for l in (2, 3):  # noqa: E741
        for n in (500, 2_000):
            for name, share in sizes(l, n, 5 * releases).items():
                print(f"| {name} | {l} | {n:,} | {share:.1%} |", flush=True)
    print(f"\n{time.process_time() - began:.0f} s of CPU, {releases} releases of every setting.")


if __name__ == "__main__":
    main()
