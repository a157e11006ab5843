"""Reports of large releases: verification beside the attacks finds the same, and the original is read once."""

from __future__ import annotations

from pathlib import Path
from threading import current_thread, main_thread

import pytest

from noren.audit import base, people
from noren.audit.reidentification import Reidentification
from noren.errors import ReleaseError
from noren.release.kept import KeptStore
from noren.release.release import open_release
from noren.report import material
from noren.report.page import make_report
from noren.workflow import truth
from tests.unit.report.world import ALIKE, DIVERSE, WHEN, World
from tests.unit.report.world import people as table

ATTACKS = ["reidentification", "homogeneity", "minimality"]


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> World:
    return World(tmp_path_factory.mktemp("large") / "mondrian", "mondrian", ALIKE + DIVERSE)


@pytest.fixture
def large(monkeypatch) -> None:
    for room in (material, base):
        monkeypatch.setattr(room, "LARGE", 1)


def content(world: World, **options) -> dict:
    options = {"original": world.data, "attacks": ATTACKS, "date": WHEN} | options
    return make_report(world.release, world.policy, **options).content


def test_two_threads_find_what_one_does(world, large, monkeypatch) -> None:
    found, where = content(world), []
    verify = material.verify

    def watched(*args, **options):
        where.append(current_thread() is main_thread())
        return verify(*args, **options)

    monkeypatch.setattr(material, "verify", watched)
    assert content(world) == found
    monkeypatch.undo()
    assert content(world) == found
    assert where == [False]


@pytest.mark.parametrize("least", [1, 10**9])
def test_the_original_meets_its_policy_once(world, least, monkeypatch) -> None:
    calls = []
    for room in (truth, people):
        prepare = room.prepare
        monkeypatch.setattr(room, "prepare", lambda *a, _made=prepare, **o: calls.append(a) or _made(*a, **o))
    monkeypatch.setattr(material, "LARGE", least)
    content(world)
    assert len(calls) == 1


def test_what_was_worked_out_of_all_cells_is_kept() -> None:
    calls = []
    store = KeptStore(None)
    assert [store.remembered("classes", lambda: calls.append(1) or 7) for _ in range(3)] == [7, 7, 7]
    assert calls == [1]


def test_a_release_that_is_not_what_it_says_is_refused_whatever_attacks_do(world, large, monkeypatch) -> None:
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


def test_what_is_no_file_is_read_by_one_thread(world, large) -> None:
    frame, release = table(), open_release(world.release)
    page = make_report(world.release, world.policy, original=frame, attacks=[], date=WHEN)
    assert page.content["verdicts"] == content(world, attacks=[])["verdicts"]
    assert material.parts(release, world.data)
    assert material.parts(release, str(world.data))
    assert not material.parts(release, frame)
    assert not material.parts(release, "postgresql://host/base?table=people")
