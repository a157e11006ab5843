"""What decoys protect on Adult, in numbers: the figures of docs/protection.md.

    python benchmarks/protection_adult.py --data DIR        # DIR holds adult.csv.gz

An adversary knows the overall distribution (or the whole joint distribution of the table) and sees the published sets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.secret import Keystream
from noren_papers.sensitive_qids.search import search

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.oracles.posterior import mean_true_probability, worst_confidence

NAMES = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)


def load(folder: Path) -> tuple[dict[str, NDArray[np.int64]], int]:
    path = folder / "adult.csv.gz"
    if not path.exists():
        sys.exit(f"{path} is missing. Give --data a folder that holds adult.csv.gz (UCI Adult, complete rows, header).")
    frame = pl.read_csv(path, infer_schema_length=0).head(30_162)
    codes = {n: np.unique(frame[n].to_numpy(), return_inverse=True)[1].astype(np.int64) for n in NAMES}
    return codes, len(frame)


def diversity(codes: dict[str, NDArray[np.int64]]) -> None:
    print("\np = 1, adversary knows the overall distribution: worst P(a value | set) / mean P(true value | set)")
    print(f"{'attribute':<16}{'d':>4}" + "".join(f"{f'l = {level}':>18}" for level in (2, 3, 5, 10)))
    for name, column in codes.items():
        counts = np.bincount(column)
        cells = []
        for level in (2, 3, 5, 10):
            if level < counts.size:
                cells.append(f"{worst_confidence(counts, level):.4f} / {mean_true_probability(counts, level):.2f}")
            else:
                cells.append("-")
        print(f"{name:<16}{counts.size:>4}" + "".join(f"{cell:>18}" for cell in cells))
    exceed = []
    for column in codes.values():
        counts = np.bincount(column)
        if counts.size <= 5:
            continue
        shares = counts / counts.sum()
        sets = DecoyDesign(d=counts.size, eta=5).draw(column, Keystream(), attribute="x").codes(5)
        inside = shares[sets]
        exceed.append(float((inside.max(axis=1) / inside.sum(axis=1) > 0.2 + 1e-12).mean()))
    print(f"share of sets (l = 5) whose likeliest value is believed more than 1/l: {np.mean(exceed):.4f}")


def closeness(codes: dict[str, NDArray[np.int64]]) -> dict[str, DecoyDesign]:
    print("\ncloseness: chosen eta, p, rho, epsilon = ln rho")
    chosen = {}
    for name in ("race", "workclass", "education", "occupation", "age"):
        counts = np.bincount(codes[name])
        for distance in ("equal", "ordered"):
            for t in (0.1, 0.3, 0.5):
                found = search(counts, t, distance)
                design = found.design
                print(
                    f"  {name:<12} {distance:<8} t = {t}: eta = {design.eta:>2}, p = {design.p:.4f}, "
                    f"rho = {design.rho:>9.2f}, epsilon = {design.epsilon:.2f}"
                )
    for name, column in codes.items():
        chosen[name] = search(np.bincount(column), 0.1, "equal").design
    return chosen


def together(codes: dict[str, NDArray[np.int64]], designs: dict[str, DecoyDesign], sample: int) -> None:
    """Posterior of each attribute from all nine sets, under the joint distribution of the table as prior."""
    records = len(next(iter(codes.values())))
    rows = np.random.default_rng(3).choice(records, sample, replace=False)
    log_ratio = np.zeros((sample, records), np.float32)
    for name, column in codes.items():
        design = designs[name]
        cells = design.draw(column[rows].astype(np.uint8), Keystream(), attribute=name)
        inside = np.zeros((sample, design.d), bool)
        np.put_along_axis(inside, cells.codes(design.eta).astype(np.int64), True, axis=1)
        log_ratio += np.float32(design.epsilon) * inside[:, column]
    weight = np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    print(f"\nall nine sets at t = 0.1 (sum of epsilons {sum(d.epsilon for d in designs.values()):.2f}), joint prior:")
    for name, column in codes.items():
        d = designs[name].d
        overall = np.bincount(column, minlength=d) / records
        belief = np.stack([weight[:, column == v].sum(axis=1) for v in range(d)], axis=1)
        distance = np.abs(belief - overall).sum(axis=1) / 2
        print(f"  {name:<16} TV exceeds 0.1 for {np.mean(distance > 0.1):6.1%} of records, worst {distance.max():.2f}")


def intersections() -> None:
    print("\nindependent releases of one value, d = 14, l = 5: P(only the truth survives the intersection)")
    rng = np.random.default_rng(5)
    for releases in (1, 2, 3, 4, 5):
        codes = rng.integers(0, 14, 200_000).astype(np.uint8)
        masks = np.full(len(codes), 0xFFFF, np.uint16)
        for _ in range(releases):
            masks &= DecoyDesign(d=14, eta=5).draw(codes, Keystream(), attribute="x").data
        print(f"  {releases} releases: {np.mean((masks & (masks - 1)) == 0):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sample", type=int, default=2000, help="records attacked with all nine sets")
    args = parser.parse_args()
    codes, records = load(args.data)
    print(f"Adult, first {records:,} complete rows")
    diversity(codes)
    together(codes, closeness(codes), args.sample)
    intersections()


if __name__ == "__main__":
    main()
