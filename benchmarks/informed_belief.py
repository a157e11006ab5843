"""Sets against somebody who knows public shares beside uniform decoys that are guessed as often on average.

    python benchmarks/informed_belief.py --data FOLDER

FOLDER has adult.csv.gz and census_income_kdd.csv.gz (in it or in census/). Public shares are those of one half of a
table, or of the census of 1994; the data are the other half, or 1995. For each column and l the bound g is the share of
right guesses that somebody with the public shares makes from uniform decoys, l values a set. Printed are the largest
belief under those shares; the squared error of estimated shares over that of uniform decoys, both of the best estimate
in large tables (trace of the inverse Fisher information) with the data's shares; the least ratio that any design with
the bound can have (a generic solver, up to 300 variables); the same ratio in fact, by the library's default estimate
over some draws; and the largest belief of somebody who believes all values alike.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import combinations
from math import ceil, comb
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from tests.oracles.informed import least_error

from noren.designs import DecoyDesign, InformedDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import ESTIMATORS
from noren.estimates.counts.frame import prepare
from noren.secret import Keystream

ADULT = ("race", "relationship", "marital-status", "workclass", "occupation", "education", "native-country")
CENSUS = ("race", "marital_stat", "class_of_worker", "major_occupation_code", "education", "country_of_birth_self")
MOST_VARIABLES = 300
Design = DecoyDesign | InformedDesign


def columns(folder: Path) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
    """Name, codes whose shares are public, and codes of the table."""
    adult = pl.read_csv(folder / "adult.csv.gz", infer_schema_length=0)
    first = np.random.default_rng(1).permutation(len(adult)) < len(adult) // 2
    for name in ADULT:
        if name in adult.columns:
            codes = adult[name].rank("dense").to_numpy().astype(np.int64) - 1
            yield f"Adult {name}", codes[first], codes[~first]
    path = folder / "census_income_kdd.csv.gz"
    census = pl.read_csv(path if path.exists() else folder / "census" / path.name, infer_schema_length=0)
    early = (census["year"] == "94").to_numpy()
    for name in CENSUS:
        codes = census[name].rank("dense").to_numpy().astype(np.int64) - 1
        yield f"Census {name}", codes[early], codes[~early]


def chances(design: Design) -> NDArray[np.float64]:
    """[R, v]: P(R | v)."""
    sets = np.array(list(combinations(range(design.d), design.eta)))
    out = np.zeros((len(sets), design.d))
    np.put_along_axis(out, sets, design.member_weights(sets), axis=1)
    return out


def error(chance: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """Squared error of the best estimate of shares, times the number of records."""
    some = shares > 0
    seen = chance @ shares
    information = (chance[seen > 0] / seen[seen > 0, None]).T @ chance[seen > 0]
    return float(np.trace(np.linalg.inv(information[np.ix_(some, some)])) - np.square(shares).sum())


def worst(chance: NDArray[np.float64], prior: NDArray[np.float64]) -> float:
    joint = chance * prior
    return float((joint.max(axis=1) / joint.sum(axis=1)).max())


def drawn(design: Design, codes: NDArray[np.int64], draws: int) -> float:
    """Mean squared error of the library's default estimate, times the number of records."""
    truth, out = np.bincount(codes, minlength=design.d), []
    for _ in range(draws):
        frame = prepare([Axis.drawn("x", design.draw(codes, Keystream(), attribute="x"), design)])
        found = ESTIMATORS["likelihood"](frame, progress=None, eps=1.0).table[0]
        out.append(np.square(found - truth).sum() / len(codes))
    return float(np.mean(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--l", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--only", default="", help="columns whose name contains this")
    options = parser.parse_args()
    print("| column (values, largest share) | l | g | largest belief: decoys / informed | ", end="")
    print("error ratio, held out | least possible | as drawn | all alike |\n" + "| --- " * 8 + "|")
    for name, known, codes in columns(options.data):
        d = int(max(known.max(), codes.max())) + 1
        prior = np.bincount(known, minlength=d) + 0.5
        prior, shares = prior / prior.sum(), np.bincount(codes, minlength=d) / len(codes)
        for l in options.l:  # noqa: E741
            if options.only not in name or l >= d - 1:
                continue
            plain = DecoyDesign(d=d, eta=l)
            one = chances(plain)
            bound = float((one * prior).max(axis=1).sum())
            design = InformedDesign.within(prior, bound)
            if design is None:
                print(f"| {name} ({d}, {prior.max():.2f}) | {l} | {bound:.3f} | no design |", flush=True)
                continue
            other, size = chances(design), ceil(1 / bound - 1e-9)
            small = comb(d, size) * size <= MOST_VARIABLES
            least = f"{least_error(prior.tolist(), bound) / error(one, prior):.2f}" if small else ""
            seen = drawn(design, codes, options.draws) / drawn(plain, codes, options.draws)
            print(
                f"| {name} ({d}, {prior.max():.2f}) | {l} | {bound:.3f} | {worst(one, prior):.3f} / "
                f"{worst(other, prior):.3f} | {error(other, shares) / error(one, shares):.2f} | {least} | {seen:.2f} | "
                f"{worst(other, np.full(d, 1 / d)):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
