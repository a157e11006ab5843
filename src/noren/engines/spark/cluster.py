"""Spark sessions: requirements for sending keys, and how tasks travel, answer and fail."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from math import isqrt
from typing import Any

from noren import errors
from noren.errors import NorenError, OutOfReach, QueryError, SecretError
from noren.secret.streams import CarriedKeys

INSTALL = 'Install it with: pip install "noren[spark]"'
OURS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
}
"""Settings of every job: partitions stay as they are planned, and batches are as large as on one machine."""
DRIVER = "spark.noren.driver.memory"
"""The setting that says how much of this machine's memory what must be decided in one place may take."""
TUPLE_COPIES = 4
"""How many times the codes and the count of a tuple, eight bytes each, are held where tuples decide."""
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
WIRE = (("spark.authenticate", "spark.network.crypto.enabled"), ("spark.ssl.rpc.enabled",))
"""Settings of which one group must be on, so that what travels between machines is encrypted."""


def started(master: str | None = None, conf: Mapping[str, str] | None = None) -> Any:
    """Return the running session, or a new one. Local workers use this Python."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise QueryError("the engine spark needs PySpark 4.", hint=INSTALL) from None
    running = SparkSession.getActiveSession()
    if running is not None and master is None and not conf:
        return running
    if running is None and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise QueryError("Spark needs Java 17 or newer, and there is none here.", hint="Install it, or set JAVA_HOME.")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("noren").config("spark.ui.showConsoleProgress", "false")
    builder = builder if master is None else builder.master(master)
    for name, value in (conf or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def settings(session: Any) -> Iterator[None]:
    """Apply our settings to the session for the time of a job."""
    before = {name: session.conf.get(name, None) for name in OURS}
    try:
        for name, value in OURS.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)


def setting(session: Any, name: str) -> str | None:
    """Return a setting of the session or of its context."""
    found: str | None = session.conf.get(name, None)
    return found if found is not None else session.sparkContext.getConf().get(name)


def demand_sealed(session: Any) -> None:
    """Refuse to send a key if somebody could read it on the network or on disk."""
    master = session.sparkContext.master
    if re.fullmatch(r"local(\[[^\]]*\])?", master):
        return
    lacking = [] if _on(session, "spark.io.encryption.enabled") else ["spark.io.encryption.enabled"]
    if not any(all(_on(session, name) for name in group) for group in WIRE):
        lacking += [name for name in WIRE[0] if not _on(session, name)]
    if lacking:
        wanted = " ".join(f"--conf {name}=true" for name in lacking)
        raise SecretError(
            f"keys would be sent unencrypted to {master.split(':')[0]}, so nothing was drawn.",
            hint=f"Start the session with {wanted} (or spark.ssl.rpc.enabled instead of spark.network.crypto.enabled).",
        )


def _on(session: Any, name: str) -> bool:
    return (session.sparkContext.getConf().get(name) or "false").lower() == "true"


def room(session: Any) -> int:
    """Return how many bytes of the driver's memory may be used: by the setting, or half of it."""
    said = setting(session, DRIVER)
    if said is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", said.strip().lower())
    if found is None:
        raise QueryError(f"{DRIVER}={said} is no size.", hint="For example 2g.")
    return int(found[1]) * UNITS[found[2]]


def demand_room(
    session: Any, needed: int, what: str, instead: str = "choose a method that needs only counts (decoys)"
) -> None:
    """Refuse a table that does not fit into memory, with the required size."""
    there = room(session)
    if needed > there:
        raise OutOfReach(
            f"{what} needs {needed:,} bytes on the driver, which may use {there:,}.",
            hint=f"Raise {DRIVER} if the machine has more memory, or {instead}.",
        )


# ---------------------------------------------------------------------- how tasks travel and answer
#
# As bytes: pickles, of Spark's own serializer, which runs what it reads. Spark carries functions, broadcasts and
# results between its processes the same way, so whoever can forge an answer runs code on the driver already. Nothing
# is ever read from a file, or from anybody but a task of this run. This is the one file of the engine that unpickles:
# `tests/contracts/test_pins.py` names it.


HEAVY = 1 << 18
"""Bytes from which a task travels apart from its keys. Beyond 2**20 (spark.broadcast.UDFCompressionThreshold) Spark
makes a broadcast of all that a task is, keys and all, and writes that to disks."""


def sent(said: Any) -> bytes:
    """Serialise an object."""
    from pyspark.serializers import CPickleSerializer

    return bytes(CPickleSerializer().dumps(said))


def received(content: bytes) -> Any:
    """Deserialise an object."""
    from pyspark.serializers import CPickleSerializer

    return CPickleSerializer().loads(content)


