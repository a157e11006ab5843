"""Sums over sets, listed and sampled, of a law whose sets rule values out: every figure worked out from a table."""

from __future__ import annotations

from math import inf, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from noren.designs.inversion import solve
from noren.designs.semantic import law as room
from noren.designs.semantic.balanced import Balanced, Types
from noren.designs.semantic.compatibility import Compatibility
from noren.designs.semantic.law import Inclusion, inclusion, second_moments
from noren_papers.semantic import posterior
from noren_papers.semantic.posterior import posterior_summary

SETS = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
CHANCES = np.array([[0.4, 1.0, 0.0], [0.5, 0.0, 0.0], [0.1, 0.5, 1.0], [0.0, 0.5, 0.0]])
"""P(R | v) of the members: the second and the fourth set leave one of them only, the first rules one out."""
CHANCE = np.zeros((4, 4))
np.put_along_axis(CHANCE, SETS, CHANCES, axis=1)
INSIDE = np.zeros((4, 4))
np.put_along_axis(INSIDE, SETS, 1.0, axis=1)
APART = Compatibility.from_distances(1.0 - np.eye(4), 1.0)


class Listed(Balanced):
    """Knows nothing in closed form."""

    def inclusion(self) -> Any:
        return None

    def second_moments(self, scores: np.ndarray) -> Any:
        return None

    def worst_posterior(self, prior: np.ndarray) -> Any:
        return None


class Sampled(Listed):
    """Has too many sets to list them."""

    def listed(self) -> Any:
        return None


class Bounded(Balanced):
    """The same, with the worst belief in closed form."""

    def listed(self) -> Any:
        return None


def law(kind: Any, chances: np.ndarray = CHANCES) -> Any:
    return kind(APART, 3, Types(np.arange(4), SETS, chances))


def test_closed_forms_and_lists_are_exact() -> None:
    scores = np.array([[1.0, 2.0, -1.0, 0.5], [0.0, 0.0, 3.0, 1.0]])
    for kind in (Balanced, Listed):
        found, moments = inclusion(law(kind)), second_moments(law(kind), scores)
        assert (found.exact, found.error, moments.exact, moments.error) == (True, 0.0, True, 0.0)
        assert found.matrix == pytest.approx(CHANCE.T @ INSIDE)
        assert moments.values == pytest.approx((scores @ INSIDE.T) ** 2 @ CHANCE)


