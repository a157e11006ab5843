"""Losses: the paper's worked example, hand calculations, and what every registered loss must satisfy."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from noren.metrics.distances import METRICS, Loss, hellinger_loss, l1_loss, l2_loss, measure, mse_loss

TRUTH = np.array([[10.0, 20.0], [30.0, 40.0]])
ESTIMATE = np.array([[12.0, 17.0], [30.0, 41.0]])


@pytest.mark.parametrize(("truth", "estimate", "printed"), [([10, 100], [10, 80], 0.74), ([10, 25], [10, 5], 1.95)])
def test_the_papers_example(truth: list[int], estimate: list[int], printed: float) -> None:
    # Paper 000, section II-C: L1 and L2 are 20 for both pairs; Hellinger 0.74 and 1.95. The printed numbers do hold
    # the factor 1/sqrt(2) (without it they would be 1.05 and 2.76), and are cut, not rounded: 0.7465..., 1.9543...
    assert l1_loss(estimate, truth, False) == 20
    assert l2_loss(estimate, truth, False) == 20
    assert int(hellinger_loss(estimate, truth, False) * 100) / 100 == printed


def test_by_hand() -> None:
    assert l1_loss(ESTIMATE, TRUTH, False) == 6
    assert l1_loss(ESTIMATE, TRUTH, True) == pytest.approx(0.06)
    assert l2_loss(ESTIMATE, TRUTH, False) == pytest.approx(sqrt(14))
    assert l2_loss(ESTIMATE, TRUTH, True) == pytest.approx(sqrt(14) / 100)
    assert mse_loss(ESTIMATE, TRUTH, False) == pytest.approx(3.5)
    assert mse_loss(ESTIMATE, TRUTH, True) == pytest.approx(3.5e-4)


def test_hellinger_counts_a_negative_estimate_as_nothing() -> None:
    assert hellinger_loss([-5, 9], [0, 9], False) == 0
    assert hellinger_loss([-5, 9], [4, 9], False) == pytest.approx(sqrt(2))


def test_relative_divides_by_the_true_total_only() -> None:
    # an estimate that doubles every cell is wrong, even though its own shares are right
    assert l1_loss(2 * TRUTH, TRUTH, True) == pytest.approx(1.0)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("relative", [True, False])
def test_every_loss(name: str, relative: bool) -> None:
    loss = METRICS[name]
    assert loss(TRUTH, TRUTH, relative) == 0
    assert loss(ESTIMATE, TRUTH, relative) > 0
    assert loss(ESTIMATE.ravel(), TRUTH.ravel(), relative) == loss(ESTIMATE, TRUTH, relative)
    found = measure(name, ESTIMATE, TRUTH, relative=relative)
    assert found == Loss(name, "relative frequencies" if relative else "counts", loss(ESTIMATE, TRUTH, relative))
    for bad in ([[1.0, 2.0]], [[np.nan, 1.0], [1.0, 1.0]]):
        with pytest.raises(ValueError):
            loss(bad, TRUTH, relative)
    with pytest.raises(ValueError):
        loss([], [], relative)


def test_a_table_without_records_has_no_relative_loss() -> None:
    assert l1_loss([1, 2], [0, 0], False) == 3
    with pytest.raises(ValueError, match="no relative frequencies"):
        l1_loss([1, 2], [0, 0], True)
    with pytest.raises(ValueError, match="one of l1"):
        measure("l3", TRUTH, TRUTH)
