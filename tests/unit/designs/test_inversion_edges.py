"""Scores of groups of values against all sets of the design, also along one dimension of a table."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.designs.inversion import Groups

CASES = [
    (4, 2, 0.6, [0, 1, 1, -1]),
    (4, 2, 1.0, [0, 1, 1, -1]),
    (2, 1, 0.5, [0, 1]),
    (2, 1, 0.5, [0, 0]),
    (5, 3, 0.3, [1, 1, 0, 1, 1]),
]


def chances(d: int, eta: int, p: float) -> tuple[np.ndarray, np.ndarray]:
    """Every set as a row of 0 and 1, and its chance for every true value: on purpose with p, else by chance."""
    sets = list(combinations(range(d), eta))
    inside = np.array([[float(v in own) for v in range(d)] for own in sets])
    return inside, p * inside / inside.sum(axis=0) + (1 - p) / len(sets)


@pytest.mark.parametrize(("d", "eta", "p", "of"), CASES)
def test_squares_of_scores_are_means_over_all_sets(d: int, eta: int, p: float, of: list[int]) -> None:
    design = DecoyDesign(d=d, eta=eta, p=p)
    groups = Groups(np.array(of), max(of) + 1)
    inside, chance = chances(d, eta, p)
    known = inside.T @ chance  # [u, v] = P(u in R | v)
    other, gap = known[0, 1], known[0, 0] - known[0, 1]
    member = np.array([[float(one == g) for one in of] for g in range(groups.size)])
    scores = (member @ inside.T - member.sum(axis=1, keepdims=True) * other) / gap
    squares = scores**2 @ chance
    counts = np.arange(1.0, d + 1)
    found = design.inversion.scoring(groups)
    assert found.second_moments(counts, 0) == pytest.approx(squares @ counts)
    table = np.stack([counts, 3 * counts[::-1]])
    assert found.second_moments(table, 1) == pytest.approx(table @ squares.T)


@pytest.mark.parametrize(("d", "eta", "p", "of"), CASES)
def test_sums_of_scores_bring_back_the_counts_of_groups(d: int, eta: int, p: float, of: list[int]) -> None:
    """What is expected of inclusion counts, line by line of a table."""
    groups = Groups(np.array(of), max(of) + 1)
    inside, chance = chances(d, eta, p)
    table = np.arange(1.0, 3 * d + 1).reshape(3, d)
    wanted = np.stack([table[:, np.array(of) == g].sum(axis=1) for g in range(groups.size)], axis=1)
    expected = table @ (inside.T @ chance).T
    scoring = DecoyDesign(d=d, eta=eta, p=p).inversion.scoring(groups)
    assert scoring.sums(expected, 1) == pytest.approx(wanted)
    assert scoring.sums(expected.T, 0) == pytest.approx(wanted.T)
