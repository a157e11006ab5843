"""The design whose sets betray least, against programmes solved by hand, and the limits up to which it is sought."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from noren.designs.semantic import balanced
from noren.designs.semantic.balanced import Balanced, Types, balance, check_types, least_belief
from noren.designs.semantic.compatibility import Compatibility

ALL_ONES = (1 << 32) - 1


def graph(size: int, *edges: tuple[int, int]) -> Compatibility:
    """Values that may stand together are joined by an edge."""
    far = np.zeros((size, size))
    for a, b in edges:
        far[a, b] = far[b, a] = 1.0
    return Compatibility.from_distances(far, 1.0)


def kinds(*kind: int) -> Compatibility:
    return Compatibility.from_distances((np.array(kind)[:, None] != np.array(kind)).astype(float), 1.0)


PATH = graph(5, (0, 3), (3, 1), (1, 4), (4, 2))
"""0 - 3 - 1 - 4 - 2. Every set has one of {0, 1, 2} and one of {3, 4}: three of five people have one of the first, so
that it is believed with 3/5 on average. No two values have the same partners, so nothing shows this beforehand."""


def test_the_least_belief_is_found_where_no_count_of_values_tells_it() -> None:
    assert least_belief(PATH, 2) == 0.5
    found = balance(PATH, 2)
    assert found is not None
    assert (found.bound, found.worst) == (0.5, pytest.approx(0.6, rel=1e-6))
    assert found.types.rows.tolist() == [[0, 3], [1, 3], [1, 4], [2, 4]]
    assert found.types.chances == pytest.approx(np.array([[1, 2 / 3], [1 / 2, 1 / 3], [1 / 2, 1 / 3], [1, 2 / 3]]))


def test_a_design_spreads_its_sets_as_far_as_a_permitted_belief_goes_and_no_further() -> None:
    found = balance(PATH, 2, most=0.7)
    assert found is not None
    assert 0.61 < found.worst <= 0.7 * (1 + 1e-6)
    anything = balance(PATH, 2, most=1.0)
    assert anything is not None
    assert anything.worst <= 1.0


@pytest.mark.parametrize(("kind", "least"), [((0, 0, 0, 1, 2), 3 / 5), ((0, 0, 1, 1), 1 / 2), ((0, 0, 0, 0, 1), 4 / 5)])
def test_values_of_which_a_set_holds_one_are_believed_by_their_share(kind: tuple[int, ...], least: float) -> None:
    found = balance(kinds(*kind), 2)
    assert found is not None
    assert least_belief(kinds(*kind), 2) == found.bound == pytest.approx(least)
    assert found.worst == pytest.approx(least, rel=1e-6)


def test_values_with_the_same_partners_are_believed_by_their_share_in_any_distance() -> None:
    """1, 2 and 3 stand beside 0 alone, and 4 beside 5: no order of values, so that kinds are counted."""
    star = graph(6, (0, 1), (0, 2), (0, 3), (4, 5))
    assert star.chain is None
    assert least_belief(star, 2) == 3 / 6


def test_the_same_values_get_the_same_design_in_every_release() -> None:
    """Memoised sets stay the same from release to release only if their design does."""
    found = balance(kinds(0, 0, 0, 1, 1, 2, 3), 3)
    assert found is not None
    assert found.types.rows.tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3]]
    assert found.types.chances == pytest.approx(
        np.array([[0.5397, 0.7817, 0.5952], [0.2143, 0.2183, 0.4206], [0.2460, 0.4048, 0.5794]]), abs=1e-4
    )


@pytest.mark.parametrize(("name", "enough"), [("MOST_KINDS", 5), ("MOST_VARIABLES", 8)])
def test_programmes_are_solved_up_to_a_size(monkeypatch: pytest.MonkeyPatch, name: str, enough: int) -> None:
    """Five kinds, and four types of two."""
    monkeypatch.setattr(balanced, name, enough)
    assert balance(PATH, 2) is not None
    monkeypatch.setattr(balanced, name, enough - 1)
    assert balance(PATH, 2) is None


# ---------------------------------------------------------------- what a design says of itself

KIND = np.array([0, 1, 0, 1, 2, 1])
"""Kinds of two, three and one values, mixed."""
ROWS = np.array([[0, 1], [0, 2], [1, 2]])
CHANCES = np.array([[0.25, 0.0], [0.75, 0.5], [1.0, 0.5]])
"""Whoever is of kind 0 stands beside kind 1 in a quarter of the cases, but nobody of kind 1 beside kind 0."""


def law() -> Balanced:
    return Balanced(kinds(*KIND), 2, Types(KIND, ROWS, CHANCES))


def by_definition(sets: Any) -> np.ndarray:
    """P(R | v) of both members: the chance of the type, over how many values of the other kind could be drawn."""
    number = {tuple(row): i for i, row in enumerate(ROWS.tolist())}
    sizes = np.bincount(KIND)
    out = np.zeros((len(sets), 2))
    for i, pair in enumerate(sets):
        own = [int(KIND[v]) for v in pair]
        if own[0] != own[1]:
            chance = dict(zip(sorted(own), CHANCES[number[min(own), max(own)]], strict=True))
            out[i] = [chance[own[0]] / sizes[own[1]], chance[own[1]] / sizes[own[0]]]
    return out


SETS = np.array([own for own in combinations(range(6), 2) if KIND[own[0]] != KIND[own[1]]])


def test_the_chance_of_a_set_is_that_of_its_type_over_its_choices() -> None:
    assert law().likelihood(SETS) == pytest.approx(by_definition(SETS))


def test_a_type_that_is_not_listed_is_never_drawn() -> None:
    some = Balanced(kinds(*KIND), 2, Types(KIND, ROWS[1:], np.array([[1.0, 0.5], [1.0, 0.5]])))
    never = (KIND[SETS] != 2).all(axis=1)
    assert not some.likelihood(SETS)[never].any()
    assert (some.likelihood(SETS)[~never] > 0).all()


def test_sums_over_sets_with_kinds_that_are_never_true_together() -> None:
    chance = np.zeros((len(SETS), 6))
    np.put_along_axis(chance, SETS, by_definition(SETS), axis=1)
    inside = np.zeros((len(SETS), 6))
    np.put_along_axis(inside, SETS, 1.0, axis=1)
    assert law().inclusion() == pytest.approx(chance.T @ inside)
    scores = np.random.default_rng(1).normal(size=(2, 6))
    assert law().second_moments(scores) == pytest.approx(((scores @ inside.T) ** 2) @ chance)
    for prior in (np.array([0.3, 0.1, 0.1, 0.2, 0.1, 0.2]), np.array([0.0, 0.5, 0.5, 0.0, 0.0, 0.0])):
        joint = chance * prior
        seen = joint.sum(axis=1) > 0
        assert law().worst_posterior(prior) == pytest.approx((joint[seen] / joint[seen].sum(axis=1)[:, None]).max())


def test_a_type_is_drawn_by_52_bits_and_one_without_a_chance_never() -> None:
    """A quarter of 2^52 ends with the first word at 2^30; nobody of kind 1 meets the first type, whatever the word."""
    draw = law().kernel()
    words = [[0, 0], [(1 << 30) - 1, ALL_ONES], [1 << 30, 0], [ALL_ONES, ALL_ONES], [0, 0], [ALL_ONES, ALL_ONES]]
    codes = np.array([0, 0, 0, 2, 1, 5])
    out = np.zeros((6, 2), np.int64)
    assert law().words() == 4
    draw(np.array([[*word, 1 << 31, 1 << 31] for word in words], np.uint32), codes, out)
    assert out.tolist() == [[0, 3], [0, 3], [0, 4], [2, 4], [1, 4], [4, 5]]


def test_rounding_gives_no_chance_to_a_type_that_has_none() -> None:
    """Ten times 0.1 is less than 1 in floating point: what is missing belongs to the last type with a chance."""
    rows = np.array([[0, other] for other in range(1, 12)])
    chances = np.array([[0.1, 1.0]] * 10 + [[0.0, 1.0]])
    assert np.cumsum(chances[:, 0])[-1] < 1
    own = np.arange(12)
    draw = Balanced(kinds(*own), 2, Types(own, rows, chances)).kernel()
    out = np.zeros((3, 2), np.int64)
    draw(np.full((3, 4), ALL_ONES, np.uint32), np.array([0, 3, 11]), out)
    assert out.tolist() == [[0, 10], [0, 3], [0, 11]]
    step = int(0.1 * 2**52)  # the low twenty bits stand in the second word
    words = [[at >> 20, (at << 12) & ALL_ONES, 0, 0] for at in (step - 1, step, step + 1)]
    draw(np.array(words, np.uint32), np.zeros(3, np.int64), out)
    assert out.tolist() == [[0, 1], [0, 2], [0, 2]]


FINE = ([[0, 1], [0, 2]], [[0.5, 1.0], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("rows", "odds", "said"),
    [
        ([[0, 1], [0, 2]], [[0.5, 1.0]], "rows of 2"),
        ([[0, 1, 2]], [[0.5, 1.0]], "rows of 2"),
        ([[0, 1, 2], [0, 1, 2]], [[1.0, 0.5, 0.5], [0.0, 0.5, 0.5]], "rows of 2"),
        ([[-1, 1], [0, 2]], FINE[1], "list kinds"),
        ([[0, 1], [0, 3]], FINE[1], "list kinds"),
        ([[0, 1], [0, 1]], [[0.5, 0.5], [0.5, 0.5]], "and occur once"),
        ([[1, 0], [0, 2]], FINE[1], "ascending"),
        ([[0, 0], [0, 2]], FINE[1], "list compatible kinds"),
        (FINE[0], [[-0.5, 1.0], [1.5, 1.0]], "sum to 1"),
        (FINE[0], [[0.5, 1.0], [0.5 + 1e-6, 1.0]], "sum to 1"),
        (FINE[0], [[0.5, 1.0], [0.5, 0.9]], "sum to 1"),
    ],
)
def test_types_that_say_no_design_are_refused(rows: Any, odds: Any, said: str) -> None:
    compatibility = kinds(0, 0, 1, 2)
    check_types(compatibility, 2, *FINE)
    check_types(compatibility, 2, FINE[0], [[0.0, 1.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match=said):
        check_types(compatibility, 2, rows, odds)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_a_person_s_own_words_come_by_the_block_and_only_those_needed_count(size: int) -> None:
    """Memoised words are whole blocks of four: what is left over of one decides nothing."""
    compatibility = kinds(*range(size), 0, 0, 1)
    found = balance(compatibility, size)
    assert found is not None
    law = Balanced(compatibility, size, found.types)
    rng = np.random.default_rng(size)
    codes = rng.integers(0, compatibility.F, 200).astype(np.uint8)
    words = rng.integers(0, 1 << 32, (200, law.words()), dtype=np.uint32)
    drawn = [np.zeros((200, size), np.uint8) for _ in range(2)]
    again = law.kernel()(words, codes, drawn[0])
    spare = rng.integers(0, 1 << 32, (200, 3), dtype=np.uint32)
    assert again is not None
    assert np.array_equal(law.kernel()(np.hstack([words, spare]), codes, drawn[1]), again)
    assert np.array_equal(*drawn)
    assert (drawn[0] == codes[:, None]).any(axis=1).all()
