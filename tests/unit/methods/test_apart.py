"""A table cut into parts: nested cuts, cuts that are taken back, and pairs of parts put together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import noren as nr
from noren.engines import Records, Table
from noren.engines.apart import Cuts, joined_pairs
from noren.methods import METHODS
from noren.methods.apart import DecidePart, cuts_of, rules_of, sound
from noren.workflow.prepare import prepare

N = 4_000
QUASI = ("age", "town", "job")


def table() -> Table:
    rng = np.random.default_rng(3)
    data = pa.table(
        {
            "age": np.minimum(rng.integers(20, 90, N), 80),
            "town": rng.choice([f"{z:05}" for z in range(10_000, 90_000, 5_003)], N),
            "job": rng.choice(["cook", "clerk", "miner", "nurse"], N, p=[0.7, 0.1, 0.1, 0.1]),
            "ill": rng.choice(["flu", "burn", "gout", "cold"], N),
        }
    )
    attributes = {
        "age": "quasi-identifier",
        "town": {"role": "quasi-identifier", "hierarchy": {"prefix": [3, 2, 1]}},
        "job": "quasi-identifier",
        "ill": "sensitive",
    }
    rules = [{"model": "k-anonymity", "k": 3}, {"model": "frequency-l-diversity", "on": "ill", "l": 2}]
    return prepare(data, nr.Policy(attributes=attributes, require=rules, method="mondrian"))


def quasi_records(made: Table) -> Records:
    seen = made.records
    return Records(N, {n: seen.columns[n] for n in QUASI}, {n: seen.codes[n] for n in QUASI})


def test_parts_are_even_and_everybody_is_in_one() -> None:
    made = table()
    cuts = cuts_of(quasi_records(made), 8, 0.2)
    part = cuts.parts_of(made.records.codes, N)
    sizes = np.bincount(part, minlength=cuts.parts)
    assert cuts.parts == len(sizes) == 8
    assert sizes.min() > 0
    assert sizes.max() <= 0.3 * N, "cuts of 3 to 7 at worst"
    one = Cuts()
    assert one.parts_of({}, 5).tolist() == [0] * 5


def test_records_that_are_alike_are_not_cut() -> None:
    codes = {"age": np.zeros(50, np.uint8)}
    column = table().records.columns["age"]
    assert cuts_of(Records(50, {"age": column}, codes), 8, 0.1).parts == 1


def test_a_cut_that_is_taken_back_puts_its_parts_together() -> None:
    made = table()
    cuts = cuts_of(quasi_records(made), 9, 0.05)
    before = cuts.parts_of(made.records.codes, N)
    while cuts.parts > 1:
        fewer, number = cuts.joined(cuts.parts // 2)
        after = fewer.parts_of(made.records.codes, N)
        assert (after == number[before]).all()
        assert set(after.tolist()) == set(range(fewer.parts))
        assert fewer.parts < cuts.parts
        cuts, before = fewer, after


def test_a_part_that_falls_short_is_named() -> None:
    made = table()
    decide = DecidePart.of(made, METHODS["mondrian"]())  # type: ignore[arg-type]
    rules = rules_of(decide)
    cuts = Cuts(("age",), (np.arange(200, dtype=np.int32),), (0,), (5,), ((~0, ~1),), 2)
    fine = {"ill": np.array([[2, 2, 0, 0], [5, 1, 5, 1]])}
    assert sound(cuts, np.array([4, 12]), fine, rules) is None
    assert sound(cuts, np.array([4, 12]), {"ill": np.array([[2, 2, 0, 0], [7, 1, 3, 1]])}, rules) == 1
    assert sound(cuts, np.array([2, 14]), {"ill": np.array([[1, 1, 0, 0], [5, 1, 5, 3]])}, rules) == 0


def test_general_values_of_parts_that_are_the_same_are_one() -> None:
    """Two parts decided each by itself: every pair stands for its records, and its node covers its code."""
    made = table()
    decide = DecidePart.of(made, METHODS["mondrian"]())  # type: ignore[arg-type]
    codes = {name: made.records.codes[name] for name in made.deciding}
    halves = [{name: one[half] for name, one in codes.items()} for half in (slice(0, N // 2), slice(N // 2, N))]
    found = [decide(half, lambda n: np.random.default_rng(n).permutation(n)) for half in halves]
    for name in QUASI:
        pairs = [one.pairs[name] for one, _ in found]
        recode, code, places = joined_pairs(pairs, decide.columns[name])
        assert recode is not None
        assert len(set(zip(recode.nodes.labels, map(tuple, recode.nodes.runs), strict=True))) == len(recode.nodes)
        assert recode.nodes.covers(recode.data, code).all()
        assert sum(int(one.times.sum()) for one in pairs) == N
        for half, (_, at), mine, place in zip(halves, found, pairs, places, strict=True):
            assert (code[place[at[name]]] == half[name]).all()
            assert mine.nodes is not None
            assert [recode.nodes.labels[node] for node in recode.data[place]] == [
                mine.nodes.labels[node] for node in mine.value
            ]
    assert found[0][0].figures.keys() == {"ncp_loss", "granularity_score"}
