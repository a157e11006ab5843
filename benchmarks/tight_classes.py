"""Error of the default on releases of tight classes (`mondrian`, `hilbert`) against `spread` and `likelihood`.

For every method and k, tables of 1, 2 and 3 columns: the geometric mean and the worst of L1(default) / the smaller L1
of the two others, and how wide hard bounds are beside those of a release that does not say that its classes are tight.
Tables that the better one of the others estimates within a thousandth of the records are left out: nothing is at stake.

    python benchmarks/tight_classes.py --table FILE.csv --quasi age sex race --secret income --records 10000
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np
import polars as pl

import noren as nr
from noren.release.answers import answer

METHODS = {"mondrian": nr.methods.Mondrian, "hilbert": nr.methods.Hilbert}
CELLS = 100_000
LEAST = 1e-3


def released(table: pl.DataFrame, quasi: list[str], secret: str, method: str, k: int, diverse: int) -> nr.Release:
    attributes = {name: nr.quasi_identifier() for name in quasi} | {secret: nr.sensitive()}
    wanted = [nr.models.KAnonymity(k=k)]
    if diverse > 1:
        wanted.append(nr.models.DistinctLDiversity(on=secret, l=diverse))
    else:
        attributes[secret] = nr.plain()
    policy = nr.Policy(attributes=attributes, require=wanted, method=METHODS[method]())
    return nr.anonymize(table, policy)


def silent(release: nr.Release) -> nr.Release:
    """The release without what it says of its classes."""
    columns = tuple(replace(c, tight=None) if c.tightness else c for c in release.statements)
    return nr.Release(release.manifest.model_copy(update={"columns": columns}), release.store)


def counted(release: nr.Release, table: pl.DataFrame, names: list[str]) -> np.ndarray | None:
    """The true table over the published values; None where it is too large."""
    domains = [release.column(name).domain for name in names]
    if prod(len(domain) for domain in domains) > CELLS:
        return None
    out = np.zeros([len(domain) for domain in domains])
    texts = [table[name].cast(pl.String).to_list() for name in names]
    np.add.at(out, tuple(np.array(domain.find(text)) for domain, text in zip(domains, texts, strict=True)), 1.0)
    return out


def mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, required=True, help="A CSV file with a header.")
    parser.add_argument("--quasi", nargs="+", required=True, help="Columns that are generalised.")
    parser.add_argument("--secret", required=True, help="The column that must be diverse; published as it is.")
    parser.add_argument("--diverse", type=int, default=2, help="Values of it in every class; 1 asks for none.")
    parser.add_argument("--records", type=int, default=10_000, help="A random sample of the file, at most so many.")
    parser.add_argument("--k", type=int, nargs="+", default=[5, 20], help="Least class sizes.")
    parser.add_argument("--choices", type=int, default=12, help="Tables of each number of columns, at most.")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the sample and of the choices.")
    args = parser.parse_args()
    names = [*args.quasi, args.secret]
    table = pl.read_csv(args.table, infer_schema_length=None, columns=names)
    table = table.sample(min(args.records, table.height), seed=args.seed)
    everything: list[float] = []
    for method in METHODS:
        for k in args.k:
            release = released(table, args.quasi, args.secret, method, k, args.diverse)
            bare = silent(release)
            for size in (1, 2, 3):
                rng = np.random.default_rng((args.seed, size))
                chosen = [list(c) for c in combinations(names, size) if set(c) & set(args.quasi)]
                rng.shuffle(chosen)
                ratios, widths, inside = [], [], True
                for by in chosen[: args.choices]:
                    truth = counted(release, table, by)
                    if truth is None:
                        continue
                    found = answer(release, by, {}, None, 0.95, False, None)
                    others = [answer(bare, by, {}, one, 0.95, False, None) for one in ("spread", "likelihood")]
                    inside &= bool((found.low <= truth + 1e-6).all() and (truth <= found.high + 1e-6).all())
                    better = min(float(np.abs(one.counts - truth).sum()) for one in others)
                    if better > LEAST * table.height:
                        ratios.append(float(np.abs(found.counts - truth).sum()) / better)
                        widths.append(float((found.high - found.low).sum() / (others[0].high - others[0].low).sum()))
                if ratios:
                    everything += ratios
                    print(
                        f"{method} k = {k}, {len(ratios)} tables of {size}: default / better "
                        f"{mean(ratios):.2f}, worst {max(ratios):.2f}; width of bounds {mean(widths):.2f}; truth "
                        f"{'always' if inside else 'NOT always'} inside",
                        flush=True,
                    )
    print(f"all {len(everything)}: geometric mean {mean(everything):.2f} (goal 0.8), worst {max(everything):.2f} (1.2)")


if __name__ == "__main__":
    main()
