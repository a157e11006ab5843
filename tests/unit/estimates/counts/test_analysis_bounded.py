"""Counts from generalised and anatomised cells: cases worked out by hand, and the edges."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from noren.errors import QueryError
from noren.estimates.counts import bounds, grid, rows
from noren.estimates.counts import tabulate as tables
from noren.estimates.counts.axes import Axis, numbered_column
from noren.estimates.counts.grid import Detail
from noren.estimates.counts.rows import Reading
from noren.estimates.counts.tabulate import BOUNDED_ESTIMATORS, tabulate
from noren.estimates.counts.tuples import Products
from noren.schema.nodes import Nodes
from noren.statements import CodeCells, ExactStatement, GroupStatement, GroupTable, NodeStatement, Statement

both = pytest.mark.parametrize("estimator", BOUNDED_ESTIMATORS)


def axis(
    data: Any,
    d: int,
    reported: Any = None,
    name: str = "a",
    nodes: Nodes | None = None,
    groups: GroupTable | None = None,
    weights: Any = None,
) -> Axis:
    group_of = np.arange(d) if reported is None else np.array(reported)
    column = numbered_column(name, d)
    statement: Statement = ExactStatement(column)
    if nodes is not None:
        statement = NodeStatement(column, nodes)
    elif groups is not None:
        statement = GroupStatement(column, groups.groups, held=groups)
    cells = CodeCells(statement.kinds or 0, np.array(data, np.int64))
    return Axis(name, statement, cells, group_of, max(1, int(group_of.max()) + 1), weights)


def members(d: int, *nodes: list[int]) -> Nodes:
    return Nodes.from_members(d, [str(i) for i in range(len(nodes))], nodes)


def widths(d: int, *steps: int) -> Nodes:
    """Intervals of several widths, the narrowest first."""
    return members(d, *(list(range(a, min(a + step, d))) for step in steps for a in range(0, d, step)))


def interval_of(d: int, steps: list[int], level: np.ndarray, codes: np.ndarray) -> np.ndarray:
    first = np.cumsum([0, *(-(-d // step) for step in steps)])
    return first[level] + codes // np.array(steps)[level]


# ------------------------------------------------------------------ worked by hand


def test_spreading_divides_a_record_by_leaves() -> None:
    """{0}: 2 records, {0,1}: 2, {0,1,2}: 3."""
    found = tabulate([axis([0, 0, 1, 1, 2, 2, 2], 3, nodes=members(3, [0], [0, 1], [0, 1, 2]))], "spread")
    np.testing.assert_allclose(found.counts, [4, 2, 1])
    np.testing.assert_array_equal(found.low, [2, 0, 0])
    np.testing.assert_array_equal(found.high, [7, 5, 3])


def test_one_node_column_is_maximum_likelihood() -> None:
    """{0}: 6 records, {1}: 2, {0,1}: 4. Coarsening at random: the 4 divide as 6 to 2."""
    found = tabulate([axis([0] * 6 + [1] * 2 + [2] * 4, 2, nodes=members(2, [0], [1], [0, 1]))], tolerance=1e-9)
    np.testing.assert_allclose(found.counts, [9, 3], atol=1e-6)
    assert found.iterations > 1


def test_values_that_no_cell_tells_apart_share_evenly_or_by_weight() -> None:
    """{0}: 6, {1,2}: 2, {0,1,2}: 4: the four divide as 6 to 2, what falls on 1 and 2 by weight."""
    nodes, data = members(3, [0], [1, 2], [0, 1, 2]), [0] * 6 + [1] * 2 + [2] * 4
    even = tabulate([axis(data, 3, nodes=nodes)], tolerance=1e-9)
    np.testing.assert_allclose(even.counts, [9, 1.5, 1.5], atol=1e-6)
    weighed = tabulate([axis(data, 3, nodes=nodes, weights=np.array([1.0, 3.0, 1.0]))], "spread")
    np.testing.assert_allclose(weighed.counts, [6 + 4 / 5, 1.5 + 12 / 5, 0.5 + 4 / 5])
    assert "by the given weights" in weighed.assumes


def test_a_weight_of_zero_is_a_guess_not_a_fact() -> None:
    nodes = members(3, [0, 1], [2])
    empty = tabulate([axis([0, 0, 1], 3, nodes=nodes, weights=np.array([0.0, 0.0, 1.0]))], "spread")
    np.testing.assert_allclose(empty.counts, [1, 1, 1])
    for weights in ([0.0, 1.0, 1.0], [0.0, 0.0, 0.0]):
        found = tabulate([axis([0, 0, 1], 3, nodes=nodes, weights=np.array(weights))])
        assert found.counts[0] > 0
        np.testing.assert_allclose(found.counts.sum(), 3)


@both
def test_one_group_column_is_its_table(estimator: str) -> None:
    table = GroupTable.from_codes(2, 3, np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 1, 2]))
    found = tabulate([axis([0, 1, 0, 1, 0], 3, groups=table)], estimator)
    for part in (found.counts, found.low, found.high):
        np.testing.assert_array_equal(part, table.totals)


def test_group_histograms_bound_a_cell() -> None:
    """A group of 5 holds value 0 four times; 3 of its records have x = 0: two of them at least have value 0."""
    table = GroupTable.from_codes(1, 2, np.zeros(5, np.int64), np.array([0, 0, 0, 0, 1]))
    found = tabulate([axis([0, 0, 0, 1, 1], 2, name="x"), axis([0] * 5, 2, groups=table)], "spread")
    np.testing.assert_allclose(found.counts, [[2.4, 0.6], [1.6, 0.4]])
    np.testing.assert_array_equal(found.low, [[2, 0], [1, 0]])
    np.testing.assert_array_equal(found.high, [[3, 1], [2, 1]])


def test_two_group_columns_use_bonferroni() -> None:
    """Four of five have 0 on either column, so three at least have both."""
    table = GroupTable.from_codes(1, 2, np.zeros(5, np.int64), np.array([0, 0, 0, 0, 1]))
    pair = [axis([0] * 5, 2, name=name, groups=table) for name in "xy"]
    found = tabulate(pair)
    np.testing.assert_array_equal(found.low, [[3, 0], [0, 0]])
    np.testing.assert_array_equal(found.high, [[4, 1], [1, 1]])


# ------------------------------------------------------------------ what must always hold


@both
def test_exact_columns_are_counted(estimator: str) -> None:
    a, b = np.array([0, 1, 1, 2, 2, 2]), np.array([1, 0, 1, 1, 1, 0])
    found = tabulate([axis(a, 3, [0, 0, -1]), axis(b, 2, name="b")], estimator)
    for part in (found.counts, found.low, found.high):
        np.testing.assert_array_equal(part, [[1, 2]])
    assert not found.iterations
    assert found.assumes.startswith("nothing")


@both
def test_cells_that_fit_the_question_are_exact(estimator: str) -> None:
    """Nodes inside the reported groups hide nothing that was asked for."""
    nodes = members(4, [0, 1], [2], [2, 3])
    found = tabulate([axis([0, 0, 1, 2], 4, [0, 0, 1, 1], nodes=nodes)], estimator)
    np.testing.assert_array_equal(found.counts, [2, 2])
    np.testing.assert_array_equal(found.low, found.high)


@both
def test_suppressed_records_may_lie_anywhere(estimator: str) -> None:
    found = tabulate([axis([0, 0, 1], 2)], estimator, suppressed=5)
    np.testing.assert_array_equal(found.counts, [2, 1])
    np.testing.assert_array_equal(found.low, [2, 1])
    np.testing.assert_array_equal(found.high, [7, 6])


@both
def test_no_records(estimator: str) -> None:
    table = GroupTable(0, 2, *(np.zeros(0, np.int64) for _ in range(3)))
    axes = [axis([], 3), axis([], 3, nodes=members(3, [0, 1, 2])), axis([], 2, groups=table)]
    for chosen in (axes, axes[1:], axes[:1]):
        found = tabulate(chosen, estimator, suppressed=2)
        assert not found.counts.any()
        assert not found.low.any()
        assert (found.high == 2).all()


@both
def test_a_condition_that_nothing_meets(estimator: str) -> None:
    found = tabulate(
        [axis([0, 1, 0], 2, nodes=members(2, [0, 1], [1])), axis([1, 1, 1], 2, [0, -1], name="where")], estimator
    )
    np.testing.assert_array_equal(found.high, np.zeros((2, 1)))
    np.testing.assert_array_equal(found.counts, np.zeros((2, 1)))


@both
def test_one_value(estimator: str) -> None:
    found = tabulate([axis([0, 0], 1, nodes=members(1, [0])), axis([0, 0], 1, name="b")], estimator)
    np.testing.assert_array_equal(found.counts, [[2]])


@both
def test_records_are_neither_lost_nor_made(estimator: str) -> None:
    """With every value reported, the counts sum to the records; a condition's two sides to the whole."""
    a, b, g, table = world(3000)
    axes = [a, b, axis(g, 5, name="s", groups=table)]
    whole = tabulate(axes, estimator)
    np.testing.assert_allclose(whole.counts.sum(), 3000, atol=3000 * 1e-3)  # cells moved into their bounds
    parts = [
        tabulate(
            [a, axis(b.cells.data, b.d, np.where((np.arange(b.d) < 7) == side, 0, -1), nodes=b.statement.nodes)],
            estimator,
        )
        for side in (True, False)
    ]
    sides = sum(part.counts.sum() for part in parts)
    np.testing.assert_allclose(sides, 3000, rtol=1e-6)  # either side has folds of its own, and a stop


