"""What is drawn from which word: a memoised release rests on it, and no word may favour a value."""

from __future__ import annotations

from itertools import combinations, permutations
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from noren.designs.decoys import DecoyDesign
from noren.designs.inversion import Groups, solve
from noren.designs.pram import PramDesign
from noren.designs.semantic.balanced import Balanced, Types
from noren.designs.semantic.compatibility import Compatibility
from noren.designs.semantic.design import SemanticDesign
from noren.designs.semantic.law import Inclusion
from noren_papers.semantic.posterior import posterior_summary

TWO_32 = 1 << 32


class Scripted:
    """Gives the words of a list, one part for every attempt, and remembers what it was asked."""

    def __init__(self, *parts: list[list[int]]) -> None:
        self.parts = [np.array(part, np.uint64) for part in parts]
        self.asked: list[tuple[int, int]] = []

    def lane(self, attribute: str, scratch: Any) -> Scripted:
        return self

    def cell_words(self, keys: Any, codes: np.ndarray, need: int, attempt: int) -> np.ndarray:
        self.asked.append((len(codes), attempt))
        return self.parts[len(self.asked) - 1]


def test_a_changed_value_is_a_coin_and_a_part_and_drawn_again_where_the_part_is_unfair() -> None:
    """Three values: 2^32 mod 3 = 1, so the word 0 is refused, of which there would be one too many."""
    half = TWO_32 // 2
    script = Scripted([[half - 1, 1], [TWO_32 - 1, 0], [half, TWO_32 - 1]], [[half, half]])
    design = PramDesign(d=3, keep=0.5)
    found = design.draw(np.zeros(3, np.uint8), script, attribute="a")  # type: ignore[arg-type]
    assert script.asked == [(3, 0), (1, 1)]
    assert found.data.tolist() == [0, 1, 2]


def test_a_member_of_another_kind_is_drawn_again_where_its_word_is_unfair() -> None:
    """One of three values of the first kind for somebody of the second; nobody's own kind needs a word."""
    kind = np.array([0, 0, 0, 1, 1])
    compatibility = Compatibility.from_distances((kind[:, None] != kind[None, :]).astype(float), 1.0)
    law = Balanced(compatibility, 2, Types(kind, np.array([[0, 1]]), np.ones((1, 2))))
    words = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, TWO_32 - 1, 0]], np.uint32)
    out = np.zeros((4, 2), np.int64)
    again = law.kernel()(words, np.array([3, 0, 4, 4]), out)
    assert again is not None
    assert again.tolist() == [0]
    assert out[1:].tolist() == [[0, 3], [0, 4], [2, 4]]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7])
