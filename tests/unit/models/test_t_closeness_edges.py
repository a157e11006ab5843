"""Closeness at its ends: one value, many classes, sets that nobody can have, and how much doubt an estimate leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.models import Overall, TCloseness, t_closeness
from noren.models.histograms import Histograms
from noren.models.judgement import Judgement
from noren.statements import SetCells
from tests.statements import set_column


@pytest.mark.parametrize("cells", [1, 4, 1 << 21])
def test_ordered_distances_of_every_class_and_of_one_value(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """The first class has the first of three values alone, the second half of the last two: whole (1/3, 1/3, 1/3)."""
    monkeypatch.setattr(t_closeness, "CELLS", cells)
    part = Histograms(np.array([2, 2]), np.array([0, 1, 3]), np.array([0, 1, 2]), np.array([2.0, 1.0, 1.0]))
    moved = t_closeness.ordered_distances(part, np.full(3, 1 / 3))
    assert moved == pytest.approx([(2 / 3 + 1 / 3) / 2, (1 / 3 + 1 / 6) / 2])
    alone = Histograms(np.array([2]), np.array([0, 1]), np.array([0]), np.array([2.0]))
    assert t_closeness.ordered_distances(alone, np.ones(1)).tolist() == [0]


def seen(shares: list[float], sets: list[list[int]], error: float | None, t: float) -> Any:
    """Two of four values in every set, the truth always inside."""
    errors = None if error is None else np.full(4, error)
    known = {"x": Overall(np.array(shares), "an estimate from the release", errors)}
    column = set_column("x", 4, DecoyDesign(d=4, eta=2, p=1.0))
    judgement = Judgement.of({"x": column}, [TCloseness(on="x", t=t)], known)
    judgement.observe({"x": SetCells.from_codes(4, np.array(sets))})
    (found,) = judgement.verdicts()
    return found


def test_a_set_that_nobody_can_have_moves_nothing() -> None:
    """Both of its values have no share, so that Bayes' rule says nothing about it."""
    found = seen([0.5, 0.5, 0.0, 0.0], [[2, 3]], None, 0.1)
    assert (found.achieved, found.holds) == (0, True)
    assert seen([0.5, 0.5, 0.0, 0.0], [[1, 2]], None, 0.1).achieved == pytest.approx(0.5)


@pytest.mark.parametrize(("error", "holds"), [(0.0, False), (0.028, False), (0.042, None)])
def test_an_excess_is_sure_if_no_distribution_within_twice_the_error_explains_it(error: float, holds: Any) -> None:
    """A set moves belief by the share of the values outside it, 1/2, and may by 0.3: the values inside would have to
    have 0.7. Of 400 neighbours at twice the error e the furthest adds about 6 e to them: 0.17, and 0.25."""
    assert seen([0.25] * 4, [[0, 1]], error, 0.3).holds is holds
