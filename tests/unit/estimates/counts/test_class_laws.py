"""Which law the records of tight classes follow is seen where neighbouring classes are merged."""

from __future__ import annotations

import numpy as np
import pytest

import noren as nr
from noren.estimates.counts.axes import Axis, Classes
from noren.estimates.counts.class_laws import LAWS, TightClasses, class_aware, law_parts, merged, neighbours
from noren.estimates.counts.rows import Reading
from noren.estimates.counts.tabulate import tabulate
from noren.methods.cover import cover
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, NodeStatement
from tests.unit.estimates.counts.test_tight_releases import people, policy


def axis_of(truth: np.ndarray, classes: np.ndarray, ordered: bool = False) -> Axis:
    """A column of tight classes that lie along a line in the order of their numbers."""
    d = int(truth.max()) + 1
    domain = Domain(tuple(map(str, range(10, 10 + d))), "integer" if ordered else "string")
    column = Column(role=Role.QUASI_IDENTIFIER).met("v", domain)
    change = cover(column, truth, classes, int(classes.max()) + 1)
    sizes = np.bincount(classes)
    nodes = np.zeros(len(sizes), np.int64)
    nodes[classes] = change.data
    known = Classes(classes, sizes, {"v": nodes}, {"line": np.arange(len(sizes)) / len(sizes)})
    return Axis("v", NodeStatement(column, change.nodes, change.tight), CodeCells(len(change.nodes), change.data),
                classes=known)  # fmt: skip


def repeated(classes: list[list[int]], times: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of classes given as lists, again and again, and the class of each."""
    listed = classes * times
    return np.concatenate(listed), np.repeat(np.arange(len(listed)), [len(one) for one in listed])


def error(axis: Axis, truth: np.ndarray) -> float:
    return float(np.abs(tabulate([axis]).counts - np.bincount(truth, minlength=axis.d)).sum())


def test_neighbours_are_two_or_three_near_ones() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 4, 5, 7, 64, 1001):
        group = neighbours(rng.random((n, 2)))
        sizes = np.bincount(group)
        assert sizes.max() <= 3
        assert sizes.min() >= min(n, 2)
    line = neighbours(np.array([[0.3, 0], [0.9, 0], [0.31, 0], [0.0, 0], [0.92, 0], [0.02, 0], [0.6, 0], [0.59, 0]]))
    assert [set(np.flatnonzero(line == one).tolist()) for one in line[[0, 1, 3, 6]]] == [{0, 2}, {1, 4}, {3, 5}, {6, 7}]


def test_ties_stay_beside_those_who_are_near_in_other_columns() -> None:
    points = np.array([[0, 0.0], [0, 0.9], [1, 0.0], [1, 0.9], [0, 0.0], [0, 0.9], [1, 0.0], [1, 0.9]])
    group = neighbours(points)
    for one in np.unique(group):
        assert len(np.unique(points[group == one], axis=0)) == 1


@pytest.mark.parametrize(("hull", "covered", "required"), [
    (None, [0, 1, 4, 5], [True, True, True, True]),
    ([True] * 6, [0, 1, 2, 3, 4, 5], [True, False, False, False, False, True]),
    ([True] * 5 + [False], [0, 1, 2, 3, 4, 5], [True, False, False, False, True, True]),
])  # fmt: skip
def test_merged_classes_cover_what_one_class_would_have_published(hull, covered, required) -> None:
    sizes = np.array([3.0, 4.0])
    fine = TightClasses(sizes, sizes, np.array([0, 2, 4]), np.array([0, 1, 4, 5]), np.ones(4, np.bool_))
    both = merged(fine, np.zeros(2, np.int64), 6, None if hull is None else np.array(hull))
    assert both.sizes.tolist() == [7.0]
    assert both.segment.tolist() == covered
    assert both.required.tolist() == required


def test_coarsening_at_random_is_what_likelihood_finds() -> None:
    truth = np.random.default_rng(5).choice(5, 400, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    axis = axis_of(truth, np.arange(400) // 4)
    reading = Reading.of(axis)
    sizes = axis.classes.sizes.astype(float)
    entry = [np.arange(reading.rows.bounds[c], reading.rows.bounds[c + 1]) for c in reading.codes[::4]]
    bounds = np.concatenate([[0], np.cumsum([len(one) for one in entry])])
    place = np.concatenate(entry)
    classes = TightClasses(sizes, sizes, bounds, reading.rows.value[place], reading.required[place])
    found = classes.total(classes.at_random(np.ones(5)), 5)
    bare = Axis(axis.name, axis.statement, axis.cells)
    assert np.abs(found - tabulate([bare], "likelihood").counts).max() < 0.5


def test_values_that_keep_together_are_spread_evenly() -> None:
    """Classes of one value each, side by side: where two meet there are as many of the one as of the other, however
    rare it is. Some classes were cut across."""
    rare, common, mixed = [0] * 6, [1] * 6, [0] * 3 + [1] * 3
    truth, classes = repeated([rare, common, mixed, *[common] * 9], 40)
    axis = axis_of(truth, classes)
    parts = dict(zip(LAWS, law_parts(axis), strict=True))
    assert parts["even"] > 0.9
    alone = Axis(axis.name, axis.statement, axis.cells, classes=Classes(classes, np.bincount(classes)))
    assert error(axis, truth) < 0.2 * error(alone, truth)


def test_values_strewn_among_others_follow_the_shares() -> None:
    rng = np.random.default_rng(7)
    truth = rng.choice(4, 4000, p=[0.9, 0.06, 0.03, 0.01])
    axis = axis_of(truth, np.arange(4000) // 8)
    parts = dict(zip(LAWS, law_parts(axis), strict=True))
    assert parts["even"] < 0.1
    assert error(axis, truth) < 0.5 * np.abs(tabulate([axis], "spread").counts - np.bincount(truth, minlength=4)).sum()


def test_without_neighbours_nothing_is_judged() -> None:
    truth, classes = repeated([[0, 0, 1]], 3)
    assert law_parts(axis_of(truth, classes)).tolist() == [0.0, 1.0, 0.0]


def test_a_few_of_many_classes_judge_alike(monkeypatch) -> None:
    truth, classes = repeated([[0] * 6, [1] * 6, [0] * 3 + [1] * 3, *[[1] * 6] * 9], 200)
    whole = law_parts(axis_of(truth, classes))
    monkeypatch.setattr("noren.estimates.counts.class_laws.ENTRIES", 300)
    assert np.abs(law_parts(axis_of(truth, classes)) - whole).max() < 0.1


def test_intervals_with_gaps_and_the_reading_keeps_every_record() -> None:
    rng = np.random.default_rng(2)
    truth = np.sort(np.minimum(rng.geometric(0.05, 600), 70))
    axis = axis_of(truth, np.arange(600) // 5, ordered=True)
    found = class_aware(Reading.of(axis))
    assert found.fitted is not None
    assert found.fitted.sum() == pytest.approx(600)
    assert found.laws is not None
    assert sum(found.laws.values()) == pytest.approx(1, abs=0.01)


def test_an_estimate_names_the_laws_and_conditions_do_not_change_them() -> None:
    release = nr.anonymize(people(), policy(nr.methods.Mondrian()))
    laws = release.estimate(["age", "job"]).diagnostics["class_laws"]
    assert list(laws) == ["age", "job"]
    assert all(list(one) == list(LAWS) and abs(sum(one.values()) - 1) < 0.01 for one in laws.values())
    some = release.estimate(["job"], where={"ill": "1"}).diagnostics["class_laws"]
    assert some["job"] == laws["job"]
