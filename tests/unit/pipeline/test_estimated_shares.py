"""The distribution that a recipient judges closeness against: estimated from the release, with its errors."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.designs.posterior import mean_true_probability
from noren.designs.pram import PramDesign
from noren.pipeline.overall import _estimated

N = 1000
SHARES = np.array([0.6, 0.3, 0.1, 0.0])


def matrix(design: PramDesign) -> np.ndarray:
    """How likely every value (row) is published for every true one (column)."""
    return design.keep * np.eye(design.d) + (1 - design.keep) * design.shares[:, None]


def test_shares_from_sets_with_their_errors() -> None:
    design = DecoyDesign(d=4, eta=2, p=0.5)
    often = N * (design.p_other + design.p_gap * SHARES)
    found = _estimated(design, often, N)  # type: ignore[arg-type]
    assert found.shares == pytest.approx(SHARES)
    assert found.basis == "an estimate from the release"
    inside, outside = design.p_true * (1 - design.p_true), design.p_other * (1 - design.p_other)
    wanted = (SHARES * inside + (1 - SHARES) * outside) / design.p_gap**2 / N
    assert found.std_error == pytest.approx(np.sqrt(wanted))


def test_shares_from_changed_values_with_their_errors() -> None:
    design = PramDesign(d=4, keep=0.5, parts=(4, 3, 2, 1))
    rows = matrix(design)
    found = _estimated(design, N * (rows @ SHARES), N)  # type: ignore[arg-type]
    assert found.shares == pytest.approx(SHARES)
    back = np.linalg.inv(rows)
    spread = (back**2) @ rows - ((back @ rows) ** 2)
    assert found.std_error == pytest.approx(np.sqrt(spread @ SHARES / N))


@pytest.mark.parametrize("design", [DecoyDesign(d=4, eta=2, p=0.5), PramDesign(d=4, keep=0.5)], ids=["sets", "values"])
def test_a_value_that_is_published_too_seldom_has_no_share(design: DecoyDesign | PramDesign) -> None:
    """Fewer than chance alone would publish: nobody has it, and the others' shares are a whole."""
    if isinstance(design, DecoyDesign):
        often = N * (design.p_other + design.p_gap * np.array([0.7, 0.3, 0.1, -0.1]))
    else:
        often = N * (matrix(design) @ np.array([0.7, 0.3, 0.1, -0.1]))
    found = _estimated(design, often, N)  # type: ignore[arg-type]
    assert found.shares == pytest.approx(np.array([0.7, 0.3, 0.1, 0.0]) / 1.1)


def test_sets_that_say_nothing_leave_every_value_alike() -> None:
    design = DecoyDesign(d=3, eta=3, p=1.0)
    found = _estimated(design, np.full(3, N), N)
    assert found.shares == pytest.approx(np.full(3, 1 / 3))
    assert found.std_error is None


def test_changed_values_say_how_far_they_are_from_being_lost() -> None:
    assert PramDesign(d=4, keep=0.4, parts=(4, 3, 2, 1)).inversion.condition == pytest.approx(2.5)


def test_the_chance_of_guessing_right_with_values_that_nobody_has() -> None:
    """Sets of two of which nobody has one say nothing about anybody, and are no error."""
    counts = np.array([3, 1, 0, 0])
    mean = ((9 + 1) / 4 + 3 + 3 + 1 + 1) / 4 / 3
    assert mean_true_probability(counts, 2) == pytest.approx(mean)
