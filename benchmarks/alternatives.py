"""Decoys beside other ways to publish or collect: k-ary randomised response, OUE, one central Laplace table.

    python benchmarks/alternatives.py --releases 20

One generated table: two columns of 14 and 9 values that depend on each other, skewed as occupations and schooling are.
Local mechanisms get the same epsilon for each column: decoys (`local-privacy`: subset selection), k-ary randomised
response (GRR; Warner 1965, Kairouz et al. 2014) and optimised unary encoding (OUE; Wang et al. 2017). GRR and OUE are
inverted without bias and projected on the simplex, as their papers' users do; decoys are estimated by inversion and
projection too, and by Noren's default. Sets of l = 2, 3 and 5 with p = 1 have no epsilon; beside each stands GRR that
keeps values as often as lets an adversary guess as many rightly, with Noren's estimate (`pram`). "Right guesses" is
how often an adversary who knows the distribution and sees one record's cell guesses its value. Central Laplace noises
every cell of one table that is asked for beforehand, at the epsilon of the whole table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

import noren as nr

Floats = NDArray[np.float64]
D = (14, 9)


def shares() -> Floats:
    """P(a, b): skewed margins, b follows a."""
    a = 0.75 ** np.arange(D[0])
    place = np.linspace(0, 1, D[1])
    centre = np.linspace(0.15, 0.85, D[0])[np.random.default_rng(3).permutation(D[0])]
    near = np.exp(-((place[None, :] - centre[:, None]) ** 2) / 0.08)
    joint = (a / a.sum())[:, None] * near / near.sum(axis=1, keepdims=True)
    return joint


def projected(x: Floats, total: float) -> Floats:
    """The nearest table without negative cells that has this sum."""
    flat = np.sort(x.ravel())[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, x.size + 1)
    return np.maximum(x - excess[np.flatnonzero(flat > excess)[-1]], 0.0)


# ---------------------------------------------------------------------- mechanisms: scores of every record, (n, d)


def grr(rng: np.random.Generator, codes: NDArray, d: int, epsilon: float) -> Floats:
    keep = np.exp(epsilon) / (np.exp(epsilon) + d - 1)
    other = (codes + rng.integers(1, d, len(codes))) % d
    said = np.where(rng.random(len(codes)) < keep, codes, other)
    wrong = (1 - keep) / (d - 1)
    return ((said[:, None] == np.arange(d)) - wrong) / (keep - wrong)


def oue(rng: np.random.Generator, codes: NDArray, d: int, epsilon: float) -> Floats:
    no = 1 / (np.exp(epsilon) + 1)
    bits = rng.random((len(codes), d)) < np.where(codes[:, None] == np.arange(d), 0.5, no)
    return (bits - no) / (0.5 - no)


def grr_guess(prior: Floats, epsilon: float) -> float:
    d = len(prior)
    keep = np.exp(epsilon) / (np.exp(epsilon) + d - 1)
    chance = np.full((d, d), (1 - keep) / (d - 1))
    np.fill_diagonal(chance, keep)
    return float((prior[:, None] * chance).max(axis=0).sum())


def oue_guess(prior: Floats, epsilon: float, rng: np.random.Generator) -> float:
    no, d, n = 1 / (np.exp(epsilon) + 1), len(prior), 40_000
    codes = rng.choice(d, n, p=prior)
    bits = rng.random((n, d)) < np.where(codes[:, None] == np.arange(d), 0.5, no)
    lift = np.where(bits, 0.5 / no, 0.5 / (1 - no))
    return float((np.argmax(prior * lift, axis=1) == codes).mean())


def set_guess(release: nr.Release, prior: Floats, column: str = "a") -> float:
    """The share of right guesses from sets, by Bayes with the true distribution."""
    design, rng, n = release.designs[column], np.random.default_rng(1), 40_000
    codes = rng.choice(len(prior), n, p=prior)
    rank = rng.random((n, len(prior)))
    inside = rng.random(n) < design.p_true
    rank[np.arange(n), codes] = np.where(inside, -1.0, 2.0)
    order = np.argsort(rank, axis=1)[:, : design.eta]
    picked = np.zeros((n, len(prior)), bool)
    np.put_along_axis(picked, order, True, axis=1)
    outside = 0.0 if np.isinf(design.rho) else 1 / design.rho
    return float((np.argmax(np.where(picked, prior, prior * outside), axis=1) == codes).mean())


def equal_keep(prior: Floats, wanted: float) -> float:
    """How often GRR may keep a value so that this share is guessed rightly."""
    low, high = 1e-3, 1 - 1e-3
    for _ in range(40):
        keep = (low + high) / 2
        chance = keep * np.eye(len(prior)) + (1 - keep) / len(prior)
        found = float((prior[:, None] * chance).max(axis=0).sum())
        low, high = (keep, high) if found < wanted else (low, keep)
    return low


def kept(frame: pl.DataFrame, keep: dict[str, float]) -> nr.Release:
    odds = {name: float(np.log1p(keep[name] / (1 - keep[name]) * d)) for name, d in zip(("a", "b"), D, strict=True)}
    return released(frame, [nr.models.LocalPrivacy(on=name, epsilon=odds[name]) for name in odds], nr.methods.Pram())


def released(frame: pl.DataFrame, require: list[nr.models.Model], method: nr.methods.Pram | None = None) -> nr.Release:
    roles = {name: nr.sensitive(values=list(range(d))) for name, d in zip(("a", "b"), D, strict=True)}
    how = {} if method is None else {"method": method}
    return nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}, **how))


def counted(frame: pl.DataFrame) -> Floats:
    flat = frame["a"].to_numpy() * D[1] + frame["b"].to_numpy()
    return np.bincount(flat, minlength=D[0] * D[1]).reshape(D).astype(float)


def tables(release: nr.Release, estimator: str | None, n: int) -> tuple[Floats, Floats]:
    one = release.estimate("a", estimator=estimator).frame["count"].to_numpy()
    two = release.estimate(["a", "b"], estimator=estimator).frame["count"].to_numpy().reshape(D)
    return (projected(one, n), projected(two, n)) if estimator == "linear" else (one, two)


def note(
    errors: dict[tuple[str, str], list[tuple[float, float]]],
    true: Floats,
    kind: str,
    epsilon: str,
    one: Floats,
    two: Floats,
) -> None:
    """Keep the errors of one mechanism's tables."""
    n = true.sum()
    wrong = (float(np.abs(one - true.sum(axis=1)).sum() / n), float(np.abs(two - true).sum() / n))
    errors.setdefault((kind, epsilon), []).append(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=20)
    args = parser.parse_args()
    rng, started, law = np.random.default_rng(11), time.process_time(), shares()
    prior = law.sum(axis=1)
    print(f"Guessing without any record: {prior.max():.3f}\n")
    print("| records | mechanism | epsilon a column | right guesses | L1 one column | L1 two columns |")
    print("| --- " * 6 + "|")
    for n in (5_000, 50_000):
        errors: dict[tuple[str, str], list[tuple[float, float]]] = {}
        guesses: dict[tuple[str, str], float] = {}
        for _ in range(args.releases):
            codes = rng.choice(law.size, n, p=law.ravel())
            a, b = codes // D[1], codes % D[1]
            frame = pl.DataFrame({"a": a, "b": b})
            true = counted(frame)

            tell = partial(note, errors, true)
            for epsilon in (1.0, 2.0, 3.0):
                ways: dict[str, Callable[..., Floats]] = {"k-ary randomised response": grr, "OUE": oue}
                for kind, way in ways.items():
                    x, y = way(rng, a, D[0], epsilon), way(rng, b, D[1], epsilon)
                    tell(kind, f"{epsilon:g}", projected(x.sum(axis=0), n), projected(x.T @ y, n))
                local = [nr.models.LocalPrivacy(on=name, epsilon=epsilon) for name in ("a", "b")]
                release = released(frame, local)
                tell("decoys, inverted", f"{epsilon:g}", *tables(release, "linear", n))
                tell("decoys", f"{epsilon:g}", *tables(release, None, n))
                guesses["decoys", f"{epsilon:g}"] = set_guess(release, prior)
                guesses["k-ary randomised response", f"{epsilon:g}"] = grr_guess(prior, epsilon)
                guesses["OUE", f"{epsilon:g}"] = oue_guess(prior, epsilon, rng)
            for l in (2, 3, 5):  # noqa: E741
                release = released(frame, [nr.models.FrequencyLDiversity(on=["a", "b"], l=l)])
                tell(f"decoys, l = {l}", "-", *tables(release, None, n))
                guesses[f"decoys, l = {l}", "-"] = set_guess(release, prior)
                margins = {"a": prior, "b": law.sum(axis=0)}
                keep = {c: equal_keep(margins[c], set_guess(release, margins[c], c)) for c in ("a", "b")}
                tell(f"as many guesses as l = {l}: GRR", "-", *tables(kept(frame, keep), None, n))
                guesses[f"as many guesses as l = {l}: GRR", "-"] = guesses[f"decoys, l = {l}", "-"]
            for epsilon in (0.1, 1.0):
                noise = rng.laplace(0, 2 / epsilon, D[0]), rng.laplace(0, 2 / epsilon, D)
                one, two = projected(true.sum(axis=1) + noise[0], n), projected(true + noise[1], n)
                tell("central Laplace, this one table", f"{epsilon:g} in all", one, two)
        for (kind, epsilon), found in sorted(errors.items(), key=lambda item: (item[0][1], item[0][0])):
            guess = guesses.get((kind.replace(", inverted", ""), epsilon))
            shown = "-" if guess is None else f"{guess:.3f}"
            one, two = np.mean(found, axis=0)
            print(f"| {n:,} | {kind} | {epsilon} | {shown} | {one:.4f} | {two:.4f} |", flush=True)
    print(f"\n{time.process_time() - started:.0f} CPU seconds, {args.releases} tables each")


if __name__ == "__main__":
    main()