def by_part() -> Any:
    """Return an accumulator of the results of partitions; a repeated task counts once."""
    from pyspark.accumulators import AccumulatorParam

    class ByPart(AccumulatorParam):
        def zero(self, value: Any) -> Any:
            return {}

        def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802  the name that Spark calls
            value1.update(value2)
            return value1

    return ByPart()


@dataclass(frozen=True)
class Parted:
    """A task with its keys, and everything else in a broadcast."""

    body: Any
    kept: tuple[Any, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        yield from rejoined(self.body.value, self.kept)(batches)


def parted(task: Callable[..., Any]) -> Callable[..., Any]:
    """Prepare a task to travel, whatever the number of its files and values."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return task
    body, kept = without_keys(task)
    return task if len(body) < HEAVY else Parted(context.broadcast(body), kept)


def without_keys(task: Any) -> tuple[bytes, tuple[Any, ...]]:
    """Serialise a task without its keys; return both. Spark's own references stay in the task."""
    from pyspark import Accumulator, Broadcast
    from pyspark.cloudpickle import CloudPickler

    kept: list[Any] = []

    class Packer(CloudPickler):
        def persistent_id(self, obj: Any) -> int | None:
            if not isinstance(obj, CarriedKeys | Accumulator | Broadcast):
                return None
            kept.append(obj)
            return len(kept) - 1

    sink = io.BytesIO()
    Packer(sink).dump(task)  # type: ignore[no-untyped-call]
    return sink.getvalue(), tuple(kept)


def rejoined(body: bytes, kept: Sequence[Any]) -> Any:
    """Join a serialised task with its keys."""

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return kept[pid]

    return Unpacker(io.BytesIO(body)).load()


# ---------------------------------------------------------------------- what a task may say when it fails
#
# Spark writes it into logs, its pages and its event log, so it quotes no cell.


MARK = "noren-task-said:"
_SAID = re.compile(re.escape(MARK) + r"(\{.*?\})#")


class TaskFailed(Exception):
    """The failure of a task, in words without cells."""


def guarded(task: Callable[[Iterator[Any]], Iterator[Any]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Wrap a task so that its failures contain no cell: errors of Noren unchanged, others by kind and place."""
    carried = parted(task)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from carried(batches)
        except NorenError as error:
            said = {"kind": type(error).__name__, "message": error.message, "hint": error.hint}
            raise TaskFailed(f"{MARK}{json.dumps(said)}#") from None
        except Exception as error:
            places = " < ".join(
                f"{f.filename.split('/')[-1]}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[::-1]
            )
            raise TaskFailed(f"{type(error).__name__} at {places}") from None

    return work


@contextmanager
def told() -> Iterator[None]:
    """Turn errors of Spark into the errors that tasks raised, or into an error that names only the kind."""
    try:
        yield
    except NorenError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        found = _SAID.search(str(error))
        if found is None:
            place = re.search(r"TaskFailed: (.*)", str(error))
            why = place[1] if place else type(error).__name__
            raise OutOfReach(f"Spark failed: {why}.", hint="See the log of the executors.") from None
        said = json.loads(found[1])
        kind = getattr(errors, said["kind"], NorenError)
        raise (kind if kind is not errors.PolicyError else NorenError)(said["message"], hint=said["hint"]) from None


# ---------------------------------------------------------------------- many answers as one
#
# Every task counts values, or the values of every part; ten thousand such answers are more than a driver takes in. So
# they are put together in lots of neighbours first, as many lots as each has answers.


AT_ONCE = 64
"""Answers that the driver takes in as they are."""


@dataclass(frozen=True)
class Merge:
    """Merge the answers of several tasks, in order."""

    put: Callable[[Any, Any], Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        lot, whole = None, None
        for batch in batches:
            for row in batch.to_pylist():
                said = received(row["payload"])
                if row["lot"] == lot:
                    whole = self.put(whole, said)
                    continue
                if lot is not None:
                    yield _row(lot, whole)
                lot, whole = row["lot"], said
        if lot is not None:
            yield _row(lot, whole)


def _row(lot: int, whole: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([lot], pa.int64()), pa.array([sent(whole)])], ["lot", "payload"])


def gathered(frame: Any, tasks: int, put: Callable[[Any, Any], Any]) -> Any:
    """Collect and merge the answers of all tasks in order; None if there are none."""
    from pyspark.sql import functions as f

    if tasks <= AT_ONCE:
        rows = frame.collect()
    else:
        lots = isqrt(tasks - 1) + 1
        lot = f.expr(f"spark_partition_id() * {lots}L div {tasks}").alias("lot")
        placed = frame.select(lot, f.spark_partition_id().alias("number"), "payload").repartition(lots, "lot")
        ordered = placed.sortWithinPartitions("lot", "number")
        merged = ordered.mapInArrow(guarded(Merge(put)), "lot long, payload binary").collect()
        rows = sorted(merged, key=lambda row: row.lot)
    said = [received(row.payload) for row in rows]
    return reduce(put, said) if said else None