@both
def test_a_condition_on_a_node_column(estimator: str) -> None:
    """Three records satisfy it, two may, one cannot."""
    where = axis([0, 0, 0, 1, 1, 2], 3, [0, -1, -1], name="where", nodes=members(3, [0], [0, 1], [2]))
    found = tabulate([axis([0, 0, 1, 0, 1, 1], 2), where], estimator)
    np.testing.assert_array_equal(found.low[:, 0], [2, 1])
    np.testing.assert_array_equal(found.high[:, 0], [3, 2])
    assert (found.counts[:, 0] <= [3, 2]).all()


# ------------------------------------------------------------------ why likelihood


def world(n: int) -> tuple[Axis, Axis, np.ndarray, GroupTable]:
    """Correlated columns, coarsened at random, and one in groups of four; the true codes are `true(n)`."""
    a, b, s, rng = true(n)
    steps = [1, 5, 20]
    codes = [interval_of(20, steps, rng.choice(3, n, p=[0.5, 0.3, 0.2]), column) for column in (a, b)]
    group = rng.permutation(n) // 4
    table = GroupTable.from_codes(int(group.max()) + 1, 5, group, s)
    nodes = widths(20, *steps)
    return axis(codes[0], 20, nodes=nodes), axis(codes[1], 20, name="b", nodes=nodes), group, table


