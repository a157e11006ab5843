"""What `tabulate` promises: shapes, conditions, groups, refusals, and an answer where nothing can be learnt."""

from __future__ import annotations

import json

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import ESTIMATORS
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells


def publish(rng, values, d, eta, p=1.0, name="a", **extra) -> Axis:
    keys = rng.random((len(values), d))
    heads = np.flatnonzero(rng.random(len(values)) < p)
    keys[heads, values[heads]] = -1.0
    rows = np.argsort(keys, axis=1)[:, :eta]
    return Axis.drawn(name, SetCells.from_codes(d, rows), DecoyDesign(d=d, eta=eta, p=p), **extra)


@pytest.fixture
def rng():
    return np.random.default_rng(12)


@pytest.fixture
def values(rng):
    job = rng.choice(5, 4000, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    return job, (job + rng.choice(4, 4000, p=[0.7, 0.2, 0.05, 0.05])) % 4


def test_registry():
    assert set(ESTIMATORS) == {"likelihood", "bayes", "linear", "value-adding"}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_gives_a_whole_table(rng, values, estimator):
    axes = [publish(rng, values[0], 5, 2), publish(rng, values[1], 4, 2, 0.8)]
    steps = []
    found = tabulate(axes, estimator, progress=lambda step, value: steps.append((step, value)))
    assert found.method == estimator
    assert found.counts.shape == (5, 4)
    assert found.counts.sum() == pytest.approx(4000)
    assert (found.std_error > 0).all()
    assert found.diagnostics["records"] == 4000
    assert found.diagnostics["cells"] == 20
    json.dumps(found.diagnostics)
    if estimator in ("likelihood", "bayes"):
        assert found.iterations > 0
        assert len(steps) >= found.iterations
    else:
        assert found.iterations is None
    if estimator != "likelihood":
        assert found.diagnostics["interval_from"] == "linear"


def test_likelihood_is_near_the_truth(rng, values):
    truth = np.zeros((5, 4))
    np.add.at(truth, values, 1)
    axes = [publish(rng, values[0], 5, 2), publish(rng, values[1], 4, 2)]
    errors = {name: np.abs(tabulate(axes, name).counts - truth).sum() for name in ESTIMATORS}
    assert errors["likelihood"] < errors["linear"]
    assert errors["likelihood"] < errors["value-adding"] / 3


def test_bayes_goes_on_for_a_smaller_eps(rng, values):
    axes = [publish(rng, values[0], 5, 2)]
    rough, fine = tabulate(axes, "bayes", eps=1.0), tabulate(axes, "bayes", eps=1e-6)
    assert rough.iterations < fine.iterations
    # with every cell interior, the limit is linear inversion
    np.testing.assert_allclose(fine.counts, tabulate(axes, "linear").counts, atol=0.01)


def test_a_condition_is_an_axis_of_length_one(rng, values):
    allowed = np.array([0, 0, -1, -1])
    axes = [publish(rng, values[0], 5, 2), publish(rng, values[1], 4, 2, groups=allowed, n_groups=1)]
    found = tabulate(axes)
    assert found.counts.shape == (5, 1)
    whole = tabulate([axes[0], Axis.drawn("b", axes[1].cells, axes[1].design)])
    np.testing.assert_allclose(found.counts[:, 0], whole.counts[:, :2].sum(axis=1))
    truth = np.bincount(values[0][values[1] < 2], minlength=5)
    assert ((found.low[:, 0] <= truth) & (truth <= found.high[:, 0])).sum() >= 4


def test_variances_of_cells_are_not_added(rng, values):
    # The total is known exactly, however uncertain its parts are.
    axis = publish(rng, values[0], 5, 2, groups=np.zeros(5, np.int64), n_groups=1)
    for estimator in ESTIMATORS:
        found = tabulate([axis], estimator)
        assert found.counts[0] == pytest.approx(4000)
        assert found.std_error[0] == pytest.approx(0, abs=1e-2)
        assert found.low[0] == pytest.approx(4000, abs=0.1)


def test_exact_columns_keep_their_margin(rng, values):
    job = Axis.exact("job", values[0], 5)
    for estimator in ESTIMATORS:
        found = tabulate([publish(rng, values[1], 4, 2), job], estimator)
        assert found.counts.shape == (4, 5)
        np.testing.assert_allclose(found.counts.sum(axis=0), np.bincount(values[0], minlength=5))
        assert (found.high <= np.bincount(values[0], minlength=5) + 1e-6).all()


@pytest.mark.parametrize(("eta", "p"), [(4, 1.0), (4, 0.3), (2, 0.0)])
def test_an_axis_without_information(rng, values, eta, p):
    job = publish(rng, values[0], 5, 2, name="job")
    blind = publish(rng, values[1], 4, eta, p, name="grade")
    for estimator in ("linear", "bayes"):
        with pytest.raises(QueryError, match=r"'grade'.*\n.*Hint"):
            tabulate([job, blind], estimator)
    alone, both = tabulate([job]), tabulate([blind, job])
    assert both.counts.shape == (4, 5)
    np.testing.assert_allclose(both.counts, np.tile(alone.counts / 4, (4, 1)))
    assert (both.low == 0).all()
    np.testing.assert_allclose(both.high, np.tile(alone.high, (4, 1)))
    assert set(both.interval.ravel()) == {"none"}
    assert both.diagnostics["no_information"] == ["grade"]
    only = tabulate([blind])
    np.testing.assert_allclose(only.counts, [1000] * 4)
    assert only.low.tolist() == [0] * 4
    assert only.high.tolist() == [4000] * 4


def test_a_blind_axis_summed_away_costs_nothing(rng, values):
    job = publish(rng, values[0], 5, 2)
    blind = publish(rng, values[1], 4, 4, groups=np.zeros(4, np.int64), n_groups=1)
    alone, both = tabulate([job]), tabulate([job, blind])
    np.testing.assert_allclose(both.counts[:, 0], alone.counts)
    np.testing.assert_allclose(both.std_error[:, 0], alone.std_error)
    np.testing.assert_allclose(both.low[:, 0], alone.low)


def test_a_domain_of_one_value_is_trivial(rng, values):
    one = Axis.drawn("one", SetCells.from_codes(1, np.zeros((4000, 1), int)), DecoyDesign(d=1, eta=1, p=0.5))
    for estimator in ESTIMATORS:
        found = tabulate([one, publish(rng, values[0], 5, 2)], estimator)
        assert found.counts.shape == (1, 5)
        assert found.counts.sum() == pytest.approx(4000)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_records(estimator):
    empty = SetCells.from_codes(3, np.zeros((0, 2), int))
    zips = Axis.exact("zip", np.zeros(0, int), 2)
    for axes in ([], [zips]):
        found = tabulate([Axis.drawn("a", empty, DecoyDesign(d=3, eta=2)), *axes], estimator)
        assert not found.counts.any()
        assert not found.high.any()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_record(estimator):
    axes = [Axis.drawn(n, SetCells.from_codes(3, np.array([[0, 2]])), DecoyDesign(d=3, eta=2)) for n in "ab"]
    found = tabulate(axes, estimator)
    assert found.counts.sum() == pytest.approx(1)
    assert np.isfinite(found.std_error).all()


def test_refusals(rng, values):
    axis = publish(rng, values[0], 5, 2)
    with pytest.raises(QueryError, match="no estimator 'magic'"):
        tabulate([axis], "magic")
    with pytest.raises(QueryError, match=r"level=1\.5"):
        tabulate([axis], level=1.5)


def test_a_higher_level_is_wider(rng, values):
    axis = publish(rng, values[0], 5, 2)
    narrow, wide = tabulate([axis], level=0.8), tabulate([axis], level=0.99)
    assert (narrow.high - narrow.low < wide.high - wide.low).all()


def test_sampling_widens(rng, values):
    axis = publish(rng, values[0], 5, 2)
    assert (tabulate([axis], population=True).std_error > tabulate([axis]).std_error).all()
    assert (tabulate([axis], "linear", population=True).std_error > tabulate([axis], "linear").std_error).all()
