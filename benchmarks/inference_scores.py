"""The worlds of `inference_generated.py`, drawn many more times: are misses of its goals more than noise?

    python benchmarks/inference_scores.py --draws 200 --tests 1000 [--measures mean correlation] [--worlds clinic]

Sets are drawn by the design that those releases have (uniform decoys, l = 2 and 3) and given to the library's scores,
moments and tests without files or manifests. Quantiles are asked for by both rules:
two-sided ends (before), and each side as far as both can fail (now).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inference_generated import BINS, WORLDS, middle
from noren.designs import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.statistics import moments
from noren.estimates.statistics.association import related
from noren.estimates.statistics.moments import Sample
from noren.estimates.statistics.records import Records, Variable
from noren.statements import SetCells

SELDOM = 5
"""Quantiles, which take most of the time, are asked of every fifth table."""
RULE = moments._one_or_two_sided


def two_sided(apart: NDArray[np.float64], wanted: float) -> NDArray[np.float64]:
    return np.full(apart.shape, NormalDist().inv_cdf((1 + wanted) / 2))


def published(rng: np.random.Generator, frame: pl.DataFrame, names: Sequence[str], sizes: dict[str, int], l: int):  # noqa: E741
    """Axes and variables of some columns: those with a size in sets of l values, the others as they are."""
    axes, variables = [], []
    for place, name in enumerate(names):
        held = frame[name].to_numpy()
        levels = np.unique(held) if name not in sizes else levels_of(name, held, sizes[name])
        code, d = np.searchsorted(levels, held), len(levels)
        if name in sizes:
            keys = rng.random((len(code), d))
            keys[np.arange(len(code)), code] = -1.0
            sets = np.argpartition(keys, l - 1, axis=1)[:, :l]
            axes.append(Axis.drawn(name, SetCells.from_codes(d, sets), DecoyDesign(d=d, eta=l)))
        else:
            axes.append(Axis.exact(name, code, d))
        numbers = None if held.dtype.kind not in "if" else levels.astype(np.float64)
        edges = np.array(BINS[name], np.float64) if name in BINS else None
        variables.append(Variable(name, place, tuple(map(str, levels)), np.arange(d), numbers, edges))
    return Records.of(axes), variables


def levels_of(name: str, held: NDArray, d: int) -> NDArray:
    """All values that a column may have, also those that this table happens to lack."""
    if name in BINS:
        return (np.array(BINS[name][:-1]) + np.array(BINS[name][1:])) // 2
    seen = np.unique(held)
    return seen if held.dtype.kind not in "if" or len(seen) >= d else np.arange(seen[0], seen[0] + d)


class Misses:
    """Whether intervals covered, and how far estimates were off, of one measure in one world."""

    def __init__(self) -> None:
        self.covered: list[bool] = []
        self.width: list[float] = []
        self.off: dict[str, list[tuple[float, float]]] = {}

    def add(self, name: str, found: moments.Found, truth: float) -> None:
        self.covered.append(found.low - 1e-9 <= truth <= found.high + 1e-9)
        self.width.append(found.high - found.low)
        self.off.setdefault(name, []).append((found.value - truth, abs(truth)))

    def line(self) -> str:
        """Coverage, and the largest relative bias (of the mean estimate) with the standard error of that."""
        bias = []
        for rows in self.off.values():
            off, truth = np.array(rows).T
            error = off.std() / np.sqrt(len(off))
            if truth.mean() > 2 * off.std():
                bias.append((abs(off.mean()) / truth.mean(), error / truth.mean()))
        told = "- | -" if not bias else f"{max(bias)[0]:.1%} | {max(bias)[1]:.1%}"
        return f"{np.mean(self.covered):.1%} of {len(self.covered):,} | {told} | {np.mean(self.width):.3f}"


def ask(world: str, l: int, n: int, draws: int, first: int, measures: Sequence[str]) -> dict[str, Misses]:  # noqa: E741
    draw, sizes, _, pairs = WORLDS[world]
    out: dict[str, Misses] = {}
    for number in range(draws):
        rng = np.random.default_rng((first, number))
        frame = draw(rng, n)
        for of, by in pairs:
            if by in sizes and "correlation" not in measures:
                continue
            records, (one, two) = published(rng, frame, [of, by], sizes, l)
            if by in sizes:
                found = moments.correlations(Sample(records, {}, [one, two], [], 0.95, False), one, two)[0]
                truth = float(np.corrcoef(frame[of], frame[by])[0, 1])
                out.setdefault("correlation", Misses()).add(of, found, truth)
                continue
            grouped(out, frame, Sample(records, {}, [one], [two], 0.95, False), one, two, measures)
            if "quantile" in measures and not number % SELDOM:
                levels(out, rng, frame[of].to_numpy(), Sample(records, {}, [one], [], 0.95, False), one)
    return out


def grouped(
    out: dict[str, Misses], frame: pl.DataFrame, sample: Sample, of: Variable, by: Variable, measures: Sequence[str]
) -> None:
    held = [frame.filter(pl.col(by.name).cast(pl.String) == label)[of.name].to_numpy() for label in by.labels]
    asked = {
        "mean": (lambda: moments.means(sample, of), [each.mean() for each in held]),
        "variance": (lambda: moments.variances(sample, of), [each.var(ddof=1) for each in held]),
        "difference": (
            lambda: moments.contrasts(sample, of, 0, ratio=False),
            [each.mean() - held[0].mean() for each in held],
        ),
    }
    for name in asked.keys() & set(measures):
        ask_for, truth = asked[name]
        for place, (found, true) in enumerate(zip(ask_for(), truth, strict=True)):
            if name != "difference" or place:
                out.setdefault(name, Misses()).add(f"{of.name} {place}", found, float(true))


def levels(out: dict[str, Misses], rng: np.random.Generator, held: NDArray, sample: Sample, of: Variable) -> None:
    """The median and two quantiles of random levels, by both rules; those of bins have one."""
    if of.edges is not None:
        found = moments.quantiles(sample, of, 0.5)[0]
        out.setdefault("median of bins", Misses()).add(of.name, found, middle(held, [*of.edges]))
        return
    for name, level in (("median", 0.5), *(("quantile", q) for q in rng.uniform(0.1, 0.9, 2))):
        truth = np.sort(held)[max(int(np.ceil(level * len(held) - 1e-6)) - 1, 0)]
        for rule, told in ((two_sided, "before"), (RULE, "now")):
            moments._one_or_two_sided = rule
            found = moments.quantiles(sample, of, float(level))[0]
            out.setdefault(f"{name}, {told}", Misses()).add(of.name, found, float(truth))
    moments._one_or_two_sided = RULE


def size(l: int, n: int, tests: int, first: int) -> dict[str, float]:  # noqa: E741
    """Rejections at 5% where nothing is related: every column of the labour table is shuffled."""
    draw, sizes, _, _ = WORLDS["labour"]
    asked = (("trade", "union"), ("pay", "union"), ("pay", "years"), ("trade", "pay"))
    kinds = ("independence", "difference", "trend", "independence")
    found: dict[str, list[bool]] = {}
    for number in range(tests):
        rng = np.random.default_rng((first, number))
        frame = draw(rng, n)
        frame = pl.DataFrame({name: rng.permutation(frame[name].to_numpy()) for name in frame.columns})
        for pair, kind in zip(asked, kinds, strict=True):
            records, (one, two) = published(rng, frame, pair, sizes, l)
            p_value = related(records, one, two, kind, 199, number).p_value  # type: ignore[arg-type]
            found.setdefault(f"{kind} of {' and '.join(pair)}", []).append(p_value <= 0.05)
    return {name: float(np.mean(hits)) for name, hits in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200, help="tables of every setting")
    parser.add_argument("--tests", type=int, default=1_000, help="tables of every setting for the size of tests")
    parser.add_argument("--seed", type=int, default=70_000)
    parser.add_argument("--measures", nargs="+", default=["mean", "variance", "difference", "quantile", "correlation"])
    parser.add_argument("--worlds", nargs="+", default=[*WORLDS])
    args = parser.parse_args()
    began = time.process_time()
    print("| world, l | what | coverage of 95% | largest bias | its standard error | width |\n" + "| --- " * 6 + "|")
    for world in args.worlds if args.draws else ():
        for l in (2, 3):  # noqa: E741
            for what, misses in ask(world, l, 5_000, args.draws, args.seed, args.measures).items():
                print(f"| {world}, {l} | {what} | {misses.line()} |", flush=True)
    print("\n| test | l | records | rejections at 5% |\n| --- | --- | --- | --- |")
    for l in (2, 3) if args.tests else ():  # noqa: E741
        for name, share in size(l, 2_000, args.tests, args.seed).items():
            print(f"| {name} | {l} | 2,000 | {share:.1%} |", flush=True)
    print(f"\n{time.process_time() - began:.0f} s of CPU.")


if __name__ == "__main__":
    main()