def test_exactly_the_words_that_would_favour_a_member_are_drawn_again(size: int) -> None:
    """Around every boundary between two members: as many words for each of them, and no other is refused."""
    kind = np.array([0] * size + [1, 1])
    compatibility = Compatibility.from_distances((kind[:, None] != kind[None, :]).astype(float), 1.0)
    law = Balanced(compatibility, 2, Types(kind, np.array([[0, 1]]), np.ones((1, 2))))
    starts = [-(-index * TWO_32 // size) for index in range(size + 1)]
    near = sorted({word for start in starts for word in range(start - 4, start + 5) if 0 <= word < TWO_32})
    words = np.array([[0, 0, word, 0] for word in near], np.uint32)
    out = np.zeros((len(near), 2), np.int64)
    again = law.kernel()(words, np.full(len(near), size), out)
    assert again is not None
    unfair = [row for row, word in enumerate(near) if word * size % TWO_32 < TWO_32 % size]
    assert again.tolist() == unfair
    assert out[:, 0].tolist() == [word * size // TWO_32 for word in near]


def test_means_over_samples_are_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every set of a flat design says the same, so that the mean over any sample is that, without an error."""
    ranks = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    design = SemanticDesign.make("flat", ranks, 3, 2)
    law = design.law
    monkeypatch.setattr(type(law), "listed", lambda self: None)
    found = posterior_summary(law, draws=1)
    assert not found.exact
    assert found.mean == pytest.approx(1 / 3, rel=1e-9)
    assert found.bayes == pytest.approx(1 / 3, rel=1e-9)
    assert found.error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("exact", "error", "draws"), [(False, 0.001, 250_000), (False, 0.0, inf), (True, 0.001, inf)])
def test_an_error_of_sampled_probabilities_is_that_of_so_many_draws(exact: bool, error: float, draws: float) -> None:
    """The error of a share of n draws is the root of p (1 - p) / n, at most that of one half."""
    matrix = np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]])

    class Sampled:
        d = 3

        def inclusion(self) -> Any:
            return SimpleNamespace(matrix=matrix, exact=exact, error=error)

        def identifiability(self) -> tuple[bool, float]:
            return True, 4.0

        def second_moment(self, scores: np.ndarray) -> np.ndarray:
            return np.full(scores.shape, 2.0)

    found = solve.__wrapped__(Sampled())  # type: ignore[arg-type]
    assert found.draws == pytest.approx(draws)
    scoring = found.scoring(Groups(np.arange(3), 3, is_identity=True))
    noise = np.broadcast_to(scoring.noise(np.array([1.0, 2.0, 3.0]), 0), 3)
    assert noise == pytest.approx(np.array([11.0, 10.0, 9.0]) / draws), "2 each, and 1 of the group's own"


@pytest.mark.parametrize(
    "design",
    [
        DecoyDesign(d=4, eta=2),
        PramDesign(d=4, keep=0.5),
        SemanticDesign.make("flat", np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0))), 3, 2),
    ],
    ids=lambda design: design.name,
)
def test_a_design_stays_what_was_published(design: Any) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        design.d = 5
    assert hash(design) == hash(design.model_copy())
    assert design == design.model_copy()


@pytest.mark.parametrize(("F", "size", "step"), [(9, 3, 2), (11, 2, 4), (12, 4, 2)])
def test_the_worst_belief_on_a_circle_is_that_of_all_sets(F: int, size: int, step: int) -> None:
    ranks = np.abs(np.subtract.outer(np.arange(float(F)), np.arange(float(F))))
    design = SemanticDesign.make("flat", ranks, size, step)
    prior = np.random.default_rng(F).dirichlet(np.ones(F))
    found = posterior_summary(design.law, prior)
    assert found.exact
    assert design.law.worst_posterior(prior) == pytest.approx(found.worst, rel=1e-9)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize(("F", "size", "step"), [(7, 3, 2), (8, 2, 3)])
def test_the_worst_belief_on_a_line_is_that_of_all_sets(F: int, size: int, step: int, zero: bool) -> None:
    """All sets that have the truth are equally likely: values are believed as prior over how many sets have each."""
    ranks = np.abs(np.subtract.outer(np.arange(float(F)), np.arange(float(F))))
    prior = np.random.default_rng(F).dirichlet(np.ones(F))
    if zero:
        prior[F // 2] = 0.0
        prior /= prior.sum()
    sets = [some for some in combinations(range(F), size) if np.diff(some).min() >= step]
    having = [sum(value in some for some in sets) for value in range(F)]
    odds = [prior[value] / having[value] for value in range(F)]
    worst = max(odds[value] / sum(odds[other] for other in some) for some in sets for value in some)
    law = SemanticDesign.make("uniform-sets", ranks, size, step).law
    assert law.worst_posterior(prior) == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("kind", [[0, 0, 1, 1, 1], [0, 0, 1, 2, 2], [0, 1, 1, 1, 2, 2]])
def test_the_worst_belief_of_balanced_sets_is_that_of_all_sets(kind: list[int]) -> None:
    """Two kinds in a set: its truth is believed as its prior times the chance of the type, over that of both."""
    own = np.array(kind)
    compatibility = Compatibility.from_distances((own[:, None] != own[None, :]).astype(float), 1.0)
    pairs = np.array([(a, b) for a in range(max(kind) + 1) for b in range(a + 1, max(kind) + 1)])
    chances = np.full(pairs.shape, 1 / max(kind))
    law = Balanced(compatibility, 2, Types(own, pairs, chances))
    prior = np.random.default_rng(len(kind)).dirichlet(np.ones(len(kind)))
    sizes = np.bincount(own)
    worst = 0.0
    for v, w in permutations(range(len(kind)), 2):
        if own[v] != own[w]:  # a set {v, w}: P(set | v) = chance of the pair of kinds / how many w there are
            mine, other = prior[v] / sizes[own[w]], prior[w] / sizes[own[v]]
            worst = max(worst, mine / (mine + other))
    assert law.worst_posterior(prior) == pytest.approx(worst, rel=1e-9)


def test_changed_values_that_are_hardly_ever_kept_say_nothing_unless_there_is_only_one() -> None:
    assert PramDesign(d=3, keep=1e-12).is_blind
    assert not PramDesign(d=3, keep=0.5).is_blind
    assert not PramDesign(d=1, keep=1e-12).is_blind
    assert PramDesign(d=3, keep=0.5).worst_belief() == pytest.approx(0.5 + 0.5 / 3)


def test_a_system_is_as_bad_as_its_worst_direction() -> None:
    assert Inclusion(np.diag([1.0, 0.5, 0.2]), exact=True).condition() == pytest.approx(5.0)
    assert Inclusion(np.full((3, 3), 0.5), exact=True).condition() == inf
