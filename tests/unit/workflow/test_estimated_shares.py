"""The distribution that a recipient judges closeness against: estimated from the release, with its errors."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs import draw_columns
from noren.designs.decoys import DecoyDesign
from noren.designs.pram import PramDesign
from noren.models import FrequencyLDiversity, TCloseness
from noren.release.published import Published
from noren.release.store import MemoryStore
from noren.schema.roles import Role
from noren.secret import Keystream
from noren.statements import CodeCells, ExactStatement, SetStatement
from noren.workflow.truth import _estimate_shares, overall_distributions, tally_cells
from tests.oracles.posterior import mean_true_probability
from tests.statements import meaning

N = 1000
SHARES = np.array([0.6, 0.3, 0.1, 0.0])


def matrix(design: PramDesign) -> np.ndarray:
    """How likely every value (row) is published for every true one (column)."""
    return design.keep * np.eye(design.d) + (1 - design.keep) * design.shares[:, None]


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_shares_from_sets_with_their_errors(p: float) -> None:
    design = DecoyDesign(d=4, eta=2, p=p)
    often = N * (design.p_other + design.p_gap * SHARES)
    found = _estimate_shares(design, often, N)  # type: ignore[arg-type]
    assert found.shares == pytest.approx(SHARES)
    assert found.basis == "an estimate from the release"
    inside, outside = design.p_true * (1 - design.p_true), design.p_other * (1 - design.p_other)
    wanted = (SHARES * inside + (1 - SHARES) * outside) / design.p_gap**2 / N
    assert found.std_error == pytest.approx(np.sqrt(wanted))


def test_shares_from_changed_values_with_their_errors() -> None:
    design = PramDesign(d=4, keep=0.5, parts=(4, 3, 2, 1))
    rows = matrix(design)
    found = _estimate_shares(design, N * (rows @ SHARES), N)  # type: ignore[arg-type]
    assert found.shares == pytest.approx(SHARES)
    back = np.linalg.inv(rows)
    spread = (back**2) @ rows - ((back @ rows) ** 2)
    assert found.std_error == pytest.approx(np.sqrt(spread @ SHARES / N))


@pytest.mark.parametrize("design", [DecoyDesign(d=4, eta=2, p=0.5), PramDesign(d=4, keep=0.5)], ids=["sets", "values"])
def test_a_value_that_is_published_too_seldom_has_no_share(design: DecoyDesign | PramDesign) -> None:
    """Fewer than chance alone would publish: nobody has it, and the others' shares are a whole."""
    if isinstance(design, DecoyDesign):
        often = N * (design.p_other + design.p_gap * np.array([0.7, 0.3, 0.1, -0.1]))
    else:
        often = N * (matrix(design) @ np.array([0.7, 0.3, 0.1, -0.1]))
    found = _estimate_shares(design, often, N)  # type: ignore[arg-type]
    assert found.shares == pytest.approx(np.array([0.7, 0.3, 0.1, 0.0]) / 1.1)


def test_sets_that_say_nothing_leave_every_value_alike() -> None:
    design = DecoyDesign(d=3, eta=3, p=1.0)
    found = _estimate_shares(design, np.full(3, N), N)
    assert found.shares == pytest.approx(np.full(3, 1 / 3))
    assert found.std_error is None


def test_changed_values_say_how_far_they_are_from_being_lost() -> None:
    assert PramDesign(d=4, keep=0.4, parts=(4, 3, 2, 1)).inversion.condition == pytest.approx(2.5)


def test_the_chance_of_guessing_right_with_values_that_nobody_has() -> None:
    """Sets of two of which nobody has one say nothing about anybody, and are no error."""
    counts = np.array([3, 1, 0, 0])
    mean = ((9 + 1) / 4 + 3 + 3 + 1 + 1) / 4 / 3
    assert mean_true_probability(counts, 2) == pytest.approx(mean)


# ---------------------------------------------------------------- which columns are estimated

JOBS = DecoyDesign(d=4, eta=2)


def published() -> Published:
    """Forty people with one of four jobs among two each, who are from two towns."""
    truth = np.arange(40) % 4
    sets = draw_columns({"job": JOBS}, {"job": truth}, Keystream())["job"]
    statements = (SetStatement(meaning("job", 4, Role.SENSITIVE), JOBS), ExactStatement(meaning("town", 2, Role.PLAIN)))
    return Published(statements, MemoryStore({"job": sets, "town": CodeCells(2, truth % 2)}), 40)


def test_drawn_columns_are_estimated_where_closeness_is_asked() -> None:
    made = published()
    found = overall_distributions(made, [TCloseness(on=["job", "town"], t=0.5)])
    assert {name: one.basis for name, one in found.items()} == {"job": "an estimate from the release"}
    assert overall_distributions(made, [FrequencyLDiversity(on="job", l=2)]) == {}


def test_the_original_settles_them() -> None:
    class Original:
        """Ten, twenty and ten people with three of the jobs."""

        def counts(self, names: list[str]) -> dict[str, np.ndarray]:
            return {name: np.array([10, 20, 10, 0]) for name in names}

        def priors(self) -> dict[str, object]:
            return {}

    found = overall_distributions(published(), [TCloseness(on="job", t=0.5)], Original())  # type: ignore[arg-type]
    assert (found["job"].shares.tolist(), found["job"].basis) == ([0.25, 0.5, 0.25, 0.0], "the original")


def test_members_of_all_sets_are_counted() -> None:
    made = published()
    members = np.concatenate([np.asarray(batch["job"].codes(2)).ravel() for batch in made.batches(["job"])])  # type: ignore[attr-defined]
    assert tally_cells(made, ["job"])["job"].tolist() == np.bincount(members, minlength=4).tolist()
