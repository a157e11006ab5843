"""Flat designs, lists of sets, samples and cliques at their ends: sets of one value or of all, limits, rejections."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from noren.designs.semantic import products
from noren.designs.semantic.balanced import Balanced, Types
from noren.designs.semantic.compatibility import Compatibility, Search
from noren.designs.semantic.design import SemanticDesign
from noren.designs.semantic.law import list_sets
from noren.designs.semantic.products import CircularFlat, Product, flat_weights
from noren.designs.semantic.stepwise import Simple
from noren.secret import Keystream


def line(*positions: float) -> np.ndarray:
    return np.abs(np.subtract.outer(np.array(positions), np.array(positions)))


def kinds(*kind: int) -> np.ndarray:
    return (np.array(kind)[:, None] != np.array(kind)).astype(float)


def graph(size: int, *edges: tuple[int, int]) -> np.ndarray:
    far = np.zeros((size, size))
    for a, b in edges:
        far[a, b] = far[b, a] = 1.0
    return far


CYCLE = graph(5, (0, 1), (1, 2), (2, 3), (3, 4), (4, 0))
PATH = graph(5, (0, 3), (3, 1), (1, 4), (4, 2))


# ---------------------------------------------------------------- flat


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("F", "size", "step"), [(7, 2, 2), (7, 2, 3), (9, 3, 2), (6, 1, 2)])
def test_the_worst_belief_on_a_circle_has_the_least_likely_companions(F: int, size: int, step: int, seed: int) -> None:
    """Posterior odds are prior odds on every set whose members are `step` apart around the circle."""
    prior = np.random.default_rng(seed).dirichlet(np.full(F, 0.3))
    prior[seed % F] = 0.0
    sets = [
        own
        for own in combinations(range(F), size)
        if all(min(b - a, F - b + a) >= step for a, b in combinations(own, 2))
    ]
    totals = [sum(prior[v] for v in own) for own in sets]
    worst = max(prior[v] / total for own, total in zip(sets, totals, strict=True) for v in own if prior[v] > 0)
    law = CircularFlat(Compatibility.from_distances(line(*range(F)), float(step)), size)
    assert law.worst_posterior(prior) == pytest.approx(worst)


def test_values_that_nobody_has_are_no_reason_for_a_belief() -> None:
    """Two values alone occur: beside values that nobody has each of them is certain."""
    law = CircularFlat(Compatibility.from_distances(line(*range(9)), 2.0), 3)
    assert law.worst_posterior(np.array([0, 0.5, 0, 0, 0.5, 0, 0, 0, 0])) == 1.0


def test_a_set_of_one_value_scores_as_that_value() -> None:
    law = CircularFlat(Compatibility.from_distances(line(*range(5)), 2.0), 1)
    scores = np.array([[1.0, 2.0, -3.0, 0.5, 0.0]])
    assert law.second_moments(scores) == pytest.approx(np.array([[1.0, 4.0, 9.0, 0.25, 0.0]]))
    assert law.likelihood(np.arange(5)[:, None]).tolist() == [[1.0]] * 5


def test_flat_weights_are_sought_over_sets_that_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle of five has five sets of two neighbours; it is as even as it can be."""
    cycle = Compatibility.from_distances(CYCLE, 1.0)
    monkeypatch.setattr(products, "TABLE_LIMIT", 5)
    assert flat_weights(cycle, 2) == pytest.approx(np.ones(5))
    monkeypatch.setattr(products, "TABLE_LIMIT", 4)
    assert flat_weights(cycle, 2) is None


