"""A small world of diseases and their signs, people who have some of them, and what every release must pass."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import noren as nr
from tests.oracles.terms import Belief, Demand, World, groups, terms_of

WORLD = World(
    {
        "Flu": frozenset({"cough", "fever", "ache"}),
        "Cold": frozenset({"cough", "sneeze"}),
        "Measles": frozenset({"fever", "rash", "cough"}),
        "Migraine": frozenset({"ache", "nausea"}),
        "Allergy": frozenset({"sneeze", "rash"}),
        "Idiopathic": frozenset(),
    }
)
TERMS = sorted({term for held in WORLD.labels.values() for term in held})
N = 80


def known(world: World = WORLD) -> nr.Knowledge:
    weights = {label: float(w) for label, w in world.weights.items()} or None
    priors = None if world.priors is None else {label: float(p) for label, p in world.priors.items()}
    paired = {pair: float(w) for pair, w in world.pair_weights.items()} or None
    return nr.Knowledge.from_pairs(world.pairs, weights=weights, priors=priors, pair_weights=paired)


def table(n: int = N, seed: int = 1) -> pa.Table:
    """People with signs of one disease, of none together, or without any; `row` is published for the tests."""
    rng = np.random.default_rng(seed)
    held = [sorted(own) for own in WORLD.labels.values()]
    signs = []
    for _ in range(n):
        own = held[rng.integers(len(held))] if rng.random() < 0.8 else TERMS
        signs.append(rng.permutation(own)[: rng.integers(0, 4)].tolist())
    return pa.table(
        {
            "row": list(range(n)),
            "age": rng.integers(20, 32, n).tolist(),
            "town": rng.choice(["north", "east", "south"], n).tolist(),
            "ill": rng.choice(["a", "b", "c"], n).tolist(),
            "signs": pa.array(signs, pa.list_(pa.string())),
        }
    )


DIVERSE = {"model": "qs-diversity", "on": "signs", "c": 1.0, "l": 3}
ENOUGH = Demand("cl", Fraction(1), 3)
CLOSE = {"model": "qs-closeness", "on": "signs", "t": 0.5}


def policy(
    knowledge: nr.Knowledge | None = None, require: list[Any] | None = None, ill: str = "identifier", **method: Any
) -> nr.Policy:
    return nr.Policy(
        mechanism="ignored",
        attributes={
            "row": "plain",
            "age": "quasi-identifier",
            "town": "quasi-identifier",
            "ill": ill,
            "signs": {"role": "quasi-sensitive", "knowledge": knowledge or known()},
        },
        require=require or [DIVERSE],
        method={"name": "suppress", "nodes": 300} | method,
    )


def check(
    release: nr.Release, original: pa.Table, demand: Demand, world: World = WORLD, columns: tuple[str, ...] = ("signs",)
) -> list[dict[str, Any]]:
    """Published terms are true ones, and every group meets the demand. Returns the rows beside the truth."""
    truth = pl.DataFrame({name: original[name].to_pylist() for name in ("row", *columns)})
    shown = release.frame().join(truth, on="row", suffix="_true", validate="1:1")
    rows = shown.to_dicts()
    for row in rows:
        for name in columns:
            assert row[name] == sorted(set(row[name]), key=release.manifest.column(name).domain.index.__getitem__)
            assert set(row[name]) <= set(row[f"{name}_true"] or ())
    everybody = [terms_of({name: row[name] or () for name in columns}, columns) for row in truth.to_dicts()]
    alpha: Belief = world.alpha(everybody)
    for group in groups(rows, [c.name for c in release.manifest.columns if c.role == "quasi-identifier"]):
        assert demand.met(world, [terms_of(row, columns) for row in group], alpha), group
    return rows
