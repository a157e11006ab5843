"""Equation 26 followed in leaps: the same table as step by step, for a fraction of the steps."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bayes import bayes, bayes_step, follow, inclusion_of
from noren.estimates.counts.frame import prepare
from noren.statements import SetCells
from tests.oracles import estimators as oracle


def published(rng, name, code, d, eta, p=1.0):
    """Sets of eta values with the true one among them, with probability p on purpose."""
    n = len(code)
    keys = rng.random((n, d))
    keys[np.arange(n), code] = np.where(rng.random(n) < p, -1.0, keys[np.arange(n), code])
    sets = np.argpartition(keys, eta - 1, axis=1)[:, :eta]
    return Axis.drawn(name, SetCells.from_codes(d, sets), DecoyDesign(d=d, eta=eta, p=p))


def released(rng, n, shape, eta, p=1.0):
    """The frame of a skewed, dependent table's sets."""
    mean = rng.dirichlet(np.full(int(np.prod(shape)), 0.3))
    codes = np.unravel_index(rng.choice(mean.size, n, p=mean), shape)
    return prepare([published(rng, f"c{j}", codes[j], d, eta, p) for j, d in enumerate(shape)])


@pytest.mark.parametrize(
    ("shape", "eta", "p", "eps"),
    [((6,), 3, 1.0, 1.0), ((8, 5), 3, 1.0, 1.0), ((7, 6), 2, 0.6, 0.1), ((5, 4, 3), 2, 1.0, 0.2)],
)
def test_the_stop_is_that_of_plain_steps(shape, eta, p, eps):
    n = 6000
    frame = released(np.random.default_rng(5), n, shape, eta, p)
    expected, steps = oracle.bayes([(d, eta, p) for d in shape], frame.inclusions[0], eps)
    found = bayes(frame, eps=eps)
    assert np.abs(found.table[0] - expected).sum() < 0.004 * n
    assert found.diagnostics["plain_steps"] == pytest.approx(steps, rel=0.05, abs=1)
    assert found.diagnostics["converged"]
    assert steps > 100
    assert found.iterations <= 1.1 * steps


def test_many_steps_cost_few():
    frame = released(np.random.default_rng(7), 20_000, (10, 8, 6), 5)
    found = bayes(frame)
    assert found.diagnostics["plain_steps"] > 5000
    assert found.iterations < found.diagnostics["plain_steps"] / 8


def test_it_goes_on_where_the_change_after_the_division_was_small_already():
    # The first step moves no cell by a record after the division, and leaves a table that is far too flat.
    rng, n = np.random.default_rng(11), 20_000
    kind = rng.integers(0, 2, n)
    shares = rng.dirichlet(np.full(14, 0.5), (2, 2))
    codes = [np.array([rng.choice(14, p=shares[j, k]) for k in kind]) for j in range(2)]
    truth = np.zeros((14, 14))
    np.add.at(truth, tuple(codes), 1)
    axes = [published(rng, f"c{j}", code, 14, 10) for j, code in enumerate(codes)]
    frame = prepare(axes)
    w = frame.inclusions
    first, found = bayes_step(inclusion_of(frame), w, w), bayes(frame)
    assert np.abs(first - w).max() / 100 < 1
    errors = [np.abs(table[0] - truth).sum() / n for table in (first / 100, found.table)]
    assert errors[0] > 0.9
    assert errors[1] < 0.5 * errors[0]
    assert found.table.sum() == pytest.approx(n, rel=1e-9)


def test_empty_cells_stay_empty_and_a_fixed_point_stays():
    kept = follow(lambda x: x, np.array([3.0, 0.0, 1.0]), 1e-9, 100)
    np.testing.assert_allclose(kept.table, [3.0, 0.0, 1.0])
    assert kept.evaluations == 1
    assert kept.change == 0


def test_it_gives_up_and_says_so():
    frame = released(np.random.default_rng(3), 5000, (8, 6), 4)
    w = frame.inclusions
    stopped = follow(lambda x: bayes_step(inclusion_of(frame), x, w), w, 1e-12, 130)
    assert stopped.change > 1e-12
    assert stopped.evaluations < 200