WHEEL = graph(6, (0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (5, 0), (5, 2))


@pytest.mark.parametrize(
    ("distances", "size"), [(WHEEL, 2), (line(4, 0, 1, 5.5, 2.5, 7.2), 2), (kinds(0, 0, 1, 1, 2, 2, 3), 3)]
)
def test_with_flat_weights_every_value_is_in_as_many_sets(distances: np.ndarray, size: int) -> None:
    threshold = 2.0 if distances.max() > 1 else 1.0
    compatibility = Compatibility.from_distances(distances, threshold)
    weights = flat_weights(compatibility, size)
    assert weights is not None
    sets = [
        own
        for own in combinations(range(len(distances)), size)
        if all(distances[a, b] >= threshold for a, b in combinations(own, 2))
    ]
    mass = np.array([weights[list(own)].prod() for own in sets])
    shares = [sum(mass[i] for i, own in enumerate(sets) if v in own) / mass.sum() for v in range(len(distances))]
    assert shares == pytest.approx([size / len(distances)] * len(distances))
    assert np.log(weights).mean() == pytest.approx(0, abs=1e-9)


def test_why_sets_are_not_flat_where_no_order_of_values_tells() -> None:
    design = SemanticDesign.make("flat", PATH, 2, 1.0)
    assert design.name == "semantic-balanced"
    assert "under this distance no weights make all values equally likely" in design.note
    assert "keeps every belief in one value of a set to 0.6" in design.note


def test_why_sets_are_not_flat_on_a_line() -> None:
    design = SemanticDesign.make("flat", line(0, 1, 1.5, 2.5, 9), 2, 2.0)
    assert "one window narrower than d holds 3 values, more than F/l = 5/2" in design.note


# ---------------------------------------------------------------- lists of sets


@pytest.mark.parametrize(
    ("distances", "size", "threshold"),
    [(line(*range(7)), 3, 2.0), (line(3, 0, 5, 1, 4.5), 2, 2.0), (kinds(1, 0, 1, 2), 2, 1.0), (WHEEL, 3, 1.0)],
)
def test_sets_are_listed_in_ascending_codes_up_to_a_limit(distances: np.ndarray, size: int, threshold: float) -> None:
    compatibility = Compatibility.from_distances(distances, threshold)
    wanted = [
        own
        for own in combinations(range(len(distances)), size)
        if all(distances[a, b] >= threshold for a, b in combinations(own, 2))
    ]
    found = list_sets(compatibility, size, len(wanted))
    assert found is not None
    assert sorted(map(tuple, found.tolist())) == wanted
    assert list_sets(compatibility, size, len(wanted) - 1) is None


def test_no_sets_are_a_list() -> None:
    found = list_sets(Compatibility.from_distances(line(0, 1, 2), 2.0), 3, 10)
    assert found is not None
    assert found.shape == (0, 3)


# ---------------------------------------------------------------- samples


class Words:
    """Random words from a list, one part for every call."""

    def __init__(self, *parts: list[list[int]]) -> None:
        self.parts = iter(parts)

    def integers(self, low: int, high: int, shape: tuple[int, int], dtype: Any) -> np.ndarray:
        found = np.array(next(self.parts), dtype)
        assert found.shape == shape
        return found


def test_a_sample_is_drawn_again_where_its_word_is_unfair() -> None:
    """One of three values stands beside the truth: the word 0 would come once too often."""
    kind = np.array([0, 0, 0, 1, 1])
    law = Balanced(Compatibility.from_distances(kinds(*kind), 1.0), 2, Types(kind, np.array([[0, 1]]), np.ones((1, 2))))
    words: Any = Words([[0, 0, 1 << 31, 0], [0, 0, 0, 0]], [[0, 0, (1 << 32) - 1, 0]])
    assert law.sample(np.array([3, 4]), words).tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("make", [Simple, Product])
def test_samples_hold_the_truth_and_what_may_stand_beside_it(make: Any) -> None:
    distances = line(*range(7))
    law = make(Compatibility.from_distances(distances, 2.0), 3)
    codes = np.repeat(np.arange(7), 40)
    found = law.sample(codes, np.random.default_rng(0))
    assert (found == codes[:, None]).any(axis=1).all()
    assert (np.diff(found.astype(int), axis=1) >= 2).all()


def test_a_sample_of_one_value_is_the_truth_and_of_all_values_is_all() -> None:
    nothing: Any = Words()
    one = Product(Compatibility.from_distances(line(*range(5)), 2.0), 1)
    assert one.sample(np.array([3, 0]), nothing).tolist() == [[3], [0]]
    every = Product(Compatibility.from_distances(kinds(0, 1, 2), 1.0), 3)
    assert every.sample(np.array([1, 2]), nothing).tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("F", [64, 65])
def test_sets_of_many_values_are_drawn_as_those_of_few(F: int) -> None:
    """Up to 64 values a set is a mask, beyond a row of codes."""
    design = SemanticDesign.make("flat", line(*range(F)), 3, 5.0)
    codes = np.arange(F)
    found = design.draw(codes, Keystream(), attribute="x").codes(3).astype(int)
    assert (found == codes[:, None]).any(axis=1).all()
    assert (np.diff(found, axis=1) >= 5).all()
    assert design.law.likelihood(found).min() > 0


# ---------------------------------------------------------------- cliques


def neighbours(distances: np.ndarray) -> list[int]:
    return [sum(1 << int(w) for w in np.flatnonzero(row)) for row in distances]


def test_nobody_is_in_no_clique() -> None:
    assert Search(neighbours(CYCLE), 10).largest(0, 5) == 0


def test_a_vertex_that_was_tried_is_left_out_and_no_other() -> None:
    """{2, 3, 5} is found only if leaving out one vertex leaves the next one in."""
    found = graph(6, (0, 3), (0, 4), (1, 2), (2, 3), (2, 4), (2, 5), (3, 5))
    assert Search(neighbours(found), 1000).largest((1 << 6) - 1, 6) == 3


def test_a_search_takes_few_steps() -> None:
    """Of a graph of twelve friends a clique of three takes three steps; a ring needs two colours, so that no pair
    after the first is tried."""
    friends = Search(neighbours(1.0 - np.eye(12)), 100)
    assert friends.largest((1 << 12) - 1, 3) == 3
    assert friends.left == 97
    ring = Search(neighbours(graph(6, *((v, (v + 1) % 6) for v in range(6)))), 100)
    assert ring.largest((1 << 6) - 1, 6) == 2
    assert ring.left == 98
