"""A published set is the same whichever of its members is true: neither its order nor its frequency tells."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from tests.leaks.world import binomial_bounds, linked

N = 30_000
VALUES = ["blue", "green", "red", "white", "yellow"]
# A declared order that is neither alphabetical nor the order of appearance.
DECLARED = ["red", "blue", "yellow", "green", "white"]


def table(shares: list[int]) -> pa.Table:
    """Records of every value, the commonest first, in the given proportion."""
    truth = np.repeat(VALUES, [N * share // sum(shares) for share in shares])
    return pa.table({"row": np.arange(len(truth)), "s": truth.tolist()})


def release_of(original: pa.Table, folder, *, eta: int, p: float = 1.0, way: str = "fresh", **domain) -> nr.Release:
    """A release whose sets have eta of five values, made fresh or under a secret, in memory or from a file."""
    randomness = {"record_key": "row"} if way == "memoised" else {}
    policy = nr.Policy(
        attributes={"row": "plain", "s": {"role": "sensitive"} | domain},
        require=[{"model": "t-closeness", "on": "s", "t": 0.999}],
        method={"name": "decoys", "parameters": {"s": {"eta": eta, "p": p}}},
        randomness=randomness,
    )
    if way == "memoised":
        nr.Secret.create(folder / "key")
        return nr.anonymize(original, policy, secret=folder / "key")
    if way == "csv":
        return nr.anonymize(original, policy, to=folder / "release", file_format="csv")
    return nr.anonymize(original, policy, to=folder / "release")


@pytest.mark.parametrize("way", ["fresh", "csv", "memoised"])
@pytest.mark.parametrize("domain", [VALUES, DECLARED])
def test_sets_are_in_domain_order_and_every_position_is_equally_likely(way, domain, tmp_path):
    original = table([1] * 5)
    release = release_of(original, tmp_path, eta=3, way=way, values=domain)
    both = linked(release, original, "s")
    assert len(both) == N
    where = {value: place for place, value in enumerate(domain)}
    assert all(list(cell) == sorted(cell, key=where.__getitem__) for cell in both["set"].unique())
    position = np.array([cell.index(truth) for cell, truth in zip(both["set"].to_list(), both["truth"], strict=True)])
    # Positions of different records are independent, and over a uniform table each has the mean N / 3. A sum of
    # unequal coins spreads less than the binomial of the same mean (Hoeffding 1956), so its bounds are safe.
    low, high = binomial_bounds(N, 1 / 3, tests=3)
    counts = np.bincount(position, minlength=3)
    assert low <= counts.min()
    assert counts.max() <= high


@pytest.mark.parametrize("way", ["fresh", "csv", "memoised"])
@pytest.mark.parametrize("shares", [[1, 1, 1, 1, 1], [12, 4, 2, 1, 1]])
def test_a_set_is_as_likely_under_each_of_its_members(way, shares, tmp_path):
    original = table(shares)
    frequency = frequencies(release_of(original, tmp_path, eta=2, way=way), original)
    sizes = dict(zip(VALUES, [N * share // sum(shares) for share in shares], strict=True))
    for members in combinations(VALUES, 2):
        for truth in VALUES:
            seen = frequency.get((members, truth), 0)
            low, high = binomial_bounds(sizes[truth], 1 / 4, tests=20)
            if truth in members:
                assert low <= seen <= high
            else:
                assert seen == 0


def test_with_a_coin_a_set_is_as_likely_under_each_member_and_under_each_other_value(tmp_path):
    """p = 0.4, two of five values: 1/C(4,1) times P(truth inside) for a member, 1/C(4,2) times the rest for others."""
    original = table([5, 1, 1, 1, 1])
    frequency = frequencies(release_of(original, tmp_path, eta=2, p=0.4), original)
    sizes = dict(zip(VALUES, [N * share // 9 for share in [5, 1, 1, 1, 1]], strict=True))
    inside = 0.4 + 0.6 * 2 / 5
    for members in combinations(VALUES, 2):
        for truth in VALUES:
            chance = inside / comb(4, 1) if truth in members else (1 - inside) / comb(4, 2)
            low, high = binomial_bounds(sizes[truth], chance, tests=50)
            assert low <= frequency.get((members, truth), 0) <= high


def frequencies(release: nr.Release, original: pa.Table) -> dict[tuple[tuple[str, ...], str], int]:
    """How often each set was published for each true value."""
    counted = linked(release, original, "s").group_by("set", "truth").agg(pl.len())
    return {(tuple(cell), truth): seen for cell, truth, seen in counted.iter_rows()}
