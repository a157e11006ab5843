"""SWEEP against its slow twin, and what must hold for every release it decides."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.engines import Plan, Recode, Records
from noren.errors import PolicyError, RequirementNotMet
from noren.methods.curve_kernels import hilbert_bits, hilbert_index, stretched
from noren.methods.sweep import Run, Sweep
from noren.methods.sweep.bounds import Bound, bounds_of
from noren.methods.sweep.kernels.passes import raise_values
from noren.methods.sweep.kernels.select import Room, Tally, select_base, select_general
from noren.methods.sweep.levels import level_vectors
from noren.models.base import Model
from noren.models.distinct_l_diversity import DistinctLDiversity
from noren.models.entropy_l_diversity import EntropyLDiversity
from noren.models.frequency_l_diversity import FrequencyLDiversity
from noren.models.k_anonymity import KAnonymity
from noren.models.tau_l_diversity import TauLDiversity
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from tests.oracles import sweep as oracle


@st.composite
def trees(draw: st.DrawFn, leaves: int, name: str = "v") -> Hierarchy:
    """A random hierarchy: every level joins some labels of the one below."""
    level = [f"{name}{i}" for i in range(leaves)]
    levels = [tuple(level)]
    for height in range(draw(st.integers(0, 2))):
        joined = {label: draw(st.integers(0, max(1, leaves // 2))) for label in dict.fromkeys(level)}
        level = [f"{name}{height}:{joined[label]}" for label in level]
        levels.append(tuple(level))
    return Hierarchy(tuple(levels))


def coded(quasi: list[Hierarchy], rows: np.ndarray, secrets: list[Hierarchy], values: np.ndarray) -> Records:
    columns, codes = {}, {}
    listed = [*zip(quasi, rows.T, strict=True), *zip(secrets, values.T, strict=True)]
    for j, (tree, column) in enumerate(listed):
        role = Role.QUASI_IDENTIFIER if j < len(quasi) else Role.SENSITIVE
        name = f"q{j}" if j < len(quasi) else f"s{j - len(quasi)}"
        columns[name] = Column(role=role).over(name, Domain(tree.leaves), hierarchy=tree)
        codes[name] = column.astype(np.int64)
    return Records(len(rows), columns, codes)


@st.composite
def requirements(draw: st.DrawFn, name: str, values: int, labels: tuple[str, ...]) -> Model:
    l = draw(st.integers(2, values))  # noqa: E741
    tau = draw(st.sampled_from([1 / l, (1 + 1 / l) / 2, min(0.9, 1.2 / l)]))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return FrequencyLDiversity(on=name, l=l)
    if kind == 1:
        return DistinctLDiversity(on=name, l=l)
    weights = {label: draw(st.integers(0, 3)) for label in labels} if kind == 3 else None
    return TauLDiversity(on=name, tau=max(tau, 0.5 if weights else 0), l=min(l, 2) if weights else l, weights=weights)


@st.composite
def tables(draw: st.DrawFn, columns: int, distinct: bool) -> tuple[Records, list[Model]]:
    sizes = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    quasi = [draw(trees(size)) for size in sizes]
    everything = np.array(list(itertools.product(*map(range, sizes))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, min(40, len(everything)) if distinct else 40))
    rows = rng.permutation(everything)[:n] if distinct else everything[rng.integers(0, len(everything), n)]
    secrets, values, models = [], [], []
    for j in range(columns):
        d = draw(st.integers(2, 6))
        skew = rng.dirichlet(np.full(d, draw(st.sampled_from([0.5, 3.0]))))
        drawn = rng.choice(d, n, p=skew)
        seen, drawn = np.unique(drawn, return_inverse=True)
        tree = draw(trees(d)).restrict_to([f"v{i}" for i in seen])
        if len(seen) > 1:
            models.append(draw(requirements(f"s{j}", len(seen), tree.leaves)))
        secrets.append(tree)
        values.append(drawn)
    return coded(quasi, rows, secrets, np.stack(values, axis=1)), models


def orders(table: Records, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(table.n)


def twin(table: Records, bound: Bound) -> oracle.Column:
    tree = table.columns[bound.name].tree
    assert tree is not None
    weights = [int(w) for w in bound.weights]
    return oracle.Column(table.codes[bound.name].tolist(), tree.levels, weights, bound.psi.tolist(), bound.least)


def members(column: Recode) -> list[frozenset[int]]:
    return [frozenset(column.nodes.members(int(i)).tolist()) for i in column.data]


def published(recoding: Plan, table: Records, name: str) -> list[frozenset[int]]:
    if name in recoding.treatments:
        return members(recoding.treatments[name])  # type: ignore[arg-type]
    return [frozenset([int(code)]) for code in table.codes[name]]


@settings(max_examples=150)
@given(st.integers(1, 2).flatmap(lambda columns: tables(columns, distinct=True)), st.integers(0, 99), st.integers(1, 4))
def test_equals_the_literal_algorithm(drawn: tuple[Records, list[Model]], seed: int, size: int) -> None:
    table, models = drawn
    if not models:
        return
    bounds = bounds_of(table, models)
    twins = [twin(table, bound) for bound in bounds]
    priority = orders(table, seed)
    wanted = [*models, KAnonymity(k=size)] if size > 1 else models
    quasi = [table.columns[name].tree.levels for name in table.quasi]  # type: ignore[union-attr]
    rows = [[int(table.codes[name][i]) for name in table.quasi] for i in range(table.n)]
    try:
        nodes, secrets, classes = oracle.sweep(rows, quasi, twins, priority.tolist(), size)
    except IndexError:
        if size == 1:
            with pytest.raises(RequirementNotMet):
                Sweep().recode(table, models, lambda n: priority)
        return
    if len(classes[-1]) < size:
        return
    recoding = Sweep().recode(table, wanted, lambda n: priority)
    for j, name in enumerate(table.quasi):
        assert published(recoding, table, name) == [node[j] for node in nodes]
    for bound, mine in zip(bounds, secrets, strict=True):
        assert published(recoding, table, bound.name) == mine
    run = Run.of(
        table, table.quasi, [table.columns[q].tree for q in table.quasi], bounds, lambda n: priority  # type: ignore[misc]
    )  # fmt: skip
    run.sweep(size)
    found = {tuple(np.flatnonzero(run.classes == c).tolist()) for c in np.unique(run.classes)}
    assert found == {tuple(sorted(group)) for group in classes}


@settings(max_examples=80)
@given(
    st.integers(1, 2).flatmap(lambda columns: tables(columns, distinct=False)),
    st.integers(0, 99),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.sampled_from([None, 5]),
)
def test_what_is_published_meets_the_requirement(
    drawn: tuple[Records, list[Model]], seed: int, size: int, suppression: float, chunk: int | None
) -> None:
    """Every class holds, covers the truth, and no more is dropped than allowed."""
    table, models = drawn
    if not models or size > table.n:
        return
    method = Sweep(suppression=suppression, chunk=chunk)
    wanted = [*models, KAnonymity(k=size)] if size > 1 else models
    assert method.problems({name: facts.role for name, facts in table.columns.items()}, wanted) == []
    rng = np.random.default_rng(seed)
    try:
        recoding = method.recode(table, wanted, rng.permutation)
    except RequirementNotMet:
        assert any(m.parameters().get("weights") for m in models) or (suppression > 0 and size > 1)
        return
    keep = np.ones(table.n, bool) if recoding.keep is None else recoding.keep
    assert (~keep).sum() <= suppression * table.n
    quasi = [published(recoding, table, name) for name in table.quasi]
    for name, nodes in zip(table.quasi, quasi, strict=True):
        assert all(code in node for code, node in zip(table.codes[name].tolist(), nodes, strict=True))
    classes: dict[tuple[frozenset[int], ...], list[int]] = {}
    for r in np.flatnonzero(keep).tolist():
        classes.setdefault(tuple(column[r] for column in quasi), []).append(r)
    for bound in bounds_of(table, models):
        secret = published(recoding, table, bound.name)
        column = twin(table, bound)
        assert all(code in node for code, node in zip(table.codes[bound.name].tolist(), secret, strict=True))
        for group in classes.values():
            assert len(group) >= size
            assert column.holds([secret[r] for r in group])


@settings(max_examples=150)
@given(st.lists(st.integers(0, 120), min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_bisection_on_a_cap_equals_removal_one_by_one(counts: list[int], seed: int) -> None:
    present = [a for a, count in enumerate(counts) if count]
    rng = np.random.default_rng(seed)
    l = int(rng.integers(2, max(3, len(present) + 1)))  # noqa: E741
    psi = oracle.ceilings(rng.uniform(1 / l, 1), l)
    if len(present) < l:
        return
    naive = list(counts)
    while any(sum(sorted(naive)[::-1][:k]) > (bound + oracle.TOLERANCE) * sum(naive) for k, bound in enumerate(psi, 1)):
        naive[naive.index(max(naive))] -= 1
    swept = np.zeros(len(counts), np.int64)
    touched = rng.permutation(present)
    ranked = np.empty(len(counts), np.int64)
    gone = select_base(Tally(np.array(counts), swept, touched), len(touched), sum(counts), np.array(psi), ranked)
    assert (np.array(counts) - swept).tolist() == naive
    assert gone == sum(counts) - sum(naive)


@settings(max_examples=100)
@given(trees(7), st.integers(0, 2**32 - 1), st.sampled_from([-1, 0, 5, 60]))
def test_sweeping_in_bulk_equals_removal_one_by_one(hierarchy: Hierarchy, seed: int, limit: int) -> None:
    rng = np.random.default_rng(seed)
    tree = tree_of(hierarchy)
    l = int(rng.integers(2, 8))  # noqa: E741
    psi = np.array(oracle.ceilings(rng.uniform(1 / l, 1), l))
    bound = Bound("s", tree, psi, l, np.ones(7))
    column = oracle.Column([], hierarchy.levels, [1] * 7, psi.tolist(), l)
    counts = rng.integers(0, rng.choice([3, 30, 120], len(tree.nodes))) * (rng.random(len(tree.nodes)) < 0.8)
    given_by = [
        [column.share(frozenset(tree.nodes.members(g).tolist()), a) for a in range(7)] for g in range(len(counts))
    ]
    left, gone = counts.tolist(), 0
    while gone < counts.sum() and gone != limit:
        f = [sum(left[g] * given_by[g][a] for g in range(len(left))) for a in range(7)]
        ranked = sorted(f, reverse=True)
        if ranked[l - 1] and all(sum(ranked[:k]) <= (psi[k - 1] + 1e-9) * sum(left) for k in range(1, l)):
            break
        a = f.index(ranked[0])
        left[max((g for g in range(len(left)) if left[g]), key=lambda g, a=a: given_by[g][a])] -= 1
        gone += 1
    swept = np.zeros(len(counts), np.int64)
    touched = np.flatnonzero(counts)
    if not len(touched):
        return
    room = Room(np.zeros(7), np.empty(7, np.int64), np.empty(7), np.zeros(len(counts), np.int64))
    tally = Tally(counts.copy(), swept, touched)
    found = select_general(tally, len(touched), counts.sum(), bound.alone, limit, room)
    assert found == gone
    if gone < counts.sum():
        assert (counts - swept).tolist() == left


@settings(max_examples=100)
@given(trees(6), st.integers(0, 2**32 - 1))
def test_a_class_is_left_alone_exactly_if_it_meets_its_bound(hierarchy: Hierarchy, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = tree_of(hierarchy)
    l = int(rng.integers(2, 7))  # noqa: E741
    psi = np.array(oracle.ceilings(rng.uniform(1 / l, 1), l))
    bound = Bound("s", tree, psi, l, rng.integers(1, 4, 6).astype(float))
    skew = rng.dirichlet(np.full(len(tree.nodes), rng.choice([0.3, 30.0])))
    given_nodes = rng.choice(len(tree.nodes), rng.integers(0, 40), p=skew)
    nodes = given_nodes.copy()
    short = raise_values(nodes, np.array([0, len(nodes)]), bound.alone, tree.parent)
    assert bound.met_by(given_nodes) == (not short and (nodes == given_nodes).all())


@settings(max_examples=40)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3).flatmap(lambda sizes: st.tuples(*map(trees, sizes))))
def test_level_vectors_equal_their_definition(hierarchies: tuple[Hierarchy, ...]) -> None:
    information, heights = level_vectors(hierarchies)
    expected = oracle.level_vectors([tree.levels for tree in hierarchies])
    tops = [tree.height for tree in hierarchies]
    assert [tuple(top - h for top, h in zip(tops, row, strict=True)) for row in heights.tolist()] == [
        levels for _, levels in expected
    ]
    assert information == pytest.approx([float(value) for value, _ in expected])


@pytest.mark.parametrize(("dims", "bits"), [(1, 4), (2, 3), (3, 2), (4, 2)])
def test_neighbours_on_the_curve_are_neighbours_in_space(dims: int, bits: int) -> None:
    grid = np.array(list(itertools.product(range(2**bits), repeat=dims)), np.uint64)
    index = hilbert_index(grid, bits)
    assert np.sort(index).tolist() == list(range(len(grid)))
    walk = grid[np.argsort(index)].astype(np.int64)
    assert (np.abs(np.diff(walk, axis=0)).sum(axis=1) == 1).all()


def test_axes_of_the_curve() -> None:
    assert hilbert_bits([5, 100]) == 7
    assert hilbert_bits([100] * 20) == 3
    assert hilbert_bits([2] * 100) == 1
    assert stretched(np.arange(5), 5, 3).tolist() == [0, 1, 3, 4, 6]
    assert (
        hilbert_index(np.ones((2, 100), np.uint64), 1).tolist()
        == hilbert_index(np.ones((2, 64), np.uint64), 1).tolist()
    )


# ---------------------------------------------------------------- many values, wide keys, and what is refused


def test_many_base_values() -> None:
    rng = np.random.default_rng(4)
    n = 1200
    quasi = [Hierarchy.from_widths([str(v) for v in range(40)], [5, 20])] * 2
    secrets = [Hierarchy.from_widths([str(v) for v in range(150)], [10, 50])]
    values = np.concatenate([np.arange(150), np.minimum(rng.geometric(0.03, n - 150) - 1, 149)])
    table = coded(quasi, rng.integers(0, 40, (n, 2)), secrets, values[:, None])
    models = [TauLDiversity(on="s0", tau=0.1, l=66)]
    recoding = Sweep().recode(table, models, rng.permutation)
    (bound,) = bounds_of(table, models)
    column = twin(table, bound)
    labels = [published(recoding, table, name) for name in ("q0", "q1", "s0")]
    classes: dict[tuple[frozenset[int], ...], list[frozenset[int]]] = {}
    for *group, secret in zip(*labels, strict=True):
        classes.setdefault(tuple(group), []).append(secret)
    assert len(classes) > 1
    for group in classes.values():
        assert column.holds(group)


def test_quasi_identifiers_that_do_not_fit_one_key() -> None:
    """Twelve columns of a thousand values: groups are the same as for their few values that occur."""
    rng = np.random.default_rng(5)
    n, wide, narrow = 60, 1000, 2
    rows = rng.integers(0, narrow, (n, 12))
    secrets = [Hierarchy((tuple("abc"),))]
    values = rng.integers(0, 3, (n, 1))
    models = [FrequencyLDiversity(on="s0", l=2)]
    results = []
    for size in (wide, narrow):
        flat = Hierarchy((tuple(str(v) for v in range(size)),))
        table = coded([flat] * 12, rows, secrets, values)
        recoding = Sweep().recode(table, models, lambda n: np.random.default_rng(1).permutation(n))
        results.append([[len(node) > 1 for node in published(recoding, table, name)] for name in table.quasi])
    assert results[0] == results[1]


def small(n: int = 30) -> Records:
    rng = np.random.default_rng(2)
    return coded(
        [Hierarchy((tuple("abcd"),))] * 2, rng.integers(0, 4, (n, 2)), [Hierarchy((tuple("xyz"),))],
        np.arange(n)[:, None] % 3,
    )  # fmt: skip


def test_what_is_out_of_reach_says_what_can_be_reached() -> None:
    table = small()
    order = np.random.default_rng(1).permutation
    with pytest.raises(RequirementNotMet, match="largest l that can be reached is 3"):
        Sweep().recode(table, [DistinctLDiversity(on="s0", l=4)], order)
    with pytest.raises(RequirementNotMet, match="largest k is 30"):
        Sweep().recode(table, [DistinctLDiversity(on="s0", l=2), KAnonymity(k=31)], order)
    deep = Hierarchy(tuple(tuple(f"{v}-{h}" for v in range(4)) for h in range(1100)))
    with pytest.raises(PolicyError, match="combinations of levels"):
        Sweep().recode(
            coded([deep, deep], np.zeros((3, 2), int), [Hierarchy((tuple("xyz"),))], np.arange(3)[:, None]),
            [DistinctLDiversity(on="s0", l=2)], order,
        )  # fmt: skip


def test_problems_before_any_data_is_seen() -> None:
    roles = {"q0": Role.QUASI_IDENTIFIER, "q1": Role.QUASI_IDENTIFIER, "s0": Role.SENSITIVE}
    good = TauLDiversity(on="s0", tau=0.5, l=2)

    def wheres(method: Sweep, *models: Model) -> list[str]:
        return [problem.where for problem in method.problems(roles, models)]

    assert wheres(Sweep(importance=("q1",), chunk=5), good, KAnonymity(k=5)) == []
    assert wheres(Sweep(), EntropyLDiversity(on="s0", l=2), good) == ["require[1].model"]
    assert wheres(Sweep(), KAnonymity(k=3)) == ["require"]
    assert wheres(Sweep(chunk=4), good, KAnonymity(k=5)) == ["method.chunk"]
    assert wheres(Sweep(importance=("q1", "q1", "s0")), good) == ["method.importance"] * 2
    weighted = TauLDiversity(on="s0", tau=0.5, l=2, weights={"x": 2.0})
    assert wheres(Sweep(), weighted, FrequencyLDiversity(on="s0", l=2)) == ["require[1].weights"]
    assert Sweep().problems({"s0": Role.SENSITIVE}, [good])[0].where == "attributes"


def test_the_more_important_column_stays_precise() -> None:
    table = small()
    order = lambda n: np.random.default_rng(3).permutation(n)  # noqa: E731
    models = [FrequencyLDiversity(on="s0", l=3)]
    exact = []
    for first in ("q0", "q1"):
        recoding = Sweep(importance=(first,)).recode(table, models, order)
        exact.append([np.mean([len(node) == 1 for node in published(recoding, table, q)]) for q in ("q0", "q1")])
    assert exact[0][0] > exact[0][1]
    assert exact[1][1] > exact[1][0]
