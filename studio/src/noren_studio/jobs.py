"""Long work in separate processes: the page stays responsive, cancel ends the process, a crash is an error.

A job runs one function of `noren_studio.work`, which calls public verbs. The process tells how far it is and what it
found in JSON over a pipe; a server never unpickles what a worker made. It ends with the server, whatever happens.
Only a few run at a time, so that ten people do not need ten times the memory: the others stand in a line, first come,
first served.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from noren.errors import NorenError
from noren.progress import Meter, Stage
from noren_studio import texts

Work = Callable[..., Any]
"""A function at the top of a module: work(stage, **given) returns plain data, or yields more and more of it."""
TOLD_EVERY = 0.15
"""Seconds between two messages about one stage."""
SPAWN = multiprocessing.get_context("spawn")
REAPING = threading.Lock()
"""A child's end is told once: of two threads that ask at the same moment, one would not learn how it ended. Starting a
process asks for all of them."""


PLACES = min(3, max(2, os.cpu_count() or 2))
"""Jobs that compute at the same time: more would share the same processors and only need more memory."""


class Line:
    """The line of waiting jobs, and the number of running ones."""

    def __init__(self, places: int = PLACES) -> None:
        self.places = places
        self._lock = threading.Lock()
        self._served: list[Job] = []
        self._waiting: list[Job] = []

    def enter(self, one: Job) -> None:
        """Start at once if a place is free, otherwise wait."""
        self._change(lambda: self._waiting.append(one))

    def leave(self, one: Job) -> None:
        """Free the place, or stop waiting. Calling it again has no effect."""
        self._change(lambda: self._remove(one))

    def before(self, one: Job) -> int | None:
        """Return how many wait before a job; None if it is running."""
        with self._lock:
            return self._waiting.index(one) if one in self._waiting else None

    def _remove(self, one: Job) -> None:
        for group in (self._served, self._waiting):
            if one in group:
                group.remove(one)

    def _change(self, change: Callable[[], None]) -> None:
        with self._lock:
            change()
            turn = self._waiting[: max(0, self.places - len(self._served))]
            del self._waiting[: len(turn)]
            self._served += turn
        for one in turn:  # outside the lock: beginning starts a process
            one.begin()


@dataclass
class StageSeen:
    """One stage of a job: its name, total and progress."""

    name: str
    total: int | None = None
    done: int = 0
    note: str = ""
    ended: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def share(self) -> float | None:
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def left(self) -> float | None:
        """Return the estimated remaining seconds; None before any progress."""
        if not self.total or not 0 < self.done < self.total:
            return None
        return (time.monotonic() - self.began) / self.done * (self.total - self.done)


@dataclass(frozen=True)
class Failure:
    """Why a job failed: problem and hint of the library."""

    message: str
    hint: str = ""
    problems: Sequence[Mapping[str, str]] = field(default_factory=tuple)
    kind: str = ""


State = Literal["running", "done", "failed", "cancelled"]


class Job:
    """One run of a function. `state`, `stages`, `result` and `failure` may be read at any time."""

    def __init__(
        self, name: str, work: Work, given: Mapping[str, Any], mark: str, keep: Callable[[Job], None] | None = None
    ) -> None:
        self.name = name
        self.mark = mark
        self.state: State = "running"
        self.stages: list[StageSeen] = []
        self.result: Any = None
        self.parts = 0
        """How often a result was told: work may tell what it has found so far."""
        self.failure: Failure | None = None
        self.began = time.monotonic()
        self.seconds = 0.0
        self._keep = keep
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._task = work, dict(given)
        self._worker: Worker | None = None

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def stage(self) -> StageSeen | None:
        """Return the current stage."""
        stages = list(self.stages)
        return next((one for one in reversed(stages) if not one.ended), stages[-1] if stages else None)

    @property
    def pid(self) -> int | None:
        return None if self._worker is None else self._worker.process.pid

    @property
    def before(self) -> int | None:
        """Return how many jobs wait before this one; None if it no longer waits."""
        return LINE.before(self)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the job has ended, with a timeout; return whether it has."""
        return self._over.wait(seconds)

    def start(self) -> None:
        """Start, or wait until a place is free."""
        LINE.enter(self)

    def begin(self) -> None:
        """Start the process, because a place is free."""
        worker = SPARE.take()
        with self._lock:
            cancelled = self.state != "running"
            if not cancelled:
                self._worker, self.began = worker, time.monotonic()
        if cancelled:
            worker.kill()
            LINE.leave(self)
            return
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()
        with suppress(OSError):  # it was killed this moment: the listener finds that out
            worker.tasks.send(self._task)

    def cancel(self) -> None:
        """Kill the process, or leave the line. Reported results stay; unfinished files are removed."""
        if self._end("cancelled"):
            if self._worker is not None:
                self._worker.kill()
            else:
                LINE.leave(self)

    def _end(self, state: State) -> bool:
        """Set the final state once: a cancelled job does not fail afterwards, and results are set before the state."""
        with self._lock:
            if self.state != "running":
                return False
            self.seconds = time.monotonic() - self.began
            self.state = state
            self._over.set()
            return True

    def _listen(self, worker: Worker) -> None:
        """Listen to the worker until it ends."""
        try:
            while self._hear(json.loads(worker.told.recv_bytes())):
                pass
        except (EOFError, OSError, ValueError):
            pass
        code = worker.ended()
        if self.running:
            self.failure = Failure(*texts.worker_ended(_signal(code)), kind="Crash")
            self._end("failed")
        LINE.leave(self)

    def _hear(self, message: Mapping[str, Any]) -> bool:
        """Handle one message; return False after the last one."""
        told = message["told"]
        if told == "stage":
            self.stages.append(StageSeen(message["name"], message["total"]))
        elif told == "meter":
            stage = self.stages[message["at"]]
            stage.done, stage.note, stage.total = message["done"], message["note"], message["total"]
            stage.ended = message["ended"]
        elif told == "part":
            with self._lock:
                if self.running:
                    self.result, self.parts = message["result"], self.parts + 1
                    if self._keep is not None:
                        self._keep(self)
        elif told == "done":
            self._end("done")
        else:
            self.failure = Failure(**message["failure"])
            self._end("failed")
        return told in ("stage", "meter", "part")


