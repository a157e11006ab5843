"""Laws of sets of distant values against all their sets: chances, inclusions, squares of scores, beliefs, draws."""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest

from noren.designs.semantic.design import SemanticDesign
from noren.secret import Keystream
from noren_papers.semantic.posterior import posterior_summary


def line(*positions: float) -> np.ndarray:
    return np.abs(np.subtract.outer(np.array(positions), np.array(positions)))


def kinds(*kind: int) -> np.ndarray:
    return (np.array(kind)[:, None] != np.array(kind)).astype(float)


RING = np.zeros((6, 6))
for a, b in ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (5, 0), (5, 2)):
    RING[a, b] = RING[b, a] = 1.0
CASES: list[tuple[str, np.ndarray, int, float]] = [
    ("flat", line(*range(8)), 3, 2),
    ("flat", line(0, 1, 2.5, 4, 5.5, 7), 2, 2),
    ("flat", kinds(0, 0, 1, 1, 2, 2, 3), 3, 1),
    ("uniform-sets", line(*range(8)), 3, 2),
    ("uniform-sets", kinds(0, 0, 0, 1, 2, 2), 2, 1),
    ("uniform-sets", RING, 2, 1),
    ("simple", line(*range(8)), 3, 2),
    ("simple", kinds(0, 0, 0, 1, 2, 2), 2, 1),
    ("simple", RING, 2, 1),
    ("simple", line(*range(9)), 4, 2),
    ("uniform-sets", line(*range(6)), 3, 2),  # F = l d: totals of blocks are lost
    ("simple", kinds(0, 0, 1, 1), 2, 1),
    ("uniform-sets", line(*range(5)), 1, 2),
    ("simple", line(*range(5)), 1, 2),
]


@pytest.mark.parametrize(("kind", "distances", "size", "threshold"), CASES)
def test_a_law_is_what_all_its_sets_say(kind: Any, distances: np.ndarray, size: int, threshold: float) -> None:
    design = SemanticDesign.make(kind, distances, size, threshold)
    assert design.name == f"semantic-{kind}"
    F = len(distances)
    near = distances < threshold
    sets = np.array(
        [own for own in combinations(range(F), size) if not any(near[a, b] for a, b in combinations(own, 2))]
    )
    weights = design.set_weights(sets)
    chance = np.zeros((len(sets), F))
    np.put_along_axis(chance, sets, weights, axis=1)
    assert chance.sum(axis=0) == pytest.approx(np.ones(F)), "one of the sets around every value"
    drawn_ever = chance.any(axis=1)  # on the circle of ranks its ends are neighbours
    sets, weights, chance = sets[drawn_ever], weights[drawn_ever], chance[drawn_ever]
    if kind == "flat":
        assert np.ptp(weights, axis=1).max() == pytest.approx(0, abs=1e-6), "members are alike in every set"
    if kind == "uniform-sets":
        assert all(np.ptp(own[own > 0]) == pytest.approx(0) for own in chance.T), "sets are alike around every value"
    inside = np.zeros((len(sets), F))
    np.put_along_axis(inside, sets, 1.0, axis=1)
    assert design.inclusion_matrix() == pytest.approx(chance.T @ inside, abs=1e-6)
    scores = np.random.default_rng(F).normal(size=(2, F))
    summed = np.stack([scores[:, own].sum(axis=1) for own in sets], axis=1)
    assert design.second_moment(scores) == pytest.approx(summed**2 @ chance, abs=1e-6)
    for prior in (None, np.arange(1.0, F + 1)):
        even = np.full(F, 1 / F) if prior is None else prior / prior.sum()
        joint = chance * even
        total = joint.sum(axis=1)
        found = posterior_summary(design.law, prior)
        assert found.exact
        assert found.worst == pytest.approx((joint / total[:, None]).max(), abs=1e-6)
        assert found.mean == pytest.approx(float((joint**2 / total[:, None]).sum()), abs=1e-6)
        assert found.bayes == pytest.approx(float(joint.max(axis=1).sum()), abs=1e-6)
    even = np.full(F, 1 / F)
    worst = (chance * even / (chance * even).sum(axis=1, keepdims=True)).max()
    assert design.worst_belief() == pytest.approx(worst, abs=1e-6)
    value, members = design.worst_set() or (None, ())
    if members:
        row = sets.tolist().index(list(members))
        assert chance[row, value] / chance[row].sum() == pytest.approx(worst, abs=1e-6)
    fine, condition = design.identifiability()
    matrix = design.inclusion_matrix()
    assert fine == (size == 1 or np.linalg.matrix_rank(matrix, tol=1e-6) == F)
    if not fine:
        assert condition == design.expected_l2(10) == inf
    else:
        assert condition == pytest.approx(np.linalg.cond(matrix), rel=1e-3)
        noise = design.second_moment(np.linalg.inv(matrix).T).mean(axis=1) - 1 / F**2
        assert design.expected_l2(10) == pytest.approx(np.sqrt(noise.sum() / 10), rel=1e-3)
    codes = np.tile(np.arange(F), 3).astype(np.uint8)
    drawn = design.draw(codes, Keystream(), attribute="x")
    known = {tuple(own): row for row, own in enumerate(sets.tolist())}
    for own, code in zip(drawn.codes(size).tolist(), codes.tolist(), strict=True):
        assert chance[known[tuple(own)], code] > 0
