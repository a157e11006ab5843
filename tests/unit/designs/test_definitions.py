"""What designs are by their definitions: coins within a ratio, sets within t, draws that remove their neighbours."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import exp, inf
from typing import Any

import numpy as np
import pytest

from noren.designs import draw_columns, read_design
from noren.designs.central import noise_variance, scale_of
from noren.designs.closeness import largest_ps
from noren.designs.decoys import DecoyDesign, largest_p
from noren.designs.pram import PramDesign
from noren.designs.semantic.compatibility import InfeasibleDesign
from noren.designs.semantic.design import SemanticDesign
from noren.errors import NorenError
from noren.secret import Keystream, RecordStream, Secret
from noren_papers.sensitive_qids.search import largest_p as closest_p
from noren_papers.sensitive_qids.search import search
from tests.oracles import closeness as oracle

TWO_32 = 1 << 32


def ranks(F: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(float(F)), np.arange(float(F))))


# ---------------------------------------------------------------- uniform decoys


@pytest.mark.parametrize(("d", "eta", "rho"), [(2, 1, 3.7), (3, 2, 3.7), (4, 1, 6.0), (6, 3, 3.7), (6, 4, 6.0)])
def test_a_coin_is_rounded_so_that_its_ratio_stays_within(d: int, eta: int, rho: float) -> None:
    """The nearest number to the coin has a ratio above, as it is worked out for a report: the next below is taken."""
    p = largest_p(d, eta, rho)
    assert DecoyDesign(d=d, eta=eta, p=p).rho <= rho
    assert p == pytest.approx((rho - 1) * eta / (d + (rho - 1) * eta), rel=1e-15)


@pytest.mark.parametrize(("d", "rho"), [(4, 1.5), (5, 2.0), (7, 2.2), (23, 3.5)])
def test_the_best_size_is_of_the_two_around_the_lowest_point(d: int, rho: float) -> None:
    errors = {eta: DecoyDesign(d=d, eta=eta, p=largest_p(d, eta, rho)).expected_l2(9) for eta in range(1, d)}
    assert DecoyDesign.within(d, rho).eta == min(errors, key=lambda eta: errors[eta])


def test_a_design_says_where_its_parameters_come_from_if_they_tell_counts() -> None:
    plain, told = DecoyDesign(d=4, eta=2, p=0.5), DecoyDesign(d=4, eta=2, p=0.5, prior="data")
    assert plain.tells == ""
    assert "prior" not in plain.model_dump()
    assert told.tells.startswith("p and eta were chosen from the exact counts")
    assert told.model_dump()["prior"] == "data"
    for one in (plain, told):
        assert read_design(one.model_dump()) == one


@pytest.mark.parametrize("given", [None, {}, {"name": 3}, {"name": ["uniform-decoys"]}, {"name": "other", "d": 2}])
def test_what_names_no_design_is_none(given: Any) -> None:
    with pytest.raises(ValueError, match="no design of this name"):
        read_design(given)


def test_every_column_of_a_batch_is_drawn_by_its_own_design() -> None:
    designs: dict[str, Any] = {"a": DecoyDesign(d=3, eta=3), "b": PramDesign(d=1, keep=0.5)}
    found = draw_columns(designs, {"a": np.array([0, 2]), "b": np.array([0, 0])}, Keystream())
    assert found["a"].data.tolist() == [0b111, 0b111]
    assert found["b"].data.tolist() == [0, 0]


def test_no_columns_are_drawn_of_nobody() -> None:
    assert draw_columns({}, {}, RecordStream(Secret.fresh()), digests=np.zeros((0, 2), np.uint64)) == {}


class Scripted(Keystream):
    """Gives the words of a list, one part for every attempt."""

    __slots__ = ("parts",)

    def lane(self, attribute: str = "", scratch: Any = None) -> Any:
        return self

    def cell_words(self, *asked: Any) -> Any:
        return np.array(self.parts.pop(0), np.uint32)


@pytest.mark.parametrize("more", [0, 2])
def test_a_set_is_drawn_again_where_the_word_of_its_mask_is_unfair(more: int) -> None:
    """One of C(3, 1) = 3 masks, whose word 0 would be one too many; words beyond those needed do not matter."""
    script = Scripted()
    script.parts = [[[0, *[9] * more], [1, *[0] * more], [TWO_32 - 1, *[0] * more]], [[TWO_32 // 2, *[0] * more]]]
    found = DecoyDesign(d=4, eta=2).draw(np.zeros(3, np.uint8), script, attribute="a")
    assert found.data.tolist() == [0b101, 0b011, 0b1001]
    assert not script.parts


@pytest.mark.parametrize("more", [0, 2])
def test_a_coin_is_no_reason_to_draw_again(more: int) -> None:
    """Coin and mask: the word 0 of a coin is a coin, that of a mask is not taken."""
    script = Scripted()
    script.parts = [[[0, 1, *[0] * more], [TWO_32 - 1, 0, *[9] * more]], [[0, TWO_32 - 1, *[0] * more]]]
    found = DecoyDesign(d=4, eta=2, p=0.5).draw(np.zeros(2, np.uint8), script, attribute="a")
    assert found.data.tolist() == [0b011, 0b1001]
    assert not script.parts


# ---------------------------------------------------------------- closeness


@pytest.mark.parametrize("kind", ["equal", "ordered"])
@pytest.mark.parametrize("counts", [(5, 3, 2), (1, 0, 4, 2), (0, 6, 1, 1, 2), (1, 1, 1, 1)])
@pytest.mark.parametrize("t", [Fraction(1, 8), Fraction(1, 2), Fraction(7, 8)])
def test_the_largest_coin_is_that_of_the_worst_set(kind: Any, counts: tuple[int, ...], t: Fraction) -> None:
    """rho <= 1 + t / max H, by every set, in fractions; any coin where H is nowhere above 0."""
    d = len(counts)
    for found in largest_ps(np.array(counts), float(t), kind):
        worst = oracle.worst_height(counts, found.eta, t, kind)
        assert (found.worst, found.exact) == (pytest.approx(float(worst)), True)
        if worst <= 0:
            assert (found.p, found.rho) == (1.0, inf)
            continue
        exact = found.eta * t / (d * worst + found.eta * t)
        assert Fraction(found.p) <= exact
        assert found.p == pytest.approx(float(exact), rel=1e-15)
        assert found.rho == pytest.approx(float(1 + t / worst))
        assert max(oracle.all_distances(counts, found.eta, found.p, kind)) <= t


def test_what_says_nothing_or_may_say_everything_is_exact() -> None:
    counts = np.array([5, 3, 2])
    for t in (1.0, 1.5):
        assert [(one.eta, one.p, one.exact) for one in largest_ps(counts, t, "equal")] == [
            (1, 1.0, True),
            (2, 1.0, True),
        ]
    whole, single = closest_p(counts, 0.2, 3, "equal"), search(np.array([4]), 0.2, "equal")
    assert (whole.exact, single.exact) == (True, True)
    every = [closest_p(counts, 0.3, eta, "equal") for eta in (1, 2)]
    best = min(every, key=lambda one: DecoyDesign(d=3, eta=one.eta, p=one.p).expected_l2(9))
    assert best.eta == 1, "so that a search from 2 on would be seen"
    assert search(counts, 0.3, "equal").design == DecoyDesign(d=3, eta=1, p=best.p)


# ---------------------------------------------------------------- duplicate-processing


@pytest.mark.parametrize(("size", "step"), [(1, 3), (2, 2), (3, 3), (3, 1), (4, 2)])
def test_duplicate_processing_needs_room_for_every_draw(size: int, step: int) -> None:
    """Each draw removes 2d - 1 values on the circle: F >= (l-1)(2d-1) + 1."""
    least = max(size, (size - 1) * (2 * step - 1) + 1)
    for F in (least, least + 1):
        design = SemanticDesign.make("duplicate-processing", ranks(F), size, step)
        away = np.minimum(ranks(F), F - ranks(F)) >= step
        expected = np.where(away, (size - 1) / max(1, F - 2 * step + 1), 0.0) + np.eye(F)
        assert design.inclusion_matrix() == pytest.approx(expected), "equation 2"
        assert design.law.words() == size - 1, "one for every decoy"
        sets = np.array(list(combinations(range(F), size)))
        weight = design.set_weights(sets)
        given = np.zeros((F, F))
        for members, chances in zip(sets, weight, strict=True):
            for value, chance in zip(members, chances, strict=True):
                given[value, members] += chance
        assert given == pytest.approx(expected), "sums of P(R | v) over the sets with each other value"


@pytest.mark.parametrize(
    ("F", "size", "step", "hint"),
    [
        (10, 3, 3, "l = 2 works at this d; d = 2 works at l = 3; or use the design 'flat'."),
        (10, 5, 2, "l = 4 works at this d; d = 1 works at l = 5; or use the design 'flat'."),
        (15, 3, 5, "l = 2 works at this d; d = 4 works at l = 3; or use the design 'flat'."),
        (12, 4, 3, "l = 3 works at this d; d = 2 works at l = 4; or use the design 'flat'."),
    ],
)
def test_duplicate_processing_says_what_there_is_room_for(F: int, size: int, step: int, hint: str) -> None:
    with pytest.raises(
        InfeasibleDesign, match=f"l = {size} needs at least {(size - 1) * (2 * step - 1) + 1} "
    ) as caught:
        SemanticDesign.make("duplicate-processing", ranks(F), size, step)
    assert hint in str(caught.value)


def test_duplicate_processing_is_of_ranks() -> None:
    kind = np.arange(9) // 2
    with pytest.raises(NorenError, match="is defined on ranks only"):
        SemanticDesign.make("duplicate-processing", (kind[:, None] != kind).astype(float), 2, 1)


# ---------------------------------------------------------------- noised counts


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_the_variance_of_discrete_laplace_noise_is_its_sum(scale: float) -> None:
    k = np.arange(-2000, 2001)
    chance = np.exp(-np.abs(k) / scale)
    assert noise_variance(scale) == pytest.approx(float((k**2 * chance).sum() / chance.sum()))
    assert exp(-1 / scale_of(1, 1 / scale)) >= exp(-1 / scale), "no less noise than was asked for"
