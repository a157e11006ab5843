"""Designs at their ends: domains of one and two values, whole sets, impossible parameters, what is refused and how."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb, inf, log, sqrt
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from noren.designs.decoys import DecoyDesign, largest_p
from noren.designs.inversion import Groups
from noren.designs.pram import MOST_PARTS, PramDesign
from noren.designs.semantic.design import SemanticDesign

JUST = 1e-9


# ---------------------------------------------------------------- what is a design


SEMANTIC = {"name": "semantic-simple", "d": 4, "eta": 2, "threshold": 2.0, "structure": {"kind": "ranks", "step": 2}}
LIMITS: list[tuple[Callable[..., Any], dict[str, Any], str, list[Any], list[Any]]] = [
    (DecoyDesign, {"d": 1, "eta": 1}, "d", [1], [0]),
    (DecoyDesign, {"d": 4, "eta": 2}, "eta", [1, 4], [0, 5]),
    (DecoyDesign, {"d": 4, "eta": 2}, "p", [0, 1], [-JUST, 1 + JUST]),
    (PramDesign, {"d": 1, "keep": 0.5}, "d", [1], [0]),
    (PramDesign, {"d": 2, "keep": 0.5}, "keep", [JUST, 1 - JUST], [0, 1]),
    (PramDesign, {"d": 2, "keep": 0.5}, "parts", [(1, 1), (MOST_PARTS - 1, 1)], [(0, 1), (1,), (MOST_PARTS, 1)]),
    (SemanticDesign, SEMANTIC | {"d": 1, "eta": 1}, "d", [1], [0]),
    (SemanticDesign, SEMANTIC, "eta", [1, 4], [0, 5]),
    (SemanticDesign, SEMANTIC, "threshold", [JUST], [0]),
    (SemanticDesign, SEMANTIC, "structure", [{"kind": "ranks", "step": 1}], [{"kind": "ranks", "step": 0}]),
    (SemanticDesign, SEMANTIC, "structure", [{"kind": "line", "positions": (0, 1, 2, 3)}],
     [{"kind": "line", "positions": (0, 1, 2)}, {"kind": "line", "positions": (0, 1, 2, 3, 4)}]),
    (SemanticDesign, SEMANTIC, "structure", [{"kind": "matrix", "compatible": ((0, 1, 1, 1),) * 4}],
     [{"kind": "matrix", "compatible": ((0, 1, 1),) * 4}]),
    (SemanticDesign, SEMANTIC, "weights", [None], [(1.0, 1.0, 1.0, 1.0)]),
    (SemanticDesign, SEMANTIC, "types", [None], [((0, 1),)]),
    (SemanticDesign, SEMANTIC, "chances", [None], [((0.5, 0.5),)]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "field", "taken", "beyond"), LIMITS)
def test_limits(
    kind: Callable[..., Any], given: dict[str, Any], field: str, taken: list[Any], beyond: list[Any]
) -> None:
    for value in taken:
        assert kind(**given | {field: value}) is not None
    for value in beyond:
        with pytest.raises(ValidationError):
            kind(**given | {field: value})


CLASSES = {"kind": "classes", "class_of": (0, 0, 1, 2)}
WEIGHTED = {"name": "semantic-flat", "d": 4, "eta": 2, "threshold": 1.0, "structure": CLASSES}
BALANCED = WEIGHTED | {
    "name": "semantic-balanced",
    "types": ((0, 1), (0, 2), (1, 2)),
    "chances": ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5)),
}


@pytest.mark.parametrize("weights", [None, (1.0, 1.0, 1.0), (1.0, 0.0, 1.0, 1.0), (1.0, inf, 1.0, 1.0)])
def test_flat_sets_of_classes_have_a_weight_for_every_value(weights: Any) -> None:
    assert SemanticDesign(**WEIGHTED, weights=(1.0, 1.0, 2.0, 2.0)).d == 4
    with pytest.raises(ValidationError, match="weights"):
        SemanticDesign(**WEIGHTED, weights=weights)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"types": ((0, 1), (0, 2))}, "types and chances are rows of 2"),
        ({"types": ((0, 1, 2),) * 3}, "types and chances are rows of 2"),
        ({"types": ((0, 1), (0, 2), (1, 3))}, "each type must list kinds of values, and occur once"),
        ({"types": ((-1, 1), (0, 2), (1, 2))}, "each type must list kinds of values, and occur once"),
        ({"types": ((0, 1), (0, 1), (1, 2))}, "each type must list kinds of values, and occur once"),
        ({"types": ((1, 0), (0, 2), (1, 2))}, "in ascending order"),
        ({"types": ((0, 0), (0, 2), (1, 2))}, "in ascending order"),
        ({"chances": ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5 + 1e-8))}, "the chances of a kind must sum to 1"),
        ({"chances": ((1.5, 0.5), (-0.5, 0.5), (0.5, 0.5))}, "the chances of a kind must sum to 1"),
        ({"chances": None}, "types and chances belong to the balanced design"),
    ],
)
def test_types_of_sets_are_what_they_say(change: dict[str, Any], said: str) -> None:
    assert SemanticDesign(**BALANCED).eta == 2
    with pytest.raises(ValidationError, match=said):
        SemanticDesign(**BALANCED | change)


@pytest.mark.parametrize("sets", [[[0, 4]], [[-1, 2]], [[0]], [[0, 1, 2]]])
def test_likelihoods_are_of_sets_of_the_design(sets: list[list[int]]) -> None:
    design = SemanticDesign(**SEMANTIC)
    with pytest.raises(ValueError, match="sets must be rows of 2 codes below 4"):
        design.set_weights(np.array(sets))
    found = design.set_weights(np.array([[0, 2], [0, 1], [2, 0], [0, 3]]))
    assert (found[[0, 3]] > 0).all()
    assert not found[[1, 2]].any(), "too near, or not in order"
    assert design.set_weights(np.zeros((0, 2), int)).shape == (0, 2)


# ---------------------------------------------------------------- uniform decoys


@pytest.mark.parametrize(
    ("d", "eta", "p"), [(1, 1, 1.0), (2, 1, 0.5), (2, 2, 0.5), (4, 2, 1.0), (4, 3, 0.3), (5, 1, 0)]
)
def test_uniform_decoys_by_enumeration(d: int, eta: int, p: float) -> None:
    design = DecoyDesign(d=d, eta=eta, p=p)
    sets = list(combinations(range(d), eta))

    def chance(members: tuple[int, ...], value: int) -> float:
        return p * (value in members) / comb(d - 1, eta - 1) + (1 - p) / comb(d, eta)

    inside = np.array([[sum(chance(own, v) for own in sets if u in own) for u in range(d)] for v in range(d)])
    assert design.p_true == pytest.approx(inside[0, 0])
    assert design.kappa_in == pytest.approx(chance(sets[0], 0))
    if d > 1:
        assert design.p_other == pytest.approx(inside[0, 1])
        assert design.inclusion_matrix() == pytest.approx(inside)
        assert design.p_gap == pytest.approx(inside[0, 0] - inside[0, 1])
    if eta < d:
        out = chance(sets[0], d - 1)
        assert design.kappa_out == design.floor == pytest.approx(out)
        assert design.rho == pytest.approx(inf if out == 0 else chance(sets[0], 0) / out)
        assert design.epsilon == pytest.approx(log(design.rho) if design.rho < inf else inf)
    assert design.expected_inside(np.zeros(3, int)) == pytest.approx(3 * inside[0, 0])
    assert design.worst_belief() == pytest.approx(design.p_true / (eta * design.p_true + (d - eta) * _outside(design)))


def _outside(design: DecoyDesign) -> float:
    """P(R | v) of a value outside, in units in which it is Pt inside."""
    return 0.0 if design.eta == design.d else design.p_true / design.rho


@pytest.mark.parametrize(
    ("design", "exact", "blind"),
    [
        (DecoyDesign(d=1, eta=1), True, False),
        (DecoyDesign(d=2, eta=1), True, False),
        (DecoyDesign(d=1, eta=1, p=0.5), False, False),
        (DecoyDesign(d=2, eta=2), False, True),
        (DecoyDesign(d=2, eta=1, p=0.5), False, False),
        (DecoyDesign(d=2, eta=1, p=0.0), False, True),
        (PramDesign(d=1, keep=0.5), True, False),
        (PramDesign(d=2, keep=0.5), False, False),
        (PramDesign(d=2, keep=1e-12), False, True),
        (SemanticDesign(**SEMANTIC | {"eta": 1}), True, False),
        (SemanticDesign(**SEMANTIC | {"structure": {"kind": "ranks", "step": 1}, "eta": 4}), False, True),
        (SemanticDesign(**SEMANTIC | {"structure": {"kind": "ranks", "step": 1}, "d": 2}), False, True),
    ],
)
def test_who_tells_everything_and_who_nothing(design: Any, exact: bool, blind: bool) -> None:
    assert (design.is_exact, design.is_blind) == (exact, blind)


@pytest.mark.parametrize(("d", "eta", "rho"), [(5, 2, 2.25), (5, 4, 1.5), (100, 1, 1e6), (2, 1, 1 + 1e-9), (7, 3, inf)])
def test_the_largest_coin_keeps_the_ratio_and_no_larger_one_does(d: int, eta: int, rho: float) -> None:
    p = largest_p(d, eta, rho)
    assert DecoyDesign(d=d, eta=eta, p=p).rho <= rho
    if rho < inf:
        assert DecoyDesign(d=d, eta=eta, p=p * (1 + 1e-6)).rho > rho
        assert DecoyDesign(d=d, eta=eta, p=p).rho == pytest.approx(rho)
    else:
        assert p == 1
    assert largest_p(d, eta, 1.0) == 0


@pytest.mark.parametrize(("d", "rho", "least"), [(2, 3.0, 1), (12, 2.0, 1), (12, 2.0, 6), (12, 2.0, 11), (40, 1.2, 3)])
def test_the_design_within_a_ratio_has_the_least_expected_error(d: int, rho: float, least: int) -> None:
    found = DecoyDesign.within(d, rho, least)
    errors = {eta: DecoyDesign(d=d, eta=eta, p=largest_p(d, eta, rho)).expected_l2(1000) for eta in range(least, d)}
    assert found.eta == min(errors, key=lambda eta: errors[eta])
    assert found.rho <= rho


@pytest.mark.parametrize(("d", "rho", "least"), [(3, 2.0, 0), (3, 2.0, 3), (3, 1.0, 1), (1, 2.0, 1)])
def test_no_size_is_best_where_nothing_can_be_learnt(d: int, rho: float, least: int) -> None:
    with pytest.raises(ValueError, match=f"sets of {least} of {d} values"):
        DecoyDesign.within(d, rho, least)


@pytest.mark.parametrize(("d", "eta", "p"), [(2, 1, 0.5), (5, 2, 1.0), (6, 4, 0.3)])
def test_the_expected_error_is_that_of_linear_inversion(d: int, eta: int, p: float) -> None:
    """All values as common: the variance of one record's scores given its truth, summed over the values."""
    design, n = DecoyDesign(d=d, eta=eta, p=p), 50
    scoring = design.inversion.scoring(Groups(np.arange(d), d, is_identity=True))
    even = np.full(d, 1 / d)
    noise = scoring.second_moments(even, 0) - even
    assert design.expected_l2(n) == pytest.approx(sqrt(noise.sum() / n))
    for lost in (DecoyDesign(d=d, eta=d), DecoyDesign(d=d, eta=eta, p=0.0)):
        assert lost.expected_l2(n) == inf
