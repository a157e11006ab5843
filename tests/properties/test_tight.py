"""Bounds and expectations from tight classes: the truth lies inside, and they are what every possible table says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.estimates.counts.axes import Axis, Classes
from noren.estimates.counts.bounds import ReportedAxis, ReportedRows
from noren.estimates.counts.rows import Reading, TightClasses
from noren.estimates.counts.tabulate import tabulate
from noren.methods.cover import cover
from noren.ragged import row_numbers
from noren.schema.column import Column
from noren.schema.domain import MISSING, Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, NodeStatement


def domain_of(d: int, ordered: bool, gone: bool) -> Domain:
    values = tuple(map(str, range(10, 10 + d)))
    return Domain((*values, MISSING) if gone else values, "integer" if ordered else "string")


@st.composite
def tables(draw: st.DrawFn, most: int = 12):
    """Columns of names and of numbers (some missing), and the class of every record."""
    n = draw(st.integers(1, most))
    classes = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    columns = []
    for _ in range(draw(st.integers(1, 3))):
        domain = domain_of(draw(st.integers(1, 5)), draw(st.booleans()), draw(st.booleans()))
        truth = np.array(draw(st.lists(st.integers(0, len(domain) - 1), min_size=n, max_size=n)))
        reported = draw(st.lists(st.integers(-1, 2), min_size=len(domain), max_size=len(domain)))
        columns.append((domain, truth, np.array(reported)))
    exact = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return classes, columns, exact


def published(classes: np.ndarray, columns: list) -> list[Axis]:
    """The axes of what the classes publish."""
    _, numbered = np.unique(classes, return_inverse=True)
    axes, keys = [], []
    for j, (domain, truth, reported) in enumerate(columns):
        column = Column(role=Role.QUASI_IDENTIFIER).over(f"c{j}", domain)
        change = cover(column, truth, numbered, int(numbered.max()) + 1)
        statement = NodeStatement(column, change.nodes, change.tight)
        axes.append((f"c{j}", statement, CodeCells(len(change.nodes), change.data), reported))
        keys.append(change.data)
    of = row_numbers(keys, [int(key.max()) + 1 for key in keys], len(classes))
    known = Classes(of, np.bincount(of))
    return [
        Axis(name, what, cells, groups, max(3, int(groups.max()) + 1), classes=known)
        for name, what, cells, groups in axes
    ]


def counted(groups: list[np.ndarray], sizes: list[int]) -> np.ndarray:
    out = np.zeros(sizes)
    there = np.logical_and.reduce([group >= 0 for group in groups])
    np.add.at(out, tuple(group[there] for group in groups), 1.0)
    return out


@settings(deadline=None, max_examples=60)
@given(tables())
def test_the_truth_lies_inside_and_bounds_are_no_wider_than_without_classes(table) -> None:
    classes, columns, exact = table
    axes = [*published(classes, columns), Axis.exact("told", exact, 2)]
    truth = counted([*(reported[codes] for _, codes, reported in columns), exact], [3] * len(columns) + [2])
    bare = [Axis(a.name, a.statement, a.cells, a.groups, a.n_groups) for a in axes]
    for estimator in ("class-aware", "spread"):
        found, loose = tabulate(axes, estimator), tabulate(bare, "spread")
        assert (found.low <= truth + 1e-9).all()
        assert (truth <= found.high + 1e-9).all()
        assert (found.low >= loose.low - 1e-9).all()
        assert (found.high <= loose.high + 1e-9).all()
        assert (found.counts >= found.low - 1e-9).all()
        assert (found.counts <= found.high + 1e-9).all()


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_bounds_of_one_column_are_what_all_possible_tables_say(data: st.DataObject) -> None:
    classes, (column, *_), _ = data.draw(tables(most=6))
    domain, truth, _ = column
    axis = published(classes, [(domain, truth, np.arange(len(domain)))])[0]
    axis = Axis(axis.name, axis.statement, axis.cells, classes=axis.classes)
    found = tabulate([axis])
    counts = np.array([np.bincount(fill, minlength=len(domain)) for fill in fillings(axis)])
    assert np.array_equal(found.low, counts.min(axis=0))
    assert np.array_equal(found.high, counts.max(axis=0))


def fillings(axis: Axis):
    """Every column of values that the same classes would have published alike."""
    assert axis.classes is not None
    nodes, codes, of = axis.statement.nodes, axis.cells.data, axis.classes.of
    members = [nodes.members(int(code)).tolist() for code in codes]
    for fill in product(*members):
        values = np.array(fill)
        if all(_covers(axis, set(members[i]), set(values[of == of[i]].tolist())) for i in range(len(codes))):
            yield values


def _covers(axis: Axis, covered: set[int], values: set[int]) -> bool:
    if axis.statement.tightness == "members":
        return values == covered
    gone = axis.statement.domain.missing_code
    there = covered - {gone}
    ends = {min(there), max(there)} if there else set()
    return ends <= values and (gone not in covered or gone in values)


@pytest.mark.parametrize(("n", "weight", "required"), [
    (3, (0.1, 0.9), (True, True)),
    (5, (0.05, 0.95), (True, True)),
    (5, (0.2, 0.3, 0.5), (True, True, True)),
    (4, (0.1, 0.2, 0.3, 0.4), (True, True, True, True)),
    (6, (0.1, 0.2, 0.3, 0.4), (True, False, False, True)),
    (9, (0.02, 0.9, 0.08), (True, False, True)),
])  # fmt: skip
def test_expected_counts_are_the_conditional_means(n: int, weight: tuple, required: tuple) -> None:
    """Against every possible class. The saddle point is off by less than a fortieth of the class."""
    size = len(weight)
    classes = TightClasses(np.array([float(n)]), np.ones(1), np.array([0, size]), np.arange(size), np.array(required))
    found = classes._expected(np.array(weight), np.zeros(size, np.int64))
    total, mean = 0.0, np.zeros(size)
    for fill in product(range(size), repeat=n):
        counts = np.bincount(fill, minlength=size)
        if (counts[np.array(required)] > 0).all():
            chance = float(np.prod(np.array(weight)[list(fill)]))
            total, mean = total + chance, mean + chance * counts
    assert found.sum() == pytest.approx(n, abs=1e-5)
    assert np.abs(found - mean / total).max() < n / 40


def test_as_many_values_as_records_are_one_each() -> None:
    classes = TightClasses(np.array([3.0]), np.ones(1), np.array([0, 3]), np.arange(3), np.ones(3, np.bool_))
    assert classes.shares(np.ones(3), np.array([0.9, 0.09, 0.01])) == pytest.approx([1 / 3] * 3)


@settings(deadline=None, max_examples=60)
@given(tables(), st.booleans())
def test_alone_general_values_say_what_their_classes_say(table, conditioned: bool) -> None:
    """Bounds added up over the classes of a general value are those of one class after the other, also where a
    condition leaves some records of a class."""
    classes, columns, exact = table
    rows = np.flatnonzero(exact == exact[0]) if conditioned else np.arange(len(classes))
    for whole in published(classes, columns):
        assert whole.classes is not None
        some, cells = Classes(whole.classes.of[rows], whole.classes.sizes), whole.cells.take(rows)
        reading = Reading.of(Axis(whole.name, whole.statement, cells, whole.groups, whole.n_groups, classes=some))
        each, together = (ReportedRows.of([ReportedAxis.of(reading, alone=alone)]) for alone in (False, True))
        for one, other in zip(each.bounds(), together.bounds(), strict=True):
            assert one.tolist() == other.tolist()
        assert together.spread() == pytest.approx(each.spread())
        assert len(together.counts) <= len(each.counts)
