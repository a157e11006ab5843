"""Work in processes of their own: progress, results, errors, crashes, and a cancel that really stops."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noren.errors import PolicyError, Problem
from noren.progress import Stage
from noren_studio import jobs
from noren_studio.jobs import SPARE, Job, Line, StageSeen, Worker
from noren_studio.session import Session


def adds(stage: Stage, a: int, b: int) -> int:
    with stage("Adding", 2) as meter:
        meter(1, note="first")
        meter(1)
    return a + b


def waits(stage: Stage, mark: str) -> None:
    """Never ends by itself."""
    with stage("Waiting", None):
        Path(mark).write_text(str(os.getpid()))
        threading.Event().wait()


def grows(stage: Stage, mark: str) -> Iterator[int]:
    """Tells one number, and then never ends."""
    yield 1
    Path(mark).write_text(str(os.getpid()))
    threading.Event().wait()


def counts(stage: Stage) -> Iterator[list[int]]:
    for last in (1, 2, 3):
        yield list(range(last))


def crashes(stage: Stage) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def quotes_a_cell(stage: Stage) -> None:
    raise ValueError("the cell says Kuroshio")


def refuses(stage: Stage) -> None:
    raise PolicyError([Problem("require[1]", "k is too small.", "Take 5.")])


@pytest.fixture(autouse=True, scope="module")
def _no_spare_is_left() -> Iterator[None]:
    yield
    SPARE.close()


def ended(job: Job) -> Job:
    """The job after its last message, when it has left the line."""
    assert job.wait(600)
    for thread in threading.enumerate():
        if getattr(thread, "_args", (None,))[:1] == (job._worker,):
            thread.join(600)
    return job


def run(work: Any, **given: Any) -> Job:
    job = Job("test", work, given, "")
    job.start()
    assert job.pid is not None
    return ended(job)


def test_a_job_tells_how_far_it_is_and_what_it_found() -> None:
    job = run(adds, a=2, b=3)
    assert (job.state, job.result) == ("done", 5)
    assert [(s.name, s.total, s.done, s.ended) for s in job.stages] == [("Adding", 2, 2, True)]


def test_a_crash_is_an_error(tmp_path: Path) -> None:
    job = run(crashes)
    assert job.state == "failed"
    assert job.failure is not None
    assert "SIGKILL" in job.failure.message


def test_an_error_of_ours_keeps_its_words_and_others_lose_theirs() -> None:
    ours, other = run(refuses), run(quotes_a_cell)
    assert ours.failure is not None
    assert other.failure is not None
    assert ours.failure.problems == [{"where": "require[1]", "message": "k is too small.", "hint": "Take 5."}]
    assert "ValueError" in other.failure.message
    assert "Kuroshio" not in str(other.failure)


def test_cancel_kills_the_process_and_loses_no_edit(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.open("t.csv", "t.csv", {"attributes": {"a": "plain"}}, "open")
    mark = tmp_path / "mark"
    job = session.start("long", waits, mark=str(mark))
    while not mark.exists() or not mark.read_text():
        assert job.running
    process = int(mark.read_text())
    job.cancel()
    assert job.state == "cancelled"
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert session.draft.policy == {"attributes": {"a": "plain"}}
    assert session.result("long") is None
    ended(job)


def test_what_was_found_so_far_is_told_and_stays_after_a_cancel(tmp_path: Path) -> None:
    job = run(counts)
    assert (job.state, job.result, job.parts) == ("done", [0, 1, 2], 3)
    session = Session(tmp_path)
    job = session.start("grows", grows, mark=str(tmp_path / "pid"))
    while session.result("grows") is None:
        assert not job.wait(0.01)
    session.stop("grows")
    assert (ended(job).state, session.result("grows")) == ("cancelled", 1)
    session.end()


def test_the_time_that_is_left_is_told_once_something_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = StageSeen("Comparing", 4, began=100.0)
    monkeypatch.setattr(jobs.time, "monotonic", lambda: 106.0)
    assert stage.left is None
    stage.done = 1
    assert stage.left == 18.0
    stage.done = 4
    assert stage.left is None


def test_whoever_sees_that_a_job_is_done_finds_its_result() -> None:
    """A page is built when a job ends, once: there is no second look."""
    seen: list[tuple[str, Any]] = []
    job = Job("sum", adds, {"a": 1, "b": 2}, "", lambda job: seen.append((job.state, job.result)))
    job.start()
    ended(job)
    assert (job.state, seen) == ("done", [("running", 3)])


def test_how_a_worker_ended_is_known_to_everybody_who_asks() -> None:
    worker, codes = Worker(), list[int | None]()
    asking = [threading.Thread(target=lambda: codes.append(worker.ended())) for _ in range(8)]
    for one in asking:
        one.start()
    worker.kill()
    for one in asking:
        one.join(600)
    assert codes == [-signal.SIGKILL] * 8


def test_another_job_of_the_name_stops_the_first(tmp_path: Path) -> None:
    session = Session(tmp_path)
    first = session.start("one", waits, mark=str(tmp_path / "mark"))
    second = session.start("one", adds, a=1, b=1)
    assert first.state == "cancelled"
    ended(second)
    assert session.result("one") == 2
    session.end()
    assert not session.folder.exists()


class Guest:
    """Somebody who waits."""

    begun = False

    def begin(self) -> None:
        self.begun = True


def test_turns_come_in_order_and_whoever_leaves_is_not_called() -> None:
    line, guests = Line(2), [Guest() for _ in range(6)]
    for one in guests:
        line.enter(one)
    assert [one.begun for one in guests] == [True, True, False, False, False, False]
    assert [line.before(one) for one in guests] == [None, None, 0, 1, 2, 3]
    line.leave(guests[2])
    assert [line.before(one) for one in guests[3:]] == [0, 1, 2]
    line.leave(guests[0])
    line.leave(guests[0])
    assert [one.begun for one in guests] == [True, True, False, True, False, False]
    line.leave(guests[1])
    line.leave(guests[3])
    line.leave(guests[4])
    assert [one.begun for one in guests] == [True, True, False, True, True, True]
    assert line.before(guests[2]) is None


def test_a_job_waits_for_its_turn_and_can_be_cancelled_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "LINE", Line(1))
    session, other = Session(tmp_path), Session(tmp_path)
    first = session.start("long", waits, mark=str(tmp_path / "mark"))
    second, third = other.start("sum", adds, a=1, b=2), other.start("more", adds, a=1, b=2)
    assert [one.before for one in (first, second, third)] == [None, 0, 1]
    assert second.pid is None
    second.cancel()
    assert (second.state, third.before) == ("cancelled", 0)
    first.cancel()
    ended(first)
    ended(third)
    assert (third.state, third.result) == ("done", 3)
    assert second.pid is None
    assert other.result("sum") is None


def test_the_stage_that_is_shown_is_one_that_has_not_ended() -> None:
    """Within "Trying" the codes are read in a moment: what takes the time is what is said."""
    job = Job("x", adds, {}, "mark")
    assert job.stage is None
    outer, inner = StageSeen("Trying"), StageSeen("Reading codes")
    job.stages += [outer, inner]
    assert job.stage is inner
    inner.ended = True
    assert job.stage is outer
    outer.ended = True
    assert job.stage is inner
