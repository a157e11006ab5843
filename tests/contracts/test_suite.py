"""What `make test` leaves out, `.ci/run` runs: all examples of all properties, and every slow test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import conftest

ROOT = Path(__file__).parents[2]


def item(request: pytest.FixtureRequest, does: Any) -> Any:
    return pytest.Function.from_parent(request.node.parent, name="made", callobj=does)


@pytest.mark.parametrize(("everything", "times"), [(False, 15), (True, 45)])
def test_a_property_is_tried_as_often_as_the_run_says(
    everything: bool, times: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    @settings(max_examples=45, database=None)
    @given(st.integers())
    def holds(number: int) -> None:
        tried.append(number)

    monkeypatch.setattr(conftest, "EVERYTHING", everything)
    conftest.pytest_collection_modifyitems([item(request, holds), item(request, holds)])  # as of two parameters
    holds()
    assert len(tried) == times


@pytest.mark.parametrize(
    ("asked", "everything", "found"),
    [(150, False, 50), (31, False, 10), (29, False, 10), (10, False, 10), (8, False, 8), (150, True, 150)],
)
def test_a_third_of_the_examples_and_no_fewer_than_ten(
    asked: int, everything: bool, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "EVERYTHING", everything)
    assert conftest.at_every_change(asked) == found


@pytest.mark.parametrize("everything", [False, True])
def test_a_slow_test_is_skipped_with_its_reason_unless_everything_runs(
    everything: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "EVERYTHING", everything)
    slow, plain = item(request, lambda: None), item(request, lambda: None)
    slow.add_marker("slow")
    conftest.pytest_collection_modifyitems([slow, plain])
    assert [mark.kwargs["reason"] for mark in slow.iter_markers("skip")] == [
        "slow: runs in .ci/run and by make test EVERYTHING=1"
    ][: not everything]
    assert not list(plain.iter_markers("skip"))


def test_continuous_integration_runs_everything() -> None:
    """And where it would not, NOREN_DEMAND makes a failure of what is skipped."""
    assert "\nstep test EVERYTHING=1\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ntest: ")[2].splitlines()[1]
    assert "$(if $(EVERYTHING),NOREN_EVERYTHING=1)" in recipe
