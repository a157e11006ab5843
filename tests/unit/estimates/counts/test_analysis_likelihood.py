"""EM converges where it should, stops early where it must, and Fisher's variance follows exact columns."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts import fit as em
from noren.estimates.counts import intervals
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.held_out import folds_of
from noren.statements import SetCells


def publish(rng, values, d, eta, p=1.0) -> Axis:
    if eta == 1:
        return Axis.exact("a", values, d)
    keys = rng.random((len(values), d))
    heads = np.flatnonzero(rng.random(len(values)) < p)
    keys[heads, values[heads]] = -1.0
    return Axis.drawn("a", SetCells.from_codes(d, np.argsort(keys, axis=1)[:, :eta]), DecoyDesign(d=d, eta=eta, p=p))


def plain_em(frame, x, steps):
    for _ in range(steps):
        x = x * frame.tuples.em_pass(x)[0]
    return x


@pytest.mark.parametrize("p", [1.0, 0.6])
def test_extrapolation_reaches_the_maximum_of_plain_em(p):
    rng = np.random.default_rng(5)
    frame = prepare([publish(rng, rng.choice(8, 3000, p=rng.dirichlet(np.ones(8))), 8, 3, p)])
    found = em.fit(frame, tolerance=1e-5)
    assert found.diagnostics["converged"]
    np.testing.assert_allclose(found.table, plain_em(frame, np.full((1, 8), 375.0), 5000), atol=0.05)


def test_several_attributes_stop_before_they_fit_noise():
    rng = np.random.default_rng(6)
    shape = (9, 8)
    chances = rng.gamma(2.0, 1.0, shape)
    flat = rng.choice(72, 3000, p=chances.ravel() / chances.sum())
    truth = np.bincount(flat, minlength=72).reshape(1, *shape)
    frame = prepare([publish(rng, v, d, 4) for v, d in zip(np.unravel_index(flat, shape), shape, strict=True)])
    found = em.fit(frame)
    assert found.diagnostics["stopping"] == "held-out likelihood"
    assert found.diagnostics["folds"] == 4
    curve = np.array(found.diagnostics["held_out"])
    within = np.flatnonzero(3000 * (curve.max() - curve) <= 0.5)
    assert within[0] == found.diagnostics["held_out_best"] < len(curve) - 1, "the earliest within half a nat"
    overfitted = plain_em(frame, found.table, 2000)
    assert np.square(found.table - truth).sum() < 0.6 * np.square(overfitted - truth).sum()


def test_small_slices_of_an_exact_column_borrow_from_the_others():
    rng = np.random.default_rng(7)
    disease, area = rng.choice(10, 3000, p=rng.dirichlet(np.ones(10))), rng.integers(0, 60, 3000)
    truth = np.zeros((60, 10))
    np.add.at(truth, (area, disease), 1)
    frame = prepare([publish(rng, area, 60, 1), publish(rng, disease, 10, 4)])
    found = em.fit(frame)
    alone = plain_em(frame, np.full((60, 10), 5.0), 2000)
    assert np.square(found.table - truth).sum() < 0.7 * np.square(alone - truth).sum()
    np.testing.assert_allclose(found.table.sum(axis=1), truth.sum(axis=1))


def test_folds_hold_every_record_out_once_and_ignore_row_order():
    counts = np.array([1.0, 5.0, 40.0, 2.0])
    held = folds_of(counts).counts
    np.testing.assert_array_equal(held.sum(axis=1), counts)
    np.testing.assert_array_equal(held, folds_of(counts).counts)


def test_tuples_that_belong_together_are_held_out_in_one_fold():
    counts, together = np.arange(1.0, 41.0), np.arange(40) // 4
    held = folds_of(counts, together=together).counts
    np.testing.assert_array_equal(held.sum(axis=1), counts)
    by_class = (held > 0).reshape(10, 4, -1)
    assert (by_class == by_class[:, :1]).all()


def test_fisher_equals_the_dense_inverse():
    rng = np.random.default_rng(8)
    flat = rng.choice(12, 5000, p=rng.dirichlet(np.full(12, 5.0)))
    frame = prepare([publish(rng, flat // 4, 3, 2), publish(rng, flat % 4, 4, 2, 0.8)])
    x = np.bincount(flat, minlength=12).reshape(1, 3, 4).astype(float)
    J = frame.tuples.information(frame.tuples.em_pass(x)[1])[0]
    inverse = np.linalg.inv(J)
    table = intervals.fisher_variance(frame, x)
    np.testing.assert_allclose(table.ravel(), np.diag(inverse) - x.ravel(), rtol=1e-5)
    sampled = intervals.fisher_variance(frame, x, population=True)
    np.testing.assert_allclose(sampled.ravel(), np.diag(inverse) - x.ravel() ** 2 / 5000, rtol=1e-5)


def test_fisher_of_an_exact_column_is_fisher_of_each_slice():
    rng = np.random.default_rng(9)
    area, disease = rng.integers(0, 3, 6000), rng.choice(5, 6000, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    decoys = publish(rng, disease, 5, 2)
    both = prepare([publish(rng, area, 3, 1), decoys])
    x = np.zeros((3, 5))
    np.add.at(x, (area, disease), 1)
    together = intervals.fisher_variance(both, x)
    for slot in range(3):
        one = prepare([Axis.drawn("a", decoys.cells.take(area == slot), decoys.design)])
        np.testing.assert_allclose(together[slot], intervals.fisher_variance(one, x[slot : slot + 1])[0], rtol=1e-8)


def test_large_tables_have_no_fisher_information(monkeypatch):
    rng = np.random.default_rng(10)
    frame = prepare([publish(rng, rng.integers(0, 6, 100), 6, 2)])
    monkeypatch.setattr(intervals, "FISHER_CELLS", 5)
    assert intervals.fisher_variance(frame, np.full((1, 6), 100 / 6)) is None
