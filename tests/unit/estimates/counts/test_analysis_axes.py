"""Axes are checked before anything is estimated, and every form of cell leads to the same table."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.estimates.counts import frame as module
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.tabulate import tabulate
from noren.estimates.counts.tuples import Tuples, identity
from noren.statements import CodeCells, Likelihood, SetCells
from noren.statements.batch import number


def sets(d, rows):
    return SetCells.from_codes(d, np.array(rows))


def test_numbers_follow_the_order_of_keys():
    small = np.array([5, 0, 5, 9], np.uint16)
    distinct, ids = number(small)
    assert distinct.tolist() == [0, 5, 9]
    assert ids.tolist() == [1, 0, 1, 2]
    large = small.astype(np.uint64) << np.uint64(40)
    assert number(large)[1].tolist() == [1, 0, 1, 2]


def test_design_and_cells_must_agree():
    with pytest.raises(QueryError, match="does not hold sets over its 4 values"):
        prepare([Axis.drawn("job", sets(3, [[0, 1]]), DecoyDesign(d=4, eta=2))])
    with pytest.raises(QueryError, match="does not hold sets"):
        prepare([Axis.drawn("job", CodeCells(3, np.array([0])), DecoyDesign(d=3, eta=2))])
    with pytest.raises(QueryError, match="do not fit its 3 values"):
        Axis.drawn("job", sets(3, [[0, 1]]), DecoyDesign(d=3, eta=2), groups=np.array([0, 1]))


@pytest.mark.parametrize("d", [5, 70])
def test_sets_of_another_size_are_refused(d):
    with pytest.raises(QueryError, match="do not hold the 2 values"):
        prepare([Axis.drawn("job", sets(d, [[0, 1, 2]]), DecoyDesign(d=d, eta=2))])


def test_columns_of_different_length_are_refused():
    one = Axis.drawn("a", sets(3, [[0, 1]]), DecoyDesign(d=3, eta=2))
    two = Axis.drawn("b", sets(3, [[0, 1], [1, 2]]), DecoyDesign(d=3, eta=2))
    with pytest.raises(QueryError, match="different lengths"):
        prepare([one, two])
    with pytest.raises(QueryError, match="at least one"):
        prepare([])


def test_too_large_a_table_is_refused(monkeypatch):
    monkeypatch.setattr(module, "CELL_LIMIT", 10)
    one = Axis.drawn("a", sets(3, [[0, 1]]), DecoyDesign(d=3, eta=2))
    with pytest.raises(QueryError, match="limit is 10"):
        prepare([one, one])


def test_singleton_sets_are_values():
    values = np.array([2, 0, 2])
    as_sets = Axis.drawn("a", sets(3, values[:, None]), DecoyDesign.exact(3))
    as_values = Axis.exact("a", values, 3)
    for axis in (as_sets, as_values):
        found = tabulate([axis])
        assert found.counts.tolist() == [1, 0, 2]
        assert found.low.tolist() == found.high.tolist() == [1, 0, 2]
        assert set(found.interval) == {"exact"}


def test_only_exact_combinations_that_occur_are_kept():
    zips = Axis.exact("zip", np.array([7, 7, 900]), 1000)
    job = Axis.drawn("job", sets(3, [[0, 1], [0, 1], [1, 2]]), DecoyDesign(d=3, eta=2))
    frame = prepare([job, zips])
    assert frame.shape == (2, 3)
    table = frame.place(frame.inclusions)
    assert table.shape == (3, 1000)
    assert table[:, 7].tolist() == [2, 2, 0]
    assert table[:, 900].tolist() == [0, 1, 1]
    assert table.sum() == 6


def test_uncounted_exact_values_leave_the_table():
    sex = Axis.exact("sex", np.array([0, 1, 1]), 2, np.array([-1, 0]), 1)
    job = Axis.drawn("job", sets(3, [[0, 1], [0, 2], [1, 2]]), DecoyDesign(d=3, eta=2))
    frame = prepare([sex, job])
    assert (frame.n, frame.kept) == (3, 2)
    assert frame.place(frame.inclusions).tolist() == [[1, 1, 2]]


def test_a_domain_beyond_bit_masks_gives_the_same_as_one_within():
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(40, 3, replace=False) for _ in range(300)])
    narrow = tabulate([Axis.drawn("a", sets(40, rows), DecoyDesign(d=40, eta=3))], "linear")
    frame = prepare([Axis.drawn("a", sets(70, rows), DecoyDesign(d=70, eta=3))])
    w = frame.inclusions[0]
    assert w[40:].sum() == 0
    wide = tabulate([Axis.drawn("a", sets(70, rows), DecoyDesign(d=70, eta=3))], "linear")
    np.testing.assert_allclose(w[:40], np.bincount(rows.ravel(), minlength=40))
    assert narrow.counts.sum() == pytest.approx(wide.counts.sum()) == pytest.approx(300)


def test_many_columns_are_counted_without_overflow():
    rng = np.random.default_rng(1)
    columns = [np.zeros(500, np.int32), *(rng.integers(0, 400, 500).astype(np.int32) for _ in range(9))]
    columns = [np.concatenate([c, c[:100]]) for c in columns]  # a hundred tuples occur twice
    table = np.array([[a, b] for a in range(40) for b in range(a + 1, 40)][:400], np.int32)
    rows = Likelihood(np.arange(401) * 2, table.ravel(), np.ones(800))
    found = Tuples.build([identity(1), *[rows] * 9], [1, *[40] * 9], columns)
    assert len(found) == 500
    assert sorted(found.counts.tolist()) == [1.0] * 400 + [2.0] * 100
