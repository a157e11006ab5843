"""Estimates small enough to compute by hand: d = 3, eta = 2, p = 1, four records."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bayes import bayes, bayes_step, inclusion_of
from noren.estimates.counts.estimators import linear, value_adding
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.intervals import linear_variance
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells

SETS = np.array([[0, 1], [0, 2], [0, 1], [1, 2]])


@pytest.fixture
def frame():
    return prepare([Axis.drawn("v", SetCells.from_codes(3, SETS), DecoyDesign(d=3, eta=2))])


def em(frame, x):
    return x * frame.tuples.em_pass(x)[0]


def test_inclusion_counts(frame):
    # equation 17
    np.testing.assert_array_equal(frame.inclusions[0], [3, 3, 2])


def test_linear(frame):
    # Pt = 1, Po = 1/2: w_v = x_v + (4 - x_v) / 2
    np.testing.assert_allclose(linear(frame).table[0], [2, 2, 0], atol=1e-12)


def test_value_adding(frame):
    # equation 18 with p = 1: w / eta
    np.testing.assert_allclose(value_adding(frame).table[0], [1.5, 1.5, 1.0])


def test_em_iterates(frame):
    # computed exactly by hand, from a uniform start
    first = em(frame, np.full((1, 3), 4 / 3))
    np.testing.assert_allclose(first[0], [1.5, 1.5, 1.0])
    np.testing.assert_allclose(em(frame, first)[0], [1.6, 1.6, 0.8])


def test_em_limit(frame):
    # (2, 2, 0) maximises 2 log(a + b) + log(a + c) + log(b + c) over a + b + c = 4
    found = fit(frame, tolerance=1e-7)
    np.testing.assert_allclose(found.table[0], [2, 2, 0], atol=1e-3)


def test_bayes_after_one_iteration(frame):
    # equations 26 and 27: (84/55, 84/55, 52/55), computed exactly by hand
    w = frame.inclusions
    np.testing.assert_allclose(bayes_step(inclusion_of(frame), w, w)[0] / 2, [84 / 55, 84 / 55, 52 / 55])
    found = bayes(frame)
    assert found.iterations == 1  # no cell moved by one
    np.testing.assert_allclose(found.table[0], [84 / 55, 84 / 55, 52 / 55])


def test_bayes_stops_before_the_division():
    # 15 times the records: the first step moves the third cell by 2 * 15 * 3/55 = 1.64, and by half of that, which is
    # below one, after the division. Exactly by hand.
    frame = prepare([Axis.drawn("v", SetCells.from_codes(3, np.tile(SETS, (15, 1))), DecoyDesign(d=3, eta=2))])
    w = frame.inclusions
    moved = bayes_step(inclusion_of(frame), w, w) - w
    np.testing.assert_allclose(moved[0], [90 / 110, 90 / 110, -90 / 55])
    found = bayes(frame)
    assert found.diagnostics["plain_steps"] > 1
    assert found.diagnostics["last_change"] < 1


def test_linear_variance(frame):
    # Var = (K x)_v - x_v with u = v = 1: N - x_v, computed exactly by hand
    np.testing.assert_allclose(linear_variance(frame, np.array([[2.0, 2.0, 0.0]]))[0], [2, 2, 4])
    np.testing.assert_allclose(
        linear_variance(frame, np.array([[2.0, 2.0, 0.0]]), population=True)[0], [4 - 1, 4 - 1, 4]
    )


def test_tabulated_linear_carries_that_variance():
    found = tabulate([Axis.drawn("v", SetCells.from_codes(3, SETS), DecoyDesign(d=3, eta=2))], "linear")
    np.testing.assert_allclose(found.std_error**2, [2, 2, 4])
    assert found.method == "linear"
    assert set(found.interval) == {"linear"}


def test_posteriors_inside_and_outside_a_set():
    # One EM step from a prior on one record is the posterior: prior odds inside the set for p = 1; rho = 3 for
    # d = 4, eta = 2, p = 1/2. Computed exactly by hand.
    one = prepare([Axis.drawn("v", SetCells.from_codes(3, np.array([[0, 2]])), DecoyDesign(d=3, eta=2))])
    np.testing.assert_allclose(em(one, np.array([[0.6, 0.3, 0.1]]))[0], [6 / 7, 0, 1 / 7])
    one = prepare([Axis.drawn("v", SetCells.from_codes(4, np.array([[0, 1]])), DecoyDesign(d=4, eta=2, p=0.5))])
    np.testing.assert_allclose(em(one, np.array([[0.4, 0.3, 0.2, 0.1]]))[0], [1 / 2, 3 / 8, 1 / 12, 1 / 24])
