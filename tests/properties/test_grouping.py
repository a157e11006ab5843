"""The grouping kernels against their oracles, and what every release of the methods must satisfy."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from noren.engines import Group, Plan, RandomOrder, Recode, Records
from noren.errors import RequirementNotMet
from noren.methods.anatomy import Anatomy
from noren.methods.anatomy_kernels import anatomy_groups
from noren.methods.curve_kernels import best_cuts
from noren.methods.hilbert import Hilbert, _losses, diverse_groups, eligible_cap
from noren.methods.three_phase import ThreePhase, three_phase
from noren.models.frequency_l_diversity import FrequencyLDiversity
from noren.models.k_anonymity import KAnonymity
from noren.models.tau_l_diversity import TauLDiversity
from noren.schema.hierarchy import Hierarchy
from tests.oracles import grouping as oracle

TREE = Hierarchy.from_tree({"ab": ["a", "b"], "cde": ["c", "d", "e"], "f": ["f"]})


@st.composite
def eligible_values(draw: st.DrawFn, most: int = 40) -> tuple[list[int], int]:
    l = draw(st.integers(2, 5))
    values = draw(st.lists(st.integers(0, draw(st.integers(l - 1, 9))), min_size=l, max_size=most))
    while not oracle.eligible(values, l):
        values.append(min(range(10), key=values.count))
    return values, l


@given(eligible_values())
def test_one_dimensional_groups(case: tuple[list[int], int]) -> None:
    values, l = case
    groups, count = diverse_groups(np.array(values), 10, l)
    expected = oracle.one_dimensional(values, l)
    assert [np.flatnonzero(groups == g).tolist() for g in range(count)] == expected
    for rows in expected:
        assert oracle.eligible([values[row] for row in rows], l)
        assert len(rows) >= l


def test_a_thousand_sensitive_values() -> None:
    rng = np.random.default_rng(1)
    values = np.minimum(rng.geometric(0.01, 3000) - 1, 999)
    groups, count = diverse_groups(values, 1000, 7)
    assert [np.flatnonzero(groups == g).tolist() for g in range(count)] == oracle.one_dimensional(values.tolist(), 7)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(2, 6))
def test_the_cap_is_the_largest_eligible_one(counts: list[int], l: int) -> None:
    fits = [c for c in range(max(counts) + 1) if l * c <= sum(min(count, c) for count in counts)]
    assert eligible_cap(np.array(counts), l) == max(fits)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    """Groups of sensitive values, often with a value that makes a residue poor."""
    l = draw(st.integers(2, 4))
    m = draw(st.integers(l, 6))
    common = st.lists(st.integers(0, m - 1), min_size=1, max_size=9)
    poor = st.integers(1, 8).map(lambda n: [0] * n + [1] * (n if n % 2 else 0))
    block = st.permutations(range(m)).map(lambda values: values[:l])
    knot = st.tuples(st.integers(0, 1), block).map(lambda pair: list({pair[0]: 0, **dict.fromkeys(pair[1])})[:l])
    groups = draw(st.lists(st.one_of(common, poor, block, knot, knot), min_size=1, max_size=12))
    while not oracle.eligible(together := [v for group in groups for v in group], l):
        groups.append([min(range(m), key=together.count)])
    return groups, l, m


@settings(max_examples=150)
@given(grouped(), st.randoms(use_true_random=False))
def test_three_phases(case: tuple[list[list[int]], int, int], random) -> None:  # type: ignore[no-untyped-def]
    groups, l, m = case
    entries = [(g, v, count) for g, group in enumerate(groups) for v, count in sorted(Counter(group).items())]
    walk = random.sample(range(len(entries)), len(entries))
    walk.sort(key=lambda e: entries[e][1])
    group_walk = random.sample(range(len(groups)), len(groups))
    bounds = np.searchsorted([g for g, _, _ in entries], np.arange(len(groups) + 1))
    values = np.array([v for _, v, _ in entries])
    counts = np.array([count for _, _, count in entries])
    left, sizes, rounds = three_phase(bounds, values, counts, m, l, np.array(walk), np.array(group_walk))
    walks: defaultdict[int, list[int]] = defaultdict(list)
    for e in walk:
        walks[entries[e][1]].append(entries[e][0])
    stay, residue, after_first, first_height = oracle.three_phase(groups, l, walks, group_walk)
    event("phase 3" if rounds else "phase 2" if sizes[1] > sizes[0] else "phase 1")
    assert [Counter(group) for group in stay] == [
        Counter({v: int(n) for v, n in zip(values[a:b], left[a:b], strict=True) if n}) for a, b in pairwise(bounds)
    ]
    assert (sizes[0], sizes[2]) == (after_first, len(residue))
    assert (rounds > 0) == (first_height >= 0)
    assert oracle.eligible(residue, l)
    assert all(oracle.eligible(group, l) for group in stay)


def test_phase_three_is_reached_and_ends() -> None:
    """The residue holds two values; every group has one of them as a pillar, but none has both."""
    groups = [[0] * 6 + [1] * 6, *([[0, 2, 3]] * 10), *([[1, 2, 3]] * 10)]
    entries = [(g, v, count) for g, group in enumerate(groups) for v, count in sorted(Counter(group).items())]
    bounds = np.searchsorted([g for g, _, _ in entries], np.arange(len(groups) + 1))
    values, counts = np.array([e[1] for e in entries]), np.array([e[2] for e in entries])
    walk = np.argsort(values, kind="stable")
    left, sizes, rounds = three_phase(bounds, values, counts, 4, 3, walk, np.arange(len(groups)))
    assert rounds > 0
    assert sizes.tolist() == [12, 12, int((counts - left).sum())]
    residue = np.bincount(values, counts - left)
    assert 3 * residue.max() <= residue.sum()


@given(eligible_values(), st.randoms(use_true_random=False))
def test_anatomy_groups(case: tuple[list[int], int], random) -> None:  # type: ignore[no-untyped-def]
    values, l = case
    walk = random.sample(range(len(values) // l), len(values) // l)
    groups, count = anatomy_groups(np.array(values), 10, l, np.array(walk, np.int64))
    assert groups.tolist() == oracle.anatomy(values, l, walk)
    assert count == len(values) // l
    for g in range(count):
        inside = [values[row] for row in np.flatnonzero(groups == g)]
        assert len(set(inside)) == len(inside) >= l
    assert groups.min() >= 0, "every record of an eligible table finds a group"


@st.composite
def tables(draw: st.DrawFn, most: int = 24) -> Records:
    n = draw(st.integers(1, most))
    column = lambda d: st.lists(st.integers(0, d - 1), min_size=n, max_size=n)  # noqa: E731
    quasi = {"tree": draw(column(6)), "number": draw(column(4)), "word": draw(column(3))}
    return oracle.table_of(
        quasi, {"secret": draw(column(draw(st.integers(1, 5))))}, {"tree": TREE}, {"word": ["x", "é", "漢"]}
    )


def seeded(seed: int) -> RandomOrder:
    return np.random.default_rng(seed).permutation


def published_classes(table: Records, recoding: Plan) -> list[list[int]]:
    """Secrets of records that look alike, after checking that every node covers its record."""
    keep = np.ones(table.n, bool) if recoding.keep is None else recoding.keep
    rows: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for name, column in recoding.recoded.items():
        assert isinstance(column, Recode)
        assert column.nodes.covers(column.data, table.codes[name])[keep].all()
    for row in np.flatnonzero(keep):
        key = tuple(int(column.data[row]) for column in recoding.recoded.values())  # type: ignore[union-attr]
        rows[key].append(int(table.codes["secret"][row]))
    return list(rows.values())


@pytest.mark.parametrize("method", [Hilbert, ThreePhase, lambda **o: ThreePhase(refine=False, **o)])
@settings(max_examples=40)
@given(table=tables(), l=st.integers(2, 4), k=st.integers(2, 6), drop=st.sampled_from([0.0, 0.3]))
def test_classes_are_diverse_or_the_error_is_right(method, table: Records, l: int, k: int, drop: float) -> None:  # type: ignore[no-untyped-def]
    required = [FrequencyLDiversity(on="secret", l=l), KAnonymity(k=k)]
    secrets = table.codes["secret"].tolist()
    possible = oracle.eligible(secrets, l) and table.n >= k
    try:
        recoding = method(suppression=drop).recode(table, required, seeded(3))
    except RequirementNotMet:
        assert not possible
        return
    assert possible or drop
    dropped = 0 if recoding.keep is None else int((~recoding.keep).sum())
    assert dropped <= drop * table.n
    found = published_classes(table, recoding)
    assert found
    for inside in found:
        assert len(inside) >= k
        assert oracle.eligible(inside, l)


@settings(max_examples=40)
@given(table=tables(), l=st.integers(2, 4), tau=st.sampled_from([0.5, 0.6, 0.8]))
def test_other_models_by_the_smallest_l(table: Records, l: int, tau: float) -> None:
    secrets = table.codes["secret"].tolist()
    for method in (Hilbert(), ThreePhase()):
        try:
            recoding = method.recode(table, [TauLDiversity(on="secret", tau=tau, l=l)], seeded(5))
        except RequirementNotMet:
            assert not oracle.tau_l(secrets, tau, l)
            continue
        assert all(oracle.tau_l(inside, tau, l) for inside in published_classes(table, recoding))


@settings(max_examples=40)
@given(table=tables(most=14), k=st.integers(2, 4))
def test_cuts_have_the_least_loss(table: Records, k: int) -> None:
    assume(k <= table.n)
    facts = [table.columns[name] for name in table.quasi]
    codes = np.stack([table.codes[name] for name in table.quasi], axis=1)

    def loss(run: range) -> float:
        total = 0.0
        for column, mine in zip(facts, codes[run].T, strict=True):
            inside = set(mine.tolist())
            if column.hierarchy is not None:
                for h in range(column.hierarchy.height + 1):
                    labels = {column.hierarchy.levels[h][v] for v in inside}
                    if len(labels) == 1:
                        total += (column.hierarchy.levels[h].count(labels.pop()) - 1) / (len(column.domain) - 1)
                        break
            elif column.domain.kind == "integer":
                total += (max(inside) - min(inside)) / max(1, len(column.domain) - 1)
            else:
                total += (len(inside) - 1) / (len(column.domain) - 1)
        return total * len(run)

    runs, count = best_cuts(codes, *_losses(facts), k)
    assert (np.diff(runs) >= 0).all()
    assert count == runs.max() + 1
    mine = sum(loss(range(*(np.flatnonzero(runs == r)[[0, -1]] + [0, 1]))) for r in range(count))
    best = min(sum(loss(run) for run in cut) for cut in oracle.cuts(table.n, k))
    assert mine == pytest.approx(best)
    recoding = Hilbert().recode(table, [KAnonymity(k=k)], seeded(2))
    assert all(len(inside) >= k for inside in published_classes(table, recoding))


@settings(max_examples=40)
@given(table=tables(), l=st.integers(2, 4), drop=st.sampled_from([0.0, 0.4]))
def test_anatomy_releases(table: Records, l: int, drop: float) -> None:
    possible = oracle.eligible(table.codes["secret"].tolist(), l)
    try:
        recoding = Anatomy(suppression=drop).recode(table, [FrequencyLDiversity(on="secret", l=l)], seeded(9))
    except RequirementNotMet:
        assert not possible
        return
    column = recoding.treatments["secret"]
    assert isinstance(column, Group)
    assert set(recoding.treatments) == {"secret"}
    keep = np.ones(table.n, bool) if recoding.keep is None else recoding.keep
    assert (~keep).sum() <= drop * table.n
    assert (column.table.sizes >= l).all()
    assert (column.table.count == 1).all()
    assert column.table.totals.tolist() == np.bincount(table.codes["secret"][keep], minlength=column.table.d).tolist()
    listed = set(zip(column.table.group.tolist(), column.table.value.tolist(), strict=True))
    assert listed == set(zip(column.data[keep].tolist(), table.codes["secret"][keep].tolist(), strict=True))
