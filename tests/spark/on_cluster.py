"""A program for a real cluster: releases while a machine dies and while tasks run twice. Started by test_cluster.py."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import noren as nr
from noren.engines.spark import SparkEngine
from noren.engines.spark.cluster import guarded
from tests.contracts.test_engines import CASES, table

Task = Callable[[Iterator[Any]], Iterator[Any]]
PATIENCE = 900
"""Seconds until a test gives up; nothing waits so long unless it hangs."""


def once(marker: Path) -> bool:
    """Whether this is the first to come here, of all processes."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def dying(folder: Path) -> Callable[[Task], Task]:
    """The machine of the first task that writes is killed: the Java process that runs it, with all it had shuffled."""
    marker = folder / "died"

    def faulty(task: Task) -> Task:
        real, writes = guarded(task), type(task).__name__ == "Write"

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            if writes and once(marker):
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
                os.kill(int(daemon[1]), signal.SIGKILL)
            yield from real(batches)

        return work

    return faulty


def stalling(folder: Path) -> Callable[[Task], Task]:
    """The first attempt at the first partition waits until another attempt at it has done the work."""
    begun, marker = folder / "stalled", folder / "overtaken"

    def faulty(task: Task) -> Task:
        real, draws = guarded(task), type(task).__name__ == "Draw"

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            context = TaskContext.get()
            mine = draws and context is not None and context.partitionId() == 0
            waits = mine and once(begun)
            yield from real(batches)
            end = time.monotonic() + PATIENCE
            while waits and not marker.exists() and time.monotonic() < end:
                time.sleep(0.05)
            if mine and not waits:
                marker.touch()

        return work

    return faulty


def keyed() -> nr.Policy:
    rules = CASES["decoys"]
    return nr.Policy(
        attributes=rules.attributes,
        require=rules.require,
        method=rules.methods,
        mechanism=rules.mechanism,
        people=rules.people,
        randomness={"record_key": "row"},
    )


def main() -> None:
    folder, conf = Path(sys.argv[1]), json.loads(sys.argv[2])
    import noren.engines.spark.engine as module

    session = SparkEngine(conf=conf).session
    session.sparkContext.setLogLevel("OFF")
    nr.Secret.create(folder / "key")
    here = nr.anonymize(table(), keyed(), secret=folder / "key").frame().sort("row")
    found = {"executors": conf["spark.cores.max"], "same": [], "verified": []}
    for name, fault in (("stalling", stalling), ("dying", dying)):
        module.guarded = fault(folder)  # type: ignore[assignment]
        data = session.createDataFrame(table())
        made = nr.anonymize(data, keyed(), secret=folder / "key", to=folder / name, engine=SparkEngine(session))
        found["same"].append(made.frame().sort("row").equals(here))
        found["verified"].append(
            all(verdict.holds for verdict in nr.verify(folder / name, engine=SparkEngine(session)))
        )
    module.guarded = guarded
    fresh = nr.anonymize(session.createDataFrame(table()), CASES["mixed"], to=folder / "mixed")
    found["mixed"] = all(verdict.holds for verdict in nr.verify(folder / "mixed", CASES["mixed"], original=table()))
    found["rows"] = fresh.records
    print("FOUND " + json.dumps(found))
    session.stop()


if __name__ == "__main__":
    main()