class Worker:
    """A process that waits for one task, runs it and ends. It has preloaded common modules."""

    def __init__(self) -> None:
        theirs, self.tasks = SPAWN.Pipe(duplex=False)
        self.told, telling = SPAWN.Pipe(duplex=False)
        self.process = SPAWN.Process(target=_live, args=(theirs, telling), daemon=True)
        with REAPING:
            self.process.start()
        theirs.close()
        telling.close()

    @property
    def alive(self) -> bool:
        with REAPING:
            return self.process.is_alive()

    def ended(self) -> int | None:
        """Wait for the end, and describe it."""
        wait([self.process.sentinel])
        with REAPING:
            self.process.join()
            return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.ended()


class Spare:
    """Keeps a worker ready, so that a click does not wait for imports."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: Worker | None = None

    def prepare(self) -> None:
        """Keep a worker ready from now on."""
        with self._lock:
            if self._ready is None or not self._ready.alive:
                self._ready = Worker()

    def take(self) -> Worker:
        """Return the ready worker, or a new one; the next one is started at once."""
        with self._lock:
            found, self._ready = self._ready, None
        if found is None or not found.alive:
            found = Worker()
        threading.Thread(target=self.prepare, daemon=True).start()
        return found

    def close(self) -> None:
        with self._lock:
            if self._ready is not None:
                self._ready.kill()
            self._ready = None


SPARE = Spare()
LINE = Line()
"""The one line of this server."""


def _signal(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


# ---------------------------------------------------------------------- in the worker


def _live(tasks: Connection, pipe: Connection) -> None:
    """Run a worker: preload, wait, do the task, report the result or error, end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(1)  # pages go first
    from noren.workflow import advise, run  # noqa: F401

    if not tasks.poll():  # nobody waits yet
        _warm()
    try:
        work, given = tasks.recv()
    except EOFError:
        return
    teller = Teller(pipe)
    try:
        found = work(teller.stage, **given)
        for part in found if isinstance(found, Iterator) else (found,):
            teller.say(told="part", result=part)
        teller.say(told="done")
    except BaseException as error:
        teller.say(told="failure", failure=_failure(error))


def _warm() -> None:
    """Study a table of two invented rows, so that modules are loaded. Kernels are not, because they would double the
    memory and many tasks need none.
    """
    import pyarrow as pa

    from noren.policy import study
    from noren.sources import open_source

    study(open_source(pa.table({"age": [30, 40], "job": ["nurse", "clerk"]})))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _failure(error: BaseException) -> dict[str, Any]:
    """Return an error as data. An error that is not Noren's is named by kind and place only, because its text may quote
    a cell."""
    kind = type(error).__name__
    if isinstance(error, NorenError):
        found = [{"where": p.where, "message": p.message, "hint": p.hint} for p in getattr(error, "problems", ())]
        return {"message": error.message, "hint": error.hint or "", "problems": found, "kind": kind}
    if isinstance(error, MemoryError):
        return {"message": texts.NO_MEMORY, "hint": texts.NO_MEMORY_HINT, "kind": kind}
    if isinstance(error, OSError) and error.filename is not None:
        return {"message": f"{error.filename}: {error.strerror}.", "hint": texts.CHECK_PATH, "kind": kind}
    return {"message": texts.fault(kind, place_of(error)), "hint": texts.REPORT_IT, "kind": kind}


def place_of(error: BaseException) -> str:
    """Return the file and line where an error was raised; its text may quote a cell."""
    import traceback

    found = traceback.extract_tb(error.__traceback__)
    return f"{found[-1].filename}:{found[-1].lineno}" if found else "?"


class Teller:
    """Reports progress over the pipe."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self._count = 0

    def say(self, **message: Any) -> None:
        self.pipe.send_bytes(json.dumps(message, default=_plain).encode())

    @property
    def stage(self) -> Stage:
        return self._stage

    @contextmanager
    def _stage(self, name: str, total: int | None) -> Iterator[Meter]:
        at, self._count = self._count, self._count + 1
        self.say(told="stage", name=name, total=total)
        seen, last = StageSeen(name, total), 0.0

        def tell(ended: bool = False) -> None:
            self.say(told="meter", at=at, done=seen.done, note=seen.note, total=seen.total, ended=ended)

        def meter(done: int, *, note: str = "", total: int | None = None) -> None:
            nonlocal last
            seen.done, seen.note, seen.total = seen.done + int(done), note or seen.note, total or seen.total
            if time.monotonic() - last > TOLD_EVERY:
                last = time.monotonic()
                tell()

        try:
            yield meter
        finally:
            tell(ended=True)


def _plain(item: Any) -> Any:
    """Convert NumPy's numbers and named objects for JSON."""
    if hasattr(item, "item"):
        return item.item()
    if hasattr(item, "tolist"):
        return item.tolist()
    return str(item)
