"""Estimates and bounds from generalised and anatomised cells equal the formulas written out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.analysis.coarse import CoarseAxis, tabulate_coarse
from noren.analysis.coarse_atoms import Detail
from noren.analysis.coarse_cells import Reading
from noren.analysis.coarse_em import climb, fit
from noren.analysis.coarse_grid import Grid
from noren.cells import GroupTable
from noren.schema.nodes import Nodes
from tests.oracles import coarse as oracle


@st.composite
def releases(draw: st.DrawFn, most_records: int, most_values: int, most_columns: int = 3, identity: bool = False):
    """Columns as the oracle takes them, together with the axes of the same columns."""
    n = draw(st.integers(1, most_records))
    columns = []
    for _ in range(draw(st.integers(1, most_columns))):
        d = draw(st.integers(1, most_values))
        reported = list(range(d)) if identity else draw(st.lists(st.integers(-1, 2), min_size=d, max_size=d))
        kind = draw(st.sampled_from(["value", "node", "group"]))
        values = draw(st.lists(st.integers(0, d - 1), min_size=n, max_size=n))
        if kind == "group":
            cells = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
            groups: dict[int, dict[int, int]] = {g: {} for g in sorted(set(cells))}
            for g, v in zip(cells, values, strict=True):
                groups[g][v] = groups[g].get(v, 0) + 1
            columns.append(oracle.Column(d, cells, reported, groups))
            continue
        sets = [frozenset({v}) for v in values]
        if kind == "node":
            catalogue = draw(st.lists(st.frozensets(st.integers(0, d - 1), min_size=1), min_size=1, max_size=4))
            sets = [draw(st.sampled_from(catalogue)) for _ in range(n)]
        columns.append(oracle.Column(d, sets, reported))
    return columns


def axis_of(column: oracle.Column, name: str = "a") -> CoarseAxis:
    reported, n_groups = np.array(column.reported), max([*column.reported, 0]) + 1
    rest = {"d": column.d, "group_of": reported, "n_groups": n_groups}
    if column.weights is not None:
        rest["weights"] = np.array(column.weights)
    if column.groups is not None:
        group, value = zip(
            *((g, v) for g, held in column.groups.items() for v, c in held.items() for _ in range(c)), strict=True
        )
        table = GroupTable.from_codes(3, column.d, np.array(group), np.array(value))
        return CoarseAxis(name, np.array(column.cells), groups=table, **rest)
    if all(len(cell) == 1 for cell in column.cells):
        return CoarseAxis(name, np.array([min(cell) for cell in column.cells], np.uint8), **rest)
    catalogue = sorted(set(column.cells), key=sorted)
    nodes = Nodes.from_members(column.d, [str(i) for i in range(len(catalogue) + 1)], [[0], *catalogue])
    return CoarseAxis(name, np.array([catalogue.index(cell) + 1 for cell in column.cells]), nodes=nodes, **rest)


def axes_of(columns: list[oracle.Column]) -> list[CoarseAxis]:
    return [axis_of(column, f"a{j}") for j, column in enumerate(columns)]


def alone(column: oracle.Column, steps: int, tolerance: float = 0.0) -> np.ndarray:
    """The likelihood estimate of one column, before it is held against the bounds."""
    return fit([Reading.of(axis_of(column))], tolerance=tolerance, max_iterations=steps).counts


def in_detail(column: oracle.Column) -> oracle.Column:
    return oracle.Column(column.d, column.cells, list(range(column.d)), column.groups)


@settings(max_examples=80, deadline=None)
@given(releases(12, 6), st.data())
def test_spread_is_full_expansion(columns, data) -> None:
    j = data.draw(st.integers(0, len(columns) - 1))
    old = columns[j]
    if old.groups is None:
        weights = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=old.d, max_size=old.d))
        columns[j] = oracle.Column(old.d, old.cells, old.reported, None, weights)
    found = tabulate_coarse(axes_of(columns), "spread")
    np.testing.assert_allclose(found.counts, oracle.report(columns, oracle.spread(columns)), atol=1e-9)
    assert found.diagnostics["moved_into_bounds"] < 1e-9


@settings(max_examples=80, deadline=None)
@given(releases(12, 6, most_columns=1), st.integers(1, 3))
def test_one_column_takes_em_steps_from_spreading(columns, steps) -> None:
    """Segments and atoms change nothing: the steps are those on base values, and one more sums them into groups."""
    x = oracle.spread(columns)
    if any(len(oracle.region(columns, i)) > 1 for i in range(len(columns[0].cells))):
        for _ in range(steps):
            x = oracle.em_step(columns, x)
    np.testing.assert_allclose(alone(columns[0], steps), oracle.report(columns, x), rtol=1e-6, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(releases(10, 5, most_columns=1, identity=True))
def test_one_column_reaches_the_maximum(columns) -> None:
    """No plain EM run gets higher, and the estimate is a fixed point of the literal step."""
    x = oracle.spread(columns)
    for _ in range(200):
        x = oracle.em_step(columns, x)
    found = alone(columns[0], 3000, 1e-9)
    assert oracle.log_likelihood(columns, found) >= oracle.log_likelihood(columns, x) - 1e-6
    np.testing.assert_allclose(oracle.em_step(columns, found), found, atol=1e-5)
    np.testing.assert_allclose(found.sum(), len(columns[0].cells))


@settings(max_examples=80, deadline=None)
@given(releases(12, 6), st.integers(1, 4))
def test_columns_together_take_em_steps_on_reported_groups(columns, steps) -> None:
    """Slots, lumped groups and shared sums change nothing."""
    margins = [alone(in_detail(column), 60) for column in columns]
    axes = [Detail.of(Reading.of(axis_of(column))) for column in columns]
    atoms = [axis.at_report(in_atoms(axis, margin)) for axis, margin in zip(axes, margins, strict=True)]
    grid = Grid.of(atoms, len(columns[0].cells))
    if len(grid.counts):
        expected = oracle.together(columns, [np.maximum(margin, 1e-12) for margin in margins], steps)
        found = grid.sum_groups(climb(grid, steps))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def in_atoms(axis: Detail, margin: np.ndarray) -> np.ndarray:
    """A margin over base values as one over the column's atoms."""
    column = axis.reading.axis
    every = CoarseAxis("a", column.data, column.d, np.arange(column.d), column.d, column.nodes, column.groups)
    fine = Detail.of(Reading.of(every))
    return np.array([margin[fine.atoms.report[:, [a]].toarray()[:, 0] > 0].sum() for a in range(len(fine.atoms.prior))])


@settings(max_examples=80, deadline=None)
@given(st.one_of(releases(4, 3, 2), releases(3, 2, 3)))
def test_bounds_hold_for_every_table_that_fits(columns) -> None:
    """With one anatomised column at most, some table reaches them; with more they hold."""
    least, most = oracle.bounds(columns)
    for estimator in ("spread", "likelihood"):
        found = tabulate_coarse(axes_of(columns), estimator)
        assert np.all(found.least <= found.counts)
        assert np.all(found.counts <= found.most)
        if sum(column.groups is not None for column in columns) <= 1:
            np.testing.assert_array_equal(found.least, least)
            np.testing.assert_array_equal(found.most, most)
        else:
            assert np.all(found.least <= least)
            assert np.all(found.most >= most)


@settings(max_examples=40, deadline=None)
@given(releases(12, 6))
def test_likelihood_of_nodes_stays_within_bounds_by_itself(columns) -> None:
    columns = [column for column in columns if column.groups is None]
    if not columns:
        return
    found = tabulate_coarse(axes_of(columns))
    assert found.diagnostics["moved_into_bounds"] < 1e-9
