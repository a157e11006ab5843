"""One drawn column of few records with ordered values is made as smooth as held-out records ask for."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from noren.designs import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.fit import along_ranks, fit, smoothing_kernels
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.tabulate import tabulate
from noren.schema.column import Column
from noren.schema.domain import MISSING, Domain
from noren.schema.roles import Role
from noren.statements import SetStatement
from tests.unit.estimates.counts.test_regularised import axis_of


def ordered(seed: int, shares: np.ndarray, n: int = 500, kind: str = "integer") -> tuple[Axis, np.ndarray]:
    rng = np.random.default_rng(seed)
    d = len(shares)
    codes = rng.choice(d, n, p=shares / shares.sum())
    design = DecoyDesign(d=d, eta=max(2, d // 3), p=0.6)
    column = Column(role=Role.SENSITIVE).over("v", Domain(tuple(map(str, range(10, 10 + d))), kind))
    return Axis("v", SetStatement(column, design), axis_of(rng, codes, design).cells), np.bincount(codes, minlength=d)


def ratios(shares: np.ndarray) -> np.ndarray:
    """Errors over those without smoothing, ten tables."""
    out = []
    for seed in range(10):
        axis, truth = ordered(seed, shares)
        with patch("noren.estimates.counts.fit.smoothing_kernels", return_value=[]):
            before = fit(prepare([axis])).table.ravel()
        after = fit(prepare([axis])).table.ravel()
        out.append(np.abs(after - truth).sum() / np.abs(before - truth).sum())
    return np.array(out)


@pytest.mark.slow
def test_a_smooth_column_gains_and_a_rough_one_loses_nothing() -> None:
    """Sets are drawn with a seed here, so this is one fixed computation."""
    place = np.linspace(0, 1, 24)
    assert np.log(ratios(np.exp(-0.5 * ((place - 0.4) / 0.15) ** 2) + 0.01)).mean() < np.log(0.85)
    rough = ratios(np.where(np.arange(24) % 2 == 0, 5.0, 1.0))
    assert np.log(rough).mean() < np.log(1.05)
    assert rough.max() < 1.3


def test_the_kernel_keeps_even_shares_the_total_and_missing_values() -> None:
    found = along_ranks(13, 12, 1 / 12)
    assert found.sum(axis=0) == pytest.approx(np.ones(13), abs=1e-9)
    assert found.sum(axis=1) == pytest.approx(np.ones(13), abs=1e-9)
    assert found[12].tolist() == [0.0] * 12 + [1.0]
    assert (np.diff(found[5, :6]) > 0).all()
    assert (np.diff(found[5, 5:12]) < 0).all()


def test_names_have_no_order_and_few_values_none_to_speak_of() -> None:
    shares = np.ones(12)
    assert len(smoothing_kernels(ordered(1, shares)[0])) == 2
    assert smoothing_kernels(ordered(1, shares, kind="string")[0]) == []
    assert smoothing_kernels(ordered(1, np.ones(4))[0]) == []


def test_an_estimate_says_how_probable_smoothness_is_and_keeps_its_total() -> None:
    axis, _ = ordered(3, np.exp(-0.3 * np.arange(20)))
    found = tabulate([axis])
    assert 0 < found.diagnostics["smooth"] <= 1
    assert found.counts.sum() == pytest.approx(500)
    assert (found.low <= found.counts + 1e-9).all()
    assert (found.counts <= found.high + 1e-9).all()
    assert "smooth" not in tabulate([ordered(3, np.ones(20), kind="string")[0]]).diagnostics


def test_a_missing_value_is_nobodys_neighbour() -> None:
    domain = Domain((*map(str, range(10, 22)), MISSING), "integer")
    column = Column(role=Role.SENSITIVE).over("v", domain)
    design = DecoyDesign(d=13, eta=4, p=0.6)
    rng = np.random.default_rng(5)
    codes = rng.choice(13, 500, p=np.array([*[0.03] * 12, 0.64]))
    axis = Axis("v", SetStatement(column, design), axis_of(rng, codes, design).cells)
    assert [one[12, 12] for one in smoothing_kernels(axis)] == [1.0, 1.0]
    counts = tabulate([axis]).counts
    assert abs(counts[12] - 320) < 100
    assert counts[11] < 90