def true(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(7)
    z = rng.normal(size=n)
    a = np.clip(z * 4 + 10, 0, 19).astype(int)
    b = np.clip((z + 0.5 * rng.normal(size=n)) * 4 + 10, 0, 19).astype(int)
    return a, b, np.clip(z + 2 + rng.normal(size=n) / 2, 0, 4).astype(int), rng


@pytest.mark.parametrize(("width", "gain"), [(1, 0.9), (5, 0.3)])
def test_likelihood_beats_spreading_where_columns_are_related(width: int, gain: float) -> None:
    n, groups = 20_000, 20 // width
    a, b, s, _ = true(n)
    first, second, group, table = world(n)
    reported = np.arange(20) // width
    axes = [axis(x.cells.data, 20, reported, name=x.name, nodes=x.statement.nodes) for x in (first, second)]
    anatomised = axis(group, 5, name="s", groups=table)
    for asked, codes, size in (
        (axes, b // width, groups),
        ([axes[0], anatomised], s, 5),
        ([axis(a, 20, reported), anatomised], s, 5),
    ):
        truth = np.zeros((groups, size))
        np.add.at(truth, (a // width, codes), 1)
        error = {}
        for estimator in BOUNDED_ESTIMATORS:
            found = tabulate(asked, estimator)
            assert (found.low <= truth).all()
            assert (truth <= found.high).all()
            error[estimator] = np.abs(found.counts - truth).sum()
        assert error["likelihood"] < gain * error["spread"]


def test_disjoint_cells_are_spread() -> None:
    """Full-domain generalisation says nothing about values inside a node: both estimators agree."""
    a, b, _, _ = true(500)
    nodes = widths(20, 5)
    axes = [axis(column // 5, 20, name=name, nodes=nodes) for name, column in (("a", a), ("b", b))]
    np.testing.assert_allclose(tabulate(axes).counts, tabulate(axes, "spread").counts)


def test_an_answer_does_not_depend_on_the_order_of_records() -> None:
    first, second, _, _ = world(800)
    order = np.random.default_rng(3).permutation(800)
    moved = [axis(x.cells.data[order], 20, name=x.name, nodes=x.statement.nodes) for x in (first, second)]
    np.testing.assert_allclose(tabulate(moved).counts, tabulate([first, second]).counts)


# ------------------------------------------------------------------ how it is worked out


def test_shared_sums_equal_the_whole_product() -> None:
    """However many axes neighbouring rows share, and however many threads the rows, a step is the same."""
    first, second, group, table = world(300)
    readings = [Reading.of(x) for x in (first, second, axis(group, 5, name="s", groups=table))]
    details = [Detail.of(reading) for reading in readings]
    found = grid.Grid.of([detail.at_report(detail.atoms.prior) for detail in details], 300)
    assert len(found.hidden) == 3
    x = found.start(found.tuples.counts)
    ways = []
    usual = found.tuples.products
    for depth, threaded in product(range(4), (0.0, 1e9)):
        found.tuples.products = Products(usual.ids, usual.rows, usual.shape, depth)
        found.tuples.products.work = threaded
        ways.append(np.concatenate([part.ravel() for part in found.tuples.em_pass(x)[:2]]))
    for one, other in pairwise(ways):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_wide_intervals_stay_small() -> None:
    """100,000 values in a few thousand overlapping intervals: what no cell tells apart is one atom."""
    rng, d = np.random.default_rng(5), 100_000
    starts = rng.integers(0, 90, 2000) * 1000
    nodes = Nodes.from_runs(d, [str(i) for i in range(2000)], [[(int(s), int(s) + 10_000)] for s in starts])
    column = axis(rng.integers(0, 2000, 5000), d, np.arange(d) // 25_000, nodes=nodes)
    assert len(Detail.of(Reading.of(column)).atoms.prior) <= 100
    found = tabulate([column])
    np.testing.assert_allclose(found.counts.sum(), 5000)


def test_progress_is_told() -> None:
    first, second, _, _ = world(500)
    seen: list[tuple[int, float]] = []
    found = tabulate([first, second], progress=lambda step, change: seen.append((step, change)))
    assert len(seen) > found.iterations
    assert found.diagnostics["stopping"] == "held-out likelihood"
    assert found.diagnostics["converged"]


def test_assumptions_are_named() -> None:
    first, _, group, table = world(40)
    pair = [first, axis(group, 5, name="s", groups=table)]
    assert "evenly" in tabulate(pair, "spread").assumes
    assert "unrelated to the other columns" in tabulate(pair, "spread").assumes
    assert "coarsening at random" in tabulate(pair).assumes
    assert "the group of a record depends" in tabulate(pair).assumes
    assert tabulate(pair).assumes.endswith("low and high are hard bounds")
    across = axis(first.cells.data, 20, np.arange(20) // 3, nodes=first.statement.nodes)
    assert "within the requested groups, values of 'a'" in tabulate([across, pair[1]]).assumes
    assert "within the requested groups" not in tabulate(pair).assumes


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tabulate([axis([0, 3], 3)]), "outside its 3 values"),
        (lambda: axis([0], 2, [0]), "do not fit"),
        (lambda: Axis.exact("a", np.array([0]), 2, np.array([0, 2]), 2), "do not fit"),
        (lambda: tabulate([axis([0], 3, nodes=members(2, [0]))]), "no list of its general values over 3"),
        (lambda: axis([0], 2, weights=np.array([1.0, -1.0])), "weights"),
        (
            lambda: tabulate([axis([0, 0], 2, groups=GroupTable.from_codes(1, 2, np.array([0]), np.array([1])))]),
            "more records",
        ),
        (lambda: tabulate([]), "at least one column"),
        (lambda: tabulate([axis([0], 2, nodes=members(2, [0, 1]))], "bayes"), "no estimator"),
        (lambda: tabulate([axis([0], 2, nodes=members(2, [0, 1]))], population=True), "no interval for the population"),
        (lambda: tabulate([axis([0], 1)], suppressed=-1), "suppressed"),
        (lambda: tabulate([axis([0], 1), axis([0, 0], 1)]), "different lengths"),
    ],
)
def test_what_cannot_be_answered_is_refused(make: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        make()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("room", "name", "message"),
    [
        (tables, "CELL_LIMIT", "The answer would have"),
        (bounds, "WORK_LIMIT", "combinations"),
        (rows, "ENTRY_LIMIT", "which are too many"),
        (grid, "CELL_LIMIT", "likelihood would need"),
        (grid, "WORK_LIMIT", "step of the likelihood"),
    ],
)
def test_what_is_too_large_is_refused(monkeypatch: Any, room: Any, name: str, message: str) -> None:
    monkeypatch.setattr(room, name, 3)
    with pytest.raises(QueryError, match=message):
        tabulate(list(world(50)[:2]))
