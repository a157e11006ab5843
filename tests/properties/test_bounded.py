"""Estimates and bounds from generalised, anatomised and drawn cells, alone and together, equal the formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.designs.decoys import DecoyDesign
from noren.designs.semantic.design import SemanticDesign
from noren.estimates.counts.axes import Axis, numbered_column
from noren.estimates.counts.grid import Detail, Grid, prepare_rows
from noren.estimates.counts.rows import Reading
from noren.estimates.counts.tabulate import tabulate_bounded
from noren.schema.nodes import Nodes
from noren.statements import (
    CodeCells,
    Design,
    ExactStatement,
    GroupStatement,
    GroupTable,
    NodeStatement,
    SetCells,
    SetStatement,
)
from tests.oracles import bounded as oracle
from tests.oracles.estimators import set_probability


@st.composite
def releases(draw: st.DrawFn, most_records: int, most_values: int, most_columns: int = 3, identity: bool = False):
    """Columns as the oracle takes them, together with the axes of the same columns."""
    n = draw(st.integers(1, most_records))
    columns = []
    for _ in range(draw(st.integers(1, most_columns))):
        d = draw(st.integers(1, most_values))
        reported = list(range(d)) if identity else draw(st.lists(st.integers(-1, 2), min_size=d, max_size=d))
        kind = draw(st.sampled_from(["value", "node", "group", "set"]))
        values = draw(st.lists(st.integers(0, d - 1), min_size=n, max_size=n))
        if kind == "group":
            cells = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
            groups: dict[int, dict[int, int]] = {g: {} for g in sorted(set(cells))}
            for g, v in zip(cells, values, strict=True):
                groups[g][v] = groups[g].get(v, 0) + 1
            columns.append(oracle.Column(d, cells, reported, groups))
            continue
        if kind == "set":
            columns.append(drawn_column(draw, d, n, reported))
            continue
        sets = [frozenset({v}) for v in values]
        if kind == "node":
            catalogue = draw(st.lists(st.frozensets(st.integers(0, d - 1), min_size=1), min_size=1, max_size=4))
            sets = [draw(st.sampled_from(catalogue)) for _ in range(n)]
        columns.append(oracle.Column(d, sets, reported))
    return columns


@dataclass(frozen=True)
class Drawn(oracle.Column):
    """A column of sets, with what the axis needs."""

    design: Design | None = None
    sets: tuple[tuple[int, ...], ...] = ()


def drawn_column(draw: st.DrawFn, d: int, n: int, reported: list[int]) -> Drawn:
    """Sets of any size, with and without the truth inside for sure; of values far apart where there are enough."""
    if d >= 5 and draw(st.booleans()):
        design: Design = SemanticDesign.make("simple", np.abs(np.subtract.outer(np.arange(d), np.arange(d))), 2, 2)
        feasible = [(a, b) for a, b in combinations(range(d), 2) if b - a >= 2]
        sets = [draw(st.sampled_from(feasible)) for _ in range(n)]
        chances = [[0.0] * d for _ in sets]
        for row, chosen in zip(chances, sets, strict=True):
            for v, weight in zip(chosen, design.member_weights(np.array([chosen]))[0].tolist(), strict=True):
                row[v] = weight
    else:
        eta, p = draw(st.integers(1, d)), draw(st.sampled_from([1.0, 1.0, 0.6, 0.2]))
        design = DecoyDesign(d=d, eta=eta, p=p)
        sets = [tuple(sorted(draw(st.permutations(range(d)))[:eta])) for _ in range(n)]
        chances = [[set_probability((d, eta, p), frozenset(chosen), v) for v in range(d)] for chosen in sets]
    cells = [frozenset(v for v in range(d) if row[v] > 0) for row in chances]
    return Drawn(d, cells, reported, drawn=chances, design=design, sets=tuple(sets))


def axis_of(column: oracle.Column, name: str = "a") -> Axis:
    meant = numbered_column(name, column.d)
    rest = {"groups": np.array(column.reported), "n_groups": max([*column.reported, 0]) + 1}
    if column.weights is not None:
        rest["weights"] = np.array(column.weights)
    if isinstance(column, Drawn):
        sets = SetCells.from_codes(column.d, np.array(column.sets).reshape(len(column.cells), column.design.eta))
        return Axis(name, SetStatement(meant, column.design), sets, **rest)
    if column.groups is not None:
        group, value = zip(
            *((g, v) for g, held in column.groups.items() for v, c in held.items() for _ in range(c)), strict=True
        )
        table = GroupTable.from_codes(3, column.d, np.array(group), np.array(value))
        return Axis(name, GroupStatement(meant, 3, held=table), CodeCells(3, np.array(column.cells)), **rest)
    if all(len(cell) == 1 for cell in column.cells):
        codes = np.array([min(cell) for cell in column.cells], np.uint8)
        return Axis(name, ExactStatement(meant), CodeCells(column.d, codes), **rest)
    catalogue = sorted(set(column.cells), key=sorted)
    nodes = Nodes.from_members(column.d, [str(i) for i in range(len(catalogue) + 1)], [[0], *catalogue])
    codes = np.array([catalogue.index(cell) + 1 for cell in column.cells])
    return Axis(name, NodeStatement(meant, nodes), CodeCells(len(nodes), codes), **rest)


def axes_of(columns: list[oracle.Column]) -> list[Axis]:
    return [axis_of(column, f"a{j}") for j, column in enumerate(columns)]


def alone(column: oracle.Column, steps: int, tolerance: float = 0.0) -> np.ndarray:
    """The likelihood estimate of one column, before it is held against the bounds."""
    grid = prepare_rows([Reading.of(axis_of(column))], None, tolerance, steps)
    return grid.sum_groups(grid.fit(steps, tolerance=tolerance).table)


def in_detail(column: oracle.Column) -> oracle.Column:
    return replace(column, reported=list(range(column.d)))


@settings(max_examples=80, deadline=None)
@given(releases(12, 6), st.data())
def test_spread_is_full_expansion(columns, data) -> None:
    j = data.draw(st.integers(0, len(columns) - 1))
    old = columns[j]
    if old.groups is None:
        weights = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=old.d, max_size=old.d))
        columns[j] = replace(old, weights=weights)
    found = tabulate_bounded(axes_of(columns), "spread")
    np.testing.assert_allclose(found.counts, oracle.report(columns, oracle.spread(columns)), atol=1e-9)
    assert found.diagnostics.get("moved_into_bounds", 0.0) < 1e-9


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
    if len(grid.tuples.counts):
        expected = oracle.together(columns, [np.maximum(margin, 1e-12) for margin in margins], steps)
        x = grid.start(grid.tuples.counts)
        for _ in range(steps):
            x = x * grid.tuples.em_pass(x)[0]
        found = grid.sum_groups(x)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def in_atoms(axis: Detail, margin: np.ndarray) -> np.ndarray:
    """A margin over base values as one over the column's atoms."""
    column = axis.reading.axis
    fine = Detail.of(Reading.of(replace(column, groups=None, n_groups=None)))
    return np.array([margin[fine.atoms.report[:, [a]].toarray()[:, 0] > 0].sum() for a in range(len(fine.atoms.prior))])


@settings(max_examples=80, deadline=None)
@given(st.one_of(releases(4, 3, 2), releases(3, 2, 3)))
def test_bounds_hold_for_every_table_that_fits(columns) -> None:
    """With one anatomised column at most, some table reaches them; with more they hold."""
    least, most = oracle.bounds(columns)
    for estimator in ("spread", "likelihood"):
        found = tabulate_bounded(axes_of(columns), estimator)
        assert np.all(found.low <= found.counts)
        assert np.all(found.counts <= found.high)
        if sum(column.groups is not None for column in columns) <= 1:
            np.testing.assert_array_equal(found.low, least)
            np.testing.assert_array_equal(found.high, most)
        else:
            assert np.all(found.low <= least)
            assert np.all(found.high >= most)


@settings(max_examples=40, deadline=None)
@given(releases(12, 6))
def test_likelihood_of_nodes_stays_within_bounds_by_itself(columns) -> None:
    columns = [column for column in columns if column.groups is None]
    if not columns:
        return
    found = tabulate_bounded(axes_of(columns))
    assert found.diagnostics.get("moved_into_bounds", 0.0) < 1e-9
