"""What a report reads and refuses: the original once, and a release that is not what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from noren.audit import people
from noren.audit.reidentification import Reidentification
from noren.errors import ReleaseError
from noren.report.page import make_report
from noren.workflow import truth
from tests.unit.report.world import ALIKE, DIVERSE, WHEN, World

ATTACKS = ["reidentification", "homogeneity", "minimality"]


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> World:
    return World(tmp_path_factory.mktemp("large") / "mondrian", "mondrian", ALIKE + DIVERSE)


def content(world: World, **options) -> dict:
    options = {"original": world.data, "attacks": ATTACKS, "date": WHEN} | options
    return make_report(world.release, world.policy, **options).content


def test_the_original_meets_its_policy_once(world, monkeypatch) -> None:
    calls = []
    for room in (truth, people):
        prepare = room.prepare
        monkeypatch.setattr(room, "prepare", lambda *a, _made=prepare, **o: calls.append(a) or _made(*a, **o))
    content(world)
    assert len(calls) == 1


def test_a_release_that_is_not_what_it_says_is_refused_whatever_attacks_do(world, monkeypatch) -> None:
    def broken(self, case):
        raise ZeroDivisionError

    monkeypatch.setattr(Reidentification, "run", broken)
    with pytest.raises(ZeroDivisionError):
        content(world)
    strange = Path(world.release) / "more.txt"
    strange.write_text("not described")
    try:
        with pytest.raises(ReleaseError):
            content(world)
    finally:
        strange.unlink()
