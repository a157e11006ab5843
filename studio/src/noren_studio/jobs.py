"""Long work in a process of its own: the page stays alive, cancel really stops it, a crash is an error and no loss.

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
from typing import Any, Literal, Protocol

from noren.errors import NorenError
from noren.progress import Meter, Stage
from noren_studio import texts

Work = Callable[..., Any]
"""A function at the top of a module: work(stage, **given) returns plain data."""
TOLD_EVERY = 0.15
"""Seconds between two messages about one stage."""
SPAWN = multiprocessing.get_context("spawn")
REAPING = threading.Lock()
"""A child's end is told once: of two threads that ask at the same moment, one would not learn how it ended. Starting a
process asks for all of them."""


PLACES = min(3, max(2, os.cpu_count() or 2))
"""Jobs that compute at the same time: more would share the same processors and only need more memory."""


class Waits(Protocol):
    """What stands in a line."""

    def begin(self) -> None:
        """Its turn has come."""


class Line:
    """Those who wait, and how many are being served."""

    def __init__(self, places: int = PLACES) -> None:
        self.places = places
        self._lock = threading.Lock()
        self._served: list[Waits] = []
        self._waiting: list[Waits] = []

    def enter(self, one: Waits) -> None:
        """Begin at once if a place is free, else stand behind the others."""
        self._change(lambda: self._waiting.append(one))

    def leave(self, one: Waits) -> None:
        """Give the place free, or stop waiting. Whoever has left before may do so again."""
        self._change(lambda: self._remove(one))

    def before(self, one: Waits) -> int | None:
        """How many wait before somebody; None if their turn has come."""
        with self._lock:
            return self._waiting.index(one) if one in self._waiting else None

    def _remove(self, one: Waits) -> None:
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
    """One stage of a job: what it is called, how much there is, how much is done."""

    name: str
    total: int | None = None
    done: int = 0
    note: str = ""
    ended: bool = False

    @property
    def share(self) -> float | None:
        return min(1.0, self.done / self.total) if self.total else None


@dataclass(frozen=True)
class Failure:
    """Why a job found nothing: problem and next step, as the library says it."""

    message: str
    hint: str = ""
    problems: Sequence[Mapping[str, str]] = field(default_factory=tuple)
    kind: str = ""


State = Literal["running", "done", "failed", "cancelled"]


class Job:
    """One run of a verb. `state`, `stages`, `result` and `failure` may be read at any time."""

    def __init__(
        self, name: str, work: Work, given: Mapping[str, Any], mark: str, keep: Callable[[Job], None] | None = None
    ) -> None:
        self.name = name
        self.mark = mark
        self.state: State = "running"
        self.stages: list[StageSeen] = []
        self.result: Any = None
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
        """What is being done: the last begun of the stages that have not ended; between two of them the last one."""
        stages = list(self.stages)
        return next((one for one in reversed(stages) if not one.ended), stages[-1] if stages else None)

    @property
    def pid(self) -> int | None:
        return None if self._worker is None else self._worker.process.pid

    @property
    def before(self) -> int | None:
        """How many jobs wait before this one; None if it waits no more."""
        return LINE.before(self)

    def wait(self, seconds: float | None = None) -> bool:
        """Until the job has ended, at most so long; whether it has."""
        return self._over.wait(seconds)

    def start(self) -> None:
        """Begin, or wait until a place is free."""
        LINE.enter(self)

    def begin(self) -> None:
        """The job's turn has come."""
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
        """Kill the process, or leave the line. What was found so far is gone; nothing that was being written stays."""
        if self._end("cancelled"):
            if self._worker is not None:
                self._worker.kill()
            else:
                LINE.leave(self)

    def _end(self, state: State) -> bool:
        """Into a final state, once: a job that was cancelled does not fail afterwards. Whoever sees that it is done
        finds what it found.
        """
        with self._lock:
            if self.state != "running":
                return False
            self.seconds = time.monotonic() - self.began
            if state == "done" and self._keep is not None:
                self._keep(self)
            self.state = state
            self._over.set()
            return True

    def _listen(self, worker: Worker) -> None:
        """Hears the worker until it ends."""
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
        """Takes one message; False after the last one."""
        told = message["told"]
        if told == "stage":
            self.stages.append(StageSeen(message["name"], message["total"]))
        elif told == "meter":
            stage = self.stages[message["at"]]
            stage.done, stage.note, stage.total = message["done"], message["note"], message["total"]
            stage.ended = message["ended"]
        elif told == "result":
            self.result = message["result"]
            self._end("done")
        else:
            self.failure = Failure(**message["failure"])
            self._end("failed")
        return told in ("stage", "meter")


class Worker:
    """A process that waits for one task, does it and ends. It has loaded what every task needs."""

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
        """Wait for its end, and say how it ended."""
        wait([self.process.sentinel])
        with REAPING:
            self.process.join()
            return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.ended()


class Spare:
    """A worker that is kept ready, so that a click does not wait for imports."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: Worker | None = None

    def prepare(self) -> None:
        """Have a worker ready from now on."""
        with self._lock:
            if self._ready is None or not self._ready.alive:
                self._ready = Worker()

    def take(self) -> Worker:
        """The worker that is ready, or a new one; the next one is made at once."""
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
    """The worker's whole life: load what is needed, wait, do it, say what was found or what went wrong, end."""
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
        teller.say(told="result", result=work(teller.stage, **given))
    except BaseException as error:
        teller.say(told="failure", failure=_failure(error))


def _warm() -> None:
    """Study two rows that nobody owns: what every table has to wait for is loaded by then. Kernels are not: they
    would nearly double what a waiting worker holds, and many tasks need none.
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
    """An error as data. One that is not Noren's own is named by its kind and place: its text may quote a cell."""
    kind = type(error).__name__
    if isinstance(error, NorenError):
        found = [{"where": p.where, "message": p.message, "hint": p.hint} for p in getattr(error, "problems", ())]
        return {"message": error.message, "hint": error.hint or "", "problems": found, "kind": kind}
    if isinstance(error, MemoryError):
        return {"message": texts.NO_MEMORY, "hint": texts.NO_MEMORY_HINT, "kind": kind}
    if isinstance(error, OSError) and error.filename is not None:
        return {"message": f"{error.filename}: {error.strerror}.", "hint": texts.CHECK_PATH, "kind": kind}
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    return {"message": texts.fault(kind, f"{place.filename}:{place.lineno}"), "hint": texts.REPORT_IT, "kind": kind}


class Teller:
    """Says over the pipe how far the work is."""

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
    """NumPy's numbers and anything with a name as JSON has it."""
    if hasattr(item, "item"):
        return item.item()
    if hasattr(item, "tolist"):
        return item.tolist()
    return str(item)