def test_a_value_that_no_set_has_is_in_none() -> None:
    chances = np.array([[0.5, 1.0, 1.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert inclusion(law(Listed, chances)).matrix[3].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("draws", "each"), [(1, 2), (11, 2), (12, 3), (40_000, 10_000)])
def test_sampled_probabilities_are_shares_of_so_many_draws(
    monkeypatch: pytest.MonkeyPatch, draws: int, each: int
) -> None:
    """Never fewer than two of each value. The error is the root of p (1 - p) / n at its largest."""
    monkeypatch.setattr(room, "CHUNK", 1000)
    found = inclusion(law(Sampled), draws)
    assert not found.exact
    assert np.diag(found.matrix).tolist() == [1, 1, 1, 1], "the truth is in every set"
    assert found.matrix * each == pytest.approx(np.rint(found.matrix * each))
    assert found.error == pytest.approx(sqrt((found.matrix * (1 - found.matrix)).max() / each))
    if each > 100:
        assert (np.abs(found.matrix - CHANCE.T @ INSIDE) < 7 * 0.5 / sqrt(each)).all()


@pytest.mark.parametrize(("draws", "sums", "each"), [(1, 1 << 29, 2), (16, 1 << 29, 4), (1 << 20, 16, 4)])
def test_sampled_squares_are_means_of_so_many_draws(
    monkeypatch: pytest.MonkeyPatch, draws: int, sums: int, each: int
) -> None:
    """A score that is 1 for one value has the squares 0 and 1, with mean p and error root of p (1 - p) / n."""
    monkeypatch.setattr(room, "_SUMS", sums)
    for one in np.eye(4)[:, None]:
        found = second_moments(law(Sampled), one, draws)
        assert not found.exact
        assert found.values * each == pytest.approx(np.rint(found.values * each))
        assert found.error == pytest.approx(sqrt((found.values * (1 - found.values)).max() / each))
    many = second_moments(law(Sampled), np.eye(4), draws)
    assert many.values * max(2, min(draws, sums // 4) // 4) == pytest.approx(
        np.rint(many.values * max(2, min(draws, sums // 4) // 4))
    )


def test_sampled_squares_lie_near_the_exact_ones() -> None:
    scores = np.array([[1.0, 2.0, -1.0, 0.5]])
    found = second_moments(law(Sampled), scores, 40_000)
    assert (np.abs(found.values - (scores @ INSIDE.T) ** 2 @ CHANCE) < 7 * found.error).all()


@pytest.mark.parametrize("scores", [np.ones(4), np.ones((2, 3)), np.ones((4, 1, 4))])
def test_scores_are_rows_over_all_values(scores: np.ndarray) -> None:
    with pytest.raises(ValueError, match="one column for each of the 4 values"):
        second_moments(law(Balanced), scores)


PRIORS = [np.full(4, 0.25), np.array([0.4, 0.1, 0.2, 0.3]), np.array([0.5, 0.0, 0.25, 0.25])]


def by_definition(prior: np.ndarray) -> tuple[float, float, float, float, float]:
    joint = CHANCE * prior
    seen = joint.sum(axis=1)
    belief = joint / seen[:, None]
    left = (CHANCE > 0).sum(axis=1)
    certain, partial = seen[left == 1].sum(), seen[left < 3].sum()
    return belief.max(), (joint * belief).sum(), joint.max(axis=1).sum(), certain, partial


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_what_an_adversary_learns_of_all_sets(prior: np.ndarray) -> None:
    found = posterior_summary(law(Balanced), 8 * prior)
    assert (found.exact, found.worst_exact, found.error) == (True, True, 0.0)
    told = (found.worst, found.mean, found.bayes, found.certain, found.partial)
    assert told == pytest.approx(by_definition(prior))
    assert posterior_summary(law(Balanced)) == posterior_summary(law(Balanced), np.ones(4))


@pytest.mark.parametrize("kind", [Sampled, Bounded])
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_what_an_adversary_learns_of_a_sample(monkeypatch: pytest.MonkeyPatch, kind: Any, prior: np.ndarray) -> None:
    """Of 6000 draws, because whole chunks are drawn. Facts that are 0 or 1 have the largest error."""
    monkeypatch.setattr(posterior, "CHUNK", 2000)
    found = posterior_summary(law(kind), prior, draws=5000)
    assert (found.exact, found.worst_exact) == (False, kind is Bounded)
    assert found.worst == pytest.approx(1.0), "some set leaves one member only"
    told = (found.mean, found.bayes, found.certain, found.partial)
    error = sqrt(max(share * (1 - share) for share in (found.certain, found.partial)) / 6000)
    assert found.error == pytest.approx(error, rel=1e-6)
    assert told == pytest.approx(by_definition(prior)[1:], abs=7 * error)


def test_the_worst_that_was_seen_is_worst_only_in_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly anybody has the last value, and nobody of a few draws; a closed form knows what its set would tell. Of the
    two sets that are seen one lets the likeliest member be believed with 1 / 2.2, the other with 0.5 / 0.8."""
    chances = np.array([[0.7, 0.5, 1.0], [0.3, 0.5, 0.5], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    monkeypatch.setattr(posterior, "CHUNK", 40)
    prior = np.array([1.0, 1.0, 1.0, 1e-12])
    seen = posterior_summary(law(Sampled, chances), prior, draws=40)
    assert (seen.worst, seen.worst_exact) == (pytest.approx(0.625), False)
    known = posterior_summary(law(Bounded, chances), prior, draws=40)
    assert (known.worst, known.worst_exact) == (pytest.approx(1.0), True)
    assert (seen.certain, seen.partial) == (0, 0)
    second = (seen.bayes - 1 / 2.2) / (0.625 - 1 / 2.2)
    assert second * 40 == pytest.approx(round(second * 40)), "so many draws of forty are the second set"
    squares = 0.375**2 + 0.625**2, (0.7**2 + 0.5**2 + 1) / 2.2**2
    assert seen.mean == pytest.approx(second * squares[0] + (1 - second) * squares[1])
    widest = max(0.625 - 1 / 2.2, squares[0] - squares[1])
    assert seen.error == pytest.approx(widest * sqrt(second * (1 - second) / 40))


@pytest.mark.parametrize("prior", [np.ones(3), np.ones((1, 4)), np.zeros(4), np.array([1.0, 1.0, 1.0, -0.5])], ids=str)
def test_a_prior_is_a_distribution(prior: np.ndarray) -> None:
    with pytest.raises(ValueError, match="probability to each of the 4 values"):
        posterior_summary(law(Balanced), prior)


def test_a_system_that_loses_one_direction_is_singular() -> None:
    lost = np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.75, 0.75, 0.5]])
    assert Inclusion(lost, exact=True).condition() == inf


# ---------------------------------------------------------------- which sums are lost


def solved(matrix: np.ndarray, error: float = 0.0, fine: bool = True) -> Any:
    """The system of inclusion probabilities that were found with an error; theory says whether any sum is lost."""
    design: Any = SimpleNamespace(
        d=len(matrix),
        inclusion=lambda: Inclusion(matrix, exact=error == 0, error=error),
        identifiability=lambda: (fine, 4.0),
    )
    return solve.__wrapped__(design)


EVEN = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
"""Singular values 2, 1/2 and 1/2."""


@pytest.mark.parametrize(
    ("matrix", "error", "fine", "lost", "unreliable", "condition"),
    [
        (EVEN, 0.0, True, 0, False, 4.0),
        (EVEN, 0.14, True, 0, False, 4.0),  # 2 sqrt(3) 0.14 = 0.485
        (EVEN, 0.15, True, 2, False, inf),  # 0.52
        (EVEN, 0.15, False, 2, False, inf),
        (EVEN, 0.0, False, 1, True, inf),
        (np.diag([1.0, 1e-3, 5e-9]), 0.0, True, 1, False, inf),
        (np.diag([1.0, 1e-3, 2e-8]), 0.0, True, 0, False, 4.0),
    ],
)
def test_directions_are_lost_that_are_smaller_than_errors(
    matrix: np.ndarray, error: float, fine: bool, lost: int, unreliable: bool, condition: float
) -> None:
    found = solved(matrix, error, fine)
    assert (found.undetermined, found.unreliable, found.condition) == (lost, unreliable, condition)
    if not lost:
        assert found.inverse @ matrix.T == pytest.approx(np.eye(3))
