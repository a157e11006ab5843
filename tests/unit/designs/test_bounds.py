"""Ends of the ranges in which designs are looked for."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from noren.designs.closeness import largest_ps
from noren.designs.inversion import Groups, MatrixInversion, MatrixScoring


def test_no_belief_moves_by_more_than_one_so_everything_may_be_told() -> None:
    for found in largest_ps(np.array([5, 3, 2]), 1.0, "equal"):
        assert (found.p, found.rho) == (1.0, inf)
    assert largest_ps(np.array([5, 3, 2]), 0.3, "equal")[0].p < 1


@pytest.mark.parametrize("unreliable", [True, False])
def test_where_sums_are_lost_and_nothing_shows_which_only_the_whole_is_kept(unreliable: bool) -> None:
    """Three values that are always published together: nothing but their number is known."""
    matrix = np.ones((3, 3))
    system = MatrixInversion(None, matrix, np.full((3, 3), 1 / 9), 1.0, 2, unreliable, None, inf)  # type: ignore[arg-type]
    groups = Groups(np.array([0, 0, 0]), 2)
    assert MatrixScoring(system, groups).lost.tolist() == [False, False]
    parts = Groups(np.array([0, 1, -1]), 2)
    assert MatrixScoring(system, parts).lost.tolist() == [True, True]
