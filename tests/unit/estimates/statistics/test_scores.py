"""Scores have the expectation that they claim, by summing over every cell that a design can draw."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import noren.estimates.statistics.records as module
from noren.designs import DecoyDesign, PramDesign, SemanticDesign
from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, numbered_column
from noren.estimates.statistics.records import AxisScores, Records
from noren.statements import ChangedStatement, CodeCells, SetCells

SETS = [
    DecoyDesign(d=6, eta=3),
    DecoyDesign(d=6, eta=2, p=0.6),
    DecoyDesign(d=5, eta=1, p=0.5),
    DecoyDesign(d=5, eta=4),
    *(
        SemanticDesign.make(name, np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0))), 3, 2)
        for name in ("flat", "uniform-sets", "simple")
    ),
]


def every_set(design: DecoyDesign | SemanticDesign) -> tuple[AxisScores, np.ndarray]:
    """All sets of a design, some more often than others, and P(set | value)."""
    sets = np.array(list(combinations(range(design.d), design.eta)))
    sets = sets[design.member_weights(sets).max(axis=1) > 0]
    often = np.repeat(np.arange(len(sets)), 1 + np.arange(len(sets)) % 5)
    axis = Axis.drawn("x", SetCells.from_codes(design.d, sets[often]), design)
    chance = np.full((design.d, len(sets)), design.floor)
    weights = design.member_weights(sets)
    for place, members in enumerate(sets):
        chance[members, place] = weights[place]
    order = np.full(len(sets), -1)
    order[axis.distinct[1]] = often
    return AxisScores(axis), chance[:, order]


@pytest.mark.parametrize("design", SETS, ids=lambda design: f"{design.name}-{design.eta}-{design.p:g}")
@pytest.mark.parametrize("most", [0, 50_000], ids=["inclusion", "margin"])
def test_scores_of_sets_are_unbiased(
    design: DecoyDesign | SemanticDesign, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SETS", most)
    scores, chance = every_set(design)
    functions = np.random.default_rng(1).normal(size=(design.d, 4))
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    np.testing.assert_allclose(chance @ scores.of(functions), functions, atol=1e-9)


def test_scores_of_changed_values_are_unbiased() -> None:
    design = PramDesign(d=4, keep=0.4, parts=(4, 3, 2, 1))
    statement = ChangedStatement(numbered_column("x", 4), design)
    scores = AxisScores(Axis("x", statement, CodeCells(4, np.array([0, 0, 0, 1, 2, 2, 3]))))
    functions = np.random.default_rng(2).normal(size=(4, 3))
    np.testing.assert_allclose(design.inclusion_matrix() @ scores.of(functions), functions, atol=1e-9)


def test_the_margin_makes_scores_vary_less_than_inclusion_does(monkeypatch: pytest.MonkeyPatch) -> None:
    design = DecoyDesign(d=6, eta=3)
    truth = np.array([0.7, 0.15, 0.1, 0.03, 0.01, 0.01])
    scores, chance = every_set(design)
    function = np.arange(6.0)[:, None]

    def variance() -> float:
        found = scores.of(function)[:, 0]
        return float(truth @ (chance @ found**2) - (truth @ function[:, 0]) ** 2)

    object.__setattr__(scores, "margin", truth)
    by_margin = variance()
    fresh, _ = every_set(design)
    monkeypatch.setattr(module, "MOST_SETS", 0)
    scores = fresh
    assert by_margin < 0.8 * variance()


def test_constants_score_themselves() -> None:
    scores, _ = every_set(DecoyDesign(d=6, eta=3))
    assert (scores.of(np.full((6, 1), 2.5)) == 2.5).all()


def test_what_sets_do_not_determine_is_refused() -> None:
    scores, _ = every_set(DecoyDesign(d=4, eta=4))
    with pytest.raises(QueryError, match="do not determine"):
        scores.of(np.arange(4.0)[:, None])


def test_the_variance_of_a_total_is_unbiased_over_every_set() -> None:
    """One record with a known value: the mean of the estimated variance is the true one."""
    design, value = DecoyDesign(d=5, eta=2), 3
    sets = np.array(list(combinations(range(5), 2)))
    function = np.array([1.0, 4.0, -2.0, 3.0, 0.5])
    chance = np.array([design.kappa_in if value in members else 0.0 for members in sets])
    found = []
    for members in sets:
        axis = Axis.drawn("x", SetCells.from_codes(5, members[None, :]), design)
        scores = AxisScores(axis)
        object.__setattr__(scores, "margin", np.full(5, 0.2))
        records = Records([scores], axis.distinct[1][:, None].astype(np.int64), np.ones(1), np.ones(1), 1.0)
        totals = records.totals([{0: function}], population=False)
        found.append((totals.value[0], totals.cov[0, 0]))
    totals, variances = np.array(found).T
    assert chance @ totals == pytest.approx(function[value])
    assert chance @ variances == pytest.approx(chance @ totals**2 - function[value] ** 2)
